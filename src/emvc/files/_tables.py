"""Parquet tables and MuData files, whose libraries are optional."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from emvc._containers import require
from emvc.files._base import FileView, check_ids, check_values, find_id_column, is_text_type, one_hot


def read_parquet(path: Path, *, id_column: str | None, encode: bool) -> FileView:
    """Read one view from a Parquet table."""
    require("pyarrow", "parquet", f"Reading {path.name}")
    parquet = require("pyarrow.parquet", "parquet", f"Reading {path.name}")
    source = path.name
    try:
        table = parquet.read_table(path)
    except OSError:
        raise
    except Exception as error:  # the library has a class of its own for every failure
        raise ValueError(f"{source} cannot be read as a Parquet table ({str(error).splitlines()[0]}).") from None
    names = [str(name) for name in table.column_names]
    texts = {name: _texts(table.column(i)) for i, name in enumerate(names)}
    is_text = {name: text is not None for name, text in texts.items()}
    owner = find_id_column(is_text, source, id_column=id_column, encode=encode)
    parts, columns = [], []
    for i, name in enumerate(names):
        if name == owner:
            continue
        text = texts[name]
        if text is None:
            parts.append(_numbers(table.column(i), name, source)[:, None])
            columns.append(name)
        elif encode:
            encoded, categories = one_hot(["" if value is None else value for value in text], name)
            parts.append(encoded)
            columns.extend(categories)
        else:
            raise ValueError(f"{source}: column {name!r} is text. Remove it, or have text encoded by one-hot.")
    ids = None
    if owner is not None:
        ids = check_ids([str(value) for value in table.column(names.index(owner)).to_pylist()], source)
    values = np.hstack(parts) if parts else np.zeros((table.num_rows, 0))
    return check_values(FileView(path.stem, values, source, ids=ids, columns=tuple(columns), fixed=True))


def _texts(column: Any) -> list[str | None] | None:
    """Return a column of text as a list, None for one of numbers."""
    if is_text_type(str(column.type)):
        return [None if value is None else str(value) for value in column.to_pylist()]
    return None


def _numbers(column: Any, name: str, source: str) -> Any:
    try:
        return np.asarray(column.cast("double").to_numpy(), dtype=np.float64)
    except (TypeError, ValueError, NotImplementedError):  # those of pyarrow are among them
        raise ValueError(f"{source}: column {name!r} of type {column.type} is not numeric.") from None


def read_h5mu(path: Path) -> list[FileView]:
    """Read the modalities of a MuData file as views."""
    mudata = require("mudata", "mudata", f"Reading {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = mudata.read_h5mu(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # the library has a class of its own for every failure
        raise ValueError(f"{path.name} cannot be read as a MuData file ({str(error).splitlines()[0]}).") from None
    views = []
    for name, part in content.mod.items():
        ids = check_ids([str(value) for value in part.obs_names], f"{path.name}: {name}")
        columns = tuple(str(value) for value in part.var_names)
        values = part.X if hasattr(part.X, "tocsr") else np.asarray(part.X, dtype=np.float64)
        views.append(check_values(FileView(str(name), values, path.name, ids=ids, columns=columns, fixed=True)))
    if not views:
        raise ValueError(f"{path.name} holds no modality.")
    return views
