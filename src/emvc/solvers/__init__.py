"""Solvers of the decomposition: the published algorithm and the certified one."""

from emvc.solvers._loop import Check, History, Progress, Solution, Status, run
from emvc.solvers.admm import ADMM
from emvc.solvers.alm import ALM
from emvc.solvers.entrywise import EntrywiseADMM, EntrywiseALM

__all__ = ["ADMM", "ALM", "Check", "EntrywiseADMM", "EntrywiseALM", "History", "Progress", "Solution", "Status", "run"]
