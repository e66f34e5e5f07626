r"""Certified solver: two-block ADMM with a duality gap as stopping rule.

**Problem.** Over row-stochastic P (`emvc.problem`),
:math:`\min \lVert P\rVert_* + \beta\sum_k\lVert P_k-P\rVert_{2,1} + \lambda\sum_k\lVert P_k-P\rVert_{G1}`.

**Splitting.** Copies :math:`Q = P`, :math:`R_k = P_k - P`, :math:`C_k = P_k - P`. The row and column groups overlap,
so the proximal operator of their sum is not the composition of the two; hence one copy for each. Block one is P,
block two is {Q, R, C}, whose members do not interact. A group whose weight is zero gets no copy.

**Updates** (penalty :math:`\rho`, multipliers Z, A, B, relaxation :math:`\alpha`):

1. P is the simplex projection of the mean of :math:`Q - Z/\rho`, :math:`P_k - R_k + A_k/\rho` and
   :math:`P_k - C_k + B_k/\rho`;
2. each copy is a proximal step at its *point*, for instance
   :math:`V = \alpha P + (1-\alpha)Q + Z/\rho` and :math:`Q = \operatorname{prox}_{\lVert\cdot\rVert_*/\rho}(V)`;
3. its multiplier is what the step removed, :math:`Z = \rho (V - Q)`, so :math:`\lVert Z\rVert_2\le 1`, the rows of
   :math:`A_k` are at most :math:`\beta` long and the columns of :math:`B_k` at most :math:`\lambda`: always dual
   feasible.

Copy and multiplier of a group are both multiples of V, row by row or column by column. Only V and the shrinkage
factors are stored, and one sweep over the rows updates everything but Q (`emvc.kernels`).

**Stopping rule.** The relative gap between an upper bound on :math:`f(P)` and the dual bound. For the upper bound,
:math:`\lVert P\rVert_*\le\lVert Q\rVert_*+\sqrt{\min(N,m)}\,\lVert P-Q\rVert_F` avoids the SVD of P; small problems
use the exact value. Since truncated thresholding can leave :math:`\lVert Z\rVert_2` a little above 1, the gap that
ends the run is computed with a proven bound on that norm.

**Penalty.** Doubled or halved when the primal and the dual residual differ by more than a factor, at most
``max_penalty_changes`` times; after that the penalty is constant and the classical convergence proof applies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from emvc import kernels
from emvc._array import FloatArray
from emvc.kernels.reference import Evaluation
from emvc.problem import Problem, relative_gap
from emvc.prox import shrinkage
from emvc.solvers._loop import Certificate, Check, Status
from emvc.solvers._svt import SingularValueThreshold, Thresholded, spectral_norm_bound

_IMBALANCE = 5.0  # residuals this far apart change the penalty
_TINY = 1e-300
_EXACT_CHECK = 300  # up to this size the singular values of P cost less than the rest of a check
_EXACT_FINISH = 2500  # up to this size the reported objective is exact


_Arrays = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass
class ADMMState:
    """Everything that changes from one iteration to the next."""

    consensus: FloatArray
    low_rank_point: FloatArray
    low_rank: FloatArray
    row_points: FloatArray
    row_scale: FloatArray
    column_points: FloatArray
    column_scale: FloatArray
    thresholds: FloatArray
    svt: SingularValueThreshold
    spectrum: Thresholded
    penalty: float
    ratio: float = 1.0
    change: float = math.inf
    penalty_changes: int = 0
    bound: float = -math.inf

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

    @property
    def n_copies(self) -> int:
        """Number of matrices that P is split into."""
        return 1 + len(self.row_points) + len(self.column_points)


@dataclass(frozen=True)
class ADMM:
    """Configuration of the certified solver.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    penalty : float
        First penalty. Singular values of transition matrices are at most about one, so no scaling is needed.
    relaxation : float
        Over-relaxation; 1 is plain ADMM.
    check_every : int
        Iterations between two evaluations of the gap.
    max_penalty_changes : int
        Penalty changes before it is frozen.
    """

    tol: float = 1e-3
    penalty: float = 4.0
    relaxation: float = 1.6
    check_every: int = 10
    max_penalty_changes: int = 10

    def init(self, problem: Problem, rng: np.random.Generator) -> ADMMState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        transitions = problem.transitions
        n_samples, n_states = problem.shape
        mean = transitions.mean(axis=0)
        # Copies equal to their constraint and no multiplier: scale one, point P_k - P.
        n_rows = problem.n_views if problem.beta > 0 else 0
        n_columns = problem.n_views if problem.lam > 0 else 0
        return ADMMState(
            consensus=mean,
            low_rank_point=mean.copy(),
            low_rank=mean.copy(),
            row_points=transitions[:n_rows] - mean,
            row_scale=np.ones((n_rows, n_samples)),
            column_points=transitions[:n_columns] - mean,
            column_scale=np.ones((n_columns, n_states)),
            thresholds=np.zeros(n_samples),
            svt=SingularValueThreshold(),
            spectrum=Thresholded(0.0, 0),
            penalty=self.penalty,
        )

    def step(self, problem: Problem, state: ADMMState) -> ADMMState:
        """Do one iteration in place: sweep for P and the points, then the proximal steps."""
        row_norms, column_norms, state.change = kernels.fused.sweep(
            problem.transitions,
            *state.arrays,
            state.thresholds,
            relaxation=self.relaxation,
            ratio=state.ratio,
        )
        state.ratio = 1.0
        state.row_scale = shrinkage(row_norms, problem.beta / state.penalty)
        state.column_scale = shrinkage(column_norms, problem.lam / state.penalty)
        state.spectrum = state.svt(state.low_rank_point, 1.0 / state.penalty, out=state.low_rank)
        return state

    def check(self, problem: Problem, state: ADMMState) -> Check:
        """Measure the gap, certify it when it is small enough, and balance the penalty."""
        evaluation = kernels.fused.evaluate(problem.transitions, *state.arrays)
        objective = self._upper_bound(problem, state, evaluation, exact=min(problem.shape) <= _EXACT_CHECK)
        bound = max(state.bound, _scaled_bound(state, evaluation))
        done = None
        if relative_gap(objective, bound) <= self.tol:
            self._certify(state, evaluation)
            bound = state.bound
            if relative_gap(objective, bound) <= self.tol:
                done = Status.CONVERGED
        residual = math.sqrt(evaluation.low_rank_residual + evaluation.group_residual)
        check = Check(
            objective=objective,
            gap=relative_gap(objective, bound),
            residual=residual,
            rank=state.spectrum.rank,
            penalty=state.penalty,
            done=done,
        )
        if done is None:
            self._balance(problem, state, residual)
        return check

    def finish(self, problem: Problem, state: ADMMState) -> Certificate:
        """Return the feasible consensus with its certified objective and bound."""
        evaluation = kernels.fused.evaluate(problem.transitions, *state.arrays)
        self._certify(state, evaluation)
        objective = self._upper_bound(problem, state, evaluation, exact=min(problem.shape) <= _EXACT_FINISH)
        return Certificate(state.consensus, objective, state.bound, state.spectrum.rank)

    def _upper_bound(self, problem: Problem, state: ADMMState, evaluation: Evaluation, *, exact: bool) -> float:
        groups = problem.beta * evaluation.row_norms.sum() + problem.lam * evaluation.column_norms.sum()
        if exact:
            nuclear_norm = float(scipy.linalg.svdvals(state.consensus, check_finite=False).sum())
        else:
            distance = math.sqrt(min(problem.shape) * evaluation.low_rank_residual)
            nuclear_norm = state.spectrum.nuclear_norm + distance
        return nuclear_norm + float(groups)

    def _certify(self, state: ADMMState, evaluation: Evaluation) -> None:
        """Raise the proven bound: multipliers are scaled down by a proven bound on the norm of Z."""
        multiplier = state.penalty * (state.low_rank_point - state.low_rank)
        norm = max(1.0, spectral_norm_bound(multiplier))
        if norm > 1.0 + max(0.1 * self.tol, 1e-8):  # the block of the thresholding step has missed a direction
            state.svt.forget()
        state.bound = max(state.bound, _scaled_bound(state, evaluation) / norm)

    def _balance(self, problem: Problem, state: ADMMState, primal: float) -> None:
        """Move the penalty towards equal relative residuals; the change of P stands in for that of its copies."""
        if state.penalty_changes >= self.max_penalty_changes:
            return
        primal /= math.sqrt(state.n_copies) * float(np.linalg.norm(state.consensus))
        dual = math.sqrt(state.n_copies * state.change) / max(_multiplier_norm(problem, state), _TINY)
        factor = 2.0 if primal > _IMBALANCE * dual else 0.5 if dual > _IMBALANCE * primal else 1.0
        if factor != 1.0:
            state.penalty *= factor
            state.ratio = 1.0 / factor
            state.penalty_changes += 1


def _scaled_bound(state: ADMMState, evaluation: Evaluation) -> float:
    """Return the dual bound of the current multipliers, assuming that the norm of Z is at most one."""
    return state.penalty * (evaluation.inner + evaluation.row_minima)


def _multiplier_norm(problem: Problem, state: ADMMState) -> float:
    """Return the Frobenius norm of all scaled multipliers together."""
    squares = np.sum((state.low_rank_point - state.low_rank) ** 2)
    # A group that is shrunk by the factor s < 1 has a multiplier of full length, beta or lam.
    squares += np.sum(state.row_scale < 1.0) * (problem.beta / state.penalty) ** 2
    squares += np.sum(state.column_scale < 1.0) * (problem.lam / state.penalty) ** 2
    return math.sqrt(float(squares))
