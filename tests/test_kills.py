"""A few of the runs that `make kills` ends."""

import os
import sys

import pytest

from killing import kill


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_runs_that_are_ended_leave_whole_results():
    names = ("save", "download") if "EMVC_DATA" in os.environ else ("save",)
    counts = kill(2, names=names, report=lambda _: None)
    assert sum(counts.values()) == 2
