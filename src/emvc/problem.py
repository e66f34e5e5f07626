r"""The two convex problems: data, weights, objective and dual bound.

`RowProblem` is what `emvc.EMVC` solves by default. `Problem` is that of the paper,

.. math::

    \min_{P \ge 0,\; P\mathbf 1 = \mathbf 1} \;
        \lVert P \rVert_* + \beta \sum_k w_k \lVert M_k \circ (P_k - P) \rVert_{2,1}
        + \lambda \sum_k w_k \lVert M_k \circ (P_k - P) \rVert_{G1}

with view weights :math:`w_k` (one in the paper) and masks :math:`M_k` that are zero in the rows and columns of
samples that view k does not show (the paper has none).

The :math:`P_k` may be N x N, or N x m when every sample is described by its transitions to m landmarks.
See ``docs/method.md`` for the derivation of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from emvc import kernels
from emvc._array import Array, FloatArray, namespace
from emvc.prox import ColumnGroups, Entries, NuclearNorm, RowGroups, Simplex


@dataclass(frozen=True, eq=False)
class Decomposition:
    """What all models of the form P_k = P + E_k share: a low-rank consensus and a penalty on the errors."""

    transitions: Array

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

    def penalty(self, errors: Array) -> float:
        """Return the penalty on the errors."""
        raise NotImplementedError

    def objective(self, consensus: Array) -> float:
        """Return the objective at ``consensus``, infinite where it is not row-stochastic."""
        return Simplex().value(consensus) + NuclearNorm().value(consensus) + self.penalty(self.errors(consensus))

    def trivial_bound(self) -> float:
        """Return the bound of Z = 11'/sqrt(Nm) and no other multiplier: the nuclear norm of the uniform matrix."""
        n_samples, n_states = self.shape
        return math.sqrt(n_samples / n_states)

    def _bound(self, low_rank: Array, norm: float | None, multipliers: Iterable[tuple[Array, float]]) -> float:
        """Return the dual bound of Z and the multipliers of every view, each with how many times too long it is."""
        xp = namespace(self.transitions)
        scale = max(1.0, NuclearNorm().dual_norm(low_rank) if norm is None else norm)
        total, slack = 0.0, -xp.astype(low_rank, xp.float64)
        for k, (multiplier, excess) in enumerate(multipliers):
            total += float(xp.sum(xp.vecdot(multiplier, xp.astype(self.transitions[k, ...], xp.float64))))
            slack, scale = slack + multiplier, max(scale, excess)
        return (total - Simplex().support(slack)) / scale


@dataclass(frozen=True, eq=False)
class Problem(Decomposition):
    """One instance of the decomposition: the transitions of all views and the two weights.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        Row-stochastic matrices, one per view.
    beta : float
        Weight of the row groups (errors of single samples).
    lam : float
        Weight of the column groups (errors of single states, per view).
    view_weights : array of shape (n_views,), optional
        Positive factors of both weights, one per view; one if not given.
    observed : array of shape (n_views, n_samples), optional
        One where a sample is observed in a view, zero where it is not; all are if not given.
    observed_states : array of shape (n_views, n_states), optional
        The same for the states; equal to ``observed`` if not given, which needs as many states as samples.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(np.stack([np.eye(2), np.eye(2)]), beta=1.0, lam=0.0)
    >>> problem.objective(np.eye(2))
    2.0
    """

    beta: float
    lam: float
    view_weights: Array | None = None
    observed: Array | None = None
    observed_states: Array | None = None

    @property
    def weights(self) -> Array:
        """Factors of the two weights, one per view."""
        xp = namespace(self.transitions)
        return xp.ones(self.n_views, dtype=self.transitions.dtype) if self.view_weights is None else self.view_weights

    @property
    def masks(self) -> tuple[Array, Array]:
        """Observed samples and observed states, by view."""
        xp, dtype = namespace(self.transitions), self.transitions.dtype
        n_samples, n_states = self.shape
        rows = xp.ones((self.n_views, n_samples), dtype=dtype) if self.observed is None else self.observed
        if self.observed_states is not None:
            return rows, self.observed_states
        return rows, rows if n_samples == n_states else xp.ones((self.n_views, n_states), dtype=dtype)

    def errors(self, consensus: Array) -> Array:
        """Return the error matrices ``P_k - P``, zero where they are not observed."""
        return self.observed_part(super().errors(consensus))

    def observed_part(self, matrices: Array) -> Array:
        """Return matrices, one per view, with zeros in place of what is not observed."""
        if self.observed is None and self.observed_states is None:
            return matrices
        rows, columns = self.masks
        return matrices * rows[:, :, None] * columns[:, None, :]

    def penalty(self, errors: Array) -> float:
        """Return the weighted sum of the row and column norms of the errors."""
        rows, columns = RowGroups(), ColumnGroups()
        return sum(
            float(self.weights[k]) * (self.beta * rows.value(errors[k, ...]) + self.lam * columns.value(errors[k, ...]))
            for k in range(self.n_views)
        )

    def dual_bound(self, low_rank: Array, rows: Array, columns: Array, *, low_rank_norm: float | None = None) -> float:
        r"""Return a lower bound on the optimal objective from any multipliers.

        With :math:`\lVert Z \rVert_2 \le 1`, row norms of :math:`A_k` at most :math:`\beta w_k` and column norms of
        :math:`B_k` at most :math:`\lambda w_k`, both zero where view k is not observed,

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
        low_rank_norm : float, optional
            A proven upper bound on the largest singular value of Z; computed if not given.
        """
        return self._bound(low_rank, low_rank_norm, map(partial(self._multiplier, rows, columns), range(self.n_views)))

    def _multiplier(self, rows: Array, columns: Array, k: int) -> tuple[Array, float]:
        """Return what the two multipliers of a view add up to, and how many times one of them is too long."""
        xp, (row_mask, column_mask) = namespace(rows), self.masks
        total, excess = xp.zeros(self.shape, dtype=xp.float64), 0.0
        for weight, norm, given in ((self.beta, RowGroups(), rows), (self.lam, ColumnGroups(), columns)):
            if weight:
                part = xp.astype(given[k, ...], xp.float64)
                if self.observed is not None or self.observed_states is not None:
                    part = part * row_mask[k, :, None] * column_mask[k, None, :]
                excess = max(excess, norm.dual_norm(part) / (weight * float(self.weights[k])))
                total = total + part
        return total, excess


