r"""From transitions to an embedding to labels: spectral clustering through Markov chains.

For a chain P with stationary distribution :math:`\pi` (the *left* eigenvector, :math:`\pi'P = \pi'`) the operator

.. math:: S = \tfrac12\bigl(\Pi^{1/2} P\, \Pi^{-1/2} + \Pi^{-1/2} P' \Pi^{1/2}\bigr)

is symmetric, and its largest eigenpairs are those of the generalised problem :math:`Lu = \lambda \Pi u` of the paper
with :math:`1 - \lambda`. Only the wanted eigenpairs are computed.

A stationary distribution exists uniquely only for an ergodic chain. Isolated samples and disconnected graphs break
that, so the walk jumps to a uniformly random sample with a small probability (`TELEPORT`), as in PageRank. The jump
enters S as well, which keeps the largest eigenvalue at one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.linalg import blas
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, gmres
from sklearn.cluster import KMeans

from emvc import kernels
from emvc._array import FloatArray, IntArray
from emvc._linalg import largest_eigenpairs
from emvc._threads import threads_for_openmp

TELEPORT = 1e-3
_DENSE_LIMIT = 200  # below this size a full eigendecomposition is instant and Lanczos gains nothing
_RESTARTS = 60  # of Lanczos; several times as many as usual
_LOOSE = 1e-8  # accuracy that is asked for otherwise
_MANY_ENTRIES = 1_000_000  # of an embedding from which several threads pay in k-means
_NEGLIGIBLE = 1e-3  # length of a column, relative to the longest, that k-means need not see
_LOG_TIMES, _LOG_ACCURACY = (-8.0, 8.0), 1e-9  # between which the time of diffusion is sought, to base 2
_THIN = 0.15  # share of entries up to which products with a sparse copy are faster

Embedding = Literal["diffusion", "unit-rows", "plain", "weighted"]
EMBEDDINGS: tuple[Embedding, ...] = ("unit-rows", "plain", "weighted")
"""Embeddings by as many eigenvectors as there are clusters."""

COMPONENTS = 20
"""Least number of eigenvectors of the diffusion embedding; otherwise twice as many as there are clusters."""

SPREAD = 0.5
"""What the squared weights of the eigenvectors behind the first add up to, per cluster behind the first."""


def stationary_distribution(transitions: FloatArray, *, teleport: float = TELEPORT) -> FloatArray:
    r"""Return the stationary distribution of the chain with teleportation.

    Solves :math:`(I - (1-t)P')\pi = \frac tN \mathbf 1`, whose solution is positive and unique.

    Examples
    --------
    >>> import numpy as np
    >>> stationary_distribution(np.array([[0.5, 0.5], [1.0, 0.0]]), teleport=1e-9).round(6)
    array([0.666667, 0.333333])
    """
    return _stationary(transitions, thin_out(transitions), teleport)


def _stationary(transitions: FloatArray, thin: Any, teleport: float) -> FloatArray:
    n = len(transitions)
    start = np.full(n, 1.0 / n)
    system = LinearOperator((n, n), matvec=lambda v: v - (1.0 - teleport) * (v @ thin), dtype=np.float64)
    pi, failed = gmres(system, teleport * start, x0=start, rtol=1e-10, atol=0.0, restart=min(n, 60), maxiter=20)
    if failed:  # slowly mixing chains, such as a long cycle
        pi = scipy.linalg.solve(np.eye(n) - (1.0 - teleport) * transitions.T, teleport * start)
    pi = np.maximum(pi, teleport / n)  # every sample is reached by teleportation at least this often
    return np.asarray(pi / pi.sum())


def spectral_embedding(
    transitions: FloatArray,
    n_components: int,
    *,
    embedding: Embedding = "unit-rows",
    teleport: float = TELEPORT,
) -> tuple[FloatArray, FloatArray]:
    """Embed the samples by the leading eigenvectors of the chain.

    Parameters
    ----------
    transitions : ndarray of shape (n_samples, n_samples)
        A row-stochastic matrix.
    n_components : int
        Number of eigenvectors, usually the number of clusters.
    embedding : {"diffusion", "weighted", "plain", "unit-rows"}
        ``"diffusion"`` weighs more eigenvectors by `diffusion_weights` and scales rows to length one; ``"unit-rows"``
        scales every row of the eigenvectors to length one (Ng, Jordan, Weiss). ``"plain"`` returns the generalised
        eigenvectors of the paper's Algorithm 2, and so does ``"weighted"``, which differs in k-means only.
    teleport : float
        Probability of a jump to a random sample.

    Returns
    -------
    embedding : ndarray of shape (n_samples, n_components), or `n_vectors` for ``"diffusion"``
    eigenvalues : ndarray
        In decreasing order, the first one is 1.
    """
    vectors, values, root = _chain_eigenvectors(transitions, n_vectors(n_components, embedding), teleport)
    return _coordinates(vectors, values, root, embedding, n_components), values


def leading_eigenvalues(transitions: FloatArray, number: int, *, teleport: float = TELEPORT) -> FloatArray:
    """Return the largest eigenvalues of the symmetric operator S in decreasing order, as in `spectral_embedding`.

    All are computed: without vectors that is faster than Lanczos for more than a few.

    Examples
    --------
    >>> import numpy as np
    >>> leading_eigenvalues(np.array([[0.9, 0.1], [0.1, 0.9]]), 2, teleport=1e-9).round(6)
    array([1. , 0.8])
    """
    root = np.sqrt(stationary_distribution(transitions, teleport=teleport))
    operator = kernels.neighbors.symmetric_chain(np.asarray(transitions, dtype=np.float64), root, teleport)
    return np.asarray(np.linalg.eigvalsh(operator)[::-1][:number])


def n_vectors(n_clusters: int, embedding: Embedding) -> int:
    """Return how many eigenvectors an embedding consists of."""
    return max(2 * n_clusters, COMPONENTS) if embedding == "diffusion" else n_clusters


def has_unit_rows(embedding: Embedding) -> bool:
    """Return whether rows of an embedding are scaled to length one."""
    return embedding in ("diffusion", "unit-rows")


def diffusion_weights(values: FloatArray, n_clusters: int) -> FloatArray:
    r"""Return :math:`\lambda_i^t`, the weights of eigenvectors after t steps of the chain.

    Cutting off behind as many eigenvectors as there are clusters would trust all of them alike and the next one not at
    all. Instead the walk goes on for as long as :math:`\sum_{i>1} \lambda_i^{2t}` takes to fall to `SPREAD` per cluster
    behind the first.

    Examples
    --------
    >>> import numpy as np
    >>> diffusion_weights(np.array([1.0, 0.9, 0.8, 0.1, 0.0]), 3).round(2)
    array([1.  , 0.79, 0.61, 0.01, 0.  ])
    """
    values = np.clip(values, 0.0, 1.0)
    low, high = _LOG_TIMES
    while high - low > _LOG_ACCURACY:
        middle = 0.5 * (low + high)
        if np.sum(values[1:] ** (2.0 * 2.0**middle)) > SPREAD * (n_clusters - 1):
            low = middle
        else:
            high = middle
    return np.asarray(values ** (2.0**high))


def cluster_chain(
    transitions: FloatArray,
    n_clusters: int,
    *,
    embedding: Embedding = "unit-rows",
    n_init: int = 20,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Embed the samples of a chain and run k-means; return labels, embedding and eigenvalues.

    With ``embedding="weighted"`` every sample counts in k-means by its stationary probability. That is the relaxation
    of the normalised cut itself, and samples that the chain hardly visits cannot claim a cluster.
    """
    vectors, values, root = _chain_eigenvectors(transitions, n_vectors(n_clusters, embedding), TELEPORT)
    coordinates = _coordinates(vectors, values, root, embedding, n_clusters)
    weights = len(root) * root**2 if embedding == "weighted" else None
    lengths = np.linalg.norm(coordinates, axis=0)
    seen = coordinates[:, lengths > _NEGLIGIBLE * lengths.max()]
    return cluster_embedding(seen, n_clusters, n_init=n_init, rng=rng, weights=weights), coordinates, values


