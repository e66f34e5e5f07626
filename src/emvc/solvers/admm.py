r"""Certified solver: two-block ADMM with a duality gap as stopping rule.

**Problem.** Over row-stochastic P (`emvc.problem`),
:math:`\min \lVert P\rVert_* + \beta\sum_k\lVert P_k-P\rVert_{2,1} + \lambda\sum_k\lVert P_k-P\rVert_{G1}`.

**Splitting.** Copies :math:`Q = P`, :math:`R_k = P_k - P`, :math:`C_k = P_k - P`. The row and column groups overlap,
so the proximal operator of their sum is not the composition of the two; hence one copy for each. Block one is P,
block two is {Q, R, C}, whose members do not interact. A group whose weight is zero gets no copy. The copy Q has w
times the penalty :math:`\rho` of the others: there are 2K of those, and with w = 1 they drown the only copy that knows
the rank.

**Updates.** ADMM in the form of Douglas and Rachford: every copy has a *point*, of which it is the proximal point, and
its scaled multiplier is what the proximal step has removed. With V the point of Q, and others alike,

1. :math:`P \leftarrow` the simplex projection of the mean of :math:`2Q - V`, which counts w times, and of
   :math:`P_k - (2R_k - V_k)` and the same for :math:`C_k`, which count once;
2. :math:`V \leftarrow V + \alpha (P - Q)`, and :math:`V_k \leftarrow V_k + \alpha (P_k - P - R_k)`, with relaxation
   :math:`\alpha`;
3. :math:`Q \leftarrow \operatorname{prox}_{\lVert\cdot\rVert_*/(w\rho)}(V)`, and
   :math:`R_k \leftarrow \operatorname{prox}_{\beta\lVert\cdot\rVert_{2,1}/\rho}(V_k)`.

The multipliers :math:`Z = w\rho (V - Q)`, :math:`A_k = \rho (V_k - R_k)` and :math:`B_k` of the columns are dual
feasible by construction: :math:`\lVert Z\rVert_2\le 1`, rows of :math:`A_k` are at most :math:`\beta` long and columns
of :math:`B_k` at most :math:`\lambda`. A copy of a group and its multiplier are multiples of the point, row by row or
column by column, so only points and shrinkage factors are stored, and one sweep over the rows does everything but the
last step for Q (`emvc.kernels.reference.sweep`).

**Stopping rule.** The relative duality gap (`emvc.solvers.certificate`), first with row multipliers that fit the others
best (`emvc.kernels.reference.evaluate`) and presuming that Z is not too long, which inexact thresholding can make it;
where that gap is small enough, with a proof.

**Penalty.** Doubled or halved when the primal and the dual residual differ by more than a factor, at most
``max_penalty_changes`` times; after that it is constant and the classical convergence proof applies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from emvc import kernels
from emvc._array import FloatArray
from emvc._validation import check_integer, check_number
from emvc.graphs import weighted_mean
from emvc.problem import Decomposition, Problem, relative_gap
from emvc.solvers._loop import Check, Status
from emvc.solvers.certificate import Certificate, candidate, norm_bound
from emvc.solvers.svt import SingularValueThreshold, Thresholded

_IMBALANCE = 5.0  # residuals this far apart change the penalty
_SPARE = 0.03  # share of the tolerance that Z may be too long by at the second attempt to prove it
_PATIENCE = 4  # single precision is too coarse if the gap has not fallen in so many checks


@dataclass(kw_only=True)
class SplitState:
    """What changes from one iteration to the next, whatever the penalty on the errors."""

    consensus: FloatArray
    low_rank_point: FloatArray
    low_rank: FloatArray
    thresholds: FloatArray
    """Of the simplex projection."""
    svt: SingularValueThreshold
    spectrum: Thresholded
    """Of the low-rank copy."""
    penalty: float
    n_error_copies: int
    low_rank_weight: float
    """Penalty on the distance to the low-rank copy over the penalty on the distance to every other copy."""
    change: float = math.inf
    """Squared change of the consensus in the last step."""
    penalty_changes: int = 0
    bound: float = -math.inf
    """The best proven one."""
    proven: bool = False
    """Whether that of the present multipliers is."""
    precise: Any = None
    """The problem in double precision, once single precision has turned out to be too coarse."""
    least_gap: float = math.inf
    idle: int = 0
    """Checks since then."""

    @property
    def arrays(self) -> dict[str, Any]:
        """What the kernels take besides the transitions, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "thresholds"}
        return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}

    @property
    def low_rank_multiplier(self) -> FloatArray:
        """The multiplier Z of the low-rank copy, in double precision."""
        removed = np.subtract(self.low_rank_point, self.low_rank, dtype=np.float64)
        removed *= self.low_rank_weight * self.penalty
        return removed


