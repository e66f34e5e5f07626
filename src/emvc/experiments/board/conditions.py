"""The conditions of the board: what is wrong with the data, and the same data with the wrong entries taken out.

A condition damages views and tells where. Its *oracle* gets the undamaged views with the same entries missing: what a
method could reach that knew which entries are wrong. Conditions that take data away have no oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from emvc._array import BoolArray

GROSS = 10.0
"""Size of a gross error in a cell, in standard deviations of its column."""


@dataclass(frozen=True)
class Damaged:
    """Data with errors.

    Attributes
    ----------
    views : list
        What a method gets.
    oracle : list or None
        The same data with the wrong entries missing.
    truth : ndarray of bool of shape (n_samples, n_views), or None
        Which rows are wrong, where whole rows are.
    """

    views: list[Any]
    oracle: list[Any] | None = None
    truth: BoolArray | None = None


Damage = Callable[[list[Any], float, np.random.Generator], Damaged]
"""From views, level and generator to damaged data."""


@dataclass(frozen=True)
class Condition:
    """One way in which data are wrong.

    Attributes
    ----------
    name : str
        Its name.
    damage : callable or None
        What it does; None for nothing.
    level : float
        Share of samples or cells.
    has_oracle : bool
        Whether the damaged entries can also be handed over as missing.
    """

    name: str
    damage: Damage | None = None
    level: float = 0.0
    has_oracle: bool = True

    def apply(self, views: list[Any], seed: int) -> Damaged:
        """Return the views with the errors of this condition."""
        if self.damage is None:
            return Damaged(views)
        return self.damage(views, self.level, np.random.default_rng([seed, 1]))


def destroy_rows(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Replace rows of every view, other ones in each, by uniform values from the range of their column.

    No sample is destroyed in all views: then there would be nothing left of it.
    """
    hits = _draw_everywhere(views, level, rng)
    return _rows_damaged(views, hits, [_uniform_rows(view, hit, rng) for view, hit in zip(views, hits.T, strict=True)])


