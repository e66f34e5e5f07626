r"""What similarity network fusion and NEMO share: the kernel, the strongest links, the spectrum.

With the squared distances :math:`\rho_{ij}` of a view, and :math:`\bar\rho_i` their mean over the nearest neighbours of
a sample, the kernel is the density of the normal distribution with a width of its own for every pair,

.. math:: W_{ij} = \frac{1}{\sqrt{2\pi}\,\mu\varepsilon_{ij}} \exp\frac{-\rho_{ij}^2}{2\mu^2\varepsilon_{ij}^2},
   \qquad \varepsilon_{ij} = \frac{\bar\rho_i + \bar\rho_j + \rho_{ij}}{3}.

Squared distances, which are squared once more here, are what snfpy and the program of the authors of NEMO use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from emvc._array import ROUNDING, FloatArray
from emvc._validation import Views, check_choice
from emvc.estimators._base import MultiViewClusterer
from emvc.graphs import normalized_affinity
from emvc.spectral import leading_eigenvectors

_LEAST_WIDTH = float(np.finfo(np.float64).eps)  # of the kernel, for samples with many duplicates


class NetworkClusterer(MultiViewClusterer):
    """Estimators that fuse the views into one network and can read the number of clusters off its spectrum."""

    _allow_gaps = True

    def _choose_n_clusters(self, views: Views) -> tuple[int, dict[str, Any]]:
        if not isinstance(self.n_clusters, str):
            return super()._choose_n_clusters(views)
        check_choice(self.n_clusters, "n_clusters", ("auto",))
        return 0, {}  # `_fit` finds it, once there is a network


def scaled_exponential(squares: FloatArray, n_neighbors: int, mu: float = 0.5) -> FloatArray:
    """Return the kernel of squared distances whose width follows the density around both ends.

    Examples
    --------
    >>> import numpy as np
    >>> scaled_exponential(np.array([[0.0, 1.0], [1.0, 0.0]]), 1).round(3)
    array([[1.197, 0.108],
           [0.108, 1.197]])
    """
    n_neighbors = min(n_neighbors, len(squares) - 1)
    # The smallest entry of a row is the sample's own zero, which adds nothing to the sum.
    mean = np.partition(squares, n_neighbors, axis=1)[:, : n_neighbors + 1].sum(axis=1) / n_neighbors + _LEAST_WIDTH
    width = (mean[:, None] + mean + squares) / 3.0
    width[width <= _LEAST_WIDTH] = 0.0
    width += _LEAST_WIDTH
    width *= mu
    return np.asarray(np.exp(-0.5 * (squares / width) ** 2) / (math.sqrt(2.0 * math.pi) * width))


def strongest_links(network: FloatArray, n_links: int) -> FloatArray:
    """Keep the strongest entries of each row, all that tie with the last of them, and scale their sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> strongest_links(np.array([[3.0, 1.0, 1.0], [2.0, 6.0, 0.0], [1.0, 0.0, 1.0]]), 2)
    array([[0.6 , 0.2 , 0.2 ],
           [0.25, 0.75, 0.  ],
           [0.5 , 0.  , 0.5 ]])
    """
    last = len(network) - min(n_links, len(network))
    threshold = np.partition(network, last, axis=1)[:, last, None] * (1.0 - ROUNDING)
    kept = np.where(network >= threshold, network, 0.0)
    kept /= kept.sum(axis=1, keepdims=True)
    return kept


def without_loops(network: FloatArray) -> FloatArray:
    """Return a copy with zeros on the diagonal."""
    network = network.copy()
    np.fill_diagonal(network, 0.0)
    return network


def widest_gap(network: FloatArray, candidates: range, score: Callable[[Any, Any, Any], Any]) -> int:
    r"""Return the number of clusters c with the largest score of :math:`c, \lambda_c, \lambda_{c+1}`.

    These are the eigenvalues of :math:`D^{-1/2}WD^{-1/2}` in decreasing order, one minus those of the normalised
    Laplacian. Links of samples to themselves do not count.
    """
    numbers = np.arange(candidates[0], min(candidates[-1], len(network) - 1) + 1)
    if not len(numbers):  # two samples
        return candidates[0]
    _, values = leading_eigenvectors(normalized_affinity(without_loops(network)), int(numbers[-1]) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = score(numbers, values[numbers - 1], values[numbers])
    return int(numbers[np.argmax(scores)])
