r"""How far a view alone finds the clusters that the others find.

Every view clusters the samples by its own chain, before anything was filled in or left out. For two views the adjusted
Rand index tells how far their clusters agree beyond chance; what shuffled labels reach is subtracted once more, so that
views which have nothing in common get 0. The agreement of views k and l is modelled as :math:`r_k r_l`; the
reliabilities r solve this by least squares in logarithms, with as much for each view as possible where only products
are known, as with two views.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from emvc._array import BoolArray, FloatArray, IntArray
from emvc.method.isolation import LEAST_SAMPLES
from emvc.spectral import cluster_chain

_MOST_SAMPLES = 500  # of more, so many evenly spread ones are clustered
_SHUFFLES = 19  # so that views without anything in common get 0 in 19 of 20 cases
_STARTS = 10  # of k-means
_LEAST = 1e-3  # agreement that counts as none
_RIDGE = 1e-3  # divides what only products tell evenly

Alone = tuple[IntArray, FloatArray]
"""States that a view shows, and its chain over these."""


def keep_alone(chains: FloatArray, shown: BoolArray) -> tuple[Alone, ...]:
    """Return the chains of the views over a few of the states that they show."""
    n_states = len(shown)
    picked = np.linspace(0, n_states - 1, min(n_states, _MOST_SAMPLES)).astype(np.intp)
    members = [picked[shown[picked, k]] for k in range(shown.shape[1])]
    return tuple((here, chain[np.ix_(here, here)]) for here, chain in zip(members, chains, strict=False))


def reliabilities(alone: Sequence[Alone], n_clusters: int) -> FloatArray:
    """Return the reliability of each view: 0 is what chance gives, 1 full agreement; a single view gets 1."""
    if n_clusters < 2:
        return np.zeros(len(alone))
    if len(alone) == 1:
        return np.ones(1)
    labels = [_cluster(chain, n_clusters) for _, chain in alone]
    pairs, agreements = [], []
    for k, other in itertools.combinations(range(len(alone)), 2):
        both, one, two = np.intersect1d(alone[k][0], alone[other][0], return_indices=True)
        if len(both) >= LEAST_SAMPLES:
            pairs.append((k, other))
            agreements.append(_beyond_chance(labels[k][one], labels[other][two]))
    return _factors(pairs, np.array(agreements), len(alone))


def _cluster(chain: FloatArray, n_clusters: int) -> IntArray:
    if len(chain) < LEAST_SAMPLES:
        return np.zeros(len(chain), dtype=np.intp)
    full = chain.astype(np.float64)
    sums = full.sum(axis=1, keepdims=True)
    full = np.where(sums > 0, full / np.where(sums > 0, sums, 1.0), 1.0 / len(full))
    number = min(n_clusters, len(full) - 1)
    return cluster_chain(full, number, embedding="diffusion", n_init=_STARTS, rng=np.random.default_rng(0))[0]


def _beyond_chance(one: IntArray, other: IntArray) -> float:
    rng = np.random.default_rng(0)
    chance = max(0.0, *(rand_index(rng.permutation(one), other) for _ in range(_SHUFFLES)))
    return max(0.0, (rand_index(one, other) - chance) / (1.0 - chance)) if chance < 1.0 else 0.0


def rand_index(one: IntArray, other: IntArray) -> float:
    """Return the adjusted Rand index of two labellings.

    Examples
    --------
    >>> import numpy as np
    >>> rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    width = int(other.max()) + 1
    table = np.bincount(one * width + other, minlength=(int(one.max()) + 1) * width).reshape(-1, width)
    both, rows, columns, total = (
        float(np.sum(n * (n - 1.0)) / 2.0) for n in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    expected = rows * columns / total if total else 0.0
    largest = 0.5 * (rows + columns)
    return (both - expected) / (largest - expected) if largest > expected else 1.0


def _factors(pairs: Sequence[tuple[int, int]], agreements: FloatArray, n_views: int) -> FloatArray:
    """Return r of all views, given products of pairs."""
    if not pairs:
        return np.zeros(n_views)
    known = np.clip(agreements, _LEAST, 1.0 - _LEAST)
    weights = np.sqrt(known / (1.0 - known))  # one over the error of a logarithm
    rows = np.zeros((len(pairs), n_views))
    for row, pair in zip(rows, pairs, strict=True):
        row[list(pair)] = 1.0
    wanted = np.where(agreements >= 1.0 - _LEAST, 0.0, -np.log(known))
    system = np.vstack([rows * weights[:, None], _RIDGE * np.eye(n_views)])
    losses = nnls(system, np.append(weights * wanted, np.zeros(n_views)))[0]
    found = np.exp(-losses)
    nothing = [all(a <= _LEAST for pair, a in zip(pairs, agreements, strict=True) if k in pair) for k in range(n_views)]
    return np.asarray(np.where(nothing, 0.0, found))
