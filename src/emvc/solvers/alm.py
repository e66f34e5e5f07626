r"""The published algorithm (Algorithm 3 of the paper), with its misprints corrected.

**Problem.** That of `emvc.problem`, with the errors as variables of their own: :math:`P_k = P + E_k`, :math:`P = Q`.

**Updates** (multipliers Z, Y, penalty :math:`\mu`), in the printed order:

1. P is the simplex projection of :math:`\frac1{K+1}\bigl(Q - Z/\mu + \sum_k (P_k - E_k - Y_k/\mu)\bigr)`;
2. one reweighting step for the errors, :math:`e_{ij} \leftarrow b_{ij} / (1 + \beta/(2\mu r_i) + \lambda/(2\mu c_j))`
   with :math:`B_k = P_k - P - Y_k/\mu` and r, c the row and column norms of the *previous* :math:`E_k`;
3. :math:`Q = \operatorname{prox}_{\lVert\cdot\rVert_*/\mu}(P + Z/\mu)`;
4. :math:`Z \leftarrow Z + \mu(P - Q)`, :math:`Y_k \leftarrow Y_k + \mu(P + E_k - P_k)`, :math:`\mu \leftarrow 1.9\mu`.

**Stopping rule.** The largest entry of the two constraint residuals is at most ``tol``. ``stop="objective"`` is the
rule of the authors' program: stop as soon as the objective in (P, E) fails to fall by ``tol``. It fires while Q is
still zero, so its result is the projected mean of the views and, unless they are tiny, depends on neither weight.

**What this is not.** The penalty grows geometrically, so the iteration ends at a feasible point and not at the
optimum; the claim that every iteration lowers the objective is false. `Solution.gap` says how far off it is, with
the same bound that certifies `emvc.solvers.ADMM`.

**Deviations from the print.** The sign of Y in Eq. 14 and 15; the diagonal system of Eq. 15 is solved directly;
norms are floored at ``floor``, because a group that vanishes can otherwise never return and divides by zero. The
factor 2 in the weights, which halves beta and lambda, is kept: it is part of the published algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from emvc import kernels
from emvc._array import FloatArray, column_norms, row_norms
from emvc._validation import check_choice, check_integer, check_number
from emvc.problem import Decomposition
from emvc.prox import NuclearNorm
from emvc.solvers._loop import Check, Status
from emvc.solvers.certificate import Certificate, norm_bound
from emvc.solvers.svt import SingularValueThreshold, Thresholded

TOL_SHARE = 1e-5
"""Residual that is asked for, as a share of ``tol`` of the estimators: the printed 1e-8 at the default."""


class Shrinkage(NamedTuple):
    """How errors follow from their points: a soft threshold, then division by one plus two weights."""

    soft: float
    rows: FloatArray
    columns: FloatArray


@dataclass
class ALMState:
    """Everything that changes from one iteration to the next.

    Errors and multipliers of the views follow from their points B (see `emvc.kernels.reference.alm_sweep`), the
    multiplier of the low-rank copy from its point.
    """

    consensus: FloatArray
    low_rank_point: FloatArray
    low_rank: FloatArray
    points: FloatArray
    shrinkage: Shrinkage
    row_norms: FloatArray
    column_norms: FloatArray
    thresholds: FloatArray
    svt: SingularValueThreshold
    spectrum: Thresholded
    penalty: float
    last_penalty: float
    total: float = math.inf
    residual: float = math.inf
    objective: float = math.inf

    @property
    def errors(self) -> FloatArray:
        """The error matrices E_k."""
        soft, rows, columns = self.shrinkage
        shrunk = self.points - np.clip(self.points, -soft, soft) if soft else self.points.copy()
        for view, (row, column) in enumerate(zip(rows, columns, strict=True)):
            shrunk[view] /= (1.0 + row)[:, None] + column
        return np.asarray(shrunk)

    @property
    def multipliers(self) -> FloatArray:
        """The multipliers Y_k of the views."""
        return np.asarray(self.last_penalty * (self.errors - self.points))

    @property
    def low_rank_multiplier(self) -> FloatArray:
        """The multiplier Z of the low-rank copy."""
        return np.asarray(self.last_penalty * (self.low_rank_point - self.low_rank))


@dataclass(frozen=True)
class ALM:
    """Configuration of the published algorithm.

    Parameters
    ----------
    tol : float
        Largest constraint residual, or least decrease of the objective, at which to stop. Below about 1e-9 the
        residual is out of reach, since singular values are taken from a Gram matrix.
    stop : {"residual", "objective"}
        Stopping rule; ``"objective"`` is that of the authors' program.
    penalty, growth, max_penalty : float
        The schedule of the penalty, as printed.
    floor : float
        Least norm in the reweighting step. It matters: the result is a feasible point that depends on the path.
    """

    tol: float = 1e-8
    stop: Literal["residual", "objective"] = "residual"
    penalty: float = 1e-6
    growth: float = 1.9
    max_penalty: float = 1e10
    floor: float = float(np.finfo(np.float64).eps)
    check_every: int = 1

    def __post_init__(self) -> None:
        check_number(self.tol, "tol")
        check_choice(self.stop, "stop", ("residual", "objective"))
        check_number(self.penalty, "penalty", strict=True)
        check_number(self.growth, "growth", least=1.0, strict=True)
        check_number(self.max_penalty, "max_penalty", least=self.penalty)
        check_number(self.floor, "floor", strict=True)
        check_integer(self.check_every, "check_every", least=1)

    def init(self, problem: Decomposition, rng: np.random.Generator) -> ALMState:
        """Start from zeros and random errors, as printed."""
        errors = rng.random(problem.transitions.shape)
        row_norm, column_norm = row_norms(errors), column_norms(errors)
        return ALMState(
            consensus=np.zeros(problem.shape),
            low_rank_point=np.zeros(problem.shape),
            low_rank=np.zeros(problem.shape),
            points=errors,
            shrinkage=Shrinkage(0.0, np.zeros_like(row_norm), np.zeros_like(column_norm)),
            row_norms=row_norm,
            column_norms=column_norm,
            thresholds=np.zeros(problem.shape[0]),
            svt=SingularValueThreshold(exact=True),
            spectrum=Thresholded(np.empty(0), np.empty((0, 0))),
            penalty=self.penalty,
            last_penalty=self.penalty,
        )

    def step(self, problem: Decomposition, state: ALMState) -> ALMState:
        """Do one iteration in place."""
        mu = state.penalty
        shrinkage = self._shrinkage(problem, state, mu)
        state.row_norms, state.column_norms, state.total, residual = kernels.fused.alm_sweep(
            problem.transitions, state.consensus, state.low_rank_point, state.low_rank, state.points,
            state.shrinkage.rows, state.shrinkage.columns, state.thresholds,
            soft=(state.shrinkage.soft, shrinkage.soft), new_row_weight=shrinkage.rows,
            new_column_weight=shrinkage.columns, ratio=state.last_penalty / mu,
        )  # fmt: skip
        state.shrinkage = shrinkage
        state.spectrum = state.svt(state.low_rank_point, 1.0 / mu, out=state.low_rank)
        state.residual = max(residual, float(np.abs(state.consensus - state.low_rank).max()))
        state.last_penalty, state.penalty = mu, min(self.growth * mu, self.max_penalty)
        return state

    def _shrinkage(self, problem: Any, state: ALMState, mu: float) -> Shrinkage:
        """Return how the errors follow from their points: one reweighting step by the previous norms."""
        weights = problem.weights[:, None]
        return Shrinkage(
            soft=0.0,
            rows=problem.beta * weights / (2.0 * mu * np.maximum(state.row_norms, self.floor)),
            columns=problem.lam * weights / (2.0 * mu * np.maximum(state.column_norms, self.floor)),
        )

    def _penalty(self, problem: Any, state: ALMState) -> float:
        """Return the weighted norm of the errors."""
        norms = problem.beta * state.row_norms.sum(axis=1) + problem.lam * state.column_norms.sum(axis=1)
        return float(problem.weights @ norms)

    def check(self, problem: Decomposition, state: ALMState) -> Check:
        """Apply the stopping rule."""
        by_objective, done = self.stop == "objective", None
        norm = NuclearNorm().value(state.consensus) if by_objective else state.spectrum.nuclear_norm
        last, state.objective = state.objective, norm + self._penalty(problem, state)
        if state.residual <= self.tol:
            done = Status.CONVERGED
        elif by_objective and not last - state.objective > self.tol:
            done = Status.STALLED
        return Check(state.objective, math.nan, state.residual, state.spectrum.rank, state.last_penalty, done)

    def finish(self, problem: Any, state: ALMState) -> Certificate:
        """Judge the result by the best of several dual bounds (`_bounds`)."""
        low_rank = state.low_rank_multiplier
        low_rank /= norm_bound(low_rank, self.tol)
        bound = max(problem.trivial_bound(), *self._bounds(problem, state, low_rank))
        return Certificate.of(problem, state.consensus, bound, state.spectrum.rank)

    def _bounds(self, problem: Any, state: ALMState, low_rank: FloatArray) -> Iterator[float]:
        """Yield dual bounds of subgradients at the errors, and of the run's own multipliers, divided by weight."""
        weights, total = problem.weights[:, None], problem.beta + problem.lam
        share = problem.beta / total if total else 0.0
        own = problem.observed_part(-state.multipliers)
        for matrices, most in ((problem.errors(state.consensus), (math.inf, math.inf)), (own, (share, 1.0 - share))):
            row, column = (np.maximum(norms(matrices), self.floor) for norms in (row_norms, column_norms))
            rows = matrices * np.minimum(most[0], problem.beta * weights / row)[:, :, None]
            columns = matrices * np.minimum(most[1], problem.lam * weights / column)[:, None, :]
            yield problem.dual_bound(low_rank, rows, columns, low_rank_norm=1.0)
