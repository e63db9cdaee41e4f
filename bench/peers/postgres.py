"""A PostgreSQL 15 for a benchmark: with_postgres() starts one in a temporary folder and stops it at the end."""
import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = "/usr/lib/postgresql/15/bin"
USER = "latchkey"
# The same for every contender; whatever is not named here is PostgreSQL's default.
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "shared_buffers": "1GB", "max_wal_size": "8GB", "min_wal_size": "4GB",
            "checkpoint_timeout": "15min", "wal_compression": "on"}


class Postgres:
    """A running server; url(database) is how to reach it."""

    def __init__(self, port):
        self.port = port

    def url(self, database="postgres"):
        return f"postgres://{USER}@127.0.0.1:{self.port}/{database}"

    def run(self, sql, database="postgres"):
        return subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url(database)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def make_log_files(self, gib=4):
        """Creates log files that the server can reuse, as one has after it has run for a while. Creating a file blocks all
        commits for tens of milliseconds."""
        self.run(f"DO $$ BEGIN FOR i IN 1..{gib * 64} LOOP PERFORM pg_logical_emit_message(false, 'bench', 'x'); "
                 "PERFORM pg_switch_wal(); END LOOP; END $$")
        self.run("CHECKPOINT")

    @contextlib.contextmanager
    def fresh_database(self, name):
        """An empty database, so that earlier measurements do not affect this one."""
        self.run(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


def _go_with_parent():
    """Called in the new process: when the benchmark is killed, its server goes too."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def with_postgres(parent=None, settings=SETTINGS):
    """Starts a server in a new folder below `parent`, gives it, stops it and removes the folder."""
    folder = tempfile.mkdtemp(prefix="bench-data-", dir=parent)
    data = f"{folder}/data"
    as_user = {}
    if os.geteuid() == 0:
        # PostgreSQL does not run as root: then it is the package's own user.
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    server = None
    try:
        with open(f"{folder}/postgres.log", "w") as log:
            subprocess.run([f"{PROGRAMS}/initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"],
                           stdout=log, stderr=log, cwd="/", check=True, **as_user)
            port = _free_port()
            words = [f"{PROGRAMS}/postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                     "-c", "unix_socket_directories=", "-c", "max_connections=200"]
            for name, value in settings.items():
                words += ["-c", f"{name}={value}"]
            server = subprocess.Popen(words, stdout=log, stderr=log, cwd="/", preexec_fn=_go_with_parent, **as_user)
        _wait_until_ready(server, port, f"{folder}/postgres.log")
        yield Postgres(port)
    finally:
        if server:
            # Its fast end: sessions are cut.
            server.send_signal(signal.SIGINT)
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(server, port, log):
    for _ in range(1000):
        if subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode == 0:
            return
        if server.poll() is not None:
            break
        time.sleep(0.02)
    with open(log) as file:
        raise RuntimeError("PostgreSQL did not start:\n" + file.read())
