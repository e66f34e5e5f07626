"""p-values that are valid although the features were used for clustering: each view is judged by the others.

A cluster is made of samples that are alike, so features that were used to find it differ between clusters even if there
is nothing but noise. Splitting the samples does not help: to know the clusters of the second half, its features are
used. Here every view is left out once: the model is fitted to the other views, and the features of the view are
tested against those clusters. Under the hypothesis that a feature of the view has nothing to do with what the other
views show, the labels are independent of it, and the p-values are those of a rank test, exact up to the normal
approximation. What is assumed: rows of different samples are independent, and views share nothing but what the samples
have in common (a batch that shifts two views is, to this test, a finding). What is tested: whether a feature differs
between the clusters that the *other* views see; a cluster that one view alone shows gets no small p-value. The number
of clusters, and nothing else, is taken from the fit to all views.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from emvc._array import BoolArray, IntArray
from emvc._validation import Views
from emvc.estimators._confidence import matched


def labels_without_each_view(model: Any, views: Views) -> list[IntArray]:
    """Return, for every view, labels found without it, named like those of the model; -1 where no other view is there.

    Parameters
    ----------
    model : estimator
        Fitted.
    views : Views
        What it was fitted to.

    Raises
    ------
    ValueError
        If there is one view only.
    """
    if len(views.arrays) < 2:
        raise ValueError(
            "split=True judges each view by the others and needs two views or more. Divide the columns into groups "
            "that have nothing in common but the samples, and pass each as a view."
        )
    return [_without(model, views, k) for k in range(len(views.arrays))]


def _without(model: Any, views: Views, k: int) -> IntArray:
    wanted, number = np.asarray(model.labels_), int(model.n_clusters_)
    others = [other for other in range(len(views.arrays)) if other != k]
    there = np.flatnonzero(~views.missing[:, others].all(axis=1))
    if len(there) <= number:
        raise ValueError(f"split=True: only {len(there)} samples are in other views than {views.names[k]!r}.")
    rest = {views.names[other]: _with_gaps(views.arrays[other][there], views.missing[there, other]) for other in others}
    found = np.asarray(_refitted(model, number).fit(rest).labels_)
    named = np.flatnonzero(found >= 0)
    labels = np.full(len(wanted), -1)
    # One name for each cluster: which one does not change the set of p-values.
    labels[there[named]] = matched(found[named], wanted[there[named]], number)
    return labels


def _refitted(model: Any, n_clusters: int) -> Any:
    """Return an unfitted copy with the number of clusters that was found, and nothing that fits all views only."""
    options: dict[str, Any] = {"n_clusters": n_clusters}
    if "outliers" in model.get_params(deep=False):
        options["outliers"] = "assign"
    return clone(model).set_params(**options)


def _with_gaps(array: Any, missing: BoolArray) -> Any:
    """Return the view with rows of NaN where it lacks a sample."""
    if not missing.any():
        return array
    if scipy.sparse.issparse(array):
        array = array.toarray()
    return np.where(missing[:, None], np.nan, array)
