"""New samples: labels through the graphs of the views."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import emvc
from conftest import load_or_skip
from emvc import EMVC, extension, graphs
from emvc._validation import check_views
from emvc.extension import fit_kernel
from emvc.metrics import clustering_accuracy


def clusters(n_samples=150, n_views=3, seed=0, spread=6.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % 3
    return [spread * rng.standard_normal((3, 8))[labels] + rng.standard_normal((n_samples, 8)) for _ in range(n_views)]


@pytest.fixture(scope="module")
def fitted():
    views = clusters()
    return EMVC(3, random_state=0, n_jobs=1).fit([view[:120] for view in views]), views


def test_new_samples_join_their_clusters(fitted):
    model, views = fitted
    np.testing.assert_array_equal(model.predict(views), np.arange(150) % 3)
    np.testing.assert_array_equal(model.predict([view[:120] for view in views]), model.labels_)


def test_one_sample_at_a_time_and_in_any_order(fitted):
    model, views = fitted
    together = model.predict([view[120:] for view in views])
    alone = np.concatenate([model.predict([view[i : i + 1] for view in views]) for i in range(120, 150)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(model.predict([view[:119:-1] for view in views]), together[::-1])


def test_containers(blobs):
    views, labels = blobs
    model = EMVC(3, random_state=0, n_jobs=1).fit({"a": views[0], "b": views[1]})
    swapped = {"b": views[1], "a": views[0]}
    frames = {name: pd.DataFrame(view) for name, view in swapped.items()}
    sparse = {name: scipy.sparse.csr_array(view) for name, view in swapped.items()}
    for container in (views, swapped, frames, sparse):
        np.testing.assert_array_equal(model.predict(container), labels)
    from_sparse = EMVC(3, random_state=0, n_jobs=1).fit([scipy.sparse.csr_matrix(view) for view in views])
    np.testing.assert_array_equal(from_sparse.predict(views), labels)
    single = EMVC(3, random_state=0, n_jobs=1).fit(views[0])
    np.testing.assert_array_equal(single.predict(views[0]), labels)
    np.testing.assert_array_equal(make_pipeline(clone(single)).fit(views[0]).predict(views[0]), labels)


@pytest.mark.parametrize("affinity", ["rbf", "rbf-literal", "self-tuning", "cosine"])
def test_other_graphs(affinity, blobs):
    views, _labels = blobs
    model = EMVC(3, affinity=affinity, beta=1.0, lam=1.0, scale="zscore", random_state=0, n_jobs=1).fit(views)
    assert np.mean(model.predict(views) == model.labels_) >= 0.98


@pytest.mark.parametrize("affinity", ["rbf", "rbf-literal", "rbf-t100", "self-tuning", "cosine"])
def test_kernels_repeat_the_graph(affinity, rng):
    """A training sample, seen again, has nearly the row it has in the graph."""
    view = rng.standard_normal((60, 4))
    affinities = graphs.compute_affinity(view, affinity, n_neighbors=12)
    prepared = extension.prepare_view(view, affinity)
    kernel = extension.fit_kernel(graphs.squared_distances(prepared), affinity)
    rows = kernel.rows(graphs.squared_distances_between(prepared, prepared))
    correlation = [np.corrcoef(row, known)[0, 1] for row, known in zip(rows, affinities, strict=True)]
    assert min(correlation) > 0.99


def test_views_that_do_not_show_a_sample_are_left_out(fitted):
    model, views = fitted
    new = [view[120:].copy() for view in views]
    new[0][:10] = np.nan
    new[1][5:20] = np.nan
    new[2][20] = 1e4  # stands alone: must not vote there
    new[0][21] = -1e4
    np.testing.assert_array_equal(model.predict(new), np.arange(120, 150) % 3)


def test_training_samples_may_be_missing_and_wrong():
    views = [view.copy() for view in clusters()]
    views[0][:20] = np.nan
    views[1][20:50] = np.nan
    views[2][60:64] = 200.0
    model = EMVC(3, random_state=0, n_jobs=1).fit(views)
    new = [view[:120] for view in clusters()]
    np.testing.assert_array_equal(model.predict(new), np.arange(120) % 3)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("outliers", ["assign", "label"])
def test_samples_that_stand_alone_everywhere(outliers):
    views = clusters()
    model = EMVC(3, outliers=outliers, random_state=0, n_jobs=1).fit(views)
    far = [np.vstack([view[:3], np.full((1, 8), 1e3)]) for view in views]
    labels = model.predict(far)
    np.testing.assert_array_equal(labels[:3], [0, 1, 2])
    assert labels[3] in ({0, 1, 2} if outliers == "assign" else {-1})


def test_later_changes_of_the_data_do_not_matter():
    views = [view.copy() for view in clusters()]
    model = EMVC(3, random_state=0, n_jobs=1).fit(views)
    new = [view.copy() for view in views]
    for view in views:
        view[:] = 0.0
    np.testing.assert_array_equal(model.predict(new), model.labels_)


def test_another_fit_predicts_anew(blobs):
    views, _labels = blobs
    model = EMVC(3, random_state=0, n_jobs=1).fit(views)
    model.predict(views)
    model.fit([view[::-1] for view in views])
    np.testing.assert_array_equal(model.predict([view[::-1] for view in views]), model.labels_)


def kernel(view):
    return np.exp(-((view[:, None] - view) ** 2).sum(axis=2) / 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda views: views[:1], "EMVC was fitted to 2 views, but got 1"),
        (
            lambda views: {"a": views[0]},
            "view 'b' is missing; the model was fitted to 'a', 'b'. If the new samples do not have it, give rows",
        ),
        (lambda views: {"a": views[0], "b": views[1], "c": views[0]}, "view 'c' is unknown"),
        (lambda views: {"a": views[0], "b": views[1][:, :5]}, "view 'b' has 5 features, but EMVC was fitted to 6"),
        (lambda views: [views[0], views[1][:9]], "must have the same samples"),
        (lambda views: [views[0] * np.nan, views[1] * np.nan], "sample 0 and 59 more is missing"),
        (lambda views: [views[0][:0], views[1][:0]], "minimum of 1 is required"),
    ],
)
def test_wrong_views(change, message, blobs):
    model = EMVC(3, random_state=0, n_jobs=1).fit({"a": blobs[0][0], "b": blobs[0][1]})
    with pytest.raises(ValueError, match=message):
        model.predict(change(blobs[0]))


def test_graphs_that_cannot_be_extended(blobs):
    views = blobs[0]
    with pytest.raises(NotFittedError, match="not fitted yet"):
        EMVC(3).predict(views)
    by_callable = EMVC(3, affinity=kernel, scale=None, random_state=0, n_jobs=1).fit(views)
    by_matrix = EMVC(3, affinity="precomputed", random_state=0, n_jobs=1).fit([kernel(view) for view in views])
    for model in (by_callable, by_matrix):
        with pytest.raises(ValueError, match="predict cannot extend the graphs of affinity='precomputed' or of a call"):
            model.predict(views)


def test_webkb_training_samples_keep_their_labels(webkb):
    model = EMVC(2, random_state=0, n_jobs=1).fit(webkb.views)
    assert np.mean(model.predict(webkb.views) == model.labels_) >= 0.97


def test_handwritten_held_out_samples():
    """A fifth of the samples is placed nearly as well as those that were clustered."""
    data = load_or_skip("handwritten")
    chosen = np.random.default_rng(0).permutation(len(data.labels))
    new, known = np.sort(chosen[:400]), np.sort(chosen[400:])
    model = EMVC(10, random_state=0, tol=1e-2, n_jobs=1).fit([view[known] for view in data.views])
    labels = model.predict([view[new] for view in data.views])
    clustered = clustering_accuracy(data.labels[known], model.labels_)
    assert clustering_accuracy(data.labels[new], labels) >= clustered - 0.03


def test_views_are_checked_like_those_of_the_fit(blobs):
    assert check_views([view[:1] for view in blobs[0]], least_samples=1).n_samples == 1
    with pytest.raises(ValueError, match="needs at least 2 samples"):
        check_views([view[:1] for view in blobs[0]])


def test_self_tuning_scale_of_a_new_sample_is_that_of_its_neighbor(rng):
    known, new = rng.standard_normal((40, 3)), rng.standard_normal((6, 3))
    squares = ((known[:, None] - known) ** 2).sum(axis=2)
    kernel = fit_kernel(squares, "self-tuning")
    far = ((new[:, None] - known) ** 2).sum(axis=2)
    own = np.sqrt(np.sort(far, axis=1)[:, 6])  # the seventh
    scale = np.sqrt(np.sort(squares, axis=1)[:, 7])  # the seventh, not counting the sample itself
    np.testing.assert_allclose(kernel.rows(far), np.exp(-far / np.outer(own, scale)))


@pytest.fixture(scope="module")
def framed():
    frames = {
        f"v{k}": pd.DataFrame(view, columns=[f"f{j}" for j in range(8)]) for k, view in enumerate(clusters(n_views=2))
    }
    return EMVC(3, random_state=0).fit({name: frame[:120] for name, frame in frames.items()}), frames


def test_columns_are_put_in_order(framed, rng):
    model, frames = framed
    assert list(model.feature_names_in_) == ["v0", "v1"]
    assert model.feature_names_in_["v0"].tolist() == [f"f{j}" for j in range(8)]
    wanted = model.predict({name: frame[120:] for name, frame in frames.items()})
    mixed = {name: frame[120:].iloc[:, rng.permutation(8)] for name, frame in frames.items()}
    np.testing.assert_array_equal(model.predict(mixed), wanted)
    np.testing.assert_array_equal(model.predict(list(mixed.values())), wanted)
    np.testing.assert_array_equal(model.predict([frame.to_numpy()[120:] for frame in frames.values()]), wanted)


def test_other_columns_are_refused_by_name(framed, tmp_path):
    model, frames = framed
    model.save(tmp_path / "m.emvc")
    for fitted in (model, emvc.load(tmp_path / "m.emvc")):
        renamed = dict(frames, v1=frames["v1"].rename(columns={"f3": "g3", "f4": "g4"}))
        with pytest.raises(ValueError, match=r"view 'v1': column 'f3' and 1 more columns are missing.*'f0', 'f1'"):
            fitted.predict(renamed)
        with pytest.raises(ValueError, match="view 'v0': column 'extra' is unknown"):
            fitted.predict(dict(frames, v0=frames["v0"].assign(extra=0.0)))


def test_columns_of_one_table_are_put_in_order():
    frame = pd.DataFrame(clusters(n_views=1)[0]).rename(columns="f{}".format)
    model = EMVC(3, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.predict(frame.iloc[:, ::-1]), model.predict(frame))
    model.fit(frame.to_numpy())
    assert model.feature_names_in_ == {}
