"""Error-robust multi-view clustering with a certified optimum.

>>> from emvc import EMVC
>>> from emvc.datasets import make_paper_synthetic
>>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
>>> labels = EMVC(n_clusters=2, random_state=0).fit_predict(data.views)
>>> labels.shape
(100,)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emvc._version import __version__

if TYPE_CHECKING:
    from emvc import datasets, metrics, plot, report
    from emvc.estimators import (
        AMGL,
        EMVC,
        ETLMSC,
        GMC,
        LMVSC,
        NEMO,
        RMSC,
        SNF,
        BestSingleView,
        CoRegularized,
        FeatureConcatenation,
        KernelAddition,
    )
    from emvc.experiments.board.run import board
    from emvc.explanation import explain
    from emvc.files import read_views
    from emvc.intake.splitter import ViewSplitter
    from emvc.out_of_core import open_views
    from emvc.persistence import load
    from emvc.results import to_anndata, to_mudata
    from emvc.selection import select

__all__ = [
    "AMGL",
    "EMVC",
    "ETLMSC",
    "GMC",
    "LMVSC",
    "NEMO",
    "RMSC",
    "SNF",
    "BestSingleView",
    "CoRegularized",
    "FeatureConcatenation",
    "KernelAddition",
    "ViewSplitter",
    "__version__",
    "assess",
    "board",
    "datasets",
    "explain",
    "load",
    "metrics",
    "open_views",
    "plot",
    "read_views",
    "report",
    "select",
    "to_anndata",
    "to_mudata",
]

_ESTIMATORS = (
    *("AMGL", "EMVC", "ETLMSC", "GMC", "LMVSC", "NEMO", "RMSC", "SNF"),
    *("BestSingleView", "CoRegularized", "FeatureConcatenation", "KernelAddition"),
)
_MODULES = ("datasets", "metrics", "plot", "report")
_FUNCTIONS = {
    "ViewSplitter": "intake.splitter",
    "assess": "assessment",
    "board": "experiments.board.run",
    "explain": "explanation",
    "load": "persistence",
    "open_views": "out_of_core",
    "read_views": "files",
    "select": "selection",
    "to_anndata": "results",
    "to_mudata": "results",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: scikit-learn, numba and matplotlib take seconds that `emvc --version` need not wait for.
    if name in _ESTIMATORS:
        return getattr(importlib.import_module("emvc.estimators"), name)
    if name in _MODULES:
        return importlib.import_module(f"emvc.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"emvc.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module 'emvc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
