"""Labels for new samples: rows against the training samples, like these themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import View, Views, check_memory
from emvc.method.blocks import coordinates, nearest
from emvc.method.prepare import place, prepare
from emvc.method.reference import Reference
from emvc.spectral import has_unit_rows

_BLOCK = 1_000


@dataclass(frozen=True, eq=False)
class Training:
    """What a fitted model keeps of the views: the states, and where rows go from there.

    Attributes
    ----------
    views : tuple of arrays or CSR matrices
        Samples among which the states are; zero where missing.
    missing : ndarray of bool of shape (n_samples, n_views)
        Which of them a view does not have.
    names : tuple of str
        Names of the views.
    n_neighbors : int
        Neighbours in a graph over these samples.
    single : bool
        Whether the model was fitted to one plain array.
    image : ndarray of shape (n_states, n_components)
        The coordinates of a row are its consensus times this.
    centers : ndarray of shape (n_clusters, n_components)
        Centres of the clusters.
    """

    views: tuple[View, ...]
    missing: BoolArray
    names: tuple[str, ...]
    n_neighbors: int
    single: bool
    image: FloatArray
    centers: FloatArray


# Outside of the model, because predicting must not change it; an entry goes when its model goes.
_REFERENCES: WeakKeyDictionary[Training, Reference] = WeakKeyDictionary()


def remember(training: Training, reference: Reference) -> None:
    """Keep the reference of a fit for later predictions."""
    _REFERENCES[training] = reference


def reference_of(model: Any) -> Reference:
    """Return the reference of a fitted `emvc.EMVC`; after loading it is measured anew, to the same result."""
    training: Training = model._training
    if training not in _REFERENCES:
        views = Views(tuple(training.views), tuple(training.names), training.single, training.missing)
        n_states = views.n_samples
        check_memory(3 * len(views.arrays) + 3, (n_states, n_states), advice="Fit a model to a subset of the samples.")
        settings = model._settings(n_states, model.n_clusters_)
        remember(training, prepare(views, settings, model._dtype(model._make_solver())).reference)
    return _REFERENCES[training]


@dataclass(frozen=True, eq=False)
class NewSamples:
    """New samples, described by the training samples.

    Attributes
    ----------
    labels : ndarray of int
        Clusters, -1 for samples that no view can be believed about if the model labels them so.
    points : ndarray of shape (n_samples, n_components)
        Coordinates in the embedding.
    votes : ndarray of shape (n_samples, n_clusters)
        Shares of the links that lead to each cluster.
    """

    labels: IntArray
    points: FloatArray
    votes: FloatArray


def describe_new(model: Any, views: Views) -> NewSamples:
    """Describe new samples, a block of them at a time."""
    starts = range(0, views.n_samples, _BLOCK)
    parts = [_describe_block(model, views.take(np.arange(s, min(s + _BLOCK, views.n_samples)))) for s in starts]
    return NewSamples(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("labels", "points", "votes")))


def _describe_block(model: Any, views: Views) -> NewSamples:
    training, reference = model._training, reference_of(model)
    screening = reference.screening.look_at(views)
    believed = screening.shown(views.missing).any(axis=1)
    inside, lost = np.flatnonzero(believed), np.flatnonzero(~believed)
    consensus = np.empty((views.n_samples, reference.n_states))
    if len(inside):
        rows = reference.rows(views.take(inside), np.full(len(inside), -1), screening.take(inside))
        consensus[inside] = rows.problem.solve().consensus
    if len(lost):
        consensus[lost] = place(reference, views.take(lost), screening.take(lost))
    points = coordinates(consensus, training.image, unit_rows=has_unit_rows(model.embedding))
    labels = nearest(points, training.centers)
    if model.outliers == "label":
        labels[lost] = -1
    return NewSamples(labels, points, cluster_votes(consensus, state_clusters(model), model.n_clusters_))


def state_clusters(model: Any) -> IntArray:
    """Return the clusters of the states that the consensus leads to."""
    labels = np.asarray(model.labels_)
    landmarks = getattr(model, "landmarks_", None)
    if landmarks is not None:
        return np.asarray(labels[np.asarray(landmarks)])
    kept = getattr(model, "_kept_", None)
    return np.asarray(labels if kept is None else labels[kept])


def cluster_votes(consensus: FloatArray, states: IntArray, n_clusters: int) -> FloatArray:
    """Return which share of the links of each row leads to each cluster."""
    votes = consensus @ np.eye(n_clusters, dtype=consensus.dtype)[:, states].T
    sums = votes.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, votes / np.where(sums > 0, sums, 1.0), 1.0 / n_clusters), dtype=np.float64)


def check_features(views: Views, training: Training, names: Sequence[str], caller: str) -> None:
    """Reject views that are not as many, or not as wide, as those of the fit."""
    if len(views.arrays) != len(training.views):
        raise ValueError(f"{caller} was fitted to {len(training.views)} views, but got {len(views.arrays)}.")
    for name, array, known in zip(names, views.arrays, training.views, strict=True):
        if array.shape[1] != known.shape[1]:
            if views.single:  # the wording that scikit-learn prescribes
                message = (
                    f"X has {array.shape[1]} features, but {caller} is expecting {known.shape[1]} features as input."
                )
            else:
                message = f"view {name!r} has {array.shape[1]} features, but {caller} was fitted to {known.shape[1]}."
            raise ValueError(message)
