"""Baseline: robust multi-view spectral clustering (Xia, Pan, Du, Yin, AAAI 2014)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from emvc._validation import Views, check_choice, check_integer, check_memory, check_number, check_weight
from emvc.estimators._base import GraphOptions, limit_threads
from emvc.estimators._solve import solve
from emvc.graphs import stack_transitions
from emvc.problem import EntrywiseProblem
from emvc.solvers import EntrywiseADMM, EntrywiseALM
from emvc.solvers.alm import TOL_SHARE
from emvc.spectral import EMBEDDINGS, Embedding, cluster_embedding, spectral_embedding

_AUTO_WEIGHT = 4.0


class RMSC(GraphOptions):
    r"""Robust multi-view spectral clustering: a shared low-rank chain and entrywise sparse errors.

    .. math::
        \min_{P \ge 0,\; P\mathbf 1 = \mathbf 1} \; \lVert P \rVert_* + \lambda \sum_k \lVert P_k - P \rVert_1

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float or "auto", default="auto"
        Weight of the errors; ``"auto"`` is ``4 * n_clusters / (n_views * n_samples)``: the chain of n_clusters separate
        clusters has this nuclear norm, and all rows of all views together must outweigh it, or else one cluster is
        the cheapest answer. Its authors suggest to try powers of ten.
    solver : {"admm", "alm"}, default="admm"
        ``"admm"`` solves the problem to a certificate, ``"alm"`` is the published schedule.
    affinity, n_neighbors, scale, embedding, n_init, tol, random_state, memory, n_jobs, verbose
        As for `EMVC`; ``affinity="auto"`` is ``"rbf"``.
    max_iter : int, default=1000
        Most iterations; entrywise penalties converge more slowly than groups.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    lam_ : float
        The weight used.
    embedding_, consensus_, objective_, duality_gap_, rank_, n_iter_, status_, history_
        As for `EMVC`.
    n_clusters_, view_names_, n_features_in_
        As for `EMVC`.

    Examples
    --------
    >>> from emvc import RMSC
    >>> from emvc.datasets import make_paper_synthetic
    >>> data = make_paper_synthetic(n_per_cluster=50, random_state=0)
    >>> model = RMSC(2, lam=0.02, random_state=0).fit(data.views)
    >>> model.status_, bool(model.duality_gap_ <= 1e-3)
    ('converged', True)
    """

    default_affinity = "rbf"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lam: float | str = "auto",
        solver: Literal["admm", "alm"] = "admm",
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        embedding: Embedding = "unit-rows",
        n_init: int = 20,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
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

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        check_choice(self.solver, "solver", ("admm", "alm"))
        check_choice(self.embedding, "embedding", EMBEDDINGS)
        if isinstance(self.lam, str):
            check_choice(self.lam, "lam", ("auto",))
            lam = _AUTO_WEIGHT * n_clusters / (len(views.arrays) * views.n_samples)
        else:
            lam = check_weight(self.lam, "lam")
        tol = check_number(self.tol, "tol", strict=True)
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        shape = (views.n_samples, views.n_samples)
        check_memory(3 * len(views.arrays) + 8, shape, advice="Cluster a subset of the samples or use fewer views.")
        solver = EntrywiseADMM(tol=tol) if self.solver == "admm" else EntrywiseALM(tol=TOL_SHARE * tol)
        with limit_threads(self.n_jobs):
            transitions = stack_transitions(self._affinities(views, n_clusters), len(views.arrays), views.n_samples)
            problem = EntrywiseProblem(transitions, lam)
            solution = solve(solver, problem, name="RMSC", max_iter=max_iter, memory=self.memory, verbose=self.verbose)
            embedding, _ = spectral_embedding(solution.consensus, n_clusters, embedding=self.embedding)
            labels = cluster_embedding(embedding, n_clusters, n_init=self.n_init, rng=rng)
        return {"labels_": labels, "embedding_": embedding, "lam_": lam, **solution.attributes()}
