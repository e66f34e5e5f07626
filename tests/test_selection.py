import numpy as np
import pytest

import emvc
from emvc import EMVC, cluster_count
from emvc.cluster_count import choose_n_clusters
from emvc.method.reference import Rows
from emvc.problem import RowProblem


def separated(seed, n_clusters, n=200):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % n_clusters)
    return [8 * rng.standard_normal((n_clusters, 8))[labels] + rng.standard_normal((n, 8)) for _ in range(2)]


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8])
def test_number_of_well_separated_clusters_is_found(n_clusters):
    model = EMVC("auto", random_state=0).fit(separated(n_clusters, n_clusters))
    assert model.n_clusters_ == n_clusters
    assert len(np.unique(model.labels_)) == n_clusters
    assert 0 < model.n_clusters_confidence_ <= 1
    best = max(model.n_clusters_evidence_, key=lambda record: record["score"])
    assert best["n_clusters"] == n_clusters


def test_many_small_clusters_are_found():
    model = EMVC("auto", random_state=0).fit(separated(0, 30, n=360))
    assert model.n_clusters_ == 30
    assert model.n_clusters_confidence_ > 0.3
    assert [record["n_clusters"] for record in model.n_clusters_evidence_] == list(range(2, 73))


def rows_of(chain):
    """Return a description of samples whose consensus is this chain, for graphs of any width."""
    samples = len(chain)
    problem = RowProblem(chain[None], np.full((1, samples), np.inf), np.ones((1, samples)))
    nothing = np.zeros((samples, 1))
    return lambda _: Rows(problem, nothing == 0, nothing, nothing, nothing, np.ones(1))


def with_spectrum(values):
    """Return a symmetric chain with these eigenvalues behind the first."""
    n = len(values) + 1
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.random.default_rng(0).standard_normal((n, n - 1))]))[0]
    return basis @ np.diag([1.0, *values]) @ basis.T


def test_score_is_the_gap_times_the_root_of_the_information():
    values = np.array([0.9, 0.7, 0.65, 0.2] + 26 * [0.0])
    number, confidence, records = choose_n_clusters(rows_of(with_spectrum(values)), None)
    jump = 0.999  # of the walk that does not start anew
    gaps = jump * np.array([0.2, 0.05, 0.45, 0.2, 0.0])
    scores = gaps * np.sqrt(np.log([2, 3, 4, 5, 6]))
    assert [record["n_clusters"] for record in records] == [2, 3, 4, 5, 6]
    np.testing.assert_allclose([record["gap"] for record in records], gaps, atol=1e-9)
    np.testing.assert_allclose([record["score"] for record in records], scores, atol=1e-9)
    assert number == 4
    assert confidence == pytest.approx(1 - np.sort(scores)[-2] / scores[2])


def test_a_gap_that_tells_more_clusters_apart_is_worth_more():
    values = np.array([0.6, 0.3, 0.3, 0.3, 0.02] + 25 * [0.0])  # behind 2 clusters .3 wide, behind 5 only .28
    assert choose_n_clusters(rows_of(with_spectrum(values)), None)[0] == 5


def test_candidates_and_path_come_with_evidence():
    chosen = emvc.select(separated(0, 3), n_clusters=[2, 3, 4])
    assert chosen.n_clusters == 3
    assert [record["n_clusters"] for record in chosen.clusters] == [2, 3, 4]
    assert [record["multiplier"] for record in chosen.weights] == sorted(
        record["multiplier"] for record in chosen.weights
    )
    ranks = [record["rank"] for record in chosen.weights]
    assert ranks == sorted(ranks)
    assert chosen.beta in [record["beta"] for record in chosen.weights]
    labels = EMVC(chosen.n_clusters, beta=chosen.beta, lam=chosen.lam, random_state=0).fit_predict(separated(0, 3))
    assert len(np.unique(labels)) == 3


def test_a_given_number_is_not_questioned():
    chosen = emvc.select(separated(0, 3), n_clusters=4, multipliers=(1.0,))
    assert (chosen.n_clusters, chosen.confidence, chosen.clusters, chosen.weights) == (4, 1.0, [], [])


@pytest.mark.parametrize("candidates", [[], [2, 500], [1]])
def test_bad_candidates(candidates):
    with pytest.raises(ValueError, match="n_clusters"):
        emvc.select(separated(0, 3), n_clusters=candidates)


def test_unknown_word():
    with pytest.raises(ValueError, match="Unknown n_clusters='many'; choose from 'auto'"):
        EMVC("many").fit(separated(0, 2))


def test_candidates_end_at_120_or_five_samples_per_cluster():
    rng = np.random.default_rng(0)
    for n_samples, most in ((700, 120), (100, 20)):
        model = EMVC("auto").fit([rng.standard_normal((n_samples, 3)), rng.standard_normal((n_samples, 3))])
        assert [record["n_clusters"] for record in model.n_clusters_evidence_] == list(range(2, most + 1))


def test_no_score_no_confidence():
    assert cluster_count._lead(np.array([0.0, 0.0])) == 0.0
    assert cluster_count._lead(np.array([0.5])) == 1.0
    assert cluster_count._lead(np.array([0.2, 0.8, 0.4])) == 0.5
