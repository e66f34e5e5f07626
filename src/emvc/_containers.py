"""Containers of other libraries that views may come in, known by what they offer, and the libraries themselves."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from emvc._sparse import check_if_sparse


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional library, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{purpose} needs {module}: pip install 'emvc[{extra}]'") from None


def is_mudata(views: Any) -> bool:
    """Tell whether ``views`` is a ``mudata.MuData``: modalities by name over common observations."""
    return isinstance(getattr(views, "mod", None), Mapping) and hasattr(views, "obs_names")


def mudata_views(mdata: Any) -> dict[str, Any]:
    """Return the modalities of a ``MuData`` as views over all its observations, NaN where a modality has none."""
    names = np.asarray(mdata.obs_names, dtype=str)
    return {str(name): align(part.X, np.asarray(part.obs_names, dtype=str), names) for name, part in mdata.mod.items()}


def align(values: Any, own: Any, wanted: Any) -> Any:
    """Return rows in the order of the ids ``wanted``, with NaN where a view whose ids are ``own`` does not have one.

    Examples
    --------
    >>> import numpy as np
    >>> align(np.array([[1.0], [2.0]]), ["b", "a"], ["a", "b", "c"]).ravel()
    array([ 2.,  1., nan])
    """
    if len(own) == len(wanted) and all(one == other for one, other in zip(own, wanted, strict=True)):
        return values
    position = {name: i for i, name in enumerate(own)}
    rows = np.array([position.get(name, -1) for name in wanted])
    there = rows >= 0
    values = check_if_sparse(values, "a view")
    if scipy.sparse.issparse(values):
        if there.all():
            return values[rows]
        values = values.toarray()
    full = np.full((len(wanted), values.shape[1]), np.nan)
    full[there] = np.asarray(values)[rows[there]]
    return full


def feature_names(view: Any) -> Any:
    """Return the names of the columns of a DataFrame as strings, None if it has none or not all of them are strings.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> feature_names(pd.DataFrame({"b": [1.0], "a": [2.0]}))
    array(['b', 'a'], dtype='<U1')
    >>> feature_names(np.ones((2, 2))) is None
    True
    """
    columns = getattr(view, "columns", None)
    if columns is None or not hasattr(view, "shape"):
        return None
    names = list(columns)
    return np.array(names, dtype=str) if names and all(isinstance(name, str) for name in names) else None


def sample_names(views: Any) -> Any:
    """Return the names of the samples of a MuData or of the first DataFrame as integers or strings, else None."""
    if is_mudata(views):
        return np.asarray(views.obs_names, dtype=str)
    parts = views.values() if isinstance(views, Mapping) and not scipy.sparse.issparse(views) else views
    if not isinstance(views, list | tuple | Mapping) or scipy.sparse.issparse(views):
        parts = [views]
    for part in parts:
        if hasattr(part, "index") and hasattr(part, "iloc"):
            index = np.asarray(part.index)
            return index.astype(np.int64) if index.dtype.kind in "iu" else np.array([str(name) for name in part.index])
    return None
