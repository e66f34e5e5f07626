r"""Graphs for samples that came later: the row that a new sample would have in the graph of a view.

A new sample x is linked to the samples j that a graph was built from by the kernel of that graph. For ``"local"`` that
is :math:`\exp(-d_{xj}^2 / 2\varepsilon_{xj}^2)` over the nearest neighbours j of x, with the widths that the graph has
at j. The second half of the symmetrised graph, samples that would have x among their own neighbours, is left out: with
it the training samples themselves were placed slightly worse, and new ones no better.
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
class LocalKernel:
    """The graph of `emvc.graphs.local_graph`, seen from outside.

    Attributes
    ----------
    n_neighbors : int
        Neighbours of a sample.
    scale : ndarray of shape (n_samples,)
        Mean distance to the neighbours.
    floor : float
        Least width.
    """

    n_neighbors: int
    scale: FloatArray
    floor: float

    @classmethod
    def fit(cls, squares: FloatArray, n_neighbors: int) -> LocalKernel:
        """Measure the graph of all squared distances between its samples; they are not changed."""
        n_neighbors = min(n_neighbors, len(squares) - 1)
        return cls(n_neighbors, *graphs.local_scale(squares, n_neighbors))

    def rows(self, squares: FloatArray) -> FloatArray:
        """Return the weights of links to new samples."""
        shares = graphs.neighbor_shares(squares, np.full(len(squares), -1), self.n_neighbors)
        own = np.einsum("ij,ij->i", shares, np.sqrt(squares)) / self.n_neighbors
        return shares * graphs.local_weights(squares, own, self.scale, self.floor)


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


def fit_kernel(squares: FloatArray, affinity: str, n_neighbors: int) -> Kernel:
    """Return the kernel of a graph by name, fitted to the squared distances between the samples of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> squares = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]])
    >>> fit_kernel(squares, "rbf", 1).rows(np.array([[0.0, 8.0, 16.0]])).round(3)
    array([[1.   , 0.368, 0.135]])
    """
    if affinity == "local":
        return LocalKernel.fit(squares, n_neighbors)
    if affinity == "self-tuning":
        neighbor, scale, floor = graphs.self_tuning_scale(squares)
        return SelfTuningKernel(neighbor, scale, floor)
    if affinity == "cosine":
        return CosineKernel()
    return GaussianKernel(graphs.gaussian_width(squares, affinity))
