"""Plots on matplotlib axes, in colours that colour-blind readers can tell apart.

Every function takes what it draws (a fitted model, an assessment, an explanation) and, if wanted, the axes to draw on,
and returns the axes. What lacks something that a plot shows is refused in one line.
"""

from emvc.plot._explained import annotations, flow, markers, survival
from emvc.plot._model import (
    cluster_names,
    consensus,
    convergence,
    embedding,
    errors,
    evidence,
    plane_coordinates,
    tree,
    weights,
)
from emvc.plot._style import PALETTE

__all__ = [
    "PALETTE",
    "annotations",
    "cluster_names",
    "consensus",
    "convergence",
    "embedding",
    "errors",
    "evidence",
    "flow",
    "markers",
    "plane_coordinates",
    "survival",
    "tree",
    "weights",
]
