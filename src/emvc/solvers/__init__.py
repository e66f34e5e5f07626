"""Solvers of the decomposition: the published algorithm and the certified one."""

from emvc.solvers._loop import Check, History, Progress, Solution, Status, run
from emvc.solvers.admm import ADMM
from emvc.solvers.alm import ALM

__all__ = ["ADMM", "ALM", "Check", "History", "Progress", "Solution", "Status", "run"]
