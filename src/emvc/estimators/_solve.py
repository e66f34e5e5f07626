"""Running a solver for an estimator: progress bar, interruption, warning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_memory

from emvc.solvers import Check, Progress, Solution, Status, run


@contextmanager
def _progress_bar(*, name: str, verbose: int, max_iter: int, tol: float) -> Iterator[Progress | None]:
    """Yield a callback that shows iteration, gap and rank on standard error, or None when not ``verbose``."""
    if not verbose:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    from emvc._terminal import Console

    columns = (
        TextColumn(name),
        BarColumn(),
        TextColumn("iteration {task.fields[iteration]}  {task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("solve", total=1.0, iteration=0, detail="")
        first: float | None = None

        def update(iteration: int, check: Check) -> None:
            nonlocal first
            measure = check.residual if math.isnan(check.gap) else check.gap
            first = measure if first is None else first
            label = "residual" if math.isnan(check.gap) else "gap"
            span = math.log(max(first, 1e-300) / tol) or 1.0
            share = max(iteration / max_iter, math.log(first / max(measure, 1e-300)) / span if measure else 1.0)
            bar.update(
                task,
                completed=min(max(share, 0.0), 1.0),
                iteration=iteration,
                detail=f"{label} {measure:.1e}  rank {check.rank}",
            )

        yield update


def solve(
    solver: Any, problem: Any, *, name: str, max_iter: int, memory: Any, verbose: int, stacklevel: int = 4
) -> Solution:
    """Run ``solver``, show its progress, and warn when it ran out of iterations.

    The result depends on solver, problem and ``max_iter`` alone, so ``memory`` may hand out an earlier one.

    Raises
    ------
    KeyboardInterrupt
        With a message that says how far the estimator ``name`` had come.
    """
    reached = 0
    try:
        with _progress_bar(name=name, verbose=verbose, max_iter=max_iter, tol=solver.tol) as show:

            def progress(iteration: int, check: Check) -> None:
                nonlocal reached
                reached = iteration
                if show is not None:
                    show(iteration, check)

            remembered = check_memory(memory).cache(run, ignore=["progress"])
            solution: Solution = remembered(solver, problem, max_iter=max_iter, progress=progress)
    except KeyboardInterrupt:
        message = f"{name} was interrupted after about {reached} iterations; nothing was fitted."
        raise KeyboardInterrupt(message) from None
    if solution.status is Status.MAX_ITER:
        warnings.warn(
            f"{name} reached max_iter={max_iter} with a duality gap of {solution.gap:.1e} and a constraint residual "
            f"of {solution.history.residual[-1]:.1e}. Raise max_iter, or tol if that is close enough.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    return solution
