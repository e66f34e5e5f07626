"""First centres of k-means, for all starts at once.

Greedy k-means++ (Arthur and Vassilvitskii, 2007): a centre is drawn with probability proportional to the squared
distance to those chosen before, a few times, and the draw that leaves the smallest sum is kept. Scikit-learn does the
same, one start after the other; for the few columns of an embedding its calls cost many times what they compute.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc._threads import run_ranges
from emvc.kernels._compile import njit

_FAR = 1e300  # the distance to no centre; compiled code need not know infinity


@njit(cache=True, nogil=True)
def _draw(masses: Any, total: float, uniform: float) -> int:
    """Return an index with probability proportional to its mass, given a number between zero and one."""
    n = masses.shape[0]
    if not total > 0.0:  # every sample is a centre already
        return int(min(int(uniform * n), n - 1))
    left = uniform * total
    last = 0
    for i in range(n):
        if masses[i] > 0.0:
            last = i
            left -= masses[i]
            if left < 0.0:
                break
    return last


@njit(cache=True, fastmath=True, nogil=True)
def _approach(columns: Any, weights: Any, masses: Any, center: int, out: Any) -> float:
    """Write the weighted squared distances to the nearest centre if there were one more; return their sum."""
    n = columns.shape[1]
    for i in range(n):
        out[i] = 0.0
    for column in columns:
        value = column[center]
        for i in range(n):
            out[i] += (column[i] - value) ** 2
    total = 0.0
    for i in range(n):
        out[i] = min(masses[i], weights[i] * out[i])
        total += out[i]
    return total


@njit(cache=True, nogil=True)
def _seed(columns: Any, weights: Any, draws: Any, chosen: Any, first: int, last: int) -> None:
    n = columns.shape[1]
    masses, trial, best = np.empty(n), np.empty(n), np.empty(n)
    for start in range(first, last):
        everything = 0.0
        for i in range(n):
            masses[i] = _FAR
            everything += weights[i]
        center = _draw(weights, everything, draws[start, 0, 0])
        chosen[start, 0] = center
        total = _approach(columns, weights, masses, center, best)
        for number in range(1, chosen.shape[1]):
            masses, best = best, masses
            least, before = np.inf, total
            for uniform in draws[start, number]:
                center = _draw(masses, before, uniform)
                total = _approach(columns, weights, masses, center, trial)
                if total < least:
                    least = total
                    chosen[start, number] = center
                    best, trial = trial, best
            total = least


def seed(
    points: FloatArray, n_clusters: int, n_init: int, rng: np.random.Generator, weights: FloatArray | None = None
) -> IntArray:
    """Return the samples to start from, for every start.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_columns)
        The samples.
    n_clusters, n_init : int
        Number of centres and of starts.
    rng : Generator
        Source of randomness.
    weights : ndarray of shape (n_samples,), optional
        By how much samples count.

    Returns
    -------
    ndarray of shape (n_init, n_clusters)
    """
    if weights is None:
        weights = np.ones(len(points))
    draws = rng.random((n_init, n_clusters, 2 + int(math.log(n_clusters))))
    chosen = np.empty((n_init, n_clusters), dtype=np.intp)
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    run_ranges(partial(_seed, columns, np.asarray(weights, dtype=np.float64), draws, chosen), n_init)
    return chosen
