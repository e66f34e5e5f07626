"""What a person should know about a fit, in one set of words for terminal, files and page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from emvc import graphs
from emvc._array import FloatArray

UNRELIABLE = 0.1
"""Reliability below which a view has next to nothing in common with the others."""

UNSTABLE = 0.5
"""Stability below which a cluster dissolves rather than comes back."""

_FEW = 10  # samples per cluster
_DOMINANT = 0.5  # share of all squared distances that a single column makes up


@dataclass(frozen=True)
class Finding:
    """One thing to know.

    Attributes
    ----------
    severity : {"warning", "note"}
        Whether it puts the result in doubt.
    kind : str
        Name of the rule: ``no structure``, ``wrong join``, ``unreliable view``, ``dominating column``, ``unstable
        cluster``, ``few samples`` or ``damaged samples``.
    text : str
        What was found.
    advice : str
        What to do.
    samples : list of int
        Positions of the samples that it is about, if it is about some.
    """

    severity: str
    kind: str
    text: str
    advice: str
    samples: list[int] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self)


def find(model: Any, assessment: Any = None) -> list[Finding]:
    """Return what there is to know about a fitted `emvc.EMVC`, warnings first.

    Parameters
    ----------
    model : estimator
        Fitted; of other estimators than `emvc.EMVC` less is known.
    assessment : Assessment, optional
        From `emvc.assess`.

    Examples
    --------
    >>> import numpy as np
    >>> from emvc import EMVC
    >>> rng = np.random.default_rng(0)
    >>> model = EMVC("auto").fit([rng.standard_normal((100, 5)) for _ in range(2)])
    >>> [finding.kind for finding in find(model)]
    ['no structure']
    """
    p_value = getattr(assessment, "structure_p_value", getattr(model, "structure_p_value_", float("nan")))
    found = _about_structure(model, p_value)
    reliability = getattr(model, "reliability_", None)
    if reliability is not None:
        found += _about_views(model, np.asarray(reliability))
    found += _about_columns(model)
    found += _about_clusters(model, assessment)
    found += _about_samples(model)
    return sorted(found, key=lambda finding: finding.severity != "warning")


def _n_clusters(model: Any) -> int:
    return int(getattr(model, "n_clusters_", np.max(model.labels_, initial=0) + 1))


def _about_structure(model: Any, p_value: float) -> list[Finding]:
    from emvc.structure import LEVEL

    if not p_value > LEVEL:
        return []
    number = _n_clusters(model)
    text = f"No clusters beyond chance: data made without any look as clustered as these (p = {p_value:.2f})."
    if number > 1:
        advice = f"Do not interpret the {number} clusters that were asked for."
        return [Finding("warning", "no structure", text, advice)]
    best = max(getattr(model, "n_clusters_evidence_", []), key=lambda record: record["score"], default=None)
    forced = "" if best is None else f" Asked for a number, the best guess would be {int(best['n_clusters'])}."
    return [Finding("warning", "no structure", text, f"All samples are in one cluster.{forced}")]


def _about_views(model: Any, reliability: FloatArray) -> list[Finding]:
    names = list(model.view_names_)
    if len(names) < 2 or _n_clusters(model) < 2:
        return []
    low = np.flatnonzero(reliability < UNRELIABLE)
    if len(low) == len(names):
        text = "No view finds the clusters of another one better than chance would."
        advice = "Check that the same row, or id, is the same sample in every view; if so, they have nothing in common."
        return [Finding("warning", "wrong join", text, advice)]
    advice = "Check it, or leave it out: the clusters rest on the others."
    return [
        Finding(
            "warning",
            "unreliable view",
            f"View “{names[k]}” is unreliable: alone it finds the clusters of the others hardly better than chance "
            f"(reliability {reliability[k]:.2f}).",
            advice,
        )
        for k in low
    ]


def _about_columns(model: Any) -> list[Finding]:
    training = getattr(model, "_training", None)
    if training is None or getattr(model, "affinity", None) == "precomputed":
        return []
    found = []
    for name, array, missing in zip(training.names, training.views, training.missing.T, strict=True):
        if missing.all():
            continue
        scaled = graphs.scale_view(array[np.flatnonzero(~missing)], getattr(model, "scale", "auto"))
        shares = graphs.column_variances(scaled)
        total = shares.sum()
        if (shares > 0).sum() > 2 and shares.max() > _DOMINANT * total:
            worst = int(shares.argmax())
            coding = getattr(model, "_codings_", {}).get(name)
            columns = coding.columns if coding is not None and coding.named else ()
            which = repr(columns[worst]) if len(columns) == len(shares) else worst + 1
            text = f"Column {which} of view “{name}” makes up {shares[worst] / total:.0%} of all squared distances."
            found.append(Finding("warning", "dominating column", text, "Leave it out, or use scale='zscore'."))
    return found


def _about_clusters(model: Any, assessment: Any) -> list[Finding]:
    labels = np.asarray(model.labels_)
    number = _n_clusters(model)
    found = []
    if assessment is not None and number > 1:
        stability = np.asarray(assessment.cluster_stability)
        low = np.flatnonzero(stability < UNSTABLE)
        if len(low):
            which = f"Cluster {low[0]} is" if len(low) == 1 else f"{len(low)} of {number} clusters are"
            worst = low[np.argmin(stability[low])]
            changed = "it" if len(low) == 1 else "them"
            text = (
                f"{which} unstable: fits to parts of the samples change {changed} beyond recognition "
                f"(stability {stability[worst]:.2f} of cluster {worst})."
            )
            advice = "Try fewer clusters, or read unstable ones together with their neighbours."
            members = np.flatnonzero(np.isin(labels, low))
            found.append(Finding("warning", "unstable cluster", text, advice, [int(i) for i in members]))
    if number > 1 and len(labels) < _FEW * number:
        text = f"Few samples: {len(labels)} in {number} clusters, {len(labels) / number:.0f} each on average."
        found.append(Finding("warning", "few samples", text, "Try fewer clusters, or collect more samples."))
    return found


def _about_samples(model: Any) -> list[Finding]:
    outliers = getattr(model, "outliers_", None)
    if outliers is None:
        return []
    found = []
    columns = np.asarray(outliers).reshape(len(model.labels_), -1).T
    for name, column in zip(getattr(model, "view_names_", range(len(columns))), columns, strict=True):
        rows = np.flatnonzero(column)
        if len(rows):
            many = "1 sample is" if len(rows) == 1 else f"{len(rows):,} samples are"
            text = f"{many} probably wrong in view “{name}”."
            advice = "Other views place such samples where these show them; look at their errors."
            found.append(Finding("note", "damaged samples", text, advice, [int(i) for i in rows]))
    return found
