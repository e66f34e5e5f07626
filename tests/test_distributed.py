"""Dask arrays: the same labels wherever the rows are, and files that are never loaded."""

import gc
import os
import signal
import subprocess
import sys
import time

import dask.array as da
import h5py
import joblib
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zarr
from distributed import Client, LocalCluster, get_task_stream
from sklearn.metrics import adjusted_rand_score

import emvc
from emvc import EMVC, open_views
from emvc.distributed import ClusterBlocks, DaskSource, connect, current_client
from emvc.experiments import make_grid, run_cells

OPTIONS = {"n_landmarks": 40, "random_state": 0}


def blobs(n_samples, n_clusters=4, n_views=3, n_features=8, seed=0, spread=2.5):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_samples)
    centers = [spread * rng.standard_normal((n_clusters, n_features)) for _ in range(n_views)]
    return [center[labels] + rng.standard_normal((n_samples, n_features)) for center in centers], labels


@pytest.fixture(scope="module")
def data():
    views, labels = blobs(700)
    views[1][3] = np.nan
    views[0][[5, 300]] = 80.0
    views[2][650] = views[2][650] + 60.0
    return views, labels


@pytest.fixture(scope="module")
def local(data):
    return EMVC(4, **OPTIONS).fit(data[0])


@pytest.fixture
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def as_dask(views, chunks):
    return [da.from_array(view, chunks=(chunks, -1)) for view in views]


def assert_same(model, local):
    for name in ("labels_", "sample_errors_", "embedding_", "consensus_", "outliers_", "isolation_"):
        assert isinstance(getattr(model, name), da.Array)
    assert adjusted_rand_score(local.labels_, model.labels_.compute()) >= 0.999
    np.testing.assert_array_equal(model.labels_[:1].compute(), [0])
    np.testing.assert_array_equal(model.landmarks_, local.landmarks_)
    np.testing.assert_array_equal(model.outliers_.compute(), local.outliers_)
    np.testing.assert_allclose(model.sample_errors_.compute(), local.sample_errors_, atol=1e-9)
    np.testing.assert_allclose(model.consensus_.compute(), local.consensus_, atol=1e-3)
    np.testing.assert_allclose(model.view_errors_, local.view_errors_, atol=1e-9)
    assert model.objective_ == pytest.approx(local.objective_, rel=1e-4)
    assert model.view_names_ == local.view_names_
    assert model.n_features_in_ == local.n_features_in_


@pytest.mark.parametrize("chunks", [700, 250, ((1, 399, 300),)])
def test_labels_do_not_depend_on_the_chunks(data, local, chunks):
    rows = chunks[0] if isinstance(chunks, tuple) else chunks
    assert_same(EMVC(4, **OPTIONS).fit(as_dask(data[0], rows)), local)


def test_missing_cells_are_the_same_in_chunks(data):
    views = [
        np.where(np.random.default_rng(k).random(view.shape) < 0.2, np.nan, view) for k, view in enumerate(data[0])
    ]
    local, chunks = (EMVC(4, **OPTIONS).fit(of) for of in (views, as_dask(views, 250)))
    assert_same(chunks, local)
    np.testing.assert_allclose(chunks.missing_cells_, local.missing_cells_)
    views[0][:, 2] = np.nan
    with pytest.warns(UserWarning, match="view '0': 2"):
        assert EMVC(4, **OPTIONS).fit(as_dask(views, 250)).dropped_columns_["0"] == [2]


def test_a_client_that_has_found_nobody_is_not_waited_for(data, local):
    with pytest.raises(ConnectionError, match="No Dask scheduler answers") as failed, connect("nonsense://x"):
        pass
    assert failed.tb is not None  # which would keep the client alive
    with pytest.raises(ValueError, match="No clients found"):
        Client.current()
    assert current_client() is None
    assert_same(EMVC(4, **OPTIONS).fit(as_dask(data[0], 250)), local)


@pytest.mark.usefixtures("client")
def test_labels_on_a_cluster_are_those_of_one_machine(data, local):
    model = EMVC(4, **OPTIONS).fit(as_dask(data[0], 200))
    assert_same(model, local)
    assert adjusted_rand_score(data[1], model.labels_.compute()) > 0.9
    names = dict(zip("abc", as_dask(data[0], 300), strict=True))
    assert EMVC(4, **OPTIONS).fit(names).view_names_ == ["a", "b", "c"]


