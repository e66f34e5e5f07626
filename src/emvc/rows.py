"""Blocks of rows: data that is cut along the samples, and tasks that run on every piece.

A task is a function of a block and a message that returns the block, usually changed in place, and a result. Messages
and results are small (nothing in them grows with the number of samples); blocks stay where they are. `LocalRows` keeps
them in a list, `emvc.distributed.ClusterRows` on the workers of a cluster: the same tasks run on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

Task = Callable[[Any, Any], tuple[Any, Any]]


class Rows(Protocol):
    """What solvers and estimators need from data in blocks."""

    def apply(self, task: Task, message: Any) -> list[Any]:
        """Run a task on every block and return the results in the order of the blocks."""
        ...


class LocalRows:
    """Blocks in the memory of this process.

    Examples
    --------
    >>> rows = LocalRows([[1, 2], [3]])
    >>> rows.apply(lambda block, factor: (block, factor * sum(block)), 10)
    [30, 30]
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks = list(blocks)

    def apply(self, task: Task, message: Any) -> list[Any]:
        """Run a task on every block and return the results in the order of the blocks."""
        results = []
        for position, block in enumerate(self.blocks):
            self.blocks[position], result = task(block, message)
            results.append(result)
        return results
