"""The study of the paper as constants: rows of its tables, errors of its figures, grids of its search.

Two protocols, never mixed:

* ``paper``: Gaussian kernels of raw features, the published algorithm, and parameters (for EMVC also the kernel) chosen
  *with labels*, as the paper does: the best accuracy on the first seed over a grid, then repeated with all seeds. The
  kernel is the one that does best with equal weights, and the ablations of EMVC take it over;
* ``honest``: every method as a user would run it, with its defaults. No label is touched.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from emvc.datasets._registry import REGISTRY
from emvc.estimators.emvc import PUBLISHED
from emvc.experiments.grid import Cell, Parameters, make_grid
from emvc.experiments.methods import is_drawn
from emvc.experiments.runner import Record, Report, run_cells

Protocol = Literal["paper", "honest"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "honest")

PRINTED_NAMES = {"webkb": "WebKB", "citeseer": "Citeseer", "ccv": "CCV", "fox": "FOX", "cnn": "CNN"} | {
    "synthetic": "synthetic"
}
"""Names of the data sets in the printed tables."""

WEIGHTS = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Coarse subset of the paper's 1e-9 ... 1e9, denser where results change."""

LARGE_WEIGHTS = (1e-3, 1e-2)
"""The same for large data, where one run of the published algorithm takes minutes."""

KERNELS = ("rbf", "rbf-t100")
"""Kernels to choose from: the one behind the printed baselines and the one of the authors' program."""

LARGE = 2000
"""Data sets with more samples are large."""

NOISE_LEVELS = (0.01, 0.1, 1.0, 10.0, 100.0)
SAMPLE_LEVELS = (0.02, 0.06, 0.10)

_RAW: Parameters = {"scale": [None]}


@dataclass(frozen=True)
class Row:
    """One row of a table: a method, and the values to choose from under the ``paper`` protocol."""

    label: str
    method: str
    paper: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    honest: Mapping[str, Sequence[Any]] | None = field(default_factory=dict)
    """Options under the ``honest`` protocol; None leaves the row out, because it is an ablation of the paper."""
    kernel_first: bool = False
    """Whether the kernel is chosen with equal weights first, and then the weights for that kernel."""
    leader: str | None = None
    """Label of the row whose kernel this one shares, so that an ablation differs in its weights alone."""

    def following(self, record: Record) -> Row:
        """Return the same row with the kernel of a record of its leader."""
        kernel = json.loads(record["parameters"])["affinity"]
        return replace(self, paper={**self.paper, "affinity": [kernel]})


def is_large(dataset: str) -> bool:
    """Return whether a data set gets a coarse search."""
    return dataset in REGISTRY and REGISTRY[dataset].n_samples > LARGE


def rows(weights: Sequence[float] = WEIGHTS, *, large: bool = False) -> tuple[Row, ...]:
    """Return the ten rows of the paper's tables."""
    published: Parameters = {"solver": ["alm"], **_RAW}
    emvc: Parameters = {name: [value] for name, value in PUBLISHED.items()} | {"affinity": list(KERNELS)}
    rmsc = [1e-2, 1e-1] if large else [1e-3, 5e-3, 1e-2, 1e-1, 1.0]
    return (
        Row("best single view", "best single view", _RAW),
        Row("feature concatenation", "feature concatenation", _RAW),
        Row("kernel addition", "kernel addition", _RAW),
        Row("co-regularised", "co-regularised", {**_RAW, "lam": [0.01, 0.02, 0.03, 0.04, 0.05]}),
        Row("AMGL", "AMGL", _RAW),
        # Honest RMSC: its gap is in the record; closing it takes thousands of iterations on some data.
        Row("RMSC", "RMSC", {**published, "lam": rmsc}, {"max_iter": [100]}),
        Row("EMVC(*)", "EMVC", {**emvc, "beta": [0.0], "lam": [0.0]}, None, leader="EMVC"),
        Row("EMVC(g1)", "EMVC", {**emvc, "beta": [0.0], "lam": weights}, None, leader="EMVC"),
        Row("EMVC(l21)", "EMVC", {**emvc, "beta": weights, "lam": [0.0]}, None, leader="EMVC"),
        Row("EMVC", "EMVC", {**emvc, "beta": weights, "lam": weights}, kernel_first=True),
    )


def printed(dataset: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the printed mean and deviation by (method, metric), empty for data that the paper does not have."""
    text = resources.files("emvc.experiments").joinpath("printed.csv").read_text(encoding="utf-8")
    name = PRINTED_NAMES.get(dataset)
    return {
        (line["method"], line["metric"]): (float(line["mean"]), float(line["std"]))
        for line in csv.DictReader(text.splitlines())
        if line["dataset"] == name
    }


def run_row(
    row: Row,
    dataset: str,
    protocol: Protocol,
    path: str | os.PathLike[str],
    *,
    seeds: Sequence[int] = range(5),
    error: tuple[str, float] = ("none", 0.0),
    n_jobs: int | None = None,
    report: Report | None = None,
) -> list[Record]:
    """Run one row under a protocol and return one record per seed (none if the protocol leaves the row out)."""
    options = row.paper if protocol == "paper" else row.honest
    if options is None:
        return []

    def run(cells: Sequence[Cell]) -> list[Record]:
        return run_cells(cells, path, n_jobs=n_jobs, report=report)

    def repeated(cells: Sequence[Cell]) -> list[Cell]:
        return [replace(cell, seed=seed) for cell in cells for seed in seeds]

    def best(candidates: Sequence[Cell]) -> Cell:
        if len(candidates) == 1:
            return candidates[0]
        if error[0] == "none" and not is_drawn(dataset):  # other seeds cost little more: they share the decomposition
            run(repeated(candidates))
        return max(zip(run(candidates), candidates, strict=True), key=lambda pair: pair[0]["accuracy"] or 0.0)[1]

    candidates = make_grid([dataset], {row.method: options}, errors=[error], seeds=seeds[:1])
    if row.kernel_first and protocol == "paper":
        kernel = best([c for c in candidates if c.parameters["beta"] == c.parameters["lam"]]).parameters["affinity"]
        candidates = [cell for cell in candidates if cell.parameters["affinity"] == kernel]
    return run(repeated([best(candidates)]))
