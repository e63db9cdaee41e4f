#!/usr/bin/env python3
"""http/ beside nginx's `return 200`, alternating on loopback: requests a second and CPU time a request.

usage: compare_nginx.py build/release/bench/http_bench_server [rounds]; needs wrk and nginx. Machines are noisy: read the ratios.
"""
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PORTS = {"nginx": 18481, "http": 18482, "deferred": 18483}
CONFIG = """
worker_processes 2; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; default_type text/plain;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }}
}}
"""


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(name, pids):
    before = cpu_seconds(pids)
    command = ["wrk", "-t1", "-c64", "-d2s", f"http://127.0.0.1:{PORTS[name]}/"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Socket errors" in text or "Non-2xx" in text:
        sys.exit(text)
    count = int(re.search(r"(\d+) requests in", text)[1])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return rate, (cpu_seconds(pids) - before) / count * 1e6


def main():
    binary, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(CONFIG.format(dir=folder, port=PORTS["nginx"]))
        subprocess.run(["nginx", "-c", f"{folder}/nginx.conf", "-p", folder], stderr=subprocess.DEVNULL, check=True)
        time.sleep(0.5)
        master = int(open(f"{folder}/pid").read())
        pids = {"nginx": [int(pid) for pid in open(f"/proc/{master}/task/{master}/children").read().split()]}
        servers = []
        for name, extra in (("http", []), ("deferred", ["deferred"])):
            servers.append(subprocess.Popen([binary, str(PORTS[name]), *extra], stdin=subprocess.PIPE))
            pids[name] = [servers[-1].pid]
        time.sleep(0.5)
        results = {name: [] for name in PORTS}
        try:
            for _ in range(rounds):
                for name in PORTS:
                    results[name].append(measure(name, pids[name]))
        finally:
            for server in servers:
                server.communicate(b"\n")
            os.kill(master, signal.SIGTERM)
            time.sleep(0.5)
    for name, runs in results.items():
        rate = statistics.median(run[0] for run in runs)
        cpu = statistics.median(run[1] for run in runs)
        ratio = statistics.median(run[0] / base[0] for run, base in zip(runs, results["nginx"]))
        print(f"{name:9} {rate:8.0f} requests/s   {cpu:5.2f} µs CPU a request   {ratio:4.2f} of nginx")


if __name__ == "__main__":
    main()
