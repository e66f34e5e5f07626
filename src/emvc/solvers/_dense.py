r"""Singular value thresholding by all eigenvectors of the Gram matrix.

Everything large goes through the BLAS of SciPy, with all its threads: those of a decomposition keep their cores busy
for a while after it, and a product in any other pool takes twice as long meanwhile.

**Single precision** takes half the time, but the Gram matrix squares what rounding does: an error of
:math:`\varepsilon \lVert V \rVert^2` in it is one of :math:`\varepsilon \lVert V \rVert^2 / 2s` in a singular value s.
Chains have one singular value near one and all others far below, so two remedies go a long way:

1. the leading singular vector is found by power steps and taken out, in double precision: :math:`\lVert V \rVert` is
   now that of the rest;
2. singular values within a few :math:`\sqrt\varepsilon \lVert V \rVert` of zero, which rounding has mixed, are taken
   from the images of their vectors, whose Gram matrix is as accurate as they are small.

What is removed from the rest is a combination of images scaled down to the threshold, so that whatever error is left
falls with the threshold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import blas

from emvc._array import FloatArray
from emvc._linalg import largest_eigenpairs

ACCURACY = 3e-6
"""What single precision reaches, in spectral norm, for chains; the largest error of an entry is a tenth of it."""
_MIXED = 5.0  # singular values up to so many square roots of the precision need a second look
_CLEARLY = 1.5  # times as large as what rounding may have mixed
_FEW = 0.4  # share of the singular values
_POWER_STEPS = 8  # towards the leading vector: two digits each if the second singular value is a tenth of the first
_CONVERGED = 1e-12


def decompose(matrix: FloatArray, *, above: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Return squared singular values in increasing order and their right vectors.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        What to decompose.
    above : float, optional
        Only squares above this, by a driver that is slower if they are many.
    """
    (syrk,) = blas.get_blas_funcs(("syrk",), (matrix,))
    gram = syrk(1.0, matrix.T)  # the upper triangle, in the order that LAPACK wants
    if above is not None:
        return largest_eigenpairs(gram, above=above, lower=False)
    squares, vectors = scipy.linalg.eigh(gram, lower=False, overwrite_a=True, check_finite=False, driver="evd")
    return squares, vectors


def multiply(matrix: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of the matrix and the vectors."""
    (gemm,) = blas.get_blas_funcs(("gemm",), (matrix,))
    return np.asarray(gemm(1.0, matrix.T, vectors, trans_a=1))


def combine(matrix: FloatArray, vectors: FloatArray, shares: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return ``matrix`` times the sum of shares of the projections on the vectors: one product and a half.

    The result is written to ``out`` if that is given, which must be of the same type and C-contiguous.
    """
    syrk, symm = blas.get_blas_funcs(("syrk", "symm"), (matrix,))
    weighted = vectors * np.sqrt(shares).astype(matrix.dtype, copy=False)
    total = syrk(1.0, weighted)
    if out is None:
        return np.asarray(symm(1.0, total, matrix.T).T)
    symm(1.0, total, matrix.T, c=out.T, overwrite_c=True)
    return out


def leading_vector(matrix: FloatArray, start: FloatArray | None = None) -> FloatArray | None:
    """Return the leading right singular vector, or None if few power steps do not find it: it does not stand alone."""
    vector = np.ones(matrix.shape[1]) if start is None else start
    for _ in range(_POWER_STEPS):
        image = blas.dgemv(1.0, matrix.T, blas.dgemv(1.0, matrix.T, vector, trans=1))
        square = float(vector @ image) / float(vector @ vector)
        error = float(np.linalg.norm(image - square * vector))
        vector = image / max(np.linalg.norm(image), np.finfo(np.float64).tiny)
        if error <= _CONVERGED * square:
            return np.asarray(vector)
    return None


def threshold_in_single(
    matrix: FloatArray, threshold: float, leading: FloatArray, out: FloatArray
) -> tuple[FloatArray, int]:
    """Write the thresholded matrix to ``out``; return its singular values and how many are above zero.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns), float64
        What to threshold.
    threshold : float
        What to subtract from singular values.
    leading : ndarray of shape (n_columns,)
        The leading right singular vector.
    out : ndarray of shape (n_rows, n_columns), float64
        Where to write; must be C-contiguous and not overlap ``matrix``.
    """
    image = blas.dgemv(1.0, matrix.T, leading, trans=1)
    largest = float(np.linalg.norm(image))
    rest: Any = np.empty(matrix.shape, dtype=np.float32)
    np.subtract(matrix, np.outer(image, leading), out=rest, casting="same_kind")
    squares, vectors = decompose(rest)
    values = np.sqrt(np.maximum(squares, 0.0), dtype=np.float64)
    uncertain = _MIXED * math.sqrt(np.finfo(np.float32).eps) * values[-1]
    mixed = int(np.searchsorted(values, uncertain))
    if mixed and threshold < _CLEARLY * uncertain:  # otherwise all of them go, whatever they are
        images = multiply(rest, vectors[:, :mixed])
        _, rotation = decompose(images)
        vectors[:, :mixed] = multiply(vectors[:, :mixed], rotation)
        images = multiply(images, rotation)
        values[:mixed] = np.sqrt(np.einsum("ij,ij->j", images, images, dtype=np.float64))
    share = min(1.0, threshold / largest) if largest else 1.0
    n_above = int(np.count_nonzero(values > threshold))
    if n_above < _FEW * len(values):  # two products with what is kept cost less than one and a half with all
        above = vectors[:, len(values) - n_above :]
        kept_share = (1.0 - threshold / values[len(values) - n_above :]).astype(np.float32)
        out[...] = multiply(above, (multiply(rest, above) * kept_share).T).T
        share -= 1.0
    else:
        removed = np.minimum(1.0, threshold / np.maximum(values, np.finfo(np.float32).tiny))
        np.subtract(matrix, combine(rest, vectors, removed), out=out)
    blas.dger(-share, leading, image, a=out.T, overwrite_a=True)  # in place, since the transpose is in its order
    kept = np.maximum(np.append(values, largest) - threshold, 0.0)
    return kept, int(np.count_nonzero(kept))
