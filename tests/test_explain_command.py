"""`emvc cluster --annotate` and `emvc report A B`: from files to named, explained clusters, and who moved."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from emvc.cli import app

run = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three views of 45 samples in three clusters, and what is known about the samples in another order."""
    where, rng = tmp_path_factory.mktemp("explain"), np.random.default_rng(0)
    labels, ids = np.repeat([0, 1, 2], 15), [f"s{i}" for i in range(45)]
    for name in ("gene", "protein", "sound"):
        values = rng.standard_normal((45, 9))
        for c in range(3):
            values[labels == c, 3 * c : 3 * c + 3] += 4
        lines = ["id," + ",".join(f"{name}{j}" for j in range(9))]
        lines += [f"{i}," + ",".join(f"{v:.4f}" for v in row) for i, row in zip(ids, values, strict=True)]
        (where / f"{name}.csv").write_text("\n".join(lines) + "\n")
    lines = ["age;patient;type;time;event"]
    lines += [
        f"{rng.normal(50, 9):.1f};{ids[i]};{'xyz'[labels[i]]};{rng.exponential():.2f};1" for i in rng.permutation(45)
    ]
    (where / "clinical.csv").write_text("\n".join(lines) + "\n")
    return where


@pytest.fixture(scope="module")
def result(folder):
    views = [str(folder / f"{name}.csv") for name in ("gene", "protein", "sound")]
    options = [
        "-k",
        "3",
        "-o",
        str(folder / "one"),
        "--no-assess",
        "--json",
        "--annotate",
        str(folder / "clinical.csv"),
    ]
    told = run.invoke(app, ["cluster", *views, *options, "--split", "--name-clusters"])
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_all_files_are_there_and_listed(folder, result):
    written = {path.name for path in (folder / "one").iterdir()}
    assert written == set(result["files"])
    assert {"markers.csv", "annotations.csv", "methods.txt"} <= written


def test_markers_are_significant_and_strongest_first(folder, result):
    assert result["n_clusters"] == 3
    found = rows(folder / "one" / "markers.csv")
    assert list(found[0]) == ["cluster", "view", "feature", "direction", "effect", "difference", "p", "fdr", "group"]
    assert all(float(row["fdr"]) <= 0.05 for row in found)
    for c in "012":
        effects = [abs(float(row["effect"])) for row in found if row["cluster"] == c]
        assert len(effects) >= 9
        assert effects == sorted(effects, reverse=True)


def test_annotations_are_joined_by_name_and_name_the_clusters(folder, result):
    first, *_ = rows(folder / "one" / "annotations.csv")
    assert (first["column"], first["test"]) == ("type", "chi-square")
    assert float(first["fdr"]) < 1e-6
    assert sum("“" in line for line in result["explanation"]) == 3
    page = (folder / "one" / "report.html").read_text(encoding="utf-8")
    assert 'id="annotations"' in page
    assert '"names":{"0":' in page
    named = {(row["label"], row["name"]) for row in rows(folder / "one" / "labels.csv")}
    assert sorted(name for _, name in named) == ["x", "y", "z"]


def test_the_methods_paragraph_names_settings_versions_and_the_reference(folder, result):
    text = (folder / "one" / "methods.txt").read_text()
    for part in ("45 samples described by 3 views (gene, protein, sound)", "3 clusters", "numpy", "Mann-Whitney",
                 "clusters found in the other views", "log-rank", "IEEE Big Data 2017"):  # fmt: skip
        assert part in text
    assert str(result["n_samples"]) in text


def test_a_run_without_annotations_has_markers_and_no_annotations(folder):
    views = [str(folder / f"{name}.csv") for name in ("gene", "sound")]
    told = run.invoke(app, ["cluster", *views, "-k", "2", "-o", str(folder / "two"), "--no-assess"])
    assert told.exit_code == 0, told.output
    assert "cluster 0: " in told.stdout
    assert not (folder / "two" / "annotations.csv").exists()
    assert (folder / "two" / "markers.csv").exists()


@pytest.mark.usefixtures("result")
def test_the_report_of_a_saved_model_explains_it_again(folder):
    told = run.invoke(app, ["report", str(folder / "one" / "model.emvc"), "-o", str(folder / "again.html")])
    assert told.exit_code == 0, told.output
    page = (folder / "again.html").read_text(encoding="utf-8")
    assert 'id="explained"' in page
    assert "Markers in protein" in page
    assert ">protein" in page  # by name


@pytest.mark.usefixtures("result")
def test_two_results_are_compared(folder):
    views = [str(folder / f"{name}.csv") for name in ("gene", "sound")]
    told = run.invoke(app, ["cluster", *views, "-k", "2", "-o", str(folder / "other"), "--no-assess", "-q"])
    assert told.exit_code == 0, told.output
    told = run.invoke(app, ["report", str(folder / "one"), str(folder / "other"), "-o", str(folder / "moved.html")])
    assert told.exit_code == 0, told.output
    page = (folder / "moved.html").read_text(encoding="utf-8")
    assert "15 of 45 samples moved" in page
    assert "“one”" in page
    assert "“other”" in page
    for models in (["one", "other"], ["other"]):  # what they leave beside the model is no reason to refuse --force
        told = run.invoke(app, ["report", *(str(folder / name) for name in models)])
        assert told.exit_code == 0, told.output
    assert {path.name for path in (folder / "other").glob("*.html")} == {"comparison.html", "model.html", "report.html"}
    options = ["-k", "2", "-o", str(folder / "other"), "--no-assess", "-q", "--force"]
    told = run.invoke(app, ["cluster", *views, *options])
    assert told.exit_code == 0, told.output
    assert {path.name for path in (folder / "other").glob("*.html")} == {"report.html"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b\n1,2\n", "no column names any of the samples, such as 's0'"), ("", "wrong.csv")],
)
def test_annotations_that_belong_to_other_samples_are_refused(folder, tmp_path, text, message):
    (tmp_path / "wrong.csv").write_text(text)
    views = [str(folder / "gene.csv"), str(folder / "sound.csv")]
    told = run.invoke(
        app, ["cluster", *views, "-k", "3", "-o", str(tmp_path / "r"), "--annotate", str(tmp_path / "wrong.csv")]
    )
    assert told.exit_code == 1
    assert message in " ".join(told.stderr.split())
    assert not (tmp_path / "r").exists()
