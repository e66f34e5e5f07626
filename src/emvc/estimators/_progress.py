"""Progress bar of a running solver."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from emvc.solvers import Check, Progress


@contextmanager
def progress_bar(*, verbose: int, max_iter: int, tol: float) -> Iterator[Progress | None]:
    """Yield a callback that shows iteration, gap and rank on standard error, or None when not ``verbose``."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("EMVC"),
        BarColumn(),
        TextColumn("iteration {task.fields[iteration]}  {task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("solve", total=1.0, iteration=0, detail="")
        first: list[float] = []

        def update(iteration: int, check: Check) -> None:
            measure = check.residual if math.isnan(check.gap) else check.gap
            first.append(measure)
            label = "residual" if math.isnan(check.gap) else "gap"
            span = math.log(max(first[0], 1e-300) / tol) or 1.0
            share = max(iteration / max_iter, math.log(first[0] / max(measure, 1e-300)) / span if measure else 1.0)
            bar.update(
                task,
                completed=min(max(share, 0.0), 1.0),
                iteration=iteration,
                detail=f"{label} {measure:.1e}  rank {check.rank}",
            )

        yield update
