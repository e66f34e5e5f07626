import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from emvc.method import agreement
from emvc.method.agreement import Agreement, Comparison, falling_density
from emvc.spectral import scale_rows

N_SAMPLES = 300


def make_places(seed=0, n_views=3, noise=0.3, n_samples=N_SAMPLES):
    """Where views lead that agree up to noise."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_samples, 8))
    return [common + noise * rng.standard_normal(common.shape) for _ in range(n_views)], rng


def mismatch(place, rows):
    """A copy in which some rows are those of each other."""
    wrong = place.copy()
    wrong[rows] = place[np.roll(rows, 1)]
    return wrong


def judge(places, shown=None, suspicion=None):
    shown = np.ones((len(places[0]), len(places)), dtype=bool) if shown is None else shown
    found, ranks = Agreement.fit(places, shown)
    suspicion = np.zeros(shown.shape) if suspicion is None else suspicion
    again = found.ranks(places, shown, np.arange(len(shown)))
    assert again.keys() == ranks.keys()
    for pair, expected in ranks.items():
        np.testing.assert_allclose(again[pair], expected)
    return found, found.wrong(ranks, shown, suspicion)


def members_ranks(own, others):
    everybody = np.arange(len(own))
    return Comparison.fit(scale_rows(own), scale_rows(others), everybody)[1]


@pytest.mark.parametrize("ties", [False, True])
def test_falling_density(ties, rng):
    p = rng.random(200) ** 3
    p = np.ceil(10.0 * p) / 10.0 if ties else p
    ends, slopes = falling_density(p)
    assert np.diff(ends).min() > 0.0
    assert np.diff(slopes).max() < 0.0
    assert ends[-1] == 1.0
    assert slopes @ np.diff(ends, prepend=0.0) == pytest.approx(1.0)
    # The least concave majorant: nowhere below the distribution function, and on it at every bend.
    bends, masses = np.append(0.0, ends), np.append(0.0, np.cumsum(slopes * np.diff(ends, prepend=0.0)))
    majorant = np.interp(np.append(p, ends), bends, masses)
    share = np.mean(p <= np.append(p, ends)[:, None], axis=1)
    assert np.min(majorant - share) >= -1e-12
    np.testing.assert_allclose(majorant[len(p) :], share[len(p) :])


def test_ranks_equal_literal_loops():
    (own, others), _ = make_places(n_views=2, n_samples=30)
    own, others = scale_rows(own), scale_rows(others)
    comparison, _ = Comparison.fit(own, others, np.arange(20))

    def closeness(i, j):
        """How much more similar j is to i than to everybody."""
        return own[i] @ others[j] - np.mean([own[h] @ others[j] for h in range(20)])

    position = np.where(np.arange(30) < 20, np.arange(30), -1)
    for i, found in enumerate(comparison.ranks(own, others, position)):
        rivals = [j for j in range(20) if j != i]
        closer = sum(closeness(i, j) >= closeness(i, i) for j in rivals)
        assert found == pytest.approx((closer + 0.5) / (len(rivals) + 1))


@pytest.mark.parametrize("seed", range(3))
def test_ranks_are_uniform_if_rows_do_not_belong_together(seed):
    (own, others), rng = make_places(seed, 2)
    p = members_ranks(own, others[rng.permutation(N_SAMPLES)])
    assert p.mean() == pytest.approx(0.5, abs=0.05)
    assert p.std() == pytest.approx(12**-0.5, abs=0.03)
    assert members_ranks(own, others).mean() < 0.02


def test_share_of_a_pair_is_estimated():
    """A fifth of the rows belongs to other samples."""
    shares = []
    for seed in range(20):
        (own, others), rng = make_places(seed, 2)
        rows = rng.choice(N_SAMPLES, 60, replace=False)
        shares.append(
            Comparison.fit(scale_rows(mismatch(own, rows)), scale_rows(others), np.arange(N_SAMPLES))[0].share
        )
    assert np.mean(shares) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_mismatched_rows_are_found_in_the_view_that_is_wrong(seed):
    places, rng = make_places(seed)
    rows = rng.choice(N_SAMPLES, 30, replace=False)
    places[1] = mismatch(places[1], rows)
    found, wrong = judge(places)
    assert roc_auc_score(np.isin(np.arange(N_SAMPLES), rows), wrong[:, 1]) > 0.95
    assert np.mean(wrong[rows][:, [0, 2]] < 0.5) > 0.9
    assert np.mean(np.delete(wrong, rows, axis=0) > 0.5) < 0.02
    assert found.shares.argmax() == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_a_view_of_noise_is_wrong_everywhere(noise, seed):
    places, rng = make_places(seed, noise=noise)
    places[2] = rng.standard_normal(places[2].shape)
    found, wrong = judge(places)
    assert found.shares[2] > 0.8
    assert np.delete(found.shares, 2).max() < 0.2
    assert np.mean(wrong[:, 2] > 0.5) > 0.75
    assert np.delete(wrong, 2, axis=1).mean() < 0.2


def test_of_two_views_nothing_tells_which_one_is_wrong():
    places, rng = make_places(n_views=2)
    rows = rng.choice(N_SAMPLES, 30, replace=False)
    places[0] = mismatch(places[0], rows)
    found, wrong = judge(places)
    np.testing.assert_allclose(wrong[:, 0], wrong[:, 1])
    assert found.shares[0] == found.shares[1]
    assert wrong[rows].mean() > 10.0 * np.delete(wrong, rows, axis=0).mean()


def test_suspicion_raises_the_probability():
    places, rng = make_places(n_views=2)
    rows = rng.choice(N_SAMPLES, 30, replace=False)
    places[0] = mismatch(places[0], rows)
    suspicion = np.zeros((N_SAMPLES, 2))
    suspicion[:, 0] = 0.5
    _, plain = judge(places)
    _, wrong = judge(places, suspicion=suspicion)
    assert (wrong[:, 0] > plain[:, 0]).all()
    assert np.median(wrong[rows, 0]) > 0.8  # what two views cannot decide, the suspicion does
    assert np.median(wrong[rows, 1]) < 0.2


def test_what_a_view_does_not_show_is_not_wrong():
    places, rng = make_places()
    shown = np.ones((N_SAMPLES, 3), dtype=bool)
    shown[:50, 0] = shown[40:90, 1] = False
    changed = [place.copy() for place in places]
    for place, seen in zip(changed, shown.T, strict=True):
        place[~seen] = rng.standard_normal((np.sum(~seen), 8))
    _, wrong = judge(places, shown)
    assert not wrong[~shown].any()
    np.testing.assert_array_equal(judge(changed, shown)[1], wrong)


def test_views_that_share_few_samples_are_not_compared():
    (one, other), _ = make_places(n_views=2, n_samples=60)
    shown = np.ones((60, 2), dtype=bool)
    shown[:21, 1], shown[40:, 0] = False, False
    suspicion = np.full(shown.shape, 0.3)
    found, wrong = judge([one, other], shown, suspicion)
    assert not found.comparisons
    assert not found.shares.any()
    np.testing.assert_array_equal(wrong, 0.3 * shown)
    shown[20, 1] = True
    assert len(judge([one, other], shown)[0].comparisons) == 2


def test_new_samples_are_judged_by_those_of_the_reference():
    places, _ = make_places(n_samples=400)
    found, _ = judge([place[:300] for place in places])
    new = [place[300:] for place in places]
    new[0] = mismatch(new[0], np.arange(20))
    shown = np.ones((100, 3), dtype=bool)
    wrong = found.wrong(found.ranks(new, shown, np.full(100, -1)), shown, np.zeros((100, 3)))
    assert np.mean(wrong[:20, 0] > 0.5) > 0.8
    assert np.mean(wrong[20:] > 0.5) < 0.05
    assert np.mean(wrong[:20, 1:] > 0.5) < 0.1


def test_more_than_ten_views():
    places, rng = make_places(n_views=11)
    rows = rng.choice(N_SAMPLES, 30, replace=False)
    places[4] = mismatch(places[4], rows)
    _, wrong = judge(places)
    assert roc_auc_score(np.isin(np.arange(N_SAMPLES), rows), wrong[:, 4]) > 0.95
    assert (wrong[rows].argmax(axis=1) == 4).mean() > 0.9
    assert np.mean(np.delete(wrong, 4, axis=1) > 0.5) < 0.05


@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_approximation_agrees_with_enumeration_on_who_is_worst(noise, monkeypatch):
    places, rng = make_places(n_views=5, noise=noise)
    rows = rng.choice(N_SAMPLES, 60, replace=False)
    places = [mismatch(place, rows[k::5]) for k, place in enumerate(places)]
    exact = judge(places)[1]
    monkeypatch.setattr(agreement, "_MOST_ENUMERATED", 4)
    approximate = judge(places)[1]
    assert (exact != approximate).any()
    assert np.mean(exact[rows].argmax(axis=1) == approximate[rows].argmax(axis=1)) > 0.95
    assert np.abs(exact - approximate).mean() < 0.02


def test_enumeration_equals_bayes_on_three_views(rng):
    """All eight ways to be right or wrong, one at a time; pairs of R right views count 2 / R each."""
    prior = rng.uniform(0.05, 0.5, (4, 3))
    ratios = {pair: rng.normal(0.0, 2.0, 4) for pair in [(0, 1), (0, 2), (1, 2)]}
    found = agreement._probabilities(ratios, prior)
    for i in range(4):
        wrong, total = np.zeros(3), 0.0
        for state in np.ndindex(2, 2, 2):
            weight = np.prod([prior[i, k] if state[k] else 1.0 - prior[i, k] for k in range(3)])
            pairs = [np.exp(ratio[i]) for (k, o), ratio in ratios.items() if not state[k] and not state[o]]
            weight *= np.prod(pairs) ** (2.0 / max(3 - sum(state), 1))
            wrong += weight * np.array(state)
            total += weight
        np.testing.assert_allclose(found[i], wrong / total)
