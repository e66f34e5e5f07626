r"""The convex problem behind EMVC: data, weights, objective and dual bound.

.. math::

    \min_{P \ge 0,\; P\mathbf 1 = \mathbf 1} \;
        \lVert P \rVert_* + \beta \sum_k \lVert P_k - P \rVert_{2,1} + \lambda \sum_k \lVert P_k - P \rVert_{G1}

The :math:`P_k` may be N x N, or N x m when every sample is described by its transitions to m landmarks.
See ``docs/method.md`` for the derivation of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from emvc._array import Array, namespace
from emvc.prox import ColumnGroups, NuclearNorm, RowGroups, Simplex


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of the decomposition: the transitions of all views and the two weights.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        Row-stochastic matrices, one per view.
    beta : float
        Weight of the row groups (errors of single samples).
    lam : float
        Weight of the column groups (errors of single states, per view).

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(np.stack([np.eye(2), np.eye(2)]), beta=1.0, lam=0.0)
    >>> problem.objective(np.eye(2))
    2.0
    """

    transitions: Array
    beta: float
    lam: float

    @property
    def n_views(self) -> int:
        """Number of views."""
        return int(self.transitions.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the consensus: samples by states."""
        _, n_samples, n_states = self.transitions.shape
        return int(n_samples), int(n_states)

    def errors(self, consensus: Array) -> Array:
        """Return the error matrices ``P_k - P``."""
        return self.transitions - consensus[None, ...]

    def objective(self, consensus: Array) -> float:
        """Return the objective at ``consensus``, infinite where it is not row-stochastic."""
        errors = self.errors(consensus)
        return (
            Simplex().value(consensus)
            + NuclearNorm().value(consensus)
            + self.beta * RowGroups().value(errors)
            + self.lam * ColumnGroups().value(errors)
        )

    def dual_bound(self, low_rank: Array, rows: Array, columns: Array) -> float:
        r"""Return a lower bound on the optimal objective from any multipliers.

        With :math:`\lVert Z \rVert_2 \le 1`, row norms of :math:`A_k` at most :math:`\beta` and column norms of
        :math:`B_k` at most :math:`\lambda`,

        .. math::
            f(P) \ge \sum_k \langle A_k + B_k, P_k \rangle
                     + \sum_i \min_j \Bigl[ Z - \sum_k (A_k + B_k) \Bigr]_{ij} .

        The bound is positively homogeneous, so multipliers that violate their norms are scaled back as a whole.

        Parameters
        ----------
        low_rank : array of shape (n_samples, n_states)
            Z, the multiplier of the nuclear norm.
        rows, columns : arrays of shape (n_views, n_samples, n_states)
            A and B, the multipliers of the row and column groups.
        """
        xp = namespace(self.transitions)
        if self.beta == 0.0:
            rows = xp.zeros_like(rows)
        if self.lam == 0.0:
            columns = xp.zeros_like(columns)
        scale = max(
            1.0,
            NuclearNorm().dual_norm(low_rank),
            RowGroups().dual_norm(rows) / self.beta if self.beta else 0.0,
            ColumnGroups().dual_norm(columns) / self.lam if self.lam else 0.0,
        )
        multipliers = rows + columns
        bound = float(xp.sum(multipliers * self.transitions)) - Simplex().support(
            xp.sum(multipliers, axis=0) - low_rank
        )
        return bound / scale


def relative_gap(objective: float, bound: float) -> float:
    """Return the duality gap relative to the objective, never below zero."""
    return max(0.0, objective - bound) / max(abs(objective), 1e-12)
