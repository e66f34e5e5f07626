r"""Solvers of the RMSC model (Xia, Pan, Du, Yin, AAAI 2014): an entrywise penalty on the errors.

**Problem.** Over row-stochastic P, :math:`\min \lVert P\rVert_* + \lambda\sum_k\lVert P_k-P\rVert_1`.

`EntrywiseADMM` is `emvc.solvers.ADMM` with one copy :math:`L_k = P_k - P` per view in place of the two groups. Its
proximal step (`emvc.prox.Entries`) moves every entry of the point :math:`V_k` towards zero by
:math:`t = \lambda/\rho`; the scaled multiplier is what the step removed, :math:`V_k` clipped to :math:`[-t, t]`, so
entries of the multiplier are at most :math:`\lambda`: dual feasible, and the certificate carries over with entries in
place of rows and columns.

`EntrywiseALM` is the published schedule, `emvc.solvers.ALM` with the same step for the errors. Like that one it ends at
a feasible point and not at the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emvc import kernels
from emvc._array import FloatArray
from emvc.graphs import weighted_mean
from emvc.problem import EntrywiseProblem
from emvc.solvers.admm import SplitSolver, SplitState, Sums
from emvc.solvers.alm import ALM, ALMState, Shrinkage


@dataclass(kw_only=True)
class EntrywiseState(SplitState):
    """State with one point per view and the step by which its entries are shortened."""

    points: FloatArray
    step: float


@dataclass(frozen=True)
class EntrywiseADMM(SplitSolver[EntrywiseState]):
    """The certified solver of `emvc.problem.EntrywiseProblem`; its parameters are those of `SplitSolver`."""

    def init(self, problem: EntrywiseProblem, rng: np.random.Generator) -> EntrywiseState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        mean = weighted_mean(problem.transitions, np.ones(problem.n_views))
        common = self._start(problem, mean, n_error_copies=problem.n_views, weight=problem.lam)
        return EntrywiseState(points=problem.transitions - mean, step=0.0, **common)

    def _sweep(self, problem: EntrywiseProblem, state: EntrywiseState) -> float:
        change = kernels.fused.entrywise_sweep(
            problem.transitions, **state.arrays, thresholds=state.thresholds, step=state.step,
            relaxation=self.relaxation, low_rank_weight=state.low_rank_weight,
        )  # fmt: skip
        state.step = problem.lam / state.penalty
        return change

    def _evaluate(self, problem: EntrywiseProblem, state: EntrywiseState, matrix: FloatArray) -> Sums:
        sums = kernels.fused.entrywise_evaluate(
            problem.transitions, **state.arrays, candidate=matrix, step=state.step,
            low_rank_weight=state.low_rank_weight,
        )  # fmt: skip
        return Sums(problem.lam * sums.total, state.penalty * sums.bound, sums.residual, sums.square)

    def _dual_bound(self, problem: EntrywiseProblem, state: EntrywiseState, matrix: FloatArray, norm: float) -> float:
        del matrix  # multipliers are those of the state
        multipliers = state.penalty * np.clip(state.points, -state.step, state.step)
        return problem.dual_bound(state.low_rank_multiplier / norm, multipliers, low_rank_norm=1.0)

    def _rescale(self, state: EntrywiseState, ratio: float) -> None:
        state.points -= (1.0 - ratio) * np.clip(state.points, -state.step, state.step)
        state.step *= ratio


@dataclass(frozen=True)
class EntrywiseALM(ALM):
    """The published schedule of RMSC; its parameters are those of `ALM`."""

    def _shrinkage(self, problem: Any, state: ALMState, mu: float) -> Shrinkage:
        zeros = np.zeros_like(state.row_norms), np.zeros_like(state.column_norms)
        return Shrinkage(problem.lam / mu, *zeros)

    def _penalty(self, problem: Any, state: ALMState) -> float:
        return float(problem.lam * state.total)

    def _bounds(self, problem: Any, state: ALMState, low_rank: FloatArray) -> Iterator[float]:
        signs = problem.lam * np.sign(problem.errors(state.consensus))
        yield problem.dual_bound(low_rank, signs, low_rank_norm=1.0)
        own = np.clip(-state.multipliers, -problem.lam, problem.lam)
        yield problem.dual_bound(low_rank, own, low_rank_norm=1.0)
