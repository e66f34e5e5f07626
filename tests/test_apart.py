"""The process that reads: a crash, a hang or a flood there is one line here, and it never outlives its parent."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from emvc.files import _apart, read_views

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


class When:
    """Options that do something when the other process receives them, as a damaged file would."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as stream:
        stream["x"] = np.arange(12.0).reshape(6, 2)
    return path


def test_one_process_serves_many_files(file):
    read_views([file])
    first = _apart._child
    for _ in range(3):
        values = read_views([file]).views["a"]
    assert _apart._child is first
    values[0, 0] = 5.0  # arrays are the caller's own


@posix
def test_a_crash_is_an_error_about_the_file(file):
    with pytest.raises(ValueError, match=r"a\.h5 cannot be read: its reader crashed \(SIGABRT\)"):
        _apart.read_apart(str(file), When(os.abort))
    assert read_views([file]).views["a"].shape == (6, 2)


@posix
def test_the_file_after_the_one_that_did_the_damage_is_read(file):
    read_views([file])
    os.kill(_apart._child._process.pid, signal.SIGKILL)
    assert read_views([file]).views["a"].shape == (6, 2)


def test_a_hang_ends(file, monkeypatch):
    read_views([file])
    monkeypatch.setattr(_apart, "_SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"a\.h5 cannot be read: its reader took more than"):
        _apart.read_apart(str(file), When(time.sleep, 60))
    assert time.monotonic() - start < 5


class OddError(OSError):
    """As libraries have them: it can be sent, but not received."""

    def __init__(self, one, other):
        super().__init__(2, f"{one} {other}", "a.h5")


def test_odd_errors_of_libraries_arrive(file):
    error = _apart.plain_error(OddError("x", "y"), file)
    assert type(pickle.loads(pickle.dumps(error))) is ValueError
    assert "a.h5" in str(error)


def test_an_answer_that_cannot_be_understood_is_no_reason_to_wait(tmp_path):
    """The error of the library for a group of no kind could not be received."""
    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3).create_array("x", shape=(4, 2), dtype="f8")
    description = json.loads((tmp_path / "a.zarr" / "zarr.json").read_text())
    (tmp_path / "a.zarr" / "zarr.json").write_text(json.dumps(description | {"node_type": "tuple"}))
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"a\.zarr"):
        read_views([f"{tmp_path}/a.zarr"])
    assert time.monotonic() - start < 10


def test_what_libraries_print_is_no_answer(file, capfd):
    found = _apart.read_apart(str(file), When(os.write, 1, b"noise" * 100))
    assert found[0].values.shape == (6, 2)
    assert read_views([file]).views["a"].shape == (6, 2)
    assert "noise" not in capfd.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_memory_is_limited(tmp_path):
    """A file that is honest about its size but larger than what this process may have."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as stream:
        data = stream.create_dataset("x", (40_000, 1000), "f4", chunks=(1000, 1000), compression="gzip")
        data[:, :100] = np.random.default_rng(0).integers(0, 2, (40_000, 100))
    code = f"""
import resource
from emvc.files import read_views
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
try:
    read_views([{str(path)!r}])
except MemoryError as error:
    print(error)
"""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert "a.h5" in done.stdout
    assert len(done.stdout.splitlines()) == 1


SLOW = """
import sys, time
sys.path.insert(0, {tests!r})
from emvc.files import _apart
from test_apart import When
print("ready", flush=True)
_apart.read_apart({path!r}, When(time.sleep, 60))
"""


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_parent(number, file):
    script = SLOW.format(tests=str(Path(__file__).parent), path=str(file))
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with parent:
        assert parent.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 30
        while not (children := children_of(parent.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.5)  # it is asleep by now, in the middle of a call
        start = time.monotonic()
        os.killpg(parent.pid, number) if number == signal.SIGINT else parent.send_signal(number)
        parent.wait(timeout=10)
        while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() - start < 10:
            time.sleep(0.05)
    assert len(children) == 1
    assert time.monotonic() - start < 5


def children_of(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], check=False, capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def test_errors_name_the_file_and_can_be_sent():
    for error in (ValueError("a.h5 is odd"), MemoryError(), RuntimeError("x\ny"), KeyError("k")):
        plain = pickle.loads(pickle.dumps(_apart.plain_error(error, Path("folder/a.h5"))))
        assert "a.h5" in str(plain)
        assert "\n" not in str(plain)
