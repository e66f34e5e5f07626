import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from emvc.experiments.board.collection import HALVES, find_sets, half_of


def write_npz(path, n=12, *, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    first, second = rng.random((n, 3)), rng.random((n, 4)).astype(np.float32)
    arrays = {"x0": first, "x1": second, "y": np.arange(n) % 3}
    if sparse:
        matrix = scipy.sparse.csr_array(second > 0.5).astype(np.float32)
        del arrays["x1"]
        arrays |= {f"x1_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(path, **arrays)
    return first, second


def test_reads_dense_and_sparse_views(tmp_path):
    first, second = write_npz(tmp_path / "mine.npz", sparse=True)
    (entry,) = find_sets([tmp_path])
    data = entry.read()
    assert (entry.name, entry.kind, entry.family, entry.n_samples) == ("mine", "other", "mine", 12)
    np.testing.assert_array_equal(data.views[0], first)
    np.testing.assert_array_equal(data.views[1].toarray(), (second > 0.5).astype(float))
    assert data.views[1].dtype == np.float64
    assert data.n_clusters == 3


def test_reads_mat_files_with_either_name_of_the_classes(tmp_path):
    views = np.empty(2, dtype=object)
    views[0], views[1] = np.arange(12, dtype=np.uint8).reshape(6, 2), scipy.sparse.csc_array(np.eye(6))
    scipy.io.savemat(tmp_path / "cells.mat", {"X": views, "Y": np.array([[1], [1], [2], [2], [3], [3]])})
    data = find_sets([tmp_path / "cells.mat"])[0].read()
    assert data.views[0].dtype == np.float64
    np.testing.assert_array_equal(data.views[1].toarray(), np.eye(6))
    np.testing.assert_array_equal(data.labels, [0, 0, 1, 1, 2, 2])


def test_small_sets_come_first_and_large_ones_can_be_left_out(tmp_path):
    (tmp_path / "deep").mkdir()
    write_npz(tmp_path / "large.npz", 30)
    write_npz(tmp_path / "deep" / "small.npz", 10)
    assert [entry.name for entry in find_sets([tmp_path])] == ["small", "large"]
    assert [entry.name for entry in find_sets([tmp_path], most_samples=20)] == ["small"]


def test_a_manifest_tells_kind_and_family(tmp_path):
    write_npz(tmp_path / "mine.npz")
    (tmp_path / "MANIFEST.json").write_text(json.dumps([{"name": "mine", "kind": "sensor", "family": "tara"}]))
    (entry,) = find_sets([tmp_path])
    assert (entry.kind, entry.family, entry.half) == ("sensor", "tara", "confirm")


def test_a_changed_file_is_another_data_set(tmp_path):
    write_npz(tmp_path / "mine.npz")
    (before,) = find_sets([tmp_path])
    write_npz(tmp_path / "mine.npz", seed=1)
    (after,) = find_sets([tmp_path])
    assert before.digest != after.digest


def test_families_are_in_one_half_and_the_tuned_ones_in_the_first():
    halves = {half: [name for names in kinds.values() for name in names] for half, kinds in HALVES.items()}
    assert not set(halves["choose"]) & set(halves["confirm"])
    tuned = {"webkb", "bbcsport", "3sources", "msrc", "100leaves", "handwritten", "citeseer", "scene15"}
    assert tuned <= set(halves["choose"])
    unknown = {half_of(f"family {number}") for number in range(20)}
    assert unknown == {"choose", "confirm"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.npz", b"PK nothing", r"bad\.npz is not a data set"),
        ("bad.mat", b"nothing at all", r"bad\.mat is not a data set"),
        ("MANIFEST.json", b'{"a": 1}', r"MANIFEST\.json is not a list of data sets"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    write_npz(tmp_path / "good.npz")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        find_sets([tmp_path])


def test_views_that_do_not_match_the_classes_are_named(tmp_path):
    np.savez(tmp_path / "short.npz", x0=np.ones((3, 2)), y=np.arange(4))
    with pytest.raises(ValueError, match=r"has 4 classes y, but views of shape \(3, 2\)"):
        find_sets([tmp_path])[0].read()


def test_indices_of_sparse_views_are_checked(tmp_path):
    parts = {"x0_data": [1.0], "x0_indices": [400], "x0_indptr": [0, 1, 1], "x0_shape": [2, 3]}
    np.savez(tmp_path / "wild.npz", y=np.arange(2), **parts)
    with pytest.raises(ValueError, match=r"wild\.npz cannot be read as a data set"):
        find_sets([tmp_path])[0].read()


def test_pickled_objects_are_not_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", x0=np.array([{}, {}], dtype=object), y=np.arange(2))
    with pytest.raises(ValueError, match=r"evil\.npz cannot be read as a data set"):
        find_sets([tmp_path])[0].read()


def test_nothing_to_find(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no data set"):
        find_sets([tmp_path])
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        find_sets([tmp_path / "absent"])


def test_two_sets_of_the_same_name(tmp_path):
    (tmp_path / "deep").mkdir()
    write_npz(tmp_path / "mine.npz")
    write_npz(tmp_path / "deep" / "mine.npz", seed=1)
    with pytest.raises(ValueError, match="Two data sets are called mine"):
        find_sets([tmp_path])
