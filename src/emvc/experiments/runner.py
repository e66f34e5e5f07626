"""Runs cells and keeps their records in one SQLite file.

A record is written in a transaction of its own under the key of its cell, as soon as the cell is done, or the few cells
that differ in the seed alone and are run together. So a run can be killed at any moment: what is finished is there once
and whole, the rest is computed by the next run. Only the calling process writes; the work is handed to joblib, and
``joblib.parallel_config`` decides where it is done. With limits of time and memory, each worker is a process that can
be ended (`emvc.experiments.supervision`).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

import joblib
from joblib import Parallel, delayed, effective_n_jobs

from emvc._parent import Watch, watched
from emvc._version import __version__
from emvc.experiments.supervision import Limits, Supervisors
from emvc.metrics import METRICS

_COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "dataset": "TEXT NOT NULL",
    "kind": "TEXT",
    "family": "TEXT",
    "half": "TEXT",
    "n_samples": "INTEGER",
    "n_views": "INTEGER",
    "n_clusters": "INTEGER",
    "error": "TEXT NOT NULL",
    "level": "REAL",
    "oracle": "INTEGER",
    "method": "TEXT NOT NULL",
    "parameters": "TEXT",
    "seed": "INTEGER NOT NULL",
    **dict.fromkeys(METRICS, "REAL"),
    "seconds": "REAL",
    "peak_memory": "REAL",
    "flagged": "REAL",
    "detection": "REAL",
    "rank": "INTEGER",
    "gap": "REAL",
    "status": "TEXT",
    "n_iter": "INTEGER",
    "imputed": "INTEGER",
    "outcome": "TEXT NOT NULL",
    "failure": "TEXT",
    "limit_seconds": "REAL",
    "limit_memory": "REAL",
    "version": "TEXT NOT NULL",
    "revision": "TEXT",
    "finished": "TEXT NOT NULL",
}

Record = dict[str, Any]
Report = Callable[[int, int, Record], None]
"""Called with the number of finished cells, the number of all cells and the newest record."""

DONE, FAILED, OUT_OF_TIME, OUT_OF_MEMORY = "done", "failed", "out of time", "out of memory"
"""How a run may end."""


class Runnable(Protocol):
    """An experiment that the runner can run."""

    @property
    def key(self) -> str:
        """Name of the experiment, equal for equal ones."""
        ...

    @property
    def group(self) -> str:
        """Equal for experiments that are run one after the other by one worker."""
        ...

    def describe(self) -> Record:
        """Return what is known before the run."""
        ...

    def run(self, memory: Any = None) -> Record:
        """Run the experiment and return its scores; ``memory`` may keep what the group has in common."""
        ...


class _Latest:
    """The last result of a function, behind the interface of `joblib.Memory`."""

    def __init__(self) -> None:
        self._key: str | None = None
        self._value: Any = None

    def cache(self, function: Callable[..., Any], ignore: Sequence[str] = ()) -> Callable[..., Any]:
        """Return ``function``, called only if its arguments differ from those of the last call."""

        def call(*args: Any, **options: Any) -> Any:
            key = joblib.hash((args, {name: value for name, value in options.items() if name not in ignore}))
            if key != self._key:
                self._value, self._key = function(*args, **options), key
            return self._value

        return call


def key_of(identity: str) -> str:
    """Return a short name of an identity."""
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def timed_fit(model: Any, views: Any, labels: Any = None) -> Record:
    """Fit a method and return how long it took and what it says about its solution."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converging is in the record
        model.fit(views, labels)
    record: Record = {"seconds": time.perf_counter() - start}
    attributes = {"gap": "duality_gap_", "status": "status_", "n_iter": "n_iter_"}
    known = vars(model)
    rank = known.get("rank_", known.get("_rank_"))  # where the solver knows it: it is not computed for the record
    return record | {column: known.get(name) for column, name in attributes.items()} | {"rank": rank}


def run_cell(cell: Runnable, memory: Any = None) -> Record:
    """Run one cell and return its record; an exception becomes a record with its text as ``failure``.

    Parameters
    ----------
    cell : Runnable
        The experiment.
    memory : object with the interface of joblib.Memory, optional
        Given to methods that can keep their decomposition in it.
    """
    try:
        result = cell.run(memory)
    except MemoryError:
        return unfinished(cell, OUT_OF_MEMORY, traceback.format_exc(limit=-3))
    except Exception:
        return unfinished(cell, FAILED, traceback.format_exc(limit=-3))
    return _record(cell, DONE) | result


def unfinished(cell: Runnable, outcome: str, reason: str) -> Record:
    """Return the record of a cell without a result."""
    return _record(cell, outcome) | {"failure": reason}


def _record(cell: Runnable, outcome: str) -> Record:
    record: Record = dict.fromkeys(_COLUMNS) | cell.describe() | {"key": cell.key, "outcome": outcome}
    return record | {"version": __version__, "finished": datetime.now(UTC).isoformat(timespec="seconds")}


