import hashlib
import http.server
import io
import socket
import threading

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from scipy.stats import multivariate_normal

from conftest import load_or_skip
from emvc import datasets
from emvc.datasets import (
    DatasetNotFoundError,
    _registry,
    add_noise,
    corrupt_entries,
    corrupt_samples,
    make_digits_views,
    make_paper_synthetic,
    mismatch_samples,
)
from emvc.datasets._registry import REGISTRY, SUPPLIED
from emvc.datasets.synthetic import PAPER_MIXTURE

INJECTORS = {
    "noise": lambda views, seed: add_noise(views, 1.0, seed),
    "entries": lambda views, seed: corrupt_entries(views, 0.1, seed),
    "samples": lambda views, seed: corrupt_samples(views, 0.1, seed),
    "marginal": lambda views, seed: corrupt_samples(views, 0.1, seed, values="marginal"),
    "mismatch": lambda views, seed: mismatch_samples(views, 0.1, seed),
}
every_injector = pytest.mark.parametrize("inject", INJECTORS.values(), ids=INJECTORS)


@pytest.fixture
def views(rng):
    return [rng.standard_normal((50, 4)), 10 + 3 * rng.standard_normal((50, 6)), rng.random((50, 2))]


@every_injector
def test_damage_is_seeded_and_leaves_the_input_alone(inject, views):
    before = [view.copy() for view in views]
    (first, truth), (second, again), (other, _) = inject(views, 3), inject(views, 3), inject(views, 4)
    for k, view in enumerate(views):
        np.testing.assert_array_equal(view, before[k])
        np.testing.assert_array_equal(first[k], second[k])
        assert not np.array_equal(first[k], other[k])
    np.testing.assert_array_equal(truth, again)
    assert truth.shape == (50, 3)
    assert truth.dtype == bool


@every_injector
def test_truth_marks_exactly_the_changed_samples(inject, views):
    damaged, truth = inject(views, 0)
    changed = np.column_stack([(new != old).any(axis=1) for new, old in zip(damaged, views, strict=True)])
    np.testing.assert_array_equal(truth, changed)


@every_injector
def test_containers_are_kept(inject, views):
    assert list(inject({"a": views[0], "b": views[1]}, 0)[0]) == ["a", "b"]
    assert isinstance(inject(views[0], 0)[0], np.ndarray)
    assert isinstance(inject(views[:1], 0)[0], list)


def test_noise_has_the_wanted_ratio(rng):
    view = rng.standard_normal((400, 50)) + 2.0
    for snr in (0.1, 10.0):
        noise = add_noise([view], snr, 0)[0][0] - view
        assert np.mean(view**2) / np.mean(noise**2) == pytest.approx(snr, rel=0.05)


def test_entries_are_replaced_within_the_range_of_their_feature(views):
    damaged, _ = corrupt_entries(views, 0.2, 0)
    for new, old in zip(damaged, views, strict=True):
        assert np.mean(new != old) == pytest.approx(0.2, abs=0.01)
        assert (new >= old.min(axis=0)).all()
        assert (new <= old.max(axis=0)).all()


def test_samples_are_the_same_in_all_views_or_drawn_anew(views):
    _, same = corrupt_samples(views, 0.2, 0)
    assert same.sum(axis=0).tolist() == [10, 10, 10]
    assert (same[:, 0] == same[:, 1]).all()
    _, drawn = corrupt_samples(views, 0.2, 0, same_samples=False)
    assert drawn.sum(axis=0).tolist() == [10, 10, 10]
    assert (drawn[:, 0] != drawn[:, 1]).any()


def test_marginal_values_come_from_their_own_feature(views):
    damaged, truth = corrupt_samples(views, 0.2, 0, values="marginal")
    for k, view in enumerate(views):
        for j in range(view.shape[1]):
            assert np.isin(damaged[k][truth[:, k], j], view[:, j]).all()


def test_mismatched_rows_are_exchanged_among_themselves(views):
    damaged, truth = mismatch_samples(views, 0.2, 0, views_hit=1)
    assert truth.sum(axis=0).tolist() == [0, 10, 0]
    np.testing.assert_array_equal(damaged[0], views[0])
    rows = truth[:, 1]
    np.testing.assert_array_equal(np.sort(damaged[1][rows], axis=0), np.sort(views[1][rows], axis=0))
    assert (damaged[1][rows] != views[1][rows]).any(axis=1).all()
    assert mismatch_samples(views, 0.2, 0, views_hit=[0, 2])[1].sum(axis=0).tolist() == [10, 0, 10]


