"""The study of the paper from end to end: targets by name, each a set of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emvc.experiments import figures, tables
from emvc.experiments.grid import make_grid
from emvc.experiments.paper import (
    KERNELS,
    LARGE_WEIGHTS,
    NOISE_LEVELS,
    PRINTED_NAMES,
    PROTOCOLS,
    SAMPLE_LEVELS,
    WEIGHTS,
    Protocol,
    Row,
    is_large,
    printed,
    rows,
    run_row,
)
from emvc.experiments.runner import Record, Report, run_cells

BAYES_NOTE = "Nothing can be reliably above the Bayes limit of these data: accuracy .861, NMI .419."
CHOICE_NOTES = {
    "paper": "Protocol `paper`: raw features, Gaussian kernels, published algorithms; parameters chosen "
    "**with labels**.",
    "honest": "Protocol `honest`: defaults, no label touched (except for the choice of the best single view).",
}
LARGE_NOTE = "Large data: a coarser search over the weights, because one run takes minutes."
DIFFERENCE_NOTE = (
    "Known reasons for differences: the printed F-score, precision and recall are equal in every row, which pair "
    "counting does not allow; the authors' program stops by another rule; the scaling of features is not printed. See "
    "docs/method.md, section 8."
)


@dataclass(frozen=True)
class Size:
    """How much of the study is done."""

    synthetic: str
    seeds: tuple[int, ...]
    figure_seeds: int
    """Seeds per point of the curves."""
    weights: tuple[float, ...]
    large_weights: tuple[float, ...]
    noise: tuple[float, ...]
    samples: tuple[float, ...]
    real: tuple[str, ...]
    erroneous: tuple[str, ...]
    sensitivity: tuple[str, ...]


FULL = Size(
    synthetic="synthetic",
    seeds=tuple(range(5)),
    figure_seeds=2,
    weights=WEIGHTS,
    large_weights=LARGE_WEIGHTS,
    noise=NOISE_LEVELS,
    samples=SAMPLE_LEVELS,
    real=("webkb", "citeseer"),
    erroneous=("webkb", "bbcsport", "handwritten"),
    sensitivity=("webkb", "bbcsport"),
)
QUICK = Size(
    synthetic="synthetic-small",
    seeds=(0, 1),
    figure_seeds=2,
    weights=(1e-6, 1e-2, 1.0),
    large_weights=(1e-2,),
    noise=(0.1, 1.0, 10.0),
    samples=(0.02, 0.10),
    real=("3sources",),
    erroneous=("3sources",),
    sensitivity=("3sources",),
)


@dataclass(frozen=True)
class Study:
    """A run of the study.

    Parameters
    ----------
    path : path
        File of the records; finished experiments in it are not repeated.
    size : Size
        `FULL` or `QUICK`.
    n_jobs : int or None
        Passed to joblib.
    report : callable, optional
        Told about every new record.
    """

    path: str | os.PathLike[str]
    size: Size = FULL
    n_jobs: int | None = None
    report: Report | None = None

    def table(self, dataset: str, protocol: Protocol) -> dict[str, bytes]:
        """Return the comparison of all methods on one data set as Markdown, CSV and LaTeX."""
        known = printed(dataset) if protocol == "paper" else {}
        rows = self._rows(dataset)
        found: dict[str, list[Record]] = {}
        for row in sorted(rows, key=lambda row: row.leader is not None):
            leader = found[row.leader] if row.leader else []
            run = row.following(leader[0]) if leader and protocol == "paper" else row
            found[row.label] = run_row(run, dataset, protocol, self.path, seeds=self.size.seeds, **self._options())
        lines = [tables.summarize(row.label, found[row.label], known) for row in rows if found[row.label]]
        title = f"{PRINTED_NAMES.get(dataset, dataset)}, protocol {protocol}, {len(self.size.seeds)} repetitions"
        notes = [CHOICE_NOTES[protocol], *([BAYES_NOTE] if dataset.startswith("synthetic") else [])]
        notes += [LARGE_NOTE] if is_large(dataset) and protocol == "paper" else []
        notes += [DIFFERENCE_NOTE] if known else []
        stem = f"table-{dataset}-{protocol}"
        return {
            f"{stem}.md": tables.to_markdown(lines, title, notes).encode(),
            f"{stem}.csv": tables.to_csv(lines).encode(),
            f"{stem}.tex": tables.to_latex(lines, title).encode(),
        }

    def error_figure(self, dataset: str, error: str, protocol: Protocol) -> dict[str, bytes]:
        """Return the curves of all methods over the levels of an error as PNG and SVG."""
        levels = self.size.noise if error == "noise" else self.size.samples
        records: dict[str, dict[float, Any]] = {}
        seeds = self.size.seeds[: self.size.figure_seeds]
        for row in self._rows(dataset):
            if row.honest is None:
                continue
            for level in levels:
                found = run_row(row, dataset, protocol, self.path, seeds=seeds, error=(error, level), **self._options())
                records.setdefault(row.label, {})[level] = found
        xlabel = "signal-to-noise ratio" if error == "noise" else "share of samples destroyed in all views"
        figure = figures.curves(records, title=f"{dataset}, {protocol} protocol", xlabel=xlabel, log=error == "noise")
        return self._images(f"figure-{error}-{dataset}-{protocol}", figure)

    def sensitivity(self, dataset: str) -> dict[str, bytes]:
        """Return the heat map of accuracy over the two weights, published algorithm, as PNG and SVG."""
        options = {row.label: row for row in self._rows(dataset)}["EMVC"].paper
        options = {**options, "affinity": [KERNELS[0]]}
        cells = make_grid([dataset], {"EMVC": options}, seeds=self.size.seeds[:1])
        records = run_cells(cells, self.path, **self._options())
        figure = figures.heat_map(records, title=f"{dataset}: sensitivity of the published algorithm")
        return self._images(f"figure-sensitivity-{dataset}", figure)

    def _rows(self, dataset: str) -> tuple[Row, ...]:
        large = is_large(dataset)
        return rows(self.size.large_weights if large else self.size.weights, large=large)

    def _options(self) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs, "report": self.report}

    def _images(self, stem: str, figure: Any) -> dict[str, bytes]:
        return {f"{stem}.{ending}": image for ending, image in figures.render(figure).items()}


TARGETS = ("synthetic", "real", "noise", "samples", "sensitivity")


def reproduce(target: str, study: Study, datasets: Sequence[str], protocols: Sequence[Protocol]) -> dict[str, bytes]:
    """Return the files of one target.

    Parameters
    ----------
    target : str
        One of `TARGETS`.
    study : Study
        The run.
    datasets : sequence of str
        Data sets instead of those of the study's size; empty for these.
    protocols : sequence of {"paper", "honest"}
        Protocols; empty for both in tables and ``honest`` in curves, where a search with labels at every level of an
        error takes hours. Heat maps are of the published algorithm in any case.
    """
    if target not in TARGETS:
        raise ValueError(f"Unknown target {target!r}; choose from {', '.join(TARGETS)}.")
    files: dict[str, bytes] = {}
    if target == "synthetic":
        for protocol in protocols or PROTOCOLS:
            files |= study.table(study.size.synthetic, protocol)
    elif target == "real":
        for dataset in datasets or study.size.real:
            for protocol in protocols or PROTOCOLS:
                files |= study.table(dataset, protocol)
    elif target == "sensitivity":
        for dataset in datasets or study.size.sensitivity:
            files |= study.sensitivity(dataset)
    else:
        for dataset in datasets or study.size.erroneous:
            for protocol in protocols or PROTOCOLS[1:]:
                files |= study.error_figure(dataset, target, protocol)
    return files
