"""A published rival for large data: multi-view subspace clustering with anchors (LMVSC, Kang et al., AAAI 2020).

Written from the description: anchors of a view are centres of k-means; every sample is written as a convex combination
of them with a ridge penalty, min ||x - A'z||^2 + alpha ||z||^2 over the simplex; the coefficients of all views are
joined, and the left singular vectors of the joined matrix are clustered by k-means.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

from emvc.kernels.fused import project_simplex
from emvc.spectral import cluster_embedding


def anchor_graph(view, anchors, alpha, n_steps=60):
    """Return the coefficients by accelerated projected gradients, all samples at once."""
    quadratic = anchors @ anchors.T + alpha * np.eye(len(anchors))
    linear = view @ anchors.T
    step = 1.0 / np.linalg.eigvalsh(quadratic)[-1]
    current = previous = np.full(linear.shape, 1.0 / len(anchors))
    momentum = 1.0
    for _ in range(n_steps):
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = current + (momentum - 1.0) / following * (current - previous)
        momentum, previous = following, current
        current = project_simplex(ahead - step * (ahead @ quadratic - linear))
    return current


def cluster_anchors(views, n_clusters, n_anchors=100, alpha=1.0, seed=0, n_init=20):
    """Return the labels of the anchor method; views are scaled already."""
    graphs = []
    for view in views:
        model = MiniBatchKMeans(n_anchors, n_init=3, batch_size=4096, random_state=seed).fit(view)
        graphs.append(anchor_graph(view, model.cluster_centers_, alpha))
    joined = np.hstack(graphs) / np.sqrt(len(views))
    gram = joined.T @ joined
    values, vectors = np.linalg.eigh(gram)
    leading = vectors[:, ::-1][:, :n_clusters] / np.sqrt(np.maximum(values[::-1][:n_clusters], 1e-12))
    return cluster_embedding(joined @ leading, n_clusters, n_init=n_init, rng=np.random.default_rng(seed))


def cluster_joined(views, n_clusters, seed=0):
    """Return the labels of MiniBatchKMeans on the joined features; views are scaled already."""
    joined = np.hstack(views)
    model = MiniBatchKMeans(n_clusters, n_init=20, batch_size=4096, random_state=seed).fit(joined)
    return KMeans(n_clusters, init=model.cluster_centers_, n_init=1, max_iter=1).fit(joined).labels_
