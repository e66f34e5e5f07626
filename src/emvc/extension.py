"""Graphs by name for samples that came later: the row that a new sample would have in the graph of a view.

The local graph is in `emvc.method.local`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from emvc import graphs
from emvc._array import FloatArray
from emvc._validation import View


class Kernel(Protocol):
    """Weights of links from squared distances to the samples of a graph."""

    def rows(self, squares: FloatArray) -> FloatArray:
        """Return weights of the same shape, (n_new, n_samples)."""
        ...


@dataclass(frozen=True)
class GaussianKernel:
    """A Gaussian with one width: ``exp(-d^2 / width)``."""

    width: float

    def rows(self, squares: FloatArray) -> FloatArray:
        """Return the weights of links to new samples."""
        return np.asarray(np.exp(-squares / self.width))


@dataclass(frozen=True)
class SelfTuningKernel:
    """The graph of `emvc.graphs.self_tuning_affinity`, seen from outside."""

    neighbor: int
    scale: FloatArray
    floor: float

    def rows(self, squares: FloatArray) -> FloatArray:
        """Return the weights of links to new samples."""
        nearest = np.partition(squares, self.neighbor - 1, axis=1)[:, self.neighbor - 1]
        own = np.maximum(np.sqrt(nearest), self.floor)
        return np.asarray(np.exp(-squares / np.outer(own, self.scale)))


@dataclass(frozen=True)
class CosineKernel:
    """Cosine similarity from the squared distances of unit rows, negative values cut off."""

    def rows(self, squares: FloatArray) -> FloatArray:
        """Return the weights of links to new samples."""
        return np.asarray(np.maximum(1.0 - 0.5 * squares, 0.0))


def prepare_view(view: View, affinity: str) -> View:
    """Return the view that the distances of a kernel are taken in: of unit rows for those that want them."""
    return graphs.scale_view(view, "unit") if affinity in ("cosine", "rbf-t100") else view


def fit_kernel(squares: FloatArray, affinity: str) -> Kernel:
    """Return the kernel of a graph by name, fitted to the squared distances between the samples of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> squares = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]])
    >>> fit_kernel(squares, "rbf").rows(np.array([[0.0, 8.0, 16.0]])).round(3)
    array([[1.   , 0.368, 0.135]])
    """
    if affinity == "self-tuning":
        neighbor, scale, floor = graphs.self_tuning_scale(squares)
        return SelfTuningKernel(neighbor, scale, floor)
    if affinity == "cosine":
        return CosineKernel()
    return GaussianKernel(graphs.gaussian_width(squares, affinity))
