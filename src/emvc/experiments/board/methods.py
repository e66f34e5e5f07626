"""The methods of the board: the ladder, the peers and the baselines, all with the same scaled features.

No method sees a label. Those that are usually reported with the best of several parameters or views, chosen with
labels, run with their defaults here; those that start from graphs get the same ones as our own method
(``affinity="local"``), but for kernel addition, which is a sum of Gaussian kernels.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from emvc.estimators import (
    AMGL,
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
from emvc.experiments.board.ladder import LADDER

PEERS: dict[str, Callable[..., Any]] = {
    "NEMO": NEMO,
    "SNF": SNF,
    "GMC": GMC,
    "LMVSC": LMVSC,
    "ETLMSC": partial(ETLMSC, affinity="local"),
    "co-regularised": partial(CoRegularized, affinity="local"),
    "AMGL": partial(AMGL, affinity="local"),
    "RMSC": partial(RMSC, affinity="local"),
    "kernel addition": KernelAddition,
    "k-means on joined features": FeatureConcatenation,
    "k-means on one view": BestSingleView,
}
"""Methods of others, by name."""

METHODS: dict[str, Callable[..., Any]] = LADDER | PEERS
"""All methods of the board by name."""

GROUPS = {"all": tuple(METHODS), "ladder": tuple(LADDER), "peers": tuple(PEERS)}
"""Names for several methods at a time."""

UNDER_ERRORS = (*LADDER, "NEMO", "SNF")
"""Methods that the whole board runs under errors as well."""


def choose_methods(names: Iterable[str]) -> list[str]:
    """Return the names of methods, with those of `GROUPS` replaced by what they stand for.

    A name with a colon, ``package.module:Class``, is a method of your own: an estimator whose constructor takes the
    number of clusters and ``random_state``, with ``fit(views)`` and ``labels_``.
    """
    chosen: dict[str, None] = {}
    for name in names:
        members = GROUPS.get(name, (name,))
        for member in members:
            make_method(member)
            chosen[member] = None
    return list(chosen)


def make_method(name: str) -> Callable[..., Any]:
    """Return the constructor of a method by its name."""
    if name in METHODS:
        return METHODS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        known = ", ".join([*GROUPS, *METHODS])
        raise ValueError(f"Unknown method {name!r}; choose from {known}, or name your own as package.module:Class.")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"Method {name!r} cannot be imported: {error}.") from error
    return found