def destroy_samples(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Replace the rows of the same samples in all views by uniform values from the range of their column."""
    hits = _present(views) & _some(views[0].shape[0], level, rng)[:, None]
    return _rows_damaged(views, hits, [_uniform_rows(view, hit, rng) for view, hit in zip(views, hits.T, strict=True)])


def mismatch_one(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Exchange rows of one view, drawn at random, among a share of the samples."""
    hits = np.zeros((views[0].shape[0], len(views)), dtype=bool)
    position = int(rng.integers(len(views)))
    hits[:, position] = _some(len(hits), level, rng) & _present(views)[:, position]
    return _exchanged(views, hits, rng)


def mismatch_every(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Exchange rows of every view among a share of the samples, other ones in each and none in all."""
    return _exchanged(views, _draw_everywhere(views, level, rng), rng)


def replace_by_noise(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Replace one view, drawn at random, by normal noise with the mean and the deviation of each column."""
    del level
    position = int(rng.integers(len(views)))
    hits = np.zeros((views[0].shape[0], len(views)), dtype=bool)
    hits[:, position] = _present(views)[:, position]
    mean, deviation = _moments(views[position])
    rows: list[Any] = [view[:0] for view in views]
    rows[position] = mean + deviation * rng.standard_normal((int(hits.sum()), views[position].shape[1]))
    return _rows_damaged(views, hits, rows)


def lose_samples(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Take a share of the samples out of one view each, drawn at random, that is not their last."""
    present = _present(views)
    hits = np.zeros_like(present)
    for sample in np.flatnonzero(_some(len(present), level, rng) & (present.sum(axis=1) > 1)):
        hits[sample, rng.choice(np.flatnonzero(present[sample]))] = True
    return Damaged(_without_rows(views, hits))


def spoil_cells(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Add gross errors to a share of the cells (of a sparse view: of the cells that it stores)."""
    spoiled, lost = [], []
    for view in views:
        hit, (_, deviation) = _some_cells(view, level, rng), _moments(view)
        if scipy.sparse.issparse(view):
            errors = hit * GROSS * deviation[view.indices] * rng.standard_normal(len(view.data))
            spoiled.append(_with_data(view, view.data + errors))
        else:
            spoiled.append(view + hit * GROSS * deviation * rng.standard_normal(view.shape))
        lost.append(_without_cells(view, hit))
    return Damaged(spoiled, lost)


def lose_cells(views: list[Any], level: float, rng: np.random.Generator) -> Damaged:
    """Take a share of the cells out (of a sparse view: of the cells that it stores)."""
    return Damaged([_without_cells(view, _some_cells(view, level, rng)) for view in views])


CONDITIONS: dict[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition("clean", has_oracle=False),
        Condition("destroyed 10 %", destroy_rows, 0.1),
        Condition("destroyed 30 %", destroy_rows, 0.3),
        Condition("destroyed 6 % everywhere", destroy_samples, 0.06),
        Condition("mismatched 20 % of one view", mismatch_one, 0.2),
        Condition("mismatched 50 % of one view", mismatch_one, 0.5),
        Condition("mismatched 20 % of every view", mismatch_every, 0.2),
        Condition("noise view", replace_by_noise, 1.0),
        Condition("missing 30 %", lose_samples, 0.3, has_oracle=False),
        Condition("missing 50 %", lose_samples, 0.5, has_oracle=False),
        Condition("gross cells 10 %", spoil_cells, 0.1),
        Condition("missing cells 10 %", lose_cells, 0.1, has_oracle=False),
    )
}
"""All conditions by name."""


def impute(views: Sequence[Any]) -> list[Any]:
    """Return views with the mean of its column in every cell that is missing (0 in a column without a value)."""
    filled = []
    for view in views:
        if scipy.sparse.issparse(view):
            view = view.toarray() if np.isnan(view.data).any() else view  # noqa: PLW2901
        if scipy.sparse.issparse(view) or not np.isnan(view).any():
            filled.append(view)
            continue
        known = ~np.isnan(view)
        means = np.where(known, view, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        filled.append(np.where(known, view, means))
    return filled


def impute_cells(views: Sequence[Any]) -> list[Any]:
    """Return views with single missing cells filled by the mean of their column; rows of NaN stay."""
    result = []
    for view, full in zip(views, impute(views), strict=True):
        absent = _missing_rows(view)
        if absent.any() and full is not view:
            full[absent] = np.nan
        result.append(full)
    return result


def has_missing(views: Sequence[Any]) -> tuple[bool, bool]:
    """Return whether samples are missing from views, and whether single cells are."""
    rows = cells = False
    for view in views:
        absent = _missing_rows(view)
        values = view.data if scipy.sparse.issparse(view) else view
        rows |= bool(absent.any())
        cells |= bool(np.isnan(values).sum() > absent.sum() * view.shape[1])
    return rows, cells


def missing_entries(views: Sequence[Any]) -> BoolArray:
    """Return which samples are missing from which view."""
    return np.column_stack([_missing_rows(view) for view in views])


def _present(views: Sequence[Any]) -> BoolArray:
    return np.asarray(~missing_entries(views))


def _some(n_samples: int, level: float, rng: np.random.Generator) -> BoolArray:
    hit = np.zeros(n_samples, dtype=bool)
    hit[rng.choice(n_samples, round(level * n_samples), replace=False)] = True
    return hit


def _draw_everywhere(views: list[Any], level: float, rng: np.random.Generator) -> BoolArray:
    """Draw samples for each view, with one view left to every sample."""
    present = _present(views)
    hits = present & np.column_stack([_some(len(present), level, rng) for _ in views])
    for sample in np.flatnonzero((hits == present).all(axis=1)):
        hits[sample, rng.choice(np.flatnonzero(present[sample]))] = False
    return np.asarray(hits)


def _some_cells(view: Any, level: float, rng: np.random.Generator) -> BoolArray:
    shape = view.data.shape if scipy.sparse.issparse(view) else view.shape
    return np.asarray(rng.random(shape) < level)


def _missing_rows(view: Any) -> BoolArray:
    if scipy.sparse.issparse(view):
        rows = view.tocoo().row[np.isnan(view.data)]
        return np.asarray(np.bincount(rows, minlength=view.shape[0]) == view.shape[1])
    return np.asarray(np.isnan(view).all(axis=1))


def _moments(view: Any) -> tuple[Any, Any]:
    if scipy.sparse.issparse(view):
        mean = np.asarray(view.mean(axis=0)).ravel()
        square = np.asarray(view.multiply(view).mean(axis=0)).ravel()
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
    known = ~np.isnan(view)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, view, 0.0).sum(axis=0) / count
    return mean, np.sqrt((np.where(known, view - mean, 0.0) ** 2).sum(axis=0) / count)


def _range(view: Any) -> tuple[Any, Any]:
    if scipy.sparse.issparse(view):
        return view.min(axis=0).toarray().ravel(), view.max(axis=0).toarray().ravel()
    low = np.min(view, axis=0, where=~np.isnan(view), initial=np.inf)
    high = np.max(view, axis=0, where=~np.isnan(view), initial=-np.inf)
    empty = low > high
    return np.where(empty, 0.0, low), np.where(empty, 0.0, high)


def _rows_damaged(views: list[Any], hits: BoolArray, rows: list[Any]) -> Damaged:
    damaged = [_with_rows(view, hit, new) for view, hit, new in zip(views, hits.T, rows, strict=True)]
    return Damaged(damaged, _without_rows(views, hits), hits)


def _exchanged(views: list[Any], hits: BoolArray, rng: np.random.Generator) -> Damaged:
    damaged = []
    for view, hit in zip(views, hits.T, strict=True):
        rows = rng.permutation(np.flatnonzero(hit))  # a cycle through them in random order leaves none in its place
        source = np.arange(view.shape[0])
        source[rows] = np.roll(rows, 1)
        damaged.append(view[source])
    return Damaged(damaged, _without_rows(views, hits), hits)


def _uniform_rows(view: Any, hit: BoolArray, rng: np.random.Generator) -> Any:
    return rng.uniform(*_range(view), (int(hit.sum()), view.shape[1]))


def _with_rows(view: Any, hit: BoolArray, rows: Any) -> Any:
    if not hit.any():
        return view
    if scipy.sparse.issparse(view):
        place = np.arange(view.shape[0])
        place[hit] = view.shape[0] + np.arange(int(hit.sum()))
        return scipy.sparse.vstack([view, scipy.sparse.csr_array(rows)], format="csr")[place]
    damaged = view.copy()
    damaged[hit] = rows
    return damaged


def _without_rows(views: list[Any], hits: BoolArray) -> list[Any]:
    """Return views without the rows that were hit, as arrays where they were sparse."""
    return [
        _with_rows(view.toarray() if scipy.sparse.issparse(view) else view, hit, np.nan) if hit.any() else view
        for view, hit in zip(views, hits.T, strict=True)
    ]


def _without_cells(view: Any, hit: BoolArray) -> Any:
    if scipy.sparse.issparse(view):
        return _with_data(view, np.where(hit, np.nan, view.data))
    return np.where(hit, np.nan, view)


def _with_data(view: Any, data: Any) -> Any:
    return type(view)((data, view.indices, view.indptr), shape=view.shape)
