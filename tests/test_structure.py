"""The test for structure: noise of any kind has none, clusters are found, and every part of the null model matters."""

import numpy as np
import pytest
import scipy.sparse

from emvc import EMVC
from emvc._validation import check_views
from emvc.kernels.unimodal import unimodal_columns
from emvc.structure import LEVEL, _WithoutClusters, compare_spectra


def blobs(rng, n_samples=150, n_clusters=4, n_views=2, apart=2.0):
    labels = rng.integers(n_clusters, size=n_samples)
    return [
        apart * rng.standard_normal((n_clusters, 8))[labels] + rng.standard_normal((n_samples, 8))
        for _ in range(n_views)
    ], labels


NOISE = {
    "normal": lambda rng, n: rng.standard_normal((n, 20)),
    "uniform": lambda rng, n: rng.uniform(size=(n, 5)),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=(n, 10)),
    "correlated": lambda rng, n: rng.standard_normal((n, 30)) @ rng.standard_normal((30, 30)),
    "counts": lambda rng, n: rng.poisson(0.1, size=(n, 40)).astype(float),
    "sparse counts": lambda rng, n: scipy.sparse.csr_array(rng.poisson(0.1, size=(n, 40)).astype(float)),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("n_views", [1, 3])
def test_noise_has_no_structure(kind, n_views):
    rng = np.random.default_rng(n_views)
    model = EMVC("auto", random_state=0).fit([NOISE[kind](rng, 130) for _ in range(n_views)])
    assert model.structure_p_value_ > LEVEL
    assert model.n_clusters_ == 1
    assert (model.labels_ == 0).all()
    assert max(record["n_clusters"] for record in model.n_clusters_evidence_) > 1  # what a forced number would rest on
    np.testing.assert_array_equal(model.reliability_, 0.0)


@pytest.mark.parametrize("n_views", [1, 2])
def test_clusters_are_structure(n_views, rng):
    views, labels = blobs(rng, n_views=n_views)
    model = EMVC("auto", random_state=0).fit(views)
    assert model.structure_p_value_ <= LEVEL
    assert model.n_clusters_ == len(np.unique(labels))


def test_clusters_that_only_views_together_show_are_structure(rng):
    """What views have in common is broken by drawing them independently."""
    views, _ = blobs(rng, n_samples=200, n_clusters=3, n_views=4, apart=0.9)
    assert EMVC(2)._test_structure(check_views(views)).found
    views = [view[rng.permutation(len(view))] for view in views]
    assert not EMVC(2)._test_structure(check_views(views)).found


def test_few_samples_and_given_affinities_cannot_be_told(rng):
    views, _ = blobs(rng, n_samples=15)
    test = EMVC(2)._test_structure(check_views(views))
    assert np.isnan(test.p_value)
    assert test.found
    affinity = np.exp(-np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0))))
    model = EMVC("auto", affinity="precomputed").fit([affinity])
    assert np.isnan(model.structure_p_value_)
    assert model.n_clusters_ > 1


def test_missing_samples_are_missing_in_data_without_clusters_too(rng):
    views, _ = blobs(rng, n_samples=120, n_views=3)
    views[0][:50] = np.nan
    assert EMVC(2)._test_structure(check_views(views, allow_missing=True)).found


def test_data_without_clusters_keep_variances_and_lengths_of_rows(rng):
    view = rng.standard_t(3, size=(200, 6)) * [1, 2, 3, 4, 5, 6]
    model = _WithoutClusters.fit(view, "zscore")
    made = model.draw(np.random.default_rng(0))
    lengths = [np.sort(np.linalg.norm(part, axis=1)) for part in (made, model.observed)]
    np.testing.assert_allclose(*lengths)
    spread = [np.sort((part**2).sum(axis=0)) for part in (made, model.observed)]
    np.testing.assert_allclose(*spread, rtol=0.35)
    assert not np.array_equal(made, model.draw(np.random.default_rng(1)))


def test_data_without_clusters_keep_the_cells_of_counts(rng):
    view = rng.poisson(0.2, size=(60, 9)).astype(float)
    model = _WithoutClusters.fit(view, None)
    made = model.draw(np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(made, axis=0), np.sort(view, axis=0))
    assert not np.array_equal(made, view)


def test_unimodal_columns_leave_one_hill_alone_and_fill_gaps(rng):
    hill = np.sort(rng.standard_normal(2000))
    np.testing.assert_allclose(unimodal_columns(hill[:, None])[20:-20, 0], hill[20:-20], atol=0.12)
    two = np.concatenate([rng.normal(-3, 0.3, 500), rng.normal(3, 0.3, 500)])
    filled = unimodal_columns(two[:, None])[:, 0]
    assert (np.abs(filled) < 2).mean() > 0.15
    assert (np.diff(filled) >= 0).all()
    assert two.min() - 1e-9 <= filled.min() <= filled.max() <= two.max() + 1e-9


def test_unimodal_density_rises_and_falls(rng):
    quantiles = unimodal_columns(rng.choice([0.0, 4.0, 5.0], size=(3000, 1)) + rng.standard_normal((3000, 1)))[:, 0]
    counts, _ = np.histogram(quantiles, bins=15)
    smooth = counts[counts.argmax() :]
    assert (np.diff(smooth) <= 30).all()
    assert (np.diff(counts[: counts.argmax() + 1]) >= -30).all()


def test_statistic_treats_all_rows_alike(rng):
    spectra = np.sort(rng.random((10, 8)), axis=1)[:, ::-1]
    spectra[:, 0] = 1.0
    order = rng.permutation(10)
    np.testing.assert_allclose(compare_spectra(spectra)[order], compare_spectra(spectra[order]))
    unusual = spectra.copy()
    unusual[3, 1:4] = 0.99
    unusual[3, 4:] = 0.01
    assert compare_spectra(unusual).argmax() == 3
