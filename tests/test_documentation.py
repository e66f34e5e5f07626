"""The documentation names what is public, and its examples can be shown in the gallery."""

import inspect
import os
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import emvc

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
LISTED = set(re.findall(r"^   ~?(emvc\.\w+)$", REFERENCE, flags=re.MULTILINE))
# The command line and what it alone uses, the hot loops, and the estimators, which are listed as names of emvc.
INTERNAL = {"cli", "demo", "layout", "kernels", "estimators"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TUTORIALS = sorted((ROOT / "tutorials").glob("*.py"))


def test_every_public_module_and_name_is_in_the_reference():
    modules = {module.name for module in pkgutil.iter_modules(emvc.__path__) if not module.name.startswith("_")}
    names = {name for name in emvc.__all__ if not name.startswith("_")}
    assert {f"emvc.{name}" for name in modules - INTERNAL | names} == LISTED


def test_every_function_for_users_has_an_example():
    """Doctests run them; those that need data or a network are in the tutorials."""
    elsewhere = {emvc.datasets.load, emvc.datasets.fetch, emvc.board, emvc.open_views}
    modules = (emvc, emvc.datasets, emvc.plot, emvc.report)
    named = {getattr(module, name) for module in modules for name in module.__all__}
    functions = [thing for thing in named - elsewhere if inspect.isfunction(thing)]
    assert len(functions) > 25
    assert [function.__name__ for function in functions if ">>>" not in (function.__doc__ or "")] == []


@pytest.mark.parametrize("path", EXAMPLES + TUTORIALS, ids=lambda path: path.stem)
def test_examples_have_a_title_and_cells(path):
    text = path.read_text(encoding="utf-8")
    title = re.match(r'"""\n(.+)\n(=+)\n\n', text)
    assert title is not None
    assert len(title[1]) == len(title[2])
    assert "\n# %%\n" in text


def test_examples_need_no_files_and_no_network():
    assert EXAMPLES
    forbidden = re.compile(r"datasets import .*\b(load|fetch)\b|EMVC_DATA|https?://")
    assert [path.name for path in EXAMPLES if forbidden.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run_and_find_what_is_known(path, capsys, monkeypatch):
    if not (Path(os.environ.get("EMVC_DATA", "")) / "board").is_dir():
        pytest.skip("the data of the tutorials are not on this machine (EMVC_DATA)")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    runpy.run_path(str(path))
    told = capsys.readouterr().out
    wanted = {"breast_cancer": "95.3% of 150", "sensors": "as recorded: agreement with the activities (ARI) 1.00"}
    assert wanted.get(path.stem, "kind course: 95%") in told


def test_every_constant_of_the_method_is_explained():
    section = (ROOT / "docs" / "method.md").read_text(encoding="utf-8").split("## 9. Constants")[1]
    explained = set(re.findall(r"`(\w+)`", section))
    core = ROOT / "src" / "emvc"
    singles = ("_array.py", "cluster_count.py", "graphs.py", "cells.py", "prox.py", "spectral.py", "estimators/emvc.py")
    paths = [core / name for name in singles]
    paths += [path for folder in ("kernels", "method", "solvers") for path in (core / folder).glob("*.py")]
    number = re.compile(r"^(_?[A-Z][A-Z_]*(?:, _?[A-Z][A-Z_]*)*) = [(\d-]", flags=re.MULTILINE)
    for path in paths:
        for names in number.findall(path.read_text(encoding="utf-8")):
            found = set(names.split(", ")) - {"SOLVERS", "SCALES"}
            assert found <= explained, f"{path.name}: {found - explained}"
