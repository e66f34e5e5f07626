"""Readers that damaged files can crash or hang run in a process of their own, with limits of time and memory.

The process is started when it is first needed and serves file after file. If it crashes or takes too long, that is an
error about this file. It ends with the process that started it. What it sends back is pickled, as between any two
processes of one program: it runs as the same user and is no sandbox against files that take control of a library.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import math
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from emvc._memory import available_memory
from emvc.files._gate import MOST_PACKED

KINDS = (".mat", ".h5", ".hdf5", ".h5ad", ".h5mu", ".zarr", ".parquet")
"""Formats that are read in this way."""

_SECONDS = 10.0  # for any file
_SLOWEST = 5e5  # bytes read in a second
_START = 120.0  # seconds for the process to come up, and for a library to be loaded
_LIBRARIES = {
    ".mat": "scipy.io",
    **dict.fromkeys((".h5", ".hdf5"), "h5py"),
    ".h5ad": "anndata",
    ".h5mu": "mudata",
    ".zarr": "zarr",
    ".parquet": "pyarrow.parquet",
}
_LAST_WORDS = 5.0  # seconds for a process to end that says nothing any more
_SLACK = 2**28  # bytes that libraries may need beside the data
_LEAST_ROOM = 2**30  # bytes for any file, and libraries that are loaded for it
_GROWTH = 16  # bytes for each that a file claims, while it is read
_ARROW_ROOM = 2**32  # bytes of addresses that Arrow sets aside without using them
_MODEST = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}  # addresses are what is limited
_NUMBER = struct.Struct("<Q")
_CODE = "from emvc.files._apart import serve; serve()"
_LONGEST = 300  # characters of a message of a library

_serving = False


def read_apart(address: str, options: Any) -> Any:
    """Return what `emvc.files._read` returns for a file, read by the other process.

    Raises
    ------
    ValueError
        If that process crashed or took too long; the message names the file.
    Exception
        What the reader raised.
    """
    if _serving:
        return _answer(("read", address, options))
    with _lock:
        return _ask(("read", address, options), Path(address.partition("::")[0]))


def check_apart(path: str) -> None:
    """Have the gate look at a file that will stay on disk."""
    if _serving:  # which has been done
        return
    with _lock:
        _ask(("check", path, None), Path(path))


def _ask(request: tuple[str, str, Any], path: Path) -> Any:
    global _child  # noqa: PLW0603
    seconds = _SECONDS + _size(path) / _SLOWEST
    for _ in range(2):
        if _child is None or not _child.is_usable():
            _child = _Child()
        fresh = _child.served == 0
        try:
            done, answer = _child.ask(request, seconds)
        except _CrashedError as crash:
            _child.end()
            _child = None
            if fresh or "took" in str(crash):
                busy = ", or this machine is very busy" if "took" in str(crash) else ""
                raise ValueError(f"{path.name} cannot be read: its reader {crash}. It is damaged{busy}.") from None
            continue  # a file before it may have done the damage
        except BaseException as error:
            _child.end()
            _child = None
            raise (plain_error(error, path) if isinstance(error, MemoryError) else error) from None
        if done:
            return answer
        raise answer
    raise AssertionError  # a fresh process answers, or is at fault


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        return path.stat().st_size
    return 0


def _kind(address: str) -> str:
    return Path(address.partition("::")[0]).suffix.lower()


class _CrashedError(Exception):
    """The process is gone, or has to go."""


class _Child:
    """The process that reads, seen from outside."""

    def __init__(self) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | alone | _MODEST | {"PYTHONPATH": paths, "EMVC_PARENT": str(os.getpid())},
        )
        self._owner = os.getpid()
        self.served = 0
        try:
            self._wait(_START)
        except BaseException:
            self.end()
            raise

    def is_usable(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    def ask(self, request: Any, seconds: float) -> tuple[bool, Any]:
        assert self._process.stdin is not None
        try:
            for part, limit in ((_kind(request[1]), _START), (request, seconds)):
                text = pickle.dumps(part)
                self._process.stdin.write(_NUMBER.pack(len(text)) + text)
                self._process.stdin.flush()
                answer = self._wait(limit)
        except OSError:
            raise _CrashedError("is gone") from None
        self.served += 1
        done, found = answer
        return bool(done), found

    def _wait(self, seconds: float) -> Any:
        """Return the next answer; it is read by a thread, so that Ctrl-C works and time can be limited."""
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def listen() -> None:
            try:
                assert self._process.stdout is not None
                found.put((True, _receive(self._process.stdout)))
            except Exception as error:
                found.put((False, error))

        threading.Thread(target=listen, daemon=True).start()
        try:
            done, answer = found.get(timeout=seconds)
        except queue.Empty:
            raise _CrashedError(f"took more than {seconds:.0f} s") from None
        if done:
            return answer
        if not isinstance(answer, EOFError):  # an answer that cannot be understood, or is too large
            raise answer if isinstance(answer, MemoryError) else _CrashedError(f"sent nonsense ({answer})")
        try:
            self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            raise _CrashedError("does not answer any more") from None
        code = self._process.returncode
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise _CrashedError(f"crashed ({name})")

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


_lock = threading.Lock()
_child: _Child | None = None


@atexit.register
def _end() -> None:
    if _child is not None:
        _child.end()


def _forget() -> None:
    """Leave the process to the parent, after a fork."""
    global _lock, _child
    _lock, _child = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _send(stream: IO[bytes], answer: Any) -> None:
    """Send an answer; arrays are not copied into the pickle, but follow it."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    stream.write(b"".join(_NUMBER.pack(n) for n in (len(text), len(raw), *(part.nbytes for part in raw))))
    stream.write(text)
    for part in raw:
        stream.write(part)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    length, count = (_NUMBER.unpack(_exactly(stream, 8))[0] for _ in range(2))
    sizes = [_NUMBER.unpack(_exactly(stream, 8))[0] for _ in range(count)]
    available = available_memory()
    if available is not None and sum(sizes) + length > available:
        raise MemoryError(f"About {(sum(sizes) + length) / 2**30:.1f} GiB were read, more than are available.")
    text = _exactly(stream, length)
    return pickle.loads(text, buffers=[_exactly(stream, size) for size in sizes])


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    view, done = memoryview(content), 0
    while done < size:
        read = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not read:
            raise EOFError
        done += read
    return content


