r"""Peer: essential tensor learning for multi-view spectral clustering, ETLMSC (Wu, Lin, Zha, IEEE TIP 2019).

The transitions :math:`T_1, \ldots, T_K` of the views are split into essential ones and errors,

.. math:: \min_{Z, E} \; \lVert Z \rVert_\circledast + \lambda \sum_j \Bigl( \sum_{v,i} (E_v)_{ij}^2 \Bigr)^{1/2}
          \quad \text{subject to} \quad T_v = Z_v + E_v ,

and the mean of the :math:`Z_v`, negative entries cut off and rows scaled to sum one, is clustered spectrally.

**The norm of the tensor** is what the two forms differ in.

* *Released* (``published=True``): the tensor is rotated to N x K x N, and :math:`\lVert Z \rVert_\circledast` is the
  mean of the nuclear norms of the N Fourier components along the **samples**. These depend on the order of the samples:
  what neighbouring rows have in common is a low frequency and survives the shrinkage. Benchmark files are sorted by
  class, so that this form reads labels from the order of the rows and loses them when the rows are shuffled.
* *Order-invariant* (the default): with the mean M and the deviations :math:`D_v = Z_v - M`,
  :math:`\lVert Z \rVert_\circledast = \sqrt K \lVert M \rVert_* + \lVert [D_1, \ldots, D_K] \rVert_*`. For two views
  this is, up to a factor, the t-SVD norm with the Fourier transform along the views, whose components are the sum and
  the difference; for more it treats all differences between views alike, where Fourier components would depend on the
  order of the views. Neither the order of samples nor that of views has an effect beyond rounding.

**Updates**, as the authors', with :math:`\mu` from 0.01, doubled in each iteration: Z is the proximal point of
:math:`T - E + Y/\mu` with step :math:`1/\mu`, that is, singular values of the components are shrunk; E shortens the
columns of :math:`T - Z + Y/\mu` by :math:`\lambda/\mu`; :math:`Y \leftarrow Y + \mu (T - Z - E)`. Stop when no entry of
:math:`T - Z - E` and of the last changes of Z and E exceeds ``tol``. The growing :math:`\mu` ends the iteration near
the minimum but not in it, and the objective is not monotone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from emvc._array import FloatArray
from emvc._linalg import largest_eigenpairs
from emvc._validation import Views, check_choice, check_integer, check_memory, check_number, check_weight
from emvc.estimators._base import GraphOptions
from emvc.graphs import stack_transitions, transition_matrix
from emvc.prox import ColumnGroups, shrinkage
from emvc.spectral import EMBEDDINGS, Embedding, cluster_chain

Prox = Callable[[FloatArray, float], FloatArray]


class ETLMSC(GraphOptions):
    r"""Essential tensor learning: transitions of the views as one tensor of low rank plus errors.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float or "auto", default="auto"
        Weight of the errors. ``"auto"`` is :math:`10/\sqrt N`; up to about :math:`1/\sqrt N` everything is error, and
        for large weights nothing is. With ``published`` it is 0.04, the authors' value for BBCSport.
    published : bool, default=False
        Transform along the samples, as the released program does. The result then depends on the order of the samples
        and is worthless as a measurement if that has to do with their classes; see the page on the order of rows.
    affinity, n_neighbors, scale, embedding, n_init, random_state
        As for `EMVC`; ``affinity="auto"`` is ``"rbf"``.
    max_iter : int, default=200
        Most iterations.
    tol : float, default=1e-6
        Largest entry of the residuals at which to stop.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral coordinates.
    consensus_ : ndarray of shape (n_samples, n_samples)
        Mean of the essential transitions, row-stochastic.
    lam_ : float
        Weight of the errors that was used.
    residuals_ : list of float
        Largest entry of the residuals after each iteration.
    n_clusters_, n_iter_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import ETLMSC
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> ETLMSC(2, random_state=0).fit(data.views).consensus_.shape
    (100, 100)
    """

    default_affinity = "rbf"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lam: float | str = "auto",
        published: bool = False,
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        embedding: Embedding = "unit-rows",
        n_init: int = 20,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam = lam
        self.published = published
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.embedding = embedding
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.embedding, "embedding", EMBEDDINGS)
        lam = self._weight(views.n_samples)
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        tol = check_number(self.tol, "tol", strict=True)
        n_views, n_samples = len(views.arrays), views.n_samples
        advice = "Cluster a subset of the samples or use fewer views."
        check_memory(14 * n_views + 4, (n_samples, n_samples), advice=advice)
        transitions = stack_transitions(self._affinities(views, n_clusters), n_views, n_samples)
        prox = shrink_along_samples if self.published else shrink_along_views
        essential, residuals = _decompose(transitions, prox, lam, max_iter, tol)
        consensus = transition_matrix(np.maximum(essential.mean(axis=0), 0.0))
        labels, points, _ = cluster_chain(consensus, n_clusters, embedding=self.embedding, n_init=self.n_init, rng=rng)
        return {
            "labels_": labels,
            "embedding_": points,
            "consensus_": consensus,
            "lam_": lam,
            "residuals_": residuals,
            "n_iter_": len(residuals),
        }

    def _weight(self, n_samples: int) -> float:
        if isinstance(self.lam, str):
            check_choice(self.lam, "lam", ("auto",))
            return 0.04 if self.published else 10.0 / math.sqrt(n_samples)
        return check_weight(self.lam, "lam")


def _decompose(
    transitions: FloatArray, prox: Prox, lam: float, max_iter: int, tol: float, *, growth: float = 2.0
) -> tuple[FloatArray, list[float]]:
    """Return the essential transitions and the largest residual after each iteration."""
    n_samples = transitions.shape[-1]
    errors, multipliers = np.zeros_like(transitions), np.zeros_like(transitions)
    essential, penalty = errors, 0.01
    residuals: list[float] = []
    for _ in range(max_iter):
        last = essential, errors
        essential = prox(transitions - errors + multipliers / penalty, 1.0 / penalty)
        rest = (transitions - essential + multipliers / penalty).reshape(-1, n_samples)
        errors = ColumnGroups().prox(rest, lam / penalty).reshape(transitions.shape)
        missing = transitions - essential - errors
        multipliers += penalty * missing
        changes = missing, essential - last[0], errors - last[1]
        residuals.append(max(float(np.abs(change).max()) for change in changes))
        if residuals[-1] <= tol:
            return essential, residuals
        penalty *= growth
    if max_iter > 1:
        warnings.warn(f"ETLMSC reached max_iter={max_iter}.", ConvergenceWarning, stacklevel=4)
    return essential, residuals


def shrink_along_samples(tensor: FloatArray, step: float) -> FloatArray:
    """Return the proximal point of the released norm, for a tensor of shape (n_views, n_samples, n_samples)."""
    components = np.fft.rfft(tensor, axis=1).transpose(1, 0, 2)  # the rest are their conjugates
    squares, left = np.linalg.eigh(components @ components.conj().transpose(0, 2, 1))
    factors = shrinkage(np.sqrt(np.maximum(squares, 0.0)), step)[:, None, :]
    components = (left * factors) @ (left.conj().transpose(0, 2, 1) @ components)
    return np.asarray(np.fft.irfft(components.transpose(1, 0, 2), n=tensor.shape[1], axis=1))


def shrink_along_views(tensor: FloatArray, step: float) -> FloatArray:
    """Return the proximal point of the order-invariant norm; mean and deviations are orthogonal to each other."""
    n_views, n_samples, _ = tensor.shape
    mean = tensor.mean(axis=0)
    essential = np.repeat(_shrink(mean, step / math.sqrt(n_views))[None], n_views, axis=0)
    if n_views > 1:
        joined = (tensor - mean).transpose(1, 0, 2).reshape(n_samples, -1)
        essential += _shrink(joined, step).reshape(n_samples, n_views, n_samples).transpose(1, 0, 2)
    return essential


def _shrink(matrix: FloatArray, step: float) -> FloatArray:
    """Shorten the singular values of a wide matrix; only those that survive are computed, as eigenvalues of MM'."""
    squares, left = largest_eigenpairs(matrix @ matrix.T, above=step**2)
    return np.asarray((left * shrinkage(np.sqrt(squares), step)) @ (left.T @ matrix))
