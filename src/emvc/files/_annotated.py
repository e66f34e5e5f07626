"""AnnData and MuData files, whose libraries are optional."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from emvc._containers import require
from emvc.files._base import FileView, check_ids, some


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
    views = [_view(str(name), part.X, part, path, part.var_names) for name, part in content.mod.items()]
    if not views:
        raise ValueError(f"{path.name} holds no modality.")
    return views


def read_h5ad(path: Path, part: str | None) -> list[FileView]:
    """Read the matrix of an AnnData file and the arrays of its observations as views, or one of them."""
    content = _read("anndata", "mudata", path, "an AnnData file")
    found = ({"X": content.X} if content.X is not None else {}) | dict(content.obsm)
    if part is not None:
        found |= dict(content.layers)
        if part not in found:
            raise ValueError(f"{path.name} has no array {part!r}; it has {some(found)}.")
        found = {part: found[part]}
    if not found:
        raise ValueError(f"{path.name} holds no matrix of numbers.")
    views = []
    for name, values in found.items():
        columns = content.var_names if values.shape[1] == content.n_vars and name not in content.obsm else None
        views.append(_view(path.stem if len(found) == 1 else name, values, content, path, columns))
    return views


def _view(name: str, values: Any, owner: Any, path: Path, columns: Any) -> FileView:
    """Return an array with the names of its observations, and of its columns where it is dense."""
    ids = check_ids([str(one) for one in owner.obs_names], f"{path.name}: {name}")
    names = tuple(map(str, columns)) if columns is not None else None
    if not hasattr(values, "tocsr"):
        values = np.asarray(values, dtype=np.float64)
        if names is not None and len(set(names)) == len(names):
            values = pd.DataFrame(values, columns=list(names))
    return FileView(name, values, path.name, ids=ids, columns=names, fixed=True, how="")
