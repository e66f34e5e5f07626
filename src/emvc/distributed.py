"""Blocks of rows on a Dask cluster: the same fit, with the data where the workers are.

Views are Dask arrays cut along the samples. One task turns the chunks of a block into its chains; from then on a block
is a future that only changes hands between tasks on the same worker, and what travels are messages and sums whose size
does not depend on the number of samples (`emvc.method.blocks`). Results come back as Dask arrays.

**Lost workers.** A block is the end of a line of tasks that starts with reading its chunks, and messages are tasks of
their own, so Dask rebuilds the blocks of a lost worker on the others and the fit ends with the same labels. Tasks set
fields of a block from what does not change, so that it does no harm if one is done twice. An error or an interruption
releases everything on the workers.

Without a running ``distributed.Client`` the same tasks run in this process, one block after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from emvc._array import IntArray
from emvc._validation import Views, check_rows, is_dask
from emvc.method.blocks import Blocks, Landmarks, LocalBlocks, Task, make_block

_TIMEOUT = "10s"
_LARGE = 2**28  # bytes


def import_dask() -> Any:
    """Return ``dask`` with ``dask.array``.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        import dask
        import dask.array
    except ImportError as error:
        raise ImportError("Dask arrays need the extra 'dask': pip install 'emvc[dask]'.") from error
    return dask


def current_client() -> Any:
    """Return the running ``distributed.Client``, or None.

    One that has found no scheduler stays the default until it is collected, and would wait for ever.
    """
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        client = get_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to a scheduler, and let go of it at the end.

    Raises
    ------
    ConnectionError
        If it does not answer.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("A Dask cluster needs the extra 'dask': pip install 'emvc[dask]'.") from error
    # A client that finds nobody leaves itself as the default; the setting around it goes back in any case.
    with import_dask().config.set(scheduler=None):
        try:
            client = Client(address, timeout=_TIMEOUT)
        except (OSError, ValueError) as error:
            with suppress(ValueError, TimeoutError):  # where none is left, or it does not close in time
                left = Client.current()
                if left.status == "connecting":
                    left.close(timeout=2)
            raise ConnectionError(f"No Dask scheduler answers at {address!r}.") from error
        with client:
            yield client


def gather(model: Any) -> None:
    """Bring the attributes of a fitted model that are Dask arrays into memory; a large consensus is dropped.

    It has one number per sample and landmark, which may not fit here.
    """
    if model.consensus_.nbytes > _LARGE:
        del model.consensus_
    there = {name: value for name, value in vars(model).items() if is_dask(value)}
    for name, value in zip(there, import_dask().compute(*there.values()), strict=True):
        setattr(model, name, value)


