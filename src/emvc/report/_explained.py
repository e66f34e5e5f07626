"""What the report says about an explanation, as plain data: cards, markers, annotations and values for the map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import rankdata

from emvc._array import FloatArray, IntArray
from emvc.explanation.markers import LEVEL
from emvc.explanation.result import Explanation
from emvc.explanation.survival import curve, hazard_ratios
from emvc.layout import block_edges, cluster_order
from emvc.report._encode import clean, encode, quantised

_PER_VIEW, _PER_CARD = 4, 12  # markers of a cluster on a card, at most
_SAMPLES = 5
_MOST_COLUMNS = 400
_MOST_LEVELS = 250


def explained(
    explanation: Explanation | None, model: Any, assessment: Any, names: Sequence[str] | None
) -> dict[str, Any] | None:
    """Return cards, annotations and survival curves; None if there is nothing to say."""
    if explanation is None:
        return None
    return {
        "told": explanation.summary(),
        "split": explanation.split,
        "cards": [_card(explanation, c, model, assessment, names) for c in range(explanation.n_clusters)],
        "annotations": [_annotation(finding) for finding in explanation.findings],
        "survival": [_survival(f, explanation) for f in explanation.findings if f.annotation.event is not None],
    }


def _card(
    explanation: Explanation, cluster: int, model: Any, assessment: Any, names: Sequence[str] | None
) -> dict[str, Any]:
    members = np.flatnonzero(explanation.labels == cluster)
    typical, doubtful = _typical(model, explanation.labels, cluster, assessment)
    card: dict[str, Any] = {
        "cluster": cluster,
        "size": len(members),
        "markers": _markers(explanation, cluster),
        "traits": [clean(trait.text, 160) for trait in explanation.telling_traits(cluster)],
        "typical": [_named(i, names) for i in typical],
        "doubtful": [_named(i, names) for i in doubtful],
    }
    if assessment is not None:
        card["stability"] = float(assessment.cluster_stability[cluster])
    errors = getattr(model, "sample_errors_", None)
    if errors is not None and len(members):
        shown = np.asarray(errors)[members]
        known = (~np.isnan(shown)).sum(axis=0)
        support = 1.0 - np.nansum(shown, axis=0) / np.maximum(known, 1)
        card["support"] = [
            [clean(name), float(value)] for name, value, n in zip(model.view_names_, support, known, strict=True) if n
        ]
    return card


def _named(sample: int, names: Sequence[str] | None) -> list[Any]:
    return [int(sample), str(sample) if names is None else names[sample]]


def _markers(explanation: Explanation, cluster: int) -> list[dict[str, Any]]:
    """Return the strongest markers by view."""
    table = explanation.marker_table
    if table is None or explanation.n_clusters < 2:
        return []
    keys = list(explanation.values)
    number = max(1, min(_PER_VIEW, _PER_CARD // max(len(table.view_names), 1)))
    found = []
    for k, view in enumerate(table.view_names):
        rows = table.top(cluster, k, number)
        entries = [
            {
                "name": clean(table.name(row)),
                "effect": float(table.effect[row]),
                "like": [clean(other) for other in table.followers(row)],
                "colour": keys.index(key) if (key := (k, int(table.feature[row]))) in explanation.values else None,
            }
            for row in rows
        ]
        found.append({"view": clean(view), "features": entries})
    return found


def _typical(model: Any, labels: IntArray, cluster: int, assessment: Any) -> tuple[IntArray, IntArray]:
    """Return the samples closest to the middle of their cluster, and those that another cluster could have as well.

    How clear a sample is: the distance to the nearest other centre minus that to its own, over the larger one; samples
    that change their cluster in fits to parts of the samples come first among the doubtful.
    """
    members = np.flatnonzero(labels == cluster)
    embedding = getattr(model, "embedding_", None)
    others = [c for c in np.unique(labels[labels >= 0]) if c != cluster]
    if embedding is None or not len(members) or not others:
        return members[:0], members[:0]
    rows = np.nan_to_num(np.asarray(embedding, dtype=np.float64)).reshape(len(labels), -1)
    own = np.linalg.norm(rows[members] - rows[members].mean(axis=0), axis=1)
    centres = np.stack([rows[labels == c].mean(axis=0) for c in others])
    far = np.min([np.linalg.norm(rows[members] - centre, axis=1) for centre in centres], axis=0)
    clear = (far - own) / np.maximum(np.maximum(far, own), 1e-12)
    stability = np.ones(len(members)) if assessment is None else np.nan_to_num(assessment.sample_stability[members])
    order = np.lexsort((-clear, -np.round(stability, 1)))
    number = min(_SAMPLES, len(members) // 2)
    return members[order[:number]], members[order[::-1][:number]]


def _annotation(finding: Any) -> dict[str, Any]:
    found = finding.association
    record: dict[str, Any] = {
        "name": clean(finding.annotation.name),
        "kind": finding.annotation.kind,
        "test": found.test,
        "statistic": _or_none(found.statistic),
        "p": _or_none(found.p_value),
        "fdr": _or_none(finding.fdr),
        "effect": found.effect,
        "n": found.n_samples,
    }
    if finding.table is not None:
        record |= {
            "levels": [clean(level) for level in finding.annotation.levels],
            "table": finding.table.tolist(),
            "ari": _or_none(finding.ari),
            "nmi": _or_none(finding.nmi),
        }
    return record


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _survival(finding: Any, explanation: Explanation) -> dict[str, Any]:
    column = finding.annotation
    curves = []
    for cluster in range(explanation.n_clusters):
        known = (explanation.labels == cluster) & ~np.isnan(column.values)
        if known.any():
            times, shares = curve(column.values[known], column.event[known])
            curves.append(
                {
                    "cluster": cluster,
                    "times": times.tolist(),
                    "shares": shares.tolist(),
                    "n": int(known.sum()),
                    "events": int(column.event[known].sum()),
                }
            )
    ratios = hazard_ratios(column.values, column.event, explanation.labels, explanation.n_clusters)
    return {
        "name": clean(column.name),
        "p": _or_none(finding.association.p_value),
        "curves": curves,
        "ratios": [_or_none(ratio) for ratio in ratios],
    }


def explained_arrays(explanation: Explanation | None, shown: IntArray) -> dict[str, Any]:
    """Return what the script of the page needs: columns to colour the map by, and the heat map of the markers."""
    if explanation is None:
        return {}
    colours = [_number(clean(name), values, shown) for name, values in _marker_values(explanation)]
    for finding in explanation.findings:
        column = finding.annotation
        if column.kind == "category" and len(column.levels) <= _MOST_LEVELS:
            codes = np.where(column.values < 0, 255, column.values)[shown]
            levels = [clean(level) for level in column.levels]
            colours.append({"name": clean(column.name), "levels": levels, "values": encode(codes, "<u1")})
        elif column.kind != "category":
            colours.append(_number(clean(column.name), column.values, shown))
    data: dict[str, Any] = {"colours": colours} if colours else {}
    if explanation.values and explanation.marker_table is not None:
        data["markers"] = _heat(explanation)
    return data


def _marker_values(explanation: Explanation) -> list[tuple[str, FloatArray]]:
    table = explanation.marker_table
    if table is None:
        return []
    return [
        (f"{table.feature_names[k][j]} ({table.view_names[k]})", values)
        for (k, j), values in explanation.values.items()
    ]


def _number(name: str, values: FloatArray, shown: IntArray) -> dict[str, Any]:
    """Return numbers between their 1st and 99th percentile as whole numbers up to 250."""
    known = values[~np.isnan(values)]
    low, high = (float(v) for v in np.percentile(known, [1, 99])) if len(known) else (0.0, 1.0)
    if high <= low:
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    scaled = (values[shown] - low) / ((high - low) or 1.0)
    return {"name": name, "low": f"{low:.3g}", "high": f"{high:.3g}", "values": encode(quantised(scaled), "<u1")}


def _heat(explanation: Explanation) -> dict[str, Any]:
    """Return the markers (rows, by cluster) of the samples (columns, by cluster) as percentiles, means where many."""
    table, labels = explanation.marker_table, explanation.labels
    assert table is not None
    order = cluster_order(labels)
    edges = block_edges(len(order), _MOST_COLUMNS)
    rows, lines = [], []
    for cluster, (k, j) in _owners(explanation):
        values = explanation.values[k, j]
        share = np.full(len(values), np.nan)
        known = ~np.isnan(values)
        share[known] = (rankdata(values[known]) - 0.5) / max(int(known.sum()), 1)
        ordered = share[order]
        lines.append([_mean(ordered[start:stop]) for start, stop in pairwise(edges)])
        name, view = clean(table.feature_names[k][j]), clean(table.view_names[k])
        rows.append({"name": name, "view": view, "cluster": cluster})
    named, sizes = np.unique(labels, return_counts=True)
    by_size = np.argsort(np.where(named < 0, np.iinfo(np.int64).max, named))
    return {
        "rows": rows,
        "width": len(edges) - 1,
        "values": encode(quantised(np.array(lines)), "<u1"),
        "groups": [[int(named[i]), int(sizes[i])] for i in by_size],
    }


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _owners(explanation: Explanation) -> list[tuple[int, tuple[int, int]]]:
    """Return the cluster that each kept feature marks most, in the order of the clusters."""
    table = explanation.marker_table
    assert table is not None
    best: dict[tuple[int, int], tuple[float, int]] = {}
    kept = np.isin(table.feature, [j for _, j in explanation.values]) & (table.fdr <= LEVEL)
    for row in np.flatnonzero(kept):
        key = int(table.view[row]), int(table.feature[row])
        if key in explanation.values:
            best[key] = max(best.get(key, (-1.0, 0)), (abs(float(table.effect[row])), -int(table.cluster[row])))
    owned = [(-cluster, key) for key, (_, cluster) in best.items()]
    rising = {key: float(np.nanmean(explanation.values[key][explanation.labels == c])) for c, key in owned}
    middle = {key: float(np.nanmean(explanation.values[key])) for _, key in owned}
    return sorted(owned, key=lambda item: (item[0], rising[item[1]] < middle[item[1]], -best[item[1]][0]))
