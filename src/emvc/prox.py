r"""The five convex functions of the model: value, proximal operator and dual norm, one formula each.

Throughout, ``prox(x, step)`` is

.. math:: \operatorname{prox}_{s f}(x) = \arg\min_y \; s f(y) + \tfrac12 \lVert y - x \rVert_F^2 .

The functions are written against the array API and accept any stack of matrices in the leading dimensions.
"""

from __future__ import annotations

import math
from typing import Protocol

from emvc import kernels
from emvc._array import Array, column_norms, is_numpy, namespace, row_norms

_TINY = 1e-300  # keeps 0 / 0 out of the shrinkage factors; far below any norm that matters


class ConvexFunction(Protocol):
    """What the solvers and the tests expect from a convex function."""

    def value(self, x: Array) -> float:
        """Return f(x)."""
        ...

    def prox(self, x: Array, step: float) -> Array:
        """Return the proximal point of ``x``."""
        ...


def shrinkage(norms: Array, threshold: Array | float) -> Array:
    """Return the factors ``max(0, 1 - threshold / norm)`` by which groups of these norms are scaled."""
    xp = namespace(norms)
    return xp.clip(1.0 - threshold / xp.clip(norms, _TINY), 0.0)


def project_simplex(x: Array, thresholds: Array | None = None) -> Array:
    """Project every row of ``x`` onto the probability simplex by sorting.

    Parameters
    ----------
    x : array of shape (..., n)
        The points.
    thresholds : array of shape (...), optional
        Receives the amounts subtracted from each row. The fused version also starts from its content.
    """
    xp = namespace(x)
    n = x.shape[-1]
    descending = xp.sort(x, axis=-1, descending=True)
    counts = xp.arange(1, n + 1, dtype=x.dtype)
    candidates = (xp.cumulative_sum(descending, axis=-1) - 1.0) / counts
    support = xp.sum(xp.astype(descending > candidates, xp.int64), axis=-1, keepdims=True)
    theta = xp.take_along_axis(candidates, support - 1, axis=-1)
    if thresholds is not None:
        thresholds[...] = theta[..., 0]
    return xp.clip(x - theta, 0.0)


class NuclearNorm:
    r"""Sum of singular values, :math:`\lVert X \rVert_*`; its dual norm is the largest singular value.

    Examples
    --------
    >>> import numpy as np
    >>> NuclearNorm().value(np.diag([3.0, 4.0]))
    7.0
    """

    def value(self, x: Array) -> float:
        """Return the sum of the singular values."""
        xp = namespace(x)
        # A power of two changes no digit, but keeps what is left of a matrix of low rank from becoming denormal: slow.
        scale = 2.0 ** (math.frexp(xp.finfo(x.dtype).max)[1] // 3)
        return float(xp.sum(xp.linalg.svdvals(x * scale))) / scale

    def prox(self, x: Array, step: float) -> Array:
        """Soft-threshold the singular values by ``step``."""
        xp = namespace(x)
        u, s, vt = xp.linalg.svd(x, full_matrices=False)
        return (u * xp.clip(s - step, 0.0)) @ vt

    def dual_norm(self, x: Array) -> float:
        """Return the largest singular value."""
        xp = namespace(x)
        return float(xp.max(xp.linalg.svdvals(x)))


class RowGroups:
    r"""Sum of row norms, the :math:`\ell_{2,1}` norm :math:`\sum_i \lVert x_{i,:} \rVert_2`.

    Examples
    --------
    >>> import numpy as np
    >>> RowGroups().value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    5.0
    """

    def value(self, x: Array) -> float:
        """Return the sum of the row norms."""
        return float(namespace(x).sum(row_norms(x)))

    def prox(self, x: Array, step: float) -> Array:
        """Shorten every row by ``step``, to zero where it is not longer."""
        return x * self.factors(x, step)[..., None]

    def factors(self, x: Array, step: Array | float) -> Array:
        """Return what `prox` multiplies the rows by."""
        return shrinkage(row_norms(x), step)

    def dual_norm(self, x: Array) -> float:
        """Return the largest row norm."""
        return float(namespace(x).max(row_norms(x)))


class ColumnGroups:
    r"""Sum of column norms, the group :math:`\ell_1` norm :math:`\sum_j \lVert x_{:,j} \rVert_2`.

    Examples
    --------
    >>> import numpy as np
    >>> ColumnGroups().value(np.array([[3.0, 0.0], [4.0, 0.0]]))
    5.0
    """

    def value(self, x: Array) -> float:
        """Return the sum of the column norms."""
        return float(namespace(x).sum(column_norms(x)))

    def prox(self, x: Array, step: float) -> Array:
        """Shorten every column by ``step``, to zero where it is not longer."""
        return x * self.factors(x, step)[..., None, :]

    def factors(self, x: Array, step: Array | float) -> Array:
        """Return what `prox` multiplies the columns by."""
        return shrinkage(column_norms(x), step)

    def dual_norm(self, x: Array) -> float:
        """Return the largest column norm."""
        return float(namespace(x).max(column_norms(x)))


class Entries:
    r"""Sum of absolute entries, the :math:`\ell_1` norm :math:`\sum_{ij} \lvert x_{ij} \rvert`.

    Examples
    --------
    >>> import numpy as np
    >>> Entries().value(np.array([[3.0, -4.0]]))
    7.0
    """

    def value(self, x: Array) -> float:
        """Return the sum of the absolute entries."""
        xp = namespace(x)
        return float(xp.sum(xp.abs(x)))

    def prox(self, x: Array, step: float) -> Array:
        """Move every entry towards zero by ``step``, to zero where it is not larger."""
        return x - namespace(x).clip(x, -step, step)

    def dual_norm(self, x: Array) -> float:
        """Return the largest absolute entry."""
        xp = namespace(x)
        return float(xp.max(xp.abs(x)))


class Simplex:
    r"""Indicator of the row-stochastic matrices :math:`\{P : P \ge 0,\; P\mathbf 1 = \mathbf 1\}`.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex().prox(np.array([[2.0, 0.0], [0.25, 0.25]]), 1.0)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    tolerance = 1e-9

    def value(self, x: Array) -> float:
        """Return 0 for a row-stochastic matrix (to rounding), infinity otherwise."""
        xp = namespace(x)
        inside = xp.min(x) >= -self.tolerance and xp.max(xp.abs(xp.sum(x, axis=-1) - 1.0)) <= self.tolerance
        return 0.0 if inside else float("inf")

    def prox(self, x: Array, step: float = 1.0) -> Array:
        """Project every row onto the probability simplex; ``step`` has no effect on an indicator."""
        del step
        return kernels.fused.project_simplex(x) if is_numpy(x) and x.ndim == 2 else project_simplex(x)

    def support(self, x: Array) -> float:
        r"""Return :math:`\max_P \langle P, X \rangle = \sum_i \max_j x_{ij}`."""
        xp = namespace(x)
        return float(xp.sum(xp.max(x, axis=-1)))
