"""Fitting EMVC with landmarks: the pilot, the solve in blocks, and the tasks that turn a block into labels.

Everything that grows with the number of samples stays in the blocks. A `Source` says where they are: `LocalSource` cuts
checked views into blocks in this process, `emvc.distributed` has one for Dask arrays.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.cluster import KMeans

from emvc import block_tasks, landmarks
from emvc._array import FloatArray, IntArray
from emvc._validation import (
    Views,
    available_memory,
    check_choice,
    check_generator,
    check_integer,
    check_memory,
    check_n_clusters,
)
from emvc.cluster_count import choose_n_clusters
from emvc.estimators._robust import prepare
from emvc.estimators._solve import solve
from emvc.graphs import default_n_neighbors
from emvc.landmarks import Plan, take
from emvc.pilot import make_plan, pilot_rows
from emvc.rows import LocalRows, Rows, Task
from emvc.solvers import ADMM
from emvc.solvers.blocks import BlockADMM, BlockProblem

_JUDGES = 1000  # rows of the pilot that the exact method sees to weigh the views
_KMEANS_ROWS = 20_000
_DEFAULT = (200, 20, 1000)  # least, per cluster, most
_BLOCK_BYTES = 2**26


class Source(Protocol):
    """Views cut into blocks of rows, wherever they are."""

    n_samples: int
    names: tuple[str, ...]
    n_features: tuple[int, ...]

    def take(self, rows: IntArray) -> Views:
        """Return some rows, sorted, of all views."""
        ...

    def describe(self, plan: Plan, dtype: Any) -> Rows:
        """Return the blocks with their chains."""
        ...

    def collect(self, rows: Rows, task: Task, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return what a task finds in the blocks, joined along the samples."""
        ...


class LocalSource:
    """Checked views in the memory of this process."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self.n_samples, self.names, self.n_features = views.n_samples, views.names, views.n_features

    def take(self, rows: IntArray) -> Views:
        """Return some rows of all views."""
        return take(self._views, rows)

    def describe(self, plan: Plan, dtype: Any) -> Rows:
        """Return the blocks with their chains."""
        size = rows_per_block(plan.n_landmarks)
        starts = range(0, self.n_samples, size)
        parts = (np.arange(first, min(first + size, self.n_samples)) for first in starts)
        return LocalRows(block_tasks.make_block(self.take(part), int(part[0]), plan, dtype) for part in parts)

    def collect(self, rows: Rows, task: Task, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return what a task finds in the blocks, joined along the samples."""
        del shape, dtype
        return np.concatenate(rows.apply(task, None))


