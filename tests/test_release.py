"""What is said in several places about versions and dependencies is the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

from emvc import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project():
    if not (ROOT / ".github").is_dir():
        pytest.skip("the files of the repository are not here")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_recipe_and_project_agree(project):
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    assert f'version = "{__version__}"' in recipe
    wanted = {one.replace("matplotlib>=", "matplotlib-base>=") for one in project["dependencies"]}
    run = recipe.split("  run:\n")[1].split("  run_constrained")[0]
    found = {line.strip("- ").replace(" ", "") for line in run.splitlines() if line.strip()}
    assert found == wanted | {f"python{project['requires-python']}"}


def test_citation_has_the_version():
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_versions_that_run_code_are_excluded(project):
    """pyarrow 14.0.0 and numcodecs before 0.15.2 run code from files; each extra that brings them says so."""
    extras = project["optional-dependencies"]
    for name, wanted in (("pyarrow", "14.0.1"), ("numcodecs", "0.15.2")):
        floors = [one.split(">=")[1] for extra in extras.values() for one in extra if one.startswith(f"{name}>=")]
        assert floors
        assert set(floors) == {wanted}
    for extra in extras.values():
        assert any(one.startswith("numcodecs") for one in extra) == any(one.startswith("zarr") for one in extra)


def test_pythons_that_are_named_are_tested(project):
    named = {one.rsplit(" ", 1)[1] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tested = set(re.search(r"python: \[(.*)\]", workflow)[1].replace('"', "").split(", "))
    assert named <= tested
