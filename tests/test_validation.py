import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from emvc import _validation
from emvc._validation import (
    check_choice,
    check_generator,
    check_integer,
    check_memory,
    check_number,
    check_views,
)

X = np.arange(12.0).reshape(4, 3)


def test_containers_and_names():
    assert check_views([X, X]).names == ("0", "1")
    assert check_views((X, X)).names == ("0", "1")
    assert check_views({"text": X, "image": X}).names == ("text", "image")
    assert check_views(np.stack([X, X])).names == ("0", "1")
    assert check_views([X.tolist(), X.tolist()]).n_features == (3, 3)
    single = check_views(X)
    assert (single.names, single.single) == (("0",), True)
    assert check_views(X.tolist()).single
    assert not check_views([X]).single


def test_types_are_converted():
    frame = pd.DataFrame(X.astype(np.uint8))
    sparse = scipy.sparse.coo_matrix(X)
    views = check_views([frame, sparse, X.astype(np.float32)])
    assert all(array.dtype == np.float64 for array in views.arrays)
    assert scipy.sparse.issparse(views.arrays[1])
    np.testing.assert_array_equal(views.arrays[1].toarray(), X)


def with_value(value, row=2, column=1):
    array = X.copy()
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    ("views", "error", "message"),
    [
        ([X, X[:3]], ValueError, r"view '0' has 4 rows, view '1' has 3"),
        ({"a": X, "b": X[0]}, ValueError, r"view 'b'.*1D array"),
        ({"a": X, "b": X[None]}, ValueError, r"view 'b'.*dim 3"),
        ({"a": X, "b": with_value(np.nan)}, ValueError, r"view 'b': sample 2 contains NaN in column 1"),
        ({"a": X, "b": with_value(np.inf)}, ValueError, r"view 'b': sample 2 contains infinity \(inf\)"),
        (
            {"a": X, "b": with_value(1e308)},
            ValueError,
            r"view 'b': the value 1e\+308 of sample 2 .* too large",
        ),
        (
            {"a": X, "b": scipy.sparse.csr_array(with_value(np.nan))},
            ValueError,
            r"view 'b': sample 2 contains NaN",
        ),
        ({"a": X, "b": with_value(np.nan, 2, slice(None))}, ValueError, r"view 'b': sample 2 is missing"),
        ({"a": X, "b": X.astype(str).astype(object) + "x"}, ValueError, r"view 'b': column 0 is text \('0.0x'\)"),
        ({"a": X, "b": X + 1j}, ValueError, r"view 'b'.*Complex data not supported"),
        ({"a": X, "b": np.empty((4, 0))}, ValueError, r"view 'b'.*0 feature"),
        ({"a": X, "b": np.empty((0, 3))}, ValueError, r"view 'b'.*0 sample"),
        ({"a": X, "b": "text"}, ValueError, r"view 'b'"),
        ({"a": X, "b": np.ma.masked_array(X)}, TypeError, r"view 'b' is a masked array"),
        ({"a": X, "b": [[10**400, 1]] * 4}, OverflowError, r"view 'b'"),
        ({1: X, "1": X}, ValueError, r"Two views have the same name: '1', '1'"),
        (None, TypeError, "views must be a list, tuple or dict .* got None of type NoneType"),
        ("data.csv", TypeError, "views must be a list, tuple or dict .* of type str"),
        ((view for view in [X]), TypeError, "views must be a list, tuple or dict .* of type generator"),
        (
            {"a": X, "b": scipy.sparse.csr_array(with_value(np.nan, 2, slice(None)))},
            ValueError,
            r"view 'b': sample 2 is missing",
        ),
        ({"a": X, "b": X * 1e-155}, ValueError, r"view 'b': no value is larger than .*e-15\d, which is too small"),
        ({"a": X, "b": scipy.sparse.csr_array(X * 1e-200)}, ValueError, r"view 'b': no value .* too small"),
        (
            {"a": X, "b": X.astype("datetime64[D]")},
            TypeError,
            "view .b. holds dates or times. Turn them",
        ),
        ({"a": X, "b": X.astype("timedelta64[s]")}, TypeError, "view 'b' holds dates"),
        ([X[:, 0], X[:, 1]], ValueError, r"The 2 views have one dimension each.*view\.reshape\(-1, 1\)"),
        ({}, ValueError, "dictionary is empty"),
        ([], ValueError, "list is empty"),
        ([X[:1], X[:1]], ValueError, "n_samples = 1"),
    ],
)
def test_bad_views_name_the_culprit(views, error, message):
    with pytest.raises(error, match=message):
        check_views(views)


def test_small_values_are_taken_while_their_squares_are_numbers():
    check_views([X * 1e-149, np.zeros((4, 2)), scipy.sparse.csr_array((4, 3))])
    check_views([X * 1e-200, X], least_samples=1)  # new samples
    check_views([np.eye(4) * 1e-200, np.eye(4)], precomputed=True)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (X, r"view '1' must be square, got shape \(4, 3\)"),
        (-np.eye(4), r"view '1' must not be negative, but entry \(0, 0\) is"),
        (scipy.sparse.csr_array(-np.eye(4)), r"view '1' must not be negative"),
    ],
)
def test_bad_precomputed_affinities(affinity, message):
    with pytest.raises(ValueError, match=message):
        check_views([np.eye(4), affinity], precomputed=True)


def test_options():
    assert check_integer(np.int64(3), "n", least=1) == 3
    with pytest.raises(TypeError, match=r"n must be an integer, got 2\.5"):
        check_integer(2.5, "n", least=1)
    with pytest.raises(TypeError, match="n must be an integer, got True"):
        check_integer(True, "n", least=1)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        check_integer(0, "n", least=1)
    assert check_number(1, "x") == 1.0
    with pytest.raises(TypeError, match="x must be a number, got '1'"):
        check_number("1", "x")
    with pytest.raises(ValueError, match="x must be finite and at least 0, got nan"):
        check_number(float("nan"), "x")
    with pytest.raises(ValueError, match="x must be finite and above 0, got 0"):
        check_number(0, "x", strict=True)


def test_generators():
    assert check_generator(3).random() == check_generator(3).random()
    generator = np.random.default_rng(0)
    assert check_generator(generator) is generator
    legacy = [check_generator(np.random.RandomState(1)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert isinstance(check_generator(None), np.random.Generator)
    assert isinstance(check_generator(np.random), np.random.Generator)
    for bad in ("seed", True, 1.5):
        with pytest.raises(ValueError, match=f"random_state={bad!r} cannot be used to seed"):
            check_generator(bad)
    with pytest.raises(ValueError, match="random_state must be at least 0, got -1"):
        check_generator(-1)


@pytest.mark.parametrize("value", [np.array(["auto", "auto"]), np.array("auto"), 3, ["auto"]])
def test_choices_are_strings(value):
    with pytest.raises(ValueError, match="Unknown scale="):
        check_choice(value, "scale", ("auto", None))


def test_memory_is_checked_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr(_validation, "available_memory", lambda: 2**30)
    check_memory(10, (1000, 1000), advice="")
    message = r"About 74\.5 GiB are needed for 31623 samples.*only 1\.0 GiB are available\. Use a subset\."
    with pytest.raises(MemoryError, match=message):
        check_memory(10, (31623, 31623), advice="Use a subset.")


def test_available_memory_is_plausible():
    memory = _validation.available_memory()
    assert memory is None or 2**20 < memory < 2**50
