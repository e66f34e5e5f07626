r"""Cells that are not there: column statistics and distances over those that are.

A missing cell is NaN. What the cells that two samples share make up of their squared distance is known; the rest is
what is expected of two samples that are as alike as they are there. Let columns have mean 0, x and y be the cells of
column f, v its variance, and

.. math:: \rho = \frac{2 \sum_{\text{shared}} x y}{\sum_{\text{shared}} (x^2 + y^2) + 2 \cdot 3 \, \bar v} ,

the correlation of two samples that have three more columns of usual size, in which nothing is alike: few shared cells
say little. With normal columns, :math:`E(y \mid x) = \rho x`, and the distance is

.. math:: d^2 = \sum_{\text{shared}} (x - y)^2
   + \sum_{\text{one has it}} \bigl( (1-\rho)^2 x^2 + (1-\rho^2) v \bigr) + \sum_{\text{neither}} 2 (1-\rho) v .

For samples that are alike this is the sum over shared cells, scaled up to all columns. For others the lengths of the
rows, which are known from all of their cells, count as they are: scaled-up sums differ by which cells they happen to
be made of, more than samples differ. Two samples without a shared cell are as far apart as samples are that have
nothing in common. The sums are four matrix products, of which three need only the columns with missing cells.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from emvc._array import FloatArray, IntArray
from emvc._threads import by_rows
from emvc._validation import View

ROUNDING = 1e-12
"""Squared distances below this share of the squared norms are rounding, not distance."""

UNRELATED = 3.0
"""Columns in which two samples are presumed to have nothing in common, besides those that they share."""


def has_gaps(view: View) -> bool:
    """Tell whether some cell of a view is missing; sparse views have all cells.

    Examples
    --------
    >>> has_gaps(np.array([[1.0, np.nan]]))
    True
    """
    return not scipy.sparse.issparse(view) and bool(np.isnan(np.sum(view)))


def count_present(view: View) -> IntArray:
    """Return how many cells each column has."""
    if not has_gaps(view):
        return np.full(view.shape[1], view.shape[0])
    return np.asarray(view.shape[0] - np.count_nonzero(np.isnan(view), axis=0))


def count_nonzero(view: View) -> int:
    """Return the number of cells that are there and not zero."""
    values = view.data if scipy.sparse.issparse(view) else view
    return int(np.count_nonzero(values) - (np.count_nonzero(np.isnan(values)) if has_gaps(view) else 0))


def column_moments(view: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of the cells that each column has, zero for columns without any."""
    there = ~np.isnan(view)
    number = np.maximum(np.count_nonzero(there, axis=0), 1)
    mean = np.sum(view, axis=0, where=there) / number
    return mean, np.sqrt(np.sum((view - mean) ** 2, axis=0, where=there) / number)