@pytest.mark.parametrize("values", ["uniform", "marginal"])
def test_sparse_views_stay_sparse(values, rng):
    dense = rng.poisson(0.2, (30, 8)).astype(float)
    view = scipy.sparse.csr_array(dense)
    (damaged,), truth = corrupt_samples([view], 0.2, 0, values=values)
    assert scipy.sparse.issparse(damaged)
    np.testing.assert_array_equal(damaged.toarray()[~truth[:, 0]], dense[~truth[:, 0]])
    np.testing.assert_array_equal(damaged.toarray(), corrupt_samples([dense], 0.2, 0, values=values)[0][0])
    (swapped,), _ = mismatch_samples([view], 0.2, 0)
    np.testing.assert_array_equal(np.sort(swapped.toarray(), axis=0), np.sort(dense, axis=0))


def test_bad_damage():
    view = np.ones((10, 2))
    with pytest.raises(ValueError, match="fraction must be at most 1"):
        corrupt_samples([view], 1.5)
    with pytest.raises(ValueError, match="snr must be finite and above 0"):
        add_noise([view], 0)
    with pytest.raises(ValueError, match="Unknown values='zeros'"):
        corrupt_samples([view], 0.1, values="zeros")
    with pytest.raises(ValueError, match="views_hit names view 1, but there are only 1 views"):
        mismatch_samples([view], 0.1, views_hit=1)
    with pytest.raises(ValueError, match="view '0' is sparse"):
        add_noise([scipy.sparse.csr_array(view)], 1.0)


def test_paper_synthetic_has_the_stated_bayes_limit():
    data = make_paper_synthetic(100_000, random_state=0)
    likelihood = np.zeros((len(data.labels), 2))
    for view, clusters in zip(data.views, PAPER_MIXTURE, strict=True):
        for c, (mean, covariance) in enumerate(clusters):
            likelihood[:, c] += multivariate_normal(mean, covariance).logpdf(view)
    assert np.mean(likelihood.argmax(axis=1) == data.labels) == pytest.approx(0.861, abs=0.003)


def test_paper_synthetic_moments():
    data = make_paper_synthetic(50_000, random_state=1)
    wide = data.views[0][data.labels == 0]
    np.testing.assert_allclose(wide.mean(axis=0), [1, 1], atol=0.03)
    np.testing.assert_allclose(np.cov(wide.T), [[1, 0.5], [0.5, 1.5]], atol=0.04)
    narrow = data.views[1][data.labels == 0]
    np.testing.assert_allclose(narrow.mean(axis=0), [2, 2], atol=0.03)
    np.testing.assert_allclose(np.cov(narrow.T), [[0.3, 0], [0, 0.6]], atol=0.03)


def test_digits_views():
    data = make_digits_views(n_samples=100)
    assert [view.shape for view in data.views] == [(100, 64), (100, 40), (100, 72)]
    assert data.n_clusters == 10
    assert all(view.min() >= 0 and np.isfinite(view).all() for view in data.views)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_real_data(name):
    data, entry = load_or_skip(name), REGISTRY[name]
    assert data.view_names == list(entry.view_names)
    assert len(data.views) == len(data.view_names)
    assert all(view.shape[0] == len(data.labels) and view.dtype == np.float64 for view in data.views)
    assert sorted(np.unique(data.labels)) == list(range(entry.n_clusters))
    assert len(data.labels) == entry.n_samples


