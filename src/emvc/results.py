"""What a fit has found, by sample: as columns, as a DataFrame, or inside a MuData."""

from __future__ import annotations

from typing import Any

import numpy as np


def result_columns(model: Any, prefix: str = "") -> dict[str, Any]:
    """Return label, error by view, and flags of each sample as columns by name.

    ``outlier`` marks samples that no view which shows them can be believed about; ``outlier_<view>`` those condemned
    in one view, and ``missing_<view>`` those that a view does not have.
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
    """Write what a fit has found into the ``.obs`` of a ``mudata.MuData``.

    Parameters
    ----------
    model : estimator
        A fitted model.
    mdata : MuData
        Its observations are matched by name if the model was fitted to named samples, else by position. Gets the
        columns ``emvc_label`` and, of an `emvc.EMVC`, ``emvc_error_<view>``, ``emvc_outlier``, ``emvc_outlier_<view>``
        and ``emvc_missing_<view>``.

    Raises
    ------
    ValueError
        If the observations are not the samples of the model.
    """
    wanted = [str(name) for name in mdata.obs_names]
    names = getattr(model, "sample_names_", None)
    if names is None:
        if len(wanted) != len(model.labels_):
            raise ValueError(f"The model has {len(model.labels_)} samples, the MuData {len(wanted)} observations.")
        order = np.arange(len(wanted))
    else:
        position = {str(name): i for i, name in enumerate(names)}
        unknown = [name for name in wanted if name not in position]
        if unknown:
            raise ValueError(f"Observation {unknown[0]!r} of the MuData is not a sample of the model.")
        order = np.array([position[name] for name in wanted])
    for column, values in result_columns(model, "emvc_").items():
        mdata.obs[column] = values[order]
