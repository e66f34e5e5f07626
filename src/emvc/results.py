"""What a fit has found, by sample: as columns, as a DataFrame, or inside an AnnData or MuData."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from emvc._version import __version__


def result_columns(model: Any, prefix: str = "") -> dict[str, Any]:
    """Return label, error by view, and flags of each sample as columns by name.

    ``outlier`` marks samples that no view which shows them can be believed about; ``outlier_<view>`` those left
    out of one view, and ``missing_<view>`` those that a view does not have.
    """
    columns = {f"{prefix}label": np.asarray(model.labels_)}
    if not hasattr(model, "sample_errors_"):
        return columns
    missing = np.isnan(model.sample_errors_)
    for k, name in enumerate(model.view_names_):
        columns[f"{prefix}error_{name}"] = model.sample_errors_[:, k]
    columns[f"{prefix}outlier"] = (model.outliers_ | missing).all(axis=1)
    for k, name in enumerate(model.view_names_):
        columns[f"{prefix}outlier_{name}"] = model.outliers_[:, k]
        columns[f"{prefix}missing_{name}"] = missing[:, k]
    return columns


def labels_frame(model: Any) -> Any:
    """Return `result_columns` as a pandas DataFrame, indexed by the names of the samples if the views had any."""
    import pandas as pd

    names = getattr(model, "sample_names_", None)
    return pd.DataFrame(result_columns(model), index=None if names is None else pd.Index(names))


def to_mudata(model: Any, mdata: Any) -> None:
    """Write what a fit has found into a ``mudata.MuData`` or ``anndata.AnnData``.

    Parameters
    ----------
    model : estimator
        A fitted model.
    mdata : MuData or AnnData
        Its observations are matched by name if the model was fitted to named samples, else by position. Gets the
        columns ``emvc_label`` and, of an `emvc.EMVC`, ``emvc_confidence``, ``emvc_error_<view>``, ``emvc_outlier``,
        ``emvc_outlier_<view>`` and ``emvc_missing_<view>`` in ``.obs``; the embedding as ``.obsm["X_emvc"]``; and in
        ``.uns["emvc"]`` the version, the class, its parameters as JSON, and view by view name, reliability and weight.

    Raises
    ------
    ValueError
        If the observations are not the samples of the model.

    Examples
    --------
    >>> from anndata import AnnData
    >>> import emvc
    >>> from emvc.datasets import make_paper_synthetic
    >>> one, other = make_paper_synthetic(n_per_cluster=50, random_state=0).views
    >>> adata = AnnData(one, obsm={"other": other})
    >>> emvc.to_anndata(emvc.EMVC(2, random_state=0).fit(adata), adata)
    >>> sorted(adata.obs)[:3], adata.obsm["X_emvc"].shape[0]
    (['emvc_confidence', 'emvc_error_X', 'emvc_error_other'], 100)
    """
    order = _order(model, [str(name) for name in mdata.obs_names], type(mdata).__name__)
    for column, values in result_columns(model, "emvc_").items():
        mdata.obs[column] = values[order]
    if hasattr(model, "confidence_"):
        mdata.obs["emvc_confidence"] = model.confidence_[order]
    if hasattr(model, "embedding_"):
        mdata.obsm["X_emvc"] = np.asarray(model.embedding_)[order]
    mdata.uns["emvc"] = _summary(model)


to_anndata = to_mudata


def _order(model: Any, wanted: list[str], owner: str) -> Any:
    """Return where the model has the observations."""
    names = getattr(model, "sample_names_", None)
    if names is None:
        if len(wanted) != len(model.labels_):
            raise ValueError(f"The model has {len(model.labels_)} samples, the {owner} {len(wanted)} observations.")
        return np.arange(len(wanted))
    position = {str(name): i for i, name in enumerate(names)}
    unknown = [name for name in wanted if name not in position]
    if unknown:
        raise ValueError(f"Observation {unknown[0]!r} is not a sample of the model.")
    return np.array([position[name] for name in wanted])


def _summary(model: Any) -> dict[str, Any]:
    """Return what made the results, as text and arrays."""
    summary: dict[str, Any] = {
        "version": __version__,
        "method": type(model).__name__,
        "params": json.dumps(model.get_params(deep=False), default=repr),
        "n_clusters": int(model.n_clusters_),
        "view_names": np.array(model.view_names_, dtype=str),
    }
    for name in ("reliability_", "view_weights_"):
        if hasattr(model, name):
            summary[name.rstrip("_")] = np.asarray(getattr(model, name), dtype=np.float64)
    return summary
