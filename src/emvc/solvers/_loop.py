"""The one loop that runs every solver, and the records it returns.

A solver is a frozen configuration with four methods: `init` makes a state, `step` advances it, `check` measures it
and says whether it is good enough, `finish` turns it into a certified result. Not converging is a `Status`, not an
exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeVar

import numpy as np

from emvc._threads import use_threads
from emvc.problem import Problem
from emvc.solvers.certificate import Certificate


class Status(Enum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_ITER = "reached max_iter"
    STALLED = "stopped by the published rule before the constraints were met"


@dataclass(frozen=True)
class Check:
    """Measurements of one iterate."""

    objective: float
    gap: float
    residual: float
    rank: int
    penalty: float
    done: Status | None = None


@dataclass
class History:
    """Measurements along the run, one entry per check.

    ``objective`` and ``gap`` are running estimates, from an upper bound on the objective and a bound not yet proven
    (NaN for a solver without one); the certified figures are those of the `Solution`.
    """

    iteration: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    penalty: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def append(self, iteration: int, check: Check, seconds: float) -> None:
        """Add the measurements of one iterate."""
        self.iteration.append(iteration)
        self.seconds.append(seconds)
        for name in ("objective", "gap", "residual", "rank", "penalty"):
            getattr(self, name).append(getattr(check, name))


@dataclass(frozen=True)
class Solution(Certificate):
    """Result of a solver: the certificate that it ended with, and how it got there.

    Attributes
    ----------
    n_iter : int
        Iterations done.
    status : Status
        Why the solver stopped.
    history : History
        Measurements along the run.
    """

    n_iter: int
    status: Status
    history: History

    def attributes(self) -> dict[str, Any]:
        """Return the solution as fitted attributes of an estimator."""
        return {
            "consensus_": self.consensus,
            "objective_": self.objective,
            "duality_gap_": self.gap,
            "rank_": self.rank,
            "n_iter_": self.n_iter,
            "status_": self.status.value,
            "history_": self.history,
        }


State = TypeVar("State")
Progress = Callable[[int, Check], None]
"""Called with the iteration and its measurements after every check."""


class Solver(Protocol[State]):
    """What `run` needs from a solver."""

    @property
    def check_every(self) -> int:
        """Iterations between two checks."""

    def init(self, problem: Problem, rng: np.random.Generator) -> State:
        """Return the first state."""

    def step(self, problem: Problem, state: State) -> State:
        """Return the next state; the old one may be overwritten."""

    def check(self, problem: Problem, state: State) -> Check:
        """Measure the state and decide whether to stop."""

    def finish(self, problem: Problem, state: State) -> Certificate:
        """Return consensus, objective and bound of the final state."""


def run(
    solver: Solver[State],
    problem: Problem,
    *,
    max_iter: int = 500,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Run ``solver`` on ``problem`` until it is satisfied or ``max_iter`` iterations are done.

    Examples
    --------
    >>> import numpy as np
    >>> from emvc.problem import Problem
    >>> from emvc.solvers import ADMM, run
    >>> problem = Problem(np.stack([np.eye(4), np.eye(4)]), beta=1.0, lam=1.0)
    >>> solution = run(ADMM(tol=1e-6), problem)
    >>> solution.status.value, solution.gap <= 1e-6
    ('converged', True)
    """
    history, status, iteration = History(), Status.MAX_ITER, 0
    start = time.perf_counter()
    with use_threads():
        state = solver.init(problem, rng if rng is not None else np.random.default_rng(0))
        for iteration in range(1, max_iter + 1):
            state = solver.step(problem, state)
            if iteration % solver.check_every and iteration != max_iter:
                continue
            check = solver.check(problem, state)
            history.append(iteration, check, time.perf_counter() - start)
            if progress is not None:
                progress(iteration, check)
            if check.done is not None:
                status = check.done
                break
        end = solver.finish(problem, state)
    return Solution(end.consensus, end.objective, end.bound, end.rank, iteration, status, history)
