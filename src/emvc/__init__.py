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
    from emvc import datasets, metrics, plot
    from emvc.estimators import (
        AMGL,
        EMVC,
        RMSC,
        BestSingleView,
        CoRegularized,
        FeatureConcatenation,
        KernelAddition,
    )
    from emvc.out_of_core import open_views
    from emvc.selection import select

__all__ = [
    "AMGL",
    "EMVC",
    "RMSC",
    "BestSingleView",
    "CoRegularized",
    "FeatureConcatenation",
    "KernelAddition",
    "__version__",
    "datasets",
    "metrics",
    "open_views",
    "plot",
    "select",
]

_ESTIMATORS = ("AMGL", "EMVC", "RMSC", "BestSingleView", "CoRegularized", "FeatureConcatenation", "KernelAddition")
_MODULES = ("datasets", "metrics", "plot")


def __getattr__(name: str) -> Any:
    # Imported on first use: scikit-learn, numba and matplotlib take seconds that `emvc --version` need not wait for.
    if name in _ESTIMATORS:
        return getattr(importlib.import_module("emvc.estimators"), name)
    if name in _MODULES:
        return importlib.import_module(f"emvc.{name}")
    if name == "select":
        return importlib.import_module("emvc.selection").select
    if name == "open_views":
        return importlib.import_module("emvc.out_of_core").open_views
    raise AttributeError(f"module 'emvc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
