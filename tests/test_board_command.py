"""`emvc board`, from data sets to a page."""

import csv

import numpy as np
import pytest

import emvc
from emvc import cli
from emvc.experiments.board.run import board
from emvc.experiments.runner import read_records

FAST = ("k-means on joined features", "mean of graphs")
TABLES = {"board.html", "board.md", "board.csv", "records.csv", "records.sqlite"}
ALONE = {"critical-difference.png", "heat-map.png", "time-quality.png"}
UNDER_ERRORS = {"conditions.png"}


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["board", "--jobs", "1", *map(str, arguments)])
    return stopped.value.code, capsys.readouterr()


@pytest.fixture
def folder(tmp_path):
    """Two data sets of three clusters; the first family is known to belong to one half, the other to the second."""
    rng = np.random.default_rng(0)
    labels = np.arange(45) % 3
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("webkb_like", "tara_like"):
        views = {f"x{k}": 3 * rng.standard_normal((3, 5))[labels] + rng.standard_normal((45, 5)) for k in range(2)}
        np.savez(folder / f"{name}.npz", y=labels, **views)
    return folder


def test_from_data_sets_to_a_page(capsys, folder, tmp_path):
    target = tmp_path / "deep" / "out"
    options = ("-o", target, "--methods", ",".join(FAST), "--conditions", "clean, noise view", "--seeds", 2)
    code, shown = run(capsys, folder, *options)
    assert code == 0, shown.err
    assert {path.name for path in target.iterdir()} == TABLES | ALONE | UNDER_ERRORS
    text = (target / "board.md").read_text()
    assert text.strip() in shown.out
    assert "2 methods on 2 data sets (1 to choose, 1 to confirm), with 2 seeds and in 2 conditions: 24 runs." in text
    assert shown.out.strip().endswith(f"Page, tables and records are in {target}.")
    with (target / "board.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 2 * 3  # data sets, methods, and clean, noise and its oracle
    assert all(row["seeds"] == row["done"] == "2" for row in rows)
    assert all(float(row["nmi"]) > 0.8 for row in rows if row["error"] == "clean")
    assert len(read_records(target / "records.sqlite")) == 24
    assert "<h2>Quality under errors</h2>" in (target / "board.html").read_text()


def test_what_is_recorded_stays_unless_it_is_to_be_run_again(capsys, folder, tmp_path):
    options = (folder, "-o", tmp_path / "out", "--methods", ",".join(FAST), "--seeds", 1)
    assert run(capsys, *options)[0] == 0
    first = read_records(tmp_path / "out" / "records.sqlite")
    assert run(capsys, *options)[0] == 0
    assert read_records(tmp_path / "out" / "records.sqlite") == first
    assert run(capsys, *options, "--rerun", FAST[0])[0] == 0
    again = read_records(tmp_path / "out" / "records.sqlite")
    assert len(again) == len(first) == 4
    kept = [record for record in first if record["method"] == FAST[1]]
    assert [record for record in again if record["method"] == FAST[1]] == kept
    assert not [record for record in again if record["method"] == FAST[0] and record in first]


def test_an_earlier_version_is_compared_with(capsys, folder, tmp_path):
    options = (folder, "--methods", FAST[0], "--seeds", 1, "--quick")
    assert run(capsys, *options, "-o", tmp_path / "old")[0] == 0
    earlier = tmp_path / "old" / "records.sqlite"
    reference = f"{FAST[0]} (earlier)"
    code, shown = run(capsys, *options, "-o", tmp_path / "new", "--earlier", earlier, "--reference", reference)
    assert code == 0, shown.err
    row = next(line for line in shown.out.splitlines() if line.startswith(f"| {FAST[0]} |") and "0 / 0 / 2" in line)
    assert "+0.000" in row
    assert any(line.startswith(f"| {reference} |") and "reference" in line for line in shown.out.splitlines())


def test_one_half_alone(capsys, folder, tmp_path):
    code, shown = run(capsys, folder, "-o", tmp_path / "out", "--methods", FAST[0], "--quick", "--half", "confirm")
    assert code == 0
    assert "1 data set (0 to choose, 1 to confirm)" in shown.out
    assert [record["dataset"] for record in read_records(tmp_path / "out" / "records.sqlite")] == ["tara_like"]


def test_records_of_other_code_are_told(capsys, folder, tmp_path, monkeypatch):
    options = (folder, "-o", tmp_path / "out", "--methods", FAST[0], "--quick")
    assert run(capsys, *options)[0] == 0
    monkeypatch.setattr("emvc.experiments.board.run.revision", lambda _: "changed")
    code, shown = run(capsys, *options)
    assert code == 0
    said = f"2 records of {FAST[0]} were made by other code than this; --rerun '{FAST[0]}' makes them again."
    assert said in " ".join(shown.err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "Unknown method 'magic'; choose from all, ladder, peers, best graph,"),
        (["--conditions", "rain"], "Unknown condition 'rain'; choose from all, clean, destroyed 10 %,"),
        (["--half", "third"], "half must be choose or confirm, got 'third'."),
        (["--rerun", "magic", "--methods", FAST[0]], "Unknown method 'magic'; choose from"),
        (["--most-samples", "10"], "There is nothing to run: no data set is left."),
        (["--earlier", "nowhere.sqlite"], "There are no records at nowhere.sqlite."),
        (["--methods", FAST[0], "--quick", "--reference", "magic"], "The reference 'magic' has no records; choose"),
    ],
)
def test_what_cannot_be_is_one_line(arguments, message, capsys, folder, tmp_path):
    code, shown = run(capsys, folder, "-o", tmp_path / "out", *arguments)
    assert code == 1
    assert shown.err.splitlines()[-1].startswith(f"error: {message}")
    assert "Traceback" not in shown.err


def test_folders_without_data_sets_are_one_line(capsys, tmp_path):
    for path, message in ((tmp_path / "none", "There is no folder"), (tmp_path, "There is no data set (.npz or .mat)")):
        code, shown = run(capsys, path, "-o", tmp_path / "out")
        assert code == 1
        assert shown.err.splitlines()[-1].startswith(f"error: {message}")


def test_the_function_is_public():
    assert emvc.board is board
