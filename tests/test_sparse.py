"""Damaged sparse matrices are refused before SciPy converts them, which would write out of bounds."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from emvc import EMVC, load
from emvc._sparse import check_sparse
from emvc._validation import check_affinity, check_views
from emvc.files import read_views

FORMATS = ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"]


def with_parts(kind, **parts):
    """Return a matrix of 4 x 6 whose parts were changed after it was made."""
    rng = np.random.default_rng(0)
    dense = rng.random((4, 6)) * (rng.random((4, 6)) < 0.4)
    matrix = scipy.sparse.coo_array(dense).asformat(kind)
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def changed(kind, name, position, value):
    part = getattr(with_parts(kind), name).copy()
    part[position] = value
    return with_parts(kind, **{name: part})


def lists_that_differ():
    matrix = with_parts("lil")
    matrix.rows[0] = [*matrix.rows[0], 1]
    return matrix


def far_list():
    matrix = with_parts("lil")
    matrix.rows[0], matrix.data[0] = [400_000_000], [1.0]
    return matrix


DAMAGED = [
    (lambda: changed("csr", "indices", 0, 400_000_000), "an index is outside of 0 to 5"),
    (lambda: changed("csc", "indices", 0, 400_000_000), "an index is outside of 0 to 3"),
    (lambda: changed("csr", "indices", 0, -1), "an index is outside"),
    (lambda: changed("bsr", "indices", 0, 99), "an index is outside"),
    (lambda: changed("csc", "indptr", 2, 10**6), "row pointers do not rise"),
    (lambda: changed("csr", "indptr", 0, 1), "row pointers do not rise from 0"),
    (lambda: changed("csr", "indptr", -1, 10**6), "do not have the same number of entries"),
    # The check of SciPy looks no further where the last pointer is zero.
    (lambda: with_parts("csr", indptr=np.array([0, 10**8, 10**8, 0, 0])), "row pointers do not rise"),
    (lambda: with_parts("csr", indptr=np.zeros(9, dtype=np.int32)), "needs 5 row pointers"),
    (lambda: with_parts("csr", indices=np.array([0.5])), "do not have the same number"),
    (lambda: with_parts("csr", data=np.ones(3)), "do not have the same number"),
    (lambda: changed("dia", "offsets", 1, with_parts("dia").offsets[0]), "an offset appears twice"),
    (lambda: with_parts("dia", offsets=np.array([0])), "one offset for each diagonal"),
    (lists_that_differ, "different lengths"),
    (far_list, "an index is outside of 0 to 5"),
]


def far_coordinates():
    matrix = with_parts("coo")
    matrix.coords = (matrix.coords[0].copy(), matrix.coords[1])
    matrix.coords[0][0] = 10**6
    return matrix


@pytest.mark.parametrize(("make", "message"), [*DAMAGED, (far_coordinates, "an index is outside of 0 to 3")])
def test_damaged_matrices_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=f"view 'gene' is a damaged sparse matrix: .*{message}"):
        check_views({"gene": make(), "lipid": np.ones((4, 2))})


@pytest.mark.parametrize("kind", FORMATS)
def test_sound_matrices_become_the_same_rows(kind):
    matrix = with_parts(kind)
    found = check_sparse(matrix, "a view")
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())
    empty = scipy.sparse.csr_array((3, 4)).asformat(kind)
    assert check_sparse(empty, "a view").nnz == 0


@pytest.mark.parametrize("kind", ["coo", "dia", "csc"])
def test_shapes_that_would_take_forever_are_refused(kind):
    matrix = scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(2**31, 2)).asformat(kind)
    with pytest.raises(ValueError, match="a view is a sparse matrix that claims 2147483648 rows"):
        check_sparse(matrix, "a view")


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="1 dimensions instead of two"):
        check_sparse(scipy.sparse.coo_array(np.ones(3)), "a view")


def test_affinities_are_looked_at():
    damaged = scipy.sparse.csr_array(np.eye(4))
    damaged.indices[0] = 10**6
    with pytest.raises(ValueError, match=r"view 'a'.* an index is outside"):
        EMVC(2, affinity="precomputed").fit({"a": damaged, "b": np.eye(4)})
    with pytest.raises(ValueError, match=r"The affinity of a callable .* an index is outside"):
        check_affinity(damaged, "a callable")


@pytest.mark.parametrize(
    "parts",
    [
        {"format": "csc", "shape": (3, 2), "indices": [0, 400_000_000], "indptr": [0, 1, 2], "data": [1.0, 2.0]},
        {"format": "csr", "shape": (40, 2), "indices": [0] * 40 + [9], "indptr": range(1, 42), "data": [1.0] * 41},
        {"format": "coo", "shape": (3, 2), "row": [0, 10**9], "col": [0, 1], "data": [1.0, 2.0]},
        {"format": "bsr", "shape": (4, 4), "indices": [0, 10**8], "indptr": [0, 1, 2], "data": np.ones((2, 2, 2))},
    ],
    ids=lambda parts: parts["format"],
)
def test_npz_files_with_an_index_out_of_range(parts, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **{name: np.array(value) for name, value in parts.items()})
    with pytest.raises(ValueError, match=r"a\.npz") as refusal:
        read_views([path])
    assert "\n" not in str(refusal.value)


def test_mat_files_with_an_index_out_of_range(tmp_path):
    path, matrix = tmp_path / "a.mat", scipy.sparse.csc_matrix(np.arange(12.0).reshape(4, 3))
    scipy.io.savemat(path, {"x": matrix}, do_compression=False)
    content, wanted = path.read_bytes(), matrix.indices.astype("<i4").tobytes()
    assert content.count(wanted) == 1
    damaged = matrix.indices.astype("<i4")
    damaged[0] = 400_000_000
    path.write_bytes(content.replace(wanted, damaged.tobytes()))
    with pytest.raises(ValueError, match=r"a\.mat"):
        read_views([path])


def test_models_with_an_index_out_of_range(blobs, tmp_path):
    views = [scipy.sparse.csr_array(np.abs(blobs[0][0])), blobs[0][1]]
    model = EMVC(3, random_state=0, n_jobs=1).fit(views)
    model.save(tmp_path / "m.emvc")
    assert load(tmp_path / "m.emvc").predict(views).shape == (60,)
    model._training.views[0].indices[0] = 10**6
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        model.save(tmp_path / "n.emvc")
