"""Annotations cluster by cluster: which values each has more or less of, and names made of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import false_discovery_control

from emvc._array import FloatArray, IntArray
from emvc.explanation.associations import Association, compare_categories, compare_numbers, contingency
from emvc.explanation.columns import Annotation
from emvc.explanation.contrasts import contrast
from emvc.explanation.markers import LEVEL
from emvc.explanation.survival import compare_survival
from emvc.metrics import clustering_scores


@dataclass(frozen=True)
class Finding:
    """One annotation and all clusters.

    Attributes
    ----------
    annotation : Annotation
        The column.
    association : Association
        Test of all clusters together.
    fdr : float
        Its p-value after Benjamini and Hochberg over all annotations.
    table : ndarray of int of shape (n_clusters, n_levels), optional
        Counts, of categories.
    ari, nmi : float
        Agreement of the clusters with the categories; NaN for others.
    """

    annotation: Annotation
    association: Association
    fdr: float
    table: IntArray | None = None
    ari: float = float("nan")
    nmi: float = float("nan")


@dataclass(frozen=True)
class Trait:
    """One value of an annotation in one cluster, against all other samples.

    Attributes
    ----------
    cluster : int
        The cluster.
    column, level : str
        The annotation and its value; empty for numbers.
    effect : float
        Difference of the shares of samples with this value; of numbers, rank-biserial correlation.
    p_value, fdr : float
        Exact or by ranks, corrected over all traits.
    inside, outside : float
        Share with this value, or mean.
    """

    cluster: int
    column: str
    level: str
    effect: float
    p_value: float
    fdr: float
    inside: float
    outside: float

    @property
    def text(self) -> str:
        """Return the trait in words."""
        if self.level:
            return f"{self.column} {self.level}: {self.inside:.0%} (others {self.outside:.0%})"
        return f"{self.column} {'high' if self.effect > 0 else 'low'}: {self.inside:.3g} (others {self.outside:.3g})"


def associate(
    columns: Sequence[Annotation], labels: IntArray, n_clusters: int, rng: np.random.Generator
) -> list[Finding]:
    """Test every annotation, the strongest evidence first."""
    found = [_test(column, labels, n_clusters, rng) for column in columns]
    p_values = np.array([association.p_value for association in found])
    fdr = _corrected(p_values)
    order = np.lexsort((-np.array([a.effect for a in found]), np.where(np.isnan(p_values), 2.0, p_values)))
    return [_finding(columns[i], found[i], float(fdr[i]), labels, n_clusters) for i in order]


def _test(column: Annotation, labels: IntArray, n_clusters: int, rng: np.random.Generator) -> Association:
    if column.kind == "number":
        return compare_numbers(column.values, labels)
    if column.event is not None:
        return compare_survival(column.values, column.event, labels)
    return compare_categories(contingency(labels, column.values, n_clusters, len(column.levels)), rng)


def _corrected(p_values: FloatArray) -> FloatArray:
    """Return false discovery rates; NaN stays NaN and does not count."""
    fdr = np.full(len(p_values), np.nan)
    known = ~np.isnan(p_values)
    if known.any():
        fdr[known] = false_discovery_control(p_values[known])
    return fdr


def _finding(column: Annotation, association: Association, fdr: float, labels: IntArray, n_clusters: int) -> Finding:
    if column.kind != "category":
        return Finding(column, association, fdr)
    table = contingency(labels, column.values, n_clusters, len(column.levels))
    known = (labels >= 0) & (column.values >= 0)
    if known.sum() < 2:
        return Finding(column, association, fdr, table)
    scores = clustering_scores(column.values[known], labels[known])
    return Finding(column, association, fdr, table, scores["ari"], scores["nmi"])


def find_traits(columns: Sequence[Annotation], labels: IntArray, n_clusters: int) -> list[Trait]:
    """Return what each cluster has more or less of than the rest, by cluster, strongest first.

    Examples
    --------
    >>> import numpy as np
    >>> from emvc.explanation.columns import read_annotations
    >>> columns, _ = read_annotations({"sex": ["m"] * 9 + ["f"] * 9}, 18, None)
    >>> [trait.text for trait in find_traits(columns, np.repeat([0, 1], 9), 2)][0]
    'sex m: 100% (others 0%)'
    """
    names, values = [], []
    for column in columns:
        if column.kind == "number":
            names.append((column.name, ""))
            values.append(column.values)
        elif column.kind == "category":
            names += [(column.name, level) for level in column.levels]
            values += [np.where(column.values < 0, np.nan, column.values == k) for k in range(len(column.levels))]
    if not values or n_clusters < 2:
        return []
    array = np.stack(values, axis=1).astype(np.float64)
    found = contrast(array, labels, n_clusters)
    fdr = false_discovery_control(found.p_value.ravel()).reshape(found.p_value.shape)
    traits = []
    for cluster in range(n_clusters):
        inside, outside = _mean(array[labels == cluster]), _mean(array[(labels != cluster) & (labels >= 0)])
        order = np.lexsort(
            (-np.sign(found.effect[:, cluster]), -np.abs(found.effect[:, cluster]), fdr[:, cluster] > LEVEL)
        )
        for j in order:
            column, level = names[j]
            effect, p_value, rate = (float(part[j, cluster]) for part in (found.effect, found.p_value, fdr))
            traits.append(Trait(cluster, column, level, effect, p_value, rate, float(inside[j]), float(outside[j])))
    return traits


def _mean(rows: FloatArray) -> FloatArray:
    counts = np.sum(~np.isnan(rows), axis=0)
    return np.asarray(np.divide(np.nansum(rows, axis=0), counts, out=np.full(rows.shape[1], np.nan), where=counts > 0))


def name_clusters(traits: Sequence[Trait], n_clusters: int) -> list[str]:
    """Return a name for each cluster: what it has most of, or its number if nothing tells it from the rest."""
    names: list[str] = []
    for cluster in range(n_clusters):
        own = [t for t in traits if t.cluster == cluster and t.fdr <= LEVEL and (t.effect > 0 or not t.level)]
        best = max(own, key=lambda t: abs(t.effect), default=None)
        if best is None:
            names.append(str(cluster))
        else:
            names.append(best.level or f"{best.column} {'high' if best.effect > 0 else 'low'}")
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})" for i, name in enumerate(names)
    ]
