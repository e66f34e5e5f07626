"""How much memory there is: of the machine, of the container, and of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 2**60  # what the first version of control groups says where there is no limit


def available_memory() -> int | None:
    """Return the bytes of memory that can be used without swapping, or None where the system does not tell.

    The least of what the machine has left, of what every control group has left that this process is in (a container
    may be nested in others), and of the limits of the process itself (``ulimit -v`` and ``-d``).

    Examples
    --------
    >>> available = available_memory()
    >>> available is None or available >= 0
    True
    """
    system = _of_the_system()
    candidates = [] if system is None else [system]
    candidates.extend(_of_groups())
    candidates.extend(_of_the_process())
    return max(0, min(candidates)) if candidates else None


def _of_the_system() -> int | None:
    try:
        with (_PROCESSES / "meminfo").open(encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None


def _of_groups() -> Iterator[int]:
    """Yield what is left in the control groups of this process and in those around them, of both versions."""
    try:
        lines = (_PROCESSES / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    places = {("", "/")} | {("memory", "/")}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            places.add(("memory" if controllers else "", path))
    for controller, path in sorted(places):
        root = _GROUPS / controller
        folder = root / path.strip("/")
        # A path may go beyond what is mounted here: groups that do not exist are passed over.
        for group in (folder, *folder.parents):
            if group.is_relative_to(root):
                yield from _left(group)


def _left(group: Path) -> Iterator[int]:
    """Yield what is left in one control group; files that are only kept at hand count as free."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with suppress(OSError, ValueError):  # no such group, or no limit
            most = int((group / limit).read_text(encoding="ascii"))
            if most < _UNLIMITED:
                yield most - int((group / used).read_text(encoding="ascii")) + _statistic(group, cache)


def _statistic(group: Path, name: str) -> int:
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


def _of_the_process() -> Iterator[int]:
    """Yield what the limits of this process leave."""
    try:
        import resource

        sizes = (_PROCESSES / "self" / "statm").read_text(encoding="ascii").split()
    except (ImportError, OSError):  # not on every system
        return
    page = os.sysconf("SC_PAGE_SIZE")
    for limit, used in ((resource.RLIMIT_AS, sizes[0]), (resource.RLIMIT_DATA, sizes[5])):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield most - int(used) * page
