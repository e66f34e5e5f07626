r"""Certified solver: two-block ADMM with a duality gap as stopping rule.

**Problem.** Over row-stochastic P (`emvc.problem`),
:math:`\min \lVert P\rVert_* + \beta\sum_k\lVert P_k-P\rVert_{2,1} + \lambda\sum_k\lVert P_k-P\rVert_{G1}`.

**Splitting.** Copies :math:`Q = P`, :math:`R_k = P_k - P`, :math:`C_k = P_k - P`. The row and column groups overlap,
so the proximal operator of their sum is not the composition of the two; hence one copy for each. Block one is P,
block two is {Q, R, C}, whose members do not interact. A group whose weight is zero gets no copy.

**Updates** (penalty :math:`\rho`, multipliers Z, A, B, relaxation :math:`\alpha`):

1. P is the simplex projection of the mean of :math:`Q - Z/(w\rho)`, which counts w times, and of
   :math:`P_k - R_k + A_k/\rho` and :math:`P_k - C_k + B_k/\rho`, which count once;
2. each copy is a proximal step at its *point*, for instance :math:`V = \alpha P + (1-\alpha)Q + Z/(w\rho)` and
   :math:`Q = \operatorname{prox}_{\lVert\cdot\rVert_*/(w\rho)}(V)`;
3. its multiplier is what the step removed, :math:`Z = w\rho (V - Q)`, so :math:`\lVert Z\rVert_2\le 1`, the rows of
   :math:`A_k` are at most :math:`\beta` long and the columns of :math:`B_k` at most :math:`\lambda`: always dual
   feasible.

Copy and multiplier of a group are both multiples of V, row by row or column by column. Only V and the shrinkage
factors are stored, and one sweep over the rows updates everything but Q (`emvc.kernels`).

**Stopping rule.** The relative gap between an upper bound on the objective at X, the rows of Q projected onto the
simplex, and a dual bound. The nuclear norm of X is at most that of Q plus that of what the projection adds
(`emvc.solvers._split.projection_norm`), which avoids the SVD of X; small problems use the exact value. Where the
projection adds most of the gap, Q is polished first (`emvc.solvers._polish`). The dual bound is that of Z, B and row
multipliers that fit them (`emvc.kernels.reference.evaluate`). Since truncated thresholding can leave
:math:`\lVert Z\rVert_2` above 1, the gap that ends the run is computed with Z divided by a proven bound on it.

**Penalty.** The low-rank copy has w times the penalty of the others. There are 2K of those, and with w = 1 they drown
the only copy that knows the rank; with w = 2K a third to a fifth of the iterations suffice. The penalty is doubled or
halved when the primal and the dual residual differ by more than a factor, at most ``max_penalty_changes`` times; after
that it is constant and the classical convergence proof applies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from emvc import kernels
from emvc._array import FloatArray
from emvc.kernels.reference import FIT_STEPS, Evaluation, Measurement
from emvc.problem import Decomposition, Problem
from emvc.prox import shrinkage
from emvc.solvers._loop import Certificate, Check
from emvc.solvers._polish import polish
from emvc.solvers._split import Measures, SplitSolver, SplitState, projection_norm

_FAR = 30.0  # a gap of so many tolerances at a quick first look is more than one at a thorough one
_CLOSE = 0.85  # a gap of so many tolerances leaves too little for the proof
_WORTHWHILE = 0.3  # tolerances that polishing must be expected to take from the gap
_POLISHED = 0.9  # share of what projection adds that polishing takes away
_LOW_RANK = 128  # up to this rank the nuclear norm costs little more than a bound
_AMPLE, _HOPEFUL = 0.7, 1.2  # tolerances of a gap for which a bound on the nuclear norm is not good enough
_IMPROVED, _STUCK = 0.9, 20  # single precision is too coarse if the gap has not fallen by so much in so many iterations
_UNPROVEN = 4  # or if more proofs than this have failed
_LOOSE = 10.0  # about so many times as large as at a thorough look

_Arrays = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(kw_only=True)
class ADMMState(SplitState):
    """State with the points and shrinkage factors of the row and column groups."""

    row_points: FloatArray
    row_scale: FloatArray
    column_points: FloatArray
    column_scale: FloatArray
    observed: tuple[FloatArray, FloatArray]
    hasty: bool = True
    """Whether the next look at the gap need not be thorough, since it is expected to be large."""
    precise: Problem | None = None
    """The problem in double precision, once single precision has turned out to be too coarse."""
    least_gap: float = math.inf
    """The smallest estimate of the gap so far, but for small improvements."""
    idle: int = 0
    """Iterations since then."""

    @property
    def arrays(self) -> _Arrays:
        """The arrays in the order in which the kernels take them, after the transitions."""
        return (
            self.consensus,
            self.low_rank_point,
            self.low_rank,
            self.row_points,
            self.row_scale,
            self.column_points,
            self.column_scale,
        )


@dataclass(frozen=True)
class ADMM(SplitSolver[ADMMState]):
    """The certified solver of `emvc.problem.Problem`; its parameters are those of `SplitSolver`."""

    def init(self, problem: Problem, rng: np.random.Generator) -> ADMMState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        n_samples, n_states = problem.shape
        n_rows = problem.n_views if problem.beta > 0 else 0
        n_columns = problem.n_views if problem.lam > 0 else 0
        common = self._start(problem, n_error_copies=n_rows + n_columns, weight=max(problem.beta, problem.lam))
        # Copies equal to their constraint and no multiplier: scale one, point P_k - P.
        return ADMMState(
            row_points=problem.transitions[:n_rows] - common["consensus"],
            row_scale=np.ones((n_rows, n_samples)),
            column_points=problem.transitions[:n_columns] - common["consensus"],
            column_scale=np.ones((n_columns, n_states)),
            observed=problem.masks,
            **common,
        )

    def step(self, problem: Problem, state: ADMMState) -> ADMMState:
        """Do one iteration in place: sweep for P and the points, then the proximal steps."""
        problem = _current(problem, state)
        row_norms, column_norms, state.change = kernels.fused.sweep(
            problem.transitions,
            *state.arrays,
            state.thresholds,
            *state.observed,
            relaxation=self.relaxation,
            ratio=state.ratio,
            low_rank_weight=state.low_rank_weight,
        )
        state.ratio = 1.0
        thresholds = problem.weights[:, None] / state.penalty
        state.row_scale = shrinkage(row_norms, problem.beta * thresholds[: len(row_norms)])
        state.column_scale = shrinkage(column_norms, problem.lam * thresholds[: len(column_norms)])
        state.threshold()
        return state

    def check(self, problem: Decomposition, state: ADMMState) -> Check:
        """Do the same as always, and go over to double precision where single precision gets no further."""
        problem, waited = _current(problem, state), state.wait or self.check_every
        found = super().check(problem, state)
        improved = state.gap < _IMPROVED * state.least_gap
        state.least_gap, state.idle = (state.gap, 0) if improved else (state.least_gap, state.idle + waited)
        stuck = state.idle >= _STUCK or state.failures > _UNPROVEN
        if found.done is None and stuck and state.consensus.dtype == np.float32:
            _make_precise(problem, state)
        return found

    def finish(self, problem: Decomposition, state: ADMMState) -> Certificate:
        """Return the feasible consensus with its certified objective and bound."""
        return super().finish(_current(problem, state), state)

    def _estimate(self, problem: Any, state: ADMMState) -> tuple[Measures, float, float]:
        """Take a quick look first, and polish the candidate if that may be all that is missing.

        Without fitted row multipliers the gap is larger, but it may be far all the same.
        """
        found = super()._estimate(problem, state)
        if state.hasty:
            state.hasty = False
            if found[2] > _FAR * self.tol:
                return (*found[:2], found[2] / _LOOSE)
            found = super()._estimate(problem, state)
        measures, objective, gap = found
        reducible = self._reducible(state, measures, objective)
        if gap <= _CLOSE * self.tol or reducible <= _WORTHWHILE * self.tol or gap - reducible > self.tol:
            return found
        return self._polished(problem, state, found)

    def _polished(
        self, problem: Problem, state: ADMMState, found: tuple[Measures, float, float]
    ) -> tuple[Measures, float, float]:
        """Return the estimate for the polished candidate if that is better."""
        assert state.svt.factors is not None
        little = found[0].low_rank_distance <= self.tol * found[1]
        better = polish(state.low_rank, *state.svt.factors, steps=1 if little else 2)
        if better is None:
            return found
        sums = kernels.fused.measure(problem.transitions, better.matrix, *state.observed)
        measures = replace(
            found[0],
            error_penalty=self._error_penalty(problem, sums),
            low_rank_distance=projection_norm(problem.shape[1], sums.shifts, sums.clipped),
        )
        state.candidate = better.matrix
        high = better.basis.shape[1] > _LOW_RANK
        for norm in (better.norm_bound, better.nuclear_norm) if high else (better.nuclear_norm,):
            state.candidate_norm = norm()
            objective = self._upper_bound(problem, state, measures)
            gap = self._gap(state, measures, objective)
            if not _AMPLE * self.tol < gap <= _HOPEFUL * self.tol:
                break  # the norm itself would hardly make a difference
        if objective >= found[1]:
            state.candidate = None
            return found
        return measures, objective, gap

    def _reducible(self, state: ADMMState, measures: Measures, objective: float) -> float:
        """Return the share of the objective that projection adds, which polishing takes away for the most part."""
        if state.candidate is not None or state.svt.factors is None:
            return 0.0
        return _POLISHED * measures.low_rank_distance / objective

    def _measure(self, problem: Problem, state: ADMMState) -> Measures:
        weights = problem.weights
        sums = kernels.fused.evaluate(
            problem.transitions,
            *state.arrays,
            *state.observed,
            row_weights=problem.beta * problem.weights / state.multiplier_scale,
            low_rank_weight=state.low_rank_factor,
            steps=0 if state.hasty else FIT_STEPS,
        )
        # A group that is shortened but not to zero has a multiplier of full length; the others are at most as long.
        squares = (weights / state.penalty) ** 2
        full = 0.0
        for scale, weight in ((state.row_scale, problem.beta), (state.column_scale, problem.lam)):
            full += weight**2 * float(np.sum(scale < 1.0, axis=1) @ squares[: len(scale)])
        return Measures(
            error_penalty=self._error_penalty(problem, sums),
            bound=sums.bound,
            multiplier_square=full,
            low_rank_residual=sums.low_rank_residual,
            low_rank_distance=projection_norm(problem.shape[1], sums.shifts, sums.clipped),
            error_residual=sums.group_residual,
        )

    def _error_penalty(self, problem: Problem, sums: Evaluation | Measurement) -> float:
        """Return the penalty on the errors."""
        groups = problem.beta * sums.row_norms.sum(axis=1) + problem.lam * sums.column_norms.sum(axis=1)
        return float(problem.weights @ groups)

    def _candidate(self, state: ADMMState) -> FloatArray:
        """Return the low-rank copy, polished or not, projected onto the simplex: its nuclear norm is small."""
        return kernels.fused.project_simplex(state.low_rank if state.candidate is None else state.candidate)


def _current(problem: Any, state: ADMMState) -> Any:
    """Return the problem in the precision of the state."""
    return problem if state.precise is None else state.precise


def _make_precise(problem: Any, state: ADMMState) -> None:
    """Go over to double precision, with the same data."""
    state.precise = replace(problem, transitions=problem.transitions.astype(np.float64))
    state.observed = state.precise.masks
    for name in ("consensus", "low_rank_point", "low_rank", "row_points", "column_points"):
        setattr(state, name, getattr(state, name).astype(np.float64))
    state.measures = state.candidate = None
    state.failures = state.presumptions = 0
    state.price = 0.0