def rows_per_block(n_landmarks: int) -> int:
    """Return the number of rows of a block of moderate size."""
    return max(4096, _BLOCK_BYTES // (4 * n_landmarks))


def choose_n_landmarks(
    wanted: Any, n_samples: int, n_clusters: int, *, n_matrices: float, possible: bool
) -> int | None:
    """Return the number of landmarks, or None for the exact method.

    Parameters
    ----------
    wanted : int or None
        The option; None chooses by memory.
    n_samples, n_clusters : int
        Numbers of samples and clusters.
    n_matrices : float
        Matrices of double precision that the exact method needs.
    possible : bool
        Whether the other options allow landmarks.
    """
    if wanted is None:
        available = available_memory()
        if not possible or available is None or 8 * n_matrices * n_samples**2 <= available:
            return None
        number = default_n_landmarks(n_samples, n_clusters)
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
    number = check_n_landmarks(wanted, n_samples, n_clusters)
    return None if number == n_samples else number


def default_n_landmarks(n_samples: int, n_clusters: int) -> int:
    """Return 20 landmarks per cluster, but at least 200 and at most 1000, and fewer than samples."""
    least, per_cluster, most = _DEFAULT
    return min(max(least, min(per_cluster * n_clusters, most), n_clusters + 1), n_samples - 1)


def check_n_landmarks(wanted: Any, n_samples: int, n_clusters: int) -> int:
    """Check a given number of landmarks."""
    number = check_integer(wanted, "n_landmarks", least=n_clusters + 1)
    if number > n_samples:
        raise ValueError(f"n_landmarks={number} is larger than the number of samples, n_samples={n_samples}.")
    return number


def check_landmark_memory(n_chains: int, n_samples: int, n_landmarks: int, dtype: Any) -> None:
    """Compare the memory for the blocks with what is available."""
    n_matrices = (3 * n_chains + 4) * np.dtype(dtype).itemsize / 8
    advice = "Use fewer landmarks, or give the views as Dask arrays on a cluster."
    check_memory(n_matrices, (n_samples, n_landmarks), advice=advice)


@dataclass(frozen=True)
class Options:
    """Options of the estimator that a fit with landmarks needs, validated."""

    n_clusters: int | None
    n_landmarks: Any
    beta: float | None
    lam: float | None
    solver: ADMM
    n_neighbors: int | None
    scale: str | None
    joint: bool
    screening: bool
    label_outliers: bool
    unit_rows: bool
    n_init: int
    max_iter: int
    dtype: Any
    auto_weight: float
    verbose: int


def _judge(pilot: Views, options: Options, n_clusters: int) -> Any:
    """Run the exact preparation on part of the pilot, to weigh the views."""
    part = np.unique(np.linspace(0, pilot.n_samples - 1, min(_JUDGES, pilot.n_samples)).astype(np.intp))
    part = part[~pilot.missing[part].all(axis=1)]
    return prepare(
        take(pilot, part),
        n_clusters,
        affinity="local",
        scale=options.scale,
        n_neighbors=default_n_neighbors(len(part), n_clusters),
        screening=options.screening,
        joint=options.joint,
        weigh=options.joint,
    ).chains


def fit(source: Source, options: Options, rng: np.random.Generator) -> dict[str, Any]:
    """Return the fitted attributes."""
    evidence: dict[str, Any] = {}
    rows = pilot_rows(source.n_samples, options.n_landmarks or _DEFAULT[-1])
    pilot = source.take(rows)
    n_clusters = options.n_clusters
    if n_clusters is None:
        n_clusters, confidence, records = choose_n_clusters(lambda width: _judge(pilot, options, width), None, rng)
        evidence = {"n_clusters_confidence_": confidence, "n_clusters_evidence_": records}
    n_landmarks = options.n_landmarks
    if n_landmarks is None:
        n_landmarks = default_n_landmarks(source.n_samples, n_clusters)
    n_landmarks = min(check_n_landmarks(n_landmarks, source.n_samples, n_clusters), len(rows))
    chains = _judge(pilot, options, n_clusters)
    n_neighbors = options.n_neighbors or landmarks.default_n_neighbors(n_landmarks, n_clusters)
    plan = make_plan(
        pilot,
        rows,
        n_landmarks,
        weights=chains.weights,
        n_neighbors=min(n_neighbors, n_landmarks - 1),
        scale=options.scale,
        screening=options.screening,
        joint=options.joint and len(source.names) > 1,
    )
    blocks = source.describe(plan, options.dtype)
    counts = blocks.apply(block_tasks.count_block, None)
    n_kept = sum(count["n_kept"] for count in counts)
    if n_kept <= n_clusters:
        raise ValueError(f"Only {n_kept} of {source.n_samples} samples can be believed in any view; use screen=False.")
    auto = (2.0 if chains.n_effective < 2 else 1.0) * options.auto_weight / chains.n_shown
    beta = auto * math.sqrt(n_clusters / n_kept) if options.beta is None else options.beta
    lam = auto * math.sqrt(n_clusters / n_landmarks) if options.lam is None else options.lam
    states = np.ones((len(plan.weights), n_landmarks))
    assert plan.observed_states is not None
    states[: plan.n_views] = plan.observed_states
    problem = BlockProblem(blocks, (n_kept, n_landmarks), beta, lam, plan.weights, states)
    settings = {name: getattr(options.solver, name) for name in options.solver.__dataclass_fields__}
    solution = solve(
        BlockADMM(**settings), problem, name="EMVC", max_iter=options.max_iter, memory=None, verbose=options.verbose
    )
    values = _cluster(blocks, plan, options, n_clusters, rng)
    own_weights = plan.weights[: plan.n_views]
    blocks.apply(block_tasks.rate_block, own_weights)
    n_samples, n_views = source.n_samples, plan.n_views
    floats, flags = np.float64, np.bool_
    return solution.attributes() | evidence | {
        "consensus_": source.collect(blocks, block_tasks.consensus_of, (n_samples, n_landmarks), options.dtype),
        "labels_": source.collect(blocks, block_tasks.labels_of, (n_samples,), np.intp),
        "embedding_": source.collect(blocks, block_tasks.embedding_of, (n_samples, len(values)), floats),
        "sample_errors_": source.collect(blocks, block_tasks.errors_of, (n_samples, n_views), floats),
        "outliers_": source.collect(blocks, block_tasks.outliers_of, (n_samples, n_views), flags),
        "isolation_": source.collect(blocks, block_tasks.isolation_of, (n_samples, n_views), floats),
        "disagreement_": source.collect(blocks, block_tasks.contradiction_of, (n_samples, n_views), floats),
        "view_errors_": sum(c["errors"] for c in counts) / np.maximum(sum(c["n_present"] for c in counts), 1),
        "view_weights_": own_weights,
        "eigenvalues_": values,
        "landmarks_": plan.landmark_rows,
        "beta_": beta,
        "lam_": lam,
        "n_clusters_": n_clusters,
    }  # fmt: skip


def _cluster(blocks: Rows, plan: Plan, options: Options, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Embed and label the rows in the blocks; return the squared singular values."""
    moments = blocks.apply(block_tasks.moments_block, None)
    mass = sum(mass for _, mass in moments)
    image, values = landmarks.embedding_map(sum(gram for gram, _ in moments), mass, n_clusters)
    n_samples = sum(blocks.apply(block_tasks.length_block, None))
    judges = np.arange(n_samples)
    if n_samples > _KMEANS_ROWS:
        judges = np.sort(np.random.default_rng(0).choice(n_samples, _KMEANS_ROWS, replace=False, shuffle=False))
    wanted = np.union1d(judges, plan.landmark_rows)
    found = blocks.apply(block_tasks.embed_block, (image, options.unit_rows, wanted))
    rows = np.concatenate([part for part, _ in found])
    coordinates = np.concatenate([part for _, part in found])
    seed = int(rng.integers(2**31 - 1))
    model = KMeans(n_clusters, n_init=options.n_init, random_state=seed).fit(coordinates[np.isin(rows, judges)])
    centers = model.cluster_centers_
    of_landmarks = np.zeros((plan.n_landmarks, image.shape[1]))
    there = np.isin(plan.landmark_rows, rows)
    of_landmarks[there] = coordinates[np.searchsorted(rows, plan.landmark_rows[there])]
    members = np.eye(n_clusters)[block_tasks.nearest(of_landmarks, centers)] * mass[:, None]
    firsts = blocks.apply(block_tasks.label_block, (centers, of_landmarks, members, options.label_outliers))
    first = np.min(np.stack(firsts), axis=0)
    blocks.apply(block_tasks.renumber_block, np.argsort(np.argsort(first, kind="stable"), kind="stable"))
    return values


def fit_dask(model: Any, views: Any) -> Any:
    """Fit an `emvc.EMVC` to Dask arrays; a failed or interrupted fit leaves nothing on the workers."""
    from emvc.distributed import DaskSource, quiet

    model._check_options()
    check_integer(model.n_init, "n_init", least=1)
    rng = check_generator(model.random_state)
    source = DaskSource(views)
    if isinstance(model.n_clusters, str):
        check_choice(model.n_clusters, "n_clusters", ("auto",))
        n_clusters = None
    else:
        n_clusters = check_n_clusters(model.n_clusters, source.n_samples)
    if model.n_landmarks is not None:
        check_n_landmarks(model.n_landmarks, source.n_samples, n_clusters or 2)
    try:
        with quiet():
            fitted = fit(source, model._landmark_options(n_clusters, model.n_landmarks), rng)
    except BaseException:
        source.close()
        raise
    for name, value in fitted.items():
        setattr(model, name, value)
    model.view_names_ = list(source.names)
    model.n_features_in_ = sum(source.n_features)
    return model
