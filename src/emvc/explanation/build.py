"""From a fitted model and its views to an explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from emvc._array import FloatArray, IntArray
from emvc._validation import Views, check_generator
from emvc.estimators._base import views_of_fit
from emvc.explanation.columns import Annotation, read_annotations
from emvc.explanation.markers import Markers, column_values, find_markers
from emvc.explanation.profiles import associate, find_traits
from emvc.explanation.result import Explanation
from emvc.explanation.splitting import labels_without_each_view

_MOST_VALUES = 60  # features whose values are kept for drawing
_KEPT_PER_CLUSTER = 5


def explain(
    model: Any,
    views: Any = None,
    annotations: Any = None,
    *,
    split: bool = False,
    survival: Sequence[tuple[str, str]] | None = None,
    kinds: Mapping[str, str] | None = None,
    assessment: Any = None,
    random_state: Any = 0,
) -> Explanation:
    """Tell what sets the clusters of a fitted model apart.

    Every feature is compared between each cluster and all other samples by ranks (0-1 features with small counts
    exactly); effects lead, since features that were used to find the clusters differ between them in any case. With
    ``split=True`` p-values are valid: each view is tested against the clusters that the other views find (see
    `emvc.explanation.splitting`).

    Parameters
    ----------
    model : estimator
        Fitted.
    views : list or dict of arrays, optional
        What the model was fitted to; without them there are no markers.
    annotations : DataFrame or dict of columns, optional
        What else is known about the samples, not used for clustering: categories, numbers, or survival as a pair
        (time, event). Rows of a DataFrame are found by the names of the samples if both have names.
    split : bool
        Whether to spend one more fit for each view on valid p-values.
    survival : sequence of (str, str), optional
        Names of columns with times and events; found by their names if not given.
    kinds : mapping of str to str, optional
        "category" or "number" for columns that would be mistaken.
    assessment : Assessment, optional
        From `emvc.assess`: says whether there is structure at all.
    random_state : int, Generator, RandomState or None
        Seed of shuffled tables, which are drawn where counts are small.

    Returns
    -------
    explanation : Explanation
        With the tables ``markers`` and ``annotations``.

    Raises
    ------
    ValueError, TypeError
        If views or annotations do not fit the model; the message names the column or view.

    Examples
    --------
    >>> import numpy as np
    >>> from emvc import EMVC
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat([0, 1], 30)
    >>> views = {name: rng.standard_normal((60, 6)) for name in ("gene", "protein")}
    >>> for view in views.values():
    ...     view[group == 1, :2] += 4
    >>> model = EMVC(2, random_state=0).fit(views)
    >>> found = explain(model, views, {"group": np.where(group, "ill", "healthy")}, split=True)
    >>> sorted(found.names())
    ['healthy', 'ill']
    >>> found.markers.query("fdr < 0.05").feature.unique().tolist()
    ['0', '1']
    """
    if getattr(model, "labels_", None) is None:
        check_is_fitted(model)
        raise TypeError(f"This {type(model).__name__} has no labels_: it has found no clusters to explain.")
    if views is None and annotations is None:
        raise ValueError("Nothing to explain the clusters with: give views, annotations, or both.")
    labels = np.asarray(model.labels_).astype(np.int64)
    number = int(getattr(model, "n_clusters_", labels.max(initial=-1) + 1))
    notes: list[str] = []
    markers, values = None, {}
    if views is not None:
        checked = _checked(model, views)
        markers = _markers(model, checked, labels, number, split=split)
        values = _values(markers, checked, number)
    columns: list[Annotation] = []
    if annotations is not None:
        names = getattr(model, "sample_names_", None)
        columns, notes = read_annotations(annotations, len(labels), names, survival=survival, kinds=kinds)
        notes += _used_for_clustering(model, columns)
    return Explanation(
        labels=labels,
        n_clusters=number,
        marker_table=markers,
        findings=associate(columns, labels, number, check_generator(random_state)),
        trait_list=find_traits(columns, labels, number),
        split=split,
        structure_p_value=float(
            getattr(assessment, "structure_p_value", getattr(model, "structure_p_value_", float("nan")))
        ),
        notes=notes,
        values=values,
    )


def _used_for_clustering(model: Any, columns: Sequence[Annotation]) -> list[str]:
    """Say which annotations are columns of a view as well, so that their tests are no evidence."""
    parts = [part for column in columns for part in column.columns]
    notes = []
    for view, features in getattr(model, "feature_names_in_", {}).items():
        shared = [repr(part) for part in parts if part in {str(feature) for feature in features}]
        if shared:
            one = len(shared) == 1
            which = f"Annotation{'' if one else 's'} {', '.join(shared)} {'is' if one else 'are'}"
            notes.append(
                f"{which} also in view '{view}', which the clusters were made of: an association is no evidence."
            )
    return notes


def _checked(model: Any, views: Any) -> Views:
    """Return the views if they are those of the model and have features."""
    checked = views_of_fit(views, model, caller="explain")
    affinity = getattr(model, "affinity", None)
    if isinstance(affinity, str) and affinity == "precomputed":
        raise ValueError("The model was fitted to similarities, which have no features: leave the views out.")
    return checked


def _markers(model: Any, views: Views, labels: IntArray, number: int, *, split: bool) -> Markers:
    known = getattr(model, "feature_names_in_", {})
    names = []
    for k, (name, array) in enumerate(zip(views.names, views.arrays, strict=True)):
        told = (views.feature_names[k] if k < len(views.feature_names) else None, known.get(name))
        own = next((names for names in told if names is not None and len(names) == array.shape[1]), None)
        own = range(array.shape[1]) if own is None else own
        names.append([str(column) for column in own])
    others = labels_without_each_view(model, views) if split and number > 1 else None
    if number < 2:  # nothing to compare
        labels, number = np.full(len(labels), -1), 0
    return find_markers(views, names, labels, number, others)


def _values(markers: Markers, views: Views, number: int) -> dict[tuple[int, int], FloatArray]:
    """Return the values of the strongest markers: one of each cluster and view in turn, until there are enough."""
    turns: list[tuple[int, int, float, tuple[int, int]]] = []
    for cluster in range(number):
        for k in range(len(views.arrays)):
            for rank, row in enumerate(markers.top(cluster, k, _KEPT_PER_CLUSTER)):
                turns.append((rank, cluster, -abs(float(markers.effect[row])), (k, int(markers.feature[row]))))
    # The strongest view of every cluster comes first, if there are too many clusters for all views.
    place: dict[int, int] = {}
    order = []
    for _, cluster, _, key in sorted(turns):
        place[cluster] = place.get(cluster, -1) + 1
        order.append((place[cluster], cluster, key))
    keys = list(dict.fromkeys(key for _, _, key in sorted(order)))[:_MOST_VALUES]
    found = {}
    for k, j in keys:
        column = column_values(views.arrays[k], np.array([j]))[:, 0]
        found[k, j] = np.where(views.missing[:, k], np.nan, column)
    return found
