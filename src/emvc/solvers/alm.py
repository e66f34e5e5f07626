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
from typing import Any, Literal

import numpy as np

from emvc import kernels
from emvc._array import FloatArray, column_norms, row_norms
from emvc._validation import check_choice, check_integer, check_number
from emvc.problem import Decomposition
from emvc.prox import NuclearNorm
from emvc.solvers._loop import Certificate, Check, Status
from emvc.solvers._svt import SingularValueThreshold, Thresholded, spectral_norm_bound


@dataclass
class ALMState:
    """Everything that changes from one iteration to the next."""

    consensus: FloatArray
    low_rank: FloatArray
    low_rank_multiplier: FloatArray
    errors: FloatArray
    multipliers: FloatArray
    thresholds: FloatArray
    svt: SingularValueThreshold
    spectrum: Thresholded
    penalty: float
    last_penalty: float
    residual: float = math.inf
    objective: float = math.inf
    last_objective: float = math.inf


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
        zeros = np.zeros(problem.shape)
        return ALMState(
            consensus=zeros,
            low_rank=zeros.copy(),
            low_rank_multiplier=zeros.copy(),
            errors=rng.random(problem.transitions.shape),
            multipliers=np.zeros(problem.transitions.shape),
            thresholds=np.zeros(problem.shape[0]),
            svt=SingularValueThreshold(remember=False),
            spectrum=Thresholded(0.0, 0),
            penalty=self.penalty,
            last_penalty=self.penalty,
        )

    def step(self, problem: Decomposition, state: ALMState) -> ALMState:
        """Do one iteration in place."""
        mu = state.penalty
        target = state.low_rank - state.low_rank_multiplier / mu
        for transitions, errors, multiplier in zip(problem.transitions, state.errors, state.multipliers, strict=True):
            target += transitions - errors - multiplier / mu
        target /= problem.n_views + 1
        state.consensus = kernels.fused.project_simplex(target, state.thresholds)
        state.residual = self._update_errors(problem, state)

        point = state.consensus + state.low_rank_multiplier / mu
        state.spectrum = state.svt(point, 1.0 / mu, out=state.low_rank)
        gap = state.consensus - state.low_rank
        state.low_rank_multiplier += mu * gap
        state.residual = max(state.residual, float(np.abs(gap, out=gap).max()))
        state.last_penalty, state.penalty = mu, min(self.growth * mu, self.max_penalty)
        return state

    def _update_errors(self, problem: Decomposition, state: ALMState) -> float:
        """Update errors and multipliers view by view and return the largest residual."""
        mu, residual = state.penalty, 0.0
        for k, transitions in enumerate(problem.transitions):
            errors, multiplier = state.errors[k], state.multipliers[k]
            difference = transitions - state.consensus
            errors[...] = self._shrink(problem, difference - multiplier / mu, errors, mu)
            difference -= errors
            multiplier -= mu * difference
            residual = max(residual, float(np.abs(difference, out=difference).max()))
        return residual

    def _shrink(self, problem: Any, point: FloatArray, errors: FloatArray, mu: float) -> FloatArray:
        """Return the errors of one view from the point B and the previous errors: one reweighting step."""
        rows = problem.beta / (2.0 * mu * np.maximum(row_norms(errors), self.floor))
        columns = problem.lam / (2.0 * mu * np.maximum(column_norms(errors), self.floor))
        return np.asarray(point / (1.0 + rows[:, None] + columns))

    def check(self, problem: Decomposition, state: ALMState) -> Check:
        """Apply the stopping rule."""
        state.last_objective = state.objective
        by_objective = self.stop == "objective"
        state.objective = (
            NuclearNorm().value(state.consensus) if by_objective else state.spectrum.nuclear_norm
        ) + problem.penalty(state.errors)
        done = None
        if state.residual <= self.tol:
            done = Status.CONVERGED
        elif by_objective and not state.last_objective - state.objective > self.tol:
            done = Status.STALLED
        return Check(
            objective=state.objective,
            gap=math.nan,
            residual=state.residual,
            rank=state.spectrum.rank,
            penalty=state.last_penalty,
            done=done,
        )

    def finish(self, problem: Any, state: ALMState) -> Certificate:
        """Judge the result by the best of several dual bounds (`_multipliers`)."""
        low_rank = state.low_rank_multiplier / max(1.0, spectral_norm_bound(state.low_rank_multiplier))
        bounds = [
            problem.dual_bound(low_rank, *candidate, low_rank_norm=1.0)
            for candidate in self._multipliers(problem, state)
        ]
        return Certificate(
            consensus=state.consensus,
            objective=problem.objective(state.consensus),
            bound=max(problem.trivial_bound(), *bounds),
            rank=state.spectrum.rank,
        )

    def _multipliers(self, problem: Any, state: ALMState) -> Iterator[tuple[FloatArray, ...]]:
        """Yield multipliers for rows and columns: subgradients at the errors, and the run's own, divided by weight."""
        errors = problem.errors(state.consensus)
        yield (
            problem.beta * errors / np.maximum(row_norms(errors), self.floor)[:, :, None],
            problem.lam * errors / np.maximum(column_norms(errors), self.floor)[:, None, :],
        )
        share = problem.beta / (problem.beta + problem.lam) if problem.beta + problem.lam else 0.0
        rows, columns = -share * state.multipliers, (share - 1.0) * state.multipliers
        rows *= np.minimum(1.0, problem.beta / np.maximum(row_norms(rows), self.floor))[:, :, None]
        columns *= np.minimum(1.0, problem.lam / np.maximum(column_norms(columns), self.floor))[:, None, :]
        yield rows, columns
