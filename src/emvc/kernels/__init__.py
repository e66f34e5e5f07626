"""The hot loops, twice with the same signatures.

``reference`` is plain array API code, readable and valid for any backend; ``fused`` makes one pass over the memory
for NumPy arrays. ``neighbors`` has what is done once per graph, ``rows`` the fusion of
chains, ``seeding`` the start of k-means. What is not plain is
compiled when first used and cached on disk.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emvc.kernels import fused, neighbors, reference, rows, seeding

_loading = threading.Lock()

__all__ = ["fused", "neighbors", "reference", "rows", "seeding"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:  # numba takes longer to import than everything else together
        with _loading:  # by one thread: imports of numba that meet its compiler can wait for each other forever
            return importlib.import_module(f"emvc.kernels.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
