"""Sparse matrices are looked at before anything is done with them.

SciPy trusts the positions in a sparse matrix: with one that lies outside, the conversion to another format writes
beyond its arrays. Such matrices come from damaged files and from arrays that were changed by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

_MOST_ROWS = 2**28  # of which even empty ones take gigabytes and minutes


def check_sparse(matrix: Any, owner: str) -> Any:
    """Return a sparse matrix as CSR after checking that all of its positions lie inside.

    Parameters
    ----------
    matrix : sparse matrix or array
        Of any format.
    owner : str
        Name for messages.

    Raises
    ------
    ValueError
        If positions lie outside, or the parts of the matrix do not fit together.

    Examples
    --------
    >>> import scipy.sparse
    >>> matrix = scipy.sparse.csc_matrix([[0.0, 1.0]])
    >>> check_sparse(matrix, "view 'a'").format
    'csr'
    >>> matrix.indices[0] = 7
    >>> check_sparse(matrix, "view 'a'")
    Traceback (most recent call last):
        ...
    ValueError: view 'a' is a damaged sparse matrix: an index is outside of 0 to 0.
    """
    if len(matrix.shape) != 2:
        raise ValueError(f"{owner} is a sparse array of {len(matrix.shape)} dimensions instead of two.")
    if max(matrix.shape) > _MOST_ROWS:
        raise ValueError(f"{owner} is a sparse matrix that claims {max(matrix.shape)} rows or columns.")
    if matrix.format == "dok":
        matrix = matrix.tocoo()
    problem = _CHECKS[matrix.format](matrix)
    if problem:
        raise ValueError(f"{owner} is a damaged sparse matrix: {problem}.")
    if matrix.format == "csr":
        return matrix
    found = matrix.tocsr()
    problem = _compressed(found)  # lists of positions are read by the conversion only
    if problem:
        raise ValueError(f"{owner} is a damaged sparse matrix: {problem}.")
    return found


def _inside(positions: Any, limit: int) -> str:
    if positions.dtype.kind not in "iu" or positions.ndim != 1:
        return "its indices are not a vector of integers"
    if positions.size and (positions.min() < 0 or positions.max() >= limit):
        return f"an index is outside of 0 to {limit - 1}"
    return ""


def _compressed(matrix: Any) -> str:
    """Look at CSR, CSC and BSR matrices."""
    height, width = matrix.blocksize if matrix.format == "bsr" else (1, 1)
    n_rows, n_columns = matrix.shape
    if min(height, width) < 1 or n_rows % height or n_columns % width:
        return "its blocks do not fit its shape"
    major, minor = n_rows // height, n_columns // width
    if matrix.format == "csc":
        major, minor = minor, major
    starts, indices, data = matrix.indptr, matrix.indices, matrix.data
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or len(starts) != major + 1:
        return f"it needs {major + 1} row pointers"
    if starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        return "its row pointers do not rise from 0"
    wanted = (len(indices), height, width) if matrix.format == "bsr" else (len(indices),)
    if data.shape != wanted or starts[-1] > len(indices):
        return "its row pointers, indices and values do not have the same number of entries"
    return _inside(indices[: int(starts[-1])], minor)


def _coordinates(matrix: Any) -> str:
    if not len(matrix.row) == len(matrix.col) == len(matrix.data):
        return "its rows, columns and values do not have the same number of entries"
    return _inside(matrix.row, matrix.shape[0]) or _inside(matrix.col, matrix.shape[1])


def _diagonals(matrix: Any) -> str:
    offsets = matrix.offsets
    if offsets.ndim != 1 or matrix.data.ndim != 2 or len(offsets) != len(matrix.data):
        return "it does not have one offset for each diagonal"
    return "" if len(np.unique(offsets)) == len(offsets) else "an offset appears twice"


def _lists(matrix: Any) -> str:
    if len(matrix.rows) != matrix.shape[0] or len(matrix.data) != matrix.shape[0]:
        return "it does not have one list for each row"
    fits = all(len(places) == len(values) for places, values in zip(matrix.rows, matrix.data, strict=True))
    return "" if fits else "its lists of indices and values have different lengths"


_CHECKS = {
    **dict.fromkeys(("csr", "csc", "bsr"), _compressed),
    "coo": _coordinates,
    "dia": _diagonals,
    "lil": _lists,
}


def check_if_sparse(values: Any, owner: str) -> Any:
    """Return sparse matrices as by `check_sparse` and everything else as it is."""
    return check_sparse(values, owner) if scipy.sparse.issparse(values) else values
