#!/usr/bin/env python3
"""Runs the commands that the pages show, against a real server: snippets_test.py BINARY SOURCE

Every fenced block of the pages below, of a language that can run, is either run or named in NOT_RUN with the reason. SQL blocks run in
tests/sql/docs_test.cpp, the C++ of the README in package_test.sh.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BINARY, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PAGES = ["README.md", "docs/cli.md", "docs/http.md", "docs/sql.md", "docs/migrations.md", "docs/postgresql.md", "docs/testing.md", "CONTRIBUTING.md"]
ELSEWHERE = {
    ("README.md", "sql"): "tests/sql/docs_test.cpp",
    ("docs/sql.md", "sql"): "tests/sql/docs_test.cpp",
    ("README.md", "cpp"): "tests/package/package_test.sh",
}
# (page, a text in the block): why it is not run.
NOT_RUN = {
    ("docs/migrations.md", "change: Add user_preferences"): "examples/migrations has this plan, and tests/migrate runs it",
    ("docs/migrations.md", "--database postgres://app@db/app"): "needs the host db; tests/migrate runs each of these commands",
    ("docs/sql.md", "def settle(connect"): "needs psycopg; tests/sql/transactions_test.cpp sends a transaction again in the same way",
    ("docs/postgresql.md", "GRANT latchkey_engine"): "the server's role of another host; tests/sql/server_test.cpp grants the same",
    ("docs/postgresql.md", "REVOKE CONNECT ON DATABASE app"): "the database of another host",
    ("docs/testing.md", "make sim SEED=42"): "a build of all tests",
    ("docs/testing.md", "fuzz_request_head"): "needs the build for fuzzing",
    ("CONTRIBUTING.md", "make build"): "builds and tests everything",
}
used = set()


def blocks(page):
    text = (SOURCE / page).read_text()
    return re.findall(r"^```([a-z]+)\n(.*?)^```$", text, re.M | re.S)


def fail(page, block, why):
    sys.exit(f"{page}: {why}\n{block}")


class Shell:
    """Runs one command after another in one folder, with the binary in PATH."""

    def __init__(self, folder):
        self.folder = folder
        self.prelude = 'curl() { command curl -w "\\n%{http_code}" "$@"; }\n'
        self.values = {}

    def run(self, command):
        env = {"PATH": f"{BINARY.parent}:{os.environ['PATH']}", "HOME": str(self.folder), "LATCHKEY_DATA_DIR": str(self.folder / "data")}
        for name, value in self.values.items():
            command = re.sub(rf"\b{name}\b", value, command)
        done = subprocess.run(["bash", "-c", self.prelude + command], cwd=self.folder, env=env, text=True, capture_output=True)
        return done.returncode, done.stdout, done.stderr


def run_http(shell, page, block, url):
    """Lines `api …`; the line after it is a comment with the status. RUN and FENCE are those of the first reply."""
    lines = [line for line in block.replace("localhost:7420", url).splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("api()"):
            shell.prelude += line + "\n"
        elif line.startswith("api "):
            code, out, err = shell.run(line)
            status = out.strip().splitlines()[-1] if out.strip() else ""
            expected = re.match(r"# (\d{3})\b", lines[at + 1])
            if code or status != (expected.group(1) if expected else "200"):
                fail(page, line, f"exit {code}, {out}{err}")
            for name, pattern in (("RUN", r'"id":"([0-9a-f-]{36})"'), ("FENCE", r'"fence":(\d+)')):
                found = re.search(pattern, out)
                if found and name not in shell.values:
                    shell.values[name] = found.group(1)
        elif not line.startswith("#"):
            fail(page, line, "is neither a call nor a comment")


def run_session(shell, page, block):
    """Lines `$ command`, each followed by exactly its output."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, expected = part.split("\n", 1)
        code, out, err = shell.run(command)
        if code or out != expected:
            fail(page, command, f"exit {code}, {out}{err}")


def run_commands(shell, page, block):
    code, out, err = shell.run("set -e\n" + block)
    if code:
        fail(page, block, f"exit {code}, {out}{err}")


def inline_commands():
    """`latchkey …` in the text that has no placeholder: it must be accepted, up to its options."""
    for page in ("README.md", "docs/cli.md", "docs/http.md", "docs/sql.md"):
        text = re.sub(r"^```.*?^```$", "", (SOURCE / page).read_text(), flags=re.M | re.S)
        for command in re.findall(r"`(latchkey [^`]*)`", text):
            if "…" not in command and "\\|" not in command and "postgres://" not in command:
                yield page, command


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.symlink(SOURCE / "examples", folder / "examples")
        (folder / "backup.sh").write_text("#!/bin/sh\necho saved\n")
        (folder / "backup.sh").chmod(0o755)
        server = subprocess.Popen([BINARY, "serve", "--data-dir", folder / "data", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split("http://")[1].strip()
            ran = 0
            for page in PAGES:
                for language, block in blocks(page):
                    reason = [key for key in NOT_RUN if key[0] == page and key[1] in block]
                    used.update(reason)
                    if reason or (page, language) in ELSEWHERE:
                        continue
                    shell = Shell(folder)
                    if language != "sh":
                        fail(page, block, f"no test runs a block of {language}; name it in NOT_RUN")
                    elif "api " in block:
                        run_http(shell, page, block, url)
                    elif block.startswith("$ "):
                        run_session(shell, page, block)
                    else:
                        run_commands(shell, page, block)
                    ran += 1
            if ran < 3:
                sys.exit(f"only {ran} blocks were run")
            for page, command in inline_commands():
                # A group of commands without one of them, and a placeholder, are shown by --help.
                words = re.sub(r"( --\S+)? [A-Z]+\b.*| --$", "", command)
                code, out, err = Shell(folder).run(words + " --help")
                if code:
                    fail(page, command, f"exit {code}, {out}{err}")
            shell = Shell(folder)
            for command in ("latchkey token create --role admin --name second", "latchkey token list",
                            "latchkey migrate verify --dir examples/migrations --database sqlite:app.db",
                            "latchkey migrate up --dir examples/migrations --database sqlite:app.db",
                            "latchkey migrate new add_users --dir mine"):
                code, out, err = shell.run(command)
                if code:
                    fail("README.md and docs/cli.md", command, f"exit {code}, {out}{err}")
        finally:
            server.terminate()
            server.wait()
    if unused := set(NOT_RUN) - used:
        sys.exit(f"NOT_RUN names blocks that are on no page: {unused}")


main()
