r"""Landmarks: the method with few states for many rows.

The landmarks are samples drawn by row number. `emvc.method.prepare` measures them as it would measure all samples; then
every row is described by them, block by block, and the consensus is N x m. Its embedding consists of the leading left
singular vectors of :math:`P D^{-1/2}`, D the column sums, which need the m x m Gram matrix alone: what grows with the
number of samples stays in the blocks. A `Source` says where these are: `LocalSource` cuts checked views into blocks in
this process, `emvc.distributed` has one for Dask arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from emvc._array import FloatArray, IntArray
from emvc._linalg import largest_eigenpairs
from emvc._validation import Views, check_integer
from emvc.method import blocks as tasks
from emvc.method.blocks import Blocks, Landmarks, LocalBlocks, Task
from emvc.method.prepare import Prepared, prepare
from emvc.method.reference import Settings
from emvc.spectral import Embedding, diffusion_weights, has_unit_rows, kmeans_centers, n_vectors

_DEFAULT = (200, 20, 1000)  # landmarks: least, per cluster, most
_KMEANS_ROWS = 20_000
_BLOCK_BYTES = 2**26
_DAMPING = 1e-6  # of the mean mass: landmarks that nobody leads to own no eigenvector


class Source(Protocol):
    """Views cut into blocks of rows, wherever they are."""

    n_samples: int
    names: tuple[str, ...]
    n_features: tuple[int, ...]
    feature_names: tuple[Any, ...]

    def take(self, rows: IntArray) -> Views:
        """Return some rows, sorted, of all views."""
        ...

    def describe(self, known: Landmarks) -> Blocks:
        """Return the blocks with their consensus."""
        ...

    def collect(self, blocks: Blocks, task: Task, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return what a task finds in the blocks, joined along the samples."""
        ...


class LocalSource:
    """Checked views in the memory of this process."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self.n_samples, self.names, self.n_features = views.n_samples, views.names, views.n_features
        self.feature_names = views.feature_names

    def take(self, rows: IntArray) -> Views:
        """Return some rows of all views."""
        return self._views.take(rows)

    def describe(self, known: Landmarks) -> Blocks:
        """Return the blocks with their consensus."""
        size = rows_per_block(len(known.numbers))
        starts = range(0, self.n_samples, size)
        parts = (np.arange(first, min(first + size, self.n_samples)) for first in starts)
        return LocalBlocks(tasks.make_block(self.take(part), int(part[0]), known) for part in parts)

    def collect(self, blocks: Blocks, task: Task, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return what a task finds in the blocks, joined along the samples."""
        del shape, dtype
        return np.concatenate(blocks.apply(task, None))


def rows_per_block(n_landmarks: int) -> int:
    """Return the number of rows of a block of moderate size."""
    return max(1024, _BLOCK_BYTES // (8 * n_landmarks))


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


def draw(n_samples: int, number: int) -> IntArray:
    """Return sorted row numbers, which depend on the two numbers alone."""
    return np.sort(np.random.default_rng(0).choice(n_samples, number, replace=False, shuffle=False))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit with landmarks: what the estimator makes its attributes of; ``present`` and ``shown`` as in a block."""

    attributes: dict[str, Any]
    prepared: Prepared
    views: Views
    image: FloatArray
    centers: FloatArray
    present: tuple[IntArray, ...]
    shown: IntArray


def fit(
    source: Source,
    settings: Settings,
    n_landmarks: int,
    rng: np.random.Generator,
    *,
    dtype: type,
    n_init: int,
    embedding: Embedding,
    label_outliers: bool,
) -> Fitted:
    """Fit with landmarks."""
    numbers = draw(source.n_samples, n_landmarks)
    views = source.take(numbers)
    prepared = prepare(views, settings, dtype)
    landmarks = numbers[prepared.kept]
    blocks = source.describe(Landmarks(prepared.reference, prepared.screening.take(prepared.kept), landmarks))
    moments = blocks.apply(tasks.moments_task, None)
    n_kept, n_samples = (sum(part[i] for part in moments) for i in (3, 4))
    if n_kept <= settings.n_clusters:
        raise ValueError(f"Only {n_kept} of {n_samples} samples can be believed in any view; use screen=False.")
    mass, totals = sum(part[1] for part in moments), sum(part[2] for part in moments)
    number = min(n_vectors(settings.n_clusters, embedding), len(landmarks))
    image, values = embedding_map(sum(part[0] for part in moments), mass, number)
    if embedding == "diffusion":
        image *= diffusion_weights(np.sqrt(np.maximum(values, 0.0)), settings.n_clusters)
    judges = np.arange(n_samples) if n_samples <= _KMEANS_ROWS else draw(n_samples, _KMEANS_ROWS)
    points = np.concatenate(blocks.apply(tasks.embed_task, (image, has_unit_rows(embedding), judges)))
    centers = kmeans_centers(points, settings.n_clusters, n_init=n_init, rng=rng)
    firsts = blocks.apply(tasks.label_task, (centers, label_outliers))
    order = np.argsort(np.argsort(np.min(np.stack(firsts), axis=0), kind="stable"), kind="stable")
    blocks.apply(tasks.renumber_task, order)
    centers = centers[np.argsort(order)]
    by_view = (n_samples, len(source.names))
    attributes = {
        "consensus_": source.collect(blocks, tasks.consensus_of, (n_samples, len(landmarks)), np.float32),
        "labels_": source.collect(blocks, tasks.labels_of, (n_samples,), np.intp),
        "embedding_": source.collect(blocks, tasks.embedding_of, (n_samples, image.shape[1]), np.float64),
        "sample_errors_": source.collect(blocks, tasks.errors_of, by_view, np.float64),
        "outliers_": source.collect(blocks, tasks.outliers_of, by_view, np.bool_),
        "isolation_": source.collect(blocks, tasks.isolation_of, by_view, np.float64),
        "disagreement_": source.collect(blocks, tasks.disagreement_of, by_view, np.float64),
        "eigenvalues_": values,
        "landmarks_": landmarks,
        "objective_": float(totals[0]),
        "bound": float(totals[1]),
        "shares": totals[2:] / n_kept,
    }
    counts = blocks.apply(tasks.count_task, None)
    present = tuple(sum(parts) for parts in zip(*(of for of, _ in counts), strict=True))
    return Fitted(attributes, prepared, views, image, centers, present, sum(shown for _, shown in counts))


def embedding_map(gram: FloatArray, mass: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    r"""Return B such that ``P @ B`` are the leading left singular vectors of :math:`P D^{-1/2}`, and squared values.

    Parameters
    ----------
    gram : ndarray of shape (n_landmarks, n_landmarks)
        P'P.
    mass : ndarray of shape (n_landmarks,)
        Column sums of P.
    n_components : int
        Number of vectors.
    """
    root = 1.0 / np.sqrt(mass + _DAMPING * mass.mean())
    n_components = min(n_components, len(gram))
    values, vectors = largest_eigenpairs(root[:, None] * gram * root, number=n_components)
    values, vectors = values[::-1], vectors[:, ::-1]
    image = root[:, None] * vectors / np.sqrt(np.maximum(values, 1e-12 * values[0]))
    # Signs are arbitrary: make the heaviest entries positive, which does not depend on the blocks.
    largest = np.argmax(np.abs(image) * np.sqrt(mass)[:, None], axis=0)
    signs = np.sign(image[largest, np.arange(n_components)])
    return image * np.where(signs == 0, 1.0, signs), values
