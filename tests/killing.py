"""Ends runs at random moments and looks at what is left: `make kills`, and a few in the suite.

Each run writes over an earlier result. After it was ended by SIGKILL, SIGTERM or SIGINT, the result must be the earlier
one or the new one, never a mixture and never a half; the next run must tidy up, and leave nothing that is not a result.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WORKERS_END = 5.0  # seconds
MAIN = "import sys; from emvc.cli import main; main(sys.argv[1:])"
RESULT = ["labels.csv", "model.emvc", "report.html"]

SAVE = """
import sys, numpy as np, emvc
from emvc.persistence import save
model = emvc.load(sys.argv[1])
model.set_params(verbose=int(sys.argv[3]))
for _ in range(int(sys.argv[4])):
    save(model, sys.argv[2])
"""

DOWNLOAD = """
import sys
from emvc.datasets import _registry, real
_registry._ADDRESS = sys.argv[1] + "/{path}"
real.fetch("nutrimouse", sys.argv[2])
"""


class Task:
    """Something that writes, its place, and how to tell whether a result is whole."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.prepare()

    def prepare(self):
        """Make what the runs need, and the earlier result."""

    def run(self, version, **options):
        """Start a run that writes one of two versions."""
        return subprocess.Popen(
            [sys.executable, *map(str, self.command(version))], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
        )  # fmt: skip

    def finish(self, version):
        assert self.run(version).wait() == 0, f"{type(self).__name__}: the next run fails"

    def state(self):
        """Return what a reader would see: names and content of all that is not hidden."""
        files = sorted(path for path in self.place.rglob("*") if path.is_file() and not self.hidden(path))
        return {str(path.relative_to(self.place)): self.digest(path) for path in files}

    def hidden(self, path):
        return any(part.startswith(".") for part in path.relative_to(self.place).parts)

    def leftovers(self):
        """Return all that is hidden."""
        found = [path for path in self.folder.rglob("*") if path.name.startswith((".", "tmp"))]
        return [str(path.relative_to(self.folder)) for path in found]

    def digest(self, path):
        content = path.read_bytes()
        if path.suffix == ".html":
            content = content[: content.index(b"Results and versions")]  # how long it took, and the date, are after it
        return hashlib.sha256(content).hexdigest()

    def whole(self, state, versions):
        return state in versions


class Cluster(Task):
    """`emvc cluster --force` over an earlier result; the two versions have different numbers of clusters."""

    def prepare(self):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(3), 20)
        for name in "ab":
            view = 5 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((60, 4))
            np.savetxt(self.folder / f"{name}.csv", view, delimiter=",")
        self.place = self.folder / "out"

    def command(self, version):
        return [
            "-c", MAIN, "cluster", self.folder / "a.csv", self.folder / "b.csv", "-k", 2 + version, "-o", self.place,
            "--jobs", 1, "--no-assess", "--force", "--quiet",
        ]  # fmt: skip


class Save(Task):
    """Saving a model over another one, many times."""

    def prepare(self):
        from emvc import EMVC

        rng = np.random.default_rng(0)
        self.place = self.folder / "models"
        self.place.mkdir()
        EMVC(3, random_state=0, n_jobs=1).fit(rng.standard_normal((150, 4))).save(self.folder / "source.emvc")

    def command(self, version, times=60):
        return ["-c", SAVE, self.folder / "source.emvc", self.place / "m.emvc", version, times]


class Download(Task):
    """Fetching a data set from a slow server, over nothing."""

    def prepare(self):
        source = Path(os.environ["EMVC_DATA"]) / "nutrimouse"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                content = (source / self.path.rsplit("/", 1)[1]).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                for start in range(0, len(content), 2000):
                    time.sleep(0.02)
                    self.wfile.write(content[start : start + 2000])

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:  # the other side was killed
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = self.folder / "cache"

    def run(self, version, **options):
        shutil.rmtree(self.place, ignore_errors=True) if not options.pop("keep", False) else None
        environment = {name: value for name, value in os.environ.items() if name != "EMVC_DATA"}
        return super().run(version, env=environment | {"XDG_CACHE_HOME": str(self.folder)}, **options)

    def finish(self, version):
        assert self.run(version, keep=True).wait() == 0

    def command(self, version):
        del version
        return ["-c", DOWNLOAD, f"http://127.0.0.1:{self.server.server_port}", self.place]

    def whole(self, state, versions):
        """Each file is there as a whole, or not yet."""
        return all(versions[0].get(name) == content for name, content in state.items())


