// Where a peer's workers run: in the process that enqueues (processes = 0), or in processes of their own.
import { fork } from "node:child_process";
import { once } from "node:events";

// start(completed) begins to take jobs and answers how to stop; close() ends the processes.
export async function startDrain(peer, file, settings, url) {
  if (settings.processes === 0) return { start: (completed) => peer.drain(completed), close: async () => {} };
  const env = { ...process.env, PEER_KEYED: settings.keyed ? "1" : "0" };
  const words = process.argv.slice(2).filter((word) => word.startsWith("--"));
  const children = Array.from({ length: settings.processes }, () => fork(file, ["drain", "0", url, ...words], { env }));
  let completed;
  for (const child of children) child.on("message", (message) => typeof message === "number" && completed(message));
  await Promise.all(children.map((child) => reply(child, "ready")));
  return {
    start: async (report) => {
      completed = report;
      await ask(children, "start", "started");
      return () => ask(children, "stop", "stopped");
    },
    close: () => Promise.all(children.map((child) => (child.send("close"), once(child, "exit")))),
  };
}

export async function serveDrain(peer) {
  let stop;
  const answers = {
    start: async () => {
      stop = await peer.drain((count) => process.send(count));
      process.send("started");
    },
    stop: async () => {
      await stop();
      process.send("stopped");
    },
    close: async () => {
      await peer.close();
      process.disconnect();
    },
  };
  process.on("message", (message) => answers[message]());
  process.send("ready");
}

function ask(children, question, answer) {
  const replies = children.map((child) => reply(child, answer));
  for (const child of children) child.send(question);
  return Promise.all(replies);
}

function reply(child, expected) {
  return new Promise((resolve, reject) => {
    const listen = (message) => {
      if (message !== expected) return;
      child.off("message", listen);
      child.off("exit", reject);
      resolve();
    };
    child.on("message", listen);
    child.once("exit", reject);
  });
}
