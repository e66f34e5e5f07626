"""From records to tables in Markdown, CSV and LaTeX, with the paper's value beside ours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emvc.experiments.runner import Record
from emvc.metrics import METRICS

Printed = Mapping[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True)
class Value:
    """One entry of a table: our mean and deviation, and the paper's mean if it prints one."""

    metric: str
    mean: float
    std: float
    paper: float | None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper


@dataclass(frozen=True)
class Line:
    """One method: its entries, the parameters used and why it may be missing."""

    label: str
    values: tuple[Value, ...]
    parameters: str
    n_runs: int
    failures: int


def summarize(label: str, records: Sequence[Record], printed: Printed) -> Line:
    """Return the line of one method from its records over the seeds."""
    good = [record for record in records if record["failure"] is None]
    values = []
    for metric in METRICS:
        numbers = [record[metric] for record in good]
        paper = printed.get((label, metric))
        values.append(
            Value(
                metric,
                float(np.mean(numbers)) if numbers else float("nan"),
                float(np.std(numbers)) if numbers else float("nan"),
                paper[0] if paper else None,
            )
        )
    parameters = json.loads(records[0]["parameters"]) if records else {}
    shown = ", ".join(
        f"{name}={value if isinstance(value, str) else format(value, 'g')}"
        for name, value in parameters.items()
        if name in ("beta", "lam", "affinity")
    )
    return Line(label, tuple(values), shown, len(good), len(records) - len(good))


def to_markdown(lines: Sequence[Line], title: str, notes: Sequence[str] = ()) -> str:
    """Return a Markdown table; an entry is ``ours (deviation) [paper, difference]``."""
    names = [value.metric for value in lines[0].values]
    rows = [["method", *names, "parameters"], ["---"] * (len(names) + 2)]
    rows += [[line.label, *(_entry(value) for value in line.values), line.parameters] for line in lines]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    legend = "An entry is our mean (standard deviation) [the paper's mean, ours minus the paper's]."
    return "\n\n".join([f"### {title}", body, legend, *notes]) + "\n"


def _entry(value: Value) -> str:
    ours = f"{value.mean:.3f} ({value.std:.3f})"
    return ours if value.paper is None else f"{ours} [{value.paper:.3f}, {value.difference:+.3f}]"


def to_csv(lines: Sequence[Line]) -> str:
    """Return one row per method and metric."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["method", "metric", "mean", "std", "paper", "difference", "runs", "failures", "parameters"])
    for line in lines:
        for value in line.values:
            paper = ["", ""] if value.paper is None else [f"{value.paper:.3f}", f"{value.difference:.4f}"]
            numbers = [f"{value.mean:.4f}", f"{value.std:.4f}", *paper]
            writer.writerow([line.label, value.metric, *numbers, line.n_runs, line.failures, line.parameters])
    return stream.getvalue()


def to_latex(lines: Sequence[Line], title: str) -> str:
    """Return a LaTeX table; the paper's mean is under ours."""
    names = [value.metric.replace("_", r"\_") for value in lines[0].values]
    caption, columns = title.replace("_", r"\_"), "l" + "c" * len(names)
    out = [r"\begin{table}", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{columns}}}"]
    out += [r"\hline", " & ".join(["method", *names]) + r" \\", r"\hline"]
    for line in lines:
        out.append(" & ".join([line.label, *(f"{v.mean:.3f} ({v.std:.3f})" for v in line.values)]) + r" \\")
        if any(value.paper is not None for value in line.values):
            paper = ["" if v.paper is None else f"{v.paper:.3f}" for v in line.values]
            out.append(" & ".join([r"\quad paper", *paper]) + r" \\")
    return "\n".join([*out, r"\hline", r"\end{tabular}", r"\end{table}"]) + "\n"