class DaskSource:
    """Views as Dask arrays with the same rows in the same chunks."""

    def __init__(self, views: Any) -> None:
        self._dask = import_dask()
        named = views.items() if isinstance(views, Mapping) else enumerate([views] if is_dask(views) else views)
        pairs = [(str(name), view) for name, view in named]
        self.names = tuple(name for name, _ in pairs)
        self._arrays = _align(pairs)
        self.n_samples = int(self._arrays[0].shape[0])
        self.n_features = tuple(int(array.shape[1]) for array in self._arrays)
        self.feature_names: tuple[Any, ...] = ()
        self._single = is_dask(views)
        self._sizes = [int(size) for size in self._arrays[0].chunks[0]]
        self._firsts = [int(first) for first in np.cumsum([0, *self._sizes[:-1]])]
        columns = [array.to_delayed().ravel() for array in self._arrays]
        self._chunks = [list(parts) for parts in zip(*columns, strict=True)]
        self.client = current_client()
        self._blocks: ClusterBlocks | None = None

    def _read(self, parts: list[Any], first: int) -> Any:
        return self._dask.delayed(_checked, pure=False)(parts, self.names, self._single, first)

    def _compute(self, tasks: list[Any]) -> list[Any]:
        if self.client is None:
            return [task.compute(scheduler="synchronous") for task in tasks]
        futures = self.client.compute(tasks)
        try:
            return list(self.client.gather(futures))
        finally:
            self.client.cancel(futures)

    def take(self, rows: IntArray) -> Views:
        """Return some rows, sorted, of all views; all rows are checked on the way."""
        tasks = []
        for parts, first, size in zip(self._chunks, self._firsts, self._sizes, strict=True):
            inside = rows[(rows >= first) & (rows < first + size)] - first
            tasks.append(self._dask.delayed(_take, pure=False)(self._read(parts, first), inside))
        found = self._compute(tasks)
        arrays = tuple(np.concatenate(columns) for columns in zip(*(views.arrays for views in found), strict=True))
        return Views(arrays, self.names, self._single, np.concatenate([views.missing for views in found]))

    def describe(self, known: Landmarks) -> Blocks:
        """Return the blocks with their consensus."""
        make = self._dask.delayed(make_block, pure=False)
        if self.client is None:
            return LocalBlocks(
                make_block(self._read(parts, first).compute(scheduler="synchronous"), first, known)
                for parts, first in zip(self._chunks, self._firsts, strict=True)
            )
        shared = self.client.submit(_identity, known, pure=False)
        tasks = [
            make(self._read(parts, first), first, shared)
            for parts, first in zip(self._chunks, self._firsts, strict=True)
        ]
        homes = place_blocks(self._sizes, self.client.nthreads())
        blocks = [
            self.client.compute(task, workers=home, allow_other_workers=True)
            for task, home in zip(tasks, homes, strict=True)
        ]
        self._blocks = ClusterBlocks(self.client, blocks, homes, shared)
        return self._blocks

    def close(self) -> None:
        """Release the blocks on the workers."""
        if self._blocks is not None:
            self._blocks.close()

    def collect(self, blocks: Blocks, task: Task, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return what a task finds in the blocks as a Dask array."""
        parts = blocks.keep(task) if isinstance(blocks, ClusterBlocks) else blocks.apply(task, None)
        array = self._dask.array
        pieces = [
            array.from_delayed(self._dask.delayed(part), (size, *shape[1:]), dtype=dtype)
            for part, size in zip(parts, self._sizes, strict=True)
        ]
        return array.concatenate(pieces)


def place_blocks(sizes: list[int], threads: dict[str, int]) -> list[str | None]:
    """Return the worker of each block: neighbours together, rows in proportion to threads.

    Left to itself a scheduler moves blocks to whoever is idle, which costs more time and memory than it saves. A worker
    that joins later gets blocks only when another one is lost.

    Examples
    --------
    >>> place_blocks([10, 10, 10], {"a": 2, "b": 1})
    ['a', 'a', 'b']
    """
    if not threads:
        return [None] * len(sizes)
    addresses = sorted(threads)
    ends = np.cumsum([threads[address] for address in addresses]) / sum(threads.values())
    middles = (np.cumsum(sizes) - 0.5 * np.array(sizes)) / sum(sizes)
    return [addresses[min(int(place), len(addresses) - 1)] for place in np.searchsorted(ends, middles)]


def _align(pairs: list[tuple[str, Any]]) -> list[Any]:
    """Check shapes and cut all views as the first one is cut."""
    for name, view in pairs:
        if not is_dask(view):
            raise TypeError(f"view {name!r} is not a Dask array, but others are. Use dask.array.from_array for it.")
        if view.ndim != 2:
            raise ValueError(f"view {name!r} must have two dimensions, got {view.ndim}.")
        if np.isnan(view.shape[0]) or np.isnan(view.shape[1]):
            raise ValueError(f"view {name!r} has chunks of unknown size; call compute_chunk_sizes() on it first.")
    first_name, first = pairs[0]
    arrays = []
    for name, view in pairs:
        if view.shape[0] != first.shape[0]:
            raise ValueError(
                f"All views must have the same samples: view {first_name!r} has {first.shape[0]} rows, "
                f"view {name!r} has {view.shape[0]}."
            )
        arrays.append(view.rechunk({0: first.chunks[0], 1: -1}))
    if first.shape[0] < 2:
        raise ValueError(f"EMVC needs at least 2 samples, got n_samples = {first.shape[0]}.")
    return arrays


def _checked(parts: list[Any], names: tuple[str, ...], single: bool, first: int) -> Views:
    return check_rows(parts, names, single=single, first=first)


def _take(views: Views, rows: IntArray) -> Views:
    arrays = tuple(np.ascontiguousarray(array[rows]) for array in views.arrays)
    return Views(arrays, views.names, views.single, views.missing[rows])


def _identity(message: Any) -> Any:
    return message


def _run(task: Task, block: Any, message: Any) -> tuple[Any, Any]:
    return task(_writeable(block), message)


def _writeable(block: Any) -> Any:
    """Copy arrays that came over the network, which may be read-only."""
    for name, value in vars(block).items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            setattr(block, name, value.copy())
    return block


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


class ClusterBlocks:
    """Blocks as futures on the workers of a cluster."""

    def __init__(self, client: Any, blocks: list[Any], homes: list[str | None], shared: Any) -> None:
        self._client = client
        self._shared = shared
        self._blocks = blocks
        self._homes = homes

    def apply(self, task: Task, message: Any) -> list[Any]:
        """Run a task on every block and return the results in the order of the blocks."""
        pairs = self._submit(task, message)
        results = [self._client.submit(_second, pair, pure=False) for pair in pairs]
        self._blocks = [self._client.submit(_first, pair, pure=False) for pair in pairs]
        del pairs
        return list(self._client.gather(results))

    def keep(self, task: Task) -> list[Any]:
        """Run a task that leaves the blocks as they are; the results stay on the workers, as futures."""
        return [self._client.submit(_second, pair, pure=False) for pair in self._submit(task, None)]

    def close(self) -> None:
        """Release the blocks."""
        self._client.cancel([*self._blocks, self._shared])
        self._blocks, self._shared = [], None

    def _submit(self, task: Task, message: Any) -> list[Any]:
        # A task of its own, so that the message crosses the network once per worker and can be made again.
        shared = self._client.submit(_identity, message, pure=False)
        return [
            self._client.submit(_run, task, block, shared, pure=False, workers=home, allow_other_workers=True)
            for block, home in zip(self._blocks, self._homes, strict=True)
        ]


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask from warning about messages in the graph: they are small, and meant to be there."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield
