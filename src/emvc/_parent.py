"""Worker processes end with the process that started them, however it ended.

This module imports nothing else of the package: libraries take seconds to load, and a worker has to watch from its
first moment on.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from typing import Any

_LOOK_EVERY = 0.5  # seconds

_watching = False


class Watch:
    """The first argument of `watched`: a process that receives it watches from then on, before it loads the others."""

    def __init__(self) -> None:
        self._parent = os.getpid()

    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        return end_with, (self._parent,)


def watched(watch: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, perhaps in another process, which then ends soon after the one that made the `Watch`."""
    del watch
    return function(*arguments)


def end_with(parent: int) -> None:
    """Have this process end soon after the one that started it, if that is the process ``parent``."""
    global _watching  # noqa: PLW0603
    if _watching or os.getpid() == parent:
        return
    if os.getppid() != parent:
        if multiprocessing.current_process().name.startswith(("LokyProcess", "SpawnProcess")):
            os._exit(1)  # it is gone already
        return  # a worker elsewhere, which others look after
    _watching = True

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
