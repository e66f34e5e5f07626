"""`emvc cluster` and `emvc report`, from files to files."""

import csv
import errno
import html
import json
import os
import sys
from pathlib import Path

import distributed
import h5py
import mudata
import numpy as np
import pandas as pd
import pytest
import zarr
from anndata import AnnData

import emvc
from conftest import load_or_skip
from emvc import cli, datasets, out_of_core
from emvc.datasets.real import fetch
from emvc.metrics import clustering_accuracy

FILES = ["labels.csv", "markers.csv", "methods.txt", "model.emvc", "report.html"]


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    return stopped.value.code, capsys.readouterr()


def cluster(capsys, *arguments):
    return run(capsys, "cluster", "--jobs", "1", *arguments)


@pytest.fixture(autouse=True)
def plain_report(request, monkeypatch):
    """Drawing takes seconds, and so do repeated fits: only tests that ask for it get the real report."""
    if "real_report" not in request.fixturenames:
        monkeypatch.setattr("emvc.cli.cluster._MOST_ASSESSED", 0)
        monkeypatch.setattr("emvc.report.write_report", lambda _model, path, **_: Path(path).write_text("a report"))


@pytest.fixture
def real_report():
    """Ask for the real report."""


@pytest.fixture
def files(tmp_path, blobs):
    """Two files of named samples, the second in another order and without the last ten."""
    names = [f"s{i:02d}" for i in range(60)]
    paths = [tmp_path / "gene.csv", tmp_path / "lipid.csv"]
    for path, view, rows in zip(paths, blobs[0], (np.arange(60), np.arange(49, -1, -1)), strict=True):
        pd.DataFrame(view[rows], index=pd.Index(np.array(names)[rows], name="id")).to_csv(path)
    return paths


