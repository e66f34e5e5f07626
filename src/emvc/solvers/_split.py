"""What the certified solvers share: state, gap, certificate and penalty, whatever the penalty on the errors.

See `emvc.solvers.admm` for the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.linalg

from emvc._array import FloatArray
from emvc._threads import gram as gram_matrix
from emvc._threads import threads_for_blas
from emvc._validation import check_integer, check_number
from emvc.graphs import weighted_mean
from emvc.problem import Decomposition, relative_gap
from emvc.solvers._loop import Certificate, Check, Status
from emvc.solvers._svt import SingularValueThreshold, Thresholded, gram_norm_bound, spectral_norm_bound

_EXACT_CHECK = 300  # up to this size the singular values of the candidate cost less than the rest of a check
_EXACT_FINISH = 800  # up to this size the reported objective is exact
_SINGLE_TOL = 1e-4  # from this tolerance on single precision does for a block of singular vectors
_CAREFUL_STEPS = 3  # thresholding steps before a check that are done with care
_RESIDUAL, _LEAST_RESIDUAL = 0.3, 1e-4  # what such a step may leave: a factor of the root of the tolerance
_MOST_FAILURES = 2  # proofs that may fail before thresholding becomes exact
_LARGE_PROOF = 2000  # from this size on a proof that fails costs many iterations
_LARGE = 1000  # from this size on several threads pay for eigenvalues
_IMBALANCE = 5.0  # residuals this far apart change the penalty
_USUAL = (0.03, 0.25)  # weights with a structured consensus: the best penalty grows with the square root
_MOST_EXCESS = 0.1  # how far the norm of Z may be above one
_FIRST_PRICE = 2.0  # what that costs of the dual bound, in nuclear norms, as long as it was not measured
_UNDERESTIMATED = 1.4  # how far the excess is typically above its estimate
_SPENT = 0.9  # share of the difference between gap and tolerance that it may use up
_CHEAP = 0.2  # share of that to be tried first
_PRESUMED = 0.15  # share of the tolerance that it should cost if that is not measured
_FIRST_WAIT = 4  # iterations after the first look, three of which are careful
_LEAST_WAIT, _MOST_WAIT = 2, 4  # the same if the last of them is thorough
_LOW_GAP, _LOW_REDUCIBLE = 9.0, 3.0  # tolerances at the first look up to which the least wait will do
_MOST_PRESUMPTIONS = 3  # measures that may presume it
_NEAR_MISS = 2.0  # a gap of so many tolerances could be one if nothing were presumed
_TINY = 1e-300

LEAST_WEIGHT = 5e-3
"""For the first penalty: with smaller weights the nuclear norm decides everything."""


@dataclass(kw_only=True)
class SplitState:
    """What changes from one iteration to the next."""

    consensus: FloatArray
    low_rank_point: FloatArray
    low_rank: FloatArray
    thresholds: FloatArray
    svt: SingularValueThreshold
    spectrum: Thresholded
    penalty: float
    n_error_copies: int
    low_rank_weight: float
    """Penalty on the distance to the low-rank copy over the penalty on the distance to every other copy."""
    ratio: float = 1.0
    """Penalty of the last step over the current one; differs from 1 only between a change and the next step."""
    change: float = math.inf
    penalty_changes: int = 0
    bound: float = -math.inf
    measures: Measures | None = None
    """Those of the present iterate, if it was checked."""
    objective: float = math.inf
    multiplier_norm: float = 1.0
    """Bound, presumed or proven, on the largest singular value of Z, by which Z is divided in a dual bound."""
    price: float = 0.0
    """By how much the dual bound has fallen for the last Z that was too large, per excess of its norm."""
    presumptions: int = 0
    """Measures that have presumed a Z longer than one."""
    failures: int = 0
    """Proofs of the bound that failed because the block of the thresholding step was not accurate enough."""
    wait: int = 0
    """Iterations between the last check and the next, zero before the first."""
    due: int = 0
    """Iterations left until the next check, zero before the first."""
    gap: float = math.inf
    """Estimate of the gap at the last check."""
    wide: bool = False
    """Whether one thorough thresholding step before a check takes the place of careful ones, known at the first one."""
    exact: bool = False
    """Whether thresholding is exact, at several times the cost of a check."""
    unbalanced: int = 0
    """Iterations since the penalty was last reconsidered."""

    candidate: FloatArray | None = None
    """What the objective is measured at before it is projected onto the simplex, if that is not the low-rank copy."""
    candidate_norm: float = 0.0
    """Its nuclear norm."""
    certified: bool = False
    """Whether the proven bound has seen the present multipliers."""

    def threshold(self) -> None:
        """Do the proximal step of the nuclear norm."""
        step = 1.0 / (self.penalty * self.low_rank_weight)
        self.svt.thorough = self.wide and self.due == 1
        self.svt.careful = not self.wide and 0 < self.due <= _CAREFUL_STEPS
        self.due -= 1
        self.spectrum = self.svt(self.low_rank_point, step, out=self.low_rank)
        self.certified = False
        self.measures = self.candidate = None

    def recover(self) -> float:
        """Look for singular vectors that the last step has missed; estimate the largest singular value of V - Q."""
        return self.svt.recover(self.low_rank_point)

    @property
    def multiplier_scale(self) -> float:
        """The penalty of the last step, by which the scaled multipliers of the state are to be multiplied."""
        return self.penalty * self.ratio

    @property
    def low_rank_factor(self) -> float:
        """The factor that makes the scaled multiplier of the nuclear norm of what thresholding removed."""
        return self.low_rank_weight / self.multiplier_norm


@dataclass(frozen=True)
class Measures:
    """Sums over the data; the multipliers in them are scaled, that is, divided by the penalty."""

    error_penalty: float
    """Penalty on the errors P_k - X of the feasible candidate X."""
    bound: float
    """Dual bound of the multipliers, if the largest singular value of Z is at most `SplitState.multiplier_norm`."""
    multiplier_square: float
    """Squared Frobenius norm of the multipliers of the errors."""
    low_rank_residual: float
    """Squared Frobenius norm of P - Q."""
    low_rank_distance: float
    """Bound on the nuclear norm of what projection adds to X."""
    error_residual: float
    """Squared Frobenius norm of all other constraint residuals."""


State = TypeVar("State", bound=SplitState)


@dataclass(frozen=True)
class SplitSolver(Generic[State]):
    """Configuration of a certified solver, and all of it but the steps.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    penalty : float
        First penalty over the square root of the largest weight of the errors; proportional to small and to large
        weights. The singular values of transition matrices are at most about one, so no other scaling is needed.
    relaxation : float
        Over-relaxation; 1 is plain ADMM.
    check_every : int
        Iterations between two evaluations of the gap; fewer when it is close to the tolerance.
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

    def _start(self, problem: Decomposition, *, n_error_copies: int, weight: float) -> dict[str, Any]:
        """Return the common part of the first state: the mean of the views and no multiplier."""
        weights = getattr(problem, "view_weights", None)
        mean = weighted_mean(problem.transitions, np.ones(problem.n_views) if weights is None else weights)
        return {
            "consensus": mean,
            "low_rank_point": mean.copy(),
            "low_rank": mean.copy(),
            "thresholds": np.zeros(problem.shape[0]),
            "svt": SingularValueThreshold(
                residual=max(_RESIDUAL * math.sqrt(self.tol), _LEAST_RESIDUAL), single=self.tol >= _SINGLE_TOL
            ),
            "spectrum": Thresholded(0.0, 0),
            "penalty": self._first_penalty(weight),
            "n_error_copies": n_error_copies,
            "low_rank_weight": float(max(1, n_error_copies)),
        }

    def _first_penalty(self, weight: float) -> float:
        """Return the first penalty for the largest weight of the errors, proportional to small and to large ones."""
        weight = max(weight, LEAST_WEIGHT)
        return self.penalty * weight / math.sqrt(min(max(weight, _USUAL[0]), _USUAL[1]))

    def _measure(self, problem: Any, state: State) -> Measures:
        raise NotImplementedError

    def check(self, problem: Decomposition, state: State) -> Check:
        """Measure the gap, certify it when it is small enough, and balance the penalty."""
        self._presume(state)
        measures, objective, estimate = self._estimate(problem, state)
        done, bound = None, max(state.bound, _scaled_bound(state, measures))
        if estimate <= self.tol:
            self._certify(problem, state, measures, objective)
            if relative_gap(objective, state.bound) <= self.tol:
                done, bound = Status.CONVERGED, state.bound
        state.measures, state.objective = measures, objective
        penalty = state.penalty
        state.unbalanced += state.wait or self.check_every
        if estimate > self.tol and state.unbalanced >= self.check_every:
            state.unbalanced = 0
            self._balance(state, measures)
        reducible = self._reducible(state, measures, objective)
        outlook = estimate - reducible if state.wait else estimate
        self._survey(problem, state)
        state.wait, state.gap = self._pause(state, outlook, reducible), outlook
        state.due = state.wait
        return Check(
            objective=objective,
            gap=relative_gap(objective, bound),
            residual=math.sqrt(measures.low_rank_residual + measures.error_residual),
            rank=state.spectrum.rank,
            penalty=penalty,
            done=done,
            wait=state.wait,
        )

    def _survey(self, problem: Decomposition, state: State) -> None:
        """Note how thresholding is done."""
        if not state.wait:
            state.wide = state.svt.is_wide(problem.shape[1])
        state.exact = state.svt.is_exact

    def _presume(self, state: State) -> None:
        """Let the next measures allow for a Z that is a little too long, which otherwise takes a second pass.

        Not if the last gap was a near miss, nor again and again: where the dual bound falls much faster than usual with
        the length of Z, as for samples that are equal in all views, the gap would never reach the tolerance.
        """
        state.multiplier_norm = 1.0
        if _NEAR_MISS * self.tol < state.gap < math.inf and state.presumptions < _MOST_PRESUMPTIONS:
            state.presumptions += 1
            state.multiplier_norm += self._excess(state, _PRESUMED * self.tol * state.objective)

    def _estimate(self, problem: Decomposition, state: State) -> tuple[Measures, float, float]:
        """Return the measures, the upper bound and the gap, provided that Z is as short as presumed."""
        measures = self._measure(problem, state)
        objective = self._upper_bound(problem, state, measures)
        return measures, objective, self._gap(state, measures, objective)

    def _gap(self, state: State, measures: Measures, objective: float) -> float:
        """Return the gap to the best bound, proven or of the present multipliers."""
        return relative_gap(objective, max(state.bound, _scaled_bound(state, measures)))

    def _reducible(self, state: State, measures: Measures, objective: float) -> float:
        """Return what part of the gap would go away if it were worth the time."""
        del state, measures, objective
        return 0.0

    def _pause(self, state: SplitState, gap: float, reducible: float) -> int:
        """Return the number of iterations until the next check, given the gap and what part of it would go away.

        As many as the gap would need at the rate of the last ones, but not many when it is close to the tolerance.
        """
        if self.tol == 0.0:
            return self.check_every
        if gap <= self.tol:
            return 1
        if not state.wait:
            return min(self.check_every, self._first_wait(state, gap, reducible))
        near = min(self.check_every, int(gap / self.tol) + 2)
        if state.exact:
            near = min(near, _LEAST_WAIT)
        if gap >= state.gap:  # a direction was found that had been missed
            return 1
        needed = state.wait * math.log(gap / self.tol) / math.log(state.gap / gap)
        return min(near, int(needed) + 1)

    def _first_wait(self, state: SplitState, gap: float, reducible: float) -> int:
        """Return the number of iterations from the first check to the second, which should be the last.

        In front of it a wide block takes one thorough step; then it pays to look as early as that may be enough. Steps
        that are exact cost several times as much as a look.
        """
        if state.exact:
            return _LEAST_WAIT
        if not state.wide:
            return _FIRST_WAIT
        excess = max(gap / _LOW_GAP, reducible / _LOW_REDUCIBLE) / self.tol
        return min(_LEAST_WAIT + int(excess), _MOST_WAIT)

    def finish(self, problem: Decomposition, state: State) -> Certificate:
        """Return the feasible consensus with its certified objective and bound."""
        measures = state.measures if state.measures is not None else self._measure(problem, state)
        objective = state.objective
        if state.measures is None or min(problem.shape) <= _EXACT_FINISH:
            objective = self._upper_bound(problem, state, measures, end=True)
        self._certify(problem, state, measures, objective, end=True)
        candidate = self._candidate(state)
        consensus = candidate.astype(np.float64, copy=False)
        if candidate.dtype != np.float64:
            consensus /= consensus.sum(axis=1, keepdims=True)
        return Certificate(consensus, objective, state.bound, state.spectrum.rank)

    def _candidate(self, state: State) -> FloatArray:
        """Return the row-stochastic matrix that the objective is measured at."""
        return state.consensus

    def _upper_bound(self, problem: Decomposition, state: State, measures: Measures, *, end: bool = False) -> float:
        """Return the objective at the candidate, or above a certain size a bound that needs no singular values."""
        size = min(problem.shape)
        if size <= (_EXACT_FINISH if end else _EXACT_CHECK):
            nuclear_norm = float(scipy.linalg.svdvals(self._candidate(state), check_finite=False).sum())
        else:
            polished = state.candidate is not None
            nuclear_norm = state.candidate_norm if polished else state.spectrum.nuclear_norm
            nuclear_norm += measures.low_rank_distance
        return nuclear_norm + measures.error_penalty

    def _certify(
        self, problem: Decomposition, state: State, measures: Measures, objective: float, *, end: bool = False
    ) -> None:
        """Raise the proven bound: Z is divided by a proven bound on its norm.

        That costs little more than the share of the nuclear norm in the objective, so the norm may exceed one by many
        times what the gap is below the tolerance, and a thresholding step that is not exact does little harm. Mostly
        the norm that the measures presume can be proven. At the end a proof is found at any cost.
        """
        if state.certified:
            return
        presumed, bound = state.multiplier_norm, _scaled_bound(state, measures)
        spare = bound - (1.0 - self.tol) * objective
        more = min(presumed + max(self._excess(state, _SPENT * spare), 0.01 * self.tol), 1.0 + _MOST_EXCESS)
        less = presumed if presumed > 1.0 else 1.0 + _CHEAP * (more - 1.0)
        norm = self._multiplier_norm(problem, state, None if end else (less, more))
        if norm is None:
            state.failures += 1
            if state.failures > _MOST_FAILURES or self.tol < _SINGLE_TOL:
                state.svt.forget()
            return
        state.certified = True
        proven = bound * min(1.0, presumed / norm)  # that of all multipliers divided by the same number
        if norm > presumed and relative_gap(objective, proven) > self.tol:
            state.multiplier_norm = norm
            proven = _scaled_bound(state, self._measure(problem, state))
            state.price = (bound - proven) / (norm - presumed)
        state.bound = max(state.bound, proven)

    def _excess(self, state: State, cost: float) -> float:
        """Return by how much the norm of Z may exceed what was presumed if that may cost this much of the bound."""
        return min(cost / max(state.price, _FIRST_PRICE * state.spectrum.nuclear_norm, _TINY), _MOST_EXCESS)

    def _multiplier_norm(
        self, problem: Decomposition, state: State, candidates: tuple[float, ...] | None
    ) -> float | None:
        """Return the first of the candidates that is a proven bound on the largest singular value of Z, or None.

        If there is none, singular vectors that the thresholding step has missed are looked for. In a large problem that
        is done before the proof, which costs much more, and no candidate is tried that a large one contradicts. Without
        candidates a bound is found at any cost.
        """
        scale = state.multiplier_scale * state.low_rank_weight
        large = min(problem.shape) >= _LARGE_PROOF
        if candidates is not None and large:
            estimate = 1.0 + _UNDERESTIMATED * (scale * state.recover() - 1.0)
            candidates = tuple(candidate for candidate in candidates if candidate >= estimate)
            if not candidates:
                return None
        multiplier = state.low_rank_point.astype(np.float64)
        multiplier -= state.low_rank
        multiplier *= scale
        if candidates is None:
            return spectral_norm_bound(multiplier)
        norm = gram_norm_bound(gram_matrix(multiplier), candidates)
        if norm is None and not large:
            state.recover()
        return norm

    def _sizes(self, state: State) -> tuple[float, float]:
        """Return the squared Frobenius norms of the scaled multiplier of the nuclear norm and of the consensus."""
        multiplier = float(np.sum((state.low_rank_point - state.low_rank) ** 2))
        return multiplier, float(np.linalg.norm(state.consensus)) ** 2

    def _balance(self, state: State, measures: Measures) -> None:
        """Move the penalty towards equal relative residuals; the change of P stands in for that of its copies."""
        if state.penalty_changes >= self.max_penalty_changes:
            return
        weight = state.low_rank_weight + state.n_error_copies
        low_rank_square, consensus_square = self._sizes(state)
        multipliers = math.sqrt(measures.multiplier_square + state.low_rank_weight * low_rank_square)
        weighted = state.low_rank_weight * measures.low_rank_residual + measures.error_residual
        primal = math.sqrt(weighted / weight / consensus_square)
        dual = math.sqrt(weight * state.change) / max(multipliers, _TINY)
        factor = 2.0 if primal > _IMBALANCE * dual else 0.5 if dual > _IMBALANCE * primal else 1.0
        if factor != 1.0:
            state.penalty *= factor
            state.ratio = 1.0 / factor
            state.penalty_changes += 1


def projection_norm(n_states: int, shifts: FloatArray, clipped: FloatArray) -> float:
    """Return a bound on the nuclear norm of what the projection onto the simplex adds to a matrix.

    That is a matrix with equal entries in every row, which has rank one, and the rows that were clipped.

    Parameters
    ----------
    n_states : int
        Number of columns.
    shifts : ndarray of shape (n_samples,)
        What is subtracted from the rows.
    clipped : ndarray of shape (n_samples,)
        Norms of what would be negative after that.
    """
    return float(math.sqrt(n_states) * np.linalg.norm(shifts) + np.sum(clipped))


def gram_nuclear_norm(gram: FloatArray) -> float:
    """Return an upper bound on the sum of the singular values, from the Gram matrix."""
    with threads_for_blas(len(gram), least=_LARGE):
        squares = np.linalg.eigvalsh(gram)
    rounding = len(squares) * float(np.finfo(np.float64).eps) * squares[-1]
    return float(np.sqrt(np.maximum(squares, 0.0) + rounding).sum())


def _scaled_bound(state: SplitState, measures: Measures) -> float:
    """Return the dual bound of the current multipliers."""
    return state.multiplier_scale * measures.bound
