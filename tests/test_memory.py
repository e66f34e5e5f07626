"""What counts as available memory: machine, containers of both kinds and nested ones, limits of the process."""

import subprocess
import sys

import pytest

from emvc import _memory
from emvc._memory import available_memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 16 GiB left; returns a function that writes files of the system."""
    monkeypatch.setattr(_memory, "_PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(_memory, "_GROUPS", tmp_path / "groups")

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text))

    write("proc/meminfo", f"MemTotal: 99 kB\nMemAvailable: {16 * 2**20} kB\n")
    return write


def test_a_machine_without_limits(machine):
    assert available_memory() == 16 * GIB
    machine("proc/self/cgroup", "0::/user.slice\n")
    machine("groups/user.slice/memory.max", "max\n")
    machine("groups/user.slice/memory.current", GIB)
    assert available_memory() == 16 * GIB


@pytest.mark.parametrize("limited", ["", "outer", "outer/inner"])
def test_the_least_of_nested_groups(limited, machine):
    machine("proc/self/cgroup", "0::/outer/inner\n")
    for group in ("", "outer", "outer/inner"):
        machine(f"groups/{group}/memory.max", 3 * GIB if group == limited else "max")
        machine(f"groups/{group}/memory.current", GIB)
    assert available_memory() == 2 * GIB


def test_files_kept_at_hand_are_free(machine):
    machine("proc/self/cgroup", "0::/\n")
    machine("groups/memory.max", 3 * GIB)
    machine("groups/memory.current", 3 * GIB)
    machine("groups/memory.stat", f"anon 5\ninactive_file {GIB}\n")
    assert available_memory() == GIB


def test_the_first_version_of_control_groups(machine):
    machine("proc/self/cgroup", "5:cpu:/x\n4:memory,hugetlb:/docker/0123\n")
    # A container sees its own group as the root, though its name is longer.
    machine("groups/memory/memory.limit_in_bytes", 2 * GIB)
    machine("groups/memory/memory.usage_in_bytes", GIB)
    assert available_memory() == GIB
    machine("groups/memory/memory.limit_in_bytes", 2**63 - 4096)
    assert available_memory() == 16 * GIB


def test_a_group_over_its_limit_has_nothing_left(machine):
    machine("groups/memory.max", GIB)
    machine("groups/memory.current", 2 * GIB)
    assert available_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are enforced by Linux")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process(limit):
    code = f"""
import resource
from emvc._memory import available_memory
resource.setrlimit(resource.{limit}, (3 * 2**30, 3 * 2**30))
print(available_memory() / 2**30)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 0.5 < float(done.stdout) < 3.0
