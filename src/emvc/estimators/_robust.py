"""What EMVC does around the solver: screening before it, graphs of what is left, and a place for the rest after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from emvc import graphs
from emvc._array import BoolArray, FloatArray, IntArray
from emvc._validation import View, Views, to_dense
from emvc.denoising import pooled_signal
from emvc.fusion import Chains, Distances, fuse, standard_disagreement
from emvc.screening import Screening, contradiction, rate_errors, screen
from emvc.spectral import number_by_appearance

_SHARPNESS = 10.0  # how fast the vote of a sample falls with its relative distance

Affinity = Callable[[View, str, int], FloatArray]


@dataclass(frozen=True)
class Preparation:
    """Screened views as chains, over the samples that at least one view can be believed about.

    Attributes
    ----------
    screening : Screening
        Of all samples.
    kept : ndarray of int
        Samples that take part in the solve.
    lost : ndarray of int
        Samples condemned wherever they are present: they are assigned afterwards.
    chains : Chains
        Over the kept samples.
    """

    screening: Screening
    kept: IntArray
    lost: IntArray
    chains: Chains


def prepare(
    views: Views,
    n_clusters: int,
    *,
    affinity: str | Affinity,
    scale: str | None,
    n_neighbors: int,
    screening: bool,
    joint: bool,
    weigh: bool,
) -> Preparation:
    """Screen the views, build their graphs and fuse them.

    Parameters
    ----------
    views : Views
        Checked views.
    n_clusters : int
        Number of clusters.
    affinity : "local", "precomputed" or callable
        A callable takes a scaled view, its name and a number of neighbours.
    scale : str or None
        See `emvc.graphs.scale_view`.
    n_neighbors : int
        Neighbours in graphs over all samples; views with fewer samples get proportionally fewer.
    screening, joint, weigh : bool
        Whether to look for errors, to add the joint view, and to weigh the views.
    """
    features = affinity != "precomputed"
    found = screen(views.arrays, views.missing, enabled=screening and features)
    kept = np.flatnonzero(found.observed.any(axis=1))
    if len(kept) <= n_clusters:  # nothing is left to cluster: believe everybody
        found = replace(found, condemned=np.zeros_like(found.condemned))
        kept = np.arange(views.n_samples)
    lost = np.setdiff1d(np.arange(views.n_samples), kept)
    observed = found.observed[kept]

    distances = Distances() if joint and affinity == "local" and len(views.arrays) > 1 else None
    noisy: list[int] = []

    def affinities() -> Iterator[FloatArray]:
        """Yield one graph at a time, and leave its distances for the joint view."""
        for k, (array, name) in enumerate(zip(views.arrays, views.names, strict=True)):
            inside = np.flatnonzero(observed[:, k])
            rows = kept[inside]
            k_neighbors = max(min(n_neighbors, 10), round(n_neighbors * len(inside) / len(kept)))
            if not features:
                part = array[rows][:, rows]
                yield _scatter(to_dense(part), inside, len(kept))
                continue
            part = array if len(rows) == views.n_samples else array[rows]
            scaling = graphs.fit_scaling(part, scale, denoise=True)
            scaled = scaling.apply(part)
            if scaling.kind == "denoise" and len(inside) == len(kept):
                noisy.append(k)
            if affinity == "local":
                squares = graphs.squared_distances(scaled)
                if distances is not None:
                    distances.squares.append(_scatter(squares, inside, len(kept), copy=True))
                yield _scatter(graphs.local_graph(squares, k_neighbors), inside, len(kept))
            else:
                assert callable(affinity)
                yield _scatter(affinity(scaled, name, k_neighbors), inside, len(kept))
        if distances is not None and len(noisy) > 1:
            _pool(distances, noisy, [to_dense(views.arrays[k][kept]) for k in noisy])

    chains = fuse(
        affinities(),
        distances,
        observed,
        n_clusters,
        n_neighbors=n_neighbors,
        screen=screening,
        weigh=weigh,
    )
    return Preparation(found, kept, lost, chains)


def _pool(distances: Distances, noisy: list[int], arrays: list[FloatArray]) -> None:
    """Replace the distances of noisy views by those of the signal that they share."""
    signal = pooled_signal(arrays)
    if signal is not None:
        squares = graphs.squared_distances(signal)
        for k in noisy:
            distances.squares[k] = squares
        distances.n_pooled = len(noisy)


def _scatter(matrix: FloatArray, inside: IntArray, n_samples: int, *, copy: bool = False) -> FloatArray:
    """Return a matrix over all samples, zero but for those inside; the matrix itself if that is all, or a copy."""
    if len(inside) == n_samples:
        return matrix.copy() if copy else matrix
    if not len(inside):
        return np.zeros((n_samples, n_samples))
    full, places = np.empty((n_samples, n_samples)), np.full(n_samples, -1)
    places[inside] = np.arange(len(inside))
    outside = np.flatnonzero(places < 0)

    def fill(rows: slice) -> None:
        np.take(matrix[places[rows]], places, axis=1, out=full[rows], mode="wrap")  # faster than assigning to places

    graphs.by_rows(fill, n_samples)
    full[outside] = full[:, outside] = 0.0
    return full


def votes_of_the_kept(views: Views, preparation: Preparation, scale: str | None) -> FloatArray:
    """Return a distribution over the kept samples for each lost one, by distances relative to their mean.

    A destroyed sample is about equally far from everybody, so each of the kept has the same vote and the largest
    cluster wins; a sample that was condemned although it is in order is close to its own.
    """
    kept, lost = preparation.kept, preparation.lost
    total, count = np.zeros((len(lost), len(kept))), np.zeros((len(lost), 1))
    if not len(lost):
        return total
    for array, absent in zip(views.arrays, views.missing.T, strict=True):
        present = ~absent
        scaled = graphs.fit_scaling(array[present], scale, denoise=True).apply(array[present])
        position = np.cumsum(present) - 1
        there, here = np.flatnonzero(present[lost]), np.flatnonzero(present[kept])
        if not len(there) or not len(here):
            continue
        squares = graphs.squared_distances_between(scaled[position[lost[there]]], scaled[position[kept[here]]])
        mean = squares.mean(axis=1, keepdims=True)
        part = np.ones((len(there), len(kept)))
        part[:, here] = squares / np.where(mean > 0, mean, 1.0)
        total[there] += part
        count[there] += 1.0
    return sharp_votes(total / np.maximum(count, 1.0))


def sharp_votes(relative: FloatArray) -> FloatArray:
    """Return votes that fall with distances relative to their mean, as distributions."""
    weights = np.exp(-_SHARPNESS * (relative - relative.min(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def place_the_lost(labels: IntArray, votes: FloatArray, preparation: Preparation, *, outliers: str) -> IntArray:
    """Return labels of all samples: the lost ones get the cluster with most votes, or -1."""
    n_samples = len(preparation.kept) + len(preparation.lost)
    full = np.full(n_samples, -1, dtype=labels.dtype)
    full[preparation.kept] = labels
    if outliers == "assign" and len(preparation.lost):
        members = np.eye(int(labels.max()) + 1)[labels]
        full[preparation.lost] = np.argmax(votes @ members, axis=1)
    named = full >= 0
    full[named] = number_by_appearance(full[named])
    return full


def contradictions(preparation: Preparation) -> FloatArray:
    """Return how much views contradict the others about all samples (see `emvc.screening.contradiction`)."""
    scores, chains = np.zeros(preparation.screening.isolation.shape), preparation.chains
    observed = preparation.screening.observed[preparation.kept]
    doubts = standard_disagreement(chains.disagreement, observed)
    scores[preparation.kept] = contradiction(doubts, chains.contrast, chains.mismatched)
    return scores


def sample_errors(preparation: Preparation, contradicted: FloatArray) -> FloatArray:
    """Return one error between 0 and 1 per sample and view (see `emvc.screening.rate_errors`)."""
    found, chains = preparation.screening, preparation.chains
    return rate_errors(found.isolation, found.together, contradicted, chains.own_weights, found.missing)


def view_errors(preparation: Preparation) -> FloatArray:
    """Return the mean disagreement of each view with the others; condemned samples count in full."""
    found, total = preparation.screening, preparation.screening.condemned.astype(np.float64)
    total[preparation.kept] = np.maximum(total[preparation.kept], preparation.chains.disagreement)
    return np.asarray(total.sum(axis=0) / np.maximum((~found.missing).sum(axis=0), 1))


def outlier_mask(preparation: Preparation) -> BoolArray:
    """Return which samples are condemned in which view, for whichever reason."""
    mask = preparation.screening.condemned.copy()
    mask[preparation.kept] |= preparation.chains.mismatched
    return mask