def run_cells(
    cells: Iterable[Runnable],
    path: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    report: Report | None = None,
    limits: Limits | None = None,
) -> list[Record]:
    """Run the cells that have no record yet and return the records of all, in the order of the cells.

    Parameters
    ----------
    cells : iterable of Runnable
        The experiments; equal ones are run once.
    path : path
        The SQLite file, created if absent. Failed cells are tried again, and those that ran out of time or memory if
        there is more of it now.
    n_jobs : int or None
        Passed to `joblib.Parallel`; the backend is that of ``joblib.parallel_config``, without limits.
    report : callable, optional
        Told about every new record.
    limits : Limits, optional
        Of time and memory for each cell, which then runs in a process of its own. What is over the limit is ended and
        recorded; further cells of its group are recorded in the same way without being tried.
    """
    unique = {cell.key: cell for cell in cells}
    with closing(_connect(path)) as connection:
        finished = {row["key"] for row in _rows(connection) if _is_final(row, limits)}
        todo = [cell for key, cell in unique.items() if key not in finished]
        done = len(unique) - len(todo)
        with closing(_compute(todo, n_jobs, limits)) as records:
            for record in records:
                with _writing(path):
                    _write(connection, record)
                done += 1
                if report is not None:
                    report(done, len(unique), record)
        written = {row["key"]: row for row in _rows(connection)}
    return [written[key] for key in unique]


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Return all records of a file, oldest first.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"There are no records at {os.fspath(path)}.")
    with closing(_connect(path)) as connection:
        return _rows(connection)


def forget(path: str | os.PathLike[str], methods: Iterable[str]) -> int:
    """Delete the records of some methods, so that they are run again; return how many there were."""
    names = list(methods)
    with closing(_connect(path)) as connection:
        places = ", ".join("?" for _ in names)
        with _writing(path):
            return connection.execute(f"DELETE FROM records WHERE method IN ({places})", names).rowcount


def _is_final(record: Record, limits: Limits | None) -> bool:
    """Return whether a run would come to nothing new."""
    if record["outcome"] == OUT_OF_TIME:
        return limits is not None and limits.seconds <= (record["limit_seconds"] or 0.0)
    if record["outcome"] == OUT_OF_MEMORY:
        return limits is not None and limits.memory <= (record["limit_memory"] or 0.0)
    return bool(record["outcome"] == DONE)


def _run_group(cells: Sequence[Runnable]) -> list[Record]:
    memory = _Latest()
    return [run_cell(cell, memory) for cell in cells]


def _run_supervised(cells: Sequence[Runnable], supervisors: Supervisors) -> list[Record]:
    """Run a group in a process that can be ended; once it ran out, the rest of the group is not tried."""
    records: list[Record] = []
    for cell in cells:
        last = records[-1] if records else None
        if last is not None and last["outcome"] in (OUT_OF_TIME, OUT_OF_MEMORY):
            record = unfinished(cell, last["outcome"], f"not tried: seed {last['seed']} ran {last['outcome']}")
        else:
            answer = supervisors.call(run_cell, cell)
            record = answer if isinstance(answer, dict) else unfinished(cell, *answer)
        limits = supervisors.limits
        records.append(record | {"limit_seconds": limits.seconds, "limit_memory": limits.memory})
    return records


def _groups(cells: Iterable[Runnable]) -> list[list[Runnable]]:
    groups: dict[str, list[Runnable]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    return list(groups.values())


def _compute(cells: list[Runnable], n_jobs: int | None, limits: Limits | None) -> Generator[Record, None, None]:
    """Yield records as they are finished."""
    groups = _groups(cells)
    if limits is not None:
        with Supervisors(limits, effective_n_jobs(n_jobs or 1)) as supervisors:
            work = [delayed(_run_supervised)(group, supervisors) for group in groups]
            # A thread for each process, to wait for it.
            yield from chain.from_iterable(
                Parallel(n_jobs=n_jobs, backend="threading", return_as="generator_unordered", batch_size=1)(work)
            )
        return
    work = [delayed(watched)(Watch(), _run_group, group) for group in groups]
    try:
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(work)
    except ValueError:  # a backend that cannot stream: hand out small batches instead
        size = 4 * effective_n_jobs(n_jobs or 1)
        for start in range(0, len(work), size):
            yield from chain.from_iterable(Parallel(n_jobs=n_jobs)(work[start : start + size]))
        return
    yield from chain.from_iterable(results)


def _connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    with _writing(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.row_factory = sqlite3.Row
    columns = ", ".join(f'"{name}" {kind}' for name, kind in _COLUMNS.items())
    try:
        with _writing(path):
            connection.execute(f"CREATE TABLE IF NOT EXISTS records ({columns})")
            present = {row["name"] for row in connection.execute("PRAGMA table_info(records)")}
    except OSError:
        connection.close()
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        raise ValueError(f"{os.fspath(path)} is not a file of records: {error}.") from error
    if present != set(_COLUMNS):
        connection.close()
        raise ValueError(f"{os.fspath(path)} holds records of another version of emvc; use a new file.")
    return connection


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file cannot be written, and why: a full or read-only disk, or no right to."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(f"{os.fspath(path)} cannot be written: {error}.") from error


def _rows(connection: sqlite3.Connection) -> list[Record]:
    return [dict(row) for row in connection.execute("SELECT * FROM records ORDER BY rowid")]


def _write(connection: sqlite3.Connection, record: Record) -> None:
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    values = ", ".join("?" for _ in _COLUMNS)
    # One statement is one transaction. A key is replaced only where a cell without a result was tried again.
    connection.execute(f"INSERT OR REPLACE INTO records ({names}) VALUES ({values})", [record[n] for n in _COLUMNS])
