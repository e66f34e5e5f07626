import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import emvc
from emvc.experiments.board.collection import find_sets
from emvc.experiments.board.conditions import CONDITIONS
from emvc.experiments.board.ladder import LADDER, STAGES
from emvc.experiments.board.methods import METHODS, UNDER_ERRORS, choose_methods
from emvc.experiments.board.run import BoardCell, board, changed_since, plan_board, revision
from emvc.experiments.runner import read_records, run_cell

FAST = ["k-means on joined features", "kernel addition"]
VARYING = ("seconds", "finished", "peak_memory")


def write_blobs(path, *, n=45, n_views=3, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    views = [2.5 * rng.standard_normal((3, 6))[labels] + rng.standard_normal((n, 6)) for _ in range(n_views)]
    if missing:
        views[0][:5] = np.nan
        views[1][10, 2] = np.nan
    np.savez(path, y=labels, **{f"x{k}": view for k, view in enumerate(views)})


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_blobs(folder / "easy.npz")
    write_blobs(folder / "holes.npz", seed=1, missing=True)
    return folder


@pytest.fixture
def easy(folder):
    return find_sets([folder / "easy.npz"])[0]


@pytest.fixture
def holes(folder):
    return find_sets([folder / "holes.npz"])[0]


def stable(records):
    return {r["key"]: {name: value for name, value in r.items() if name not in VARYING} for r in records}


def test_every_method_finds_clear_clusters_and_takes_what_is_missing(easy, holes):
    for name in METHODS:
        clear, gaps = (run_cell(BoardCell(entry, name)) for entry in (easy, holes))
        assert clear["failure"] is None, clear["failure"]
        assert gaps["failure"] is None, gaps["failure"]
        assert gaps["imputed"] == (name not in ("EMVC", "NEMO", *LADDER)), name
        assert clear["imputed"] == 0
        if name not in ("best graph", "k-means on one view", "RMSC"):
            assert clear["nmi"] > 0.8, name


PAIRS = [(name, oracle) for name in CONDITIONS for oracle in (False, True) if CONDITIONS[name].has_oracle or not oracle]


@pytest.mark.parametrize(("name", "oracle"), PAIRS)
def test_every_condition_runs(name, oracle, holes):
    record = run_cell(BoardCell(holes, "mean + joint", name, oracle))
    assert record["failure"] is None, record["failure"]
    assert (record["error"], record["oracle"], record["n_views"]) == (name, int(oracle), 3)


def test_rows_are_shuffled_with_the_seed(easy, monkeypatch):
    seen = []

    class Spy:
        def __init__(self, n_clusters, random_state):
            self.n_clusters, self.random_state = n_clusters, random_state

        def get_params(self, deep=False):  # noqa: ARG002
            return {}

        def fit(self, views, y):
            assert y is None
            seen.append(views[0].copy())
            self.labels_ = np.zeros(len(views[0]), dtype=int)

    monkeypatch.setitem(METHODS, "spy", Spy)
    monkeypatch.setattr("emvc.experiments.board.run.revision", lambda _: "")
    for seed in (0, 0, 1):
        assert run_cell(BoardCell(easy, "spy", seed=seed))["failure"] is None
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])
    stored = easy.read().views[0]
    assert not np.array_equal(seen[0], stored)
    assert sorted(map(tuple, seen[0])) == sorted(map(tuple, stored))


def test_records_keep_what_is_needed_to_judge(easy):
    record = run_cell(BoardCell(easy, "EMVC", "destroyed 10 %"))
    assert record["detection"] > 0.8
    assert 0.02 < record["flagged"] < 0.2
    assert record["gap"] <= 1e-3
    assert record["revision"] == revision("EMVC")
    assert json.loads(record["parameters"])["screen"] == "auto"
    assert (record["half"], record["kind"], record["n_samples"], record["n_clusters"]) == (easy.half, "other", 45, 3)


def test_samples_without_a_view_are_guessed(easy):
    record = run_cell(BoardCell(easy, "mean + joint", "destroyed 6 % everywhere", oracle=True))
    assert record["failure"] is None
    assert 0.9 < record["accuracy"] < 1.0


def test_the_whole_board_has_all_methods_clean_and_the_ladder_under_errors(easy):
    cells = plan_board([easy])
    clean = {(cell.method, cell.seed) for cell in cells if cell.condition == "clean"}
    assert clean == {(name, seed) for name in METHODS for seed in range(3)}
    errors = {(cell.method, cell.condition, cell.oracle) for cell in cells if cell.condition != "clean"}
    n_runs = sum(2 if condition.has_oracle else 1 for name, condition in CONDITIONS.items() if name != "clean")
    assert len(errors) == len(UNDER_ERRORS) * n_runs == len([c for c in cells if c.condition != "clean"])
    assert {method for method, _, _ in errors} == {*LADDER, "NEMO", "SNF"}


