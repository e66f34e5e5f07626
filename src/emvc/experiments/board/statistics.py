"""Comparisons over data sets: means with intervals, wins and tests, robustness and the ladder of stages.

The data sets are the sample: seeds are averaged first, every interval is a bootstrap over data sets, and two methods
are compared on the data sets that have both.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from emvc._array import FloatArray, IntArray
from emvc.experiments.board.collection import HALVES
from emvc.experiments.board.scores import CLEAN, Cells, ScoreTable, condition_order, mean_scores
from emvc.experiments.runner import Record

ALL_ERRORS = "all error conditions together"

TIE = 1e-3
"""Two methods tie on a data set if their values differ by less."""

_RESAMPLES = 2000
_CONFIDENCE = 0.95
_DIGITS = 12  # differences that only rounding made are none


@dataclass(frozen=True)
class Interval:
    """A mean over data sets with its 95 % bootstrap interval; NaN where there are no data sets."""

    mean: float
    low: float
    high: float
    n_datasets: int


@dataclass(frozen=True)
class Comparison:
    """A method against another one, on the data sets that have both.

    ``difference`` is the method minus the other one. Wins, losses and ties count pairs of a data set and a condition.
    ``p`` is from the two-sided Wilcoxon signed-rank test over data sets, NaN where there are none.
    """

    method: str
    reference: str
    mean: float
    mean_reference: float
    difference: Interval
    wins: int
    losses: int
    ties: int
    p: float

    @property
    def n_datasets(self) -> int:
        """Number of data sets that have both."""
        return self.difference.n_datasets


@dataclass(frozen=True)
class Rung:
    """One stage of a ladder against the one before, in one half and one condition."""

    half: str
    error: str
    comparison: Comparison


@dataclass(frozen=True)
class Robustness:
    """What a method keeps of the quality that it has when it is told which entries are wrong."""

    method: str
    error: str
    mean: float
    oracle: float
    n_datasets: int

    @property
    def share(self) -> float:
        """Mean divided by the mean of the oracle."""
        return self.mean / self.oracle if self.oracle > 0 else math.nan


@dataclass(frozen=True)
class Outcomes:
    """How the runs of a method ended, and for how many missing values were filled in."""

    method: str
    done: int
    failed: int
    out_of_time: int
    out_of_memory: int
    imputed: int


def bootstrap(sums: FloatArray, counts: FloatArray | None = None) -> Interval:
    """Return the mean over data sets with its 95 % percentile interval from resampled data sets.

    Parameters
    ----------
    sums : array of shape (n_datasets,)
        The value of each data set; those that are NaN are left out.
    counts : array of shape (n_datasets,), optional
        Numbers of values behind each sum, if a data set has several; the mean is then over all of these.
    """
    present = np.isfinite(sums)
    sums, counts = sums[present], np.ones(present.sum()) if counts is None else counts[present]
    n = len(sums)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    drawn = _resamples(n)
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return Interval(float(sums.sum() / counts.sum()), float(low), float(high), n)


@lru_cache(maxsize=16)
def _resamples(n: int) -> IntArray:
    return np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))


def signed_rank_p(differences: FloatArray) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test; 1 if all differences are zero, NaN for none."""
    if len(differences) == 0:
        return math.nan
    rounded = np.round(differences, _DIGITS)
    rounded = rounded[rounded != 0]
    if len(rounded) == 0:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions of scipy warn about few data sets with ties
        return float(stats.wilcoxon(rounded).pvalue)


def compare(table: ScoreTable, method: str, reference: str) -> Comparison:
    """Compare a method with another one on the data sets that have both."""
    ours, theirs = (
        {(name, ""): value for name, value in zip(table.datasets, table.column(column).tolist(), strict=True)}
        for column in (method, reference)
    )
    return _compare_cells(ours, theirs, method, reference)


