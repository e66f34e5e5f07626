"""What the guides and the README print runs as printed, on made-up files."""

import re
import shlex
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import emvc
from emvc import cli
from emvc.files import read_config
from messy import clean_views

ROOT = Path(__file__).parents[1]


def blocks(path, language):
    """Return the code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands(path):
    """Return the lines of a page that call the command line, without comments."""
    lines = [line.split(" #")[0].strip() for block in blocks(path, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("emvc ")]


def write_study(folder):
    """Write the files that the guides speak of: a study of 90 patients."""
    views, _ = clean_views()
    rng = np.random.default_rng(0)
    views["gene"].to_csv(folder / "genes.csv")
    views["lipid"].T.to_csv(folder / "lipids.tsv", sep="\t")
    clinic = views["clinic"].assign(sex=rng.choice(["f", "m"], 90), batch=7).mask(rng.random((90, 7)) < 0.03)
    clinic = clinic.rename(index=lambda name: name.replace("-", "_").lower())
    with pd.ExcelWriter(folder / "clinic.xlsx", engine="openpyxl") as book:
        pd.DataFrame({"about": ["one row per visit"]}).to_excel(book, sheet_name="read me", index=False)
        clinic.to_excel(book, sheet_name="visits")
    views["gene"].to_csv(folder / "proteins.csv", sep=";", decimal=",")
    np.savez(folder / "images.npz", pixels=views["lipid"].to_numpy())
    (folder / "new").mkdir()
    views["gene"].iloc[:12].to_csv(folder / "new" / "genes.csv")
    views["lipid"].iloc[:12].to_csv(folder / "new" / "lipids.csv")


@pytest.fixture
def study(tmp_path, monkeypatch):
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plain_report(monkeypatch):
    """Drawing and repeated fits take seconds, and are tested elsewhere."""
    monkeypatch.setattr("emvc.report.write_report", lambda _model, path, **_: path.write_text("a report"))
    monkeypatch.setattr("emvc.cli.cluster._MOST_ASSESSED", 0)


def run(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        cli.main(shlex.split(command)[1:])
    return stopped.value.code, capsys.readouterr()


@pytest.mark.parametrize("page", ["docs/files.md", "docs/faq.md", "README.md"])
@pytest.mark.usefixtures("study", "plain_report")
def test_every_command_runs_as_printed(page, capsys):
    found = commands(ROOT / page)
    assert found
    for command in found:
        code, shown = run(capsys, command)
        assert code == 0, f"{command}: {shown.err}"


def test_the_config_of_the_guide_is_one(study):
    (text,) = blocks(ROOT / "docs/files.md", "toml")
    (study / "study.toml").write_text(text)
    config = read_config(study / "study.toml")
    assert config.options == {"clusters": 3, "match_ids": "loose"}
    assert [Path(path).name for path in config.each] == ["clinic.xlsx", "proteins.csv"]


def test_the_guide_shows_what_check_prints(capsys, study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (printed,) = blocks(ROOT / "docs/files.md", "text")
    _, shown = run(capsys, commands(ROOT / "docs/files.md")[0])
    assert [line.rstrip() for line in shown.out.splitlines()] == [line.rstrip() for line in printed.splitlines()]
    assert (study / "genes.csv").exists()


def test_the_python_of_the_readme_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fewer = emvc.datasets.make_digits_views(n_samples=150)
    monkeypatch.setattr(emvc.datasets, "make_digits_views", lambda: fewer)
    names = {}
    with mpl.rc_context({"backend": "agg"}):
        for block in blocks(ROOT / "README.md", "python"):
            exec(compile(block, "README.md", "exec"), names)
    assert len(names["model"].labels_) == 150
    assert (tmp_path / "model.emvc").exists()