@pytest.mark.usefixtures("client")
def test_what_travels_does_not_grow_with_the_samples(monkeypatch):
    """Messages and results of the exchanges are as large for 300 rows as for 1200."""
    sizes = {}
    original = ClusterBlocks.apply

    def measured(self, task, message):
        results = original(self, task, message)
        name = getattr(task, "__name__", "")
        if name in ("moments_task", "label_task", "renumber_task"):
            parts = [message if isinstance(message, tuple) else (message,)]
            parts += [result if isinstance(result, tuple) else (result,) for result in results]
            size = sum(value.nbytes for part in parts for value in part if hasattr(value, "nbytes"))
            sizes.setdefault(name, []).append(size)
        return results

    monkeypatch.setattr(ClusterBlocks, "apply", measured)
    found = []
    for n_samples in (300, 1200):
        sizes.clear()
        EMVC(4, **OPTIONS).fit(as_dask(blobs(n_samples)[0], n_samples // 2))
        found.append({name: max(values) for name, values in sizes.items()})
    assert found[0] == found[1]
    assert set(found[0]) == {"moments_task", "label_task", "renumber_task"}
    assert found[0]["moments_task"] < 2 * 2 * 8 * 40 * 41


def test_a_failed_fit_leaves_nothing_on_the_workers(data, client, monkeypatch):
    def broken(*_):
        raise RuntimeError("the network is gone")

    def present():
        gc.collect()  # earlier tests may have left futures in reference cycles
        return {key for keys in client.has_what().values() for key in keys}

    before = present()
    monkeypatch.setattr(ClusterBlocks, "apply", broken)
    model = EMVC(4, **OPTIONS)
    with pytest.raises(RuntimeError, match="the network is gone"):
        model.fit(as_dask(data[0], 200))
    assert not hasattr(model, "labels_")
    deadline = time.monotonic() + 120  # a running task, perhaps compiling, keeps its arguments until it ends
    quiet = 0  # looks in a row; what was sent before the failure may still arrive, and is dropped then
    while quiet < 10 and time.monotonic() < deadline:
        quiet = quiet + 1 if present() <= before else 0
        time.sleep(0.1)
    assert quiet == 10


def test_a_killed_worker_changes_nothing(data, local, monkeypatch):
    """Its blocks are made again on the other one from the chunks on, and the fit ends with the same labels."""
    killed = []
    original = ClusterBlocks.apply

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        pids = client.run(os.getpid)

        def apply(self, task, message):
            if getattr(task, "__name__", "") == "label_task" and not killed:
                busy = max(client.has_what().items(), key=lambda item: len(item[1]))[0]
                os.kill(pids[busy], signal.SIGKILL)
                killed.append(busy)
            return original(self, task, message)

        monkeypatch.setattr(ClusterBlocks, "apply", apply)
        model = EMVC(4, **OPTIONS).fit(as_dask(data[0], 200))
        labels = model.labels_.compute()
    assert killed
    np.testing.assert_array_equal(labels, local.labels_)


def test_selection_and_experiments_run_on_dask_through_joblib(tmp_path, client):
    """Both give the same on the workers, and the workers have done something."""
    views, _ = blobs(80)
    cells = make_grid(["digits"], {"feature concatenation": {"n_init": [1, 2]}}, seeds=range(2))
    plain = emvc.select(views, 4)
    records = run_cells(cells, tmp_path / "plain.db")
    with get_task_stream(client) as stream, joblib.parallel_config("dask"):
        again = emvc.select(views, 4)
        on_dask = run_cells(cells, tmp_path / "dask.db")
    assert (again.n_clusters, again.beta, again.lam) == (plain.n_clusters, plain.beta, plain.lam)
    for one, other in zip(again.weights, plain.weights, strict=True):
        # Fits at the same time share threads, so that sums in single precision may be rounded otherwise.
        assert one == pytest.approx(other, rel=0.01, abs=1e-6)
    assert [r["nmi"] for r in on_dask] == [r["nmi"] for r in records]
    names = " ".join(str(entry["key"]) for entry in stream.data)
    assert "_point" in names
    assert "watched" in names  # which runs groups of cells


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda v: [v[0], v[1].compute(), v[2]], TypeError, "view '1' is not a Dask array"),
        (lambda v: [v[0], v[1][:-1], v[2]], ValueError, "view '0' has 700 rows, view '1' has 699"),
        (lambda v: [v[0][v[0][:, 0] > 0], v[1]], ValueError, "view '0' has chunks of unknown size"),
        (lambda v: [v[0][:, 0], v[1]], ValueError, "view '0' must have two dimensions"),
        (lambda v: [da.where(da.arange(700, chunks=350)[:, None] == 600, np.inf, v[0]), v[1]], ValueError,
         "view '0': sample 600 contains infinity"),
        (lambda v: [da.where(da.arange(700, chunks=350)[:, None] == 600, np.nan, w) for w in v], ValueError,
         "sample 600 is missing .* in every view"),
    ],
)  # fmt: skip
def test_bad_dask_arrays_are_named(data, change, error, message):
    with pytest.raises(error, match=message):
        EMVC(4, **OPTIONS).fit(change(as_dask(data[0], 350)))


