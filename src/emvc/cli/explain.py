"""What `emvc cluster` does to explain its clusters: annotations in, tables and a methods paragraph out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from emvc.cli.options import model_file

FILES = ("markers.csv", "annotations.csv", "methods.txt")
"""What is written beside labels, report and model; annotations.csv only if there are annotations."""


def explain_clusters(joined: Any, model: Any, annotate: Path | None, *, split: bool, assessment: Any) -> Any:
    """Return the explanation of the clusters of joined views; there are no markers of data that stay on disk."""
    from emvc._validation import has_dask
    from emvc.explanation import explain
    from emvc.explanation.files import read_annotation_file

    stored = has_dask(joined.views)
    if split and stored:
        raise ValueError("--split needs data in memory.")
    if stored and annotate is None:
        return None
    table = None
    if annotate is not None:
        table = read_annotation_file(annotate, joined.sample_ids, has_ids=joined.has_ids)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once, by the fit
        return explain(model, None if stored else joined.views, table, split=split, assessment=assessment)


def explain_saved(model: Any) -> Any:
    """Return the explanation of a saved model by the views that it has kept, None if it has kept none, or a part."""
    import numpy as np
    import scipy.sparse

    from emvc.explanation import explain

    kept = getattr(model, "_training", None)
    affinity = getattr(model, "affinity", None)
    if (
        kept is None
        or len(kept.missing) != len(model.labels_)
        or (isinstance(affinity, str) and affinity == "precomputed")
    ):
        return None
    views = {}
    for name, view, missing in zip(kept.names, kept.views, kept.missing.T, strict=True):
        whole = view.toarray() if scipy.sparse.issparse(view) and missing.any() else view
        views[name] = np.where(missing[:, None], np.nan, whole) if missing.any() else whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return explain(model, views)


def explanation_files(model: Any, explanation: Any, assessment: Any, *, safe: bool) -> dict[str, bytes]:
    """Return the contents of the files by name."""
    from emvc.explanation.files import annotation_file, marker_file, methods_text

    files = {"methods.txt": methods_text(model, explanation, assessment).encode()}
    if explanation is not None:
        files["markers.csv"] = marker_file(explanation, safe=safe)
        if explanation.findings:
            files["annotations.csv"] = annotation_file(explanation, safe=safe)
    return files


def explanation_lines(explanation: Any) -> list[str]:
    """Return what to print: what to know first, clusters with their strongest markers, and the annotations."""
    if explanation is None or explanation.n_clusters < 2:
        return []
    lines: list[str] = explanation.summary()
    for cluster, name in enumerate(explanation.names()):
        called = f"cluster {cluster}" + ("" if name == str(cluster) else f" “{name}”")
        lines.append(f"{called}: " + "; ".join(explanation.marker_texts(cluster, 3)))
    for finding in explanation.findings:
        known = finding.fdr <= 0.05
        lines.append(
            f"{finding.annotation.name}: {'associated' if known else 'not associated'} with the clusters "
            f"({finding.association.test}, FDR {finding.fdr:.1e})"
        )
    return lines


def write_comparison(first: Path, second: Path, output: Path | None) -> Path:
    """Write the page that compares two saved models, given as files or as folders of results; return its path."""
    from emvc import report
    from emvc.persistence import load

    paths = [model_file(path) for path in (first, second)]
    # Folders tell runs apart, whose files have the same name.
    names = [str(path.parent.name if paths[0].name == paths[1].name else path.name) for path in paths]
    models = [load(path) for path in paths]
    target = output or paths[1].with_name("comparison.html")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder, not a file.")
    page = report.render_comparison(models[0], models[1], names=(names[0] or "first", names[1] or "second"))
    report.write_files(target.parent, {target.name: page.encode()})
    return target