def _coordinates(
    vectors: FloatArray, values: FloatArray, root: FloatArray, embedding: Embedding, n_clusters: int
) -> FloatArray:
    if embedding == "diffusion":
        return scale_rows(vectors * diffusion_weights(values, n_clusters))
    return scale_rows(vectors) if embedding == "unit-rows" else vectors / (root[:, None] * np.sqrt(len(root)))


def _chain_eigenvectors(
    transitions: FloatArray, n_components: int, teleport: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return eigenvectors and eigenvalues of S, and the square root of the stationary distribution."""
    thin = thin_out(transitions)
    root = np.sqrt(_stationary(transitions, thin, teleport))
    n = len(root)
    n_components = min(n_components, n)
    jump = teleport / n
    if isinstance(thin, np.ndarray):
        # One product with half of a symmetric matrix instead of two with all of the chain.
        operator = kernels.neighbors.symmetric_chain(np.asarray(thin, dtype=np.float64), root, teleport)
        vectors, values = _leading(lambda v: blas.dsymv(1.0, operator.T, np.ravel(v)), n, n_components, start=root)
        return vectors, values, root

    def apply(v: FloatArray) -> FloatArray:
        v = np.asarray(v).ravel()
        outward = root * (thin @ (v / root))
        inward = ((v * root) @ thin) / root
        back = root * (v / root).sum() + (root @ v) / root
        return np.asarray(0.5 * (1.0 - teleport) * (outward + inward) + 0.5 * jump * back)

    vectors, values = _leading(apply, n, n_components, start=root)
    return vectors, values, root


def thin_out(matrix: FloatArray) -> Any:
    """Return a sparse copy of a large matrix if few of its entries are not zero, else the matrix itself."""
    if len(matrix) <= _DENSE_LIMIT or np.count_nonzero(matrix) > _THIN * matrix.size:
        return matrix
    starts, columns, values = kernels.neighbors.compress(matrix)
    return scipy.sparse.csr_array((values, columns, starts), shape=matrix.shape)


def leading_eigenvectors(
    matrix: Any, n_components: int, *, pull: FloatArray | None = None, weight: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    r"""Return the eigenvectors of :math:`S + w WW'` with the largest eigenvalues, and these eigenvalues.

    Parameters
    ----------
    matrix : ndarray or sparse array of shape (n, n), or None
        S, symmetric; None stands for zero.
    n_components : int
        Number of eigenvectors.
    pull : ndarray of shape (n, r), optional
        W, columns whose span the result is drawn to.
    weight : float
        w.
    """
    if matrix is None:
        if pull is None:
            raise ValueError("Either a matrix or columns to be drawn to are needed.")
        left, values, _ = scipy.linalg.svd(pull, full_matrices=False, check_finite=False)
        return _fix_signs(left[:, :n_components]), weight * values[:n_components] ** 2

    def apply(v: FloatArray) -> FloatArray:
        v = np.asarray(v).ravel()
        image = np.asarray(matrix @ v.astype(matrix.dtype, copy=False), dtype=np.float64)
        return np.asarray(image if pull is None else image + weight * (pull @ (v @ pull)))

    n = matrix.shape[0]
    return _leading(apply, n, n_components, start=np.ones(n))


def _leading(
    apply: Callable[[FloatArray], FloatArray], n: int, n_components: int, *, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the leading eigenvectors of a symmetric operator with fixed signs, and their eigenvalues, decreasing.

    Lanczos is asked for full accuracy, because it finds copies of a multiple eigenvalue, such as those of samples that
    fall apart into components, by what rounding does to a converged one. That never comes to an end where eigenvalues
    differ by rounding alone, as the zeros of a chain with fewer clusters than asked for; those need no accuracy.
    """
    if n <= _DENSE_LIMIT or n_components >= n - 1:
        values, vectors = _leading_dense(apply, n, n_components)
    else:
        try:
            values, vectors = _lanczos(apply, n, n_components, start, maxiter=_RESTARTS)
        except ArpackNoConvergence:
            values, vectors = _lanczos(apply, n, n_components, start, tol=_LOOSE)
    order = np.argsort(-values)
    return _fix_signs(vectors[:, order]), values[order]


def _leading_dense(
    apply: Callable[[FloatArray], FloatArray], n: int, n_components: int
) -> tuple[FloatArray, FloatArray]:
    symmetric = np.column_stack([apply(column) for column in np.eye(n)])
    return largest_eigenpairs((symmetric + symmetric.T) / 2.0, number=n_components)


def _lanczos(
    apply: Callable[[FloatArray], FloatArray], n: int, n_components: int, start: FloatArray, **options: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues and their eigenvectors; shifted by one, because accuracy is relative."""
    values, vectors = eigsh(
        LinearOperator((n, n), matvec=lambda v: apply(v) + np.ravel(v), dtype=np.float64),
        n_components,
        which="LA",
        v0=start * (1.0 + 0.5 * np.cos(np.arange(n))),  # neither random nor orthogonal to the leading eigenvectors
        **options,
        **_restart_options(),
    )
    return values - 1.0, vectors


def _restart_options() -> dict[str, Any]:
    """Seed the restarts of Lanczos on matrices of low rank, where SciPy draws them at random."""
    return {"rng": np.random.default_rng(0)} if "rng" in inspect.signature(eigsh).parameters else {}


def scale_rows(vectors: FloatArray) -> FloatArray:
    """Scale every row to length one; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def _fix_signs(vectors: FloatArray) -> FloatArray:
    """Make the largest entry of every column positive, since eigenvectors come with an arbitrary sign."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0, 1.0, signs))


def cluster_embedding(
    embedding: FloatArray,
    n_clusters: int,
    *,
    n_init: int = 20,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> IntArray:
    """Run k-means with ``n_init`` starts and number the clusters in the order in which they appear."""
    return number_by_appearance(_kmeans(embedding, n_clusters, n_init, rng, weights)[0])


def kmeans_centers(embedding: FloatArray, n_clusters: int, *, n_init: int = 20, rng: np.random.Generator) -> FloatArray:
    """Run k-means with ``n_init`` starts and return the centres of the clusters."""
    return _kmeans(embedding, n_clusters, n_init, rng, None)[1]


def _kmeans(
    embedding: FloatArray, n_clusters: int, n_init: int, rng: np.random.Generator, weights: FloatArray | None
) -> tuple[IntArray, FloatArray]:
    """Return labels and centres; samples are sorted by where they lie, so that their order changes no start."""
    seed = int(rng.integers(2**31 - 1))
    start: Any = "k-means++"
    order = np.argsort(embedding @ np.cos(np.arange(embedding.shape[1])), kind="stable")
    points, weights = embedding[order], None if weights is None else weights[order]
    if isinstance(points, np.ndarray):
        starts = iter(kernels.seeding.seed(points, n_clusters, n_init, np.random.default_rng(seed), weights))

        def start(points: FloatArray, n_clusters: int, random_state: Any) -> FloatArray:
            del n_clusters, random_state
            return np.asarray(points[next(starts)])

    means = KMeans(n_clusters, init=start, n_init=n_init, random_state=seed)
    with threads_for_openmp(points.size, least=_MANY_ENTRIES):
        means.fit(points, sample_weight=weights)
    labels = np.empty(len(order), dtype=means.labels_.dtype)
    labels[order] = means.labels_
    return labels, np.asarray(means.cluster_centers_)


def number_by_appearance(labels: IntArray) -> IntArray:
    """Renumber labels so that the first sample is in cluster 0, the next new cluster is 1, and so on."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
