r"""The certified solver on rows in blocks: the iteration of `emvc.solvers.admm` with sums in place of matrices.

Everything but the nuclear norm and the column groups is separate by rows, so a block of rows keeps its part of P, of
the transitions and of the points, and each iteration is one exchange:

* a block reports the Gram matrix :math:`V'V` of its part of the low-rank point (m x m numbers), the squared column
  norms of its points (K x m) and the squared change of P;
* the other side adds them up, thresholds: with :math:`V'V = W \Sigma^2 W'`, :math:`Q = V W (1 - t/\Sigma)_+ W'`, and
  answers with the two m x r factors behind Q and the shrinkage factors of the columns. Q itself is never stored.

A check needs one more exchange with the Gram matrices of X, the rows of Q projected onto the simplex, and of the
multiplier Z, from which follow the nuclear norm of X and a proven bound on :math:`\lVert Z\rVert_2`; both are formed in
double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from emvc import kernels
from emvc._array import BoolArray, FloatArray
from emvc.prox import shrinkage
from emvc.rows import Rows
from emvc.solvers._loop import Certificate
from emvc.solvers._split import Measures, SplitSolver, gram_nuclear_norm
from emvc.solvers._svt import Thresholded, gram_norm_bound

_GRAM_ROWS = 4096  # rows that are widened to double precision at a time
_SPARSE = 0.25  # share of entries up to which sparse matrices are smaller


@dataclass(kw_only=True)
class Block:
    """The rows of one block: data, and the solver's state once it has started."""

    transitions: Any
    """Shape (n_views, n_rows, n_states), or one sparse matrix per view: a row leads to few states."""
    observed: FloatArray
    """Shape (n_views, n_rows)."""
    clock: int = 0
    """Steps done; a message for another step than the next is refused."""
    consensus: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    low_rank_point: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    row_points: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))
    column_points: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))
    row_scale: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    thresholds: FloatArray = field(default_factory=lambda: np.empty(0))
    extra: Any = None
    """Whatever the caller wants to keep with the rows."""

    def chains(self) -> FloatArray:
        """Return the transitions as one array."""
        if isinstance(self.transitions, np.ndarray):
            return self.transitions
        shape = (len(self.transitions), *self.transitions[0].shape)
        dense = np.empty(shape, dtype=self.transitions[0].dtype)
        for chain, out in zip(self.transitions, dense, strict=True):
            chain.toarray(out=out)
        return dense

    def __sizeof__(self) -> int:
        """Bytes of the arrays: schedulers of clusters decide by it what to move."""
        total = 0
        for part in (self, self.extra):
            total += sum(value.nbytes for value in vars(part).values() if hasattr(value, "nbytes")) if part else 0
        if not isinstance(self.transitions, np.ndarray):
            total += sum(chain.data.nbytes + chain.indices.nbytes for chain in self.transitions)
        return total


@dataclass(frozen=True)
class StepMessage:
    """What a block needs to know for a step or a check."""

    clock: int
    factors: tuple[FloatArray, ...] | None
    """Q is V times all of them; None while Q = V."""
    column_scale: FloatArray
    observed_states: FloatArray
    row_threshold: FloatArray
    relaxation: float
    ratio: float
    low_rank_weight: float


@dataclass(frozen=True)
class StepSums:
    """What a block reports after a step."""

    gram: FloatArray
    column_squares: FloatArray
    change: float


@dataclass(frozen=True)
class CheckSums:
    """What a block reports for a check."""

    candidate_gram: FloatArray
    multiplier_gram: FloatArray
    row_norms: FloatArray
    column_squares: FloatArray
    shortened: FloatArray
    scalars: FloatArray
    """Dual bound, low-rank residual, group residual."""


def gram_of(matrix: FloatArray, other: FloatArray | None = None) -> FloatArray:
    """Return ``(matrix - other)'(matrix - other)`` in double precision, some rows at a time."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for first in range(0, len(matrix), _GRAM_ROWS):
        part = matrix[first : first + _GRAM_ROWS].astype(np.float64)
        if other is not None:
            part -= other[first : first + _GRAM_ROWS]
        total += part.T @ part
    return total


def _fast_gram(matrix: FloatArray) -> FloatArray:
    """Return ``matrix' matrix``, summed in double precision but multiplied in that of the matrix."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for first in range(0, len(matrix), _GRAM_ROWS):
        part = matrix[first : first + _GRAM_ROWS]
        total += part.T @ part
    return total


