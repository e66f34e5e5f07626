"""What `import emvc` promises: its names, its speed, and what it leaves alone."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import emvc

OPTIONAL = ["torch", "cupy", "dask", "distributed", "zarr", "h5py", "plotly", "pyarrow", "mudata", "cvxpy"]
ROOT = Path(__file__).parents[1]


def test_exported_names_exist_and_nothing_else_is_listed():
    assert dir(emvc) == sorted(emvc.__all__)
    for name in emvc.__all__:
        assert getattr(emvc, name) is not None
    with pytest.raises(AttributeError, match="module 'emvc' has no attribute 'nothing'"):
        _ = emvc.nothing


def test_nothing_needs_an_optional_library():
    """scikit-learn may load pandas on its own, so the optional libraries are made unavailable instead."""
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from emvc import EMVC, datasets, metrics, plot
import emvc.cli, emvc.demo
emvc.demo.run_demo(n_samples=60)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plain_import_defers_the_slow_libraries():
    """`import emvc` must stay far below 1.5 s: nothing slow may be loaded by it."""
    code = "import emvc, sys, json; print(json.dumps(sorted(m for m in sys.modules if '.' not in m)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout))
    assert not {"numba", "sklearn", "scipy", "matplotlib", "numpy", "pandas", *OPTIONAL} & loaded


def test_core_dependencies_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {requirement.split(">")[0] for requirement in project["dependencies"]}
    assert not declared & set(OPTIONAL)
    assert {"numpy", "pandas", "scipy", "scikit-learn", "numba"} <= declared