class Records(Task):
    """Runs that add records: none that was written is lost."""

    def state(self):
        path = self.place / "records.sqlite"
        if not path.exists():
            return {}
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                return {}
            rows = connection.execute("SELECT key, outcome, accuracy FROM records").fetchall()
        assert all(outcome == "done" for _, outcome, _ in rows), rows
        for path in self.place.iterdir():
            assert path.stat().st_size or path.suffix in ("", ".sqlite-journal"), f"{path.name} is empty"
        return {key: accuracy for key, _, accuracy in rows}

    def leftovers(self):
        return super().leftovers() + [path.name for path in self.place.glob("*-journal")]

    def whole(self, state, versions):
        return state.items() <= versions[0].items()

    def run(self, version, **options):
        if self.place.exists() and not options.pop("keep", False):
            shutil.rmtree(self.place)
        options.pop("keep", None)
        return super().run(version, **options)

    def finish(self, version):
        assert self.run(version, keep=True).wait() == 0, f"{type(self).__name__}: the next run fails"


class Board(Records):
    """`emvc board` on a small data set."""

    def prepare(self):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(3), 20)
        views = [5 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((60, 4)) for _ in range(2)]
        np.savez(self.folder / "set.npz", x0=views[0], x1=views[1], y=labels)
        self.place = self.folder / "board"

    def command(self, version):
        del version
        return [
            "-c", MAIN, "board", self.folder / "set.npz", "-o", self.place, "--seeds", 3, "--jobs", 2,
            "--methods", "k-means on joined features,k-means on one view",
        ]  # fmt: skip


class Reproduce(Records):
    """`emvc reproduce --quick` of the synthetic table."""

    def prepare(self):
        self.place = self.folder / "reproduction"

    def command(self, version):
        del version
        return ["-c", MAIN, "reproduce", "synthetic", "--quick", "--protocol", "honest", "--jobs", 2, "-o", self.place]


TASKS = {"cluster": Cluster, "save": Save, "download": Download, "board": Board, "reproduce": Reproduce}


def members_of(group):
    """Return the processes of a session, as far as they run."""
    found = subprocess.run(["ps", "-eo", "pid=,sess=,stat="], check=False, capture_output=True, text=True).stdout
    rows = [line.split() for line in found.splitlines()]
    return [int(pid) for pid, session, status in rows if session == str(group) and status[0] not in "ZX"]


def _command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]


def kill(number, *, names=tuple(TASKS), seed=0, report=print):
    """Start and end runs; return how often the earlier, the new and part of the result was there.

    Raises
    ------
    AssertionError
        If anything is lost, half written or left behind.
    """
    rng = np.random.default_rng(seed)
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        tasks = {}
        for i in range(number):
            name = names[i % len(names)]
            if name not in tasks:
                (Path(folder) / name).mkdir()
                tasks[name] = _measured(TASKS[name](Path(folder) / name))
            task, versions, seconds = tasks[name]
            sent = SIGNALS[(i // len(names)) % len(SIGNALS)]
            before = task.state()
            process = task.run(i % 2)
            time.sleep(float(rng.uniform(0.2 * seconds, 1.05 * seconds)))
            process.send_signal(sent)
            process.wait()
            ended = time.monotonic()
            while (left := members_of(process.pid)) and time.monotonic() < ended + WORKERS_END:
                time.sleep(0.1)
            assert not left, f"{name}, {sent.name}: {[_command_of(pid) for pid in left]} outlive their parent"
            state = task.state()
            whole = task.whole(state, versions)
            assert whole, f"{name}, {sent.name}: {sorted(state)} is neither of both results"
            task.finish(i % 2)
            after = task.state()
            assert after == versions[i % 2], f"{name}, {sent.name}: the next run gives something else"
            assert task.leftovers() == [], f"{name}, {sent.name}: {task.leftovers()} is left"
            kind = "earlier" if state == before else "new" if state == versions[i % 2] else "part"
            counts[kind] = counts.get(kind, 0) + 1
            report(f"{i + 1}: {name}, {sent.name}, {kind} result")
    return counts


def _measured(task):
    """Return a task with both of its results, and the time of a run; the second is there at the end."""
    states, seconds = [], 0.0
    for version in range(2):
        start = time.monotonic()
        task.finish(version)
        seconds = time.monotonic() - start
        states.append(task.state())
    assert states[0]
    return task, states, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    options = parser.parse_args()
    counts = kill(options.number, names=tuple(options.tasks), seed=options.seed)
    print(f"{options.number} runs were ended: {counts}; nothing was lost, half written or left behind")


if __name__ == "__main__":
    main()