def test_real_data_facts(webkb):
    assert [view.shape for view in webkb.views] == [(1051, 1840), (1051, 3000)]
    assert np.bincount(webkb.labels).tolist() == [230, 821]
    assert repr(webkb) == "MultiViewDataset('webkb': 1051 samples, 2 classes; link 1840, page 3000)"


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without data: (empty cache folder)."""
    monkeypatch.delenv("EMVC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "emvc"


@pytest.fixture
def small_set(monkeypatch):
    """A tiny registered data set: (name, content of its file)."""
    cell = np.empty((2, 1), dtype=object)
    cell[:, 0] = [np.ones((3, 2), dtype=np.uint8), np.zeros((3, 4))]
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": cell, "Y": np.array([[3], [1], [3]])})
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    file = _registry.RemoteFile("tiny.mat", ("owner/repository", "0123abc"), "Tiny.mat", digest)
    monkeypatch.setitem(REGISTRY, "tiny", _registry.Entry((file,), ("a", "b"), 3, 2, "nobody"))
    return "tiny", buffer.getvalue()


@pytest.fixture
def server(monkeypatch):
    """A local server in place of the public source; `server.respond` decides what it sends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            server.respond(self)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/{{repository}}/{{commit}}/{{path}}"
    monkeypatch.setattr(_registry, "_ADDRESS", address)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def send(content, length=None):
    def respond(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


@pytest.mark.parametrize("progress", [False, True])
def test_download_is_verified_cached_and_not_repeated(nowhere, small_set, server, progress, capsys):
    name, content = small_set
    server.respond = send(content)
    data = datasets.load(name, progress=progress)
    assert data.labels.tolist() == [1, 0, 1]
    assert data.views[0].dtype == np.float64
    assert server.asked == ["/owner/repository/0123abc/Tiny.mat"]
    assert [path.name for path in files_below(nowhere)] == ["tiny.mat"]
    assert ("tiny.mat" in capsys.readouterr().err) is progress
    datasets.load(name)
    assert len(server.asked) == 1


def test_download_goes_to_data_home(nowhere, small_set, server, tmp_path):
    name, content = small_set
    server.respond = send(content)
    datasets.load(name, data_home=tmp_path / "mine")
    assert (tmp_path / "mine" / "tiny.mat").read_bytes() == content
    assert files_below(nowhere) == []


def broken_responses():
    def refuse(handler):
        handler.send_error(404)

    return {
        "truncated": lambda content: send(content[: len(content) // 2], length=len(content)),
        "wrong checksum": lambda content: send(content[:-1] + b"x"),
        "not found": lambda _: refuse,
    }


@pytest.mark.parametrize("kind", broken_responses())
def test_broken_download_leaves_nothing(kind, nowhere, small_set, server):
    name, content = small_set
    server.respond = broken_responses()[kind](content)
    with pytest.raises(
        DatasetNotFoundError, match=r"tiny\.mat of data set 'tiny' .* could not be downloaded .* EMVC_DATA"
    ):
        datasets.load(name)
    assert files_below(nowhere) == []
    server.respond = send(content)
    assert datasets.load(name).labels.tolist() == [1, 0, 1]


@pytest.mark.usefixtures("small_set")
def test_refused_connection_is_one_clear_error(nowhere, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(_registry, "_ADDRESS", f"http://127.0.0.1:{port}/{{path}}")
    with pytest.raises(DatasetNotFoundError, match=r"could not be downloaded .*refused"):
        datasets.load("tiny")
    assert files_below(nowhere) == []


@pytest.mark.usefixtures("nowhere")
def test_loading_without_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("EMVC_DATA", str(tmp_path / "nothing"))
    with pytest.raises(
        DatasetNotFoundError, match=r"webkb\.mat of data set 'webkb' was not found in .*nothing.*EMVC_DATA"
    ):
        datasets.load("webkb", download=False)
    with pytest.raises(ValueError, match="Unknown data set 'mnist'; choose from 100leaves"):
        datasets.load("mnist")
    with pytest.raises(ValueError, match=r"Unknown data set \['webkb'\]"):
        datasets.load(["webkb"])


@pytest.mark.usefixtures("nowhere")
def test_wrong_file_on_disk_is_refused_and_folders_are_searched_in_order(small_set, tmp_path, monkeypatch):
    name, content = small_set
    home, shared = tmp_path / "home", tmp_path / "shared"
    for folder in (home, shared):
        folder.mkdir()
    (shared / "tiny.mat").write_bytes(content)
    monkeypatch.setenv("EMVC_DATA", str(shared))
    assert datasets.load(name, data_home=home, download=False).name == "tiny"
    (home / "tiny.mat").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"home.tiny\.mat is not the expected version of data set 'tiny'"):
        datasets.load(name, data_home=home)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("name", ["fox", "cnn"])
def test_sets_without_a_source_take_the_users_file(name, tmp_path):
    with pytest.raises(DatasetNotFoundError, match=f"Data set '{name}' has no public source.*put it as {name}.mat"):
        datasets.load(name, data_home=tmp_path)
    n_samples, n_features, n_clusters = SUPPLIED[name]
    cell = np.empty((2, 1), dtype=object)
    cell[:, 0] = [np.zeros((n_samples, d), dtype=np.uint8) for d in n_features]
    classes = np.arange(n_samples)[:, None] % n_clusters + 1
    scipy.io.savemat(tmp_path / f"{name}.mat", {"X": cell, "y": classes}, do_compression=True)
    data = datasets.load(name, data_home=tmp_path)
    assert (len(data.labels), data.n_clusters) == (n_samples, n_clusters)
    scipy.io.savemat(tmp_path / f"{name}.mat", {"X": cell, "y": classes * 0}, do_compression=True)
    with pytest.raises(ValueError, match=f"is not data set '{name}': expected {n_samples} samples"):
        datasets.load(name, data_home=tmp_path)
    (tmp_path / f"{name}.mat").write_bytes(b"not a mat file")
    with pytest.raises(ValueError, match=r"cannot be read as a \.mat file"):
        datasets.load(name, data_home=tmp_path)


def test_registry_is_complete():
    for name, entry in REGISTRY.items():
        assert entry.citation
        assert entry.licence
        for file in entry.files:
            assert len(file.sha256) == 64
            assert file.address.startswith("https://github.com/")
            assert file.name.startswith(name)