def pack(transitions: FloatArray) -> Any:
    """Return transitions in the smaller of two forms: as they are, or one sparse matrix per view."""
    if np.count_nonzero(transitions) > _SPARSE * transitions.size:
        return transitions
    return tuple(scipy.sparse.csr_array(chain) for chain in transitions)


def start_block(block: Block, message: tuple[FloatArray, bool, bool]) -> tuple[Block, None]:
    """Start from the mean of the views with zero multipliers."""
    weights, rows, columns = message
    transitions = block.chains()
    n_views, n_rows, _ = transitions.shape
    mean = np.zeros(transitions.shape[1:], dtype=transitions.dtype)
    for weight, chain in zip(weights / weights.sum(), transitions, strict=True):
        mean += transitions.dtype.type(weight) * chain
    block.consensus, block.low_rank_point = mean, mean.copy()
    block.row_points = transitions[: n_views if rows else 0] - mean
    block.column_points = transitions[: n_views if columns else 0] - mean
    block.row_scale = np.ones((len(block.row_points), n_rows))
    block.thresholds = np.zeros(n_rows)
    block.clock = 0
    return block, None


def _low_rank(block: Block, message: StepMessage) -> FloatArray:
    if block.clock != message.clock:
        raise RuntimeError(f"A block is at step {block.clock} but was asked to go on from step {message.clock}.")
    if message.factors is None:
        return block.low_rank_point.copy()
    low_rank = block.low_rank_point
    for factor in message.factors:
        low_rank = low_rank @ factor.astype(low_rank.dtype, copy=False)
    return np.asarray(low_rank)


def step_block(block: Block, message: StepMessage) -> tuple[Block, StepSums]:
    """Do the part of one iteration that is separate by rows."""
    low_rank = _low_rank(block, message)
    row_norms, column_norms, change = kernels.fused.sweep(
        block.chains(), block.consensus, block.low_rank_point, low_rank, block.row_points, block.row_scale,
        block.column_points, message.column_scale, block.thresholds, block.observed, message.observed_states,
        relaxation=message.relaxation, ratio=message.ratio, low_rank_weight=message.low_rank_weight,
    )  # fmt: skip
    block.row_scale = shrinkage(row_norms, message.row_threshold[: len(row_norms), None])
    block.clock += 1
    return block, StepSums(_fast_gram(block.low_rank_point), column_norms**2, change)


def check_block(block: Block, message: StepMessage) -> tuple[Block, CheckSums]:
    """Return the sums behind objective, dual bound and residuals."""
    low_rank = _low_rank(block, message)
    sums = kernels.fused.evaluate(
        block.chains(), block.consensus, block.low_rank_point, low_rank, block.row_points, block.row_scale,
        block.column_points, message.column_scale, block.observed, message.observed_states,
        row_weights=message.row_threshold, low_rank_weight=message.low_rank_weight,
    )  # fmt: skip
    return block, CheckSums(
        candidate_gram=gram_of(kernels.fused.project_simplex(low_rank)),
        multiplier_gram=gram_of(block.low_rank_point, low_rank),
        row_norms=sums.row_norms.sum(axis=1),
        column_squares=sums.column_norms**2,
        shortened=np.sum(block.row_scale < 1.0, axis=1),
        scalars=np.array([sums.bound, sums.low_rank_residual, sums.group_residual]),
    )


