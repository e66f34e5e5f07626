r"""Singular value thresholding that keeps what it learnt from one iteration to the next.

For a matrix V and a threshold t the result is :math:`\sum_{s_i > t} (s_i - t) u_i v_i'`. Four ways, cheapest first:

1. nothing, when a norm bound proves that every singular value is at most t;
2. a block of left singular vectors carried over from the last call and improved by one power step; it starts from
   random vectors and grows with the rank;
3. the eigenvectors of the Gram matrix V'V that belong to eigenvalues above t^2;
4. all eigenvectors, which is what 3 amounts to when the rank is high.

Ways 2 and 3 never form a full SVD. Way 2 is inexact; `spectral_norm_bound` restores a proof afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from emvc._array import FloatArray

_GUARD = 8  # least number of vectors kept beyond the rank, so that a growing rank is seen in time
_GUARD_SHARE = 0.75  # and as a share of the rank: few iterations must do where the spectrum is dense
_SMALL = 400  # up to this number of columns the Gram matrix costs less than a larger block
_FIRST_BLOCK = 64  # random vectors in the first try
_EARLY = 8  # calls in which a rank beyond the largest block is cut off
_FRESH_STEPS = 2  # power steps of random vectors before they join the block
_SUBSPACE_LIMIT = 0.25  # beyond this share of the columns the Gram matrix is faster
_ALL_OF_IT = 1500  # up to this size all eigenvectors take no longer than some
_FULL_LIMIT = 0.35  # beyond this share all eigenvectors are faster than a subset
_TINY = 1e-6  # smaller singular values, relative to the largest, are as good as zero in a carried block
_POWER_STEPS = 8  # most steps towards a given accuracy before the Gram matrix is decomposed instead


@dataclass(frozen=True)
class Thresholded:
    """Result of a thresholding step: the sum of its singular values and how many there are."""

    nuclear_norm: float
    rank: int


class SingularValueThreshold:
    """Thresholding operator with memory.

    Parameters
    ----------
    accuracy : float, optional
        Largest error, in spectral norm, for the block method to be trusted; it takes several power steps to get there.
        None takes one step per call and leaves the judgement to the caller, who sees matrices that change slowly.
    """

    def __init__(self, *, accuracy: float | None = None) -> None:
        self.accuracy = accuracy
        self._left: FloatArray | None = None
        self._caution = 1
        self._full = False
        self._exact = accuracy is not None
        self._calls = 0

    def forget(self) -> None:
        """Make the next call exact and carry a larger block from then on: the last one missed a direction."""
        self._left = None
        self._exact = True
        self._caution = min(2 * self._caution, 2**10)

    def _guard(self, rank: int) -> int:
        return self._caution * (_GUARD + int(_GUARD_SHARE * rank))

    def __call__(self, matrix: FloatArray, threshold: float, out: FloatArray) -> Thresholded:
        """Write the thresholded ``matrix`` to ``out``; the two must not overlap."""
        if self._left is None and not self._full and _norm_bound(matrix) <= threshold:
            out[...] = 0.0
            return Thresholded(0.0, 0)
        self._calls += 1
        found = self._by_subspace(matrix, threshold)
        if found is None and not self._exact and matrix.shape[1] > _SMALL:
            found = self._by_larger_block(matrix, threshold)
        if found is None:
            found = self._by_gram(matrix, threshold)
        images, vectors, values = found
        np.matmul(images * (1.0 - threshold / values), vectors.T, out=out)
        return Thresholded(float(np.sum(values - threshold)), len(values))

    def _by_larger_block(
        self, matrix: FloatArray, threshold: float
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Add random vectors to the block, or start one, until the rank fits: early iterates need not be accurate."""
        n_columns = matrix.shape[1]
        rng = np.random.default_rng(n_columns)
        most = int(_SUBSPACE_LIMIT * n_columns)
        while True:
            present = 0 if self._left is None else self._left.shape[1]
            size = min(present or _FIRST_BLOCK, most - present)
            if size < _GUARD:
                found = (
                    self._by_subspace(matrix, threshold, truncate=True) if self._calls <= _EARLY and present else None
                )
                self._left = None if found is None else self._left
                return found
            fresh = rng.standard_normal((n_columns, size)).astype(matrix.dtype)
            for _ in range(_FRESH_STEPS):
                basis = _orthonormalize(matrix.T @ (matrix @ fresh))
                if basis is None:
                    self._left = None
                    return None
                fresh = basis
            images = matrix @ fresh
            images /= np.linalg.norm(images, axis=0)
            self._left = images if self._left is None else np.hstack([self._left, images])
            found = self._by_subspace(matrix, threshold)
            if found is not None:
                return found

    def _by_subspace(
        self, matrix: FloatArray, threshold: float, *, truncate: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return images, right vectors and singular values above the threshold, or None if not to be trusted.

        With ``truncate`` a rank beyond the block is cut off: the first iterates of a run have a much higher rank than
        the last, and nothing is lost if they are not exact.

        The left vectors of the last call are images already, so a power step from them takes two products, not three.
        """
        if self._left is None:
            return None
        block = matrix.T @ self._left
        for _ in range(1 if self.accuracy is None else _POWER_STEPS):
            basis = _orthonormalize(block)
            if basis is None:
                return None
            images = matrix @ basis
            squares, rotation = np.linalg.eigh(images.T @ images)
            values = np.sqrt(np.maximum(squares, 0.0))
            above = int(np.sum(values > threshold))
            if above > basis.shape[1] - _GUARD // 2 and not truncate:
                return None  # the rank has outgrown the block
            n_kept = min(above + self._guard(above), len(values))
            order = np.arange(len(values) - n_kept, len(values))[::-1]
            rotation, values = rotation[:, order], values[order]
            basis, images = basis @ rotation, images @ rotation
            if self.accuracy is None:
                break
            block = matrix.T @ images
            if _block_error(block, basis, values, threshold, above) <= self.accuracy:
                break
        else:
            return None
        self._left = images / np.maximum(values, _TINY * values[0])
        lacking = above + self._guard(above) - n_kept
        if lacking > 0 and self.accuracy is None and not truncate:  # the rank has grown, and with it the guard
            fresh = matrix @ np.random.default_rng(above).standard_normal((matrix.shape[1], lacking)).astype(
                matrix.dtype
            )
            self._left = np.hstack([self._left, fresh / np.linalg.norm(fresh, axis=0)])
        return images[:, :above], basis[:, :above], values[:above]

    def _by_gram(self, matrix: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Decompose the Gram matrix: all of it when the last rank was high, because that has the faster driver."""
        gram = matrix.T @ matrix
        if _SMALL < len(gram) <= _ALL_OF_IT:  # by the BLAS of the products: two of them get in each other's way
            squares, vectors = np.linalg.eigh(gram)
        else:
            options: dict[str, Any] = {"driver": "evd"} if self._full else {"subset_by_value": (threshold**2, np.inf)}
            squares, vectors = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False, **options)
        n_columns = matrix.shape[1]
        kept = squares > threshold**2
        rank = int(kept.sum())
        values, above = np.sqrt(squares[kept]), vectors[:, len(squares) - rank :]
        images = matrix @ above
        guard = self._guard(rank)
        self._left = None
        if rank + guard <= _SUBSPACE_LIMIT * n_columns:
            padding = np.random.default_rng(n_columns).standard_normal((n_columns, guard)).astype(matrix.dtype)
            self._left = np.hstack([images[:, ::-1] / values[::-1], matrix @ (padding / math.sqrt(n_columns))])
        else:
            self._exact = True  # no random block would be large enough
        self._full = rank > _FULL_LIMIT * n_columns
        return images, above, values


