"""What the fields of a saved model must be: kinds, shapes, ranges, and how they go together.

A checksum finds damage, not forgery. Whatever a fit cannot have written is refused when a model is read, before
anything is computed with it: a count out of range would make compiled code read beyond its arrays or ask for all
memory. Every attribute that a model may have has its rule here.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse

from emvc._array import LARGEST
from emvc._sparse import check_sparse
from emvc.spectral import EMBEDDINGS


@dataclass(frozen=True)
class Sizes:
    """Numbers that shapes are compared with: of samples, clusters, views and states."""

    N: int
    C: int
    K: int
    M: int


Rule = Callable[[Any, Sizes], str]
"""Returns what is wrong with a value, or nothing."""


def check_fields(model: Any) -> None:
    """Refuse a model whose fields a fit cannot have written.

    Parameters
    ----------
    model : estimator
        With the attributes and parameters that a file has.

    Raises
    ------
    ValueError
        With the name of the field and what is wrong with it.
    """
    found = vars(model)
    sizes = _sizes(found)
    for name in sorted(found):
        if name in RULES:
            _refuse(name, RULES[name](found[name], sizes))
    for name, value in model.get_params(deep=False).items():
        if name in PARAMETERS:
            _refuse(name, PARAMETERS[name](value, sizes))
    _check_relations(found, sizes, square=model._is_precomputed())


def _refuse(name: str, problem: str) -> None:
    if problem:
        raise ValueError(f"field {name} {problem}")


def _sizes(found: Mapping[str, Any]) -> Sizes:
    """Return the sizes that the other fields must fit, from labels, clusters and names."""
    labels, names = found.get("labels_"), found.get("view_names_")
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        raise ValueError("it has no labels: not a fitted model.")
    number = found.get("n_clusters_")
    _refuse("n_clusters_", _whole(1, len(labels))(number, Sizes(0, 0, 0, 0)))
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("field view_names_ must be a list of names")
    if len(set(names)) < len(names):
        raise ValueError("field view_names_ has a name twice")
    landmarks = found.get("landmarks_")
    n_states = len(landmarks) if isinstance(landmarks, np.ndarray) and landmarks.ndim == 1 else len(labels)
    return Sizes(len(labels), int(number), len(names), n_states)  # type: ignore[arg-type]


def _array(kinds: str, *dims: str | None, low: float = -math.inf, high: float = math.inf, finite: bool = False) -> Rule:
    """Return the rule for an array: a dimension is the name of a size, or None for any."""

    def check(value: Any, sizes: Sizes) -> str:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            return "must be an array of " + " or ".join(_KINDS[kind] for kind in kinds)
        wanted = tuple(None if dim is None else getattr(sizes, dim) for dim in dims)
        fits = all(one is None or one == other for one, other in zip(wanted, value.shape, strict=False))
        if value.ndim != len(wanted) or not fits:
            told = " x ".join("any" if one is None else str(one) for one in wanted)
            return f"must have the shape {told}, not {' x '.join(map(str, value.shape)) or 'of a number'}"
        if value.dtype.kind == "f" and (finite or np.isinf(value).any()) and not np.isfinite(value).all():
            return "holds values that are not finite"
        if value.size and value.dtype.kind in "iuf" and (np.nanmin(value) < low or np.nanmax(value) > high):
            return f"holds values outside of {low:g} to {high:g}"
        return ""

    return check


_KINDS = {"b": "truth values", "i": "integers", "u": "unsigned integers", "f": "floats", "U": "text"}


def _whole(least: int, most: int | None = None) -> Rule:
    def check(value: Any, _: Sizes) -> str:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            return f"must be an integer, not {_short(value)}"
        if value < least or (most is not None and value > most):
            return f"must be {f'between {least} and {most}' if most is not None else f'at least {least}'}, not {value}"
        return ""

    return check


def _number(value: Any, _: Sizes) -> str:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return "" if real else f"must be a number, not {_short(value)}"


def _numbers(value: Any, sizes: Sizes) -> str:
    """Look at a number, or a list of them."""
    if isinstance(value, np.ndarray):
        return "" if value.dtype.kind in "iuf" and value.ndim == 1 else "must be a list of numbers"
    wrong = [item for item in value if _number(item, sizes)] if isinstance(value, list) else []
    return _number(wrong[0], sizes) if wrong else "" if isinstance(value, list) else _number(value, sizes)


def _one_of(*choices: Any) -> Rule:
    def check(value: Any, _: Sizes) -> str:
        known = any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)
        return "" if known else f"must be one of {', '.join(map(repr, choices))}, not {_short(value)}"

    return check


def _either(*rules: Rule) -> Rule:
    def check(value: Any, sizes: Sizes) -> str:
        told = [rule(value, sizes) for rule in rules]
        return "" if "" in told else told[0]

    return check


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."


def _labels(value: Any, sizes: Sizes) -> str:
    return _array("iu", "N", low=-1, high=sizes.C - 1)(value, sizes)


def _view_labels(value: Any, sizes: Sizes) -> str:
    return _array("iu", "K", "N", low=-1, high=sizes.C - 1)(value, sizes)


def _positions(value: Any, sizes: Sizes) -> str:
    """Look at numbers of samples, none of them twice."""
    problem = _array("iu", None, low=0, high=sizes.N - 1)(value, sizes)
    return problem or ("" if len(value) == len(np.unique(value)) and len(value) else "names a sample twice, or none")


def _neighbors(value: Any, sizes: Sizes) -> str:
    many = value if isinstance(value, list) else [value]
    if isinstance(value, list) and len(value) != sizes.K:
        return f"must have one number for each of {sizes.K} views"
    return next(filter(None, (_whole(1, max(sizes.N - 1, 1))(item, sizes) for item in many)), "")


def _names_of_features(value: Any, sizes: Sizes) -> str:
    if not isinstance(value, dict) or any(_array("U", None)(names, sizes) for names in value.values()):
        return "must tell the names of the columns of each view"
    return ""


def _records(value: Any, _: Sizes) -> str:
    texts = [part for item in value for part in vars(item).values()] if _are(value, list, "ColumnRecord") else [None]
    return "" if all(isinstance(text, str) for text in texts) else "must be a list of records of columns"


def _codings(value: Any, _: Sizes) -> str:
    fits = isinstance(value, dict) and _are(list(value.values()), list, "Coding")
    return "" if fits else "must tell how the columns of each view are encoded"


def _are(value: Any, kind: type, name: str) -> bool:
    return isinstance(value, kind) and all(type(item).__name__ == name for item in value)  # type: ignore[attr-defined]


def _dropped(value: Any, _: Sizes) -> str:
    lists = list(value.values()) if isinstance(value, dict) else [None]
    fits = all(isinstance(part, list | tuple) and all(isinstance(one, str | int) for one in part) for part in lists)
    return "" if fits else "must be lists of columns by view"


def _evidence(value: Any, sizes: Sizes) -> str:
    wanted = {"n_clusters", "score"}
    fits = isinstance(value, list) and all(
        isinstance(record, dict) and record.keys() >= wanted and not any(_number(v, sizes) for v in record.values())
        for record in value
    )
    return "" if fits else "must be a list of records of numbers"


def _found(value: Any, sizes: Sizes) -> str:
    rules = {"reliability": _array("f", "K", low=0.0, high=1.0), "curve": _curve}
    if not isinstance(value, dict) or set(value) - set(rules) or "reliability" not in value:
        return "must hold reliability, and curve at most"
    return next(filter(None, (rules[name](part, sizes) for name, part in value.items())), "")


def _curve(value: Any, sizes: Sizes) -> str:
    problem = _array("f", None, None, low=0.0, high=1.0, finite=True)(value, sizes)
    return problem or ("" if value.shape[0] == 2 and value.shape[1] > 0 else "must have a curve of two rows")


def _history(value: Any, sizes: Sizes) -> str:
    if not hasattr(value, "__dataclass_fields__"):
        return "must be a history"
    parts = [getattr(value, field.name) for field in fields(value)]
    if any(not isinstance(part, list) or _numbers(part, sizes) for part in parts) or len(set(map(len, parts))) > 1:
        return "must be lists of numbers of one length"
    return ""


def _mixtures(value: Any, sizes: Sizes) -> str:
    if not isinstance(value, list) or len(value) != sizes.K:
        return f"must have one matrix for each of {sizes.K} views"
    return next(filter(None, (_array("f", "N", None)(part, sizes) for part in value)), "")


def _embedding(value: Any, sizes: Sizes) -> str:
    return _array("f", "N", None)(value, sizes)


def _square(value: Any, sizes: Sizes) -> str:
    if scipy.sparse.issparse(value):
        return "" if value.shape == (sizes.N, sizes.N) else f"must have the shape {sizes.N} x {sizes.N}"
    return _array("f", "N", "N")(value, sizes)


_BY_ENTRY = _array("f", "N", "K", low=0.0)

RULES: dict[str, Rule] = {
    "labels_": _labels,
    "n_clusters_": _whole(1),
    "view_names_": lambda *_: "",  # looked at before all others
    "n_features_in_": _whole(1),
    "sample_names_": _array("iuU", "N"),
    "feature_names_in_": _names_of_features,
    "intake_": _records,
    "_codings_": _codings,
    "missing_cells_": _array("f", "K", low=0.0, high=1.0),
    "dropped_columns_": _dropped,
    "embedding_": _embedding,
    "eigenvalues_": _array("f", None),
    "consensus_": _array("f", "N", "M", low=-1e-3, finite=True),
    **dict.fromkeys(("beta_", "lam_", "duality_gap_", "structure_p_value_"), _number),
    **dict.fromkeys(("objective_", "residuals_"), _numbers),
    "n_clusters_confidence_": _either(_number, _one_of(None)),
    "n_clusters_evidence_": _evidence,
    **dict.fromkeys(("rank_", "_rank_", "n_components_"), _either(_whole(0), _one_of(None))),
    "n_iter_": _either(_whole(0), _one_of(None)),
    "status_": _one_of(
        "converged", "reached max_iter", "stopped by the published rule before the constraints were met"
    ),
    "history_": _history,
    **dict.fromkeys(("sample_errors_", "isolation_", "disagreement_"), _BY_ENTRY),
    "outliers_": _array("b", "N", "K"),
    "_found_": _found,
    "_kept_": _positions,
    "landmarks_": _positions,
    **dict.fromkeys(("view_weights_", "weights_", "view_scores_"), _array("f", "K")),
    "view_labels_": _view_labels,
    "best_view_": lambda value, sizes: _whole(0, sizes.K - 1)(value, sizes),
    **dict.fromkeys(("unified_", "fused_"), _square),
    "labels_from_": _one_of("components", "k-means"),
    "mixtures_": _mixtures,
    "selected_with_labels_": _one_of(True, False),
    "n_neighbors_": _neighbors,
    "_training": lambda *_: "",  # compared with the others at the end
}
"""What each attribute of a model must be."""

_AUTO = _one_of("auto")


def _option(value: Any, _: Sizes) -> str:
    known = value is None or isinstance(value, bool | int | float | str) or type(value).__name__ in ("ADMM", "ALM")
    return "" if known else f"must be a name or a number, not of type {type(value).__name__}"


PARAMETERS: dict[str, Rule] = {
    "n_clusters": _either(_whole(1), _AUTO),
    "n_neighbors": _either(_whole(1), _AUTO, _one_of(None)),
    **dict.fromkeys(("n_init", "max_iter"), _either(_whole(1), _one_of(None))),
    "n_landmarks": _either(_whole(2), _one_of(None)),
    "n_jobs": _either(_whole(-1), _one_of(None)),
    "verbose": _either(_whole(0), _one_of(True, False)),
    **dict.fromkeys(("beta", "lam", "screen"), _either(_number, _AUTO, _one_of(True, False, None))),
    "tol": _number,
    **dict.fromkeys(("solver", "scale", "affinity", "dtype", "joint_view", "random_state"), _option),
    "embedding": _either(_one_of("diffusion", *EMBEDDINGS), _one_of(None)),
    "outliers": _one_of("assign", "label"),
    "memory": _one_of(None),
}
"""What the parameters must be that are used after a fit."""


def _check_relations(found: Mapping[str, Any], sizes: Sizes, *, square: bool) -> None:
    """Compare fields with each other; what grows with the number of clusters must be in the file as well."""
    if "landmarks_" in found and sizes.C > sizes.M:
        raise ValueError(f"field n_clusters_ must be at most the number of landmarks, {sizes.M}, not {sizes.C}")
    training = found.get("_training")
    if training is None:
        return
    kept = found.get("_kept_")
    n_rows = len(kept) if kept is not None else sizes.M
    if "landmarks_" in found and (kept is None or n_rows != sizes.M):
        raise ValueError(f"field _kept_ must have one number for each of {sizes.M} landmarks")
    _refuse("_training.names", "" if list(training.names) == found["view_names_"] else "must be those of the views")
    _check_views(training, sizes, square=square)
    n_states = int(training.views[0].shape[0])
    # Samples that were drawn as landmarks but cannot be believed are among the views: they tell what is wrong.
    fits = kept.max() < n_states <= sizes.N if kept is not None and "landmarks_" in found else n_states == sizes.M
    if not fits:
        raise ValueError(f"field _training.views must have {sizes.M} rows, not {n_states}")
    _refuse("_training.missing", _array("b", "M", "K")(training.missing, replace(sizes, M=n_states)))
    _refuse("_training.single", _one_of(True, False)(training.single, sizes))
    _refuse("_training.n_neighbors", _whole(1, max(n_states - 1, 1))(training.n_neighbors, sizes))
    _refuse("_training.image", _array("f", None, None, finite=True)(training.image, sizes))
    if len(training.image) != n_rows:
        raise ValueError(f"field _training.image must have {n_rows} rows, not {len(training.image)}")
    _refuse("_training.centers", _array("f", "C", None, finite=True)(training.centers, sizes))
    if training.centers.shape[1] != training.image.shape[1]:
        raise ValueError("field _training.centers must have as many columns as _training.image")
    _check_features(found, training)


def _check_views(training: Any, sizes: Sizes, *, square: bool) -> None:
    if not isinstance(training.views, list | tuple) or len(training.views) != sizes.K:
        raise ValueError(f"field _training.views must have {sizes.K} views")
    for k, view in enumerate(training.views):
        name = f"_training.views[{k}]"
        if scipy.sparse.issparse(view):
            check_sparse(view, f"field {name}")
            fits = view.shape[0] == training.views[0].shape[0] and view.shape[1] > 0
            values = view.data
        else:
            _refuse(name, _array("f", None, None)(view, sizes))
            fits, values = len(view) == training.views[0].shape[0] and view.shape[1] > 0, view
        if not fits or (square and view.shape[0] != view.shape[1]):
            raise ValueError(f"field {name} has the shape {' x '.join(map(str, view.shape))}, which fits nothing")
        if values.dtype.kind != "f" or (values.size and not np.nanmax(np.abs(values), initial=0.0) <= LARGEST):
            raise ValueError(f"field {name} holds values that no view can have")


def _check_features(found: Mapping[str, Any], training: Any) -> None:
    codings = found.get("_codings_", {})
    widths = {name: int(view.shape[1]) for name, view in zip(training.names, training.views, strict=True)}
    widths |= {name: len(codings[name].names) for name in widths if name in codings}
    if found.get("n_features_in_") != sum(widths.values()):
        raise ValueError(f"field n_features_in_ must be {sum(widths.values())}, not {found.get('n_features_in_')!r}")
    for name, columns in found.get("feature_names_in_", {}).items():
        if widths.get(name) != len(columns):
            raise ValueError(f"field feature_names_in_ names {len(columns)} columns of view {name!r}")
