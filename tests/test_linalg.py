import numpy as np
import pytest
import scipy.linalg

from emvc._linalg import largest_eigenpairs


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_largest_eigenpairs_whether_the_driver_for_some_fails_or_not(fails, lower, rng, monkeypatch):
    matrix = rng.standard_normal((30, 30))
    matrix += matrix.T
    expected = np.linalg.eigvalsh(matrix)
    eigh, calls = scipy.linalg.eigh, []

    def failing(matrix, **options):
        calls.append(options)
        if fails and options.get("driver") != "evd":
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(matrix, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", failing)
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    middle = (expected[19] + expected[20]) / 2
    for options in ({"number": 10}, {"above": middle}):
        values, vectors = largest_eigenpairs(triangle, lower=lower, **options)
        np.testing.assert_allclose(values, expected[20:], atol=1e-12)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
    assert len(calls) == (4 if fails else 2)
    assert largest_eigenpairs(triangle, above=expected[-1] + 1.0, lower=lower)[1].shape == (30, 0)
