"""Containers of other libraries that views may come in, known by what they offer, and the libraries themselves."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from emvc._sparse import check_if_sparse

DERIVED = frozenset({"X_emvc", "X_pca", "X_umap", "X_tsne", "X_diffmap", "X_draw_graph_fa", "X_draw_graph_fr"})
"""Entries of ``.obsm`` that are computed from the others by common tools, so that they are no views of their own."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional library, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{purpose} needs {module}: pip install 'emvc[{extra}]'") from None


@dataclass(frozen=True, eq=False)
class Table:
    """One view with what its container says about rows and columns.

    Attributes
    ----------
    values : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        A DataFrame is encoded later; its index counts for nothing here.
    ids : sequence or None
        Ids of the samples.
    columns : sequence of str or None
        Names of the features.
    """

    values: Any
    ids: Sequence[Any] | None = None
    columns: Sequence[str] | None = None
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return int(self.values.shape[0]), int(self.values.shape[1])


def is_mudata(views: Any) -> bool:
    """Tell whether ``views`` is a ``mudata.MuData``: modalities by name over common observations."""
    return isinstance(getattr(views, "mod", None), Mapping) and hasattr(views, "obs_names")


def is_anndata(view: Any) -> bool:
    """Tell whether ``view`` is an ``anndata.AnnData``: one matrix with names of observations and variables."""
    return hasattr(view, "obs_names") and hasattr(view, "var_names") and hasattr(view, "obsm") and not is_mudata(view)


def is_frame(view: Any) -> bool:
    """Tell whether ``view`` is a pandas DataFrame."""
    return hasattr(view, "iloc") and hasattr(view, "index") and hasattr(view, "columns")


def expand(views: Any) -> Any:
    """Return views with containers of other libraries as pandas DataFrames and `Table`.

    A MuData becomes a dict of its modalities, an AnnData one of ``X`` and the entries of ``.obsm``; inside of a list or
    dict, an AnnData is the view of its ``X``.
    """
    if is_mudata(views):
        return {str(name): _matrix(part) for name, part in views.mod.items()}
    if is_anndata(views):
        return anndata_views(views)
    if isinstance(views, Mapping) and not scipy.sparse.issparse(views):
        return {name: _one(view) for name, view in views.items()}
    if isinstance(views, list | tuple):
        return type(views)(_one(view) for view in views) if type(views) in (list, tuple) else list(map(_one, views))
    return _one(views)


def _one(view: Any) -> Any:
    if is_anndata(view):
        return _matrix(view)
    if hasattr(view, "to_frame") and hasattr(view, "name") and not is_frame(view):  # a Series is a view of one column
        view = view.to_frame()
    if hasattr(view, "to_pandas") and not is_frame(view):
        view = Table(view.to_pandas())
    return view


def _matrix(adata: Any, layer: str | None = None) -> Table:
    """Return ``X`` or a layer of an AnnData."""
    if getattr(adata, "isbacked", False):
        adata = adata.to_memory()
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError("The AnnData has no X; name a layer with emvc.intake.anndata_views(adata, layer=...).")
    return Table(values, [str(name) for name in adata.obs_names], [str(name) for name in adata.var_names])


def anndata_views(adata: Any, *, layer: str | None = None, obsm: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the views of an ``anndata.AnnData``, ready for ``fit``.

    Parameters
    ----------
    adata : AnnData
        Observations are the samples.
    layer : str, optional
        A layer to take instead of ``X``; the view gets its name.
    obsm : sequence of str, optional
        Entries of ``.obsm`` to take; by default all but those that are computed from the others, such as ``"X_pca"``.

    Returns
    -------
    dict
        The view ``"X"`` (if there is an X), or that of the layer, and one for each entry of ``.obsm``.

    Raises
    ------
    ValueError
        If a layer or entry does not exist, or nothing is left.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> rna = AnnData(np.ones((3, 2)), obsm={"protein": np.ones((3, 4))}, layers={"scaled": np.zeros((3, 2))})
    >>> list(anndata_views(rna, layer="scaled"))
    ['scaled', 'protein']
    """
    for what, wanted, known in (
        ("layer", [layer] if layer else [], adata.layers),
        ("entry of .obsm", obsm or [], adata.obsm),
    ):
        for name in wanted:
            if name not in known:
                raise ValueError(f"The AnnData has no {what} {name!r}; it has {', '.join(map(repr, known)) or 'none'}.")
    views: dict[str, Any] = {}
    if layer is not None or adata.X is not None:
        views[layer or "X"] = _matrix(adata, layer)
    ids = [str(name) for name in adata.obs_names]
    for name in adata.obsm if obsm is None else obsm:
        if obsm is not None or name not in DERIVED:
            values = adata.obsm[name]
            views[str(name)] = Table(values, ids)
    if not views:
        raise ValueError("The AnnData has neither X nor entries of .obsm that could be views.")
    return views


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
