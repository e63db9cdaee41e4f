#!/usr/bin/env python3
"""The API beside nginx's `return 200` under the same wrk scripts, alternating: claim + complete (each request counted, all
durable) and replays over 10,000 keys. usage: compare_api.py build/release/latchkey [rounds] [folder]

Prints one JSON object. nginx answers every request with a body like a claim's, so that the scripts do the same work.
"""
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NGINX, API = 18491, 18492
BODY = json.dumps({"run": {"id": "01a1e165-39e6-7000-8000-00006d800fcd", "tenant": "default", "function": "bench",
                           "key": "order:1:1", "guard": "once", "status": "running", "origin": "claimed", "generation": 1,
                           "attempt": 1, "attempts_max": 4, "fence": 123456, "created_at": "2026-02-06T10:00:00.000Z",
                           "started_at": "2026-02-06T10:00:00.000Z", "lease_until": "2026-02-06T10:01:00.000Z",
                           "window_ms": 86400000, "lease_ms": 60000, "on_doubt": "rerun",
                           "effect_key": "01a1e165-39e6-7000-8000-00006d800fcd", "caller": "admin.key"},
                   "fence": 123456, "lease_until": "2026-02-06T10:01:00.000Z"}, separators=(",", ":"))
CONFIG = """
worker_processes 2; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; default_type application/json;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 '{body}'; }} }}
}}
"""


def wrk(port, script, *arguments, seconds=4):
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", f"{HERE}/{script}", f"http://127.0.0.1:{port}", "--", *arguments]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Socket errors" in text or "Non-2xx" in text:
        sys.exit(text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])


def complete_replays(token):
    """Claims and completes the keys that replays.lua asks for."""
    connection = http.client.HTTPConnection("127.0.0.1", API)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(path, body):
        connection.request("POST", path, json.dumps(body), headers)
        return json.loads(connection.getresponse().read())

    for number in range(1, 10001):
        won = post("/v1/runs", {"function": "bench", "key": f"replay:{number}"})
        post(f"/v1/runs/{won['run']['id']}/complete", {"fence": won["fence"], "result": {"text": "r" * 200}})


def main():
    binary, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    # In the working directory by default: on the disk that is to be measured, not in memory.
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else ".") as folder:
        folder = os.path.abspath(folder)
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(CONFIG.format(dir=folder, port=NGINX, body=BODY))
        subprocess.run(["nginx", "-c", f"{folder}/nginx.conf", "-p", folder], stderr=subprocess.DEVNULL, check=True)
        server = subprocess.Popen([binary, "serve", "--data-dir", f"{folder}/data", "--listen", f"127.0.0.1:{API}"],
                                  stdout=subprocess.PIPE, text=True)
        rates = {"claims": [], "claims_nginx": [], "replays": [], "replays_nginx": []}
        try:
            while "Stop with" not in server.stdout.readline():
                pass
            token = open(f"{folder}/data/admin.key").read().strip()
            complete_replays(token)
            for number in range(rounds):
                rates["claims_nginx"].append(wrk(NGINX, "claims.lua", token, str(number)))
                rates["claims"].append(wrk(API, "claims.lua", token, str(number)))
                rates["replays_nginx"].append(wrk(NGINX, "replays.lua", token))
                rates["replays"].append(wrk(API, "replays.lua", token))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
            os.kill(int(open(f"{folder}/pid").read()), signal.SIGTERM)
            time.sleep(0.5)
    report = {name: round(statistics.median(values)) for name, values in rates.items()}
    for name in ("claims", "replays"):
        report[f"{name}_of_nginx"] = round(
            statistics.median(a / b for a, b in zip(rates[name], rates[f"{name}_nginx"])), 3)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
