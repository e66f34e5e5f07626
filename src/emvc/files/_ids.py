"""Which column of a table holds the ids of the samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from emvc.files._base import check_ids, some

_THINGS = "sample|subject|patient|participant|person|donor|case|record|cell|mouse|animal|specimen|individual|proband"
_ID_NAME = re.compile(
    rf"[pseu]?ids?|uuid|names?|barcodes?|obs_names|.+[ _.-]ids?"
    rf"|({_THINGS})s?([ _.-]?(ids?|names?|nr|no|number|code|barcode))?",
    re.IGNORECASE,
)
_ROW_NAMES = frozenset(
    {"", "unnamed: 0", "__index_level_0__", "index", "row", "rownames", "row.names", "x", "nr", "no"}
)
_LOOKED_AT = 5  # columns of whole numbers, from the first one on, that may hold ids without being named so
_LEAST = 10  # rows of a table in which a column that is not named so may hold ids

Candidates = dict[str, tuple[str, ...]]


def is_id_name(name: str) -> bool:
    """Tell whether a column of this name holds the ids of the samples.

    Examples
    --------
    >>> [name for name in ("Subject", "patient_id", "Unnamed: 0", "age") if is_id_name(name)]
    ['Subject', 'patient_id', 'Unnamed: 0']
    """
    return name.strip().lower() in _ROW_NAMES - {"x"} or _ID_NAME.fullmatch(name.strip()) is not None


def is_row_name(name: str) -> bool:
    """Tell whether a column of this name holds the names or the numbers of the rows."""
    return name.strip().lower() in _ROW_NAMES


def as_ids(cells: Any) -> list[str]:
    """Return cells as ids: whole numbers without decimals, nothing where there is none.

    Examples
    --------
    >>> as_ids([1.0, 2.5, float("nan"), "a "])
    ['1', '2.5', '', 'a']
    """
    return [_as_id(cell) for cell in cells]


def _as_id(cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or str(cell) in ("nan", "NaT", "<NA>"):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def find_ids(
    frame: Any, source: str, locate: Callable[[int], str], *, id_column: str | None
) -> tuple[str | None, Candidates]:
    """Return the column of the ids, and the ids of all columns that could hold them, the best first.

    Raises
    ------
    ValueError
        If the column is not there, or an id is empty or appears twice.
    """
    names = [str(name) for name in frame.columns]
    if id_column == "":
        return None, {}
    if id_column is not None:
        if id_column not in names:
            raise ValueError(f"{source} has no column {id_column!r} for the sample ids; it has {some(names)}.")
        return id_column, {id_column: check_ids(as_ids(frame.iloc[:, names.index(id_column)]), source, locate)}
    if len(names) < 2:
        return None, {}
    ranked: list[tuple[int, str, tuple[str, ...]]] = []
    damaged: tuple[str, list[str]] | None = None
    for i, (name, dtype) in enumerate(zip(names, frame.dtypes, strict=True)):
        rank = _rank(name, i, dtype)
        if rank is None or (rank == 4 and len(frame) < _LEAST):
            continue
        ids = as_ids(frame.iloc[:, i])
        distinct = len(set(ids) - {""})
        if distinct == len(ids):
            ranked.append((3 if rank < 3 and _is_counter(ids) and is_row_name(name) else rank, name, tuple(ids)))
        elif rank == 0 and damaged is None and distinct >= len(ids) / 2:
            damaged = name, ids
    ranked.sort(key=lambda entry: entry[0])
    best = ranked[0][:2] if ranked and ranked[0][0] < 4 else None
    if damaged is not None and (best is None or best[0] > 0):
        check_ids(damaged[1], source, locate)
    return best and best[1], {name: ids for _, name, ids in ranked}


def _rank(name: str, place: int, dtype: Any) -> int | None:
    """Return how likely a column holds ids: 0 by its name, 1 as a first one of text, 4 by its type; else None."""
    text = dtype.kind in "OUT" or str(dtype) in ("string", "category", "str")
    if is_id_name(name):
        return 0 if text or dtype.kind in "iuf" else None
    if text:
        return 1 if place == 0 else 4
    return 4 if dtype.kind in "iu" and place < _LOOKED_AT else None


def _is_counter(ids: Sequence[str]) -> bool:
    return ids[0] in ("0", "1") and all(one == str(i) for i, one in enumerate(ids, int(ids[0])))


def is_counter(ids: Sequence[str] | None) -> bool:
    """Tell whether ids are nothing but the numbers of the rows.

    Examples
    --------
    >>> is_counter(("1", "2", "3")), is_counter(("2", "1", "3"))
    (True, False)
    """
    return bool(ids) and _is_counter(ids or ())
