r"""Singular value thresholding that keeps what it learnt from one iteration to the next.

For a matrix V and a threshold t the result is :math:`\sum_{s_i > t} (s_i - t) u_i v_i'`. Four ways, cheapest first:

1. nothing, when a norm bound proves that every singular value is at most t;
2. a block of left singular vectors carried over from the last call and improved by one power step; it starts from
   columns of the matrix, grows with the rank, takes in its residuals when `careful` and is widened and filtered when
   `thorough`;
3. the eigenvectors of the Gram matrix V'V that belong to eigenvalues above t^2;
4. all eigenvectors, which is what 3 amounts to when the rank is high; in single precision if the accuracy asked for
   and the matrix allow it (`emvc.solvers._dense`).

Ways 2 and 3 never form a full SVD. Way 2 is inexact; `spectral_norm_bound` restores a proof afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from emvc._array import FloatArray
from emvc._threads import gram as gram_matrix
from emvc._threads import grams, matmul, threads_for_blas
from emvc.solvers import _dense

_GUARD = 8  # least number of vectors kept beyond the rank, so that a growing rank is seen in time
_GUARD_SHARE = 0.25  # and as a share of the rank: few iterations must do where the spectrum is dense
_GUARD_COLUMNS = 100  # and at least one per so many columns: they cost little where the rank is low
_LACKING = 0.2  # share of these vectors that may be missing before new ones are drawn
_LARGE = 2000  # from this size on several threads pay for a Cholesky factorisation
_SMALL = 400  # up to this number of columns the Gram matrix costs less than a larger block
_FIRST_BLOCK = 64  # vectors in the first try
_HOPELESS = 2.5  # mean square of the singular values, over that of the threshold, for which no block is large enough
_EARLY = 2  # calls in which a rank beyond the largest block is cut off
_BETWEEN = (0.9, 1.4)  # the same where the rank is close to the largest block: a larger one for more calls pays
_LARGER_LIMIT, _LATER = 0.35, 4  # in place of _SUBSPACE_LIMIT and _EARLY
_GROWTH = 4  # factor from one try to the next
_ACCURATE_LIMIT = 0.1  # largest block, as a share of the columns, that is grown towards a given accuracy
_SUBSPACE_LIMIT = 0.25  # beyond this share of the columns the Gram matrix is faster
_ALL_OF_IT = 1500  # up to this size all eigenvectors take no longer than some
_HIGH_RANK = 0.5  # beyond this share of the columns the result is a product with one square matrix
_FACTORED = 0.7  # and beyond this one factors of it would save nothing
_WIDE = 0.18  # beyond this share one thorough step takes less time than three careful ones
_WIDER = 0.25  # share of random vectors that it adds
_LOCKED = 1.3  # singular values beyond so many thresholds are almost accurate already
_CUT = 0.87  # and those up to so many are filtered out
_DEGREE = 5  # by a polynomial of this degree
_FULL_LIMIT = 0.35  # beyond this share all eigenvectors are faster than a subset
_MIRRORED_ROWS = 256  # at a time
_SOUGHT, _SOUGHT_STEPS = 16, 2  # vectors and power steps in the search for missed directions
_LEAST = 1e-30
_ORTHOGONAL = 0.1  # columns are nearly orthogonal where the squared distance to the others is at least this share
_DEPENDENT = 0.3  # columns are close to dependent where a factor falls below this power of the precision
_TINY = 1e-6  # smaller singular values, relative to the largest, are as good as zero in a carried block
_NORMS = (1.0, *(1.0 + excess for excess in (1e-9, 1e-7, 1e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1)))  # candidates
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
    residual : float
        Residuals up to this share of the threshold do no harm to a careful step: their squares matter.
    single : bool
        Whether the block method may work in single precision.
    """

    def __init__(self, *, accuracy: float | None = None, residual: float = 1e-3, single: bool = False) -> None:
        self.accuracy = accuracy
        self.residual = residual
        self.single = single
        self.careful = False
        """Whether the block is widened by its residuals."""
        self.thorough = False
        """Whether the block is widened and filtered, which is worth its cost for one call if the block is wide."""
        self._left: FloatArray | None = None
        self._factors: tuple[FloatArray | None, FloatArray] | None = None
        self._caution = 1
        self._full = False
        self._exact = accuracy is not None
        self._limit, self._last_early = _SUBSPACE_LIMIT, _EARLY
        self._calls = 0
        self._last_rank = 0
        self._leading: FloatArray | None = None
        self._try_single = accuracy is not None and accuracy >= _dense.ACCURACY

    @property
    def factors(self) -> tuple[FloatArray | None, FloatArray] | None:
        """Two factors of the last result, the second one with orthogonal columns.

        Without the first one if the rank was high, None if factors would not be of much use.
        """
        return self._factors

    @property
    def is_exact(self) -> bool:
        """Whether the last call took all eigenvectors, and the next one will."""
        return self._left is None and self._last_rank > 0

    def forget(self) -> None:
        """Make the next call exact and carry a larger block from then on: the last one was not accurate enough."""
        self._left = None
        self._exact = True
        self._caution = min(2 * self._caution, 2**10)

    def recover(self, matrix: FloatArray) -> float:
        """Look for directions that the block has missed in what the last call took away, and add them to the block.

        There they have singular values above the threshold, all others are at most at it: power steps find them,
        from where the images of the left vectors of the block are longest and from random vectors. Returns an estimate
        of the largest singular value, which is never above it; zero if thresholding was exact.

        Parameters
        ----------
        matrix : ndarray
            What the last call has thresholded.
        """
        if self._left is None or self._factors is None or self._factors[0] is None:
            return 0.0
        matrix = matrix.astype(self._left.dtype, copy=False)
        images, vectors = (factor.astype(matrix.dtype, copy=False) for factor in (self._factors[0], self._factors[1]))

        def back(left: FloatArray) -> FloatArray:
            return np.asarray(matmul(matrix.T, left) - vectors @ (images.T @ left))

        coupled = back(self._left[:, : vectors.shape[1]])
        _, rotation = scipy.linalg.eigh(gram_matrix(coupled), check_finite=False, driver="evd")
        fresh = np.random.default_rng(matrix.shape[1]).standard_normal((matrix.shape[1], _SOUGHT // 2))
        sought = np.hstack([matmul(coupled, rotation[:, -_SOUGHT // 2 :]), _unit_columns(fresh.astype(matrix.dtype))])
        for step in range(_SOUGHT_STEPS + 1):
            basis = _orthonormalize(sought)
            sought = sought if basis is None else basis
            found = matmul(matrix, sought) - images @ (vectors.T @ sought)
            if step < _SOUGHT_STEPS:
                sought = back(found)
        self._left = np.hstack([self._left, _unit_columns(found)])
        return float(np.linalg.norm(found, 2))

    def _guard(self, rank: int, n_columns: int) -> int:
        """Return the number of vectors to keep beyond the rank."""
        return self._caution * max(_GUARD + int(_GUARD_SHARE * rank), n_columns // _GUARD_COLUMNS)

    def __call__(self, matrix: FloatArray, threshold: float, out: FloatArray) -> Thresholded:
        """Write the thresholded ``matrix`` to ``out``; the two must not overlap."""
        if self._left is None and not self._full and _norm_bound(matrix) <= threshold:
            out[...] = 0.0
            self._factors = None
            return Thresholded(0.0, 0)
        self._calls += 1
        found = self._by_block(matrix.astype(np.float32, copy=False) if self.single else matrix, threshold)
        if found is None:
            with threads_for_blas(matrix.shape[1], least=_SMALL):
                result = self._by_single(matrix, threshold, out)
                if result is not None:
                    return result
                values, vectors = self._by_gram(matrix, threshold)
                if len(values) > _HIGH_RANK * matrix.shape[1]:
                    self._exact = True
                    self._factors = None if len(values) > _FACTORED * matrix.shape[1] else (None, vectors)
                    _dense.combine(matrix, vectors, 1.0 - threshold / values, out=out)
                    return Thresholded(float(np.sum(values - threshold, dtype=np.float64)), len(values))
                images = _dense.multiply(matrix, vectors)
                found = _shrunk(images, values, threshold), vectors, values
            self._carry(matrix, images, values)
        left, right, values = found
        self._factors = left, right
        if left.dtype == out.dtype:
            matmul(left, right.T, out=out)
        else:
            out[...] = matmul(left, right.T)
        return Thresholded(float(np.sum(values - threshold, dtype=np.float64)), len(values))

    def _by_block(self, matrix: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return two factors of the result and the singular values above the threshold from the block, or None."""
        if self._left is not None and self._left.dtype != matrix.dtype:
            self._left = self._left.astype(matrix.dtype)
        full = self._left is not None and self._left.shape[1] >= self._most(matrix)
        found = self._by_subspace(matrix, threshold, truncate=full and self._early)
        dense = self._exact if self.accuracy is None else self._leading is not None
        hopeless = dense or self._last_rank > self._most(matrix)
        if found is None and matrix.shape[1] > _SMALL and not hopeless:
            found = self._by_larger_block(matrix, threshold)
        return found

    def is_wide(self, n_columns: int) -> bool:
        """Return whether one thorough step takes less time than several careful ones."""
        return self._left is not None and n_columns > _SMALL and self._left.shape[1] > _WIDE * n_columns

    @property
    def _early(self) -> bool:
        """Whether iterates need not be accurate yet."""
        return self._calls <= self._last_early and self.accuracy is None and not self._exact

    def _most(self, matrix: FloatArray) -> int:
        """Return the largest sensible block."""
        return int((self._limit if self.accuracy is None else _ACCURATE_LIMIT) * matrix.shape[1])

    def _by_larger_block(
        self, matrix: FloatArray, threshold: float
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Start a block of some columns of the matrix, or add random vectors to it, until the rank fits.

        Early on a rank beyond the largest block is cut off, unless the Frobenius norm says that it is far beyond.
        """
        n_columns = matrix.shape[1]
        rng = np.random.default_rng(n_columns)
        if self._left is None and self._early:
            mean_square = float(np.linalg.norm(matrix)) ** 2 / (n_columns * threshold**2)
            if mean_square > _HOPELESS:
                return None
            if _BETWEEN[0] <= mean_square <= _BETWEEN[1]:
                self._limit, self._last_early = _LARGER_LIMIT, _LATER
        most = self._most(matrix)
        while True:
            present = 0 if self._left is None else self._left.shape[1]
            size = min((_GROWTH - 1) * present or _FIRST_BLOCK, most - present)
            if size < _GUARD:
                found = self._by_subspace(matrix, threshold, truncate=True) if self._early and present else None
                self._left = None if found is None else self._left
                return found
            if self._left is None:
                self._left = _unit_columns(matrix[:, np.linspace(0, n_columns - 1, size).astype(np.intp)])
            else:
                fresh = rng.standard_normal((n_columns, size)).astype(matrix.dtype)
                self._left = _extended(self._left, matmul(matrix, fresh))
            found = self._by_subspace(matrix, threshold)
            if found is not None:
                return found

    def _by_subspace(
        self, matrix: FloatArray, threshold: float, *, truncate: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return two factors of the result and the singular values above the threshold, or None if not to be trusted.

        With ``truncate`` a rank beyond the block is cut off: the first iterates of a run have a much higher rank than
        the last, and nothing is lost if they are not exact.

        The left vectors of the last call are images already, so a power step from them takes two products, not three.
        """
        if self._left is None:
            return None
        if self.accuracy is not None:
            return self._by_power_steps(matrix, threshold, self._left, self.accuracy)
        block = matmul(matrix.T, self._left)
        if self.thorough:
            block = _filtered(matrix, block, threshold)
        ritz = _ritz(matrix, block)
        if ritz is None:
            return None
        basis, images, rotation, values = ritz
        if self.careful:
            basis, images, rotation, values = _with_residuals(
                matrix, matmul(basis, rotation), matmul(images, rotation), values, threshold, self.residual
            )
        above = int(np.sum(values > threshold))
        if above > len(values) - _GUARD // 2 and not truncate:
            return None  # the rank has outgrown the block
        wanted = above + self._guard(above, matrix.shape[1])
        rotation, values = rotation[:, ::-1][:, :wanted], values[::-1][:wanted]
        # Scaling the rotation scales its products, and at less cost.
        left = matmul(images, rotation / np.maximum(values, _TINY * values[0]))
        right = matmul(basis, rotation[:, :above] * (values[:above] - threshold))
        self._left = left
        lacking = wanted - len(values)
        if lacking > _LACKING * (wanted - above) and not truncate:  # the rank has grown, and with it the guard
            fresh = np.random.default_rng(above).standard_normal((matrix.shape[1], lacking)).astype(matrix.dtype)
            self._left = _extended(left, matmul(matrix, fresh))
        return left[:, :above], right, values[:above]

    def _by_power_steps(
        self, matrix: FloatArray, threshold: float, left: FloatArray, accuracy: float
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return two factors of the result and the singular values above the threshold, or None if not accurate."""
        block = matmul(matrix.T, left)
        last = math.inf
        for steps_left in reversed(range(_POWER_STEPS)):
            basis = _orthonormalize(block)
            if basis is None:
                return None
            images = matmul(matrix, basis)
            squares, rotation = scipy.linalg.eigh(gram_matrix(images), check_finite=False, driver="evd")
            values = np.sqrt(np.maximum(squares, 0.0))
            above = int(np.sum(values > threshold))
            if above > basis.shape[1] - _GUARD // 2:
                return None  # the rank has outgrown the block
            wanted = above + self._guard(above, matrix.shape[1])
            rotation, values = rotation[:, ::-1][:, :wanted], values[::-1][:wanted]
            vectors, images = matmul(basis, rotation[:, :above]), matmul(images, rotation)
            block = matmul(matrix.T, images)
            error = _block_error(block, vectors, values, threshold)
            if error <= accuracy:
                self._left = images / np.maximum(values, _TINY * values[0])
                kept = values[:above]
                return _shrunk(images[:, :above], kept, threshold), vectors, kept
            if error * (error / last) ** steps_left > accuracy:
                return None  # the steps that are left will not do
            last = error
        return None

    def _by_single(self, matrix: FloatArray, threshold: float, out: FloatArray) -> Thresholded | None:
        """Threshold by a decomposition in single precision if that is accurate enough, or return None."""
        if not self._try_single or matrix.dtype != np.float64 or matrix.shape[1] <= _SMALL:
            return None
        self._leading = _dense.leading_vector(matrix, self._leading)
        if self._leading is None:
            self._try_single = False
            return None
        values, rank = _dense.threshold_in_single(matrix, threshold, self._leading, out)
        self._remember(rank, matrix)
        self._factors = None
        return Thresholded(float(values.sum()), rank)

    def _by_gram(self, matrix: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Return singular values above the threshold and right vectors from the Gram matrix.

        All of it is decomposed when the last rank was high, because that has the faster driver.
        """
        everything = self._full or _SMALL < matrix.shape[1] <= _ALL_OF_IT
        squares, vectors = _dense.decompose(matrix, above=None if everything else threshold**2)
        kept = squares > threshold**2
        rank = int(kept.sum())
        self._remember(rank, matrix)
        return np.sqrt(squares[kept]), vectors[:, len(squares) - rank :]

    def _remember(self, rank: int, matrix: FloatArray) -> None:
        """Plan the next call by the rank of this one; no block is left."""
        self._left = None
        self._last_rank = rank
        self._full = rank > _FULL_LIMIT * matrix.shape[1]

    def _carry(self, matrix: FloatArray, images: FloatArray, values: FloatArray) -> None:
        """Keep left singular vectors for the next call, and random images beside them."""
        rank, n_columns = len(values), matrix.shape[1]
        guard = self._guard(rank, n_columns)
        if rank + guard <= self._limit * n_columns:
            padding = np.random.default_rng(n_columns).standard_normal((n_columns, guard)).astype(matrix.dtype)
            self._left = np.hstack([images[:, ::-1] / values[::-1], matmul(matrix, padding / math.sqrt(n_columns))])
        else:
            self._exact = True  # no random block would be large enough


def _shrunk(images: FloatArray, values: FloatArray, threshold: float) -> FloatArray:
    """Return images of right singular vectors under the thresholded matrix, from those under the matrix."""
    return np.asarray(images * (1.0 - threshold / values).astype(images.dtype, copy=False))


def _block_error(block: FloatArray, basis: FloatArray, values: FloatArray, threshold: float) -> float:
    """Return how far the thresholded block can be from the truth, in spectral norm, by its residuals.

    A vector with residual r turns by at most r / (s^2 - t^2) out of the space of values above t, which costs
    (s - t) times as much; leaving it out costs s - t.
    """
    rank = basis.shape[1]
    kept = values[:rank]
    residuals = np.linalg.norm(block[:, :rank] - basis * kept**2, axis=0)
    return float(np.max(np.minimum(kept - threshold, residuals / (kept + threshold)), initial=0.0))


def _filtered(matrix: FloatArray, block: FloatArray, threshold: float) -> FloatArray:
    r"""Return a wider basis that has almost all of the right singular vectors above the threshold.

    Where the spectrum is dense around the threshold, a power step hardly tells vectors above from those below. A
    Chebyshev polynomial of the Gram matrix does: on :math:`[0, a]`, a somewhat below :math:`t^2`, it is at most one,
    beyond that it grows as fast as any polynomial can. Leading vectors, which it would blow up most, are almost
    accurate by now: they take a power step and are kept out of it.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        What is thresholded.
    block : ndarray of shape (n_columns, size)
        Images of left singular vectors, so that their lengths are the singular values.
    threshold : float
        t.
    """
    n_columns, size = block.shape
    lengths = np.linalg.norm(block, axis=0)
    block = block / np.maximum(lengths, _LEAST)
    fresh = np.random.default_rng(size).standard_normal((n_columns, int(_WIDER * size))).astype(block.dtype)
    block = _extended(block, fresh)
    leading = np.flatnonzero(lengths > _LOCKED * threshold)
    rest = np.delete(block, leading, axis=1)
    gram = gram_matrix(matrix)
    locked = _orthonormalize(_unit_columns(matmul(gram, block[:, leading]))) if len(leading) else None
    if locked is not None:  # project them out on both sides
        rest -= matmul(locked, matmul(locked.T, rest))
        image = matmul(gram, locked)
        image -= matmul(locked, 0.5 * (locked.T @ image))
        gram -= matmul(np.hstack([locked, image]), np.hstack([image, locked]).T)
    gram *= 4.0 / (_CUT * threshold) ** 2
    gram.flat[:: n_columns + 1] -= 2.0  # twice the matrix whose spectrum is in [-1, 1] where it is to be small
    older, newer = rest, matmul(gram, 0.5 * rest)
    for _ in range(_DEGREE - 1):
        older, newer = newer, matmul(gram, newer) - older
    basis = _orthonormalize(_unit_columns(newer))
    if basis is None:
        return block
    return basis if locked is None else np.hstack([locked, basis])


def _ritz(matrix: FloatArray, block: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Return basis, images, rotation and increasing values.

    Rotated, the basis is orthonormal and the images are orthogonal. Columns of a block that follows slow changes are
    nearly orthogonal already; then the block itself is the basis, and the rotation makes up for what is missing.
    Returns None if the columns are not finite.
    """
    images = matmul(matrix, block)
    inner, outer = grams(block, images)
    factor = _nearly_orthogonal(inner)
    if factor is not None:
        squares, rotation = _generalized(outer, factor)
    else:
        basis = _orthonormalize(block)
        if basis is None:
            return None
        block, images = basis, matmul(matrix, basis)
        squares, rotation = scipy.linalg.eigh(gram_matrix(images), check_finite=False, driver="evd")
    return block, images, rotation, np.sqrt(np.maximum(squares, 0.0))


def _nearly_orthogonal(gram: FloatArray) -> FloatArray | None:
    """Return the Cholesky factor of a Gram matrix if its columns are far from dependent, whatever their lengths."""
    factor, failed = _cholesky(gram)
    return factor if not failed and np.all(np.diag(factor) ** 2 > _ORTHOGONAL * np.diag(gram)) else None


def _cholesky(gram: FloatArray) -> tuple[FloatArray, bool]:
    """Return the lower Cholesky factor, and whether there is none; NumPy takes twice the time."""
    (factorize,) = scipy.linalg.lapack.get_lapack_funcs(["potrf"], [gram])
    factor, failed = factorize(gram, lower=1)
    return factor, failed != 0


def _generalized(matrix: FloatArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return increasing eigenvalues and eigenvectors of a matrix relative to another, given by its Cholesky factor."""
    reduce, solve = scipy.linalg.lapack.get_lapack_funcs(["sygst", "trtrs"], [matrix, factor])
    reduced, _ = reduce(matrix, factor, lower=1)
    squares, vectors = scipy.linalg.eigh(reduced, lower=True, check_finite=False, overwrite_a=True, driver="evd")
    return squares, solve(factor, vectors, lower=1, trans=1, overwrite_b=1)[0]


def _with_residuals(
    matrix: FloatArray, basis: FloatArray, images: FloatArray, values: FloatArray, threshold: float, least: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what `_ritz` does for a basis with what it lacks of the singular vectors above the threshold.

    The residual :math:`V'u - s v` of an approximate pair is the direction in which its right vector should turn. With
    the residuals in the basis, but for those below the share ``least`` of the threshold, errors fall as in two steps
    of a block Krylov method, much faster than by power steps.
    """
    as_they_are = basis, images, np.eye(len(values), dtype=basis.dtype), values
    above = values > threshold
    if not above.any():
        return as_they_are
    residuals = matmul(matrix.T, images[:, above] / values[above])
    residuals -= basis[:, above] * values[above]
    sizes, rotation = scipy.linalg.eigh(gram_matrix(residuals), check_finite=False, driver="evd")
    kept = sizes > (least * threshold) ** 2
    if not kept.any():
        return as_they_are
    fresh = matmul(residuals, rotation[:, kept] / np.sqrt(sizes[kept]))
    fresh -= matmul(basis, matmul(basis.T, fresh))
    added = _orthonormalize(fresh)
    if added is None:
        return as_they_are
    more = matmul(matrix, added)
    rank, size = len(values), len(values) + added.shape[1]
    gram = np.zeros((size, size), dtype=basis.dtype)
    np.fill_diagonal(gram, values**2)
    gram[rank:, :rank] = more.T @ images
    gram[rank:, rank:] = gram_matrix(more)
    squares, rotation = scipy.linalg.eigh(gram, lower=True, check_finite=False, driver="evd")
    return np.hstack([basis, added]), np.hstack([images, more]), rotation, np.sqrt(np.maximum(squares, 0.0))


def _extended(left: FloatArray, fresh: FloatArray) -> FloatArray:
    """Return orthonormal columns and what others add to them, of unit length."""
    fresh = fresh - matmul(left, matmul(left.T, fresh))
    return np.hstack([left, _unit_columns(fresh)])


def _unit_columns(matrix: FloatArray) -> FloatArray:
    """Return columns of unit length."""
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=0), _LEAST))


def _orthonormalize(block: FloatArray) -> FloatArray | None:
    """Return an orthonormal basis of the columns, by Cholesky QR unless they are close to dependent.

    Columns are mostly images of singular vectors around and above the threshold, whose singular values differ by a
    small factor, so squaring the condition number is harmless and much faster than Householder QR.
    """
    factor, failed = _cholesky(gram_matrix(block))
    diagonal = np.diag(factor)
    if not failed and diagonal.min() > np.finfo(block.dtype).eps ** _DEPENDENT * diagonal.max():
        return matmul(block, scipy.linalg.lapack.get_lapack_funcs("trtri", [factor])(factor, lower=1)[0].T)
    basis, triangle = np.linalg.qr(block)
    return np.asarray(basis) if np.all(np.isfinite(triangle)) else None


def _norm_bound(matrix: FloatArray) -> float:
    """Return a cheap upper bound on the largest singular value."""
    magnitudes = np.abs(matrix)
    mixed = float(np.sqrt(magnitudes.sum(axis=0).max() * magnitudes.sum(axis=1).max()))
    return min(mixed, float(np.linalg.norm(matrix)))


def spectral_norm_bound(matrix: FloatArray) -> float:
    """Return a proven upper bound on the largest singular value, tight when that is close to one.

    ``c`` is a bound if and only if ``c^2 I - V'V`` is positive semidefinite, which a Cholesky factorisation decides
    at a tenth of the cost of an eigendecomposition.
    """
    bound = gram_norm_bound(gram_matrix(matrix))
    return _norm_bound(matrix) if bound is None else bound


def gram_norm_bound(gram: FloatArray, candidates: Sequence[float] = _NORMS) -> float | None:
    """Return the first of increasing candidates that is proven to be at least the largest singular value, or None.

    Candidates are raised by what rounding may have hidden. The Gram matrix is overwritten.
    """
    rounding = 4.0 * len(gram) * float(np.finfo(np.float64).eps)
    shifted = np.negative(gram, out=gram)
    diagonal = np.diag(shifted).copy()
    (factorize,) = scipy.linalg.lapack.get_lapack_funcs(["potrf"], [gram])
    for number, candidate in enumerate(candidates):
        if number:
            _mirror(shifted)
        bound = candidate * (1.0 + rounding)
        np.fill_diagonal(shifted, diagonal + bound**2)
        with threads_for_blas(len(gram), least=_LARGE):
            # The transpose is in the order that LAPACK wants; only the upper triangle of the original is touched.
            failed = factorize(shifted.T, lower=1, overwrite_a=1, clean=0)[1]
        if not failed:
            return bound
    return None


def _mirror(matrix: FloatArray) -> None:
    """Copy the lower triangle of a square matrix to the upper one, some rows at a time."""
    for start in range(0, len(matrix), _MIRRORED_ROWS):
        rows = slice(start, min(start + _MIRRORED_ROWS, len(matrix)))
        matrix[:start, rows] = matrix[rows, :start].T
        block = np.tril(matrix[rows, rows])
        matrix[rows, rows] = block + np.tril(block, -1).T
