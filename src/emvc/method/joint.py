"""The joint view: distances of all views, averaged in units of their mean.

An entry that is probably wrong counts for little: the distance of two samples is the mean over the views, each weighed
by the product of the beliefs in its rows of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emvc._array import ROUNDING, FloatArray, IntArray
from emvc._threads import by_rows
from emvc.method.local import LocalGraph


@dataclass(frozen=True, eq=False)
class JointView:
    """The joint view of some states.

    Attributes
    ----------
    units : ndarray of shape (n_views,)
        One over the mean squared distance of each view, zero where all samples coincide.
    far : float
        Squared distance of samples that share no view.
    graph : LocalGraph
        Graph of the joint distances.
    """

    units: FloatArray
    far: float
    graph: LocalGraph

    @classmethod
    def fit(cls, squares: Sequence[FloatArray], beliefs: FloatArray, n_neighbors: int) -> tuple[JointView, FloatArray]:
        """Return the joint view of the states, and their joint squared distances."""
        shown = (beliefs > 0).astype(np.float64)
        pairs = np.maximum(shown.sum(axis=0) * (shown.sum(axis=0) - 1.0), 1.0)
        sums = np.array([shown[:, k] @ (part @ shown[:, k]) for k, part in enumerate(squares)])
        units = np.divide(pairs, sums, out=np.zeros(len(pairs)), where=sums > 0)
        joint = average(squares, units, beliefs, beliefs)
        np.fill_diagonal(joint, 0.0)
        alone = np.isnan(joint)
        far = 2.0 * float(np.max(joint, initial=0.0, where=~alone)) or 1.0
        joint[alone] = far
        return cls(units, far, LocalGraph.fit(joint, n_neighbors)), joint

    def rows(
        self,
        squares: Sequence[FloatArray],
        beliefs: FloatArray,
        states: FloatArray,
        own: IntArray,
        out: FloatArray,
    ) -> None:
        """Write the transitions of rows with these distances to the states, and beliefs in both, to ``out``."""
        joint = average(squares, self.units, beliefs, states)
        joint[np.isnan(joint)] = self.far
        itself = np.flatnonzero(own >= 0)
        joint[itself, own[itself]] = 0.0
        self.graph.rows(joint, own, out)


def average(squares: Sequence[FloatArray], units: FloatArray, rows: FloatArray, states: FloatArray) -> FloatArray:
    """Return the mean of squared distances in their units, weighed by beliefs; NaN where no view shows both."""
    used = [int(k) for k in np.flatnonzero(units > 0)]
    joint = np.empty((len(rows), len(states)))
    if used and (rows[:, used] == rows[0, used[0]]).all() and (states[:, used] == states[0, used[0]]).all():
        factors = units[used] / len(used)

        def plain(part: slice) -> None:
            np.multiply(squares[used[0]][part], factors[0], out=joint[part])
            for k, factor in zip(used[1:], factors[1:], strict=True):
                joint[part] += factor * squares[k][part]

        by_rows(plain, len(joint))
        return joint

    def weigh(part: slice) -> None:
        total, count = np.zeros((2, len(rows[part]), len(states)))
        for k in used:
            weight = rows[part, k, None] * states[:, k]
            count += weight
            weight *= squares[k][part]
            weight *= units[k]
            total += weight
        joint[part] = np.where(count > ROUNDING, total / np.maximum(count, ROUNDING), np.nan)

    by_rows(weigh, len(joint))
    return joint