def read_labels(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("real_report")
def test_from_files_to_files(capsys, files, tmp_path, blobs):
    target = tmp_path / "deep" / "out"
    code, shown = cluster(capsys, *files, "-k", 3, "-o", target)
    assert code == 0
    assert "60 samples in 3 clusters of 20, 20, 20." in shown.out
    assert "note: lipid: 10 of 60 samples are missing ('s50', 's51'," in shown.out
    assert sorted(path.name for path in target.iterdir()) == FILES
    assert [path.name for path in target.parent.iterdir()] == ["out"]
    rows = read_labels(target / "labels.csv")
    assert [row["sample"] for row in rows[:2]] == ["s00", "s01"]
    assert [int(row["label"]) for row in rows] == blobs[1].tolist()
    assert list(rows[0])[:4] == ["sample", "label", "error_gene", "error_lipid"]
    assert (rows[55]["error_lipid"], rows[55]["missing_lipid"], rows[55]["outlier"]) == ("", "1", "0")
    assert 0 <= float(rows[0]["error_gene"]) <= 1
    model = emvc.load(target / "model.emvc")
    assert model.sample_names_[50] == "s50"
    assert model.predict(blobs[0]).tolist() == blobs[1].tolist()
    page = (target / "report.html").read_text()
    assert "lipid: 10 of 60 samples are missing" in page
    assert f"emvc cluster --jobs 1 {files[0]} {files[1]} -k 3 -o {target}" in page


def bad_input(kind):
    """Return views that deserve a finding, and the number of clusters to ask for."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.repeat(np.arange(3), 40))
    views = [5 * rng.standard_normal((3, 6))[labels] + rng.standard_normal((120, 6)) for _ in range(3)]
    if kind == "no structure":
        return [rng.standard_normal((120, 5)) for _ in range(2)], "auto"
    if kind == "wrong join":
        return [view[rng.permutation(120)] for view in views], 3
    if kind == "unreliable view":
        return [*views[:2], rng.standard_normal((120, 6))], 3
    if kind == "unstable cluster":
        return views, 9
    views[1][[4, 80]] = 40 * rng.standard_normal((2, 6))
    return views, 3


@pytest.mark.usefixtures("real_report")
@pytest.mark.parametrize(
    "kind", ["no structure", "wrong join", "unreliable view", "unstable cluster", "damaged samples"]
)
def test_terminal_json_labels_and_page_have_the_same_findings(kind, capsys, tmp_path):
    views, number = bad_input(kind)
    paths = []
    for k, view in enumerate(views):
        paths.append(tmp_path / f"v{k}.npy")
        np.save(paths[-1], view)
    code, told = cluster(capsys, *paths, "-k", number, "-o", tmp_path / "json", "--json")
    assert code == 0
    findings = json.loads(told.out)["findings"]
    assert kind in [finding["kind"] for finding in findings]
    _, shown = cluster(capsys, *paths, "-k", number, "-o", tmp_path / "out")
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    with (tmp_path / "out" / "labels.csv").open(newline="", encoding="utf-8") as stream:
        samples = list(csv.DictReader(stream))
    for finding in findings:
        assert f"{finding['severity']}: {finding['text']} {finding['advice']}" in shown.out
        assert f'<li class="{finding["severity"]}"><b>{finding["text"]}</b> {finding["advice"]}</li>' in page
        named = [row for row, sample in enumerate(samples) if finding["text"] in sample["findings"]]
        assert named == finding["samples"]


@pytest.mark.usefixtures("real_report")
def test_assessment_or_none_on_request(capsys, files, tmp_path):
    for option, expected in (("--no-assess", False), ("--assess", True)):
        cluster(capsys, *files, "-k", 3, "-o", tmp_path / option, option)
        assert ("stability" in read_labels(tmp_path / option / "labels.csv")[0]) == expected


@pytest.mark.usefixtures("real_report")
def test_report_of_a_saved_model(capsys, tmp_path, blobs):
    model = emvc.EMVC(3, random_state=0, n_jobs=1).fit(blobs[0])
    model.save(tmp_path / "m.emvc")
    code, shown = run(capsys, "report", tmp_path / "m.emvc", "-o", tmp_path / "r.html")
    assert code == 0
    assert "r.html" in shown.out
    assert "60 samples" in (tmp_path / "r.html").read_text()
    emvc.KernelAddition(3, random_state=0).fit(blobs[0]).save(tmp_path / "k.emvc")
    for arguments, message in (
        ([tmp_path / "k.emvc"], "is a KernelAddition; there are reports about EMVC only"),
        ([tmp_path / "r.html"], "is not a model file, or is damaged"),
        ([tmp_path / "none"], "none does not exist."),
        ([tmp_path], "is a folder without a model.emvc: it is no result of 'emvc cluster'."),
        ([tmp_path / "m.emvc", "-o", tmp_path], "is a folder"),
    ):
        code, shown = run(capsys, "report", *arguments)
        assert code == 1
        assert message in shown.err
        assert len(shown.err.splitlines()) == 1


def test_a_report_goes_beside_its_model(capsys, tmp_path, blobs):
    emvc.EMVC(3, random_state=0, n_jobs=1).fit(blobs[0]).save(tmp_path / "m.emvc")
    assert run(capsys, "report", tmp_path / "m.emvc")[0] == 0
    assert (tmp_path / "m.html").read_text() == "a report"
    (tmp_path / "m.emvc").rename(tmp_path / "model.emvc")
    assert run(capsys, "report", tmp_path)[0] == 0
    assert (tmp_path / "model.html").read_text() == "a report"


def test_json_and_quiet(capsys, files, tmp_path):
    code, shown = cluster(capsys, *files, "-k", "auto", "-o", tmp_path / "a", "--json", "--outliers", "label")
    assert code == 0
    summary = json.loads(shown.out)
    assert shown.err == ""
    assert (summary["n_samples"], summary["n_clusters"]) == (60, 3)
    assert sum(summary["cluster_sizes"]) + summary["n_outliers"] == 60
    assert {view["name"] for view in summary["views"]} == {"gene", "lipid"}
    assert all(view.keys() == {"name", "reliability", "weight", "left_out"} for view in summary["views"])
    assert summary["files"]["labels.csv"] == str(tmp_path / "a" / "labels.csv")
    code, shown = cluster(capsys, *files, "-k", 3, "-o", tmp_path / "b", "--quiet", "--beta", 0.4, "--lam", "auto")
    assert (code, shown.out, shown.err) == (0, "", "")
    assert emvc.load(tmp_path / "b" / "model.emvc").beta_ == 0.4


def test_same_seed_same_files(capsys, files, tmp_path):
    for name in "ab":
        assert cluster(capsys, *files, "-k", 3, "-o", tmp_path / name, "--seed", 5)[0] == 0
    assert (tmp_path / "a" / "labels.csv").read_bytes() == (tmp_path / "b" / "labels.csv").read_bytes()


def test_an_earlier_result_is_replaced_only_on_request(capsys, files, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    assert cluster(capsys, *files, "-k", 3, "-o", target)[0] == 0  # an empty folder is free
    before = (target / "labels.csv").read_bytes()
    code, shown = cluster(capsys, *files, "-k", 2, "-o", target)
    assert code == 1
    assert "exists and is not empty; choose another folder, or --force" in shown.err
    assert (target / "labels.csv").read_bytes() == before
    assert cluster(capsys, *files, "-k", 2, "-o", target, "--force")[0] == 0
    assert {row["label"] for row in read_labels(target / "labels.csv")} == {"0", "1"}
    (target / "thesis.tex").write_text("years of work")
    code, shown = cluster(capsys, *files, "-k", 2, "-o", target, "--force")
    assert code == 1
    assert "'thesis.tex'" in shown.err
    assert (target / "thesis.tex").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gene.csv", "lipid.csv", "out"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "many"], "'many' is neither an integer nor 'auto'"),
        (["-k", "3", "--beta", "x"], "'x' is neither a number nor 'auto'"),
        (["-k", "3", "--outliers", "drop"], "'drop' is neither 'assign' nor 'label'"),
        (["-k", "3", "--device", "cuda"], "'cuda' is not available; only 'cpu' is"),
        (["-k", "3", "--seed", "-1"], "--seed"),
        ([], "Missing option"),
    ],
)
def test_usage_errors(options, message, capsys, files, tmp_path):
    code, shown = cluster(capsys, *files, *options, "-o", tmp_path / "out")
    assert code == 2
    assert message in " ".join(shown.err.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


@pytest.fixture
def stored(tmp_path):
    """Views of one set of samples as .npy, Parquet with ids, HDF5 and Zarr."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 100)
    views = [rng.normal(size=(300, 6)) + 4 * rng.normal(size=(3, 6))[classes] for _ in range(4)]
    np.save(tmp_path / "one.npy", views[0])
    table = pd.DataFrame(views[1], columns=[f"f{j}" for j in range(6)])
    table.insert(0, "id", [f"s{i:03d}" for i in range(300)])
    table.to_parquet(tmp_path / "two.parquet", row_group_size=70)
    with h5py.File(tmp_path / "three.h5", "w") as file:
        file["deep/array"], file["other"] = views[2], np.ones(3)
    zarr.save_array(str(tmp_path / "four.zarr"), views[3])
    return [tmp_path / name for name in ("one.npy", "two.parquet", "three.h5::deep/array", "four.zarr")], views, classes


def test_landmarks_leave_data_on_disk(capsys, stored, tmp_path, monkeypatch):
    paths, views, classes = stored
    wide = []
    read = out_of_core._read_npy
    monkeypatch.setattr(out_of_core, "_read_npy", lambda *args: wide.append(args[3] - args[2]) or read(*args))
    monkeypatch.setattr("emvc.method.landmarks.rows_per_block", lambda _: 128)
    code, shown = cluster(capsys, *paths, "-k", 3, "--landmarks", 40, "--json", "-o", tmp_path / "out")
    assert code == 0, shown.err
    assert json.loads(shown.out)["notes"] == []
    assert max(wide) == 128
    rows = read_labels(tmp_path / "out" / "labels.csv")
    assert [row["sample"] for row in rows[:2]] == ["s000", "s001"]
    labels = np.array([int(row["label"]) for row in rows])
    assert clustering_accuracy(classes, labels) > 0.99
    model = emvc.load(tmp_path / "out" / "model.emvc")
    assert model.view_names_ == ["one", "two", "deep-array", "four"]
    assert model.sample_names_[7] == "s007"
    assert model.consensus_.shape == (300, 40)
    local = emvc.EMVC(3, n_landmarks=40, random_state=0, n_jobs=1).fit(views)
    np.testing.assert_array_equal(labels, local.labels_)


def test_the_same_files_without_landmarks(capsys, stored, tmp_path):
    paths, _, classes = stored
    code, shown = cluster(capsys, *paths, "-k", 3, "-o", tmp_path / "out")
    assert code == 0, shown.err
    labels = [int(row["label"]) for row in read_labels(tmp_path / "out" / "labels.csv")]
    assert clustering_accuracy(classes, labels) > 0.99


def test_a_large_consensus_is_not_brought_here(capsys, stored, tmp_path, monkeypatch):
    monkeypatch.setattr("emvc.distributed._LARGE", 1000)
    code, shown = cluster(capsys, *stored[0], "-k", 3, "--landmarks", 40, "-o", tmp_path / "out")
    assert code == 0, shown.err
    assert not hasattr(emvc.load(tmp_path / "out" / "model.emvc"), "consensus_")


@pytest.mark.parametrize("why", ["text", "order", "rows", "dask"])
def test_landmarks_say_why_files_are_read_into_memory(why, capsys, stored, tmp_path, monkeypatch):
    paths, options = list(stored[0]), []
    if why == "text":
        pd.DataFrame(stored[1][0], index=pd.Index([f"s{i:03d}" for i in range(300)], name="id")).to_csv(
            tmp_path / "more.csv"
        )
        paths.append(tmp_path / "more.csv")
        message = "rows of more.csv cannot be read without the others"
    elif why == "order":
        table = pd.read_parquet(tmp_path / "two.parquet").iloc[::-1].rename(columns=str)
        table.to_parquet(tmp_path / "turned.parquet", index=False)
        paths = [tmp_path / "two.parquet", tmp_path / "turned.parquet"]
        message = "turned.parquet does not have the samples of two.parquet in their order"
    elif why == "rows":
        pd.read_parquet(tmp_path / "two.parquet").iloc[:250].to_parquet(tmp_path / "less.parquet", index=False)
        paths = [tmp_path / "two.parquet", tmp_path / "less.parquet"]
        message = "less.parquet does not have the samples of two.parquet in their order"
    else:
        monkeypatch.setitem(sys.modules, "dask", None)
        message = "pip install 'emvc[dask]'"
    code, shown = cluster(capsys, *paths, *options, "-k", 3, "--landmarks", 40, "-o", tmp_path / "out")
    assert code == 0, shown.err
    assert f"note: All files were read into memory: {'' if why == 'dask' else message}" in shown.out
    assert message in shown.out
    labels = [int(row["label"]) for row in read_labels(tmp_path / "out" / "labels.csv")]
    assert clustering_accuracy(stored[2], labels) > 0.99


def test_a_scheduler_needs_landmarks_data_on_disk_and_an_answer(capsys, files, stored, tmp_path):
    target = tmp_path / "out"
    for paths, options, message in [
        (stored[0], ["--scheduler", "tcp://127.0.0.1:1"], "--scheduler needs --landmarks"),
        (files, ["--scheduler", "tcp://127.0.0.1:1", "--landmarks", 9], "needs data that stay on disk. All files were"),
        (stored[0], ["--scheduler", "nonsense://x", "--landmarks", 9], "No Dask scheduler answers at 'nonsense://x'"),
    ]:
        code, shown = cluster(capsys, *paths, *options, "-k", 3, "-o", target)
        assert code == 1
        assert message in shown.err
        assert not target.exists()


def test_cluster_on_a_scheduler(capsys, stored, tmp_path):
    paths, views, _ = stored
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as there:
        address = there.scheduler_address
        code, shown = cluster(
            capsys, *paths, "-k", 3, "--landmarks", 40, "--scheduler", address, "-o", tmp_path / "out"
        )
    assert code == 0, shown.err
    labels = [int(row["label"]) for row in read_labels(tmp_path / "out" / "labels.csv")]
    local = emvc.EMVC(3, n_landmarks=40, random_state=0, n_jobs=1).fit(views)
    np.testing.assert_array_equal(labels, local.labels_)


HOSTILE = {
    "ragged.csv": b"id,a,b\ns1,1,2\ns2,3\n",
    "twice.csv": b"id,a,b\ns1,1,2\ns1,3,4\n",
    "header.csv": b"id,a,b\n",
    "huge.csv": b"id,a,b\ns1,1,2\ns2,1e308,4\n",
    "zero.csv": b"id,a,b\ns1,1,2\ns2,\x00,4\n",
    "view.rds": b"nothing",
    "none.csv": None,
    "two.csv": b"id,a\ns1,1\ns2,2\n",  # fewer samples than clusters
    "broken.mat": b"nothing",
    "broken.h5mu": b"nothing",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_leave_one_line_and_no_output(name, capsys, tmp_path):
    if HOSTILE[name] is not None:
        (tmp_path / name).write_bytes(HOSTILE[name])
    code, shown = cluster(capsys, tmp_path / name, "-k", 3, "-o", tmp_path / "out")
    assert code == 1
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert len(shown.err.splitlines()) == 1
    assert "Traceback" not in shown.err
    assert {path.name for path in tmp_path.iterdir()} <= {name}
    if HOSTILE[name] is not None:
        assert name in shown.err or name == "two.csv"


def test_debug_shows_where_an_error_comes_from(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match="line 3 has 1 cells"):
        cli.main(["cluster", str(tmp_path / "a.csv"), "-k", "2", "-o", str(tmp_path / "out"), "--debug"])
    assert not (tmp_path / "out").exists()


def test_a_fault_of_the_program_is_one_line_too(capsys, files, tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise KeyError("surprise")

    monkeypatch.setattr("emvc.files.read_views", fail)
    code, shown = cluster(capsys, *files, "-k", 3, "-o", tmp_path / "out")
    assert code == 1
    assert shown.err.startswith("error: KeyError: 'surprise' (this is not your fault; --debug shows")
    assert len(shown.err.splitlines()) == 1


@pytest.mark.usefixtures("real_report")
def test_markup_in_names_is_shown_and_not_run(capsys, tmp_path, blobs):
    names = [f"<script>alert({i})</script>" for i in range(60)]
    views = [view.copy() for view in blobs[0]]
    views[0][3] = 1e3
    paths = [tmp_path / "<b>[red].csv", tmp_path / "b.csv"]
    for path, view in zip(paths, views, strict=True):
        pd.DataFrame(view, index=names).to_csv(path)
    code, shown = cluster(capsys, *paths, "-k", 3, "-o", tmp_path / "out")
    assert code == 0
    assert "<b>[red]" in shown.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "alert(3)" in page  # there, but escaped
    assert "<b>[red]" not in page
    assert read_labels(tmp_path / "out" / "labels.csv")[3]["sample"] == names[3]


def test_places_that_cannot_be_written(capsys, files, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    for target in (tmp_path / "file", tmp_path / "file" / "out"):
        code, shown = cluster(capsys, *files, "-k", 3, "-o", target)
        assert code == 1
        assert len(shown.err.splitlines()) == 1

    def deny(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr("os.mkdir", deny)
    code, shown = cluster(capsys, *files, "-k", 3, "-o", tmp_path / "out")
    assert code == 1
    assert "Permission denied" in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize("moment", ["emvc.persistence._write", "emvc.report.write_report", "os.rename"])
@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), (1, "No space left")),
        (KeyboardInterrupt(), (130, "Interrupted")),
    ],
)
def test_a_full_disk_or_ctrl_c_leaves_nothing(moment, failure, expected, capsys, files, tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise failure

    monkeypatch.setattr(moment, fail)
    code, shown = cluster(capsys, *files, "-k", 3, "-o", tmp_path / "out")
    assert code == expected[0]
    assert expected[1] in shown.err
    assert len(shown.err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gene.csv", "lipid.csv"]


def test_a_failed_replacement_keeps_the_old_result(capsys, files, tmp_path, monkeypatch):
    target = tmp_path / "out"
    assert cluster(capsys, *files, "-k", 3, "-o", target)[0] == 0
    before = (target / "labels.csv").read_bytes()
    replace = os.replace

    def fail_for_the_model(source, destination):
        if Path(destination) == target / "model.emvc" and "complete" in str(source):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, destination)

    monkeypatch.setattr(os, "replace", fail_for_the_model)
    assert cluster(capsys, *files, "-k", 2, "-o", target, "--force")[0] == 1
    assert (target / "labels.csv").read_bytes() == before
    assert sorted(path.name for path in target.iterdir()) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gene.csv", "lipid.csv", "out"]


def real_files(name):
    load_or_skip(name)
    return fetch(name, download=False)


@pytest.mark.usefixtures("real_report")
def test_nutrimouse(capsys, tmp_path):
    """From CSV files, and the same from a MuData file."""
    gene, lipid, _ = real_files("nutrimouse")
    code, _ = cluster(capsys, gene, lipid, "-k", 5, "-o", tmp_path / "csv")
    assert code == 0
    labels = [row["label"] for row in read_labels(tmp_path / "csv" / "labels.csv")]
    data = datasets.load("nutrimouse", download=False)
    assert [int(label) for label in labels] == emvc.EMVC(5, random_state=0).fit_predict(data.views).tolist()

    parts = {}
    for path in (gene, lipid):
        table = pd.read_csv(path)
        features = pd.DataFrame(index=[f"{path.stem}:{name}" for name in table.columns])
        mice = pd.DataFrame(index=[f"mouse{i}" for i in range(len(table))])
        parts[path.stem] = AnnData(table.to_numpy(), obs=mice, var=features)
    with mudata.set_options(pull_on_update=False):
        mudata.MuData(parts).write(tmp_path / "mice.h5mu")
    code, _ = cluster(capsys, tmp_path / "mice.h5mu", "-k", 5, "-o", tmp_path / "h5mu")
    assert code == 0
    rows = read_labels(tmp_path / "h5mu" / "labels.csv")
    assert [row["sample"] for row in rows[:2]] == ["mouse0", "mouse1"]
    assert [row["label"] for row in rows] == labels


def test_handwritten(capsys, tmp_path):
    (path,) = real_files("handwritten")
    code, shown = cluster(capsys, path, "-k", 10, "--tol", 1e-2, "-o", tmp_path / "out")
    assert code == 0
    assert "looks like true classes and was left out" in shown.out
    rows = read_labels(tmp_path / "out" / "labels.csv")
    data = datasets.load("handwritten", download=False)
    labels = np.array([int(row["label"]) for row in rows])
    assert clustering_accuracy(data.labels, labels) > 0.8
    again = emvc.load(tmp_path / "out" / "model.emvc").predict(data.views)
    assert np.mean(again == labels) >= 0.98
    assert sorted(Path(tmp_path / "out").iterdir(), key=str) == [tmp_path / "out" / name for name in FILES]
