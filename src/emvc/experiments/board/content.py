"""What a board is made of: sections of sentences, tables and pictures, and how numbers are written in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from emvc._array import FloatArray
from emvc.experiments.board.scores import METRICS, ScoreTable, condition_order, score_table
from emvc.experiments.board.statistics import Comparison, Interval, Rung, compare, ladder
from emvc.experiments.runner import Record


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    header, rows : sequence
        Names of the columns and the cells; the first cell of a row is its name.
    heading : str
        What stands above.
    strong : set of (int, int)
        Row and column of the cells that stand out.
    words : tuple of int
        Columns of words; all others but the first are of numbers.
    folded : bool
        Whether the page shows it on demand only.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    heading: str = ""
    strong: frozenset[tuple[int, int]] = frozenset()
    words: tuple[int, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure, the name of its file and what it shows in words."""

    name: str
    figure: Any
    alt: str


Part = str | Table | Picture
"""A paragraph, a table or a picture."""


@dataclass(frozen=True)
class Section:
    """A heading with its paragraphs, tables and pictures."""

    name: str
    heading: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Board:
    """What the sections need to know.

    Attributes
    ----------
    records : sequence of dict
        All records, those of an earlier version among them.
    reference : str
        The method that all others are compared with.
    stages : sequence of (str, str)
        Methods of the ladder and those they are compared with.
    notes : sequence of str
        Sentences about this run.
    """

    records: Sequence[Record]
    reference: str
    stages: Sequence[tuple[str, str]]
    notes: Sequence[str]

    @cached_property
    def errors(self) -> list[str]:
        """The conditions."""
        return condition_order(record["error"] for record in self.records if not record["oracle"])

    @cached_property
    def base(self) -> str:
        """The condition of the headline: clean data where there are any."""
        return self.errors[0]

    @cached_property
    def plain(self) -> list[Record]:
        """The records of the headline."""
        return [record for record in self.records if record["error"] == self.base and not record["oracle"]]

    @cached_property
    def tables(self) -> dict[str, ScoreTable]:
        """The values of the headline by measure."""
        return {metric: score_table(self.plain, metric, error=self.base) for metric in METRICS}

    @cached_property
    def methods(self) -> list[str]:
        """All methods, by their mean difference from the reference on the data sets of the headline."""
        table = self.tables["nmi"]
        gains = {name: compare(table, name, self.reference).difference.mean for name in table.methods}
        others = {record["method"] for record in self.records} - set(gains)
        return sorted(gains, key=lambda m: (math.isnan(gains[m]), -gains[m], m)) + sorted(others)

    @cached_property
    def rungs(self) -> list[Rung]:
        """The ladder."""
        return ladder(self.records, self.stages)


def about_sets(records: Sequence[Record]) -> dict[str, Record]:
    """Return what is known about each data set; a run that failed may not know it all."""
    fields = ("kind", "half", "n_samples", "n_views", "n_clusters")
    sets: dict[str, Record] = {}
    for record in records:
        known = sets.setdefault(record["dataset"], dict.fromkeys(fields))
        known |= {name: record[name] for name in fields if known[name] is None}
    return dict(sorted(sets.items()))


def number(value: float) -> str:
    """Return a number with three decimals, or a dash."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def p_value(value: float) -> str:
    """Return a p-value, or a dash."""
    return "< 0.001" if value < 0.001 else number(value)


def mean_and_interval(of: Interval) -> str:
    """Return a mean with its interval, which needs fewer decimals and more than one data set."""
    return f"{of.mean:.3f} ({of.low:.2f}–{of.high:.2f})" if of.n_datasets > 1 else number(of.mean)


def compared(pair: Comparison) -> list[str]:
    """Return the cells of a comparison: difference, wins / losses / ties and p."""
    of = pair.difference
    if of.n_datasets == 0:
        return ["–"] * 3
    difference = f"{of.mean:+.3f}" + (f" ({of.low:+.3f} to {of.high:+.3f})" if of.n_datasets > 1 else "")
    return [difference, f"{pair.wins} / {pair.losses} / {pair.ties}", p_value(pair.p)]


def how_many(count: int, name: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def best_cells(values: FloatArray, counts: FloatArray, first: int = 1) -> frozenset[tuple[int, int]]:
    """Return the cells with the largest printed value of each column, among methods with the most data sets.

    Parameters
    ----------
    values, counts : array of shape (n_methods, n_columns)
        Means, and the numbers of data sets behind them.
    first : int
        Column of the table in which they begin.
    """
    printed = np.round(np.where(counts == counts.max(axis=0), values, np.nan), 3)
    top = np.max(printed, axis=0, where=np.isfinite(printed), initial=-np.inf)
    return frozenset((int(i), int(j) + first) for i, j in np.argwhere(printed == top))


def grid(
    methods: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], tuple[float, int]], heading: str,
    *, folded: bool = False,
) -> str | Table:  # fmt: skip
    """Return a table of methods by columns, from means and numbers of data sets.

    The best of each column stands out; a mean over fewer data sets than others have says over how many.
    """
    rows = [method for method in methods if any((method, column) in cells for column in columns)]
    if not rows:
        return f"{heading}: no data sets."
    found = np.array([[cells.get((method, column), (math.nan, 0)) for column in columns] for method in rows])
    values, counts = found[..., 0], found[..., 1]
    texts = [[number(value) for value in line] for line in values]
    for i, j in np.argwhere((counts < counts.max(axis=0)) & (counts > 0)):
        texts[i][j] += f" ({counts[i, j]:.0f})"
    lines = [[method, *line] for method, line in zip(rows, texts, strict=True)]
    return Table(["method", *columns], lines, heading, best_cells(values, counts), folded=folded)
