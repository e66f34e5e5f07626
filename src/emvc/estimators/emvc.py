"""The estimator of the paper, and past it: Error-Robust Multi-View Clustering."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import TransformerTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from emvc._array import FloatArray, IntArray
from emvc._memory import available_memory
from emvc._validation import (
    Views,
    check_choice,
    check_integer,
    check_memory,
    check_number,
    check_views,
    check_weight,
    has_dask,
)
from emvc.cluster_count import WIDTH, choose_n_clusters
from emvc.estimators._base import GraphOptions, limit_threads
from emvc.estimators._confidence import calibrate, memberships, votes_of
from emvc.estimators._dask import fit_dask
from emvc.estimators._error_report import ErrorReport, build
from emvc.estimators._gaps import describe_gaps
from emvc.estimators._predict import (
    NewSamples,
    Training,
    check_features,
    describe_new,
    remember,
)
from emvc.estimators._solve import solve
from emvc.graphs import SCALES, compute_affinity, default_n_neighbors
from emvc.method import landmarks
from emvc.method.blocks import flagged, nearest
from emvc.method.landmarks import LocalSource
from emvc.method.prepare import Prepared, assemble, place, prepare
from emvc.method.reference import Reference, Rows, Settings
from emvc.method.reliability import reliabilities
from emvc.problem import Problem, relative_gap
from emvc.solvers import ADMM, ALM, History, Status
from emvc.solvers.alm import TOL_SHARE
from emvc.spectral import EMBEDDINGS, Embedding, cluster_chain, has_unit_rows, number_by_appearance, scale_rows
from emvc.structure import StructureTest, look_for_structure

SOLVERS = ("auto", "admm", "alm", "alm-authors")
PUBLISHED = {
    "solver": "alm",
    "affinity": "rbf",
    "scale": None,
    "joint_view": False,
    "screen": False,
    "embedding": "unit-rows",
}
"""Options of the published configuration."""

FALSE_ALARMS = 0.05
"""What ``screen="auto"`` means."""

_AUTO_WEIGHT = 4.0
_MOST_COUNTED = 5000  # of more samples, so many evenly spread ones choose the number of clusters
_SINGLE_TOL = 1e-4  # gaps this large are far above the rounding of single precision


class EMVC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphOptions):
    r"""Error-robust multi-view clustering.

    Every view becomes a Markov chain :math:`P_k` over the samples. The chains are split into one shared chain P, noise,
    and errors of single rows, :math:`P_k = P + N_k + E_k`, by the convex problem of `emvc.problem.RowProblem`: a mean
    of the views from which rows that are wrong are kept away. How far a row is believed is told beforehand, from how it
    stands apart in its view and from how the other views contradict it. The samples are clustered by the leading
    eigenvectors of P.

    With numbers for ``beta`` or ``lam``, or with ``solver="admm"``, ``"alm"`` or ``"alm-authors"``, the chains are
    split by the model of the paper instead,

    .. math::
        \min_{P \ge 0,\; P\mathbf 1 = \mathbf 1} \; \lVert P \rVert_*
            + \beta \sum_k \lVert E_k \rVert_{2,1} + \lambda \sum_k \lVert E_k \rVert_{G1} .

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; ``"auto"`` tries 2 to 120 and chooses without labels (see `emvc.cluster_count`), by 5000
        evenly spread samples if there are more. It answers 1 if there are no clusters beyond chance (see
        `emvc.structure`).
    beta : float or "auto", default="auto"
        Weight of the row groups of the errors in the model of the paper. There ``"auto"`` is
        ``4 * sqrt(n_clusters / n_samples)`` divided by the number of chains; twice that if a single view has to do.
    lam : float or "auto", default="auto"
        Weight of the column groups of the errors in the model of the paper. ``"auto"`` as for ``beta``.
    solver : {"auto", "admm", "alm", "alm-authors"} or ADMM or ALM, default="auto"
        ``"auto"`` solves the row problem, or, where a weight is given, means ``"admm"``. ``"admm"`` solves the problem
        of the paper to a certificate. ``"alm"`` is the published algorithm, which stops at a feasible point;
        ``"alm-authors"`` adds the stopping rule of the authors' program, whose result does not depend on the weights
        unless they are tiny. A configured solver object is used as it is, whatever ``tol`` says.
    affinity : str or callable, default="auto"
        Graph of a view: ``"local"`` (what ``"auto"`` means), ``"rbf"``, ``"rbf-literal"``, ``"rbf-t100"``,
        ``"self-tuning"``, ``"cosine"``, ``"precomputed"``, or a function from a scaled view to an N x N matrix.
    n_neighbors : int or "auto", default="auto"
        Neighbours in the ``"local"`` graph; ``"auto"`` is an eighth of the average cluster size, at least 10.
    scale : {"auto", "unit", "zscore", None}, default="auto"
        Feature scaling: unit rows for views of mostly zeros, z-scores otherwise, in both gross cells cut off (see
        `emvc.graphs.scale_view`); or plain unit rows, plain z-scores or nothing for all views.
    joint_view : bool, default=True
        Whether the average of the distances of all views is added as a view of its own, of the same weight as the
        others. Needs the ``"local"`` graph and several views.
    screen : {"auto", False} or float, default="auto"
        Whether to look for rows that are wrong, and the rate of false alarms: rows are flagged (``outliers_``) that are
        wrong with a probability of more than one minus this. ``"auto"`` is 0.05.
    outliers : {"assign", "label"}, default="assign"
        What happens to samples that no view can be believed about: they get a cluster last, or the label -1.
    embedding : {"diffusion", "unit-rows", "plain", "weighted"}, default="diffusion"
        ``"diffusion"``: leading eigenvectors weighed by what is left of them after some steps of the chain (see
        `emvc.spectral.diffusion_weights`), rows of unit length. ``"unit-rows"``: as many eigenvectors as clusters, rows
        of unit length. ``"plain"``: the generalised eigenvectors of the paper; ``"weighted"``: these, with k-means
        weighted by the stationary distribution. With landmarks the last is the same as ``"plain"``.
    n_landmarks : int or None, default=None
        Number of samples that serve as landmarks. Chains then lead from every sample to the landmarks only, and time
        and memory grow with ``n_samples`` instead of its square (see `emvc.method.landmarks`). Between ``n_clusters +
        1`` and ``n_samples``, where the latter is the exact method. None is the exact method while memory allows, and
        20 per cluster (at least 200, at most 1000) with a warning beyond. Needs ``solver="auto"`` and the ``"local"``
        graph; ``n_neighbors`` then counts landmarks.
    n_init : int, default=20
        Starts of k-means.
    max_iter : int, default=500
        Most iterations of the solver; of every row in the row problem.
    tol : float, default=1e-3
        Relative duality gap that is good enough; ``"admm"`` stops there. ``"alm"`` stops when no constraint is
        violated by more than ``1e-5 * tol``, which is the paper's 1e-8 at the default.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the chains; sums and certificates are in double precision in any case. None is single precision
        while ``tol`` is 1e-4 or more, and double precision for ``"alm"``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of k-means. The same seed gives the same labels. The solvers do not depend on it: the random start that
        the paper prescribes for ``"alm"`` is drawn once and for all.
    memory : None, str or joblib.Memory, default=None
        Where to keep the decomposition of the paper, so that a fit to the same graphs with another ``random_state`` or
        ``embedding`` takes it from there; a str is a folder.
    n_jobs : int or None, default=None
        Threads; None means as many as BLAS would use, which environment variables and ``threadpoolctl`` limit; -1 means
        all cores. Labels do not depend on it.
    verbose : int, default=0
        Show progress: of the choice of the number of clusters, and of a solver with gap and rank.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of appearance.
    embedding_ : ndarray of shape (n_samples, n_components)
        Spectral coordinates that k-means has seen.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues of the symmetrised consensus.
    consensus_ : ndarray of shape (n_samples, n_samples) or (n_samples, n_landmarks)
        The shared chain P.
    landmarks_ : ndarray of shape (n_landmarks,)
        Row numbers of the landmarks, where there are any.
    n_clusters_, beta_, lam_ : int, float, float
        The values used. In the row problem, ``beta_`` is the usual length of an error, which is the limit of a row
        that is as likely to be right as to be wrong, and ``lam_`` is 0.
    n_clusters_confidence_, n_clusters_evidence_ : float, list of dict
        How clear the choice was and what it rests on, with ``n_clusters="auto"``.
    problem_ : RowProblem or Problem
        What was solved: chains (``transitions``), ``weights``, ``observed``, ``beta`` and ``lam``; over the samples
        that take part. Not saved, and not there with landmarks.
    multipliers_ : ndarray of shape (n_chains, n_samples, n_samples)
        What proves the bound behind ``duality_gap_``, of the row problem; computed from ``problem_`` when asked for.
    objective_ : float
        Objective at ``consensus_``.
    duality_gap_ : float
        Certificate: no consensus can lower the objective by a larger share.
    rank_ : int
        Numerical rank of ``consensus_``, computed when asked for; of the model of the paper, that of its low-rank copy.
    n_iter_, status_, history_ : int, str, History
        Iterations, why the solver stopped, and measurements along the way.
    sample_errors_ : ndarray of shape (n_samples, n_views)
        Probability that the row of a sample in a view is wrong. NaN where the sample is missing.
    reliability_, view_errors_ : ndarray of shape (n_views,)
        How far a view alone finds the clusters that the others find, and one minus that: 0 is what chance gives, 1 full
        agreement (see `emvc.method.reliability`); computed when asked for. Of two views both get the same.
    membership_, confidence_ : ndarray of shape (n_samples, n_clusters_), (n_samples,)
        Probabilities of the clusters for each sample, and that of its own: how often it is expected to keep it if a
        fifth of the samples were left out. Computed when asked for, by twenty fits to parts of the samples.
    structure_p_value_ : float
        Share of data without clusters that look at least as clustered (see `emvc.structure`), with
        ``n_clusters="auto"``.
    outliers_ : ndarray of bool of shape (n_samples, n_views)
        Rows that are wrong with a probability of more than one minus the rate of false alarms. Ruined ones are left
        out, as if they were missing; the others hardly count.
    isolation_, disagreement_ : ndarray of shape (n_samples, n_views)
        The two reasons: the probability that a row is wrong because it stands apart in its view
        (`emvc.method.isolation`), and because the other views contradict it (`emvc.method.agreement`).
    view_weights_ : ndarray of shape (n_views,)
        Share of each view in the consensus, the joint view left out; they add up to one.
    missing_cells_ : ndarray of shape (n_views,)
        Share of cells that are missing in each view, of the samples that it shows.
    dropped_columns_ : dict
        By view, the columns without a single value, which say nothing: names, or numbers where they have none.
    view_names_ : list of str
        Names of the views.
    sample_names_ : ndarray
        Ids of the samples, if the views had any: all that appear in a view, in the order in which they appear.
    feature_names_in_ : dict
        By view, the names of its columns, where it has any; `predict` puts columns into their order.
    intake_ : list of `emvc.intake.ColumnRecord`
        What was done with columns of DataFrames that are not plainly numeric.
    n_features_in_ : int
        Number of features, summed over the views.

    Examples
    --------
    >>> from emvc import EMVC
    >>> from emvc.datasets import make_digits_views
    >>> data = make_digits_views(n_samples=200)
    >>> model = EMVC(n_clusters=10, random_state=0).fit(data.views)
    >>> model.status_, bool(model.duality_gap_ <= 1e-6)
    ('converged', True)
    """

    _allow_missing = True
    _training: Training
    _found_: dict[str, FloatArray]  # filled when asked for: predicting must not change attributes
    consensus_: FloatArray

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        beta: float | str = "auto",
        lam: float | str = "auto",
        solver: Any = "auto",
        affinity: Any = "auto",
        n_neighbors: int | str = "auto",
        scale: str | None = "auto",
        joint_view: bool = True,
        screen: Any = "auto",
        outliers: str = "assign",
        embedding: Embedding = "diffusion",
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
        EMVC(affinity='rbf', beta=0.0, embedding='unit-rows', joint_view=False, lam=0.1,
             n_clusters=2, scale=None, screen=False, solver='alm')
        """
        return cls(n_clusters, beta=beta, lam=lam, **PUBLISHED | options)

    def fit(self, views: Any, y: Any = None) -> Self:
        """Cluster the samples described by ``views`` (see `MultiViewClusterer.fit`).

        Views may also be Dask arrays. They are clustered with landmarks where their chunks are, and attributes with
        one entry per sample are Dask arrays as well (see `emvc.distributed`).
        """
        return fit_dask(self, views) if has_dask(views) else super().fit(views, y)

    def predict(self, views: Any) -> IntArray:
        """Return the clusters of new samples, which are described by the training samples as these are.

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
        return self._describe_new(views).labels

    @available_if(lambda self: not self._is_single_sparse())  # type: ignore[untyped-decorator]
    def predict_proba(self, views: Any) -> FloatArray:
        """Return the probabilities of the clusters for new samples, as ``membership_`` for those of the fit.

        Parameters
        ----------
        views : list, tuple or dict of array-likes, or one array-like
            As for `predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_new_samples, n_clusters_)
        """
        check_is_fitted(self)
        new = self._describe_new(views)
        return memberships(new.votes, new.labels, self._curve())

    def _is_single_sparse(self) -> bool:
        """Return whether this is a fit to one sparse matrix, of which scikit-learn's checks expect a classifier's y."""
        training = getattr(self, "_training", None)
        return training is not None and training.single and scipy.sparse.issparse(training.views[0])

    def transform(self, views: Any) -> FloatArray:
        """Return the coordinates of new samples in the embedding.

        Parameters
        ----------
        views : list, tuple or dict of array-likes, or one array-like
            As for `predict`.

        Returns
        -------
        points : ndarray of shape (n_new_samples, n_components)
        """
        check_is_fitted(self)
        return self._describe_new(views).points

    def fit_transform(self, views: Any, y: Any = None) -> FloatArray:
        """Fit to views, then return what `transform` says of them as new samples."""
        return self.fit(views, y).transform(views)

    def _describe_new(self, views: Any) -> NewSamples:
        affinity = self._affinity_name()
        if callable(affinity) or affinity == "precomputed":
            raise ValueError(
                "predict cannot extend the graphs of affinity='precomputed' or of a callable to new samples; fit with "
                "a named affinity, for instance 'local'."
            )
        if not hasattr(self, "_training"):
            raise ValueError(
                "predict needs the training samples, which this model does not have: it was saved with training=False "
                "or fitted to Dask arrays."
            )
        caller, training = type(self).__name__, self._training
        checked = check_views(views, allow_missing=True, allow_gaps=True, least_samples=1, caller=caller, fitted=self)
        check_features(checked, training, self.view_names_, caller)
        for record in checked.records:
            warnings.warn(str(record), UserWarning, stacklevel=3)
        with limit_threads(self.n_jobs):
            return describe_new(self, checked)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            An array, or a DataFrame with the columns ``emvc0``, ``emvc1``, ...; None leaves it as it is.
        """
        found: Self = super().set_output(transform=transform)
        return found

    @property
    def _n_features_out(self) -> int:
        """Number of columns of what `transform` returns, for scikit-learn."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags

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
        >>> worst.sample, worst.view, worst.left_out
        (5, 'fourier', True)
        """
        check_is_fitted(self)
        return build(self, check_integer(n_worst, "n_worst", least=0))

    @property
    def rank_(self) -> int:
        """Numerical rank of the consensus."""
        check_is_fitted(self)
        if "_rank_" not in vars(self):
            self._rank_ = int(np.linalg.matrix_rank(np.asarray(self.consensus_)))
        return self._rank_

    @property
    def reliability_(self) -> FloatArray:
        """How far each view alone finds the clusters of the others: 0 is what chance gives, 1 full agreement."""
        check_is_fitted(self)
        if "reliability" not in self._found_:
            with limit_threads(self.n_jobs):
                self._found_["reliability"] = reliabilities(self._alone, self.n_clusters_)
        return self._found_["reliability"]

    @property
    def view_errors_(self) -> FloatArray:
        """One minus ``reliability_``."""
        return np.asarray(1.0 - self.reliability_)

    @property
    def membership_(self) -> FloatArray:
        """Probabilities of the clusters for each sample."""
        check_is_fitted(self)
        return memberships(votes_of(self), np.asarray(self.labels_), self._curve())

    @property
    def confidence_(self) -> FloatArray:
        """How often a sample is expected to keep its cluster if a fifth of the samples were left out."""
        labels, found = np.asarray(self.labels_), self.membership_
        return np.where(labels >= 0, found[np.arange(len(labels)), np.maximum(labels, 0)], np.nan)

    def _curve(self) -> FloatArray:
        """Return what turns shares of links into probabilities, computed when it is asked for."""
        if "curve" not in self._found_:
            if not hasattr(self, "_training"):
                raise AttributeError("Confidence needs a fit to arrays; after one to Dask arrays no samples are kept.")
            with limit_threads(self.n_jobs):
                self._found_["curve"] = calibrate(self)
        return self._found_["curve"]

    def save(self, path: str | os.PathLike[str], *, training: bool = True) -> None:
        """Write the fitted model to a file that `emvc.load` reads (see `emvc.persistence.save`)."""
        check_is_fitted(self)
        self._found_["reliability"] = self.reliability_  # computed now: the chains that tell it are not saved
        if not training and hasattr(self, "_training"):
            self._curve()  # nor can confidence be told without the samples
        super().save(path, training=training)

    @property
    def multipliers_(self) -> FloatArray:
        """Multipliers that prove the bound behind ``duality_gap_`` (see `emvc.problem.RowProblem.dual_bound`)."""
        problem = getattr(self, "problem_", None)
        if problem is None or not hasattr(problem, "multipliers"):
            raise AttributeError("multipliers_ are there after a fit of the row problem without landmarks.")
        found: FloatArray = problem.multipliers(self.consensus_[np.ix_(self._kept_, self._kept_)])
        return found

    def _fit(self, views: Views, n_clusters: int, rng: np.random.Generator) -> dict[str, Any]:
        solver, dtype = self._check_options()
        self._n_neighbors(views.n_samples, n_clusters)
        settings = self._settings(views.n_samples, n_clusters)
        n_chains = len(views.arrays) + (1 if settings.joint and len(views.arrays) > 1 else 0)
        n_matrices = 3 * n_chains + 4 if solver is None else 8 * n_chains + 8
        number = self._choose_n_landmarks(views.n_samples, n_clusters, n_matrices, possible=solver is None)
        with limit_threads(self.n_jobs):
            if number is not None:
                return self._fit_landmarks(LocalSource(views), n_clusters, number, rng)
            check_memory(
                n_matrices,
                (views.n_samples, views.n_samples),
                advice="Cluster a subset of the samples or use fewer views.",
            )
            prepared = prepare(views, settings, dtype)
            solved = self._solve(prepared.rows, solver, n_clusters)
            labels, embedding, eigenvalues = cluster_chain(
                solved["consensus_"], n_clusters, embedding=self.embedding, n_init=self.n_init, rng=rng
            )
            return solved | self._describe(views, prepared, solved["consensus_"], labels, embedding) | {
                "eigenvalues_": eigenvalues
            }  # fmt: skip

    def _solve(self, rows: Rows, solver: ADMM | ALM | None, n_clusters: int) -> dict[str, Any]:
        """Solve the row problem or that of the paper; return attributes."""
        if solver is None:
            return self._solve_rows(rows)
        problem = self._paper_problem(rows, n_clusters, masked=isinstance(solver, ADMM))
        max_iter = check_integer(self.max_iter, "max_iter", least=1)
        solution = solve(
            solver, problem, name="EMVC", max_iter=max_iter, memory=self.memory, verbose=self.verbose, stacklevel=6
        )
        found = solution.attributes()
        found["_rank_"] = found.pop("rank_")
        weights = rows.problem.weights[: rows.shown.shape[1]].mean(axis=1)
        return found | {
            "problem_": problem,
            "beta_": problem.beta,
            "lam_": problem.lam,
            "view_weights_": weights / weights.sum(),
        }

    def _solve_rows(self, rows: Rows) -> dict[str, Any]:
        problem = rows.problem
        solved = problem.solve(check_integer(self.max_iter, "max_iter", least=1))
        gap = relative_gap(solved.objective, solved.bound)
        tol = check_number(self.tol, "tol", strict=True)
        history = History([solved.n_iter], [solved.objective], [gap], [0.0], [0], [0.0], [0.0])
        _warn_about(gap, tol, self.max_iter)
        return {
            "consensus_": solved.consensus,
            "problem_": problem,
            "objective_": solved.objective,
            "duality_gap_": gap,
            "n_iter_": solved.n_iter,
            "status_": (Status.CONVERGED if gap <= tol else Status.MAX_ITER).value,
            "history_": history,
            **_row_attributes(rows.usual, solved.shares[: rows.shown.shape[1]].mean(axis=1)),
        }

    def _paper_problem(self, rows: Rows, n_clusters: int, *, masked: bool) -> Problem:
        """Return the problem of the paper for these chains."""
        chains, weights = rows.problem.transitions, rows.problem.weights
        n_chains, n_samples, _ = chains.shape
        n_shown = float((weights > 0).mean(axis=1).sum())
        factor = 2.0 if rows.shown.shape[1] == 1 else 1.0
        auto = factor * _AUTO_WEIGHT * math.sqrt(n_clusters / n_samples) / n_shown
        beta, lam = (self._weight(name, auto) for name in ("beta", "lam"))
        observed = (weights > 0).astype(np.float64)
        means = weights.mean(axis=1)
        masks = observed if masked and not observed.all() else None
        return Problem(chains, beta, lam, n_chains * means / means.sum(), masks)

    def _describe(
        self, views: Views, prepared: Prepared, consensus: FloatArray, labels: IntArray, embedding: FloatArray
    ) -> dict[str, Any]:
        """Return what is known about all samples, the lost ones among them."""
        rows, lost = prepared.rows, prepared.lost
        n_clusters = int(labels.max()) + 1
        centers = _centers(embedding, labels, n_clusters)
        votes, points = np.empty((0, len(consensus))), np.empty((0, embedding.shape[1]))
        if len(lost):
            votes = place(prepared.reference, views.take(lost), prepared.screening.take(lost))
            points = votes @ embedding
            if has_unit_rows(self.embedding):
                points = scale_rows(points)
        last = np.full(len(lost), -1) if self.outliers == "label" else nearest(points, centers)
        full = assemble(labels, last.astype(labels.dtype), prepared)
        named = full >= 0
        order = number_by_appearance(full[named])
        centers = centers[[int(full[named][order == c][0]) for c in range(n_clusters)]]
        full[named] = order
        wrong = assemble(rows.wrong, prepared.screening.ruined[lost], prepared)
        reference = prepared.reference
        training = Training(
            views.arrays, views.missing, views.names, reference.settings.n_neighbors, views.single, embedding, centers
        )
        if isinstance(self._affinity_name(), str) and self._affinity_name() != "precomputed":
            remember(training, reference)
        return {
            "labels_": full,
            "embedding_": assemble(embedding, points, prepared),
            "consensus_": _with_lost(consensus, votes, prepared),
            "sample_errors_": np.where(views.missing, np.nan, wrong),
            "outliers_": flagged(wrong, prepared.screening.ruined, views.missing, reference.settings.false_alarms),
            "isolation_": assemble(rows.isolated, prepared.screening.ruined[lost], prepared),
            "disagreement_": assemble(rows.contradicted, np.zeros((len(lost), len(views.arrays))), prepared),
            **_caches(reference),
            "_kept_": prepared.kept,
            "_training": training,
        }

    def _fit_landmarks(self, source: Any, n_clusters: int, number: int, rng: np.random.Generator) -> dict[str, Any]:
        """Fit with landmarks; attributes with one entry per sample are what the source collects."""
        settings = self._settings(number, n_clusters)
        found = landmarks.fit(
            source,
            settings,
            number,
            rng,
            dtype=self._dtype(None),
            n_init=self.n_init,
            embedding=self.embedding,
            label_outliers=self.outliers == "label",
        )
        attributes = dict(found.attributes)
        gap = relative_gap(attributes["objective_"], attributes.pop("bound"))
        reference = found.prepared.reference
        training = Training(
            found.views.arrays,
            found.views.missing,
            found.views.names,
            settings.n_neighbors,
            found.views.single,
            found.image,
            found.centers,
        )
        remember(training, reference)
        history = History([1], [attributes["objective_"]], [gap], [0.0], [0], [0.0], [0.0])
        return {
            "duality_gap_": gap,
            "n_iter_": 1,
            "status_": Status.CONVERGED.value,
            "history_": history,
            **_row_attributes(reference.usual, attributes.pop("shares")),
            **_caches(reference),
            **describe_gaps(found.present, found.shown, source.names, source.feature_names, "EMVC"),
            "n_clusters_": n_clusters,
            "_kept_": found.prepared.kept,
            "_training": training,
            **attributes,
        }

    def _choose_n_landmarks(self, n_samples: int, n_clusters: int, n_matrices: float, *, possible: bool) -> int | None:
        """Return the number of landmarks, or None for the exact method."""
        local = self._affinity_name() == "local"
        if self.n_landmarks is not None:
            if not possible or not local:
                raise ValueError(
                    f"n_landmarks needs solver='auto' without weights and affinity='local'; solver={self.solver!r}, "
                    f"beta={self.beta!r}, lam={self.lam!r} and affinity={self.affinity!r}."
                )
            number = landmarks.check_n_landmarks(self.n_landmarks, n_samples, n_clusters)
            return None if number == n_samples else number
        available = available_memory()
        if not (possible and local) or available is None or 8 * n_matrices * n_samples**2 <= available:
            return None
        number = landmarks.default_n_landmarks(n_samples, n_clusters)
        if 2 * number > n_samples:  # would save next to nothing
            return None
        needed = 8 * n_matrices * n_samples**2 / 2**30
        warnings.warn(
            f"The exact method would need about {needed:.1f} GiB for {n_samples} samples; "
            f"n_landmarks={number} is used instead. Set n_landmarks to choose.",
            UserWarning,
            stacklevel=4,
        )
        return number

    def _choose_n_clusters(self, views: Views) -> tuple[int, dict[str, Any]]:
        if not isinstance(self.n_clusters, str):
            return super()._choose_n_clusters(views)
        check_choice(self.n_clusters, "n_clusters", ("auto",))
        if views.n_samples > _MOST_COUNTED:
            views = views.take(np.linspace(0, views.n_samples - 1, _MOST_COUNTED).astype(np.intp))
        with limit_threads(self.n_jobs):
            return self._count(views)

    def _count(self, views: Views) -> tuple[int, dict[str, Any]]:
        """Return the number of clusters, 1 if there are none beyond chance, and the evidence."""
        number, confidence, evidence = choose_n_clusters(lambda width: self._rows(views, width), None)
        test = self._test_structure(views)
        if not test.found:
            number, confidence = 1, test.p_value
        return number, {
            "n_clusters_confidence_": confidence,
            "n_clusters_evidence_": evidence,
            "structure_p_value_": test.p_value,
        }

    def _test_structure(self, views: Views) -> StructureTest:
        """Test whether there are clusters beyond chance; given affinities cannot be tested."""
        affinity = self._affinity_name()
        if callable(affinity) or affinity == "precomputed":
            return StructureTest(np.nan, np.nan, np.empty(0))

        def describe(scaled: Views) -> Rows:
            settings = replace(self._settings(scaled.n_samples, WIDTH), scale=None, false_alarms=None)
            return prepare(scaled, settings).rows

        return look_for_structure(views, describe, scale=self.scale, verbose=self.verbose)

    def _rows(self, views: Views, n_clusters: int) -> Rows:
        """Return the samples that take part, with graphs that are as wide as is right for a number of clusters."""
        return prepare(views, self._settings(views.n_samples, n_clusters)).rows

    def _settings(self, n_samples: int, n_clusters: int) -> Settings:
        """Return the options of the method for a number of states."""
        affinity = self._affinity_name()
        named = isinstance(affinity, str)
        automatic = isinstance(self.n_neighbors, str)
        n_neighbors = default_n_neighbors(n_samples, n_clusters) if automatic else int(self.n_neighbors)
        return Settings(
            n_clusters=n_clusters,
            n_neighbors=min(n_neighbors, n_samples - 1),
            affinity=affinity if named else self._affinity_of,
            scale=self.scale,
            joint=bool(self.joint_view) and named and affinity == "local",
            false_alarms=self._false_alarms(),
        )

    def _affinity_of(self, view: Any, name: str, n_neighbors: int) -> FloatArray:
        return compute_affinity(view, self._affinity_name(), name=name, n_neighbors=n_neighbors)

    def _false_alarms(self) -> float | None:
        if self.screen is False:
            return None
        if isinstance(self.screen, str) or self.screen is True:
            check_choice(self.screen, "screen", ("auto", False))
            return FALSE_ALARMS
        rate = check_number(self.screen, "screen", strict=True)
        if rate >= 0.5:
            raise ValueError(f"screen={self.screen!r} is a rate of false alarms and must be below 0.5.")
        return rate

    def _check_options(self) -> tuple[ADMM | ALM | None, Any]:
        """Check all options that do not depend on the data; return the solver, None for rows, and the precision."""
        solver = self._make_solver()
        check_integer(self.max_iter, "max_iter", least=1)
        dtype = self._dtype(solver)
        check_choice(self.embedding, "embedding", ("diffusion", *EMBEDDINGS))
        check_choice(self.outliers, "outliers", ("assign", "label"))
        check_choice(self.joint_view, "joint_view", (True, False))
        check_choice(self.scale, "scale", SCALES)
        self._affinity_name()
        self._false_alarms()
        for name in ("beta", "lam"):
            self._weight(name, 1.0)
        return solver, dtype

    def _make_solver(self) -> ADMM | ALM | None:
        if isinstance(self.solver, ADMM | ALM):
            return self.solver
        check_choice(self.solver, "solver", SOLVERS)
        tol = check_number(self.tol, "tol", strict=True)
        if self.solver == "auto" and isinstance(self.beta, str) and isinstance(self.lam, str):
            return None
        if self.solver in ("auto", "admm"):
            return ADMM(tol=tol)
        return ALM(tol=TOL_SHARE * tol, stop="residual" if self.solver == "alm" else "objective")

    def _dtype(self, solver: ADMM | ALM | None) -> type[np.floating[Any]]:
        """Return the precision of the chains."""
        if self.dtype is None:
            tol = self.tol if solver is None else solver.tol
            return np.float64 if isinstance(solver, ALM) or tol < _SINGLE_TOL else np.float32
        try:
            name = np.dtype(self.dtype).name
        except TypeError:
            name = str(self.dtype)
        check_choice(name, "dtype", ("float32", "float64"))
        if name == "float32" and isinstance(solver, ALM):
            raise ValueError(f"dtype='float32' cannot be used with solver={self.solver!r}.")
        return np.float32 if name == "float32" else np.float64

    def _weight(self, name: str, auto: float) -> float:
        value = getattr(self, name)
        if isinstance(value, str):
            check_choice(value, name, ("auto",))
            return auto
        return check_weight(value, name)


def _row_attributes(usual: FloatArray, shares: FloatArray) -> dict[str, Any]:
    """Return attributes that tell about limits and weights of the row problem."""
    finite = usual[np.isfinite(usual)]
    total = float(shares.sum())
    weights = shares / total if total > 0 else np.full(len(shares), 1.0 / len(shares))
    return {"beta_": float(finite.mean()) if len(finite) else 0.0, "lam_": 0.0, "view_weights_": weights}


def _caches(reference: Reference) -> dict[str, Any]:
    """Return what is computed when asked for, and what it is computed from."""
    return {"_alone": reference.alone, "_found_": {}}


def _centers(embedding: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    members = np.eye(n_clusters)[:, labels]
    return np.asarray(members @ embedding / np.maximum(members.sum(axis=1, keepdims=True), 1.0))


def _with_lost(consensus: FloatArray, votes: FloatArray, prepared: Prepared) -> FloatArray:
    """Return the consensus of all samples; nobody leads to the lost ones."""
    if not len(prepared.lost):
        return consensus
    n_samples = len(prepared.kept) + len(prepared.lost)
    full = np.zeros((n_samples, n_samples))
    full[np.ix_(prepared.kept, prepared.kept)] = consensus
    full[np.ix_(prepared.lost, prepared.kept)] = votes
    return full


def _warn_about(gap: float, tol: float, max_iter: int) -> None:
    if gap > tol:
        warnings.warn(
            f"EMVC reached max_iter={max_iter} with a duality gap of {gap:.1e}. Raise max_iter, or tol if that "
            "is close enough.",
            ConvergenceWarning,
            stacklevel=5,
        )
