r"""The proximal step of the nuclear norm, with memory.

For a matrix V and a threshold t the result is :math:`\sum_{s_i > t} (s_i - t) u_i v_i'`, that of
`emvc.prox.NuclearNorm`. It is computed without a singular value decomposition, in the cheapest of three ways:

1. nothing, where a norm bound proves that every singular value is at most t;
2. by a block: the leading left vectors of the last call and some more take one power step, and singular values and
   vectors are those of V within the space that they span (Rayleigh-Ritz);
3. by the eigenvectors of the Gram matrix :math:`V'V`, where there is no block yet, where the rank has outgrown it, or
   where a block would be so wide that it saves nothing.

Way 2 is inexact, since the matrices of a run change slowly, but do change. Whoever needs a proof has to find one
(`emvc.solvers.certificate.norm_bound`) and calls `forget` if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from emvc._array import FloatArray
from emvc._linalg import largest_eigenpairs
from emvc._threads import gram, matmul, threads_for_blas

_GUARD, _GUARD_SHARE = 8, 0.5  # vectors beyond the rank: at least so many, and so many per rank
_WIDEST = 0.25  # share of the columns beyond which a block costs as much as the Gram matrix
LARGE = 400  # from this size on several threads pay for eigenvalues


@dataclass(frozen=True)
class Thresholded:
    """Result of a thresholding step: its singular values, in falling order, and their right vectors."""

    values: FloatArray
    right: FloatArray

    @property
    def nuclear_norm(self) -> float:
        """The sum of the singular values."""
        return float(np.sum(self.values, dtype=np.float64))

    @property
    def rank(self) -> int:
        """Their number."""
        return len(self.values)


class SingularValueThreshold:
    """Thresholding operator with memory.

    Parameters
    ----------
    exact : bool
        Whether to do without blocks.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self.exact = exact
        self._block: FloatArray | None = None
        self._rank = 0

    def forget(self) -> None:
        """Make the next call exact."""
        self._block = None

    def __call__(self, matrix: FloatArray, threshold: float, out: FloatArray) -> Thresholded:
        """Write the thresholded ``matrix`` to ``out``; the two must not overlap."""
        if self._rank == 0 and _norm_bound(matrix) <= threshold:
            out[...] = 0.0
            return Thresholded(np.empty(0), np.empty((matrix.shape[1], 0), dtype=matrix.dtype))
        found = None if self._block is None else _ritz(matrix, matmul(matrix.T, self._block))
        if found is None or np.sum(found[0] > threshold) + _GUARD // 2 > len(found[0]):
            found = _decompose(matrix, above=threshold if self.exact else None)
        values, right = found
        self._rank = rank = int(np.sum(values > threshold))
        width = rank + max(_GUARD, int(_GUARD_SHARE * rank))
        blocks = not self.exact and width <= _WIDEST * matrix.shape[1]
        images = matmul(matrix, right[:, : width if blocks else rank])
        self._block = images if blocks else None
        kept, right = values[:rank] - threshold, right[:, :rank]
        matmul(images[:, :rank] * (kept / values[:rank]).astype(matrix.dtype, copy=False), right.T, out=out)
        return Thresholded(kept, right)


def _ritz(matrix: FloatArray, block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return singular values and right vectors within the space of a block, in falling order."""
    basis, _ = np.linalg.qr(block)
    values, rotation = _decompose(matmul(matrix, basis))
    return values, matmul(basis, rotation)


def _decompose(matrix: FloatArray, above: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Return singular values, all or those above a number, and right vectors by the Gram matrix, in falling order."""
    with threads_for_blas(matrix.shape[1], least=LARGE):
        if above is None:
            squares, vectors = scipy.linalg.eigh(gram(matrix), check_finite=False, driver="evd")
        else:
            squares, vectors = largest_eigenpairs(gram(matrix), above=above**2)
    return np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1]


def _norm_bound(matrix: FloatArray) -> float:
    """Return a cheap upper bound on the largest singular value."""
    magnitudes = np.abs(matrix)
    mixed = float(np.sqrt(magnitudes.sum(axis=0).max() * magnitudes.sum(axis=1).max()))
    return min(mixed, float(np.linalg.norm(matrix)))