def test_each_stage_of_the_ladder_is_compared_with_another():
    assert [stage for stage, _ in STAGES] == list(LADDER)[1:]
    assert all(before in LADDER for _, before in STAGES)


def test_the_ladder_ends_with_the_method_as_shipped_and_its_own_mean_before_it(easy):
    data = easy.read()
    screened = LADDER["mean + joint + screening"](3, random_state=0).fit(data.views)
    shipped = LADDER["EMVC"](3, random_state=0).fit(data.views)
    assert type(shipped) is emvc.EMVC
    assert shipped.get_params() == emvc.EMVC(3, random_state=0).get_params()
    np.testing.assert_array_equal(screened.outliers_, shipped.outliers_)
    problem = screened.problem_
    assert np.isinf(problem.beta).all()
    mean = np.einsum("kij,ki->ij", problem.transitions, problem.weights / problem.weights.sum(axis=0))
    np.testing.assert_allclose(screened.consensus_, mean, atol=1e-6)


def test_unknown_names():
    with pytest.raises(ValueError, match="Unknown method 'magic'; choose from all, ladder, peers, best graph"):
        choose_methods(["magic"])
    with pytest.raises(ValueError, match="Method 'nowhere:Magic' cannot be imported: No module named 'nowhere'"):
        choose_methods(["nowhere:Magic"])
    with pytest.raises(ValueError, match="Unknown condition 'rain'; choose from all, clean"):
        plan_board([], conditions=["rain"])


def test_own_methods_are_named_by_their_module():
    assert choose_methods(["emvc.estimators:AMGL", "AMGL"]) == ["emvc.estimators:AMGL", "AMGL"]


def test_a_board_is_resumed_and_methods_can_be_run_again(folder, tmp_path):
    seen = []
    options = {"methods": FAST, "conditions": ["clean"], "seeds": 2, "n_jobs": 2}
    first = board(folder, tmp_path / "out", report=lambda *_: seen.append(1), **options)
    assert len(first) == len(seen) == 2 * 2 * 2
    assert {record["outcome"] for record in first} == {"done"}
    assert all(record["peak_memory"] > 10 for record in first)
    assert changed_since(first) == {}
    again = board(folder, tmp_path / "out", report=lambda *_: seen.append(1), **options)
    assert again == first
    assert len(seen) == 8
    fresh = board(folder, tmp_path / "out", rerun=FAST[:1], report=lambda *_: seen.append(1), **options)
    assert len(seen) == 12
    assert stable(fresh) == stable(first)


def test_what_runs_out_of_time_is_recorded_and_tried_again_with_more(folder, tmp_path):
    options = {"methods": ["test_run:Slow"], "conditions": ["clean"], "seeds": 2, "most_samples": 45}
    records = board(folder / "easy.npz", tmp_path / "out", time_limit=0.3, **options)
    assert [record["outcome"] for record in records] == ["out of time"] * 2
    assert records[1]["failure"] == "not tried: seed 0 ran out of time"
    assert records[0]["nmi"] is None
    same = board(folder / "easy.npz", tmp_path / "out", time_limit=0.2, **options)
    assert same == records
    more = board(folder / "easy.npz", tmp_path / "out", time_limit=60.0, **options)
    assert [record["outcome"] for record in more] == ["done"] * 2


class Slow(emvc.FeatureConcatenation):
    """A method that takes two seconds."""

    def fit(self, views, y=None):
        time.sleep(2.0)
        return super().fit(views, y)


KILLED = """
import sys
from emvc.experiments.board.run import board
board(sys.argv[1], sys.argv[2], methods=["k-means on joined features"], conditions=["clean"], seeds=30, n_jobs=1)
"""


def test_killed_and_resumed_without_a_record_lost_or_doubled(folder, tmp_path):
    path, command = tmp_path / "out" / "records.sqlite", [sys.executable, "-c", KILLED, str(folder)]
    with subprocess.Popen([*command, str(path.parent)]) as process:
        while process.poll() is None and (not path.exists() or not 1 <= len(read_records(path)) < 60):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    kept = read_records(path)
    records = board(
        folder, path.parent, methods=["k-means on joined features"], conditions=["clean"], seeds=30, n_jobs=1
    )
    assert records[: len(kept)] == kept
    assert 1 <= len(kept) < 60 == len(records) == len({record["key"] for record in records})