@dataclass(frozen=True, eq=False)
class RowProblem:
    r"""Dense noise beside gross errors: for every sample a mean of its rows that none of them can pull away.

    Every row is split into the consensus, noise and an error, :math:`P_k = P + N_k + E_k`, by

    .. math::
        \min_{P, E} \; \sum_k \sum_i w_{ki} \Bigl( \tfrac12 \lVert (P_k - P - E_k)_i \rVert^2
            + \beta_{ki} \lVert (E_k)_i \rVert \Bigr)
        = \min_P \; \sum_k \sum_i w_{ki} \, h_{\beta_{ki}}(\lVert (P_k - P)_i \rVert) ,

    where :math:`h_\beta(r)` is :math:`r^2/2` up to :math:`r = \beta` and :math:`\beta r - \beta^2/2` beyond (Huber).
    Without errors longer than their limits the solution is the weighted mean. Rows do not depend on each other, and the
    solution is a mean of the :math:`P_k` in any case, so that it is row-stochastic by itself.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        Row-stochastic matrices, one per view.
    beta : array of shape (n_views, n_samples)
        Limits: the length of a row beyond which it is an error.
    weights : array of shape (n_views, n_samples)
        Weights of the rows, zero for what a view does not show.
    inner : array of shape (n_samples, n_views, n_views), optional
        Inner products of the rows, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.array([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]])
    >>> problem = RowProblem(chains, beta=np.array([[9.0], [9.0], [0.1]]), weights=np.ones((3, 1)))
    >>> solution = problem.solve()
    >>> solution.consensus.round(2), bool(problem.objective(solution.consensus) - solution.bound < 1e-9)
    (array([[0.96, 0.04]]), True)
    """

    transitions: Array
    beta: FloatArray
    weights: FloatArray
    inner: FloatArray | None = None

    @property
    def lam(self) -> float:
        """Weight of the column groups, which this problem does not have."""
        return 0.0

    @property
    def observed(self) -> Array:
        """Mask of the rows that take part, by view."""
        return self.weights > 0

    def objective(self, consensus: Array) -> float:
        """Return the objective at ``consensus``."""
        total = 0.0
        for chain, limit, weight in zip(self.transitions, self.beta, self.weights, strict=True):
            length = np.linalg.norm(chain - consensus, axis=1)
            beyond = length > limit
            bound = np.where(beyond, limit, 0.0)
            total += float(weight @ np.where(beyond, bound * (length - 0.5 * bound), 0.5 * length**2))
        return total

    def multipliers(self, consensus: Array) -> Array:
        """Return the multipliers that belong to a consensus: of each row its error, cut off at its limit, weighted."""
        found = self.transitions - consensus
        for k, (limit, weight) in enumerate(zip(self.beta, self.weights, strict=True)):
            length = np.linalg.norm(found[k], axis=1)
            found[k] *= (weight * np.minimum(1.0, limit / np.maximum(length, 1e-300)))[:, None]
        return found

    def dual_bound(self, multipliers: Array) -> float:
        r"""Return a lower bound on the optimal objective from any multipliers.

        With rows of :math:`A_k` at most :math:`w_{ki} \beta_{ki}` long (longer ones are shortened),

        .. math::
            f(P) \ge \sum_k \langle A_k, P_k \rangle - \sum_{k,i} \frac{\lVert (A_k)_i \rVert^2}{2 w_{ki}}
                     - \sum_i \max_j \Bigl[ \sum_k A_k \Bigr]_{ij} .
        """
        total, slack = 0.0, np.zeros(self.transitions.shape[1:])
        for chain, given, limit, weight in zip(self.transitions, multipliers, self.beta, self.weights, strict=True):
            length = np.linalg.norm(given, axis=1)
            allowed = np.where(weight > 0, weight * np.where(weight > 0, limit, 0.0), 0.0)
            part = given * np.minimum(1.0, allowed / np.maximum(length, 1e-300))[:, None]
            total += float(np.sum(part * chain)) - float(
                np.sum(0.5 * np.sum(part**2, axis=1) / np.maximum(weight, 1e-300))
            )
            slack += part
        return total - float(slack.max(axis=1).sum())

    def inner_products(self) -> FloatArray:
        """Return the inner products of the rows of all views."""
        return kernels.rows.inner_products(self.transitions, self.weights) if self.inner is None else self.inner

    def solve(self, max_iter: int = 500) -> RowSolution:
        """Return the solution, each row by reweighted means of at most ``max_iter`` steps."""
        consensus = np.empty(self.transitions.shape[1:])
        shares, lengths, values = kernels.rows.fuse(
            self.transitions, self.inner_products(), self.weights, self.beta, consensus, max_iter
        )
        objective, bound = values[:, :2].sum(axis=0)
        return RowSolution(consensus, shares, lengths, float(objective), float(bound), int(values[:, 2].max(initial=0)))


