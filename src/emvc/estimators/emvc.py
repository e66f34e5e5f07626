"""The estimator of the paper: Error-Robust Multi-View Clustering."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from emvc._array import FloatArray, IntArray
from emvc._validation import Views, check_choice, check_integer, check_memory, check_number, check_views, has_dask
from emvc.cluster_count import choose_n_clusters
from emvc.estimators._base import GraphOptions, limit_threads
from emvc.estimators._error_report import ErrorReport, build
from emvc.estimators._landmarks import LocalSource, Options, check_landmark_memory, choose_n_landmarks, fit_dask
from emvc.estimators._landmarks import fit as fit_landmarks
from emvc.estimators._predict import (
    Training,
    check_features,
    keep_training,
    match_views,
    predict_labels,
    reference_of,
)
from emvc.estimators._robust import (
    Preparation,
    contradictions,
    outlier_mask,
    place_the_lost,
    prepare,
    sample_errors,
    view_errors,
    votes_of_the_kept,
)
from emvc.estimators._solve import solve
from emvc.graphs import compute_affinity
from emvc.landmarks import take
from emvc.problem import Problem
from emvc.solvers import ADMM, ALM
from emvc.spectral import EMBEDDINGS, Embedding, cluster_chain

SOLVERS = ("admm", "alm", "alm-authors")
PUBLISHED = {
    "solver": "alm",
    "affinity": "rbf",
    "scale": None,
    "joint_view": False,
    "screen": False,
}
"""Options of the published configuration."""
_ALM_TOL = 1e-5  # times tol: the printed 1e-8 at the default
_AUTO_WEIGHT = 4.0
_MOST_COUNTED = 5000  # of more samples, so many evenly spread ones choose the number of clusters
_SINGLE_TOL = 1e-4  # gaps this large are far above the rounding of single precision


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
    n_clusters : int or "auto", default=8
        Number of clusters; ``"auto"`` tries 2 to 20, and more where the views call for it, and chooses without labels
        (see `emvc.cluster_count`), by 5000 evenly spread samples if there are more.
    beta : float or "auto", default="auto"
        Weight of the row groups of the errors (single samples). ``"auto"`` is
        ``4 * sqrt(n_clusters / n_samples)`` divided by the number of views that show the average sample, the joint one
        included; twice that if a single view has to do, because there is nothing to compare it with.
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
        Neighbours in the ``"local"`` graph; ``"auto"`` is a quarter of the average cluster size, at least 10.
    scale : {"auto", "unit", "zscore", "denoise", None}, default="auto"
        Feature scaling: unit rows for text-like views, what stands out of white noise for views that are mostly noise,
        z-scores or nothing otherwise (see `emvc.graphs.scale_view`); or one of these for all views.
    joint_view : bool, default=True
        Whether the average of the distances of all views is added as a view of its own, with 45 % of the total weight
        (up to 70 % where views are mostly noise), and views without the common structure lose weight (see
        `emvc.fusion`). Needs the ``"local"`` graph and several views.
    screen : {"auto", False}, default="auto"
        Whether to look for errors before the solve (see `emvc.screening`): samples that stand alone in a view and, with
        three views or more, samples on which one view contradicts the others. They have neither row nor column in the
        graph of that view.
    outliers : {"assign", "label"}, default="assign"
        What happens to samples that no view can be believed about: they get a cluster last, or the label -1.
    embedding : {"auto", "unit-rows", "plain", "weighted"}, default="auto"
        Eigenvectors with rows of unit length, the generalised eigenvectors of the paper, or these with k-means weighted
        by the stationary distribution. ``"auto"`` is unit rows, but weights when samples are missing from views: unit
        length gives a sample that is known by one view alone as much say as the others.
    n_landmarks : int or None, default=None
        Number of samples that serve as landmarks. Chains then lead from every sample to the landmarks only, and time
        and memory grow with ``n_samples`` instead of its square (see `emvc.landmarks`). Between ``n_clusters + 1`` and
        ``n_samples``, where the latter is the exact method. None is the exact method while memory allows, and 20 per
        cluster (at least 200, at most 1000) with a warning beyond. Needs ``"admm"`` and the ``"local"`` graph;
        ``n_neighbors`` then counts landmarks, and ``memory`` is not used.
    n_init : int, default=20
        Starts of k-means.
    max_iter : int, default=500
        Most iterations of the solver.
    tol : float, default=1e-3
        Relative duality gap at which ``"admm"`` stops. ``"alm"`` stops when no constraint is violated by more than
        ``1e-5 * tol``, which is the paper's 1e-8 at the default.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the matrices of ``"admm"``; its sums and its certificate are in double precision in any case. None
        is single precision while ``tol`` is 1e-4 or more. Where single precision gets no further, as with samples
        that are equal or almost so, the solver goes over to double precision.
    random_state : int, Generator, RandomState or None, default=None
        Seed of k-means. The same seed gives the same labels. The solvers do not depend on it: the random start that
        the paper prescribes for ``"alm"`` is drawn once and for all.
    memory : None, str or joblib.Memory, default=None
        Where to keep the decomposition, so that a fit to the same graphs with another ``random_state`` or
        ``embedding`` takes it from there; a str is a folder.
    n_jobs : int or None, default=None
        Threads; None means as many as BLAS would use, which environment variables and ``threadpoolctl`` limit; -1 means
        all cores. Labels do not depend on it.
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
    consensus_ : ndarray of shape (n_samples, n_samples) or (n_samples, n_landmarks)
        The shared chain P, with landmarks in the precision of the solver.
    landmarks_ : ndarray of shape (n_landmarks,)
        Row numbers of the landmarks, where there are any.
    n_clusters_, beta_, lam_ : int, float, float
        The values used.
    n_clusters_confidence_, n_clusters_evidence_ : float, list of dict
        How clear the choice was and what it rests on, with ``n_clusters="auto"``.
    objective_ : float
        Objective at ``consensus_``.
    duality_gap_ : float
        Certificate: no consensus can lower the objective by a larger share.
    rank_ : int
        Rank of the low-rank copy of P.
    n_iter_, status_, history_ : int, str, History
        Iterations, why the solver stopped, and measurements along the way.
    sample_errors_ : ndarray of shape (n_samples, n_views)
        Suspicion between 0, usual in this view, and 1, the sample stands alone in the view or the view contradicts the
        others about it; comparable across views. NaN where the sample is missing.
    view_errors_ : ndarray of shape (n_views,)
        Share of its transitions that the other views do not confirm, between 0 and 1.
    outliers_ : ndarray of bool of shape (n_samples, n_views)
        Samples that were condemned in a view.
    isolation_ : ndarray of shape (n_samples, n_views)
        Robust score of how alone a sample is in a view; from 6 on it is condemned, or less where a group stands apart.
    disagreement_ : ndarray of shape (n_samples, n_views)
        Robust score of how much a view contradicts the others about a sample. With three views or more it is condemned
        for that if the others agree with each other (`emvc.screening.contrast`).
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views in the objective; the joint view has the rest.
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

    _allow_missing = True
    _training: Training

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        beta: float | str = "auto",
        lam: float | str = "auto",
        solver: Any = "admm",
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        joint_view: bool = True,
        screen: Any = "auto",
        outliers: str = "assign",
        embedding: Embedding | Literal["auto"] = "auto",
        n_landmarks: int | None = None,
        n_init: int = 20,
        max_iter: int = 500,
        tol: float = 1e-3,
        dtype: Any = None,
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
        self.joint_view = joint_view
        self.screen = screen
        self.outliers = outliers
        self.embedding = embedding
        self.n_landmarks = n_landmarks
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.dtype = dtype
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
        EMVC(affinity='rbf', beta=0.0, joint_view=False, lam=0.1, n_clusters=2,
             scale=None, screen=False, solver='alm')
        """
        return cls(n_clusters, beta=beta, lam=lam, **PUBLISHED | options)

    def fit(self, views: Any, y: Any = None) -> Self:
        """Cluster the samples described by ``views`` (see `MultiViewClusterer.fit`).

        Views may also be Dask arrays. They are clustered with landmarks where their chunks are, and attributes with
        one entry per sample are Dask arrays as well (see `emvc.distributed`).
        """
        return fit_dask(self, views) if has_dask(views) else super().fit(views, y)

    def predict(self, views: Any) -> IntArray:
        """Return the clusters of new samples, placed through the graphs of the views (`emvc.estimators._predict`).

        Parameters
        ----------
        views : list, tuple or dict of array-likes, or one array-like
            New samples in the same views, with the same features, as those of ``fit``. A dict is matched by name. A row
            of NaN in a view means that the sample is missing there.

        Returns
        -------
        labels : ndarray of shape (n_new_samples,)
            Clusters as in ``labels_``; -1 for samples that stand alone in every view if ``outliers="label"``.

        Raises
        ------
        ValueError
            If the views are not those of ``fit``, or ``affinity`` is ``"precomputed"`` or a callable, which tell
            nothing about new samples.

        Examples
        --------
        >>> from emvc.datasets import make_digits_views
        >>> data = make_digits_views(n_samples=300)
        >>> model = EMVC(n_clusters=10, random_state=0).fit([view[:250] for view in data.views])
        >>> model.predict([view[250:] for view in data.views]).shape
        (50,)
        """
        check_is_fitted(self)
        affinity = self._affinity_name()
        if callable(affinity) or affinity == "precomputed":
            raise ValueError(
                "predict cannot extend the graphs of affinity='precomputed' or of a callable to new samples; fit with "
                "a named affinity, for instance 'local'."
            )
        if not hasattr(self, "_training"):
            raise ValueError(
                "predict needs a fit to arrays; after a fit to Dask arrays the training samples are not kept."
            )
        caller, training = type(self).__name__, self._training
        checked = check_views(
            match_views(views, self.view_names_, single=training.single),
            allow_missing=True,
            least_samples=1,
            caller=caller,
        )
        check_features(checked, training, self.view_names_, caller)
        with limit_threads(self.n_jobs):
            return predict_labels(self, reference_of(self, affinity), checked)

    def error_report(self, n_worst: int = 20) -> ErrorReport:
        """Return a summary of the errors that were found: worst samples, worst views, and why.

        Parameters
        ----------
        n_worst : int
            Most entries of the list of samples.

        Examples
        --------
        >>> import numpy as np
        >>> from emvc.datasets import make_digits_views
        >>> data = make_digits_views(n_samples=200)
        >>> views = {name: view.copy() for name, view in zip(data.view_names, data.views)}
        >>> views["fourier"][5] = 1e3
        >>> model = EMVC(n_clusters=10, random_state=0).fit(views)
        >>> worst = model.error_report().samples[0]
        >>> worst.sample, worst.view, worst.condemned
        (5, 'fourier', True)
        """
        check_is_fitted(self)
        return build(self, check_integer(n_worst, "n_worst", least=0))

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        solver, max_iter, dtype, affinity = self._check_options()
        usual: Embedding = "weighted" if views.missing.any() else "unit-rows"
        self._n_neighbors(views.n_samples, n_clusters)
        n_chains = len(views.arrays) + (1 if self.joint_view and affinity == "local" and len(views.arrays) > 1 else 0)
        n_matrices = 3 * n_chains + 8 if isinstance(solver, ADMM) else 8 * n_chains + 8
        shape = (views.n_samples, views.n_samples)
        number = choose_n_landmarks(
            self.n_landmarks, views.n_samples, n_clusters,
            n_matrices=n_matrices, possible=isinstance(solver, ADMM) and affinity == "local",
        )  # fmt: skip
        if number is not None:
            check_landmark_memory(n_chains, views.n_samples, number, dtype)
            with limit_threads(self.n_jobs):
                fitted = fit_landmarks(LocalSource(views), self._landmark_options(n_clusters, number), rng)
            return {**fitted, "_training": keep_training(views, self._n_neighbors(views.n_samples, n_clusters))}
        check_memory(n_matrices, shape, advice="Cluster a subset of the samples or use fewer views.")
        with limit_threads(self.n_jobs):
            preparation = self._prepare(views, n_clusters)
            chains, n_kept = preparation.chains, len(preparation.kept)
            alone = chains.n_effective < 2
            auto = (2.0 if alone else 1.0) * _AUTO_WEIGHT * math.sqrt(n_clusters / n_kept) / chains.n_shown
            beta, lam = (self._weight(name, auto) for name in ("beta", "lam"))
            masked = isinstance(solver, ADMM) and not chains.observed.all()
            chains = replace(chains, transitions=chains.transitions.astype(dtype, copy=False))
            preparation = replace(preparation, chains=chains)  # lets go of the double-precision chains
            problem = Problem(chains.transitions, beta, lam, chains.weights, chains.observed if masked else None)
            solution = solve(
                solver, problem, name="EMVC", max_iter=max_iter, memory=self.memory, verbose=self.verbose, stacklevel=5
            )
            labels, embedding, eigenvalues = cluster_chain(
                solution.consensus,
                n_clusters,
                embedding=usual if self.embedding == "auto" else self.embedding,
                n_init=self.n_init,
                rng=rng,
            )
        votes = votes_of_the_kept(views, preparation, self.scale)
        contradicted = contradictions(preparation)
        fitted = {
            "eigenvalues_": eigenvalues,
            "beta_": beta,
            "lam_": lam,
            "view_weights_": chains.own_weights,
            "sample_errors_": sample_errors(preparation, contradicted),
            "view_errors_": view_errors(preparation),
            "outliers_": outlier_mask(preparation),
            "isolation_": preparation.screening.isolation,
            "disagreement_": contradicted,
            "_training": keep_training(views, self._n_neighbors(views.n_samples, n_clusters)),
            **solution.attributes(),
        }
        fitted["labels_"] = place_the_lost(labels, votes, preparation, outliers=self.outliers)
        fitted["embedding_"] = _extend(embedding, votes @ embedding, preparation)
        if len(preparation.lost):
            full = np.zeros(shape)
            full[np.ix_(preparation.kept, preparation.kept)] = solution.consensus
            full[np.ix_(preparation.lost, preparation.kept)] = votes
            fitted["consensus_"] = full
        return fitted

    def _choose_n_clusters(self, views: Views, rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
        if not isinstance(self.n_clusters, str):
            return super()._choose_n_clusters(views, rng)
        check_choice(self.n_clusters, "n_clusters", ("auto",))
        if views.n_samples > _MOST_COUNTED:
            views = take(views, np.linspace(0, views.n_samples - 1, _MOST_COUNTED).astype(np.intp))
        with limit_threads(self.n_jobs):
            number, confidence, evidence = choose_n_clusters(
                lambda width: self._prepare(views, width).chains, None, rng
            )
        return number, {"n_clusters_confidence_": confidence, "n_clusters_evidence_": evidence}

    def _check_options(self) -> tuple[ADMM | ALM, int, Any, Any]:
        """Check all options that do not depend on the data; return solver, iterations, precision and graph."""
        solver = self._make_solver()
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        dtype = self._dtype(solver)
        check_choice(self.embedding, "embedding", ("auto", *EMBEDDINGS))
        check_choice(self.screen, "screen", ("auto", False))
        check_choice(self.outliers, "outliers", ("assign", "label"))
        check_choice(self.joint_view, "joint_view", (True, False))
        affinity = self._affinity_name()
        for name in ("beta", "lam"):
            self._weight(name, 1.0)
        return solver, max_iter, dtype, affinity

    def _landmark_options(self, n_clusters: int | None, n_landmarks: int | None) -> Options:
        """Return the options of a fit with landmarks."""
        solver = self._make_solver()
        if not isinstance(solver, ADMM) or self._affinity_name() != "local":
            raise ValueError(
                f"n_landmarks needs solver='admm' and affinity='local', got solver={self.solver!r} and "
                f"affinity={self.affinity!r}."
            )
        auto_neighbors = isinstance(self.n_neighbors, str)
        return Options(
            n_clusters=n_clusters,
            n_landmarks=n_landmarks,
            beta=None if isinstance(self.beta, str) else self._weight("beta", 1.0),
            lam=None if isinstance(self.lam, str) else self._weight("lam", 1.0),
            solver=solver,
            n_neighbors=None if auto_neighbors else check_integer(self.n_neighbors, "n_neighbors", least=1),
            scale=self.scale,
            joint=self.joint_view,
            screening=self.screen == "auto",
            label_outliers=self.outliers == "label",
            unit_rows=self.embedding in ("auto", "unit-rows"),
            n_init=self.n_init,
            max_iter=self.max_iter,
            dtype=self._dtype(solver),
            auto_weight=_AUTO_WEIGHT,
            verbose=self.verbose,
        )

    def _prepare(self, views: Views, n_clusters: int) -> Preparation:
        """Screen and fuse the views."""
        affinity = self._affinity_name()
        return prepare(
            views,
            n_clusters,
            affinity=affinity if affinity in ("local", "precomputed") else self._affinity_of,
            scale=self.scale,
            n_neighbors=self._n_neighbors(views.n_samples, n_clusters),
            screening=self.screen == "auto",
            joint=self.joint_view,
            weigh=self.joint_view,
        )

    def _affinity_of(self, view: Any, name: str, n_neighbors: int) -> FloatArray:
        return compute_affinity(view, self._affinity_name(), name=name, n_neighbors=n_neighbors)

    def _make_solver(self) -> ADMM | ALM:
        if isinstance(self.solver, ADMM | ALM):
            return self.solver
        check_choice(self.solver, "solver", SOLVERS)
        tol = check_number(self.tol, "tol", strict=True)
        if self.solver == "admm":
            return ADMM(tol=tol)
        return ALM(tol=_ALM_TOL * tol, stop="residual" if self.solver == "alm" else "objective")

    def _dtype(self, solver: ADMM | ALM) -> type[np.floating[Any]]:
        """Return the precision of the solver's matrices."""
        if self.dtype is None:
            return np.float32 if isinstance(solver, ADMM) and solver.tol >= _SINGLE_TOL else np.float64
        try:
            name = np.dtype(self.dtype).name
        except TypeError:
            name = str(self.dtype)
        check_choice(name, "dtype", ("float32", "float64"))
        if name == "float32" and not isinstance(solver, ADMM):
            raise ValueError(f"dtype='float32' needs solver='admm', got solver={self.solver!r}.")
        return np.float32 if name == "float32" else np.float64

    def _weight(self, name: str, auto: float) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            check_choice(value, name, ("auto",))
            return auto
        return check_number(value, name)


def _extend(kept: FloatArray, lost: FloatArray, preparation: Preparation) -> FloatArray:
    """Return rows of kept and lost samples in their order."""
    rows = np.empty((len(kept) + len(lost), kept.shape[1]))
    rows[preparation.kept], rows[preparation.lost] = kept, lost
    return rows