class Sums(NamedTuple):
    """Penalty on the errors of a candidate, dual bound, squared constraint residual and norm of scaled multipliers."""

    penalty: float
    bound: float
    residual: float
    square: float


State = TypeVar("State", bound=SplitState)


@dataclass(frozen=True)
class SplitSolver(Generic[State]):
    """Configuration of a certified solver, and all of it but what depends on the penalty on the errors.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    penalty : float
        First penalty over the square root of the largest weight of the errors, or over the weight if that is above one.
    relaxation : float
        Over-relaxation; 1 is plain ADMM.
    check_every : int
        Iterations between two evaluations of the gap.
    max_penalty_changes : int
        Penalty changes before it is frozen.
    """

    tol: float = 1e-3
    penalty: float = 1.4
    relaxation: float = 1.6
    check_every: int = 5
    max_penalty_changes: int = 10

    def __post_init__(self) -> None:
        check_number(self.tol, "tol")
        check_number(self.penalty, "penalty", strict=True)
        if not 1.0 <= check_number(self.relaxation, "relaxation") < 2.0:
            raise ValueError(f"relaxation must be at least 1 and below 2, got {self.relaxation:g}.")
        check_integer(self.check_every, "check_every", least=1)
        check_integer(self.max_penalty_changes, "max_penalty_changes", least=0)

    def _start(self, problem: Decomposition, mean: FloatArray, *, n_error_copies: int, weight: float) -> dict[str, Any]:
        """Return the common part of the first state: all copies equal to their constraint, and no multiplier."""
        return {
            "consensus": mean,
            "low_rank_point": mean.copy(),
            "low_rank": mean.copy(),
            "thresholds": np.zeros(problem.shape[0]),
            "svt": SingularValueThreshold(),
            "spectrum": Thresholded(np.empty(0), np.empty((problem.shape[1], 0))),
            "penalty": self.penalty * max(math.sqrt(max(weight, 1.0 / problem.shape[1])), weight),
            "n_error_copies": n_error_copies,
            "low_rank_weight": float(max(1, n_error_copies)),
        }

    def _sweep(self, problem: Any, state: State) -> float:
        """Update P and the copies of the errors with their points; return the squared change of P."""
        raise NotImplementedError

    def _evaluate(self, problem: Any, state: State, matrix: FloatArray) -> Sums:
        """Return the sums at a candidate."""
        raise NotImplementedError

    def _dual_bound(self, problem: Any, state: State, matrix: FloatArray, norm: float) -> float:
        """Return the dual bound of the multipliers, Z divided by ``norm``."""
        raise NotImplementedError

    def _rescale(self, state: State, ratio: float) -> None:
        """Multiply the scaled multipliers of the errors by a number."""
        raise NotImplementedError

    def step(self, problem: Decomposition, state: State) -> State:
        """Do one iteration in place."""
        state.change = self._sweep(state.precise or problem, state)
        step = 1.0 / (state.penalty * state.low_rank_weight)
        state.spectrum = state.svt(state.low_rank_point, step, out=state.low_rank)
        state.proven = False
        return state

    def check(self, problem: Decomposition, state: State) -> Check:
        """Measure the gap, prove it when it is small enough, and balance the penalty."""
        problem, penalty = state.precise or problem, state.penalty
        matrix, nuclear_norm = candidate(state.low_rank, state.spectrum)
        sums = self._evaluate(problem, state, matrix)
        objective = nuclear_norm + sums.penalty
        gap = relative_gap(objective, max(state.bound, sums.bound))
        if gap <= self.tol:
            self._prove(problem, state, matrix)
            gap = relative_gap(objective, state.bound)
        elif state.penalty_changes < self.max_penalty_changes:
            self._balance(state, sums)
        done = Status.CONVERGED if gap <= self.tol else None
        if done is None:
            _watch_precision(problem, state, gap)
        return Check(objective, gap, math.sqrt(sums.residual), state.spectrum.rank, penalty, done)

    def _prove(self, problem: Decomposition, state: State, matrix: FloatArray) -> None:
        """Raise the proven bound; if Z turns out to be too long, the next thresholding step is exact."""
        if state.proven:
            return
        norm = norm_bound(state.low_rank_multiplier, _SPARE * self.tol)
        state.bound, state.proven = max(state.bound, self._dual_bound(problem, state, matrix, norm)), True
        if norm > 1.0 + self.tol:
            state.svt.forget()

    def _balance(self, state: State, sums: Sums) -> None:
        """Move the penalty towards equal relative residuals; the change of P stands in for that of its copies."""
        weight = state.low_rank_weight + state.n_error_copies
        primal = sums.residual / weight * sums.square
        dual = weight * state.change * float(np.linalg.norm(state.consensus)) ** 2
        if max(primal, dual) <= _IMBALANCE**2 * min(primal, dual):
            return
        factor = 2.0 if primal > dual else 0.5
        state.penalty *= factor
        state.penalty_changes += 1
        state.low_rank_point -= (1.0 - 1.0 / factor) * (state.low_rank_point - state.low_rank)
        self._rescale(state, 1.0 / factor)

    def finish(self, problem: Decomposition, state: State) -> Certificate:
        """Return the feasible consensus with its exact objective and a proven bound."""
        matrix, _ = candidate(state.low_rank, state.spectrum)
        self._prove(state.precise or problem, state, matrix)
        consensus = matrix.astype(np.float64)
        consensus /= consensus.sum(axis=1, keepdims=True)
        return Certificate.of(problem, consensus, state.bound, state.spectrum.rank)


