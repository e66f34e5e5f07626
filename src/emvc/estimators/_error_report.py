"""A summary of the errors that a fit has found, to be read by a person."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from emvc._html import html_table

_SUSPICIOUS = 0.5


@dataclass(frozen=True)
class SampleReport:
    """One sample in one view.

    Attributes
    ----------
    sample : int
        Position of the sample.
    view : str
        Name of the view.
    error : float
        As in ``sample_errors_``.
    left_out : bool
        Whether the row of the sample is flagged in ``outliers_``.
    reason : str
        Which of the two scores spoke.
    """

    sample: int
    view: str
    error: float
    left_out: bool
    reason: str


@dataclass(frozen=True)
class ErrorReport:
    """Worst samples and worst views of a fit; printing it gives a readable summary.

    Attributes
    ----------
    samples : list of SampleReport
        Suspicious samples, worst first.
    views : list of tuple of (str, float, float, int)
        Name, error, weight relative to the best view and number of entries left out of each view, worst first.
    n_samples, n_missing, n_outliers : int
        Samples, entries that are missing, and samples left out wherever they are present.
    """

    samples: list[SampleReport]
    views: list[tuple[str, float, float, int]]
    n_samples: int
    n_missing: int
    n_outliers: int

    def __str__(self) -> str:
        lines = [f"Errors in {len(self.views)} views of {self.n_samples} samples"]
        if self.n_missing:
            lines.append(f"{self.n_missing} entries are missing; their samples were placed by their other views.")
        if self.n_outliers:
            lines.append(
                f"{self.n_outliers} samples cannot be believed in any view; they took no part in the consensus."
            )
        lines.append("")
        lines.append("view             reliability  weight  left out")
        for name, error, weight, left_out in self.views:
            lines.append(f"{name[:16]:16} {1 - error:11.2f}  {weight:6.2f}  {left_out:8d}")
        lines.append("")
        if not self.samples:
            lines.append("No sample is suspicious.")
        else:
            lines.append("sample  view             error  why")
            for entry in self.samples:
                mark = ", left out" if entry.left_out else ""
                lines.append(f"{entry.sample:6d}  {entry.view[:16]:16} {entry.error:5.2f}  {entry.reason}{mark}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the report as tables for notebooks."""
        notes = "".join(f"<p>{escape(line)}</p>" for line in str(self).split("\n\n")[0].splitlines())
        views = html_table(
            ("view", "reliability", "weight", "left out"),
            [
                (name, f"{1 - error:.2f}", f"{weight:.2f}", str(left_out))
                for name, error, weight, left_out in self.views
            ],
        )
        samples = html_table(
            ("sample", "view", "error", "why"),
            [
                (str(e.sample), e.view, f"{e.error:.2f}", e.reason + (", left out" if e.left_out else ""))
                for e in self.samples
            ],
        )
        return notes + views + (samples if self.samples else "<p>No sample is suspicious.</p>")


def build(model: Any, n_worst: int) -> ErrorReport:
    """Return the report of a fitted `emvc.EMVC` with at most ``n_worst`` samples."""
    errors, outliers = model.sample_errors_, model.outliers_
    filled = np.where(np.isnan(errors), -1.0, errors) + outliers  # those left out first
    order = np.argsort(-filled, axis=None, kind="stable")
    samples = []
    for position in order[:n_worst]:
        i, k = (int(index) for index in np.unravel_index(position, errors.shape))
        if np.isnan(errors[i, k]) or not (outliers[i, k] or errors[i, k] >= _SUSPICIOUS):
            break
        alone, contradicted = model.isolation_[i, k], model.disagreement_[i, k]
        reason = (
            f"far from every other sample of the view (probability {alone:.2f})"
            if alone >= contradicted
            else f"the other views contradict it (probability {contradicted:.2f})"
        )
        samples.append(SampleReport(i, model.view_names_[k], float(errors[i, k]), bool(outliers[i, k]), reason))
    relative = model.view_weights_ / model.view_weights_.max()
    views = [
        (model.view_names_[k], float(model.view_errors_[k]), float(relative[k]), int(outliers[:, k].sum()))
        for k in np.argsort(-model.view_errors_, kind="stable")
    ]
    missing = np.isnan(errors)
    nowhere = (outliers | missing).all(axis=1)
    return ErrorReport(samples, views, len(errors), int(missing.sum()), int(nowhere.sum()))
