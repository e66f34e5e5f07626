import numpy as np
import pytest

import emvc
from emvc import EMVC
from emvc.cluster_count import _separation


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


def test_more_than_twenty_clusters_are_found_by_the_gap_in_the_spectrum():
    model = EMVC("auto", random_state=0).fit(separated(0, 30, n=360))
    assert model.n_clusters_ == 30
    assert model.n_clusters_confidence_ > 0.5
    numbers = [int(record["n_clusters"]) for record in model.n_clusters_evidence_]
    assert numbers == sorted(numbers)
    assert {2, 20, 30} <= set(numbers)


def test_separation_of_a_cut():
    graph = np.kron(np.eye(2), np.ones((3, 3)))
    assert _separation(graph, np.repeat([0, 1], 3)) == pytest.approx((1.0, np.log(2)))
    inside, information = _separation(graph, np.tile([0, 1, 1], 2))  # across the gap
    assert inside == pytest.approx(0.5)
    assert information == pytest.approx(0.0)


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
