"""One table whose columns belong to several views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

Columns = Sequence[Any] | Callable[[Any], Sequence[Any]]


class ViewSplitter(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Split one table into views by its columns, as the first step of a pipeline.

    Parameters
    ----------
    columns : dict
        By name of the view, its columns: a list of names (of positions for an array), or a function of the table that
        returns them, such as ``sklearn.compose.make_column_selector``. Other columns are not used.

    Attributes
    ----------
    columns_ : dict
        By name of the view, the list of its columns.
    unused_ : list
        Columns that are in no view.
    feature_names_in_ : ndarray of str
        Columns of the table, if it is a DataFrame whose columns have names.
    n_features_in_ : int
        Number of columns of the table.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from emvc import EMVC, ViewSplitter
    >>> points = np.repeat([[0.0], [5.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 4))
    >>> table = pd.DataFrame(points, columns=["g1", "g2", "p1", "p2"])
    >>> splitter = ViewSplitter(columns={"gene": ["g1", "g2"], "protein": ["p1", "p2"]})
    >>> model = make_pipeline(splitter, EMVC(2, random_state=0)).fit(table)
    >>> model.predict(table.iloc[:3]).tolist()
    [0, 0, 0]
    """

    def __init__(self, columns: Mapping[str, Columns]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns of each view.

        Parameters
        ----------
        X : DataFrame (pandas or polars) or array of shape (n_samples, n_features)
            The table.
        y : ignored
            Present for compatibility with scikit-learn.

        Raises
        ------
        ValueError, TypeError
            If a view has no column, or one that the table does not have; the message names both.
        """
        del y
        known = _columns_of(X)
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise TypeError(f"columns must be a dict of view -> list of columns, got {self.columns!r}.")
        self.columns_ = {str(name): _choose(str(name), wanted, X, known) for name, wanted in self.columns.items()}
        used = {column for chosen in self.columns_.values() for column in chosen}
        self.unused_ = [column for column in known if column not in used]
        self.n_features_in_ = len(known)
        if known and all(isinstance(column, str) for column in known):
            self.feature_names_in_ = np.array(known, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    def transform(self, X: Any) -> dict[str, Any]:
        """Return the views by name, as DataFrames if the table is one; further columns are left aside.

        Raises
        ------
        ValueError
            If a column of a view is missing.
        """
        check_is_fitted(self)
        known = set(_columns_of(X))
        views = {}
        for name, columns in self.columns_.items():
            missing = [column for column in columns if column not in known]
            if missing:
                raise ValueError(f"view {name!r}: the table has no column {missing[0]!r}.")
            views[name] = X[columns] if hasattr(X, "columns") else X[:, columns]
        output = getattr(self, "_sklearn_output_config", {}).get("transform")
        return {name: _as_container(view, self.columns_[name], output) for name, view in views.items()}

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what the views are: ``"pandas"``, ``"polars"``, or ``"default"`` for what the table is."""
        if transform not in ("default", "pandas", "polars", None):
            raise ValueError(f"Unknown transform={transform!r}; choose from 'default', 'pandas', 'polars'.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the columns of all views, as ``view__column``."""
        del input_features
        check_is_fitted(self)
        return np.array([f"{name}__{c}" for name, columns in self.columns_.items() for c in columns], dtype=object)


def _columns_of(table: Any) -> list[Any]:
    if hasattr(table, "columns"):
        return list(table.columns)
    if getattr(table, "ndim", 0) != 2:
        raise TypeError(f"ViewSplitter needs one DataFrame or two-dimensional array, got {type(table).__name__}.")
    return list(range(table.shape[1]))


def _choose(name: str, wanted: Any, table: Any, known: Sequence[Any]) -> list[Any]:
    if isinstance(wanted, str):
        raise TypeError(f"view {name!r}: give a list of columns, not the text {wanted!r}.")
    chosen = list(wanted(table) if callable(wanted) else wanted)
    if not chosen:
        raise ValueError(f"view {name!r} has no column.")
    unknown = [column for column in chosen if column not in known]
    if unknown:
        more = f" and {len(unknown) - 1} others" if len(unknown) > 1 else ""
        raise ValueError(f"view {name!r}: the table has no column {unknown[0]!r}{more}.")
    return chosen


def _as_container(view: Any, columns: Sequence[Any], output: str | None) -> Any:
    """Return a view as a DataFrame of the library that was asked for."""
    names = list(map(str, columns))
    if output == "pandas" and not hasattr(view, "iloc"):
        import pandas as pd

        return view.to_pandas() if hasattr(view, "to_pandas") else pd.DataFrame(view, columns=names)
    if output == "polars" and (hasattr(view, "iloc") or not hasattr(view, "columns")):
        from emvc._containers import require

        polars = require("polars", "polars", "set_output(transform='polars')")
        return polars.from_pandas(view) if hasattr(view, "iloc") else polars.DataFrame(view, schema=names)
    return view
