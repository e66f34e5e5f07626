"""What all estimators share: reading views, building graphs and setting the common attributes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from emvc import graphs, persistence, results
from emvc._array import FloatArray, IntArray
from emvc._threads import n_cores, use_threads
from emvc._validation import (
    Views,
    check_choice,
    check_generator,
    check_integer,
    check_n_clusters,
    check_views,
    to_dense,
)
from emvc.estimators._gaps import gaps_of

_UNNAMED = ("_alone", "_training")
"""What a fit sets although the name does not end like that of a fitted attribute."""


class MultiViewClusterer(ClusterMixin, BaseEstimator):
    """Base of the estimators: ``fit`` judges the input once and hands it to ``_fit``."""

    labels_: IntArray
    n_clusters_: int
    _allow_missing = False
    _allow_gaps = False

    def fit(self, views: Any, y: Any = None) -> Self:
        """Cluster the samples described by ``views``.

        Parameters
        ----------
        views : list, tuple or dict of array-likes, AnnData, MuData, or one array-like
            Arrays, DataFrames (pandas or polars) or scipy sparse matrices of shape (n_samples, n_features of the view).
            The keys of a dict name the views. DataFrames with an index of ids, AnnData and the modalities of a MuData
            are joined on these; all others have the same samples in the same order. Columns of text, dates and
            categories are encoded (see `emvc.intake`).
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If the views or an option cannot be used; the message names the culprit.
        MemoryError
            If the matrices would not fit into memory; nothing has been allocated then.
        """
        del y
        checked = check_views(
            views,
            precomputed=self._is_precomputed(),
            allow_missing=self._allow_missing,
            allow_gaps=self._allow_gaps,
            caller=type(self).__name__,
        )
        check_integer(self.n_init, "n_init", least=1)
        rng = check_generator(self.random_state)
        n_clusters, evidence = self._choose_n_clusters(checked)
        fitted = {"n_clusters_": n_clusters} | self._fit(checked, n_clusters, rng) | evidence
        if self._allow_gaps and "missing_cells_" not in fitted:  # blocks of rows count theirs
            fitted |= gaps_of(checked, type(self).__name__)
        known = checked.codings
        widths = zip(checked.names, checked.n_features, strict=True)
        fitted |= {
            "view_names_": list(checked.names),
            "n_features_in_": sum(len(known[name].names) if name in known else width for name, width in widths),
            "intake_": list(checked.records),
            "_codings_": dict(known),
            "feature_names_in_": input_names(checked),
        }
        if checked.sample_names is not None:
            fitted["sample_names_"] = checked.sample_names
        self._set_fitted(fitted)
        return self

    def labels_frame(self) -> Any:
        """Return labels, errors and flags as a pandas DataFrame (see `emvc.results.result_columns`).

        It is indexed by the samples if the views were DataFrames or a MuData.
        """
        check_is_fitted(self)
        return results.labels_frame(self)

    def save(self, path: str | os.PathLike[str], *, training: bool = True) -> None:
        """Write the fitted model to a file that `emvc.load` reads (see `emvc.persistence.save`)."""
        check_is_fitted(self)
        persistence.save(self, path, training=training)

    def _choose_n_clusters(self, views: Views) -> tuple[int, dict[str, Any]]:
        """Return the number of clusters and attributes that tell how it was found."""
        # One cluster is a degenerate request, allowed for one plain array because scikit-learn's tools make it.
        return check_n_clusters(self.n_clusters, views.n_samples, least=1 if views.single else 2), {}

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the fitted attributes, so that a failed or interrupted fit leaves none behind."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allow_gaps and not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _set_fitted(self, attributes: Mapping[str, Any]) -> None:
        """Take over what a fit has found; nothing of an earlier fit stays behind, which would be mixed with it."""
        for name in [name for name in vars(self) if name.endswith("_") or name in _UNNAMED]:
            delattr(self, name)
        for name, value in attributes.items():
            setattr(self, name, value)

    def _is_precomputed(self) -> bool:
        affinity = getattr(self, "affinity", None)
        return isinstance(affinity, str) and affinity == "precomputed"


def input_names(views: Views) -> dict[str, Any]:
    """Return the names of the columns by view, as they were given, of those views that have any."""
    names = {name: columns for name, columns in zip(views.names, views.feature_names, strict=True) if columns}
    names |= {name: coding.names for name, coding in views.codings.items()}
    unnamed = {name for name, coding in views.codings.items() if not coding.named}
    return {name: np.array(names[name], dtype=str) for name in views.names if name in names and name not in unnamed}


def views_of_fit(views: Any, model: Any, *, caller: str, precomputed: bool = False) -> Views:
    """Check views that a model was fitted to, and return their samples in the order of the fit, if both have names.

    Raises
    ------
    ValueError
        If they are other views, or views of other samples.
    """
    checked = check_views(views, allow_missing=True, allow_gaps=True, precomputed=precomputed, caller=caller)
    checked = _in_order(checked, getattr(model, "sample_names_", None), square=precomputed)
    n_samples = len(model.labels_)
    if checked.n_samples != n_samples:
        raise ValueError(f"The model was fitted to {n_samples} samples, but these views have {checked.n_samples}.")
    known = list(getattr(model, "view_names_", checked.names))
    if list(checked.names) != known:
        raise ValueError(f"The model was fitted to the views {known}, but these are {list(checked.names)}.")
    return checked


def _in_order(views: Views, known: Any, *, square: bool) -> Views:
    """Return the samples in the order of their known names."""
    if known is None or views.sample_names is None or len(known) != views.n_samples:
        return views
    place = {str(name): i for i, name in enumerate(views.sample_names)}
    strange = next((str(name) for name in known if str(name) not in place), None)
    if strange is not None:
        raise ValueError(f"The model was fitted to sample {strange!r}, which these views do not have.")
    order = np.array([place[str(name)] for name in known])
    if np.array_equal(order, np.arange(len(order))):
        return views
    arrays = tuple(array[order][:, order] if square else array[order] for array in views.arrays)
    return replace(views, arrays=arrays, missing=views.missing[order], sample_names=views.sample_names[order])


class GraphOptions(MultiViewClusterer):
    """Estimators that turn every view into a graph by the options affinity, n_neighbors and scale."""

    default_affinity = "local"
    _allow_gaps = True

    def _affinities(self, views: Views, n_clusters: int) -> Iterator[FloatArray]:
        """Yield the affinity of each view, validated options first."""
        name = self._affinity_name()
        n_neighbors = self._n_neighbors(views.n_samples, n_clusters)
        for array, view_name in zip(views.arrays, views.names, strict=True):
            if isinstance(name, str) and name == "precomputed":
                yield to_dense(array)
            else:
                scaled = graphs.scale_view(array, self.scale)
                yield graphs.compute_affinity(scaled, name, name=view_name, n_neighbors=n_neighbors)

    def _n_neighbors(self, n_samples: int, n_clusters: int) -> int:
        check_choice(self.scale, "scale", graphs.SCALES)
        if isinstance(self.n_neighbors, str) and self.n_neighbors == "auto":
            return graphs.default_n_neighbors(n_samples, n_clusters)
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", least=1)
        if n_neighbors >= n_samples:
            raise ValueError(f"n_neighbors={n_neighbors} must be smaller than the number of samples, {n_samples}.")
        return n_neighbors

    def _affinity_name(self) -> Any:
        if callable(self.affinity):
            return self.affinity
        check_choice(self.affinity, "affinity", ("auto", *graphs.AFFINITIES, "precomputed"))
        return self.default_affinity if self.affinity == "auto" else self.affinity


@contextmanager
def limit_threads(n_jobs: int | None) -> Iterator[None]:
    """Run the block with ``n_jobs`` threads; None means as many as BLAS would use (see `emvc._threads`)."""
    number = None
    if n_jobs is not None:
        wanted = check_integer(n_jobs, "n_jobs", least=-1)
        if wanted == 0:
            raise ValueError("n_jobs must not be 0; use None for the default or -1 for all cores.")
        number = n_cores() if wanted < 0 else wanted
    with use_threads(number):
        yield