def column_ranges(view: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest cell that each column has, zero for columns without any."""
    low, high = np.fmin.reduce(view, axis=0), np.fmax.reduce(view, axis=0)
    return np.nan_to_num(low), np.nan_to_num(high)


def squared_norms(view: FloatArray) -> FloatArray:
    """Return the squared lengths of rows, from the cells that are there, scaled up to all columns."""
    there = ~np.isnan(view)
    number = np.maximum(np.count_nonzero(there, axis=1), 1)
    return np.asarray(np.sum(view**2, axis=1, where=there) * (view.shape[1] / number))


def filled(view: View, values: FloatArray) -> View:
    """Return a view with the value of its column in place of every missing cell."""
    return np.where(np.isnan(view), values, view) if has_gaps(view) else view


def stretched(view: FloatArray) -> FloatArray:
    """Return a view whose columns, where cells are missing, are evenly spaced quantiles of those that are there.

    Examples
    --------
    >>> stretched(np.array([[3.0], [np.nan], [1.0], [np.nan]])).ravel()
    array([1., 1., 3., 3.])
    """
    if not has_gaps(view):
        return view
    number = count_present(view)
    ranks = (np.arange(len(view))[:, None] + 0.5) / len(view) * number
    quantiles = np.take_along_axis(np.sort(view, axis=0), ranks.astype(np.intp), axis=0)
    return np.where(number < len(view), np.nan_to_num(quantiles), view)


def draw(view: FloatArray, uniform: FloatArray) -> FloatArray:
    """Return cells that columns have, in the places of their order that numbers between 0 and 1 tell."""
    ranks = (uniform * count_present(view)).astype(np.intp)
    return np.take_along_axis(np.sort(view, axis=0), ranks, axis=0)


def squared_distances_between(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the squared distances between the rows of two arrays with missing cells.

    Means and variances of the columns are those of ``other``.

    Examples
    --------
    >>> one = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, np.nan], [9.0, 9.0, np.nan]])
    >>> squares = squared_distances_between(one, one)
    >>> bool(squares[0, 1] < 1.0 < squares[0, 2])
    True
    """
    middle, spread = column_moments(other)
    rows, states = one - middle, other - middle
    there, known = ~np.isnan(rows), ~np.isnan(states)
    rows[~there], states[~known] = 0.0, 0.0
    gaps = ~(there.all(axis=0) & known.all(axis=0))
    variances, masks, squares = spread[gaps] ** 2, known[:, gaps].T.astype(np.float64), states[:, gaps].T ** 2
    whole, others = (np.sum(part[:, ~gaps] ** 2, axis=1) for part in (rows, states))
    doubt = 2.0 * UNRELATED * float(np.sum(spread**2)) / max(int(known.any(axis=0).sum()), 1)
    seen, total = variances @ masks, float(variances.sum())
    lengths = others + squares.sum(axis=0)
    out = np.empty((len(one), len(other)))

    def measure(part: slice) -> None:
        mask, own = there[part][:, gaps].astype(np.float64), rows[part][:, gaps] ** 2
        both = whole[part, None] + own @ masks + others + mask @ squares
        inner = 2.0 * (rows[part] @ states.T)
        alike = np.divide(inner, both + doubt, out=np.zeros_like(inner), where=both + doubt > 0)
        mine, shown = (mask @ variances)[:, None], (mask * variances) @ masks
        all_of = (whole[part] + own.sum(axis=1))[:, None] + lengths
        found = both - inner + (1.0 - alike) ** 2 * np.maximum(all_of - both, 0.0)
        found += (1.0 - alike**2) * np.maximum(mine + seen - 2.0 * shown, 0.0)
        found += 2.0 * (1.0 - alike) * np.maximum(total - mine - seen + shown, 0.0)
        out[part] = np.where(found > ROUNDING * (all_of + total), found, 0.0)

    by_rows(measure, len(out))
    return out


def squares_over_own(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return squared distances over the cells that the rows of ``one`` have, scaled up by variance to all columns.

    A cell that only the row of ``one`` has counts as that of a random row of ``other``. So rows with few cells are as
    far from others as rows with all of them, which holds for distances to the nearest row only without guesses about
    cells that nobody knows.

    Examples
    --------
    >>> other = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0], [2.0, 3.0]])
    >>> squares_over_own(np.array([[0.0, 1.0], [0.0, np.nan]]), other)
    array([[0., 4., 4., 8.],
           [0., 8., 0., 8.]])
    """
    middle, spread = column_moments(other)
    rows, states = one - middle, other - middle
    there, known = ~np.isnan(rows), ~np.isnan(states)
    rows[~there], states[~known] = 0.0, 0.0
    expected = np.where(known, states**2, spread**2).T
    mine = there @ spread**2
    factors = np.divide(np.sum(spread**2), mine, out=np.ones(len(one)), where=mine > 0)
    out = np.empty((len(one), len(other)))

    def measure(part: slice) -> None:
        lengths = np.sum(rows[part] ** 2, axis=1)[:, None] + there[part].astype(np.float64) @ expected
        found = lengths - 2.0 * (rows[part] @ states.T)
        out[part] = factors[part, None] * np.where(found > ROUNDING * lengths, found, 0.0)

    by_rows(measure, len(out))
    return out
