"""How sure a cluster is of its samples: links, in units of how often samples keep their cluster.

The share of a sample's links that lead to its own cluster orders samples by how clear they are, but is no probability.
Fits to parts of the samples tell how often samples with such a share keep their cluster; a strictly rising curve
through that (centred isotonic regression) turns one into the other and keeps their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

from emvc._array import FloatArray, IntArray
from emvc._validation import Views
from emvc.estimators._predict import cluster_votes, state_clusters

RESAMPLES = 20
"""Fits to parts of the samples that the curve is drawn through."""

PART = 0.8
"""Share of the samples in such a part."""


def resample(
    model: Any, views: Views, n_clusters: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield samples and their labels by fits to parts of the samples, drawn without replacement."""
    square = model._is_precomputed()
    number = max(round(PART * views.n_samples), min(n_clusters + 1, views.n_samples))
    refitted = clone(model).set_params(n_clusters=n_clusters, n_landmarks=None, outliers="assign")
    if not isinstance(refitted.n_neighbors, str):
        refitted.set_params(n_neighbors=min(refitted.n_neighbors, number - 1))
    for _ in range(n_resamples):
        part = np.sort(rng.choice(views.n_samples, number, replace=False))
        seed = np.random.default_rng(int(rng.integers(2**31)))
        yield part, refitted._fit(views.take(part, square=square), n_clusters, seed)["labels_"]


def matched(labels: IntArray, wanted: IntArray, n_clusters: int) -> IntArray:
    """Return labels renamed so that as many as possible are those that are wanted.

    Examples
    --------
    >>> import numpy as np
    >>> matched(np.array([1, 1, 0]), np.array([0, 0, 1]), 2)
    array([0, 0, 1])
    """
    named = wanted >= 0
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, (labels[named], wanted[named]), 1.0)
    names = np.empty(n_clusters, dtype=np.intp)
    rows, columns = linear_sum_assignment(-table)
    names[rows] = columns
    return names[labels]


def calibrate(model: Any) -> FloatArray:
    """Return a rising curve, shares of links and probabilities of keeping a cluster, for a fitted `emvc.EMVC`."""
    training = model._training
    if model.n_clusters_ < 2:
        return np.array([[0.0, 1.0], [1.0, 1.0]])
    views = Views(tuple(training.views), tuple(training.names), training.single, training.missing)
    wanted = np.asarray(model.labels_)
    landmarks = getattr(model, "landmarks_", None)
    if landmarks is not None:  # without those that were drawn, but cannot be believed
        views, wanted = views.take(model._kept_), wanted[np.asarray(landmarks)]
    if len(wanted) != views.n_samples:
        raise AttributeError("Confidence needs a fit to arrays.")
    shares = votes_of(model)
    shares = shares if landmarks is None else shares[np.asarray(landmarks)]
    kept, seen = np.zeros((2, len(wanted)))
    rng = np.random.default_rng(0)
    for part, labels in resample(model, views, model.n_clusters_, RESAMPLES, rng):
        seen[part] += 1.0
        kept[part] += matched(labels, wanted[part], model.n_clusters_) == wanted[part]
    known = np.flatnonzero((seen > 0) & (wanted >= 0))
    own = shares[known, wanted[known]]
    return rising_curve(own, kept[known] / seen[known], seen[known])


def rising_curve(shares: FloatArray, kept: FloatArray, weights: FloatArray) -> FloatArray:
    """Return a strictly rising curve through points, from the origin: centred isotonic regression.

    Isotonic regression is flat over blocks of points; lines between the centres of these keep the order within.

    Examples
    --------
    >>> import numpy as np
    >>> rising_curve(np.array([0.2, 0.4, 0.8]), np.array([0.6, 0.4, 1.0]), np.ones(3))
    array([[0. , 0.3, 0.8],
           [0. , 0.5, 1. ]])
    """
    order = np.argsort(shares, kind="stable")
    fitted = isotonic_regression(kept[order], sample_weight=weights[order])
    levels, block = np.unique(fitted, return_inverse=True)
    centers = np.bincount(block, weights[order] * shares[order]) / np.bincount(block, weights[order])
    first = np.zeros(int(centers[0] > 0))
    return np.stack([np.append(first, centers), np.append(first, levels)])


def votes_of(model: Any) -> FloatArray:
    """Return which share of the links of each training sample leads to each cluster."""
    consensus = np.asarray(model.consensus_)
    landmarks = getattr(model, "landmarks_", None)
    states = state_clusters(model) if landmarks is not None else np.asarray(model.labels_)
    known = states >= 0
    return cluster_votes(consensus[:, known], states[known], model.n_clusters_)


def memberships(votes: FloatArray, labels: IntArray, curve: FloatArray) -> FloatArray:
    """Return probabilities of the clusters: that of the own one by the curve, the rest divided like the links."""
    found = votes.copy()
    named = np.flatnonzero(labels >= 0)
    if votes.shape[1] < 2:
        return np.ones_like(votes)
    own = labels[named]
    sure = np.interp(votes[named, own], curve[0], curve[1])
    others = votes[named]
    others[np.arange(len(named)), own] = 0.0
    sums = others.sum(axis=1, keepdims=True)
    even = np.full(others.shape, 1.0 / (votes.shape[1] - 1))
    even[np.arange(len(named)), own] = 0.0
    others = np.where(sums > 0, others / np.where(sums > 0, sums, 1.0), even)
    found[named] = others * (1.0 - sure)[:, None]
    found[named, own] = sure
    return found
