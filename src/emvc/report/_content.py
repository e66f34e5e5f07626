"""What the report says about a model, as plain data: numbers, texts and quantised arrays."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from emvc._array import BoolArray, FloatArray, IntArray
from emvc._version import __version__
from emvc.findings import UNRELIABLE, find
from emvc.layout import block_argmax, block_edges, block_means, cluster_order, plane_layout, state_labels
from emvc.report._encode import clean, encode, quantised
from emvc.report._explained import explained, explained_arrays

SUSPICIOUS = 0.5
"""Errors from here on are worth a look."""
_MOST_BLOCKS = 300
_MOST_COLUMNS = 600
_MOST_SHOWN = 20_000
_MOST_ENTRIES = 12  # per sample: more views than a person would read about
_CERTIFIED = 0.01
_PROBABILITY = re.compile(r"^(.*) \(probability (\d+(?:\.\d+)?)\)$")


def describe(
    model: Any,
    *,
    sample_ids: Sequence[Any] | None = None,
    selection: Any = None,
    assessment: Any = None,
    explanation: Any = None,
    name_clusters: bool = False,
) -> dict[str, Any]:
    """Return what the report says about a fitted model, as plain data.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package.
    sample_ids : sequence, optional
        Names of the samples.
    selection : Selection, optional
        From `emvc.select`.
    assessment : Assessment, optional
        From `emvc.assess`.
    explanation : Explanation, optional
        From `emvc.explain`.
    name_clusters : bool
        Whether clusters are named after their strongest annotation.

    Examples
    --------
    >>> from emvc import KernelAddition
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=20, random_state=0)
    >>> content = describe(KernelAddition(2, random_state=0).fit(data.views))
    >>> content["n_samples"], content["n_clusters"], content["certificate"] is None
    (40, 2, True)
    """
    if getattr(model, "labels_", None) is None:
        raise TypeError(f"The report needs a fitted model, but this {type(model).__name__} has no labels_: call fit.")
    labels = np.asarray(model.labels_).astype(np.int64)
    names = _sample_names(sample_ids, len(labels))
    errors, outliers = _errors(model, len(labels))
    views = _views(model, errors, outliers)
    entries = _suspicious_entries(model, errors, outliers, views)
    level = _suspicion(len(labels), entries, errors, outliers)
    shown = _shown(level)
    sizes = np.bincount(labels[labels >= 0], minlength=int(getattr(model, "n_clusters_", 0)))
    return {
        "version": __version__,
        "method": type(model).__name__,
        "n_samples": len(labels),
        "n_clusters": len(sizes),
        "n_unassigned": int(np.sum(labels < 0)),
        "clusters": [
            {"name": str(k), "size": int(size), "suspicious": int(np.sum(level[labels == k] > 0))}
            | ({} if assessment is None else {"stability": float(assessment.cluster_stability[k])})
            for k, size in enumerate(sizes)
        ],
        "findings": [finding.as_dict() for finding in find(model, assessment)],
        "assessment": _assessment(assessment),
        "views": views,
        "has_errors": errors is not None,
        "n_suspicious": int(np.sum(level == 1)),
        "n_partly": int(np.sum(level == 2)),
        "n_lost": int(np.sum(level == 3)),
        "n_missing": int(np.isnan(errors).sum()) if errors is not None else 0,
        "certificate": _certificate(model),
        "convergence": _convergence(model),
        "evidence": _evidence(model, selection),
        "fitted": _fitted(model),
        "settings": _settings(model),
        "versions": _versions(),
        "n_shown": len(shown),
        "explanation": explained(explanation, model, assessment, names),
        "data": _arrays(model, labels, errors, names, views, level, shown, entries)
        | ({} if assessment is None else {"stability": _stability(assessment, shown)})
        | explained_arrays(explanation, shown)
        | {"names": _cluster_names(explanation) if name_clusters else {}},
    }


def _cluster_names(explanation: Any) -> dict[str, str]:
    """Return names by cluster, of those that an annotation tells apart."""
    named = [] if explanation is None else explanation.names()
    return {str(k): clean(name) for k, name in enumerate(named) if name != str(k)}


def _sample_names(sample_ids: Sequence[Any] | None, n_samples: int) -> list[str] | None:
    if sample_ids is None:
        return None
    names = [clean(name) for name in sample_ids]
    if len(names) != n_samples:
        raise ValueError(f"sample_ids has {len(names)} names, but the model was fitted to {n_samples} samples.")
    return names


def _errors(model: Any, n_samples: int) -> tuple[FloatArray | None, BoolArray]:
    """Return errors per sample and view, or None, and which samples were left out of which view."""
    errors = getattr(model, "sample_errors_", None)
    if errors is None:
        return None, np.zeros((n_samples, 0), dtype=bool)
    errors = np.asarray(errors, dtype=np.float64).reshape(n_samples, -1)
    outliers = getattr(model, "outliers_", None)
    return errors, np.zeros(errors.shape, dtype=bool) if outliers is None else np.asarray(outliers, dtype=bool)


def _views(model: Any, errors: FloatArray | None, outliers: BoolArray) -> list[dict[str, Any]]:
    """Return name, reliability, weight and counts of every view."""
    names = getattr(model, "view_names_", None)
    if names is None:
        names = [str(k) for k in range(0 if errors is None else errors.shape[1])]
    view_errors = getattr(model, "view_errors_", None)
    weights = next((w for w in (getattr(model, n, None) for n in ("view_weights_", "weights_")) if w is not None), None)
    scores, gaps = getattr(model, "view_scores_", None), getattr(model, "missing_cells_", None)
    views = []
    for k, name in enumerate(names):
        view: dict[str, Any] = {"name": clean(name)}
        if view_errors is not None:
            view["reliability"] = float(np.clip(1.0 - view_errors[k], 0.0, 1.0))
        if weights is not None:
            view["weight"] = float(weights[k] / np.max(weights))
        if scores is not None:
            view["score"] = float(scores[k])
        if errors is not None:
            view["condemned"] = int(outliers[:, k].sum())
            view["missing"] = int(np.isnan(errors[:, k]).sum())
        if gaps is not None:
            view["missing cells"] = float(gaps[k])
        view["unreliable"] = bool(view.get("reliability", 1.0) < UNRELIABLE)
        views.append(view)
    return views


def _suspicious_entries(
    model: Any, errors: FloatArray | None, outliers: BoolArray, views: list[dict[str, Any]]
) -> list[tuple[int, int, float, bool, str]]:
    """Return (sample, view, error, condemned, reason), worst first.

    In a view that is unreliable as a whole every sample is suspicious: only the condemned ones are named.
    """
    if errors is None:
        return []
    position = {str(name): k for k, name in enumerate(getattr(model, "view_names_", range(errors.shape[1])))}
    found: list[tuple[int, int, float, bool, str]]
    if hasattr(model, "error_report"):
        found = [
            (int(e.sample), position[str(e.view)], float(e.error), bool(e.condemned), str(e.reason))
            for e in model.error_report(errors.size).samples
        ]
    else:
        filled = np.nan_to_num(errors, nan=-1.0)
        rows, columns = np.nonzero(outliers | (filled >= SUSPICIOUS))
        order = np.argsort(-(filled + outliers)[rows, columns], kind="stable")
        found = [
            (int(i), int(k), float(filled[i, k]), bool(outliers[i, k]), "")
            for i, k in zip(rows[order], columns[order], strict=True)
        ]
    return [entry for entry in found if entry[3] or not views[entry[1]]["unreliable"]]


def _suspicion(n_samples: int, entries: Sequence[Any], errors: FloatArray | None, outliers: BoolArray) -> IntArray:
    """Return 0 for usual samples, 1 for suspicious ones, 2 if left out of some views and 3 if of all it is in."""
    level = np.zeros(n_samples, dtype=np.int64)
    if errors is None:
        return level
    level[[entry[0] for entry in entries]] = 1
    level[outliers.any(axis=1)] = 2
    level[(outliers | np.isnan(errors)).all(axis=1)] = 3
    return level


def _shown(level: IntArray) -> IntArray:
    """Return the samples that the page holds: all, or as many as a browser can draw, suspicious ones first."""
    if len(level) <= _MOST_SHOWN:
        return np.arange(len(level))
    flagged = np.argsort(-level, kind="stable")[: min(int(np.sum(level > 0)), _MOST_SHOWN)]
    others = np.setdiff1d(np.arange(len(level)), flagged)
    picked = others[np.linspace(0, len(others) - 1, _MOST_SHOWN - len(flagged)).astype(np.int64)]
    return np.union1d(flagged, picked)


def _stability(assessment: Any, shown: IntArray) -> str:
    return encode(quantised(np.asarray(assessment.sample_stability)[shown]), "<u1")


def _assessment(assessment: Any) -> dict[str, Any] | None:
    """Return what an assessment says about numbers of clusters and views."""
    if assessment is None:
        return None
    return {
        "p_value": float(assessment.structure_p_value),
        "n_resamples": int(assessment.n_resamples),
        "by_n_clusters": [
            {"n_clusters": int(r["n_clusters"]), "stability": float(r["stability"]), "score": float(r["score"])}
            for r in assessment.by_n_clusters
        ],
        "views": [{**view, "name": clean(view["name"])} for view in assessment.views],
        "tree": [[list(parent), list(child), share] for parent, child, share in assessment.tree()],
    }


def _certificate(model: Any) -> dict[str, Any] | None:
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        return None
    status = str(getattr(model, "status_", "converged"))
    tol = getattr(model, "tol", None)
    enough = max(_CERTIFIED, float(tol) if isinstance(tol, int | float) else 0.0)
    certified = bool(np.isfinite(gap) and gap <= enough)
    return {"gap": float(gap), "status": status, "n_iter": getattr(model, "n_iter_", None), "certified": certified}


def _convergence(model: Any) -> dict[str, Any] | None:
    """Return the curve along the iterations: duality gap, else residual, else objective."""
    history = getattr(model, "history_", None)
    if history is None:
        objective = np.atleast_1d(np.asarray(getattr(model, "objective_", np.nan), dtype=np.float64))
        if objective.size < 2:
            return None
        return {"name": "objective", "x": list(range(1, objective.size + 1)), "y": objective.tolist(), "log": False}
    gaps = np.asarray(history.gap, dtype=np.float64)
    has_gap = bool(gaps.size and np.isfinite(gaps).all())
    values = gaps if has_gap else np.asarray(history.residual, dtype=np.float64)
    if not values.size:
        return None
    lines = [(float(model.duality_gap_), "certified")] if has_gap and np.isfinite(model.duality_gap_) else []
    return {
        "name": "relative duality gap" if has_gap else "constraint residual",
        "x": [int(i) for i in history.iteration],
        "y": values.tolist(),
        "lines": lines,
        "log": True,
    }


def _evidence(model: Any, selection: Any) -> dict[str, Any]:
    """Return what speaks for the number of clusters and for the weights."""
    evidence: dict[str, Any] = {}
    clusters = getattr(model, "n_clusters_evidence_", None) or getattr(selection, "clusters", None)
    if clusters:
        evidence["clusters"] = [{name: float(value) for name, value in record.items()} for record in clusters]
        confidence = getattr(model, "n_clusters_confidence_", getattr(selection, "confidence", None))
        evidence["confidence"] = None if confidence is None else float(confidence)
    weights = getattr(selection, "weights", None)
    if weights:
        evidence["weights"] = [{name: float(value) for name, value in record.items()} for record in weights]
        evidence["chosen_beta"] = float(selection.beta)
    values = getattr(model, "eigenvalues_", None)
    if values is not None:
        evidence["eigenvalues"] = [float(value) for value in values]
    return evidence


def _fitted(model: Any) -> dict[str, str]:
    """Return the numbers that the fit has found, as text."""
    found = {}
    for name in ("n_clusters_", "beta_", "lam_", "objective_", "duality_gap_", "rank_", "n_iter_", "status_",
                 "n_clusters_confidence_", "n_features_in_"):  # fmt: skip
        value = getattr(model, name, None)
        if isinstance(value, str | int | np.integer):
            found[name] = str(value)
        elif isinstance(value, float | np.floating):
            found[name] = f"{value:.4g}"
    return found


def _settings(model: Any) -> list[dict[str, Any]]:
    """Return the options of the constructor, with whether they differ from the defaults."""
    if not hasattr(model, "get_params"):
        return []
    try:
        defaults = type(model)().get_params(deep=False)
    except TypeError:  # a constructor with required options has no defaults to compare with
        defaults = {}
    return [
        {"name": name, "value": clean(repr(value), 500), "changed": repr(value) != repr(defaults.get(name))}
        for name, value in model.get_params(deep=False).items()
    ]


def _versions() -> dict[str, str]:
    found = {"emvc": __version__, "Python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def _arrays(
    model: Any,
    labels: IntArray,
    errors: FloatArray | None,
    names: list[str] | None,
    views: list[dict[str, Any]],
    level: IntArray,
    shown: IntArray,
    entries: Sequence[tuple[int, int, float, bool, str]],
) -> dict[str, Any]:
    """Return what the script of the page needs."""
    data: dict[str, Any] = {
        "n": len(shown),
        "views": [view["name"] for view in views],
        "labels": encode(labels[shown], "<i4"),
        "level": encode(level[shown], "<u1"),
        "index": None if len(shown) == len(labels) else encode(shown, "<u4"),
        "ids": None if names is None else [names[i] for i in shown],
    }
    embedding = getattr(model, "embedding_", None)
    if embedding is not None:
        # Samples that no view can be believed about have no place of their own among the clusters.
        points = plane_layout(np.asarray(embedding), np.where(level == 3, -1, labels))
        data["points"] = encode(np.rint(65535 * points[shown]), "<u2")
    if errors is not None:
        data["errors"] = encode(quantised(errors[shown]), "<u1")
        # In an unreliable view all samples are alike: it says nothing about which of them is worst.
        reliable = np.array([not view["unreliable"] for view in views], dtype=bool)
        reliable = reliable if reliable.any() else ~reliable
        data["reliable"] = reliable.tolist()
        data["heat"] = _heat(labels, errors, errors[:, reliable], shown)
        data["reasons"], data["rows"] = _rows(entries, shown)
    consensus = getattr(model, "consensus_", None)
    if consensus is not None and getattr(consensus, "ndim", 0) == 2 and consensus.shape[0] == len(labels):
        data["consensus"] = _consensus(consensus, labels)
    return data


def _groups(labels: IntArray) -> list[list[int]]:
    """Return [cluster, size] in the order in which clusters are drawn."""
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(np.where(names < 0, np.iinfo(np.int64).max, names))
    return [[int(names[k]), int(sizes[k])] for k in order]


def _consensus(consensus: Any, labels: IntArray) -> dict[str, Any]:
    """Return the block means in units of the mean link, after a square root that keeps weak links visible."""
    columns = state_labels(consensus, labels)
    means = block_means(consensus, cluster_order(labels), cluster_order(columns), _MOST_BLOCKS)
    values = np.sqrt(np.maximum(np.nan_to_num(means) * consensus.shape[1], 0.0))
    positive = values[values > 0]
    # A cap at the 99th percentile keeps a few strong links from hiding the blocks.
    top = float(np.percentile(positive, 99)) if positive.size else 1.0
    return {
        "height": values.shape[0],
        "width": values.shape[1],
        "values": encode(np.rint(255 * np.minimum(values / top, 1.0)), "<u1"),
        "top": round(top, 6),
        "rows": _groups(labels),
        "columns": _groups(columns),
        "landmarks": consensus.shape[0] != consensus.shape[1],
    }


def _heat(labels: IntArray, errors: FloatArray, telling: FloatArray, shown: IntArray) -> dict[str, Any]:
    """Return the errors by view (rows) and sample (columns), as maxima where there are many samples.

    Samples are ordered by cluster and, inside a cluster, by their largest error in the views that tell them apart.
    """
    worst = np.nan_to_num(telling, nan=-1.0).max(axis=1, initial=-1.0)
    order = cluster_order(labels, worst)
    edges = block_edges(len(order), _MOST_COLUMNS)
    place = np.full(len(labels), -1)
    place[shown] = np.arange(len(shown))
    who = np.array([order[block_argmax(column[order], edges)] for column in errors.T])
    values = quantised(np.take_along_axis(errors.T, who, axis=1)) if len(who) else np.zeros((0, 0))
    return {
        "width": len(edges) - 1,
        "values": encode(values, "<u1"),
        "who": encode(place[who] if len(who) else who, "<i4"),
        "groups": _groups(labels),
    }


def _rows(entries: Sequence[tuple[int, int, float, bool, str]], shown: IntArray) -> tuple[list[str], list[Any]]:
    """Return the different reasons, and one row per sample.

    A row holds the position of the sample, its numbers of condemnations and of entries, and the worst entries as
    [view, error, condemned, reason, probability].
    """
    place = {int(i): position for position, i in enumerate(shown)}
    reasons: dict[str, int] = {}
    rows: dict[int, list[Any]] = {}
    for sample, view, error, condemned, reason in entries:
        if sample not in place:
            continue
        row = rows.setdefault(sample, [place[sample], 0, 0])
        row[1] += int(condemned)
        row[2] += 1
        if row[2] <= _MOST_ENTRIES:
            match = _PROBABILITY.match(reason)
            text, probability = (match[1], float(match[2])) if match else (reason, None)
            row.append([view, round(error, 3), int(condemned), reasons.setdefault(text, len(reasons)), probability])
    return list(reasons), list(rows.values())
