"""Runs cells and keeps their records in one SQLite file.

A record is written in a transaction of its own under the key of its cell, as soon as the cell is done, or the few cells
that differ in the seed of the method alone and share a decomposition. So a run can be
killed at any moment: what is finished is there once and whole, the rest is computed by the next run. Only the calling
process writes; the work is handed to joblib, and ``joblib.parallel_config`` decides where it is done.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import joblib
from joblib import Parallel, delayed, effective_n_jobs

from emvc._version import __version__
from emvc.experiments.grid import Cell
from emvc.experiments.methods import ERRORS, METHODS, NEEDS_LABELS, get_dataset, is_drawn
from emvc.metrics import METRICS, clustering_scores

_COLUMNS = {
    "key": "TEXT PRIMARY KEY",
    "dataset": "TEXT NOT NULL",
    "error": "TEXT NOT NULL",
    "level": "REAL NOT NULL",
    "method": "TEXT NOT NULL",
    "parameters": "TEXT NOT NULL",
    "seed": "INTEGER NOT NULL",
    **dict.fromkeys(METRICS, "REAL"),
    "seconds": "REAL",
    "gap": "REAL",
    "status": "TEXT",
    "n_iter": "INTEGER",
    "failure": "TEXT",
    "version": "TEXT NOT NULL",
    "finished": "TEXT NOT NULL",
}

Record = dict[str, Any]
Report = Callable[[int, int, Record], None]
"""Called with the number of finished cells, the number of all cells and the newest record."""


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


def run_cell(cell: Cell, memory: Any = None) -> Record:
    """Run one cell and return its record; an exception becomes a record with its text as ``failure``.

    Parameters
    ----------
    cell : Cell
        The experiment.
    memory : object with the interface of joblib.Memory, optional
        Given to methods that can keep their decomposition in it.
    """
    record: Record = dict.fromkeys(_COLUMNS)
    record |= {name: getattr(cell, name) for name in ("key", "dataset", "error", "level", "method", "seed")}
    record |= {"parameters": json.dumps(dict(cell.parameters), sort_keys=True), "version": __version__}
    try:
        data = get_dataset(cell.dataset, cell.seed)
        views = ERRORS[cell.error](data.views, cell.level, cell.seed)
        model = METHODS[cell.method](data.n_clusters, random_state=cell.seed, **cell.parameters)
        if memory is not None and "memory" in model.get_params():
            model.set_params(memory=memory)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converging is in the record
            model.fit(views, data.labels if cell.method in NEEDS_LABELS else None)
        record["seconds"] = time.perf_counter() - start
        record |= clustering_scores(data.labels, model.labels_)
        record |= {"gap": getattr(model, "duality_gap_", None), "status": getattr(model, "status_", None)}
        record["n_iter"] = getattr(model, "n_iter_", None)
    except Exception:
        record["failure"] = traceback.format_exc(limit=-3)
    record["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    return record


def run_cells(
    cells: Iterable[Cell],
    path: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> list[Record]:
    """Run the cells that have no record yet and return the records of all, in the order of the cells.

    Parameters
    ----------
    cells : iterable of Cell
        The experiments; equal ones are run once.
    path : path
        The SQLite file, created if absent. Failed cells are tried again.
    n_jobs : int or None
        Passed to `joblib.Parallel`; the backend is that of ``joblib.parallel_config``.
    report : callable, optional
        Told about every new record.
    """
    unique = {cell.key: cell for cell in cells}
    with closing(_connect(path)) as connection:
        finished = {row["key"] for row in _rows(connection) if row["failure"] is None}
        todo = [cell for key, cell in unique.items() if key not in finished]
        done = len(unique) - len(todo)
        for record in _compute(todo, n_jobs):
            _write(connection, record)
            done += 1
            if report is not None:
                report(done, len(unique), record)
        records = {row["key"]: row for row in _rows(connection)}
    return [records[key] for key in unique]


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


def _run_group(cells: Sequence[Cell]) -> list[Record]:
    """Run cells that differ in nothing but the seed of the method, so that they can share a decomposition."""
    memory = _Latest()
    return [run_cell(cell, memory) for cell in cells]


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return cells with the same data and parameters together, every other cell alone."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        same_data = cell.error == "none" and not is_drawn(cell.dataset)
        groups.setdefault(replace(cell, seed=0).key if same_data else cell.key, []).append(cell)
    return list(groups.values())


def _compute(cells: list[Cell], n_jobs: int | None) -> Iterator[Record]:
    """Yield records as they are finished."""
    work = [delayed(_run_group)(group) for group in _groups(cells)]
    try:
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(work)
    except ValueError:  # a backend that cannot stream: hand out small batches instead
        size = 4 * effective_n_jobs(n_jobs or 1)
        for start in range(0, len(work), size):
            yield from chain.from_iterable(Parallel(n_jobs=n_jobs)(work[start : start + size]))
        return
    yield from chain.from_iterable(results)


def _connect(path: str | os.PathLike[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.row_factory = sqlite3.Row
    columns = ", ".join(f'"{name}" {kind}' for name, kind in _COLUMNS.items())
    try:
        connection.execute(f"CREATE TABLE IF NOT EXISTS records ({columns})")
        present = {row["name"] for row in connection.execute("PRAGMA table_info(records)")}
    except sqlite3.DatabaseError as error:
        connection.close()
        raise ValueError(f"{os.fspath(path)} is not a file of records: {error}.") from error
    if present != set(_COLUMNS):
        connection.close()
        raise ValueError(f"{os.fspath(path)} holds records of another version of emvc; use a new file.")
    return connection


def _rows(connection: sqlite3.Connection) -> list[Record]:
    return [dict(row) for row in connection.execute("SELECT * FROM records ORDER BY rowid")]


def _write(connection: sqlite3.Connection, record: Record) -> None:
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    values = ", ".join("?" for _ in _COLUMNS)
    # One statement is one transaction. A key is replaced only where a failed cell was tried again.
    connection.execute(f"INSERT OR REPLACE INTO records ({names}) VALUES ({values})", [record[n] for n in _COLUMNS])