def _block_error(block: FloatArray, basis: FloatArray, values: FloatArray, threshold: float, rank: int) -> float:
    """Return how far the thresholded block can be from the truth, in spectral norm, by its residuals.

    A vector with residual r turns by at most r / (s^2 - t^2) out of the space of values above t, which costs
    (s - t) times as much; leaving it out costs s - t.
    """
    kept = values[:rank]
    residuals = np.linalg.norm(block[:, :rank] - basis[:, :rank] * kept**2, axis=0)
    return float(np.max(np.minimum(kept - threshold, residuals / (kept + threshold)), initial=0.0))


def _orthonormalize(block: FloatArray) -> FloatArray | None:
    """Return an orthonormal basis of the columns by Cholesky QR, or None if they are close to dependent.

    Its columns are images of singular vectors around and above the threshold, whose singular values differ by a small
    factor, so squaring the condition number is harmless here and much faster than Householder QR.
    """
    try:
        factor = np.linalg.cholesky(block.T @ block)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diag(factor)
    if diagonal.min() <= 1e-5 * diagonal.max():
        return None
    return np.asarray(block @ np.linalg.inv(factor).T)


def _norm_bound(matrix: FloatArray) -> float:
    """Return a cheap upper bound on the largest singular value."""
    magnitudes = np.abs(matrix)
    mixed = float(np.sqrt(magnitudes.sum(axis=0).max() * magnitudes.sum(axis=1).max()))
    return min(mixed, float(np.linalg.norm(matrix)))


def spectral_norm_bound(matrix: FloatArray, guess: float = 1.0, slack: float = 0.0) -> float:
    """Return a proven upper bound on the largest singular value, tight when ``guess`` is close.

    A relative ``slack`` is given away from the start, which saves proofs of bounds that are tighter than needed.

    ``c`` is a bound if and only if ``c^2 I - V'V`` is positive semidefinite, which a Cholesky factorisation decides
    at a tenth of the cost of an eigendecomposition.
    """
    bound = gram_norm_bound(matrix.T @ matrix, guess, slack)
    return _norm_bound(matrix) if bound is None else bound


def gram_norm_bound(gram: FloatArray, guess: float = 1.0, slack: float = 0.0) -> float | None:
    """Return the bound of `spectral_norm_bound` from the Gram matrix, or None if ``guess`` is far below the norm."""
    rounding = 4.0 * len(gram) * float(np.finfo(np.float64).eps)
    for excess in (rounding, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        if excess < slack:
            continue
        bound = guess * (1.0 + excess)
        shifted = -gram
        shifted.flat[:: len(gram) + 1] += bound**2
        try:
            scipy.linalg.cholesky(shifted, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return bound
    return None
