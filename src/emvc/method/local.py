r"""The local graph of a set of states, seen from any rows.

.. math:: w_{ij} = \exp(-d_{ij}^2 / 2\varepsilon_{ij}^2)

over the nearest neighbours j of i, where :math:`\varepsilon_{ij}` is 0.35 times the mean of :math:`d_{ij}` and the mean
neighbour distances of both ends. The weights of a sample are divided by their sum, a link counts from both of its ends,
and rows are divided by their sums again. A sample that is no state itself is linked to the states among whose
neighbours it would be in the same way, so that rows mean the same wherever they come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emvc import kernels
from emvc._array import FloatArray, IntArray
from emvc.kernels.rows import Ends


@dataclass(frozen=True, eq=False)
class LocalGraph:
    """The graph of some states.

    Attributes
    ----------
    n_neighbors : int
        Neighbours of a sample.
    states : Ends
        What is known about the states.
    floor : float
        Least width of the kernel.
    """

    n_neighbors: int
    states: Ends
    floor: float

    @classmethod
    def fit(cls, squares: FloatArray, n_neighbors: int) -> LocalGraph:
        """Measure the graph of all squared distances between its states."""
        number = max(1, min(n_neighbors, len(squares) - 1))
        return cls(number, *kernels.rows.measure_states(squares, number))

    def rows(self, squares: FloatArray, own: IntArray, out: FloatArray) -> None:
        """Write the transitions of rows with these squared distances to the states to ``out``."""
        itself = len(own) == len(self.states.bounds) and np.array_equal(own, np.arange(len(own)))
        number = self.n_neighbors
        ends = self.states if itself else kernels.rows.measure_ends(squares, own, number, self.states, self.floor)
        kernels.rows.local_rows(squares, own, ends, self.states, self.floor, out)
