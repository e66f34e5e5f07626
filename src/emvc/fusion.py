r"""From affinities and distances of the views to the data of the decomposition: chains, masks and weights.

**Joint view.** The distances of all views, each divided by its mean, are averaged over the views that show both
samples; their graph is view K + 1. It carries `JOINT_SHARE` of the total weight, less where many samples are missing
from a view: single views are often too poor to tell all clusters apart, and an average of poor graphs is poor where a
graph of averaged distances is not. Views that are mostly noise enter with the distances of the signal that they share
(`Distances`).

**Weights.** With F the leading eigenvectors of the mean chain, the quality of view k is the mean of
:math:`f'S_kf` over the columns of F besides the first, corrected for what self-loops alone would give: 0 for a view of
noise, 1 for one with the same clusters. A view keeps its full weight down to half the quality of the best one, and
loses it quadratically below.

**Masks.** A sample that view k does not show, or that is condemned there, has neither row nor column in :math:`P_k`.
Since the rows of P sum to one over all samples but those of :math:`P_k` over the observed ones only, each row of
:math:`P_k` is multiplied by the share of the joint chain that falls on observed samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emvc._array import BoolArray, FloatArray, IntArray
from emvc._threads import matmul
from emvc.graphs import by_rows, local_graph, transition_matrix, weighted_mean, weighted_sum
from emvc.screening import (
    CONTRAST_SPREAD,
    contrast,
    disagreement,
    find_mismatches,
    spare_the_many,
    standardize,
)
from emvc.spectral import leading_eigenvectors, thin_out

JOINT_SHARE = 0.45
POOLED_SHARE = 0.7
"""Share of the joint view if all views are pooled (`Distances`)."""

_INCOMPLETE = 0.6  # part of this share that is lost if every sample is missing from some view
_FULL_WEIGHT = 0.5  # share of the best quality down to which a view counts in full
_LEAST_WEIGHT = 0.01
LEAST_SPREAD = 0.05
"""Least spread of the disagreement of a view."""

_CORRELATION_SAMPLES = 400
_ROUNDING = 1e-7  # spread of equal numbers, relative to them
_FEW_INCOMPLETE = 0.1  # share of samples that are missing from some view


@dataclass
class Distances:
    """Squared distances of the views, for the joint view.

    Attributes
    ----------
    squares : list of ndarray of shape (n_samples, n_samples)
        Distances of each view.
    n_pooled : int
        Number of views that are mostly noise and have the distances of what they share (`emvc.denoising`) instead of
        their own. Where all do, single views say little that the joint one does not, and it counts for more.
    """

    squares: list[FloatArray] = field(default_factory=list)
    n_pooled: int = 0

    def share(self, observed: BoolArray) -> float:
        """Return the share of the joint view in the total weight.

        Joint distances of a sample that some view does not show rest on the others alone, and say no more than their
        own graphs do.
        """
        complete = JOINT_SHARE + (POOLED_SHARE - JOINT_SHARE) * self.n_pooled / len(self.squares)
        return complete * (1.0 - _INCOMPLETE * float(np.mean(~observed.all(axis=1))))


@dataclass(frozen=True)
class Chains:
    """The data of the decomposition.

    Attributes
    ----------
    transitions : ndarray of shape (n_views + 0 or 1, n_samples, n_samples)
        Chains of the views, then the joint one if there is one. Entries that are not observed hold a guess.
    observed : ndarray of shape (n_views + 0 or 1, n_samples)
        One where a sample is observed, zero elsewhere.
    weights : ndarray of shape (n_views + 0 or 1,)
        Weights of the views, one on average.
    quality : ndarray of shape (n_views,)
        Agreement of each view with the clusters of all.
    disagreement : ndarray of shape (n_samples, n_views)
        See `emvc.screening.disagreement`.
    contrast : ndarray of shape (n_samples, n_views)
        Standard scores of `emvc.screening.contrast`; NaN if it was not asked for or cannot be told.
    mismatched : ndarray of bool of shape (n_samples, n_views)
        Samples condemned because of it.
    """

    transitions: FloatArray
    observed: FloatArray
    weights: FloatArray
    quality: FloatArray
    disagreement: FloatArray
    contrast: FloatArray
    mismatched: BoolArray

    @property
    def own_weights(self) -> FloatArray:
        """Weights of the views without the joint one."""
        return self.weights[: len(self.quality)]

    @property
    def n_effective(self) -> int:
        """Number of views, without the joint one, that count in full or nearly so."""
        return int(np.sum(self.own_weights >= 0.5 * self.own_weights.max()))

    @property
    def n_shown(self) -> float:
        """Number of chains that show the average sample."""
        return float(self.observed.mean(axis=1).sum())

    @property
    def mean(self) -> FloatArray:
        """The weighted mean of the chains: what plain averaging gives."""
        return weighted_mean(self.transitions, self.weights)


def fuse(
    affinities: Iterable[FloatArray],
    distances: Distances | None,
    observed: BoolArray,
    n_clusters: int,
    *,
    n_neighbors: int,
    screen: bool = True,
    weigh: bool = True,
) -> Chains:
    """Turn graphs of the views into chains with masks and weights.

    Parameters
    ----------
    affinities : iterable of ndarray of shape (n_samples, n_samples)
        Affinities of the views; rows and columns of samples that are not observed are ignored.
    distances : Distances or None
        What the joint view is made of; None for no joint view. Looked at after the affinities, so they may come about
        with them.
    observed : ndarray of bool of shape (n_samples, n_views)
        Which samples a view shows. Each must be shown by one view at least.
    n_clusters : int
        Number of leading eigenvectors that judge the views.
    n_neighbors : int
        Neighbours in the graph of the joint view.
    screen : bool
        Whether to condemn mismatched samples.
    weigh : bool
        Whether to weigh the views by their quality.
    """
    n_samples, n_views = observed.shape
    extra = 1 if distances is not None else 0
    transitions = np.empty((n_views + extra, n_samples, n_samples))
    for k, affinity in enumerate(affinities):
        _to_chain(affinity, observed[:, k], transitions[k])
    share = distances.share(observed) if distances is not None else 0.0
    own = transitions[:n_views]
    scores = disagreement(own, observed)
    contrasts, mismatched = np.full(observed.shape, np.nan), np.zeros_like(observed)
    if screen and n_views >= 3:
        contrasts = _standard(contrast(own, observed), CONTRAST_SPREAD)
        mismatched = spare_the_many(find_mismatches(contrasts))
        observed = observed & ~mismatched
        for k in map(int, np.flatnonzero(mismatched.any(axis=0))):
            chain = own[k]
            _to_chain(chain, observed[:, k], chain)

    quality = view_quality(own, observed, n_clusters) if weigh and n_views > 1 else np.ones(n_views)
    weights = _weights(quality)
    if distances is not None:
        joint = joint_distances(distances.squares, observed, weights)
        transition_matrix(local_graph(joint, n_neighbors), out=transitions[-1])
        weights = np.append(weights * (1.0 - share) / weights.sum(), share)
        guess = transitions[-1]
    else:
        guess = _observed_mean(own, observed, weights)
    for k in range(n_views):
        _complete(own[k], observed[:, k], guess)
    masks = np.ones((n_views + extra, n_samples))
    masks[:n_views] = observed.T
    return Chains(transitions, masks, weights * len(weights) / weights.sum(), quality, scores, contrasts, mismatched)


def _to_chain(affinity: FloatArray, observed: BoolArray, out: FloatArray) -> None:
    """Write the chain between the samples that are observed to ``out``."""
    if not observed.all():
        if out is not affinity:
            out[...] = affinity
        out[~observed] = 0.0
        out[:, ~observed] = 0.0
        affinity = out
    transition_matrix(affinity, out=out)


def standard_disagreement(scores: FloatArray, observed: BoolArray) -> FloatArray:
    """Return disagreement in robust standard scores of each view, zero where it is not observed."""
    return np.nan_to_num(_standard(np.where(observed, scores, np.nan), LEAST_SPREAD))


def _standard(scores: FloatArray, least_spread: float) -> FloatArray:
    """Return robust standard scores of each view, NaN where the scores are."""
    standard = np.full(scores.shape, np.nan)
    for k in range(scores.shape[1]):
        known = np.flatnonzero(~np.isnan(scores[:, k]))
        standard[known, k] = standardize(scores[known, k], least_spread=least_spread)
    return standard


def view_quality(transitions: FloatArray, observed: BoolArray, n_clusters: int) -> FloatArray:
    """Return how well the clusters of the mean chain fit each view: about 0 for noise, at most 1."""
    n_views, n_samples, _ = transitions.shape
    n_components = min(n_clusters, n_samples)
    if n_components < 2:
        return np.ones(n_views)
    mean = thin_out(_observed_mean(transitions, observed, np.ones(n_views)))
    vectors = leading_eigenvectors(0.5 * (mean + mean.T), n_components)[0][:, 1:]
    quality = np.empty(n_views)
    for k, chain in enumerate(transitions):
        inside = observed[:, k]
        part = np.zeros_like(vectors)
        part[inside] = vectors[inside] - vectors[inside].mean(axis=0)
        fit = float(np.sum(part * matmul(chain, part)) / max(np.sum(part * part), 1e-300))
        loops = float(np.mean(np.diag(chain)[inside]))
        quality[k] = (fit - loops) / max(1.0 - loops, 1e-12)
    return quality


def _weights(quality: FloatArray) -> FloatArray:
    best = float(quality.max())
    if best <= 0:
        return np.ones(len(quality))
    relative = np.clip(quality / (_FULL_WEIGHT * best), 0.0, 1.0)
    return np.asarray(np.maximum(relative**2, _LEAST_WEIGHT))


@dataclass(frozen=True)
class JointScale:
    """Units in which the distances of the views are averaged.

    Attributes
    ----------
    weights : ndarray of shape (n_views,)
        Weights of the views, zero where all samples coincide.
    means : ndarray of shape (n_views,)
        Mean squared distance of each view.
    factors : ndarray of shape (n_views + 1,), or None
        Shrinkage by the number of views that two samples share; None if all are in all views.
    """

    weights: FloatArray
    means: FloatArray
    factors: FloatArray | None

    def average(self, distances: Sequence[FloatArray], rows: BoolArray, columns: BoolArray) -> FloatArray:
        """Return joint distances from those of the views, between samples that the views show as told by the masks.

        Distances that involve a sample which the view does not show are ignored; pairs that share no view get NaN.
        """
        used = np.flatnonzero(self.weights > 0)

        def average_of_all() -> FloatArray:
            shares = self.weights[used] / self.weights[used].sum()
            return weighted_sum([distances[int(k)] for k in used], shares / self.means[used])

        if len(used) and rows[:, used].all() and columns[:, used].all() and self.factors is None:
            return average_of_all()

        def average(some: Any, others: Any) -> FloatArray:
            parts = [squares[some][:, others] for squares in distances]
            return self._average(parts, rows[some], columns[others])

        some, others = _incomplete(rows), _incomplete(columns)
        if len(used) and _are_few(some, rows) and _are_few(others, columns):
            total = average_of_all()
            total[some], total[:, others] = average(some, slice(None)), average(slice(None), others)
            return total
        total = np.empty((len(rows), len(columns)))

        def fill(part: slice) -> None:
            total[part] = average(part, slice(None))

        by_rows(fill, len(rows))
        return total

    def _average(self, distances: Sequence[FloatArray], rows: BoolArray, columns: BoolArray) -> FloatArray:
        """Return `average` of a few rows, some of which are not everywhere shown."""
        total, count = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
        for k, squares in enumerate(distances):
            if self.weights[k] > 0:
                shown = squares
                if not (rows[:, k].all() and columns[:, k].all()):
                    shown = squares * rows[:, k, None] * columns[:, k]
                total += (self.weights[k] / self.means[k]) * shown
                count += self.weights[k] * np.outer(rows[:, k], columns[:, k])
        alone = count <= 0
        total /= np.where(alone, 1.0, count)
        if self.factors is not None:
            n_shared = rows.astype(np.float64) @ columns.T
            total = np.maximum(1.0 + (total - 1.0) * self.factors[n_shared.astype(np.intp)], 0.0)
        total[alone] = np.nan
        return total


def joint_scale(distances: Sequence[FloatArray], observed: BoolArray, weights: FloatArray) -> JointScale:
    """Return the units for `joint_distances`."""
    means = np.empty(len(weights))
    for k, (squares, seen) in enumerate(zip(distances, observed.T, strict=True)):
        n_seen = int(seen.sum())
        means[k] = float(seen @ (squares @ seen.astype(np.float64))) / max(n_seen * (n_seen - 1), 1)
    varied = means > 0
    factors = None
    if not observed.all() and observed.shape[1] > 1:
        factors = _shrinkage(distances, observed, np.where(varied, 1.0 / np.where(varied, means, 1.0), 0.0))
    return JointScale(np.where(varied, weights, 0.0), means, factors)


def joint_distances(distances: Sequence[FloatArray], observed: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the mean over the views of squared distances in units of their mean, for pairs that share a view.

    The mean of few distances varies more than that of many, so that pairs which few views show would have more than
    their part of the nearest neighbours. Their deviation from 1 is therefore shrunk until it varies as much as that of
    the mean over all views (`_shrinkage`). Pairs that share no view get twice the largest distance.
    """
    total = joint_scale(distances, observed, weights).average(distances, observed, observed)
    return fill_unshared(total)


