"""The names that a grid is made of: data sets, errors and methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from emvc import datasets
from emvc.datasets import MultiViewDataset
from emvc.estimators import AMGL, EMVC, RMSC, BestSingleView, CoRegularized, FeatureConcatenation, KernelAddition

METHODS: dict[str, Callable[..., Any]] = {
    "best single view": BestSingleView,
    "feature concatenation": FeatureConcatenation,
    "kernel addition": KernelAddition,
    "co-regularised": CoRegularized,
    "AMGL": AMGL,
    "RMSC": RMSC,
    "EMVC": EMVC,
}

NEEDS_LABELS = frozenset({"best single view"})
"""Methods that are reported with a choice that only labels can make."""

ERRORS: dict[str, Callable[[Any, float, int], Any]] = {
    "none": lambda views, _level, _seed: views,
    "noise": lambda views, level, seed: datasets.add_noise(views, level, seed)[0],
    "entries": lambda views, level, seed: datasets.corrupt_entries(views, level, seed)[0],
    "samples": lambda views, level, seed: datasets.corrupt_samples(views, level, seed)[0],
    "samples per view": lambda views, level, seed: datasets.corrupt_samples(views, level, seed, same_samples=False)[0],
    "marginal": lambda views, level, seed: datasets.corrupt_samples(views, level, seed, values="marginal")[0],
    "mismatch": lambda views, level, seed: datasets.mismatch_samples(views, level, seed, views_hit=0)[0],
}


def dataset_names() -> frozenset[str]:
    """Return the names of the data sets, real and drawn."""
    return frozenset({"synthetic", "synthetic-small", "digits", *datasets.available()})


def is_drawn(name: str) -> bool:
    """Return whether a data set is drawn with the seed of the experiment."""
    return name.startswith("synthetic")


@lru_cache(maxsize=4)
def _fixed_dataset(name: str) -> MultiViewDataset:
    return datasets.make_digits_views() if name == "digits" else datasets.load(name)


def get_dataset(name: str, seed: int) -> MultiViewDataset:
    """Return a data set by name; the synthetic one is drawn with the seed."""
    if name == "synthetic":
        return datasets.make_paper_synthetic(random_state=seed)
    if name == "synthetic-small":
        return datasets.make_paper_synthetic(n_per_cluster=75, random_state=seed)
    return _fixed_dataset(name)
