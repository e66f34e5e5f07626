"""The seven measures of the paper, for a clustering whose true classes are known."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from emvc._array import IntArray

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