def finish_block(block: Block, message: StepMessage) -> tuple[Block, None]:
    """Keep the consensus, exactly row-stochastic, and drop everything else of the solver and the data."""
    block.consensus = kernels.fused.project_simplex(_low_rank(block, message))
    block.consensus /= block.consensus.sum(axis=1, keepdims=True)
    nothing = np.empty((0, 0, 0), dtype=block.consensus.dtype)
    block.transitions = block.row_points = block.column_points = nothing
    block.low_rank_point = np.empty((0, 0), dtype=block.consensus.dtype)
    return block, None


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """The problem of `emvc.problem.Problem` with rows in blocks.

    Parameters
    ----------
    rows : Rows
        Blocks of type `Block` with the transitions and masks of their rows.
    shape : tuple of int
        Number of samples and of states.
    beta, lam : float
        Weights of the row and the column groups.
    view_weights : ndarray of shape (n_views,)
        Positive factors of both weights.
    observed_states : ndarray of shape (n_views, n_states)
        One where a state is observed in a view, zero elsewhere.
    """

    rows: Rows
    shape: tuple[int, int]
    beta: float
    lam: float
    view_weights: FloatArray
    observed_states: FloatArray


@dataclass(kw_only=True)
class BlockState:
    """What changes from one iteration to the next outside the blocks (compare `emvc.solvers._split.SplitState`)."""

    column_scale: FloatArray
    penalty: float
    n_error_copies: int
    low_rank_weight: float
    factors: tuple[FloatArray, ...] | None = None
    clock: int = 0
    spectrum: Thresholded = field(default_factory=lambda: Thresholded(0.0, 0))
    ratio: float = 1.0
    change: float = np.inf
    penalty_changes: int = 0
    bound: float = -np.inf
    measures: Measures | None = None
    objective: float = np.inf
    wait: int = 0
    gap: float = np.inf
    wide: bool = False
    exact: bool = False
    unbalanced: int = 0
    candidate_gram: FloatArray | None = None
    multiplier_gram: FloatArray | None = None

    @property
    def multiplier_scale(self) -> float:
        """The penalty of the last step, by which the scaled multipliers of the state are to be multiplied."""
        return self.penalty * self.ratio


