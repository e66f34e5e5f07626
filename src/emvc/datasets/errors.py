"""Errors to inject into views: noise, gross entries, destroyed samples, mismatched samples.

Every function takes a list or dict of two-dimensional arrays (or scipy sparse matrices), leaves it untouched, and
returns a damaged copy in the same container together with the truth: a boolean matrix of shape (n_samples, n_views)
that tells which sample is damaged in which view. The same seed gives the same damage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse

from emvc._array import BoolArray, FloatArray
from emvc._validation import (
    Views,
    check_choice,
    check_generator,
    check_integer,
    check_number,
    check_views,
)

_NOISY_SPARSE = "is sparse; noise in every entry would make it dense. Convert it with .toarray() first."


def add_noise(views: Any, snr: float, random_state: Any = None) -> tuple[Any, BoolArray]:
    """Add white Gaussian noise to every entry at a signal-to-noise ratio.

    Parameters
    ----------
    views : list or dict of arrays
        The views.
    snr : float
        Mean squared value of a view over the variance of its noise (a ratio of powers, not decibels).
    random_state : int, Generator, RandomState or None
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> views = [np.arange(20.0).reshape(10, 2), np.ones((10, 3))]
    >>> damaged, truth = add_noise(views, snr=10, random_state=0)
    >>> bool(truth.all()), bool(np.mean((damaged[0] - views[0]) ** 2) < np.mean(views[0] ** 2) / 2)
    (True, True)
    """
    snr = check_number(snr, "snr", strict=True)

    def damage(view: FloatArray, name: str, rng: np.random.Generator) -> FloatArray:
        if scipy.sparse.issparse(view):
            raise ValueError(f"view {name!r} {_NOISY_SPARSE}")
        deviation = np.sqrt(np.mean(view**2) / snr)
        return np.asarray(view + deviation * rng.standard_normal(view.shape))

    checked = check_views(views)
    rng = check_generator(random_state)
    damaged = [damage(view, name, rng) for view, name in zip(checked.arrays, checked.names, strict=True)]
    return _like(views, checked, damaged), np.ones((checked.n_samples, len(damaged)), dtype=bool)


def corrupt_entries(views: Any, fraction: float, random_state: Any = None) -> tuple[Any, BoolArray]:
    """Replace a random fraction of the entries of every view by uniform values from the range of their feature.

    The truth marks the samples with at least one replaced entry.

    Examples
    --------
    >>> import numpy as np
    >>> views = [np.arange(20.0).reshape(10, 2), np.ones((10, 3))]
    >>> damaged, truth = corrupt_entries(views, 0.1, random_state=0)
    >>> int((damaged[0] != views[0]).sum()), truth.shape
    (2, (10, 2))
    """
    fraction = _check_fraction(fraction)
    checked = check_views(views)
    rng = check_generator(random_state)
    damaged, truth = [], np.zeros((checked.n_samples, len(checked.arrays)), dtype=bool)
    for k, view in enumerate(checked.arrays):
        if scipy.sparse.issparse(view):
            raise ValueError(f"view {checked.names[k]!r} {_NOISY_SPARSE}")
        hit = np.zeros(view.size, dtype=bool)
        hit[rng.choice(view.size, round(fraction * view.size), replace=False)] = True
        hit = hit.reshape(view.shape)
        damaged.append(np.where(hit, _uniform(view, checked.n_samples, rng), view))
        truth[:, k] = hit.any(axis=1)
    return _like(views, checked, damaged), truth


def corrupt_samples(
    views: Any,
    fraction: float,
    random_state: Any = None,
    same_samples: bool = True,
    values: Literal["uniform", "marginal"] = "uniform",
) -> tuple[Any, BoolArray]:
    """Replace all features of a random fraction of the samples.

    Parameters
    ----------
    views : list or dict of arrays
        The views.
    fraction : float
        Share of the samples that are destroyed.
    random_state : int, Generator, RandomState or None
        Seed.
    same_samples : bool
        Destroy the same samples in all views, or draw them anew for every view.
    values : {"uniform", "marginal"}
        Uniform values from the range of each feature, or values drawn from each feature's own distribution
        (independently, so that only the dependence between features is wrong).

    Examples
    --------
    >>> import numpy as np
    >>> views = [np.arange(20.0).reshape(10, 2), np.ones((10, 3))]
    >>> damaged, truth = corrupt_samples(views, 0.2, random_state=0)
    >>> truth.sum(axis=0).tolist(), int((damaged[0] != views[0]).any(axis=1).sum())
    ([2, 2], 2)
    """
    check_choice(values, "values", ("uniform", "marginal"))
    draw: Callable[..., FloatArray] = _uniform if values == "uniform" else _marginal
    checked = check_views(views)
    rng = check_generator(random_state)
    rows = _draw_rows(checked, _check_fraction(fraction), rng, same=same_samples)
    damaged, truth = [], np.zeros((checked.n_samples, len(checked.arrays)), dtype=bool)
    for k, view in enumerate(checked.arrays):
        damaged.append(_with_rows(view, rows[k], draw(view, len(rows[k]), rng)))
        truth[rows[k], k] = True
    return _like(views, checked, damaged), truth


def mismatch_samples(
    views: Any,
    fraction: float,
    random_state: Any = None,
    views_hit: Sequence[int] | int | None = None,
) -> tuple[Any, BoolArray]:
    """Exchange rows of a view among a random fraction of the samples, so that each gets a row of another sample.

    Such samples look normal inside the view; only the other views betray them.

    Parameters
    ----------
    views : list or dict of arrays
        The views.
    fraction : float
        Share of the samples that are exchanged in each view that is hit.
    random_state : int, Generator, RandomState or None
        Seed.
    views_hit : int, sequence of int, or None
        Positions of the views to damage; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> views = [np.arange(20.0).reshape(10, 2), np.ones((10, 3))]
    >>> damaged, truth = mismatch_samples(views, 0.4, random_state=0, views_hit=0)
    >>> truth.sum(axis=0).tolist(), sorted(damaged[0].ravel()) == sorted(views[0].ravel())
    ([4, 0], True)
    """
    checked = check_views(views)
    rng = check_generator(random_state)
    n_views = len(checked.arrays)
    hit = range(n_views) if views_hit is None else np.atleast_1d(np.asarray(views_hit)).tolist()
    for k in hit:
        if check_integer(k, "views_hit", least=0) >= n_views:
            raise ValueError(f"views_hit names view {k}, but there are only {n_views} views.")
    rows = _draw_rows(checked, _check_fraction(fraction), rng, same=False)
    damaged, truth = list(checked.arrays), np.zeros((checked.n_samples, n_views), dtype=bool)
    for k in hit:
        if len(rows[k]) < 2:
            continue
        damaged[k] = _with_rows(checked.arrays[k], rows[k], checked.arrays[k][np.roll(rows[k], 1)])
        truth[rows[k], k] = True
    return _like(views, checked, damaged), truth


def _check_fraction(fraction: float) -> float:
    fraction = check_number(fraction, "fraction")
    if fraction > 1:
        raise ValueError(f"fraction must be at most 1, got {fraction:g}.")
    return fraction


def _draw_rows(views: Views, fraction: float, rng: np.random.Generator, *, same: bool) -> list[Any]:
    """Return the rows to damage in each view, in random order."""
    size = round(fraction * views.n_samples)
    if same:
        return [rng.choice(views.n_samples, size, replace=False)] * len(views.arrays)
    return [rng.choice(views.n_samples, size, replace=False) for _ in views.arrays]


def _uniform(view: Any, n_rows: int, rng: np.random.Generator) -> FloatArray:
    low, high = view.min(axis=0), view.max(axis=0)
    if scipy.sparse.issparse(view):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return rng.uniform(low, high, (n_rows, view.shape[1]))


def _marginal(view: Any, n_rows: int, rng: np.random.Generator) -> Any:
    sources = rng.integers(view.shape[0], size=(n_rows, view.shape[1]))
    if not scipy.sparse.issparse(view):
        return np.take_along_axis(view, sources, axis=0)
    columns = view.tocsc()
    return np.column_stack([columns[:, [j]].toarray().ravel()[sources[:, j]] for j in range(view.shape[1])])


def _with_rows(view: Any, rows: Any, new: Any) -> Any:
    """Return a copy of ``view`` with some rows replaced."""
    if scipy.sparse.issparse(view):
        position = np.arange(view.shape[0])
        position[rows] = view.shape[0] + np.arange(len(rows))
        return scipy.sparse.vstack([view, scipy.sparse.csr_array(new)], format="csr")[position]
    damaged = view.copy()
    damaged[rows] = new
    return damaged


def _like(views: Any, checked: Views, damaged: list[Any]) -> Any:
    """Return the damaged views in the container that the caller used."""
    if isinstance(views, Mapping) and not scipy.sparse.issparse(views):
        return dict(zip(views, damaged, strict=True))
    return damaged[0] if checked.single else damaged
