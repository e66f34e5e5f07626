"""One pool of threads for the compiled loops and the large matrix products.

Libraries bring pools of their own, whose threads keep a core busy for a while after they have finished, so that two of
them in turn are slower than one thread. Here BLAS gets one thread, and products are cut into rows for the same few
threads that run the compiled loops. Cuts do not depend on the number of threads, and therefore neither do results.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from emvc._array import FloatArray

_MOST_PARTS = 16
_LEAST_ROWS = 250  # of a part of a product
_SMALL_PRODUCT = 1e7  # multiplications below which threads do not pay
_TASKS_PER_THREAD = 2  # so that a thread that was held up does not hold up all
_ROWS_AT_ONCE = 128  # of `by_rows`

_wanted: ContextVar[int | None] = ContextVar("emvc_threads", default=None)


class _Limits:
    """Numbers of threads of one kind of library, which belong to the process, for blocks that overlap in any way.

    The block that began last and is still running decides. What was set before is noted when the first one begins,
    and set again when the last one has ended, whichever that is.
    """

    def __init__(self, user_api: str) -> None:
        self._user_api = user_api
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[list[int]] = []
        self._before: list[int] = []
        self.threads = 1

    @property
    def active(self) -> bool:
        return bool(self._wanted)

    @contextmanager
    def __call__(self, number: int) -> Iterator[None]:
        request = [number]  # a list is told from others with the same number
        with self._lock:
            if not self._wanted:
                self.threads = _threads_of(self._user_api)
                self._before = [library.get_num_threads() for library in self._libraries()]
            self._wanted.append(request)
            self._set()
        try:
            yield
        finally:
            with self._lock:
                self._wanted = [other for other in self._wanted if other is not request]
                self._set()

    def _libraries(self) -> list[Any]:
        return list(_controller().select(user_api=self._user_api).lib_controllers)

    def _set(self) -> None:
        for library, before in zip(self._libraries(), self._before, strict=True):
            # Newer versions of threadpoolctl obey one thread and ignore the others; here the lock keeps order.
            change = getattr(library, "_real_set_num_threads", library.set_num_threads)
            change(self._wanted[-1][0] if self._wanted else before)


_blas, _openmp = _Limits("blas"), _Limits("openmp")


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which has to be there to be found)

    return ThreadpoolController()


def _threads_of(user_api: str) -> int:
    """Return the number of threads that libraries would use; environment variables and the user may limit it."""
    found = [library["num_threads"] for library in _controller().info() if library["user_api"] == user_api]
    return min(max(found, default=n_cores()), n_cores())


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def n_threads() -> int:
    """Return the number of threads to use: that of `use_threads`, or as many as BLAS would."""
    wanted = _wanted.get()
    if wanted is None:
        wanted = _blas.threads if _blas.active else _threads_of("blas")
    return max(1, wanted)


@contextmanager
def use_threads(number: int | None = None) -> Iterator[None]:
    """Run the block with ``number`` threads (None: as many as BLAS would use) and BLAS with one."""
    if number is None:
        with _blas(1):
            yield
        return
    token = _wanted.set(min(number, n_cores()))
    try:
        with _openmp(number), use_threads():
            yield
    finally:
        _wanted.reset(token)


@contextmanager
def threads_for_blas(size: int, *, least: int) -> Iterator[None]:
    """Give BLAS all threads for one decomposition of a matrix with ``size`` rows, if that is at least ``least``."""
    threads = n_threads()
    if size < least or threads == 1:
        yield
        return
    with _blas(threads):
        yield


@contextmanager
def threads_for_openmp(size: int, *, least: int) -> Iterator[None]:
    """Give OpenMP one thread for work on ``size`` numbers, unless these are at least ``least``.

    Threads of OpenMP wait for each other without giving up their core. On a busy machine a short loop takes many times
    longer with several of them than with one.
    """
    if size >= least:
        yield
        return
    with _openmp(1):
        yield


_compilation = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _executor() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(n_cores(), thread_name_prefix="emvc")
        return _pool


def _forget_pool() -> None:
    """Threads do not survive a fork."""
    global _pool, _pool_lock, _compilation
    _pool, _pool_lock, _compilation = None, threading.Lock(), threading.Lock()
    _blas.reset()
    _openmp.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_ranges(function: Callable[[int, int], Any], n_items: int, *, least: int = 1) -> None:
    """Call ``function(first, last)`` for ranges that make up all items, in several threads.

    Parameters
    ----------
    function : callable
        Must release the GIL to gain anything. Ranges must not matter for what it computes, and empty ones must do
        nothing: ``function(0, 0)`` is called before several threads start, so that it is compiled.
    n_items : int
        Number of items.
    least : int
        Fewest items that are worth a thread.
    """
    threads = min(n_threads(), n_items // least)
    if threads <= 1:
        function(0, n_items)
        return
    with _compilation:  # of one function at a time, and never inside the pool
        function(0, 0)
    n_tasks = min(_TASKS_PER_THREAD * threads, n_items // least)
    _run([partial(function, *pair) for pair in itertools.pairwise(_edges(n_items, n_tasks))], threads)


def by_rows(function: Callable[[slice], None], n_rows: int) -> None:
    """Call ``function`` for slices of a few rows, whose matrices fit into a cache, in several threads.

    Slices do not depend on the number of threads.
    """

    def run(first: int, last: int) -> None:
        for part in range(first, last):
            function(slice(part * _ROWS_AT_ONCE, min((part + 1) * _ROWS_AT_ONCE, n_rows)))

    with use_threads():
        run_ranges(run, -(-n_rows // _ROWS_AT_ONCE))


def _edges(n_items: int, parts: int) -> list[int]:
    """Return where parts of about the same size begin and end."""
    return [n_items * part // parts for part in range(parts + 1)]


def _run(tasks: Sequence[Callable[[], Any]], threads: int) -> None:
    """Run tasks in the given number of threads, of which the calling one is one; raise what they raise."""
    queue = iter(tasks)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                task = next(queue, None)
            if task is None:
                return
            task()

    others = [_executor().submit(work) for _ in range(min(threads, len(tasks)) - 1)]
    try:
        work()
    finally:
        errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error


def matmul(one: FloatArray, other: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return the product of two matrices, computed in several threads if it is large.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = np.ones((300, 400)), np.ones((400, 500))
    >>> matmul(one, other).shape, float(matmul(one, other)[-1, -1])
    ((300, 500), 400.0)
    """
    n_rows, n_columns = one.shape[0], other.shape[1]
    if out is None:
        out = np.empty((n_rows, n_columns), dtype=np.result_type(one, other))
    parts = min(_MOST_PARTS, n_rows // _LEAST_ROWS)
    if parts < 2 or n_rows * one.shape[1] * n_columns < _SMALL_PRODUCT:
        return np.asarray(np.matmul(one, other, out=out))
    edges = _edges(n_rows, parts)

    def multiply(first: int, last: int) -> None:
        for part in range(first, last):
            rows = slice(edges[part], edges[part + 1])
            np.matmul(one[rows], other, out=out[rows])

    with use_threads():
        run_ranges(multiply, parts)
    return out


def gram(matrix: FloatArray) -> FloatArray:
    """Return ``matrix' matrix``, half of it computed and the rest mirrored.

    Examples
    --------
    >>> import numpy as np
    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    n_columns = matrix.shape[1]
    parts = min(_MOST_PARTS, n_columns // _LEAST_ROWS)
    if parts < 2:
        return np.asarray(matrix.T @ matrix)
    out = np.empty((n_columns, n_columns), dtype=matrix.dtype)
    edges = _edges(n_columns, parts)

    def multiply(part: int) -> None:
        own, rest = slice(edges[part], edges[part + 1]), slice(edges[part + 1], None)
        columns = matrix[:, own]
        out[own, own] = columns.T @ columns  # half of it, since NumPy sees what it is
        np.matmul(columns.T, matrix[:, rest], out=out[own, rest])

    def mirror(part: int) -> None:
        own = slice(edges[part], edges[part + 1])
        out[edges[part + 1] :, own] = out[own, edges[part + 1] :].T

    with use_threads():
        for task in (multiply, mirror):
            _run([partial(task, part) for part in range(parts)], n_threads())
    return out
