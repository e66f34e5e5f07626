"""Average ranks of methods over data sets: Friedman's test and Nemenyi's critical difference (Demšar, JMLR 2006)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from emvc._array import FloatArray
from emvc.experiments.board.scores import ScoreTable

_ALPHA = 0.05
_DIGITS = 12  # values that only rounding tells apart share their rank


@dataclass(frozen=True)
class Ranks:
    """Average ranks, best first.

    Attributes
    ----------
    methods : tuple of str
        The methods compared.
    ranks : tuple of float
        Average rank of each; 1 is best, and ties share.
    n_datasets : int
        Number of data sets on which all of them have a value.
    p : float
        Of Friedman's test that all methods are alike; NaN for fewer than three methods or two data sets.
    critical_difference : float
        Two methods differ if their average ranks are at least this far apart; NaN if there is nothing to compare.
    cliques : tuple of (int, int)
        First and last position of each largest group of methods that do not differ.
    """

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    n_datasets: int
    p: float
    critical_difference: float
    cliques: tuple[tuple[int, int], ...]


def rank_methods(table: ScoreTable, methods: Sequence[str] | None = None) -> Ranks:
    """Rank methods over the data sets on which all of them have a value."""
    names = list(table.methods if methods is None else methods)
    values = np.array([table.column(name) for name in names]).reshape(len(names), -1).T
    values = np.round(values[np.isfinite(values).all(axis=1)], _DIGITS)
    n, k = values.shape
    if n == 0 or k == 0:
        return Ranks(tuple(names), (math.nan,) * k, n, math.nan, math.nan, ())
    average = stats.rankdata(-values, axis=1).mean(axis=0)
    order = sorted(range(k), key=lambda i: (average[i], names[i]))
    ranks = tuple(float(average[i]) for i in order)
    difference = critical_difference(k, n)
    return Ranks(tuple(names[i] for i in order), ranks, n, friedman_p(values), difference, _cliques(ranks, difference))


def friedman_p(values: FloatArray) -> float:
    """Return the p-value of Friedman's test; ``values`` has one row per data set and one column per method."""
    n, k = values.shape
    if n < 2 or k < 3:
        return math.nan
    if (values == values[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*values.T).pvalue)


def critical_difference(n_methods: int, n_datasets: int) -> float:
    """Return Nemenyi's critical difference of average ranks at the level of 5 %.

    It is ``q * sqrt(k (k + 1) / (6 N))`` for k methods and N data sets, where q is the quantile of the studentized
    range divided by the root of 2.

    Examples
    --------
    >>> round(critical_difference(5, 30), 3)
    1.114
    """
    if n_methods < 2 or n_datasets < 1:
        return math.nan
    q = stats.studentized_range.ppf(1 - _ALPHA, n_methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def complete_block(table: ScoreTable, first: str) -> list[str]:
    """Return methods that share many data sets: methods times shared data sets is largest.

    A method that was tried on few data sets would otherwise leave few for the comparison of all the others.

    Parameters
    ----------
    table : ScoreTable
        The values.
    first : str
        A method that is always among them.
    """
    present = {name: np.isfinite(table.column(name)) for name in table.methods}
    order = sorted(present, key=lambda name: (name != first, -int(present[name].sum()), name))
    shared = np.ones(len(table.datasets), dtype=np.bool_)
    best, size = order[:1], 0
    for count, name in enumerate(order, start=1):
        shared = shared & present[name]
        if count * shared.sum() >= size:
            best, size = order[:count], count * int(shared.sum())
    return best


def _cliques(ranks: Sequence[float], difference: float) -> tuple[tuple[int, int], ...]:
    """Return the largest runs of sorted ranks that lie within the critical difference."""
    found: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        stop = max(i for i in range(start, len(ranks)) if i == start or ranks[i] - ranks[start] < difference)
        if stop > start and (not found or stop > found[-1][1]):
            found.append((start, stop))
    return tuple(found)
