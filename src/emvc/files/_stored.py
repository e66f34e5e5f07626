"""Views that stay in their files while they are clustered, and files of the same formats read as a whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from emvc.files._base import FileView, check_ids, some
from emvc.files._ids import as_ids, is_id_name
from emvc.out_of_core import FORMATS, NUMERIC, open_view, open_views, parquet_columns, read_column, split_path


class NeedsMemoryError(ValueError):
    """Views cannot be read a few rows at a time; the message says why."""


def is_stored(path: str | os.PathLike[str]) -> bool:
    """Tell whether rows of a file can be read without the others."""
    return Path(split_path(path)[0]).suffix.lower() in FORMATS


def name_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a view: that of the array in the file if one is asked for, else that of the file."""
    name, part = split_path(path)
    return part.strip("/").replace("/", "-") if part else Path(name).stem


def read_stored(path: str | os.PathLike[str]) -> FileView:
    """Read one array as a whole."""
    view = open_view(path)
    values = np.asarray(view.read(view.path, view.part, 0, view.shape[0]), dtype=np.float64)
    return FileView(name_of(path), values, Path(view.path).name)


def open_stored(
    paths: Sequence[str | os.PathLike[str]], *, id_columns: Sequence[str | None], chunks: int
) -> tuple[list[tuple[str, Any]], tuple[str, ...] | None]:
    """Open files as Dask arrays.

    Parameters
    ----------
    paths : sequence of paths
        Files for which `is_stored` holds.
    id_columns : sequence of str or None
        Column of the sample ids in each Parquet file, found out by default.
    chunks : int
        Rows per chunk.

    Returns
    -------
    views : list of pairs
        Names and Dask arrays.
    ids : tuple of str or None
        Ids of the samples, if a Parquet file has them.

    Raises
    ------
    NeedsMemoryError
        If ids differ or are in different orders, or columns have to be encoded.
    """
    views, first = [], None
    ids: tuple[str, ...] | None = None
    for path, id_column in zip(paths, id_columns, strict=True):
        column = _find_column(path, id_column)
        (array,) = open_views([path], chunks=chunks, id_column=column)
        views.append((name_of(path), array))
        if column is None:
            continue
        source = Path(split_path(path)[0]).name
        found = check_ids(as_ids(read_column(split_path(path)[0], column)), source)
        if ids is not None and found != ids:
            raise NeedsMemoryError(f"{source} does not have the samples of {first} in their order")
        ids, first = found, first or source
    return views, ids


def _find_column(path: str | os.PathLike[str], id_column: str | None) -> str | None:
    """Return the column of the ids of a Parquet table whose other columns are numbers."""
    name = split_path(path)[0]
    if Path(name).suffix.lower() != ".parquet":
        return None
    kinds = parquet_columns(name)
    source, first = Path(name).name, next(iter(kinds))
    if id_column:
        if id_column not in kinds:
            raise ValueError(f"{source} has no column {id_column!r} for the sample ids; it has {some(kinds)}.")
        owner: str | None = id_column
    else:
        owner = next((column for column in kinds if is_id_name(column)), None)
        if owner is None and len(kinds) > 1 and not kinds[first].startswith(NUMERIC):
            owner = first
        owner = None if id_column == "" else owner
    encoded = [column for column, kind in kinds.items() if column != owner and not kind.startswith(NUMERIC)]
    if encoded:
        raise NeedsMemoryError(f"column {encoded[0]!r} of {source} has to be encoded")
    return owner
