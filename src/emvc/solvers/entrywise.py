r"""Solvers of the RMSC model (Xia, Pan, Du, Yin, AAAI 2014): an entrywise penalty on the errors.

**Problem.** Over row-stochastic P, :math:`\min \lVert P\rVert_* + \lambda\sum_k\lVert P_k-P\rVert_1`.

`EntrywiseADMM` is `emvc.solvers.ADMM` with one copy :math:`L_k = P_k - P` per view in place of the two groups. Its
proximal step at the point :math:`V_k` is soft thresholding by :math:`t = \lambda/\rho`; the scaled multiplier is what
the step removed, :math:`V_k` clipped to :math:`[-t, t]`, so entries of the multiplier are at most :math:`\lambda`: dual
feasible, and the certificate carries over with entries in place of rows and columns.

`EntrywiseALM` is the published schedule, `emvc.solvers.ALM` with soft thresholding of the errors. Like that one it ends
at a feasible point and not at the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emvc import kernels
from emvc._array import FloatArray
from emvc.problem import EntrywiseProblem
from emvc.solvers._split import LEAST_WEIGHT, Measures, SplitSolver, SplitState
from emvc.solvers.alm import ALM, ALMState, Shrinkage

_GROUP_SIZE = 7.0  # entries that deviate together in a typical row: makes the weight comparable to that of a group


@dataclass(kw_only=True)
class EntrywiseState(SplitState):
    """State with one point per view and the size to which its entries are clipped."""

    points: FloatArray
    clip: float

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The arrays in the order in which the kernels take them, after the transitions."""
        return self.consensus, self.low_rank_point, self.low_rank, self.points


@dataclass(frozen=True)
class EntrywiseADMM(SplitSolver[EntrywiseState]):
    """The certified solver of `emvc.problem.EntrywiseProblem`; its parameters are those of `SplitSolver`."""

    penalty: float = 6.0

    def _first_penalty(self, weight: float) -> float:
        """Return the first penalty: with errors entry by entry it is best proportional to the weight."""
        return self.penalty * max(weight, LEAST_WEIGHT)

    def init(self, problem: EntrywiseProblem, rng: np.random.Generator) -> EntrywiseState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        common = self._start(problem, n_error_copies=problem.n_views, weight=_GROUP_SIZE * problem.lam)
        return EntrywiseState(points=problem.transitions - common["consensus"], clip=0.0, **common)

    def step(self, problem: EntrywiseProblem, state: EntrywiseState) -> EntrywiseState:
        """Do one iteration in place."""
        state.change = kernels.fused.entrywise_sweep(
            problem.transitions,
            *state.arrays,
            state.thresholds,
            clip=state.clip,
            relaxation=self.relaxation,
            ratio=state.ratio,
            low_rank_weight=state.low_rank_weight,
        )
        state.ratio = 1.0
        state.clip = problem.lam / state.penalty
        state.threshold()
        return state

    def _measure(self, problem: EntrywiseProblem, state: EntrywiseState) -> Measures:
        sums = kernels.fused.entrywise_evaluate(
            problem.transitions, *state.arrays, clip=state.clip, low_rank_weight=state.low_rank_factor
        )
        return Measures(
            error_penalty=problem.lam * sums.total,
            bound=sums.inner + sums.row_minima,
            multiplier_square=sums.square,
            low_rank_residual=float(np.sum(sums.low_rank_norms**2)),
            low_rank_distance=float(np.sum(sums.low_rank_norms)),
            error_residual=sums.residual,
        )


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