def fill_unshared(total: FloatArray) -> FloatArray:
    """Replace NaN by twice the largest joint distance and clear the diagonal, in place."""
    alone = np.isnan(total)
    if alone.any():
        total[alone] = 0.0
        total[alone] = 2.0 * total.max() or 1.0
    np.fill_diagonal(total, 0.0)
    return total


def _shrinkage(distances: Sequence[FloatArray], observed: BoolArray, scales: FloatArray) -> FloatArray:
    r"""Return the deviation of the mean over all views over that of the mean over m of them, for m = 0, ..., K.

    With equal variances and correlation :math:`\rho` between views its square is
    :math:`m (1 + (K-1)\rho) / (K (1 + (m-1)\rho))`; :math:`\rho` is taken from samples that all views show.
    """
    everywhere = np.flatnonzero(observed.all(axis=1))[:_CORRELATION_SAMPLES]
    return correlation_shrinkage([s * d[everywhere][:, everywhere] for s, d in zip(scales, distances, strict=True)])


def correlation_shrinkage(distances: Sequence[FloatArray]) -> FloatArray:
    """Return the factors of `_shrinkage` from distances of the views between the same samples."""
    n_views, n_samples = len(distances), len(distances[0])
    correlation = 0.0
    if n_samples > 2:
        parts = np.stack(distances)
        parts[:, np.arange(n_samples), np.arange(n_samples)] = 0.0  # the other pairs count twice, which does no harm
        parts, n_pairs = parts.reshape(n_views, -1), n_samples * (n_samples - 1)
        means = parts.sum(axis=1) / n_pairs
        covariance = parts @ parts.T / n_pairs - np.outer(means, means)
        spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale = np.where(spread > _ROUNDING * means, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
        total = float(scale @ covariance @ scale)
        correlation = float(np.clip((total / n_views - 1.0) / (n_views - 1), 0.0, 1.0))
    m = np.arange(n_views + 1.0)
    square = m * (1.0 + (n_views - 1) * correlation) / (n_views * (1.0 + np.maximum(m - 1.0, 0.0) * correlation))
    return np.asarray(np.sqrt(square))


def _observed_mean(transitions: FloatArray, observed: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the mean chain over the views that show both samples, row-stochastic."""
    if observed.all():
        return weighted_mean(transitions, weights)
    seen = weights * observed

    def average(rows: Any, columns: Any) -> FloatArray:
        count = seen[rows] @ observed[columns].T
        part = np.zeros(count.shape)
        for k, chain in enumerate(transitions):
            part += chain[rows][:, columns] * seen[rows, k, None] * observed[columns, k]
        return np.asarray(part / np.where(count > 0, count, 1.0))

    some = _incomplete(observed)
    if _are_few(some, observed):
        total = weighted_mean(transitions, weights)
        total[some], total[:, some] = average(some, slice(None)), average(slice(None), some)
    else:
        total = np.empty(transitions.shape[1:])

        def fill(rows: slice) -> None:
            total[rows] = average(rows, slice(None))

        by_rows(fill, len(total))
    return transition_matrix(total, out=total)


def _incomplete(observed: BoolArray) -> IntArray:
    """Return the samples that some view does not show."""
    return np.flatnonzero(~np.asarray(observed.all(axis=1)))


def _are_few(some: IntArray, observed: BoolArray) -> bool:
    """Return whether it pays to treat these samples apart from the others."""
    return len(some) <= _FEW_INCOMPLETE * len(observed)


def _complete(chain: FloatArray, observed: BoolArray, guess: FloatArray) -> None:
    """Scale the observed part of a chain to the mass that the guess puts there, and fill the rest with the guess."""
    if observed.all():
        return
    chain *= (guess @ observed)[:, None]
    hidden = ~observed
    chain[hidden] = guess[hidden]
    chain[:, hidden] = guess[:, hidden]
