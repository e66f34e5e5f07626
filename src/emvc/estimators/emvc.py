"""The estimator of the paper: Error-Robust Multi-View Clustering."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from emvc._array import FloatArray
from emvc._validation import Views, check_choice, check_integer, check_memory, check_number
from emvc.estimators._base import GraphOptions, limit_threads
from emvc.estimators._solve import solve
from emvc.graphs import stack_transitions
from emvc.problem import Problem
from emvc.solvers import ADMM, ALM
from emvc.spectral import EMBEDDINGS, Embedding, cluster_embedding, spectral_embedding

SOLVERS = ("admm", "alm", "alm-authors")
_ALM_TOL = 1e-5  # times tol: the printed 1e-8 at the default
_AUTO_WEIGHT = 4.0


class EMVC(GraphOptions):
    r"""Error-robust multi-view clustering.

    Every view becomes a Markov chain :math:`P_k` over the samples. The chains are split into one shared low-rank chain
    P and one error matrix per view, :math:`P_k = P + E_k`, by

    .. math::
        \min_{P \ge 0,\; P\mathbf 1 = \mathbf 1} \; \lVert P \rVert_*
            + \beta \sum_k \lVert E_k \rVert_{2,1} + \lambda \sum_k \lVert E_k \rVert_{G1}

    and the samples are clustered by the leading eigenvectors of P.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    beta : float or "auto", default="auto"
        Weight of the row groups of the errors (single samples). ``"auto"`` is ``4 / sqrt(n_samples)``.
    lam : float or "auto", default="auto"
        Weight of the column groups of the errors (single states of a view). ``"auto"`` as for ``beta``.
    solver : {"admm", "alm", "alm-authors"} or ADMM or ALM, default="admm"
        ``"admm"`` solves the problem to a certificate. ``"alm"`` is the published algorithm, which stops at a feasible
        point; ``"alm-authors"`` adds the stopping rule of the authors' program, whose result does not depend on the
        weights unless they are tiny. A configured solver object is used as it is, whatever ``tol`` says.
    affinity : str or callable, default="auto"
        Graph of a view: ``"local"`` (what ``"auto"`` means), ``"rbf"``, ``"rbf-literal"``, ``"rbf-t100"``,
        ``"self-tuning"``, ``"cosine"``, ``"precomputed"``, or a function from a scaled view to an N x N matrix.
    n_neighbors : int or "auto", default="auto"
        Neighbours in the ``"local"`` graph; ``"auto"`` is half the average cluster size, at least 10.
    scale : {"auto", "unit", "zscore", None}, default="auto"
        Feature scaling: unit rows for text-like views and z-scores otherwise, or one of them, or none.
    embedding : {"unit-rows", "plain"}, default="unit-rows"
        Whether the rows of the eigenvector matrix are scaled to unit length.
    n_init : int, default=20
        Starts of k-means.
    max_iter : int, default=500
        Most iterations of the solver.
    tol : float, default=1e-3
        Relative duality gap at which ``"admm"`` stops. ``"alm"`` stops when no constraint is violated by more than
        ``1e-5 * tol``, which is the paper's 1e-8 at the default.
    random_state : int, Generator, RandomState or None, default=None
        Seed of k-means. The same seed gives the same labels. The solvers do not depend on it: the random start that
        the paper prescribes for ``"alm"`` is drawn once and for all.
    memory : None, str or joblib.Memory, default=None
        Where to keep the decomposition, so that a fit to the same graphs with another ``random_state`` or
        ``embedding`` takes it from there; a str is a folder.
    n_jobs : int or None, default=None
        Threads; None leaves the libraries' own settings alone, -1 means all cores.
    verbose : int, default=0
        Show a progress bar with gap and rank.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of appearance.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral coordinates that k-means has seen.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the symmetrised consensus.
    consensus_ : ndarray of shape (n_samples, n_samples)
        The shared chain P.
    n_clusters_, beta_, lam_ : int, float, float
        The values used.
    objective_ : float
        Objective at ``consensus_``.
    duality_gap_ : float
        Certificate: no consensus can lower the objective by a larger share.
    rank_ : int
        Rank of the low-rank copy of P.
    n_iter_, status_, history_ : int, str, History
        Iterations, why the solver stopped, and measurements along the way.
    sample_errors_ : ndarray of shape (n_samples, n_views)
        Share of a sample's transition probability in a view that the consensus moved elsewhere: 0 where the two
        agree, 1 where they have nothing in common.
    view_errors_ : ndarray of shape (n_views,)
        Mean of ``sample_errors_`` over the samples.
    view_names_ : list of str
        Names of the views.
    n_features_in_ : int
        Number of features, summed over the views.

    Examples
    --------
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_digits_views
    >>> data = make_digits_views(n_samples=200)
    >>> model = EMVC(n_clusters=10, random_state=0).fit(data.views)
    >>> model.status_, bool(model.duality_gap_ <= 1e-3)
    ('converged', True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        beta: float | str = "auto",
        lam: float | str = "auto",
        solver: Any = "admm",
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        embedding: Embedding = "unit-rows",
        n_init: int = 20,
        max_iter: int = 500,
        tol: float = 1e-3,
        random_state: Any = None,
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.lam = lam
        self.solver = solver
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.embedding = embedding
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters: int, beta: float, lam: float, **options: Any) -> Self:
        """Return the published configuration: Algorithm 3 on median-bandwidth Gaussian kernels of raw features.

        The four versions of the paper are ``beta = lam = 0`` (EMVC(*)), ``beta = 0`` (EMVC(g1)), ``lam = 0``
        (EMVC(l21)) and both positive (EMVC). Further ``options`` are those of the constructor.

        Examples
        --------
        >>> EMVC.paper(2, beta=0.0, lam=0.1)
        EMVC(affinity='rbf', beta=0.0, lam=0.1, n_clusters=2, scale=None, solver='alm')
        """
        return cls(n_clusters, beta=beta, lam=lam, **{"solver": "alm", "affinity": "rbf", "scale": None} | options)

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        solver = self._make_solver()
        beta, lam = (self._weight(name, views.n_samples) for name in ("beta", "lam"))
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        check_choice(self.embedding, "embedding", EMBEDDINGS)
        shape = (views.n_samples, views.n_samples)
        n_views = len(views.arrays)
        n_matrices = 3 * n_views + 8 if isinstance(solver, ADMM) else 8 * n_views + 8
        check_memory(n_matrices, shape, advice="Cluster a subset of the samples or use fewer views.")
        with limit_threads(self.n_jobs):
            transitions = stack_transitions(self._affinities(views, n_clusters), len(views.arrays), views.n_samples)
            problem = Problem(transitions, beta, lam)
            solution = solve(solver, problem, name="EMVC", max_iter=max_iter, memory=self.memory, verbose=self.verbose)
            embedding, eigenvalues = spectral_embedding(solution.consensus, n_clusters, embedding=self.embedding)
            labels = cluster_embedding(embedding, n_clusters, n_init=self.n_init, rng=rng)
        sample_errors = _sample_errors(transitions, solution.consensus)
        return {
            "labels_": labels,
            "embedding_": embedding,
            "eigenvalues_": eigenvalues,
            "beta_": beta,
            "lam_": lam,
            "sample_errors_": sample_errors,
            "view_errors_": sample_errors.mean(axis=0),
            **solution.attributes(),
        }

    def _make_solver(self) -> ADMM | ALM:
        if isinstance(self.solver, ADMM | ALM):
            return self.solver
        check_choice(self.solver, "solver", SOLVERS)
        tol = check_number(self.tol, "tol", strict=True)
        if self.solver == "admm":
            return ADMM(tol=tol)
        return ALM(tol=_ALM_TOL * tol, stop="residual" if self.solver == "alm" else "objective")

    def _weight(self, name: str, n_samples: int) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            check_choice(value, name, ("auto",))
            return _AUTO_WEIGHT / math.sqrt(n_samples)
        return check_number(value, name)


def _sample_errors(transitions: FloatArray, consensus: FloatArray) -> FloatArray:
    """Return the total variation distance between each sample's transitions in each view and in the consensus."""
    return np.stack([0.5 * np.abs(view - consensus).sum(axis=1) for view in transitions], axis=1)
