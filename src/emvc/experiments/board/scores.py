"""From the records of a board to the mean over the seeds of each method, data set and condition.

A run that failed or ran out of time or memory counts as 0 in every measure. A method that was not tried on a data set
has no value there (NaN).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from emvc._array import FloatArray
from emvc.experiments.board.conditions import CONDITIONS
from emvc.experiments.runner import Record

Cells = dict[tuple[str, str], float]
"""Values by data set and condition."""

METRICS = ("nmi", "ari", "accuracy")
CLEAN = "clean"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The mean over the seeds of each method on each data set.

    Attributes
    ----------
    datasets, methods : tuple of str
        Names of the rows and of the columns, sorted.
    values : array of shape (n_datasets, n_methods)
        NaN where a method has no record.
    kinds, halves : tuple of str
        Kind and half of each data set.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    values: FloatArray
    kinds: tuple[str, ...]
    halves: tuple[str, ...]

    def column(self, method: str) -> FloatArray:
        """Return the values of one method, NaN throughout if it has none."""
        if method not in self.methods:
            return np.full(len(self.datasets), np.nan)
        return self.values[:, self.methods.index(method)]

    def restrict(self, *, half: str | None = None, kind: str | None = None) -> ScoreTable:
        """Return the rows of one half, of one kind, or of both."""
        pairs = enumerate(zip(self.halves, self.kinds, strict=True))
        rows = [i for i, (h, k) in pairs if half in (None, h) and kind in (None, k)]
        datasets, kinds, halves = (tuple(names[i] for i in rows) for names in (self.datasets, self.kinds, self.halves))
        return ScoreTable(datasets, self.methods, self.values[rows], kinds, halves)


def score(record: Record, metric: str = "nmi") -> float:
    """Return a measure of one run; one that did not end well counts as 0.

    Examples
    --------
    >>> score({"outcome": "done", "nmi": 0.5}), score({"outcome": "out of time", "nmi": None})
    (0.5, 0.0)
    """
    value = record[metric]
    return 0.0 if record["outcome"] != "done" or value is None or math.isnan(value) else float(value)


def mean_scores(
    records: Iterable[Record], metric: str = "nmi", *, oracle: int = 0, half: str | None = None
) -> dict[str, Cells]:
    """Return the mean over the seeds, by method and then by data set and condition."""
    groups: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if int(record["oracle"] or 0) == oracle and half in (None, record["half"]):
            groups[record["method"]][record["dataset"], record["error"]].append(score(record, metric))
    return {method: {key: math.fsum(v) / len(v) for key, v in groups[method].items()} for method in sorted(groups)}


def score_table(records: Sequence[Record], metric: str = "nmi", *, error: str = CLEAN, oracle: int = 0) -> ScoreTable:
    """Return the mean over the seeds of each method on each data set, in one condition."""
    used = [r for r in records if r["error"] == error and int(r["oracle"] or 0) == oracle]
    cells = mean_scores(used, metric, oracle=oracle)
    first = {record["dataset"]: record for record in reversed(used)}
    datasets = tuple(sorted(first))
    values = np.array([[of.get((name, error), math.nan) for of in cells.values()] for name in datasets])
    kinds, halves = (tuple(str(first[name][field]) for name in datasets) for field in ("kind", "half"))
    return ScoreTable(datasets, tuple(cells), values.reshape(len(datasets), len(cells)), kinds, halves)


def condition_order(errors: Iterable[str]) -> list[str]:
    """Return the names of conditions in the order of the board, unknown ones last.

    Examples
    --------
    >>> condition_order(["missing 50 %", "missing 30 %", "clean", "missing 30 %"])
    ['clean', 'missing 30 %', 'missing 50 %']
    """
    order = {name: i for i, name in enumerate(CONDITIONS)}
    return sorted(set(errors), key=lambda error: (order.get(error, len(order)), error))