def test_the_landmarks_are_the_same_for_any_chunks(data):
    rows = np.array([0, 3, 299, 300, 699])
    for chunks in (700, 300):
        taken = DaskSource(as_dask(data[0], chunks)).take(rows)
        np.testing.assert_array_equal(taken.arrays[0], data[0][0][rows])
        np.testing.assert_array_equal(taken.missing[:, 1], [False, True, False, False, False])


def write(folder, suffix, view):
    path = folder / f"view{suffix}"
    if suffix == ".npy":
        np.save(path, view.astype(np.float32))
    elif suffix == ".parquet":
        table = pyarrow.table({f"f{j}": column for j, column in enumerate(view.T)})
        path.mkdir()
        pyarrow.parquet.write_table(table.slice(0, 400), path / "a.parquet", row_group_size=150)
        pyarrow.parquet.write_table(table.slice(400), path / "b.parquet")
    elif suffix == ".zarr":
        zarr.save_array(str(path), view)
    else:
        with h5py.File(path, "w") as file:
            file["group/features"] = view
    return path


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".zarr", ".h5"])
def test_files_are_read_in_chunks(tmp_path, suffix):
    view = blobs(700)[0][0]
    (opened,) = open_views([write(tmp_path, suffix, view)], chunks=256)
    assert opened.chunks == ((256, 256, 188), (8,))
    np.testing.assert_allclose(opened.compute(scheduler="synchronous"), view, rtol=1e-6)


def test_files_can_be_clustered(tmp_path, data, local):
    paths = {}
    for k, view in enumerate(data[0]):
        np.save(tmp_path / f"{k}.npy", view)
        paths[str(k)] = tmp_path / f"{k}.npy"
    assert_same(EMVC(4, **OPTIONS).fit(open_views(paths, chunks=300)), local)


def test_bad_files_are_named(tmp_path):
    np.save(tmp_path / "one.npy", np.ones((4, 2)))
    np.save(tmp_path / "two.npy", np.ones((5, 2)))
    np.save(tmp_path / "flat.npy", np.ones(4))
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    (tmp_path / "x.npy").write_text("no array")
    (tmp_path / "x.csv").write_text("1,2")
    (tmp_path / "x.parquet").write_text("no table")
    pyarrow.parquet.write_table(pyarrow.table({"name": ["a"]}), tmp_path / "words.parquet")
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file["a"], file["b"] = np.ones((4, 2)), np.ones((4, 2))
    for paths, error, message in [
        (["gone.npy"], FileNotFoundError, "There is no file .*gone.npy"),
        (["one.npy", "two.npy"], ValueError, "one.npy has 4 rows, .*two.npy has 5"),
        (["flat.npy"], ValueError, "flat.npy must have two dimensions"),
        (["words.npy"], ValueError, "words.npy is not numeric"),
        (["x.npy"], ValueError, "x.npy is not a plain .npy array"),
        (["x.csv"], ValueError, "x.csv: cannot tell the format"),
        (["x.parquet"], ValueError, "x.parquet is not a Parquet file"),
        (["words.parquet"], ValueError, "column 'name' is not numeric but string"),
        (["many.h5"], ValueError, "many.h5 must hold one array, or be named with '::'; it holds /a, /b"),
        (["many.h5::c"], ValueError, "many.h5 has no array 'c'"),
        (["one.npy::c"], ValueError, "'::c' has no meaning"),
    ]:
        with pytest.raises(error, match=message):
            open_views([str(tmp_path / path) for path in paths])
    assert open_views([str(tmp_path / "many.h5::b")])[0].shape == (4, 2)
    with pytest.raises(TypeError, match="paths must be a list or dict"):
        open_views("one.npy")
    with pytest.raises(ValueError, match="No views"):
        open_views([])


def test_without_dask_the_message_names_the_extra():
    code = """
import sys
sys.modules["dask"] = None
from emvc import open_views
try:
    open_views(["a.npy"])
except ImportError as error:
    assert "emvc[dask]" in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
