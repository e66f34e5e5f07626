"""What a process has used."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_memory():
    """Return the peak memory of this process in bytes.

    That of `resource` begins, on Linux, with the memory of the process that started this one: a small fit that a large
    process has started would seem to need nothing.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
