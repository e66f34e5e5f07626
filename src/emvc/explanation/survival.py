"""Survival by cluster: curves of Kaplan and Meier, and the log-rank test of any number of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import CensoredData, chi2, ecdf

from emvc._array import BoolArray, FloatArray, IntArray
from emvc.explanation.associations import NOTHING, Association


def curve(time: FloatArray, event: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the Kaplan-Meier estimate: times, starting with 0, and the share that survives each.

    Examples
    --------
    >>> import numpy as np
    >>> times, share = curve(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False]))
    >>> times.tolist(), share.tolist()
    ([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 0.75, 0.75, 0.375, 0.375])
    """
    found = ecdf(CensoredData.right_censored(time, ~event)).sf
    return np.concatenate([[0.0], found.quantiles]), np.concatenate([[1.0], found.probabilities])


def compare_survival(time: FloatArray, event: BoolArray, labels: IntArray) -> Association:
    """Test whether clusters differ in survival (log-rank).

    At each time of an event, the events of a cluster are compared with its share of those at risk; the statistic is
    (O - E)' V^- (O - E) with the hypergeometric covariance V, chi-square with one degree of freedom less than clusters.
    The effect is the share of randomness that the clusters explain, 1 - exp(-statistic / events).

    Parameters
    ----------
    time : ndarray of shape (n_samples,)
        Time of the event or of the last observation; NaN is left out.
    event : ndarray of bool of shape (n_samples,)
        Whether the event was seen.
    labels : ndarray of int of shape (n_samples,)
        Clusters; negative ones are left out.

    Examples
    --------
    >>> import numpy as np
    >>> time = np.array([6.0, 13, 21, 30, 31, 37, 38, 47, 49, 50, 63, 79])
    >>> found = compare_survival(time, np.ones(12, dtype=bool), np.repeat([0, 1], 6))
    >>> found.test, round(found.statistic, 2)
    ('log-rank', 12.09)
    """
    known = (labels >= 0) & ~np.isnan(time)
    time, event = time[known], event[known]
    names, groups = np.unique(labels[known], return_inverse=True)
    if len(names) < 2 or not event.any():
        return NOTHING
    observed, expected, covariance = _expected(time, event, groups, len(names))
    gap = (observed - expected)[:-1]
    statistic = float(gap @ np.linalg.pinv(covariance[:-1, :-1], hermitian=True) @ gap)
    effect = 1.0 - float(np.exp(-statistic / event.sum()))
    return Association("log-rank", statistic, float(chi2.sf(statistic, len(names) - 1)), effect, len(time))


def _expected(
    time: FloatArray, event: BoolArray, groups: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return observed and expected events by group, and their covariance."""
    moments, deaths = np.unique(time[event], return_counts=True)
    at_risk = np.stack(
        [np.sum(groups == g) - np.searchsorted(np.sort(time[groups == g]), moments) for g in range(n_groups)]
    )
    everybody = at_risk.sum(axis=0)
    share = at_risk / everybody
    weight = deaths * (everybody - deaths) / np.maximum(everybody - 1, 1)
    covariance = np.diag((share * weight).sum(axis=1)) - (share * weight) @ share.T
    return np.bincount(groups[event], minlength=n_groups).astype(np.float64), share @ deaths, covariance


def hazard_ratios(time: FloatArray, event: BoolArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """Return observed over expected events of each cluster: above 1, events come early; NaN for empty clusters."""
    known = (labels >= 0) & ~np.isnan(time)
    ratios = np.full(n_clusters, np.nan)
    names, groups = np.unique(labels[known], return_inverse=True)
    if event[known].any():
        observed, expected, _ = _expected(time[known], event[known], groups, len(names))
        ratios[names] = np.divide(observed, expected, out=np.full(len(names), np.nan), where=expected > 0)
    return ratios


def read_events(values: Any, name: str) -> BoolArray:
    """Return which samples had the event; understood are booleans, 0 and 1, 1 and 2, and words such as dead and alive.

    Examples
    --------
    >>> read_events(["Dead", "alive", "DECEASED"], "status").tolist()
    [True, False, True]
    """
    known = {}
    for value in np.asarray(values, dtype=object):
        text = "" if value is None else str(value).strip().lower().removesuffix(".0").split(":")[-1]
        known[value] = text
    words = set(known.values()) - {"", "nan", "none", "na", "<na>"}
    if words == {"1", "2"}:  # as survival data are often coded: 2 had the event
        yes, no = {"2"}, {"1"}
    else:
        yes, no = _YES, _NO
    strange = sorted(words - yes - no)
    if strange:
        raise ValueError(
            f"column {name!r} should say whether an event was seen (0 and 1, true and false, dead and alive), but has "
            f"the value {strange[0]!r}."
        )
    return np.array([known[value] in yes for value in np.asarray(values, dtype=object)], dtype=bool)


_YES = {"1", "true", "yes", "dead", "deceased", "event", "relapse", "relapsed", "progressed", "recurred", "died"}
_NO = {"0", "false", "no", "alive", "living", "censored", "no event", "diseasefree", "censoring"}
