r"""From a matrix of low rank to one close by that is almost row-stochastic and has the same row space.

The low-rank copy Q of the consensus has rows that do not quite sum to one and small negative entries. Projecting it
onto the simplex adds a matrix of full rank, whose nuclear norm is most of the gap on data without clear clusters, long
after the multipliers are accurate. Here rows move within the row space of Q instead, which keeps the rank: every row is
scaled to sum one, then its negative part d is taken away as far as the row space can, several times.

With :math:`Q = AB'`, B orthonormal, a row a of A moves by :math:`\alpha B'd`. Since most of d is outside of the row
space, :math:`\alpha = 1` (alternating projections) would take hundreds of steps; with
:math:`\alpha = \lVert d\rVert^2 / \lVert B'd\rVert^2` (extrapolated projections; Pierra, 1984), a little more than that
here, one takes away nine tenths, and two almost all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emvc._array import FloatArray
from emvc._threads import by_rows, matmul
from emvc._threads import gram as gram_matrix
from emvc.solvers._split import gram_nuclear_norm

_EXTRAPOLATED = 1.6  # times the length of a plain extrapolated projection
_LONGEST = 50.0
_LEAST_SUM = 0.5  # rows that sum to less cannot be scaled
_NEGLIGIBLE = 1e-7  # factors this short, relative to the longest, count for nothing
_TINY = 1e-30


@dataclass(frozen=True)
class Polished:
    """A matrix and its factors, ``matrix = coordinates @ basis.T``."""

    matrix: FloatArray
    coordinates: FloatArray
    basis: FloatArray

    def norm_bound(self) -> float:
        """Return an upper bound on the nuclear norm, the sum over all pairs of columns.

        The factors of the matrix that was polished are singular vectors, and it has moved little: a tenth of a per
        mille above the norm at most, and no decomposition.
        """
        lengths = [np.sqrt(np.einsum("ij,ij->j", x, x, dtype=np.float64)) for x in (self.coordinates, self.basis)]
        return float(lengths[0] @ lengths[1])

    def nuclear_norm(self) -> float:
        """Return the nuclear norm, also if the basis is orthonormal to rounding only."""
        factor = np.linalg.cholesky(gram_matrix(self.basis.astype(np.float64)))
        return gram_nuclear_norm(gram_matrix(self.coordinates.astype(np.float64) @ factor))


def polish(low_rank: FloatArray, left: FloatArray | None, right: FloatArray, steps: int = 2) -> Polished | None:
    """Return a matrix near ``low_rank`` whose projection adds little to it, or None if a row sums to far less than one.

    Parameters
    ----------
    low_rank : ndarray of shape (n_samples, n_states)
        The matrix.
    left, right : ndarrays of shape (n_samples, rank) and (n_states, rank)
        Its factors, ``low_rank = left @ right.T``; the columns of ``right`` are orthogonal. Without ``left`` it is
        computed.
    steps : int
        Number of extrapolated projections.
    """
    lengths = np.linalg.norm(right, axis=0)
    kept = lengths > _NEGLIGIBLE * lengths.max(initial=0.0)
    basis = right[:, kept] / lengths[kept]
    coordinates = matmul(low_rank, basis) if left is None else left[:, kept] * lengths[kept]
    total = basis.sum(axis=0)
    sums = coordinates @ total
    if sums.min() < _LEAST_SUM:
        return None
    coordinates /= sums[:, None]
    work = np.empty(low_rank.shape, dtype=basis.dtype)
    squares = np.empty(len(low_rank))

    def negative_part(matrix: FloatArray, scale: FloatArray | None) -> None:
        def fill(rows: slice) -> None:
            part = work[rows]
            np.minimum(matrix[rows], 0.0, out=part, casting="same_kind")
            if scale is not None:
                part /= scale[rows, None].astype(part.dtype)
            squares[rows] = np.einsum("ij,ij->i", part, part)

        by_rows(fill, len(work))

    negative_part(low_rank, sums)
    for step in range(steps):
        if step:
            negative_part(work, None)
        move = matmul(work, basis)
        inside = np.einsum("ij,ij->i", move, move)
        factor = np.minimum(_EXTRAPOLATED * squares / np.maximum(inside, _TINY), _LONGEST)
        coordinates -= factor[:, None].astype(move.dtype) * move
        sums = coordinates @ total
        if sums.min() < _LEAST_SUM:
            return None
        coordinates /= sums[:, None]
        matmul(coordinates, basis.T, out=work)
    return Polished(work.astype(low_rank.dtype, copy=False), coordinates, basis)