@dataclass(frozen=True)
class BlockADMM(SplitSolver[Any]):
    """The certified solver of `BlockProblem`; its parameters are those of `SplitSolver`.

    ``Solution.consensus`` is empty: the consensus stays in the blocks.
    """

    def init(self, problem: BlockProblem, rng: np.random.Generator) -> BlockState:
        """Start from the mean of the views with zero multipliers."""
        del rng  # the start is not random
        n_views, n_states = problem.observed_states.shape
        rows, columns = problem.beta > 0, problem.lam > 0
        problem.rows.apply(start_block, (problem.view_weights, rows, columns))
        n_copies = n_views * (int(rows) + int(columns))
        return BlockState(
            column_scale=np.ones((n_views if columns else 0, n_states)),
            penalty=self._first_penalty(self._first_weight(problem)),
            n_error_copies=n_copies,
            low_rank_weight=float(max(1, n_copies)),
        )

    def _message(self, problem: BlockProblem, state: BlockState) -> StepMessage:
        return StepMessage(
            clock=state.clock,
            factors=state.factors,
            column_scale=state.column_scale,
            observed_states=problem.observed_states,
            row_threshold=problem.beta * problem.view_weights / state.penalty,
            relaxation=self.relaxation,
            ratio=state.ratio,
            low_rank_weight=state.low_rank_weight,
        )

    def step(self, problem: BlockProblem, state: BlockState) -> BlockState:
        """Do one iteration: rows in the blocks, then columns and singular values from their sums."""
        sums = problem.rows.apply(step_block, self._message(problem, state))
        state.clock += 1
        state.ratio = 1.0
        state.change = sum(part.change for part in sums)
        column_norms = np.sqrt(sum(part.column_squares for part in sums))
        thresholds = problem.lam * problem.view_weights[: len(column_norms), None] / state.penalty
        state.column_scale = shrinkage(column_norms, thresholds)
        step = 1.0 / (state.penalty * state.low_rank_weight)
        state.factors, state.spectrum = threshold_gram(sum(part.gram for part in sums), step)
        state.candidate_gram = state.multiplier_gram = state.measures = None
        return state

    def _survey(self, problem: Any, state: Any) -> None:
        """Do nothing: thresholding is as cheap as it is exact."""

    def _presume(self, state: Any) -> None:
        """Do nothing: thresholding is exact."""

    def _measure(self, problem: BlockProblem, state: BlockState) -> Measures:
        parts = problem.rows.apply(check_block, self._message(problem, state))
        state.candidate_gram = sum(part.candidate_gram for part in parts)
        state.multiplier_gram = sum(part.multiplier_gram for part in parts)
        bound, residual, groups = (float(value) for value in sum(part.scalars for part in parts))
        row_norms = sum(part.row_norms for part in parts)
        column_norms = np.sqrt(sum(part.column_squares for part in parts)).sum(axis=1)
        weights = problem.view_weights
        squares = (weights / state.penalty) ** 2
        n_rows = sum(part.shortened for part in parts)
        n_columns = np.sum(state.column_scale < 1.0, axis=1)
        full = problem.beta**2 * float(n_rows @ squares[: len(n_rows)])
        full += problem.lam**2 * float(n_columns @ squares[: len(n_columns)])
        return Measures(
            error_penalty=float(weights @ (problem.beta * row_norms + problem.lam * column_norms)),
            bound=bound,
            multiplier_square=full,
            low_rank_residual=residual,
            low_rank_distance=math.nan,  # the nuclear norm is exact
            error_residual=groups,
        )

    def _first_weight(self, problem: BlockProblem) -> float:
        n_samples, n_states = problem.shape
        # Singular values grow with sqrt(N / m), and so do the columns but not the rows.
        ratio = math.sqrt(n_samples / n_states)
        return max(problem.beta * ratio, problem.lam) / math.sqrt(ratio)

    def _upper_bound(self, problem: Any, state: Any, measures: Measures, *, end: bool = False) -> float:
        del problem, end  # always exact: the Gram matrix is there
        return float(gram_nuclear_norm(state.candidate_gram) + measures.error_penalty)

    def _proven_norm(self, state: Any) -> float:
        """Return a proven bound on the largest singular value of Z."""
        scale = state.multiplier_scale * state.low_rank_weight
        gram = scale**2 * state.multiplier_gram
        most = float(np.sqrt(np.trace(gram)))
        norm: float | None = gram_norm_bound(gram)
        return most if norm is None else norm

    def _sizes(self, state: Any) -> tuple[float, float]:
        return float(np.trace(state.multiplier_gram)), float(np.trace(state.candidate_gram))

    def _certify(self, problem: Any, state: Any, measures: Measures, objective: float, *, end: bool = False) -> None:
        del problem, objective, end  # thresholding is exact, so its proof never fails
        bound = state.multiplier_scale * measures.bound
        state.bound = max(state.bound, bound / max(1.0, self._proven_norm(state)))

    def finish(self, problem: Any, state: Any) -> Certificate:
        """Certify the end and leave the consensus, exactly row-stochastic, in the blocks."""
        measures = state.measures if state.measures is not None else self._measure(problem, state)
        objective = self._upper_bound(problem, state, measures, end=True)
        self._certify(problem, state, measures, objective, end=True)
        problem.rows.apply(finish_block, self._message(problem, state))
        return Certificate(np.empty((0, problem.shape[1])), objective, state.bound, state.spectrum.rank)


def threshold_gram(gram: FloatArray, threshold: float) -> tuple[tuple[FloatArray, ...], Thresholded]:
    r"""Return factors with :math:`Q = V A B` the thresholded V, from its Gram matrix, and the spectrum of Q.

    They are two of r columns and rows, or their product where that is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = np.diag([3.0, 1.0])
    >>> factors, spectrum = threshold_gram(matrix.T @ matrix, 2.0)
    >>> np.linalg.multi_dot([matrix, *factors]).round(12), spectrum.rank
    (array([[1., 0.],
           [0., 0.]]), 1)
    """
    squares, vectors = scipy.linalg.eigh(gram, check_finite=False, driver="evd")
    above: BoolArray = squares > threshold**2
    values, vectors = np.sqrt(squares[above]), vectors[:, above]
    shrunk = vectors * (1.0 - threshold / values)
    factors = (shrunk, vectors.T) if 2 * len(values) <= len(gram) else (shrunk @ vectors.T,)
    return factors, Thresholded(float(np.sum(values - threshold)), len(values))
