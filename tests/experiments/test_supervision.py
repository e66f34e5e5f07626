import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from emvc.experiments import supervision
from emvc.experiments.supervision import Limits, Supervisors, forget_peak, peak_memory

PLENTY = Limits(seconds=60.0, memory=8000.0)
LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the memory")


def double(number):
    return 2 * number


def sleep(seconds):
    time.sleep(seconds)


def take_memory(megabytes):
    block = np.ones(int(megabytes * 1e6 / 8))
    time.sleep(20.0)
    return len(block)


def die(signal_number):
    os.kill(os.getpid(), signal_number)


def pid(_):
    return os.getpid()


def test_one_process_serves_many_calls():
    with Supervisors(PLENTY, 1) as supervisors:
        assert [supervisors.call(double, number) for number in range(5)] == [0, 2, 4, 6, 8]
        assert supervisors.call(pid, None) == supervisors.call(pid, None) != os.getpid()


def test_what_takes_too_long_is_ended_and_the_next_call_served():
    with Supervisors(Limits(seconds=0.5, memory=8000.0), 1) as supervisors:
        assert supervisors.call(sleep, 60.0) == ("out of time", "ended after 0.5 s")
        assert supervisors.call(double, 4) == 8


@LINUX
def test_what_takes_too_much_memory_is_ended():
    with Supervisors(Limits(seconds=60.0, memory=900.0), 1) as supervisors:
        outcome, reason = supervisors.call(take_memory, 1500.0)
        assert (outcome, reason) == ("out of memory", "ended at more than 900 MB")


def test_a_process_that_dies_is_told_from_one_that_answers():
    """The system kills what has exhausted its memory; whatever else ends a process is a failure."""
    with Supervisors(PLENTY, 1) as supervisors:
        assert supervisors.call(die, signal.SIGKILL) == ("out of memory", "its process died with exit code -9")
        assert supervisors.call(die, signal.SIGTERM) == ("failed", "its process died with exit code -15")


@LINUX
def test_peak_memory_is_that_since_it_was_forgotten():
    forget_peak()
    before = peak_memory()
    block = np.ones(25_000_000)
    assert peak_memory() - before > 150.0
    del block
    forget_peak()
    assert peak_memory() - before < 150.0


ORPHAN = """
import sys, time
from emvc.experiments.supervision import Limits, Supervisors
sys.path.insert(0, sys.argv[1])
from test_supervision import pid
supervisors = Supervisors(Limits(60.0, 8000.0), 1)
print(supervisors.call(pid, None), flush=True)
time.sleep(60.0)
"""


@LINUX
def test_processes_end_with_the_one_that_started_them():
    folder = str(Path(__file__).parent)
    with subprocess.Popen([sys.executable, "-c", ORPHAN, folder], stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + 5.0
    while supervision._memory_of(child) > 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert supervision._memory_of(child) == 0