@dataclass(frozen=True, eq=False)
class RowSolution:
    """The solution of a `RowProblem`.

    Attributes
    ----------
    consensus : ndarray of shape (n_samples, n_states)
        The consensus P.
    shares : ndarray of shape (n_views, n_samples)
        P is the mean of the chains with these weights.
    lengths : ndarray of shape (n_views, n_samples)
        Lengths of the rows of :math:`P_k - P`; what is beyond the limit is the error.
    objective, bound : float
        The objective at P, and a lower bound on the optimal one.
    n_iter : int
        Most steps of a row.
    """

    consensus: FloatArray
    shares: FloatArray
    lengths: FloatArray
    objective: float
    bound: float
    n_iter: int


@dataclass(frozen=True, eq=False)
class EntrywiseProblem(Decomposition):
    r"""The model of RMSC, with an entrywise penalty :math:`\lambda \sum_k \lVert P_k - P \rVert_1`.

    Parameters
    ----------
    transitions : array of shape (n_views, n_samples, n_states)
        Row-stochastic matrices, one per view.
    lam : float
        Weight of the errors.

    Examples
    --------
    >>> import numpy as np
    >>> EntrywiseProblem(np.stack([np.eye(2)]), lam=0.5).objective(np.full((2, 2), 0.5))
    2.0
    """

    lam: float

    def penalty(self, errors: Array) -> float:
        """Return the weighted sum of absolute errors."""
        return self.lam * Entries().value(errors)

    def dual_bound(self, low_rank: Array, multipliers: Array, *, low_rank_norm: float | None = None) -> float:
        """Return a lower bound on the optimum from any multipliers, as for `Problem` with entries of size ``lam``."""
        return self._bound(low_rank, low_rank_norm, map(partial(self._multiplier, multipliers), range(self.n_views)))

    def _multiplier(self, multipliers: Array, k: int) -> tuple[Array, float]:
        """Return the multiplier of a view, and how many times it is too large."""
        xp = namespace(multipliers)
        part = xp.astype(multipliers[k, ...], xp.float64)
        return (part, Entries().dual_norm(part) / self.lam) if self.lam else (xp.zeros_like(part), 0.0)


def relative_gap(objective: float, bound: float) -> float:
    """Return the duality gap relative to the objective, never below zero."""
    return max(0.0, objective - bound) / max(abs(objective), 1e-12)