def _compare_cells(ours: Cells, theirs: Cells, method: str, reference: str) -> Comparison:
    """Compare where both have values.

    A data set may have several conditions. The interval then comes from resampled data sets with all their conditions,
    and the test from the mean difference of each data set, so that no data set counts many times.
    """
    keys = [key for key in ours if not math.isnan(ours[key] + theirs.get(key, math.nan))]
    pairs = np.array([(ours[key], theirs[key]) for key in keys]).reshape(-1, 2)
    differences = pairs[:, 0] - pairs[:, 1]
    sums, counts = _by_dataset(keys, differences)
    wins, losses = int((differences >= TIE).sum()), int((differences <= -TIE).sum())
    mean, mean_reference = pairs.mean(axis=0) if keys else (math.nan, math.nan)
    return Comparison(
        method, reference, float(mean), float(mean_reference), bootstrap(sums, counts),
        wins, losses, len(keys) - wins - losses, signed_rank_p(sums / counts),
    )  # fmt: skip


def _by_dataset(keys: Sequence[tuple[str, str]], values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of the values of each data set."""
    rows = {name: i for i, name in enumerate(dict.fromkeys(dataset for dataset, _ in keys))}
    index = np.array([rows[dataset] for dataset, _ in keys], dtype=np.intp)
    sums, counts = np.bincount(index, values, len(rows)), np.bincount(index, minlength=len(rows))
    return np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)


def _groups(records: Iterable[Record]) -> dict[str, set[str]]:
    """Return the conditions by themselves, and all but clean data together if there are several."""
    errors = condition_order(record["error"] for record in records)
    together = {error for error in errors if error != CLEAN}
    groups = {error: {error} for error in errors}
    return groups | {ALL_ERRORS: together} if len(together) > 1 else groups


def _within(cells: Cells, errors: set[str]) -> Cells:
    return {key: value for key, value in cells.items() if key[1] in errors}


def ladder(records: Sequence[Record], stages: Sequence[tuple[str, str]], metric: str = "nmi") -> list[Rung]:
    """Compare each stage with the one before, in each half and each condition and in all error conditions together.

    Parameters
    ----------
    records : sequence of dict
        The records; those with an oracle are not used.
    stages : sequence of (str, str)
        A method and the one it is compared with.
    metric : str
        One of ``METRICS``.

    Returns
    -------
    list of Rung
        By half, stage and condition; there is none where no data set has both methods.
    """
    rungs = []
    for half in HALVES:
        scores = mean_scores(records, metric, half=half)
        for method, before in stages:
            for error, errors in _groups(records).items():
                ours, theirs = (_within(scores.get(name, {}), errors) for name in (method, before))
                comparison = _compare_cells(ours, theirs, method, before)
                if comparison.n_datasets:
                    rungs.append(Rung(half, error, comparison))
    return rungs


def condition_means(
    records: Sequence[Record], metric: str = "nmi", *, oracle: int = 0, half: str | None = None
) -> dict[tuple[str, str], Interval]:
    """Return the mean over data sets of each method in each condition, and in all error conditions together."""
    means = {}
    for method, cells in mean_scores(records, metric, oracle=oracle, half=half).items():
        for error, errors in _groups(records).items():
            part = _within(cells, errors)
            if part:
                means[method, error] = bootstrap(*_by_dataset(list(part), np.array(list(part.values()))))
    return means


def robustness(records: Sequence[Record], metric: str = "nmi", *, half: str | None = None) -> list[Robustness]:
    """Compare each method with its oracle, which gets the wrong entries as missing, over the sets that have both."""
    plain, told = (mean_scores(records, metric, oracle=oracle, half=half) for oracle in (0, 1))
    groups = _groups(record for record in records if record["oracle"])
    rows = []
    for method in plain:
        for error, errors in groups.items():
            ours, theirs = (_within(scores.get(method, {}), errors) for scores in (plain, told))
            pair = _compare_cells(ours, theirs, method, method)
            if pair.n_datasets:
                rows.append(Robustness(method, error, pair.mean, pair.mean_reference, pair.n_datasets))
    return rows


def outcomes(records: Iterable[Record]) -> list[Outcomes]:
    """Count how the runs of each method ended."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        counts[record["method"]].update([record["outcome"]] + ["imputed"] * bool(record["imputed"]))
    names = ("done", "failed", "out of time", "out of memory", "imputed")
    return [Outcomes(method, *(counts[method][name] for name in names)) for method in sorted(counts)]
