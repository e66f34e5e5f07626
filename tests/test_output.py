"""Output appears whole or not at all, nothing of others is lost, and killed runs leave nothing behind for long."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from emvc._output import WORK, locked, new_results, write_file
from emvc.experiments import runner

KNOWN = ("a.txt", "b.txt", "c.txt")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and file modes are those of POSIX")


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def put(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)


def produce(target, *, force=False, meanwhile=lambda: None):
    with new_results(target, KNOWN, force=force) as folder:
        put(folder, a="new", b="new")
        meanwhile()


def test_results_take_their_places_together(tmp_path):
    target = tmp_path / "deep" / "out"
    with new_results(target, KNOWN, force=False) as folder:
        put(folder, a="new")
        assert names(target) == [WORK]
    assert names(target) == ["a.txt"]
    assert names(tmp_path) == ["deep"]


def test_a_failure_leaves_nothing(tmp_path):
    def fail():
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        produce(tmp_path / "out", meanwhile=fail)
    assert names(tmp_path) == []


def test_an_earlier_result_is_replaced_as_a_whole(tmp_path):
    put(tmp_path / "out", a="old", c="old")
    with pytest.raises(FileExistsError, match=r"out exists and is not empty; .* --force"):
        produce(tmp_path / "out")
    produce(tmp_path / "out", force=True)
    assert names(tmp_path / "out") == ["a.txt", "b.txt"]  # c.txt belonged to the earlier result
    assert (tmp_path / "out" / "a.txt").read_text() == "new"


@pytest.mark.parametrize(("force", "name"), [(False, "a.txt"), (False, "diary.txt"), (True, "diary.txt")])
def test_a_folder_that_fills_meanwhile_is_left_alone(force, name, tmp_path):
    target = tmp_path / "out"
    with pytest.raises(FileExistsError, match="out"):
        produce(target, force=force, meanwhile=lambda: (target / name).write_text("mine"))
    assert names(target) == [name]
    assert (target / name).read_text() == "mine"


def test_files_of_others_are_not_replaced_by_force(tmp_path):
    put(tmp_path / "out", a="old", diary="mine")
    with pytest.raises(FileExistsError, match="holds other files"):
        produce(tmp_path / "out", force=True)
    (tmp_path / "out" / "diary.txt").unlink()
    (tmp_path / "out" / "b.txt").mkdir()
    with pytest.raises(FileExistsError, match="holds other files"):
        produce(tmp_path / "out", force=True)
    assert (tmp_path / "out" / "a.txt").read_text() == "old"


def test_a_second_run_is_refused(tmp_path):
    with locked(tmp_path / "out"), pytest.raises(BlockingIOError, match=r"Another run is writing to .*out"):
        produce(tmp_path / "out", force=True)
    produce(tmp_path / "out")
    assert names(tmp_path / "out") == ["a.txt", "b.txt"]


def test_many_runs_one_after_the_other(tmp_path):
    """Each thread tries until it is its turn; no lock is lost and none is held twice."""
    held, most, done = [], [], []
    (tmp_path / "out").mkdir()

    def run(number):
        while True:
            try:
                with locked(tmp_path / "out") as work:
                    held.append(number)
                    most.append(len(held))
                    (work / "x").write_text("x")
                    time.sleep(0.002)
                    held.remove(number)
                    done.append(number)
                    return
            except BlockingIOError:
                time.sleep(0.001)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sorted(done), max(most)) == (list(range(12)), 1)
    assert names(tmp_path / "out") == []


def test_two_writers_of_one_file(tmp_path):
    path, texts = tmp_path / "a.txt", [bytes([65 + k]) * 100_000 for k in range(8)]
    threads = [threading.Thread(target=write_file, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in texts
    assert names(tmp_path) == ["a.txt"]


@posix
def test_the_umask_is_respected(tmp_path):
    before = os.umask(0o077)
    try:
        produce(tmp_path / "out")
        write_file(tmp_path / "a.txt", b"private")
    finally:
        os.umask(before)
    for path in (tmp_path / "a.txt", tmp_path / "out", tmp_path / "out" / "a.txt"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_success_is_said_after_the_disk_has_it(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    produce(tmp_path / "out")
    for path in (tmp_path / "out", tmp_path / "out" / "a.txt", tmp_path / "out" / "b.txt"):
        assert path.stat().st_ino in synced

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        produce(tmp_path / "other")
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "a.txt", b"x")
    assert names(tmp_path) == ["out"]


@posix
def test_a_link_at_the_place_of_the_temporary_file_is_not_followed(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / ".a.txt.emvc-part").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(OSError, match=r"\.a\.txt\.emvc-part"):
        write_file(tmp_path / "a.txt", b"x")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def killed(script, tmp_path):
    """Run Python code in a process that ends itself by SIGKILL."""
    code = "import os, signal\nfrom pathlib import Path\nfrom emvc import _output\n"
    code += "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n" + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


RUN = """
known = ("a.txt", "b.txt", "c.txt")
calls = []
replace = os.replace
def replaced(source, target):
    calls.append(source)
    if len(calls) == {moment}: die()
    replace(source, target)
