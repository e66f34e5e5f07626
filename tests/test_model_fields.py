"""Models that are whole but could not come from a fit are refused by file and field before anything is computed."""

import dataclasses

import numpy as np
import pytest

import emvc
from emvc import EMVC, GMC, LMVSC, NEMO, BestSingleView, persistence
from emvc._model_fields import RULES
from emvc.persistence import ATTRIBUTES, ModelFileError
from test_persistence import in_json, rewrite


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 15)
    return [5 * rng.standard_normal((3, d))[labels] + rng.standard_normal((45, d)) for d in (4, 6)]


@pytest.fixture(scope="module")
def exact(views):
    return EMVC(3, random_state=0, n_jobs=1).fit(views)


@pytest.fixture(scope="module")
def landmarks(views):
    return EMVC(3, n_landmarks=12, random_state=0, n_jobs=1).fit(views)


def altered(model, path, **fields):
    """Write a model with other fields and the right checksum; names with a point are those of the training data."""
    model.save(path)
    other = emvc.load(path)
    for name, value in fields.items():
        if name.startswith("training__"):
            other._training = dataclasses.replace(other._training, **{name.removeprefix("training__"): value})
        elif name in other.get_params():
            other.set_params(**{name: value})
        else:
            setattr(other, name, value)
    persistence.save(other, path)
    return path


FORGED = [
    ({"training__n_neighbors": -(10**12)}, r"field _training\.n_neighbors must be between 1 and 44"),
    ({"training__n_neighbors": 45}, r"field _training\.n_neighbors must be between 1 and 44, not 45"),
    ({"n_neighbors": -(10**12)}, r"field n_neighbors must be at least 1, not -1000000000000"),
    ({"n_clusters_": 40_000}, "field n_clusters_ must be between 1 and 45, not 40000"),
    ({"n_clusters_": 2}, "field (_found_|labels_) holds values outside"),
    ({"labels_": np.full(45, -7)}, "field labels_ holds values outside of -1 to 2"),
    ({"view_names_": ["0"]}, "field .* must have the shape"),
    ({"view_names_": ["0", "0"]}, "field view_names_ has a name twice"),
    ({"consensus_": np.ones((45, 3))}, "field consensus_ must have the shape 45 x 45, not 45 x 3"),
    ({"consensus_": np.full((45, 45), np.nan)}, "field consensus_ holds values that are not finite"),
    ({"embedding_": np.ones(45)}, "field embedding_ must have the shape"),
    ({"outliers_": np.ones((45, 2))}, "field outliers_ must be an array of truth values"),
    ({"sample_errors_": np.full((45, 2), -1.0)}, "field sample_errors_ holds values outside"),
    ({"sample_names_": np.array(["a"])}, "field sample_names_ must have the shape 45, not 1"),
    ({"feature_names_in_": {"0": np.array(["a"])}}, "field feature_names_in_ names 1 columns of view '0'"),
    ({"feature_names_in_": "abc"}, "field feature_names_in_ must tell"),
    ({"n_features_in_": 3}, "field n_features_in_ must be 10, not 3"),
    ({"n_iter_": "<script>"}, "field n_iter_ must be an integer, not '<script>'"),
    ({"beta_": "x"}, "field beta_ must be a number"),
    ({"status_": "fine"}, "field status_ must be one of"),
    ({"eigenvalues_": np.ones((2, 2))}, "field eigenvalues_ must have the shape"),
    ({"_kept_": np.array([0, 0])}, "field _kept_ names a sample twice"),
    ({"_kept_": np.array([99])}, "field _kept_ holds values outside of 0 to 44"),
    ({"_found_": {"reliability": np.ones(2), "curve": np.ones((3, 2))}}, "field _found_ must have a curve of two rows"),
    ({"_found_": {"shell": 1}}, "field _found_ must hold reliability, and curve at most"),
    ({"_found_": {}}, "field _found_ must hold reliability"),
    ({"n_clusters_evidence_": [{"score": "<b>"}]}, "field n_clusters_evidence_ must be a list of records"),
    ({"training__image": np.ones((3, 2))}, r"field _training\.image must have 45 rows, not 3"),
    ({"training__centers": np.ones((9, 2))}, r"field _training\.centers must have the shape 3 x any"),
    ({"training__centers": np.ones((3, 2))}, r"field _training\.centers must have as many columns as _training\.image"),
    ({"training__missing": np.zeros((2, 2), dtype=bool)}, r"field _training\.missing must have the shape 45 x 2"),
    ({"training__views": (np.ones((45, 4)),)}, r"field _training\.views must have 2 views"),
    ({"training__views": (np.ones((45, 4)), np.ones((7, 6)))}, r"field _training\.views\[1\] has the shape 7 x 6"),
    ({"training__views": (np.ones((9, 4)), np.ones((9, 6)))}, r"field _training\.views must have 45 rows, not 9"),
    (
        {"training__views": (np.full((45, 4), 1e200), np.ones((45, 6)))},
        r"field _training\.views\[0\] holds values that no view can have",
    ),
    ({"training__names": ("a", "b")}, r"field _training\.names must be those of the views"),
    ({"n_init": -5}, "field n_init must be at least 1"),
    ({"n_jobs": -(10**9)}, "field n_jobs must be at least -1"),
    ({"solver": np.ones(3)}, "field solver must be a name or a number, not of type ndarray"),
    ({"outliers": "all"}, "field outliers must be one of"),
]


