r"""The number of clusters without labels: a gap in the spectrum that is worth its clusters.

A chain that falls into c clusters has c eigenvalues close to one, and then a gap. The consensus is made once, with a
neighbourhood whose width does not depend on the number of clusters, and every candidate gets the score

.. math:: (\lambda_c - \lambda_{c+1}) \sqrt{\log c} .

The width of a gap alone favours two clusters, which the first gap of any spectrum is wide enough for. To tell which of
c clusters a sample is in takes :math:`\log c`; gaps are compared in units of its root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from emvc._validation import check_integer
from emvc.method.reference import Rows
from emvc.spectral import leading_eigenvalues

WIDTH = 5
"""Graphs are as wide as for this many clusters, which is fair for two and for twenty as well."""

LARGEST = 120
"""Largest number of clusters that is tried."""

_LEAST_SIZE = 5  # samples in the average cluster


def choose_n_clusters(
    describe: Callable[[int], Rows], candidates: Sequence[int] | None
) -> tuple[int, float, list[dict[str, float]]]:
    """Return the number of clusters with the best score, the confidence in it and the evidence.

    Parameters
    ----------
    describe : callable
        Returns the samples with graphs that are as wide as is right for the given number of clusters.
    candidates : sequence of int or None
        Numbers to try; None for 2 to `LARGEST`, as long as the average cluster has five samples.

    Returns
    -------
    n_clusters : int
    confidence : float
        One minus the score of the second best number over that of the best.
    evidence : list of dict
        ``n_clusters``, ``eigenvalue`` (that of the last cluster), ``gap`` (to the next eigenvalue) and ``score`` for
        each candidate.
    """
    rows = describe(WIDTH)
    n_samples = len(rows.shown)
    chosen = range(2, max(2, min(LARGEST, n_samples // _LEAST_SIZE)) + 1) if candidates is None else candidates
    numbers = np.array(sorted({check_integer(c, "n_clusters", least=2) for c in chosen}))
    if not len(numbers) or numbers[-1] >= n_samples:
        raise ValueError(f"The candidates for n_clusters must be between 2 and n_samples - 1 = {n_samples - 1}.")
    values = np.clip(leading_eigenvalues(rows.problem.solve().consensus, int(numbers[-1]) + 1), 0.0, 1.0)
    gaps = values[numbers - 1] - values[numbers]
    scores = gaps * np.sqrt(np.log(numbers))
    names = ("n_clusters", "eigenvalue", "gap", "score")
    columns = zip(numbers, values[numbers - 1], gaps, scores, strict=True)
    records = [dict(zip(names, map(float, record), strict=True)) for record in columns]
    return int(numbers[np.argmax(scores)]), _lead(scores), records


def _lead(scores: np.ndarray) -> float:
    """Return by which share the best score is ahead of the second."""
    if len(scores) == 1:
        return 1.0
    second, best = np.sort(scores)[-2:]
    return float(1.0 - second / best) if best > 0 else 0.0
