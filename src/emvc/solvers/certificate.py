r"""The certificate: a consensus that is feasible, and a bound below which no consensus can get.

**Upper bound.** The low-rank copy Q is almost row-stochastic. Its rows, projected onto the simplex, make the candidate
X. Projection adds a matrix of full rank, whose nuclear norm would be most of the gap long after the multipliers are
accurate. So Q is *polished* first: with :math:`Q = AB'`, B orthonormal, rows a of A are scaled to sum one, and move by
:math:`\alpha B'd` to lose their negative part d as far as the row space can. Since most of d is outside of the row
space, :math:`\alpha = 1` (alternating projections) would take hundreds of steps; with
:math:`\alpha = \lVert d\rVert^2 / \lVert B'd\rVert^2` (extrapolated projections; Pierra, 1984) two do,
and no step is longer than the row.
The nuclear norm of X is at most that of the polished matrix, which follows from A, and that of what projection adds:
a matrix with equal entries in every row, and the rows that were clipped. At the end of a run the objective is computed
exactly.

**Lower bound.** That of `emvc.problem.Problem.dual_bound`, of Z divided by a proven bound on its largest singular
value: c is one if and only if :math:`c^2 I - Z'Z` is positive semidefinite, which a Cholesky factorisation decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.linalg

from emvc import kernels
from emvc._array import FloatArray, row_norms
from emvc._threads import gram, matmul, threads_for_blas
from emvc.problem import Decomposition, relative_gap
from emvc.solvers.svt import LARGE, Thresholded

_POLISHING_STEPS = 2
_LEAST_SUM = 0.5  # rows that sum to less cannot be scaled


@dataclass(frozen=True)
class Certificate:
    """A consensus with a proof of how good it is.

    Attributes
    ----------
    consensus : ndarray of shape (n_samples, n_states)
        The shared transitions P, always row-stochastic.
    objective : float
        The objective at ``consensus``.
    bound : float
        A lower bound on the optimal objective.
    rank : int
        Rank of the low-rank copy of the consensus.
    """

    consensus: FloatArray
    objective: float
    bound: float
    rank: int

    @classmethod
    def of(cls, problem: Decomposition, consensus: FloatArray, bound: float, rank: int) -> Self:
        """Return the certificate of a consensus, with its exact objective."""
        with threads_for_blas(len(consensus), least=LARGE):
            return cls(consensus, problem.objective(consensus), bound, rank)

    @property
    def gap(self) -> float:
        """Relative duality gap: no consensus can lower the objective by a larger share."""
        return relative_gap(self.objective, self.bound)


def candidate(low_rank: FloatArray, spectrum: Thresholded) -> tuple[FloatArray, float]:
    """Return a row-stochastic matrix near the low-rank copy, and a bound on its nuclear norm.

    The singular values of the copy and their right vectors are in ``spectrum``.
    """
    nuclear_norm, coordinates = spectrum.nuclear_norm, polish(low_rank, spectrum.right)
    if coordinates is not None:
        low_rank = matmul(coordinates, spectrum.right.T)
        squares = np.linalg.eigvalsh(gram(coordinates.astype(np.float64)))
        nuclear_norm = float(np.sqrt(np.maximum(squares, 0.0)).sum())
    shifts = np.zeros(len(low_rank))
    matrix = kernels.fused.project_simplex(low_rank, shifts)
    clipped = row_norms(matrix - low_rank + shifts[:, None]).sum()
    nuclear_norm += math.sqrt(matrix.shape[1]) * float(np.linalg.norm(shifts)) + float(clipped)
    return matrix, nuclear_norm


def polish(low_rank: FloatArray, right: FloatArray) -> FloatArray | None:
    """Return A such that the rows of AB' sum to one and have little to lose, or None if a row of Q sums to far less."""
    total = right.sum(axis=0)
    coordinates = matmul(low_rank, right)
    for step in range(_POLISHING_STEPS + 1):
        sums = coordinates @ total
        if sums.min() < _LEAST_SUM:
            return None
        coordinates /= sums[:, None]
        if step < _POLISHING_STEPS:
            negative = np.minimum(matmul(coordinates, right.T), 0.0)
            move = matmul(negative, right)
            length, precision = row_norms(negative), np.finfo(right.dtype)
            ratio = length / np.maximum(row_norms(move), length * precision.eps + precision.tiny)
            coordinates -= ratio[:, None] ** 2 * move
    return coordinates


def norm_bound(matrix: FloatArray, least: float) -> float:
    """Return a proven bound on the largest singular value: one, one plus ``least``, or four times as much each time.

    Rounding of the factorisation is allowed for. The bound is far from tight where the norm is far above one.
    """
    squares = gram(matrix.astype(np.float64))
    rounding = 4.0 * len(squares) * float(np.finfo(np.float64).eps)
    excess = rounding
    while excess < 1.0:
        shifted = -squares
        np.fill_diagonal(shifted, (1.0 + excess) ** 2 - np.diag(squares))
        if scipy.linalg.lapack.dpotrf(shifted.T, overwrite_a=True, clean=False)[1] == 0:
            return (1.0 + excess) * (1.0 + rounding)
        excess = max(least, 4.0 * excess)
    return float(np.linalg.norm(matrix))
