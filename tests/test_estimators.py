"""One contract for every estimator, and what is special to each."""

import tracemalloc
import warnings

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from emvc import (
    AMGL,
    EMVC,
    ETLMSC,
    GMC,
    LMVSC,
    NEMO,
    RMSC,
    SNF,
    BestSingleView,
    CoRegularized,
    FeatureConcatenation,
    KernelAddition,
)
from emvc.estimators import _solve
from emvc.metrics import clustering_accuracy, clustering_scores
from emvc.solvers import ADMM, ALM

PEERS = [SNF, NEMO, GMC, LMVSC, ETLMSC]
ESTIMATORS = [EMVC, RMSC, AMGL, CoRegularized, KernelAddition, FeatureConcatenation, BestSingleView, *PEERS]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)


@every_estimator
def test_scikit_learn_contract(estimator):
    with warnings.catch_warnings():
        # Checks fit random points by hundreds of settings; k-means may then find fewer clusters than asked for.
        warnings.simplefilter("ignore")
        check_estimator(estimator())


@every_estimator
def test_finds_clear_clusters(estimator, blobs):
    views, labels = blobs
    model = estimator(n_clusters=3, random_state=0)
    assert model.fit(views) is model
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(clone(model).fit_predict(views), labels)
    assert model.n_clusters_ == 3
    assert model.n_features_in_ == 10
    assert not hasattr(model, "score")


@every_estimator
def test_containers_give_the_same_labels(estimator, blobs):
    views, labels = blobs
    frames = {name: pd.DataFrame(view) for name, view in zip(("a", "b"), views, strict=True)}
    sparse = [scipy.sparse.csr_matrix(view) for view in views]
    for container in (tuple(views), frames, sparse):
        model = estimator(n_clusters=3, random_state=0).fit(container)
        np.testing.assert_array_equal(model.labels_, labels)
    assert estimator(n_clusters=3, random_state=0).fit(frames).view_names_ == ["a", "b"]


@every_estimator
def test_one_array_is_one_view(estimator, blobs):
    views, labels = blobs
    np.testing.assert_array_equal(estimator(n_clusters=3, random_state=0).fit_predict(views[0]), labels)


@every_estimator
def test_same_seed_same_labels(estimator, rng):
    views = [rng.standard_normal((80, 3)) for _ in range(2)]
    first, second = (estimator(n_clusters=4, random_state=7).fit_predict(views) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@every_estimator
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_clusters": 61}, ValueError, "n_clusters=61 is larger than the number of samples, n_samples=60"),
        ({"n_clusters": 1}, ValueError, "n_clusters must be at least 2, got 1"),
        ({"n_clusters": 2.5}, TypeError, r"n_clusters must be an integer, got 2\.5"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        (
            {"scale": "minmax"},
            ValueError,
            "Unknown scale='minmax'; choose from 'auto', 'unit', 'zscore', None",
        ),
        ({"random_state": "x"}, ValueError, "cannot be used to seed"),
    ],
)
def test_bad_options(estimator, options, error, message, blobs):
    with pytest.raises(error, match=message):
        estimator(**{"n_clusters": 3} | options).fit(blobs[0])


