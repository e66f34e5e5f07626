"""A few hundred of the damaged files of `make fuzz`."""

import sys

import pytest

from fuzzing import fuzz


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is told by Linux")
def test_damaged_files_are_one_line_each(tmp_path):
    findings, figures = fuzz(150, seed=1, keep=tmp_path / "findings")
    assert findings == []
    assert sum(count for outcome, count in figures.items() if outcome.startswith(("read", "loaded"))) == 150
    assert figures["read"] > 5  # damage that matters to nobody: the rest of the file is as it was
    assert figures["read, refused"] > 50
