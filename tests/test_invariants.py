"""What must not change the clusters, on a few of the random problems of benchmarks/invariants.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

from emvc.method.agreement import Comparison, _wrong_shares
from emvc.method.isolation import Isolation

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from invariants import KINDS, check, problem

# Problems that depended on the order of samples or views, or on how they are stored, before.
FORMER = (35, 42, 108, 148, 199, 250, 267, 276, 298, 300, 307, 308, 332, 343, 370)


@pytest.mark.parametrize("seed", [*range(len(KINDS)), *FORMER])
def test_clusters_depend_on_the_data_alone(seed):
    kind, held = check(seed)
    assert [name for name, holds in held.items() if not holds] == [], kind


def test_a_larger_problem():
    _, held = check(2, medium=True)
    assert all(held.values()), held


def test_problems_are_what_they_are_called():
    views = {kind: problem(seed + 8)[0] for seed, kind in enumerate(KINDS)}
    assert all(np.isin(view, [0.0, 1.0]).all() for view in views["binary"])
    assert any(np.isnan(view).any() for view in views["missing cells"])


def test_isolation_does_not_depend_on_the_order_of_samples(rng):
    view, order = rng.standard_normal((60, 5)) ** 3, rng.permutation(60)
    one, other = Isolation.fit(view)[1], Isolation.fit(view[order])[1]
    np.testing.assert_allclose(one[:, order], other, atol=1e-9)


def test_views_that_cannot_be_told_apart_are_wrong_about_equal_shares():
    known = Comparison(np.arange(20), np.zeros((20, 1)), np.zeros(1), np.ones(1), np.ones(1), 0.4)
    shares = _wrong_shares({(0, 2): known, (2, 0): known}, 3, 50)
    assert shares[0] == pytest.approx(shares[2])
    assert (1.0 - shares[0]) * (1.0 - shares[2]) == pytest.approx(0.6, abs=1e-4)
    assert shares[1] == pytest.approx(1 / 50)