os.replace = replaced
with _output.new_results("out", known, force=True) as folder:
    (folder / "a.txt").write_text("new")
    if {moment} == 0: die()
    (folder / "b.txt").write_text("new")
"""


@posix
@pytest.mark.parametrize("moment", range(6))
def test_nothing_is_lost_when_a_replacement_is_killed(moment, tmp_path):
    """At any moment either result is there for the next run, as a whole; the one that was killed is completed."""
    put(tmp_path / "out", a="old", b="old", c="old")
    killed(RUN.format(moment=moment), tmp_path)
    before = names(tmp_path / "out")
    assert WORK in before
    with locked(tmp_path / "out"):
        pass
    found = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert found == (dict.fromkeys(KNOWN, "old") if moment == 0 else {"a.txt": "new", "b.txt": "new"})


@posix
def test_a_killed_run_into_a_new_folder_is_no_obstacle(tmp_path):
    killed("with _output.new_results('out', ('a.txt',), force=False): die()", tmp_path)
    assert names(tmp_path / "out") == [WORK]
    produce(tmp_path / "out")
    assert names(tmp_path / "out") == ["a.txt", "b.txt"]


@posix
def test_what_a_killed_save_leaves_is_used_by_the_next(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    killed("_output.write_file('a.txt', lambda stream: (stream.write(b'x' * 10**6), stream.flush(), die()))", tmp_path)
    assert names(tmp_path) == [".a.txt.emvc-part", "a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
    write_file(tmp_path / "a.txt", b"new")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "new"


@posix
def test_an_output_folder_may_be_a_mount_point(tmp_path):
    """In a name space of its own: the folder cannot be renamed, and the one above it cannot be written."""
    (tmp_path / "out").mkdir()
    script = f"""
        mount --bind '{tmp_path}' '{tmp_path}' && cd '{tmp_path}' && mount -t tmpfs none out &&
        mount -o remount,bind,ro '{tmp_path}' && ! touch x 2> /dev/null &&
        {sys.executable} -c "from test_output import produce; produce('out'); produce('out', force=True)" &&
        ls -A out"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    trial = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True)
    if trial.returncode:
        pytest.skip("name spaces are not allowed here")
    command = ["unshare", "-rm", "sh", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["a.txt", "b.txt"]


def test_records_that_cannot_be_written_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"records\.sqlite cannot be written: unable to open database file"):
        runner.run_cells([], tmp_path / "nowhere" / "records.sqlite")

    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    class Cell:
        key = group = "a"

        def describe(self):
            return {"dataset": "d", "error": "clean", "method": "m", "seed": 0}

        def run(self, memory=None):
            del memory
            return {}

    monkeypatch.setattr(runner, "_write", fail)
    with pytest.raises(OSError, match=r"records\.sqlite cannot be written: database or disk is full") as refusal:
        runner.run_cells([Cell()], tmp_path / "records.sqlite")
    assert "\n" not in str(refusal.value)


FULL = """
import resource, sys
from emvc.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
main(sys.argv[1:])
"""


@posix
@pytest.mark.parametrize("command", ["reproduce", "board"])
def test_a_full_disk_is_one_line(command, tmp_path):
    """Files cannot grow beyond 20 kB, which the records need."""
    out = tmp_path / "out"
    if command == "board":
        import numpy as np

        views = np.random.default_rng(0).standard_normal((40, 3))
        np.savez(tmp_path / "d.npz", x0=views, y=np.repeat([0, 1], 20))
        arguments = [
            "board",
            str(tmp_path / "d.npz"),
            "--methods",
            "k-means on joined features",
            "--seeds",
            "1",
            "--jobs",
            "1",
        ]
    else:
        arguments = ["reproduce", "synthetic", "--quick", "--jobs", "1"]
    arguments += ["--output", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *arguments], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(told) == 1
    assert "cannot be written" in told[0] or "File too large" in told[0]


LOKY = """
import os, sys, time
from emvc.experiments import runner

class Cell:
    def __init__(self, k): self.key = self.group = str(k)
    def describe(self): return {"dataset": "d", "error": "clean", "method": "m", "seed": 0}
    def run(self, memory=None):
        open(f"pid-{os.getpid()}", "w").close()
        time.sleep(60)
        return {}

if __name__ == "__main__":
    runner.run_cells([Cell(k) for k in range(2)], "records.sqlite", n_jobs=2)
"""


@posix
def test_workers_end_with_a_killed_parent(tmp_path):
    (tmp_path / "work.py").write_text(LOKY)
    process = subprocess.Popen([sys.executable, "work.py"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("pid-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(path.name[4:]) for path in tmp_path.glob("pid-*")]
    assert len(workers) == 2
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, workers))


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_half_a_result_is_not_put_in_place(tmp_path):
    """What is complete has a list of its files."""
    (tmp_path / "out" / WORK / "complete").mkdir(parents=True)
    (tmp_path / "out" / WORK / "complete" / "a.txt").write_text("half")
    produce(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "new"
    assert names(tmp_path / "out") == ["a.txt", "b.txt"]