@dataclass(kw_only=True)
class ADMMState(SplitState):
    """State with the points and shrinkage factors of the row and column groups."""

    row_points: FloatArray
    row_scale: FloatArray
    column_points: FloatArray
    column_scale: FloatArray
    observed_rows: FloatArray
    observed_columns: FloatArray


@dataclass(frozen=True)
class ADMM(SplitSolver[ADMMState]):
    """The certified solver of `emvc.problem.Problem`; its parameters are those of `SplitSolver`."""

    def init(self, problem: Problem, rng: np.random.Generator) -> ADMMState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        n_samples, n_states = problem.shape
        n_rows = problem.n_views if problem.beta > 0 else 0
        n_columns = problem.n_views if problem.lam > 0 else 0
        mean = weighted_mean(problem.transitions, problem.weights)
        return ADMMState(
            row_points=problem.transitions[:n_rows] - mean,
            row_scale=np.ones((n_rows, n_samples)),
            column_points=problem.transitions[:n_columns] - mean,
            column_scale=np.ones((n_columns, n_states)),
            observed_rows=problem.masks[0],
            observed_columns=problem.masks[1],
            **self._start(problem, mean, n_error_copies=n_rows + n_columns, weight=max(problem.beta, problem.lam)),
        )

    def _sweep(self, problem: Problem, state: ADMMState) -> float:
        row_steps, column_steps = (weight * problem.weights / state.penalty for weight in (problem.beta, problem.lam))
        return kernels.fused.sweep(
            problem.transitions, **state.arrays, thresholds=state.thresholds, row_steps=row_steps,
            column_steps=column_steps, relaxation=self.relaxation, low_rank_weight=state.low_rank_weight,
        )  # fmt: skip

    def _evaluate(
        self, problem: Problem, state: ADMMState, matrix: FloatArray, norm: float = 1.0, rows: FloatArray | None = None
    ) -> Sums:
        limits = problem.beta * problem.weights / state.penalty
        sums = kernels.fused.evaluate(
            problem.transitions, **state.arrays, candidate=matrix, row_limits=limits,
            low_rank_weight=state.low_rank_weight, norm=norm, multipliers=rows,
        )  # fmt: skip
        groups = problem.beta * sums.row_norms.sum(axis=1) + problem.lam * sums.column_norms.sum(axis=1)
        return Sums(float(problem.weights @ groups), state.penalty * sums.bound, sums.residual, sums.square)

    def _dual_bound(self, problem: Problem, state: ADMMState, matrix: FloatArray, norm: float) -> float:
        rows, columns = np.zeros_like(problem.transitions), np.zeros_like(problem.transitions)
        self._evaluate(problem, state, matrix, norm, rows if len(state.row_points) else None)
        rows *= state.penalty
        for column, point, scale in zip(columns, state.column_points, state.column_scale, strict=False):
            np.multiply(point, state.penalty * (1.0 - scale), out=column)
        return problem.dual_bound(state.low_rank_multiplier / norm, rows, columns, low_rank_norm=1.0)

    def _rescale(self, state: ADMMState, ratio: float) -> None:
        rows, columns = state.observed_rows, state.observed_columns
        for k, scale in enumerate(state.row_scale):
            state.row_points[k] *= 1.0 - (1.0 - ratio) * np.outer(rows[k] * (1.0 - scale), columns[k])
        for k, scale in enumerate(state.column_scale):
            state.column_points[k] *= 1.0 - (1.0 - ratio) * np.outer(rows[k], columns[k] * (1.0 - scale))
        state.row_scale /= state.row_scale + ratio * (1.0 - state.row_scale)
        state.column_scale /= state.column_scale + ratio * (1.0 - state.column_scale)


def _watch_precision(problem: Any, state: SplitState, gap: float) -> None:
    """Go over to double precision where single precision gets no further."""
    state.least_gap, state.idle = (gap, 0) if gap < state.least_gap else (state.least_gap, state.idle + 1)
    if state.idle < _PATIENCE or problem.transitions.dtype == np.float64:
        return
    state.precise = replace(problem, transitions=problem.transitions.astype(np.float64))
    for name, value in state.arrays.items():
        setattr(state, name, value.astype(np.float64))