@pytest.mark.parametrize("estimator", [EMVC, KernelAddition, AMGL, RMSC])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"affinity": "gauss"}, ValueError, "Unknown affinity='gauss'; choose from 'auto', 'local'"),
        ({"embedding": "raw"}, ValueError, "Unknown embedding='raw'"),
        ({"n_neighbors": 60, "affinity": "local"}, ValueError, "n_neighbors=60 must be smaller than"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1"),
        ({"n_neighbors": "many"}, TypeError, "n_neighbors must be an integer"),
    ],
)
def test_bad_graph_options(estimator, options, error, message, blobs):
    with pytest.raises(error, match=message):
        estimator(3, **options).fit(blobs[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beta": -1.0}, ValueError, "beta must be finite and at least 0, got -1"),
        ({"beta": 1e308}, ValueError, r"beta=1e\+308 is too large; at 1e\+09 it rules"),
        ({"lam": float("inf")}, ValueError, "lam must be finite and at least 0, got inf"),
        ({"beta": "best"}, ValueError, "Unknown beta='best'; choose from 'auto'"),
        ({"lam": None}, TypeError, "lam must be a number, got None"),
        ({"solver": "sgd"}, ValueError, "Unknown solver='sgd'; choose from 'auto', 'admm', 'alm', 'alm-authors'"),
        ({"tol": 0.0}, ValueError, "tol must be finite and above 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_emvc_options(options, error, message, blobs):
    with pytest.raises(error, match=message):
        EMVC(3, **options).fit(blobs[0])


@pytest.mark.parametrize("affinity", ["auto", "local", "rbf", "self-tuning", "cosine"])
def test_graphs_by_name(affinity, blobs):
    views, labels = blobs
    model = EMVC(3, affinity=affinity, beta=1.0, lam=1.0, random_state=0).fit(views)
    assert clustering_accuracy(labels, model.labels_) > 0.95


def test_precomputed_and_callable_affinities_agree(blobs):
    views, labels = blobs

    def kernel(view):
        return np.exp(-((view[:, None] - view) ** 2).sum(axis=2) / 8)

    by_callable = EMVC(3, affinity=kernel, scale=None, random_state=0).fit(views)
    by_matrix = EMVC(3, affinity="precomputed", random_state=0).fit([kernel(view) for view in views])
    sparse = EMVC(3, affinity="precomputed", random_state=0).fit(
        [scipy.sparse.csr_array(kernel(view)) for view in views]
    )
    np.testing.assert_allclose(by_callable.consensus_, by_matrix.consensus_)
    np.testing.assert_allclose(sparse.consensus_, by_matrix.consensus_)
    np.testing.assert_array_equal(by_matrix.labels_, labels)


@pytest.mark.parametrize("estimator", [KernelAddition, AMGL, RMSC, CoRegularized])
@pytest.mark.parametrize("convert", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_affinities(estimator, convert, blobs):
    views, labels = blobs
    kernels = [np.exp(-((view[:, None] - view) ** 2).sum(axis=2) / 8) for view in views]
    model = estimator(3, affinity="precomputed", random_state=0).fit([convert(kernel) for kernel in kernels])
    np.testing.assert_array_equal(model.labels_, labels)


def test_estimated_memory_covers_the_peak(rng):
    """At this size the chunks of the graph weigh little beside the N x N matrices."""
    views = [rng.standard_normal((700, 3)) for _ in range(2)]
    estimates = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("emvc", "kernel_addition"):
            patch.setattr(f"emvc.estimators.{name}.check_memory", lambda n, _shape, **_: estimates.__setitem__("n", n))
        for model in (EMVC(3, max_iter=10, tol=1.0), EMVC(3, solver="alm", max_iter=3), KernelAddition(3)):
            tracemalloc.start()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(views)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak / (8 * 700**2) <= estimates["n"]


def test_fitted_attributes(blobs):
    views, _ = blobs
    model = EMVC(3, random_state=0).fit(views)
    assert model.status_ == "converged"
    assert 0 <= model.duality_gap_ <= 1e-9
    assert model.objective_ == pytest.approx(model.problem_.objective(model.consensus_), abs=1e-9)
    assert model.problem_.dual_bound(model.multipliers_) == pytest.approx(model.objective_, abs=1e-6)
    assert model.beta_ > 0
    assert model.lam_ == 0
    assert model.embedding_.shape == (60, 20)
    assert model.consensus_.shape == (60, 60)
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0)
    assert model.sample_errors_.shape == (60, 2)
    assert model.sample_errors_.min() >= 0
    assert model.sample_errors_.max() <= 1
    assert model.view_errors_.shape == (2,)
    assert 0 <= model.view_errors_.min() <= model.view_errors_.max() <= 1
    np.testing.assert_array_equal(model.reliability_, 1 - model.view_errors_)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert model.history_.iteration[-1] == model.n_iter_
    assert model.rank_ == np.linalg.matrix_rank(model.consensus_)


def test_weights_choose_the_model_of_the_paper(blobs):
    model = EMVC(3, solver="admm", random_state=0).fit(blobs[0])
    assert model.beta_ == model.lam_ == pytest.approx(4 * np.sqrt(3 / 60) / 3)
    assert model.duality_gap_ <= 1e-3
    assert model.problem_.objective(model.consensus_) == pytest.approx(model.objective_, rel=1e-6)
    given = EMVC(3, beta=model.beta_, lam=model.lam_, random_state=0).fit(blobs[0])
    np.testing.assert_allclose(given.consensus_, model.consensus_, atol=1e-12)
    with pytest.raises(AttributeError, match="multipliers_ are there after a fit of the row problem"):
        _ = model.multipliers_


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize("solver", ["admm", "alm"])
def test_four_versions(beta, lam, solver, blobs):
    """Only EMVC(*), without weights, loses the clusters: its consensus is the uniform matrix."""
    views, labels = blobs
    model = EMVC(3, beta=beta, lam=lam, solver=solver, random_state=0).fit(views)
    if beta == lam == 0:
        np.testing.assert_allclose(model.consensus_, 1 / 60, atol=1e-3)
        assert model.objective_ == pytest.approx(1.0, abs=2e-3)
    else:
        np.testing.assert_array_equal(model.labels_, labels)


def test_published_configuration(blobs):
    model = EMVC.paper(3, beta=0.1, lam=0.2, random_state=0)
    assert (model.solver, model.affinity, model.scale, model.beta, model.lam) == (
        "alm",
        "rbf",
        None,
        0.1,
        0.2,
    )
    assert clustering_accuracy(blobs[1], model.fit(blobs[0]).labels_) > 0.9
    assert EMVC.paper(3, 0.1, 0.2, affinity="rbf-literal").affinity == "rbf-literal"


def test_solver_objects_are_used_as_they_are(blobs):
    views, _ = blobs
    assert EMVC(3, solver=ADMM(tol=1e-6), random_state=0).fit(views).duality_gap_ <= 1e-6
    authors = EMVC(3, solver=ALM(stop="objective"), random_state=0).fit(views)
    by_name = EMVC(3, solver="alm-authors", random_state=0).fit(views)
    np.testing.assert_array_equal(authors.consensus_, by_name.consensus_)


def test_not_converging_warns_once(blobs):
    model = EMVC(3, solver="admm", max_iter=2, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="EMVC reached max_iter=2 with a duality gap of") as caught:
        model.fit(blobs[0])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.status_ == "reached max_iter"


def test_interrupting_leaves_a_message_and_no_half_fitted_model(blobs, monkeypatch):
    def interrupt(*_args, progress, **_options):
        progress(30, None)
        raise KeyboardInterrupt

    monkeypatch.setattr(_solve, "run", interrupt)
    model = EMVC(3, solver="admm")
    with pytest.raises(KeyboardInterrupt, match="interrupted after about 30 iterations; nothing was fitted"):
        model.fit(blobs[0])
    assert [name for name in vars(model) if name.endswith("_")] == []


@pytest.mark.parametrize("solver", ["admm", "alm"])
def test_progress_bar(solver, blobs, capsys):
    EMVC(3, solver=solver, random_state=0, verbose=1).fit(blobs[0])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("gap" if solver == "admm" else "residual") in shown.err
    assert "rank" in shown.err


@pytest.mark.parametrize(("dtype", "rounding"), [("float64", 1e-9), ("float32", 1e-6)])
def test_threads_change_nothing(rng, dtype, rounding):
    """Labels and, up to rounding, the consensus are the same for one thread and for all."""
    labels = np.arange(300) % 4
    views = [2.0 * rng.standard_normal((4, 5))[labels] + rng.standard_normal((300, 5)) for _ in range(2)]
    models = [EMVC(4, random_state=0, dtype=dtype, n_jobs=n_jobs).fit(views) for n_jobs in (1, 2, -1)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_allclose(model.consensus_, models[0].consensus_, rtol=0, atol=rounding)


def test_too_large_for_memory(monkeypatch, blobs):
    monkeypatch.setattr("emvc._validation.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"GiB are needed for 60 samples.*Cluster a subset"):
        EMVC(3).fit(blobs[0])


def test_destroyed_samples_stand_out_in_their_view(blobs):
    views, labels = blobs
    damaged = [views[0], views[1].copy()]
    damaged[1][:3] = np.random.default_rng(0).uniform(-8, 8, (3, 6))
    model = EMVC(3, random_state=0).fit(damaged)
    assert set(np.argsort(-model.sample_errors_[:, 1])[:3]) == {0, 1, 2}
    assert clustering_accuracy(labels, model.labels_) > 0.95


def test_inside_a_pipeline(blobs):
    pipeline = make_pipeline(EMVC(3, random_state=0))
    np.testing.assert_array_equal(pipeline.fit_predict(blobs[0]), blobs[1])


@pytest.mark.parametrize("c", [2, 4, 8])
def test_webkb_certificate(c, webkb):
    """Default graph, weights c / sqrt(N): the gap is closed within 300 iterations."""
    weight = c / np.sqrt(len(webkb.labels))
    model = EMVC(2, beta=weight, lam=weight, max_iter=300, random_state=0).fit(webkb.views)
    assert model.status_ == "converged"
    assert model.duality_gap_ <= 1e-3


def test_webkb_published_schedule_misses_the_optimum(webkb):
    """The paper's kernel at beta = lam = 0.01: certified 1.044, published 1.316."""
    options = {"beta": 0.01, "lam": 0.01, "affinity": "rbf", "scale": None, "random_state": 0}
    certified = EMVC(2, **options).fit(webkb.views)
    assert certified.objective_ == pytest.approx(1.044, abs=2e-3)
    published = EMVC(2, solver="alm", **options).fit(webkb.views)
    assert published.objective_ > 1.2 * certified.objective_


def test_webkb_published_configuration(webkb):
    """The paper: accuracy .972 and NMI .776, weights chosen with labels; kernel addition .963 and .717."""
    model = EMVC.paper(2, beta=1e-6, lam=1e-3, random_state=0).fit(webkb.views)
    scores = clustering_scores(webkb.labels, model.labels_)
    assert scores["accuracy"] >= 0.972
    assert scores["nmi"] >= 0.776
    baseline = KernelAddition(2, scale=None, random_state=0).fit(webkb.views)
    scores = clustering_scores(webkb.labels, baseline.labels_)
    assert scores["accuracy"] == pytest.approx(0.963, abs=0.003)
    assert scores["nmi"] == pytest.approx(0.717, abs=0.005)


def test_missing_samples_are_placed_by_their_other_views(blobs):
    views, labels = [view.copy() for view in blobs[0]], blobs[1]
    rng = np.random.default_rng(0)
    gone = rng.choice(len(labels), 20, replace=False)
    views[0][gone[:10]] = np.nan
    views[1][gone[10:]] = np.nan
    model = EMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    assert np.isnan(model.sample_errors_[gone[:10], 0]).all()
    assert not model.outliers_[gone].any()
    assert model.duality_gap_ <= 1e-3


def test_a_sample_must_be_somewhere(blobs):
    views = [view.copy() for view in blobs[0]]
    for view in views:
        view[3] = np.nan
    with pytest.raises(ValueError, match=r"sample 3 is missing .* in every view"):
        EMVC(2).fit(views)
    with pytest.raises(ValueError, match=r"view '0': sample 3 is missing .* Only EMVC"):
        KernelAddition(2).fit(views)
    views = [view.copy() for view in blobs[0]]
    views[0][1:] = np.nan
    with pytest.raises(ValueError, match="view '0' has fewer than 2 samples"):
        EMVC(2).fit(views)


@pytest.mark.parametrize("outliers", ["assign", "label"])
def test_samples_destroyed_in_all_views_own_no_cluster(outliers):
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    views = [6 * rng.standard_normal((3, 10))[labels] + rng.standard_normal((120, 10)) for _ in range(3)]
    for view in views:
        view[:8] = rng.uniform(-40, 40, (8, 10))
    model = EMVC(3, outliers=outliers, random_state=0).fit(views)
    assert model.outliers_[:8].all()
    assert adjusted_rand_score(labels[8:], model.labels_[8:]) == 1.0
    assert set(model.labels_[:8]) <= ({0, 1, 2} if outliers == "assign" else {-1})
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1.0, rtol=1e-6)
    assert not model.consensus_[:, :8].any()
    assert np.isfinite(model.embedding_).all()
    report = str(model.error_report())
    assert "8 samples cannot be believed in any view" in report
    assert "far from every other sample" in report


def test_mismatched_samples_are_found_and_named():
    rng = np.random.default_rng(1)
    labels = np.arange(150) % 3
    views = [6 * rng.standard_normal((3, 10))[labels] + rng.standard_normal((150, 10)) for _ in range(3)]
    views[1][:6] = views[1][[1, 2, 0, 4, 5, 3]]  # six samples of different clusters change places
    model = EMVC(3, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    named = [entry for entry in model.error_report().samples if "contradict" in entry.reason]
    assert {entry.view for entry in named} == {"1"}
    assert len({entry.sample for entry in named} & set(range(6))) >= 4
    assert len(named) <= 6
    assert model.sample_errors_[:6, [0, 2]].max() < 0.1  # the innocent views are not blamed


def test_a_view_of_noise_is_named_and_loses_weight(blobs):
    rng = np.random.default_rng(0)
    views = [*blobs[0], rng.standard_normal((len(blobs[1]), 7))]
    model = EMVC(3, random_state=0).fit(views)
    assert model.view_errors_.argmax() == len(views) - 1
    assert model.reliability_[-1] < 0.5 < 0.9 < model.reliability_[:-1].min()
    assert model.view_weights_[-1] < 0.8 * model.view_weights_[0]
    assert adjusted_rand_score(blobs[1], model.labels_) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"screen": "never"}, "Unknown screen='never'"),
        ({"outliers": "drop"}, "Unknown outliers='drop'"),
        ({"joint_view": "yes"}, "Unknown joint_view='yes'"),
    ],
)
def test_bad_options_of_the_screening(options, message, blobs):
    with pytest.raises(ValueError, match=message):
        EMVC(2, **options).fit(blobs[0])


def test_memory_keeps_the_decomposition(tmp_path, blobs, monkeypatch):
    first = EMVC(2, memory=str(tmp_path), random_state=0).fit(blobs[0])
    monkeypatch.setattr("emvc.solvers.ADMM.step", lambda *_: pytest.fail("solved again"))
    second = EMVC(2, memory=str(tmp_path), random_state=1, embedding="plain").fit(blobs[0])
    np.testing.assert_array_equal(first.consensus_, second.consensus_)


def test_samples_that_are_equal_in_all_views_converge(rng):
    """Their distances are zero, and their chains agree to the last digit."""
    labels = rng.integers(0, 4, 320)
    views = [rng.standard_normal((4, d))[labels] for d in (10, 20)]
    model = EMVC(4, random_state=0, max_iter=100).fit(views)
    assert model.status_ == "converged"
    assert adjusted_rand_score(labels, model.labels_) == 1.0


@pytest.mark.parametrize(
    "earlier",
    [{"n_landmarks": 20}, {"n_clusters": "auto"}, {"solver": "alm", "max_iter": 3}],
    ids=["landmarks", "auto", "paper"],
)
def test_nothing_of_an_earlier_fit_stays_behind(earlier, blobs):
    views = [pd.DataFrame(view).add_prefix("x").rename(index="s{}".format) for view in blobs[0]]
    options = {"n_clusters": 3, "random_state": 0}
    expected = EMVC(**options).fit(blobs[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = EMVC(**options | earlier).fit(views)
    assert hasattr(model, "rank_")  # kept from now on
    model.set_params(**{name: expected.get_params()[name] for name in earlier}).fit(blobs[0])
    assert vars(model).keys() == vars(expected).keys()
    np.testing.assert_array_equal(model.confidence_, expected.confidence_)


def test_a_fit_to_dask_arrays_forgets_the_earlier_one(blobs):
    views = [pd.DataFrame(view).add_prefix("x").rename(index="s{}".format) for view in blobs[0]]
    model = EMVC(3, n_landmarks=20, random_state=0).fit(views)
    model.fit([dask.array.from_array(view) for view in blobs[0]])
    assert model.feature_names_in_ == {}
    assert not hasattr(model, "sample_names_")
    with pytest.raises(ValueError, match="predict needs the training samples, which this model does not have"):
        model.predict(blobs[0])
