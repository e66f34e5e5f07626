"""AnnData and MuData files, whose libraries are optional."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from emvc._containers import anndata_views, expand, require
from emvc.files._base import FileView, check_ids
from emvc.files._tables import stem


def _read(module: str, extra: str, path: Path, what: str) -> Any:
    library = require(module, extra, f"Reading {path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(library, f"read_{path.suffix.lower()[1:]}")(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # the library has a class of its own for every failure
        raise ValueError(f"{path.name} cannot be read as {what} ({str(error).splitlines()[0]}).") from None


def read_h5mu(path: Path) -> list[FileView]:
    """Read the modalities of a MuData file as views."""
    content = _read("mudata", "mudata", path, "a MuData file")
    views = [_view(name, table, path) for name, table in expand(content).items()]
    if not views:
        raise ValueError(f"{path.name} holds no modality.")
    return views


def read_h5ad(path: Path, part: str | None) -> list[FileView]:
    """Read the matrix of an AnnData file and the arrays of its observations as views, or one of them, or a layer."""
    content = _read("anndata", "mudata", path, "an AnnData file")
    if part in content.layers:
        tables = {str(part): anndata_views(content, layer=part)[str(part)]}
    else:
        tables = anndata_views(content, obsm=None if part in (None, "X") else [part])
        tables = tables if part is None else {str(part): tables[str(part)]}
    name = stem(path) if len(tables) == 1 and part is None else None
    return [_view(name or one, table, path) for one, table in tables.items()]


def _view(name: str, table: Any, path: Path) -> FileView:
    """Return an array with the names of its observations and its columns."""
    ids = check_ids(list(table.ids), f"{path.name}: {name}")
    columns = None if table.columns is None else tuple(table.columns)
    values = table.values if hasattr(table.values, "tocsr") else np.asarray(table.values, dtype=np.float64)
    return FileView(name, values, path.name, ids=ids, columns=columns, fixed=True)
