"""Experiments: a declarative grid, a runner that survives being killed, and the records it leaves."""

from emvc.experiments.grid import Cell, make_grid
from emvc.experiments.runner import read_records, run_cells

__all__ = ["Cell", "make_grid", "read_records", "run_cells"]
