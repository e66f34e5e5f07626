"""Explanations and files: annotations are read, tables and a paragraph about the methods are written."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emvc._terminal import csv_bytes
from emvc._version import __version__
from emvc.explanation.result import Explanation
from emvc.files import ReadOptions, read_file

MOST_WRITTEN = 1000
"""Rows of markers.csv for each cluster and view."""


def read_annotation_file(path: Path, sample_ids: Sequence[str], *, has_ids: bool) -> Any:
    """Return a table of annotations as a DataFrame, indexed by the column that names most of the samples.

    Parameters
    ----------
    path : Path
        A table of any kind that `emvc.read_views` reads.
    sample_ids : sequence of str
        Names of the samples.
    has_ids : bool
        Whether these are names, or only numbers of rows; rows then belong to each other by position.

    Raises
    ------
    ValueError
        If the file cannot be read or no column names the samples.
    """
    views = read_file(path, options=ReadOptions(id_column=""))
    frame = views[0].values
    if len(views) > 1 or not views[0].is_table:
        raise ValueError(f"{path.name} is not one table of annotations.")
    if not has_ids:
        if len(frame) != len(sample_ids):
            raise ValueError(f"{path.name} has {len(frame)} rows, the views {len(sample_ids)}, and there are no ids.")
        return frame
    wanted = set(sample_ids)
    named = {name: [_as_id(cell) for cell in frame[name]] for name in frame.columns}
    hits = {name: len(wanted & set(ids)) for name, ids in named.items()}
    best = max(hits, key=lambda name: hits[name])
    if not hits[best]:
        raise ValueError(f"{path.name}: no column names any of the samples, such as {sample_ids[0]!r}.")
    return frame.set_axis(named[best], axis=0).drop(columns=[best])


def _as_id(cell: Any) -> str:
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if whole else str(cell).strip()


def marker_file(explanation: Explanation, *, safe: bool = False) -> bytes:
    """Return markers.csv: the significant features of each cluster and view, strongest first.

    With ``safe``, texts that a spreadsheet would take for formulas get an apostrophe in front.
    """
    return _csv(explanation.marker_columns(most=MOST_WRITTEN), safe=safe)


def annotation_file(explanation: Explanation, *, safe: bool = False) -> bytes:
    """Return annotations.csv: one row for each annotation, and what each cluster has most of; ``safe`` as above."""
    columns: dict[str, Any] = dict(explanation.annotation_columns())
    for cluster in range(explanation.n_clusters):
        own = [t for t in explanation.trait_list if t.cluster == cluster and (t.effect > 0 or not t.level)]
        told = {t.column: t.text.partition(" ")[2] for t in reversed(own)}
        columns[f"cluster_{cluster}"] = [told.get(name, "") for name in columns["column"]]
    return _csv(columns, safe=safe)


def _csv(columns: Mapping[str, Any], *, safe: bool) -> bytes:
    rows = ([_cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return csv_bytes([list(columns), *rows], safe=safe)


def _cell(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value


def methods_text(model: Any, explanation: Explanation | None = None, assessment: Any = None) -> str:
    """Return a paragraph to paste into a paper: what was done, with which settings and versions, and what to cite.

    Examples
    --------
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_digits_views
    >>> text = methods_text(EMVC(10, random_state=0).fit(make_digits_views(n_samples=150).views))
    >>> text.startswith("150 samples described by 3 views (")
    True
    """
    import numpy
    import scipy
    import sklearn

    names = list(getattr(model, "view_names_", []))
    listed = f"{len(names)} view{'s' if len(names) != 1 else ''} ({', '.join(names)})"
    told = [
        f"{len(model.labels_)} samples described by {listed} were grouped into {model.n_clusters_} clusters with "
        f"{type(model).__name__} of emvc {__version__} ({_settings(model)})."
    ]
    if type(model).__name__ == "EMVC":
        told.append(_about_emvc(model))
    if assessment is not None:
        told.append(
            f"Whether there are clusters beyond chance was tested against data without clusters (p = "
            f"{assessment.structure_p_value:.3g}); stability is the mean Jaccard index over "
            f"{assessment.n_resamples} fits to 80 % of the samples ({_values(assessment.cluster_stability)})."
        )
    if explanation is not None:
        told += _about_explanation(explanation)
    told.append(
        f"Software: emvc {__version__}, Python {platform.python_version()}, numpy {numpy.__version__}, scipy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}."
    )
    told.append("Reference: M. Najafi, L. He, P. S. Yu, Error-Robust Multi-View Clustering, IEEE Big Data 2017.")
    return "\n".join(told) + "\n"


def _settings(model: Any) -> str:
    try:
        defaults = type(model)().get_params(deep=False)
    except (TypeError, AttributeError):
        return "settings not known"
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(defaults.get(name)) and name not in ("verbose", "n_jobs")
    }
    return ", ".join(f"{name} = {value!r}" for name, value in changed.items()) or "default settings"


def _about_emvc(model: Any) -> str:
    share = float(model.outliers_.mean())
    return (
        "Each view was turned into a graph of nearest neighbours; rows that are isolated or contradicted by "
        f"other views lose weight in their common graph ({share:.1%} of all rows of views were flagged), "
        f"whose leading eigenvectors were clustered by k-means. Reliability of the views: "
        + ", ".join(f"{name} {value:.2f}" for name, value in zip(model.view_names_, model.reliability_, strict=True))
        + "."
    )


def _about_explanation(explanation: Explanation) -> list[str]:
    told = []
    if explanation.marker_table is not None and explanation.n_clusters > 1:
        told.append(
            "Features were compared between each cluster and all other samples by Mann-Whitney tests "
            "(features of zeros and ones with expected counts below five: Fisher's exact test); effects are "
            "rank-biserial correlations, and p-values were corrected over all features and clusters "
            "(Benjamini-Hochberg)."
        )
        told.append(
            "For each view, p-values refer to clusters found in the other views."
            if explanation.split
            else "p-values are descriptive, since the features were used to find the clusters."
        )
    if explanation.findings:
        tests = sorted({finding.association.test for finding in explanation.findings} - {"none"})
        told.append(f"Annotations were compared with the clusters ({', '.join(tests)}; Benjamini-Hochberg).")
    return told


def _values(numbers: Any) -> str:
    return ", ".join(f"{value:.2f}" for value in numbers)
