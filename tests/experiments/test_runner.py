import random
import signal
import sqlite3
import subprocess
import sys
import time

import joblib
import pytest

from emvc.experiments import Cell, grid, make_grid, methods, read_records, run_cells, runner

FAST = {"feature concatenation": {"n_init": [1, 2]}, "kernel addition": {"n_init": [1]}}
VARYING = ("seconds", "finished")


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    make = methods.datasets.make_paper_synthetic
    monkeypatch.setattr(methods.datasets, "make_paper_synthetic", lambda random_state: make(15, random_state))


def stable(records):
    """Records without what differs from run to run, by key."""
    return {r["key"]: {name: value for name, value in r.items() if name not in VARYING} for r in records}


def test_grid_combines_everything():
    cells = make_grid(
        ["synthetic", "digits"],
        {"EMVC": {"beta": [0.1, 1.0], "lam": [0.1, 1.0]}, "AMGL": {}},
        errors=[("none", 0.0), ("noise", 0.1)],
        seeds=range(3),
    )
    assert len(cells) == 2 * 2 * (4 + 1) * 3
    assert len({cell.key for cell in cells}) == len(cells)


def test_identity_does_not_depend_on_the_order_of_options():
    one = Cell("synthetic", "EMVC", parameters={"beta": 1.0, "lam": 2.0})
    other = Cell("synthetic", "EMVC", parameters={"lam": 2.0, "beta": 1.0})
    assert one.key == other.key
    assert one.key != Cell("synthetic", "EMVC", seed=1, parameters={"beta": 1.0, "lam": 2.0}).key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "mnist"}, "Unknown data set 'mnist'; choose from 100leaves"),
        ({"method": "magic"}, "Unknown method 'magic'; choose from AMGL"),
        ({"error": "typo"}, "Unknown error 'typo'; choose from entries"),
    ],
)
def test_unknown_names(options, message):
    with pytest.raises(ValueError, match=message):
        Cell(**{"dataset": "synthetic", "method": "EMVC"} | options)


@pytest.mark.parametrize("error", sorted(methods.ERRORS))
def test_every_error_and_method_runs(error, tmp_path):
    cells = make_grid(["synthetic"], {name: {} for name in methods.METHODS}, errors=[(error, 0.1)], seeds=[0])
    records = run_cells(cells, tmp_path / "records.db")
    assert [record["failure"] for record in records] == [None] * len(methods.METHODS)
    assert all(0 <= record["accuracy"] <= 1 and record["seconds"] > 0 for record in records)
    gaps = {record["method"]: record["gap"] for record in records}
    assert gaps["EMVC"] <= 1e-3
    assert gaps["AMGL"] is None


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch):
    cells = make_grid(["synthetic"], FAST, seeds=range(2))
    first = run_cells(cells, tmp_path / "records.db")
    monkeypatch.setattr(runner, "run_cell", lambda _: pytest.fail("run again"))
    assert run_cells(cells, tmp_path / "records.db") == first
    assert read_records(tmp_path / "records.db") == first


def test_failures_are_recorded_and_tried_again(tmp_path, monkeypatch):
    cells = make_grid(["synthetic"], {"EMVC": {"beta": [-1.0]}, "kernel addition": {}}, seeds=[0])
    records = run_cells(cells, tmp_path / "records.db")
    assert "beta must be finite and at least 0" in records[0]["failure"]
    assert records[0]["accuracy"] is None
    assert records[1]["failure"] is None
    repaired = dict(methods.METHODS, EMVC=lambda n, beta, **options: methods.EMVC(n, beta=abs(beta), **options))
    monkeypatch.setattr(grid, "METHODS", repaired)
    records = run_cells(cells, tmp_path / "records.db")
    assert [record["failure"] for record in records] == [None, None]
    assert len(read_records(tmp_path / "records.db")) == 2


@pytest.mark.parametrize("backend", ["threading", "sequential", "loky"])
def test_backend_is_the_callers_choice(backend, tmp_path, monkeypatch):
    monkeypatch.undo()  # other processes would not see the smaller data
    cells = make_grid(["synthetic"], FAST, seeds=range(2))
    expected = stable(run_cells(cells, tmp_path / "plain.db"))
    with joblib.parallel_config(backend, n_jobs=2):
        assert stable(run_cells(cells, tmp_path / f"{backend}.db")) == expected


def test_backend_that_cannot_stream_gets_batches(tmp_path, monkeypatch):
    class Stubborn(joblib.Parallel):
        def __init__(self, *, return_as="list", **options):
            if return_as != "list":
                raise ValueError("this backend does not support generators")
            super().__init__(**options)

    cells = make_grid(["synthetic"], FAST, seeds=range(3))
    expected = stable(run_cells(cells, tmp_path / "plain.db"))
    monkeypatch.setattr(runner, "Parallel", Stubborn)
    assert stable(run_cells(cells, tmp_path / "batches.db")) == expected


def test_progress_is_reported(tmp_path):
    cells, seen = make_grid(["synthetic"], FAST, seeds=range(2)), []
    run_cells(cells[:2], tmp_path / "records.db")
    run_cells(cells, tmp_path / "records.db", report=lambda done, total, _: seen.append((done, total)))
    assert seen == [(3, 6), (4, 6), (5, 6), (6, 6)]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="There are no records at"):
        read_records(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(ValueError, match=r"text\.db is not a file of records"):
        run_cells([], tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("CREATE TABLE records (key TEXT)")
    connection.close()
    with pytest.raises(ValueError, match=r"old\.db holds records of another version"):
        run_cells([], tmp_path / "old.db")


KILLED_RUN = """
import sys
from emvc.experiments import make_grid, methods, run_cells
make = methods.datasets.make_paper_synthetic
methods.datasets.make_paper_synthetic = lambda random_state: make(15, random_state)
options = {"feature concatenation": {"n_init": [1, 2]}, "kernel addition": {"n_init": [1, 2, 3]}}
cells = make_grid(["synthetic"], options, seeds=range(40))
print("ready", flush=True)
run_cells(cells, sys.argv[1])
"""


def test_killed_ten_times_and_resumed_gives_the_records_of_an_undisturbed_run(tmp_path):
    command = [sys.executable, "-c", KILLED_RUN]
    subprocess.run([*command, str(tmp_path / "calm.db")], check=True, capture_output=True)
    expected = stable(read_records(tmp_path / "calm.db"))
    assert len(expected) == 200
    moments, interrupted = random.Random(0), 0
    for _ in range(10):
        with subprocess.Popen([*command, str(tmp_path / "killed.db")], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(moments.uniform(0.0, 0.15))
            process.send_signal(signal.SIGKILL)
            interrupted += process.wait() == -signal.SIGKILL
    assert interrupted >= 5
    subprocess.run([*command, str(tmp_path / "killed.db")], check=True, capture_output=True)
    records = read_records(tmp_path / "killed.db")
    assert len(records) == 200
    assert stable(records) == expected
