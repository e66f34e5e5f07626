"""The array backend: which namespace an array belongs to.

The mathematics (`prox`, `problem`, `kernels.reference`) is written against the array API standard and asks this
module for the namespace once. No other module names an array library besides NumPy.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

Array = Any
"""An array of any library that follows the array API standard."""

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

LARGEST = 1e150
"""Largest value of a view: squares of larger ones overflow."""

ROUNDING = 1e-9
"""Share of a number below which another one counts as nothing, and a difference as none."""


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that all ``arrays`` share.

    Raises
    ------
    TypeError
        If the arrays come from different libraries.
    """
    return array_api_compat.array_namespace(*arrays)


def is_numpy(*arrays: Array) -> bool:
    """Tell whether all ``arrays`` are NumPy arrays, which the fused kernels need."""
    return all(isinstance(array, np.ndarray) for array in arrays)


def row_norms(x: Array) -> Array:
    """Return the Euclidean norm of each row of the last two dimensions."""
    if is_numpy(x):
        return np.sqrt(np.einsum("...ij,...ij->...i", x, x))  # needs no room for the squares
    xp = namespace(x)
    return xp.sqrt(xp.sum(x * x, axis=-1))


def column_norms(x: Array) -> Array:
    """Return the Euclidean norm of each column of the last two dimensions."""
    if is_numpy(x):
        return np.sqrt(np.einsum("...ij,...ij->...j", x, x))
    xp = namespace(x)
    return xp.sqrt(xp.sum(x * x, axis=-2))
