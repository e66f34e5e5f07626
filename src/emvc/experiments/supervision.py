"""Calls with limits of time and memory: each runs in a process of its own, which is ended when it is over a limit.

A process serves many calls, because starting one takes seconds; only one that was ended is replaced. It has its share
of the cores and ends by itself when the process that started it is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from emvc._parent import Watch, watched

_LOOK_EVERY = 0.2  # seconds between two looks at the memory of a process
_BYTES_PER_MB = 1e6


@dataclass(frozen=True)
class Limits:
    """Of one call.

    Attributes
    ----------
    seconds : float
        Time.
    memory : float
        Memory of the process in megabytes. Enforced where the system tells the memory of a process in ``/proc``.
    """

    seconds: float
    memory: float


class Supervisors:
    """A few processes, each of which runs one call at a time.

    Parameters
    ----------
    limits : Limits
        Of every call.
    number : int
        How many calls there are at a time, among which the cores are divided.
    """

    def __init__(self, limits: Limits, number: int) -> None:
        from emvc._threads import n_cores

        self.limits = limits
        self._threads = max(1, n_cores() // max(number, 1))
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()

    def call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Return what the function returns, or (outcome, reason) if it was ended."""
        try:
            child = self._idle.get_nowait()
        except queue.Empty:
            child = _Child(self._threads)
        try:
            answer = child.call(function, argument, self.limits)
        except BaseException:
            child.end()
            raise
        if child.is_alive():
            self._idle.put(child)
        return answer


class _Child:
    """A process that waits for calls."""

    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit the threads of BLAS in an unknown state
        self._pipe, theirs = context.Pipe()
        arguments = (Watch(), _serve, theirs, threads)
        self._process = context.Process(target=watched, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # ready: imports do not count

    def is_alive(self) -> bool:
        return not self._pipe.closed

    def end(self) -> None:
        """End the process, whatever it does."""
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def call(self, function: Callable[[Any], Any], argument: Any, limits: Limits) -> Any:
        self._pipe.send((function, argument))
        deadline = time.monotonic() + limits.seconds
        try:
            while not self._pipe.poll(_LOOK_EVERY):
                if time.monotonic() > deadline:
                    return self._stop("out of time", f"ended after {limits.seconds:g} s")
                if _memory_of(self._process.pid) > limits.memory:
                    return self._stop("out of memory", f"ended at more than {limits.memory:.0f} MB")
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            return self._stop("out of memory" if code == -9 else "failed", f"its process died with exit code {code}")

    def _stop(self, outcome: str, reason: str) -> tuple[str, str]:
        self.end()
        return outcome, reason


def _serve(pipe: Any, threads: int) -> None:
    """Run calls until there are none."""
    import sklearn.cluster  # noqa: F401  (loads the libraries whose threads are limited)
    from threadpoolctl import threadpool_limits

    import emvc.estimators  # noqa: F401

    threadpool_limits(threads)
    pipe.send("ready")
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            function, argument = pipe.recv()
            pipe.send(function(argument))


def _memory_of(pid: int | None) -> float:
    """Return the memory of a process in megabytes, 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _BYTES_PER_MB


def forget_peak() -> None:
    """Begin to measure the peak memory of this process anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float | None:
    """Return the peak memory of this process in megabytes since `forget_peak`, or None where the system cannot tell.

    That of `resource` begins, on Linux, with the memory of the process that started this one: a small fit that a large
    process has started would seem to need nothing.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) * 1024 / _BYTES_PER_MB if lines else None