def serve() -> None:
    """Read files for the process that started this one, until there are no more."""
    global _serving  # noqa: PLW0603
    _serving = True
    _end_with_the_parent(int(os.environ.pop("EMVC_PARENT")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process, which ends this one
    answers = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nothing:  # what libraries print is no answer
        os.dup2(nothing.fileno(), 1)
    import numpy as np  # noqa: F401
    import scipy.sparse  # noqa: F401

    import emvc.files  # noqa: F401

    _send(answers, "ready")
    for request in _requests(sys.stdin.buffer):
        if isinstance(request, str):  # a format, whose library takes time that is not the file's
            with contextlib.suppress(ImportError):
                importlib.import_module(_LIBRARIES[request])
            _send(answers, "loaded")
            continue
        try:
            answer = (True, _answer(request))
        except Exception as error:
            answer = (False, plain_error(error, Path(request[1].partition("::")[0])))
        _send(answers, answer)
        del answer


def _requests(stream: IO[bytes]) -> Iterator[Any]:
    while len(head := stream.read(8)) == 8:
        yield pickle.loads(stream.read(_NUMBER.unpack(head)[0]))


def _answer(request: tuple[str, str, Any]) -> Any:
    from emvc.files import _read

    task, address, options = request
    path = Path(address.partition("::")[0])
    with _limited(0.0):
        claimed = _claimed(path, whole=task == "read")
    if task == "check":
        return None
    with _limited(claimed):
        return _read._read(address, options)


def _claimed(path: Path, *, whole: bool) -> float:
    """Return how many bytes of numbers a file claims to hold, after looking at it."""
    from emvc.files._gate import check_parquet_sizes, check_zarr
    from emvc.files._gate_hdf5 import check_hdf5

    kind = path.suffix.lower()
    if kind == ".parquet":
        return check_parquet_sizes(path) + _ARROW_ROOM / _GROWTH
    if kind == ".zarr":
        return check_zarr(path, math.inf)
    if kind != ".mat" or _is_hdf5(path):
        return check_hdf5(path, whole=whole)
    return MOST_PACKED * path.stat().st_size


def _is_hdf5(path: Path) -> bool:
    try:
        import h5py
    except ImportError:
        return False
    return bool(h5py.is_hdf5(path))


def plain_error(error: Exception, path: Path) -> Exception:
    """Return an error in one line that names the file, and that can be sent to another process."""
    text = " ".join((str(error) or type(error).__name__).split())
    if isinstance(error, MemoryError):
        return error if path.name in text else MemoryError(f"{path.name} needs more memory than is available.")
    module = type(error).__module__
    own, plain = module.startswith("emvc."), module == "builtins"  # others may not survive being sent
    known = isinstance(error, ValueError | TypeError)
    found = isinstance(error, OSError) and error.filename is not None  # a file that is not there, or no right to it
    if own or (plain and isinstance(error, ImportError)):
        return error
    if plain and (known or found) and path.name in text and "\n" not in str(error):
        return error
    # A library may raise anything while it reads a damaged file.
    told = text.replace(str(path), path.name)[:_LONGEST]
    return ValueError(told if path.name in told else f"{path.name} cannot be read ({told.rstrip('.')}).")


@contextlib.contextmanager
def _limited(claimed: float) -> Iterator[None]:
    """Give this process no more memory than there is, nor more than a file explains that claims so many bytes."""
    try:
        import resource
    except ImportError:  # not on every system
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    available = available_memory()
    used = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else None
    if available is None or used is None:
        yield
        return
    most = used * os.sysconf("SC_PAGE_SIZE") + int(min(available + _SLACK, _LEAST_ROOM + _GROWTH * claimed))
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _end_with_the_parent(parent: int) -> None:
    """Have the system end this process with the one that started it, whatever it does then."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
