r"""Labels for new samples, through the graphs of the views.

A new sample gets a row in the graph of every view that shows it (see `emvc.extension`) and one in the graph of the
joint distances. As in the fit, a view in which it is missing, or in which it stands alone, says nothing about it, and
the joint row stands in. The weighted mean of the rows is a distribution p over the training samples. Its mean position
:math:`\sum_j p_j \phi_j` in the embedding is the place of the new sample there, and the nearest cluster centre gives
the label.

Everything that depends on the training samples alone is computed at the first prediction and kept (`Reference`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._containers import is_mudata, mudata_views
from emvc._validation import View, Views, check_memory, to_dense
from emvc.estimators._robust import sharp_votes
from emvc.extension import Kernel, fit_kernel, prepare_view
from emvc.fusion import JOINT_SHARE, JointScale, fill_unshared, joint_scale
from emvc.screening import Isolation, measure_isolation
from emvc.spectral import scale_rows

_MOST_SAMPLES = 10_000  # of the training set; further ones would cost much and change little
_BLOCK = 1_000


@dataclass(frozen=True, eq=False)
class Training:
    """What a fitted model keeps of the views.

    Attributes
    ----------
    views : tuple of arrays or CSR matrices
        Rows of the training samples that serve as a reference; zero where missing.
    samples : ndarray of int
        Which training samples these are.
    n_neighbors : int
        Neighbours in a graph over these samples.
    single : bool
        Whether the model was fitted to one plain array.
    """

    views: tuple[View, ...]
    samples: IntArray
    n_neighbors: int
    single: bool


def keep_training(views: Views, n_neighbors: int) -> Training:
    """Return copies of the views, or of evenly spread samples of them if there are very many."""
    n_samples = views.n_samples
    samples = np.arange(n_samples)
    if n_samples > _MOST_SAMPLES:
        samples = np.linspace(0, n_samples - 1, _MOST_SAMPLES).astype(np.intp)
        n_neighbors = max(min(n_neighbors, 10), round(n_neighbors * _MOST_SAMPLES / n_samples))
    return Training(tuple(array[samples] for array in views.arrays), samples, n_neighbors, views.single)


@dataclass(frozen=True)
class ViewReference:
    """One view as a new sample meets it: what to compare it with and by which kernel."""

    view: View
    present: IntArray
    scaling: graphs.Scaling
    scaled: View
    inside: IntArray
    kernel: Kernel
    isolation: Isolation | None


@dataclass(frozen=True)
class Reference:
    """The training samples as new samples meet them."""

    views: tuple[ViewReference, ...]
    observed: BoolArray
    missing: BoolArray
    joint: tuple[JointScale, Kernel] | None
    weights: FloatArray
    embedding: FloatArray
    centres: FloatArray
    affinity: str


# Outside of the model, because predicting must not change it; an entry goes when its model goes.
_REFERENCES: WeakKeyDictionary[Training, Reference] = WeakKeyDictionary()


def reference_of(model: Any, affinity: str) -> Reference:
    """Return the reference of a fitted `emvc.EMVC`, from the first prediction on the same one."""
    if model._training not in _REFERENCES:
        _REFERENCES[model._training] = build_reference(model, affinity)
    return _REFERENCES[model._training]


def build_reference(model: Any, affinity: str) -> Reference:
    """Return the reference of a fitted `emvc.EMVC`."""
    training: Training = model._training
    chosen = training.samples
    missing = np.isnan(model.sample_errors_[chosen])
    observed = ~(missing | model.outliers_[chosen])
    n_views = len(training.views)
    joint = bool(model.joint_view) and affinity == "local" and n_views > 1
    check_memory(
        (n_views if joint else 1) + 3, (len(chosen), len(chosen)), advice="Fit a model to a subset of the samples."
    )
    n_kept = int(observed.any(axis=1).sum())
    references, distances = [], []
    for k, view in enumerate(training.views):
        inside, present = np.flatnonzero(observed[:, k]), np.flatnonzero(~missing[:, k])
        n_neighbors = max(min(training.n_neighbors, 10), round(training.n_neighbors * len(inside) / n_kept))
        scaling = graphs.fit_scaling(view[inside], model.scale, denoise=True)
        scaled = prepare_view(scaling.apply(view[inside]), affinity)
        squares = graphs.squared_distances(scaled)
        kernel = fit_kernel(squares, affinity, n_neighbors)
        isolation = measure_isolation(view[present]) if model.screen == "auto" else None
        references.append(ViewReference(view, present, scaling, scaled, inside, kernel, isolation))
        if joint:
            distances.append(_scatter(squares, inside, inside, (len(chosen), len(chosen))))
    weights = np.asarray(model.view_weights_)
    return Reference(
        tuple(references),
        observed,
        missing,
        _joint(distances, observed, weights, training.n_neighbors) if joint else None,
        weights,
        model.embedding_[chosen],
        _centres(model.embedding_, model.labels_, model.n_clusters_),
        affinity,
    )


def _joint(
    distances: Sequence[FloatArray], observed: BoolArray, weights: FloatArray, n_neighbors: int
) -> tuple[JointScale, Kernel]:
    kept = np.flatnonzero(observed.any(axis=1))
    if len(kept) < len(observed):
        distances = [squares[np.ix_(kept, kept)] for squares in distances]
    scale = joint_scale(distances, observed[kept], weights)
    squares = fill_unshared(scale.average(distances, observed[kept], observed[kept]))
    return scale, fit_kernel(squares, "local", n_neighbors)


def _centres(embedding: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    members = np.eye(n_clusters)[:, labels] * (labels >= 0)
    return np.asarray(members @ embedding / np.maximum(members.sum(axis=1, keepdims=True), 1.0))


def _scatter(values: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> FloatArray:
    """Return a matrix that is zero but for ``values`` at the given rows and columns."""
    if values.shape == shape:
        return values
    full = np.zeros(shape)
    full[np.ix_(rows, columns)] = values
    return full


def predict_labels(model: Any, reference: Reference, views: Views) -> IntArray:
    """Return the labels of new samples, -1 for those that no view can be believed about if the model labels them so."""
    parts = [_predict_block(model, reference, block, missing) for block, missing in _blocks(reference, views)]
    return np.concatenate(parts)


def _blocks(reference: Reference, views: Views) -> Iterator[tuple[list[View], BoolArray]]:
    arrays = [_like(array, known.view) for array, known in zip(views.arrays, reference.views, strict=True)]
    for start in range(0, views.n_samples, _BLOCK):
        rows = slice(start, start + _BLOCK)
        yield [array[rows] for array in arrays], views.missing[rows]


def _like(array: View, known: View) -> View:
    """Return the array sparse or dense as the training view was."""
    if scipy.sparse.issparse(known):
        return scipy.sparse.csr_matrix(array)
    return to_dense(array)


def _predict_block(model: Any, reference: Reference, arrays: list[View], missing: BoolArray) -> IntArray:
    alone = np.zeros_like(missing)
    for k, (array, known) in enumerate(zip(arrays, reference.views, strict=True)):
        here = np.flatnonzero(~missing[:, k])
        if known.isolation is not None and len(here):
            scores = known.isolation.score(known.view[known.present], array[here])
            alone[here, k] = scores >= known.isolation.bar
    shown = ~(missing | alone)
    lost = ~shown.any(axis=1)
    votes = extend_rows(reference, arrays, shown)
    if lost.any():
        votes[lost] = _lost_votes(reference, [array[lost] for array in arrays], missing[lost])
    labels = _nearest(reference, votes, unit=model.embedding == "unit-rows")
    if model.outliers == "label":
        labels[lost] = -1
    return labels


def extend_rows(reference: Reference, arrays: list[View], shown: BoolArray) -> FloatArray:
    """Return a distribution over the training samples for each new one; zero where no view shows it."""
    shape = (len(shown), len(reference.observed))
    rows, distances = [], []
    for k, (array, known) in enumerate(zip(arrays, reference.views, strict=True)):
        here = np.flatnonzero(shown[:, k])
        squares = np.empty((0, len(known.inside)))
        if len(here):
            new = prepare_view(known.scaling.apply(array[here]), reference.affinity)
            squares = graphs.squared_distances_between(new, known.scaled)
        weights = known.kernel.rows(squares) if len(here) else squares
        sums = weights.sum(axis=1, keepdims=True)
        weights = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), 1.0 / max(len(known.inside), 1))
        rows.append(_scatter(weights, here, known.inside, shape))
        if reference.joint is not None:
            distances.append(_scatter(squares, here, known.inside, shape))
    guess = _observed_mean(rows, shown, reference.weights)
    if reference.joint is not None:
        guess = _joint_rows(reference, distances, shown, guess)
    joint_weight = reference.weights.sum() * JOINT_SHARE / (1.0 - JOINT_SHARE) if reference.joint is not None else 0.0
    total = joint_weight * guess
    for k, row in enumerate(rows):
        total += reference.weights[k] * _complete(row, shown[:, k], reference.observed[:, k], guess)
    sums = total.sum(axis=1, keepdims=True)
    return np.asarray(total / np.where(sums > 0, sums, 1.0))


def _observed_mean(rows: Sequence[FloatArray], shown: BoolArray, weights: FloatArray) -> FloatArray:
    total = np.zeros_like(rows[0])
    for k, row in enumerate(rows):
        total += weights[k] * row
    count = shown @ weights
    return np.asarray(total / np.where(count > 0, count, 1.0)[:, None])


def _joint_rows(
    reference: Reference, distances: Sequence[FloatArray], shown: BoolArray, otherwise: FloatArray
) -> FloatArray:
    """Return rows in the graph of joint distances."""
    assert reference.joint is not None
    scale, kernel = reference.joint
    kept = np.flatnonzero(reference.observed.any(axis=1))
    squares = scale.average([part[:, kept] for part in distances], shown, reference.observed[kept])
    far = np.isnan(squares)
    squares[far] = 2.0 * np.max(squares, initial=1.0, where=~far)
    weights = kernel.rows(squares)
    weights[far] = 0.0
    sums = weights.sum(axis=1, keepdims=True)
    guess = otherwise.copy()
    guess[:, kept] = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), otherwise[:, kept])
    return guess


def _complete(row: FloatArray, shown: BoolArray, observed: BoolArray, guess: FloatArray) -> FloatArray:
    """Fill what a view does not show with the guess, as `emvc.fusion` does for training samples."""
    if shown.all() and observed.all():
        return row
    full = row * (guess @ observed)[:, None] + guess * ~observed
    return np.where(shown[:, None], full, guess)


def _lost_votes(reference: Reference, arrays: list[View], missing: BoolArray) -> FloatArray:
    """Return votes of the kept by distances relative to their mean, for samples that stand alone wherever they are."""
    kept = np.flatnonzero(reference.observed.any(axis=1))
    total, count = np.zeros((len(missing), len(kept))), np.zeros((len(missing), 1))
    for k, (array, known) in enumerate(zip(arrays, reference.views, strict=True)):
        there, here = np.flatnonzero(~missing[:, k]), np.flatnonzero(~reference.missing[kept, k])
        if len(there) and len(here):
            scaling = known.scaling
            squares = graphs.squared_distances_between(
                scaling.apply(array[there]), scaling.apply(known.view[kept[here]])
            )
            mean = squares.mean(axis=1, keepdims=True)
            part = np.ones((len(there), len(kept)))
            part[:, here] = squares / np.where(mean > 0, mean, 1.0)
            total[there] += part
            count[there] += 1.0
    votes = np.zeros((len(missing), len(reference.observed)))
    votes[:, kept] = sharp_votes(total / np.maximum(count, 1.0))
    return votes


def _nearest(reference: Reference, votes: FloatArray, *, unit: bool) -> IntArray:
    """Return the cluster centre nearest to the mean position of the votes."""
    points = votes @ reference.embedding
    if unit:
        points = scale_rows(points)
    return np.asarray(np.argmin(graphs.squared_distances_between(points, reference.centres), axis=1))


def match_views(views: Any, names: Sequence[str], *, single: bool) -> Any:
    """Return the views of a dict or a MuData in the order of ``names``; other containers as they are.

    Raises
    ------
    ValueError
        If a name is missing or unknown.
    """
    if is_mudata(views):
        views = mudata_views(views)
    if not isinstance(views, Mapping) or scipy.sparse.issparse(views):
        return views
    given = {str(name): view for name, view in views.items()}
    if single and len(given) == 1:
        return next(iter(given.values()))
    for name in names:
        if name not in given:
            raise ValueError(f"view {name!r} is missing; the model was fitted to {', '.join(map(repr, names))}.")
    for name in given:
        if name not in names:
            raise ValueError(f"view {name!r} is unknown; the model was fitted to {', '.join(map(repr, names))}.")
    return {name: given[name] for name in names}


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
