"""The seven measures of the paper, for a clustering whose true classes are known, and one for others."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from emvc._array import FloatArray, IntArray
from emvc._validation import check_integer, check_views
from emvc.graphs import local_affinity, scale_view

METRICS = ("f_score", "precision", "recall", "nmi", "entropy", "accuracy", "ari")
Average = Literal["arithmetic", "geometric", "min", "max"]


def _check_labels(y_true: Any, labels: Any) -> tuple[IntArray, IntArray]:
    y_true, labels = np.asarray(y_true), np.asarray(labels)
    for name, array in (("y_true", y_true), ("labels", labels)):
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"{name} must be a non-empty one-dimensional array, got shape {array.shape}.")
    if y_true.shape != labels.shape:
        raise ValueError(f"y_true has {len(y_true)} entries, labels has {len(labels)}.")
    try:
        encoded = [np.unique(array, return_inverse=True)[1] for array in (y_true, labels)]
    except TypeError as error:
        raise TypeError(
            f"y_true and labels must each be of one kind, such as all integers or all strings: {error}"
        ) from error
    return encoded[0], encoded[1]


def clustering_accuracy(y_true: Any, labels: Any) -> float:
    """Return the share of samples that agree under the best one-to-one matching of clusters and classes.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 1])
    0.75
    """
    table = contingency_matrix(*_check_labels(y_true, labels))
    classes, clusters = linear_sum_assignment(table, maximize=True)
    return float(table[classes, clusters].sum() / table.sum())


def cluster_entropy(y_true: Any, labels: Any) -> float:
    """Return the mean entropy (base 2) of the true classes inside each cluster, weighted by cluster size.

    Examples
    --------
    >>> cluster_entropy([0, 0, 1, 1], [0, 1, 0, 1])
    1.0
    """
    table = contingency_matrix(*_check_labels(y_true, labels)).astype(np.float64)
    sizes = table.sum(axis=0)
    shares = table / sizes
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return float(-(shares * logs).sum(axis=0) @ sizes / sizes.sum()) + 0.0


def pair_scores(y_true: Any, labels: Any) -> tuple[float, float, float]:
    """Return F-score, precision and recall over pairs of samples.

    A pair is positive if the clustering puts it together, and right if the true classes do so too. Without any
    positive (or true) pair, precision (or recall) is 1 if there is nothing to find and 0 otherwise.

    Examples
    --------
    >>> pair_scores([0, 0, 1, 1], [0, 0, 0, 1])
    (0.4, 0.3333333333333333, 0.5)
    """
    (_, false_positive), (false_negative, true_positive) = pair_confusion_matrix(*_check_labels(y_true, labels))
    found, real = true_positive + false_positive, true_positive + false_negative
    precision = float(true_positive / found) if found else float(real == 0)
    recall = float(true_positive / real) if real else float(found == 0)
    f_score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f_score, precision, recall


def clustering_scores(y_true: Any, labels: Any, *, nmi_average: Average = "arithmetic") -> dict[str, float]:
    """Return all seven measures.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    labels : array-like of shape (n_samples,)
        Clusters; the label -1 (an outlier) counts as a cluster of its own.
    nmi_average : {"arithmetic", "geometric", "min", "max"}
        Mean of the two entropies by which the mutual information is divided.

    Returns
    -------
    dict
        With the keys ``f_score``, ``precision``, ``recall`` (over pairs), ``nmi``, ``entropy`` (less is better),
        ``accuracy`` and ``ari``.

    Examples
    --------
    >>> scores = clustering_scores([0, 0, 1, 1], [1, 1, 0, 0])
    >>> scores["accuracy"], scores["entropy"]
    (1.0, 0.0)
    """
    y_true, labels = _check_labels(y_true, labels)
    f_score, precision, recall = pair_scores(y_true, labels)
    return {
        "f_score": f_score,
        "precision": precision,
        "recall": recall,
        "nmi": float(normalized_mutual_info_score(y_true, labels, average_method=nmi_average)),
        "entropy": cluster_entropy(y_true, labels),
        "accuracy": clustering_accuracy(y_true, labels),
        "ari": float(adjusted_rand_score(y_true, labels)),
    }


def structure_score(views: Any, labels: Any, *, n_neighbors: int = 10) -> float:
    r"""Return how far near samples share a cluster beyond chance, as a mean over the views; needs no true classes.

    Of each view's own graph of nearest neighbours, with weights w of total 2m and degrees d, this is the modularity

    .. math:: Q = \frac{1}{2m} \sum_{ij} \Bigl(w_{ij} - \frac{d_i d_j}{2m}\Bigr) [c_i = c_j].

    It is 0 for clusters that the views know nothing of, and 1 - 1/c at most for c clusters.

    Parameters
    ----------
    views : list, dict, DataFrame, ...
        As for `emvc.EMVC.fit`; samples that a view does not have are left out there.
    labels : array-like of shape (n_samples,)
        Clusters; samples with the label -1 are left out.
    n_neighbors : int
        Neighbours of a sample in the graph of a view.

    Notes
    -----
    It compares clusterings of the same samples only. Clusters of fewer samples than there are neighbours score better
    when they are joined. Even where there are no gaps, cutting a cloud of points into compact pieces keeps neighbours
    together: where clusters overlap, the score prefers too many of them. Every view counts the same, a useless one as
    well. For the number of clusters, ``n_clusters="auto"`` knows more.

    Examples
    --------
    >>> from emvc.datasets import make_digits_views
    >>> data = make_digits_views(n_samples=300)
    >>> round(structure_score(data.views, data.labels), 2), round(structure_score(data.views, data.labels // 5), 2)
    (0.76, 0.43)
    """
    n_neighbors = check_integer(n_neighbors, "n_neighbors", least=1)
    checked = check_views(views, allow_missing=True, allow_gaps=True, caller="structure_score")
    found = np.asarray(labels)
    if found.shape != (checked.n_samples,):
        raise ValueError(f"The views have {checked.n_samples} samples, but labels has the shape {found.shape}.")
    scores = []
    for array, missing in zip(checked.arrays, checked.missing.T, strict=True):
        here = np.flatnonzero(~missing & (found != -1))
        if len(here) > 1:
            part = array if len(here) == len(found) else array[here]
            graph = local_affinity(scale_view(part), min(n_neighbors, len(here) - 1))
            scores.append(_modularity(graph, np.unique(found[here], return_inverse=True)[1]))
    return float(np.mean(scores)) if scores else 0.0


def structure_scorer(estimator: Any, X: Any, y: Any = None) -> float:
    """Return `structure_score` of what an estimator predicts, for ``scoring`` of scikit-learn's searches.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted; the steps of a pipeline before the last one make the views, as `emvc.ViewSplitter` does.
    X : DataFrame, array or views
        New samples.
    y : ignored
        Present for compatibility with scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from emvc import EMVC, ViewSplitter
    >>> rng = np.random.default_rng(0)
    >>> points = 9 * rng.random((3, 4))[rng.integers(3, size=120)] + rng.normal(size=(120, 4))
    >>> model = make_pipeline(ViewSplitter(columns={"one": [0, 1], "other": [2, 3]}), EMVC(random_state=0))
    >>> search = GridSearchCV(model, {"emvc__n_clusters": [2, 3, 4]}, scoring=structure_scorer, cv=3)
    >>> search.fit(pd.DataFrame(points)).best_params_
    {'emvc__n_clusters': 3}
    """
    del y
    steps = getattr(estimator, "steps", None)
    views = estimator[:-1].transform(X) if steps is not None and len(steps) > 1 else X
    return structure_score(views, estimator.predict(X))


def _modularity(graph: FloatArray, labels: IntArray) -> float:
    total = graph.sum()
    if total <= 0:
        return 0.0
    members = np.eye(labels.max() + 1)[labels]
    inside = np.einsum("ic,ic->", members, graph @ members) / total
    shares = members.T @ graph.sum(axis=1) / total
    return float(inside - shares @ shares)