@pytest.mark.parametrize(("fields", "message"), FORGED, ids=lambda value: next(iter(value), "")[:20])
def test_exact_models_that_do_not_fit_together(fields, message, exact, tmp_path):
    path = altered(exact, tmp_path / "m.emvc", **fields)
    with pytest.raises(ModelFileError, match=rf"m\.emvc: {message}") as refusal:
        emvc.load(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"landmarks_": np.arange(13)}, "field consensus_ must have the shape 45 x 13"),
        ({"landmarks_": np.arange(100, 112)}, "field landmarks_ holds values outside of 0 to 44"),
        ({"_kept_": np.arange(11)}, "field _kept_ must have one number for each of 12 landmarks"),
        ({"_kept_": np.arange(1, 13)}, r"field _training\.views must have 12 rows"),
        ({"n_clusters_": 30}, "field (.*_found_|n_clusters_ must be at most the number of landmarks, 12)"),
    ],
    ids=lambda value: next(iter(value), "")[:20],
)
def test_models_with_landmarks_that_do_not_fit_together(fields, message, landmarks, tmp_path):
    path = altered(landmarks, tmp_path / "m.emvc", **fields)
    with pytest.raises(ModelFileError, match=message):
        emvc.load(path)


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        (NEMO, {"n_neighbors_": [-1, 10]}, "field n_neighbors_ must be between 1 and 44"),
        (NEMO, {"fused_": np.ones((3, 3))}, "field fused_ must have the shape 45 x 45"),
        (GMC, {"labels_from_": "<i>"}, "field labels_from_ must be one of"),
        (LMVSC, {"mixtures_": [np.ones((45, 2))]}, "field mixtures_ must have one matrix for each of 2 views"),
        (BestSingleView, {"best_view_": 2}, "field best_view_ must be between 0 and 1"),
        (BestSingleView, {"view_labels_": np.zeros((45, 2), dtype=int)}, "field view_labels_ must have the shape"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_other_models_that_do_not_fit_together(make, fields, message, views, tmp_path):
    path = altered(make(3, random_state=0).fit(views), tmp_path / "m.emvc", **fields)
    with pytest.raises(ModelFileError, match=message):
        emvc.load(path)


def test_every_attribute_has_a_rule():
    assert set(RULES) == ATTRIBUTES


def test_the_place_of_a_cache_never_travels(views, tmp_path):
    model = EMVC(3, memory=str(tmp_path / "cache"), random_state=0, n_jobs=1).fit(views)
    model.save(tmp_path / "m.emvc")
    assert b"cache" not in (tmp_path / "m.emvc").read_bytes()
    assert emvc.load(tmp_path / "m.emvc").memory is None
    assert model.memory == str(tmp_path / "cache")


def test_a_cache_in_a_file_is_not_used(exact, tmp_path):
    exact.save(tmp_path / "m.emvc")
    rewrite(tmp_path / "m.emvc", tmp_path / "n.emvc", in_json(params={"n_clusters": 3, "memory": "elsewhere"}))
    assert emvc.load(tmp_path / "n.emvc").memory is None


def test_a_model_without_its_training_samples(views, tmp_path):
    marked = [view.copy() for view in views]
    marked[0][7, 2] = 1.2345678901234567
    model = EMVC(3, random_state=0, n_jobs=1).fit(marked)
    model.save(tmp_path / "full.emvc")
    model.save(tmp_path / "bare.emvc", training=False)
    value = np.float64(1.2345678901234567).tobytes()
    assert value in (tmp_path / "full.emvc").read_bytes()
    assert value not in (tmp_path / "bare.emvc").read_bytes()
    again = emvc.load(tmp_path / "bare.emvc")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    np.testing.assert_array_equal(again.reliability_, model.reliability_)
    for ask in (again.predict, again.transform, again.predict_proba):
        with pytest.raises(ValueError, match="was saved with training=False"):
            ask(views)
    assert model.predict(views).shape == (45,)
