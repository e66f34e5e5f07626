"""Features that set clusters apart: tests of all views in one table, strongest first, redundant ones grouped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.stats import false_discovery_control

from emvc._array import FloatArray, IntArray
from emvc._validation import Views
from emvc.explanation.contrasts import Contrasts, contrast, rank_rows

LEVEL = 0.05
"""False discovery rate below which a feature counts as a marker."""

CANDIDATES = 50
"""Markers of each cluster and view among which redundant ones are looked for."""

REDUNDANT = 0.7
"""Rank correlation within clusters from which on two markers tell the same."""


@dataclass(frozen=True)
class Markers:
    """Every feature against every cluster, as columns of equal length; rows are ordered by cluster, strongest first.

    Significant features come before the others, and larger effects before smaller ones.

    Attributes
    ----------
    cluster, view, feature : ndarray of int
        Which cluster, which view, and which column of it.
    effect, difference, p_value, fdr : ndarray of float
        See `emvc.explanation.contrasts.Contrasts`; ``fdr`` is the p-value after Benjamini and Hochberg over all rows.
    group : ndarray of int
        The feature of the same cluster and view that says the same and is stronger, or the feature itself; -1 for those
        that were not compared.
    feature_names : tuple of sequence of str
        Names of the features of each view.
    view_names : tuple of str
        Names of the views.
    """

    cluster: Any
    view: Any
    feature: Any
    effect: FloatArray
    difference: FloatArray
    p_value: FloatArray
    fdr: FloatArray
    group: Any
    feature_names: tuple[Sequence[str], ...]
    view_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.cluster)

    def top(self, cluster: int, view: int | None = None, n: int = 10) -> IntArray:
        """Return the rows of the strongest markers of a cluster, one of each group of redundant ones."""
        first, last = np.searchsorted(self.cluster, [cluster, cluster + 1])
        rows = np.arange(first, last)
        leading = (self.fdr[rows] <= LEVEL) & ((self.group[rows] < 0) | (self.group[rows] == self.feature[rows]))
        if view is not None:
            leading &= self.view[rows] == view
        return np.asarray(rows[leading][:n])

    def significant(self, most: int) -> IntArray:
        """Return the rows of significant features, at most so many of each cluster and view."""
        rows = np.flatnonzero(self.fdr <= LEVEL)
        key = self.cluster[rows].astype(np.int64) * len(self.view_names) + self.view[rows]
        order = np.argsort(key, kind="stable")
        first = np.searchsorted(key[order], key[order])
        kept = np.sort(order[np.arange(len(order)) - first < most])
        return np.asarray(rows[kept])

    def followers(self, row: int) -> list[str]:
        """Return the names of the features that say the same as that of a row."""
        first, last = np.searchsorted(self.cluster, [self.cluster[row], self.cluster[row] + 1])
        own = slice(first, last)
        same = (self.view[own] == self.view[row]) & (self.group[own] == self.feature[row])
        same &= self.feature[own] != self.feature[row]
        return [self.name(int(first + other)) for other in np.flatnonzero(same)]

    def name(self, row: int) -> str:
        """Return the name of the feature of a row."""
        return str(self.feature_names[self.view[row]][self.feature[row]])

    def columns(self, rows: IntArray | None = None) -> dict[str, Any]:
        """Return the table, or some rows of it, as columns by name."""
        chosen = np.arange(len(self)) if rows is None else rows
        view, feature, group = self.view[chosen], self.feature[chosen], self.group[chosen]
        names, groups = np.empty(len(chosen), dtype=object), np.full(len(chosen), "", dtype=object)
        for k, known in enumerate(self.feature_names):
            here = np.asarray([*known, ""], dtype=object)
            names[view == k] = here[feature[view == k]]
            groups[view == k] = here[group[view == k]]
        effect = self.effect[chosen]
        return {
            "cluster": self.cluster[chosen],
            "view": np.asarray(self.view_names, dtype=object)[view],
            "feature": names,
            "direction": np.where(effect > 0, "up", np.where(effect < 0, "down", "")).astype(object),
            "effect": effect,
            "difference": self.difference[chosen],
            "p": self.p_value[chosen],
            "fdr": self.fdr[chosen],
            "group": groups,
        }


def find_markers(
    views: Views,
    feature_names: Sequence[Sequence[str]],
    labels: IntArray,
    n_clusters: int,
    others: Sequence[IntArray] | None = None,
) -> Markers:
    """Compare every cluster with the rest in every feature of every view.

    Parameters
    ----------
    views : Views
        Checked views.
    feature_names : sequence of sequence of str
        Names of the features of each view.
    labels : ndarray of int of shape (n_samples,)
        Clusters.
    n_clusters : int
        Number of clusters.
    others : sequence of ndarray, optional
        Labels that each view had no part in: the p-values are then theirs (see `emvc.explanation.splitting`).
    """
    found = [
        _contrasts(array, missing, labels, n_clusters)
        for array, missing in zip(views.arrays, views.missing.T, strict=True)
    ]
    tested = found
    if others is not None:
        tested = [
            _contrasts(array, missing, own, n_clusters)
            for array, missing, own in zip(views.arrays, views.missing.T, others, strict=True)
        ]
    effect, difference = (
        np.concatenate([getattr(part, n) for part in found]).T.ravel() for n in ("effect", "difference")
    )
    p_value = np.concatenate([part.p_value for part in tested]).T.ravel()
    fdr = false_discovery_control(p_value) if len(p_value) else p_value
    widths = [array.shape[1] for array in views.arrays]
    view = np.tile(np.repeat(np.arange(len(widths), dtype=np.int32), widths), n_clusters)
    feature = np.tile(np.concatenate([np.arange(width, dtype=np.int32) for width in widths]), n_clusters)
    cluster = np.repeat(np.arange(n_clusters, dtype=np.int32), sum(widths))
    order = np.lexsort((feature, view, -np.abs(difference), -np.abs(effect), fdr > LEVEL, cluster))
    markers = Markers(
        cluster=cluster[order],
        view=view[order],
        feature=feature[order],
        effect=effect[order],
        difference=difference[order],
        p_value=p_value[order],
        fdr=fdr[order],
        group=np.full(len(order), -1, dtype=np.int32),
        feature_names=tuple(feature_names),
        view_names=tuple(views.names),
    )
    _group_redundant(markers, views, labels)
    return markers


def _contrasts(array: Any, missing: Any, labels: IntArray, n_clusters: int) -> Contrasts:
    return contrast(array, np.where(missing, -1, labels), n_clusters)


def _group_redundant(markers: Markers, views: Views, labels: IntArray) -> None:
    """Fill in ``group``: each candidate follows the strongest one that it is correlated with inside the clusters."""
    for cluster in range(int(markers.cluster.max(initial=-1)) + 1):
        first, last = np.searchsorted(markers.cluster, [cluster, cluster + 1])
        for k, array in enumerate(views.arrays):
            rows = np.arange(first, last)
            rows = rows[(markers.view[rows] == k) & (markers.fdr[rows] <= LEVEL)][:CANDIDATES]
            if len(rows):
                features = markers.feature[rows]
                shown = np.flatnonzero(~views.missing[:, k] & (labels >= 0))
                values = column_values(array, features)[shown].T
                markers.group[rows] = features[leaders(values, labels[shown])]


def column_values(array: Any, features: IntArray) -> FloatArray:
    """Return some columns of a view as a dense array."""
    columns = array[:, features]
    return np.asarray(columns.toarray() if scipy.sparse.issparse(columns) else columns, dtype=np.float64)


def leaders(rows: FloatArray, labels: IntArray) -> IntArray:
    """Return for each row the first one that it is correlated with inside the clusters, or itself.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((2, 30))
    >>> leaders(np.stack([x[0], x[1], -x[0]]), np.repeat([0, 1], 15))
    array([0, 1, 0])
    """
    ranks, _ = rank_rows(rows)
    known = ~np.isnan(rows)
    for cluster in np.unique(labels):
        inside = np.flatnonzero(labels == cluster)
        counts = np.maximum(known[:, inside].sum(axis=1, keepdims=True), 1)
        ranks[:, inside] -= ranks[:, inside].sum(axis=1, keepdims=True) / counts
    ranks[~known] = 0.0
    length = np.sqrt((ranks**2).sum(axis=1))
    ranks /= np.where(length > 0, length, 1.0)[:, None]
    alike = np.abs(ranks @ ranks.T) >= REDUNDANT
    found = np.arange(len(rows))
    leading = np.zeros(len(rows), dtype=bool)
    for row in range(len(rows)):
        before = np.flatnonzero(alike[row, :row] & leading[:row])
        leading[row] = not len(before)
        found[row] = row if leading[row] else before[0]
    return found
