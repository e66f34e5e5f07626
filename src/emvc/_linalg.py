"""Eigenvalues of symmetric matrices that can be relied on."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from emvc._array import FloatArray


def largest_eigenpairs(
    matrix: FloatArray, *, number: int | None = None, above: float = -np.inf, lower: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues in increasing order and their eigenvectors.

    The driver of LAPACK for some eigenvalues fails once in a while where many are equal. Then all are computed.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        A symmetric matrix.
    number : int, optional
        How many.
    above : float
        All above this value, if there is no number.
    lower : bool
        Whether the lower triangle is looked at, or the upper one.

    Examples
    --------
    >>> import numpy as np
    >>> largest_eigenpairs(np.diag([3.0, 1.0, 2.0]), number=2)[0]
    array([2., 3.])
    """
    n = len(matrix)
    subset = {"subset_by_value": (above, np.inf)} if number is None else {"subset_by_index": (n - number, n - 1)}
    try:
        values, vectors = scipy.linalg.eigh(matrix, lower=lower, check_finite=False, **subset)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(matrix, lower=lower, check_finite=False, driver="evd")
        first = n - number if number is not None else int(np.searchsorted(values, above, side="right"))
        values, vectors = values[first:], vectors[:, first:]
    return values, vectors
