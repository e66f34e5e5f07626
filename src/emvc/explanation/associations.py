"""Association of clusters with categories, numbers and survival: one test of all clusters together for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, chi2_contingency, fisher_exact, gamma, random_table, rankdata

from emvc._array import FloatArray, IntArray

_SHUFFLES = 9999
_FEW = 5.0  # expected counts below this, in more than a fifth of the cells, make the chi-square law unreliable


@dataclass(frozen=True)
class Association:
    """Result of a test.

    Attributes
    ----------
    test : str
        Its name.
    statistic : float
        What it measures.
    p_value : float
        Probability of at least as much by chance.
    effect : float
        Strength between 0 and 1: Cramer's V of categories, epsilon-squared of numbers, explained randomness of
        survival.
    n_samples : int
        Samples with a cluster and a value.
    """

    test: str
    statistic: float
    p_value: float
    effect: float
    n_samples: int


NOTHING = Association("none", float("nan"), float("nan"), 0.0, 0)
"""Where there is nothing to compare."""


def contingency(labels: IntArray, codes: IntArray, n_clusters: int, n_levels: int) -> IntArray:
    """Return counts of clusters (rows) and levels (columns); negative numbers are left out."""
    known = (labels >= 0) & (codes >= 0)
    cells = np.bincount(labels[known] * n_levels + codes[known], minlength=n_clusters * n_levels)
    return cells.reshape(n_clusters, n_levels)


def compare_categories(table: IntArray, rng: np.random.Generator) -> Association:
    """Test whether the levels are distributed alike over the clusters.

    The chi-square law is used where Cochran's rule allows it (no expected count below one, at most a fifth of them
    below five). Other tables of two by two get Fisher's exact p-value, larger ones are compared with 9,999 tables of
    the same margins; below what these can resolve, the tail is that of a gamma law with their mean and variance.

    Examples
    --------
    >>> import numpy as np
    >>> found = compare_categories(np.array([[30, 0], [0, 30]]), np.random.default_rng(0))
    >>> found.test, found.effect
    ('chi-square', 1.0)
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape, default=0) < 2:
        return NOTHING
    n_samples = int(table.sum())
    statistic, p_value, _, expected = chi2_contingency(table, correction=False)
    effect = float(np.sqrt(min(statistic / (n_samples * (min(table.shape) - 1)), 1.0)))
    test = "chi-square"
    if expected.min() < 1.0 or np.mean(expected < _FEW) > 0.2:
        if table.shape == (2, 2):
            test, p_value = "Fisher exact", fisher_exact(table)[1]
        else:
            test, p_value = "chi-square, shuffled", _shuffled(table, statistic, expected, rng)
    return Association(test, float(statistic), float(p_value), effect, n_samples)


def _shuffled(table: IntArray, statistic: float, expected: FloatArray, rng: np.random.Generator) -> float:
    tables = random_table(table.sum(axis=1), table.sum(axis=0)).rvs(_SHUFFLES, random_state=rng)
    drawn = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
    p_value = (1.0 + np.sum(drawn >= statistic * (1 - 1e-12))) / (1.0 + _SHUFFLES)
    if p_value > 1.0 / (1.0 + _SHUFFLES) or drawn.var() == 0.0:
        return float(p_value)
    mean, variance = drawn.mean(), drawn.var()
    return float(min(p_value, gamma.sf(statistic, mean**2 / variance, scale=variance / mean)))


def compare_numbers(values: FloatArray, labels: IntArray) -> Association:
    """Test whether numbers tend to be larger in some clusters (Kruskal and Wallis, with ties); NaN is left out.

    Examples
    --------
    >>> import numpy as np
    >>> found = compare_numbers(np.arange(20.0), np.repeat([0, 1], 10))
    >>> round(found.statistic, 3), found.n_samples
    (14.286, 20)
    """
    known = (labels >= 0) & ~np.isnan(values)
    _, groups = np.unique(labels[known], return_inverse=True)
    n_samples = int(known.sum())
    sizes = np.bincount(groups)
    ranks = rankdata(values[known])
    variance = ranks.var()
    if len(sizes) < 2 or variance == 0.0:
        return NOTHING
    means = np.bincount(groups, ranks) / sizes
    statistic = float((n_samples - 1) * (sizes * (means - ranks.mean()) ** 2).sum() / (n_samples * variance))
    p_value = float(chi2.sf(statistic, len(sizes) - 1))
    return Association("Kruskal-Wallis", statistic, p_value, statistic / (n_samples - 1), n_samples)
