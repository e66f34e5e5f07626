"""Speed of the whole default fit, as ratios in one run.

Against ten lines of NumPy that do what NEMO does (local affinities, relative similarity, mean, spectral step), and,
on the data sets of a folder, against the mean of its own graphs (``EMVC(joint_view=False, screen=False)``).

    python benchmarks/default_fit.py [FOLDER]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances

from emvc import EMVC
from emvc.experiments.board.collection import find_sets
from emvc.experiments.board.conditions import impute_cells

SIZES = ((1000, 5), (1000, 20), (1000, 40), (3000, 5), (3000, 20), (3000, 40))


def ten_lines(views, n_clusters):
    n = len(views[0])
    k, total = max(n // (6 * 2), 10), np.zeros((n, n))
    for view in views:
        d = pairwise_distances(view)
        near = np.partition(d, k, axis=1)[:, : k + 1]
        scale = near.mean(axis=1)
        s = np.exp(-(d**2) / (0.25 * (scale[:, None] + scale + d) ** 2 + 1e-12))
        s[s < np.partition(s, n - k, axis=1)[:, n - k : n - k + 1]] = 0.0
        s /= s.sum(axis=1, keepdims=True)
        total += s + s.T
    root = 1 / np.sqrt(total.sum(axis=1))
    vectors = eigsh(root[:, None] * total * root, n_clusters, which="LA")[1]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return KMeans(n_clusters, n_init=20, random_state=0).fit_predict(vectors)


def blobs(n_samples, n_clusters, n_views=3, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_samples)
    return [
        2.0 * rng.standard_normal((n_clusters, 20))[labels] + rng.standard_normal((n_samples, 20))
        for _ in range(n_views)
    ]


def best_of(repeats, function):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main(folder=None):
    EMVC(3, random_state=0).fit(blobs(300, 3))  # compiles
    print("| samples | clusters | ten lines, s | EMVC, s | ratio |\n| --- | --- | --- | --- | --- |")
    for n_samples, n_clusters in SIZES:
        views = blobs(n_samples, n_clusters)
        plain = best_of(5, lambda: ten_lines(views, n_clusters))  # noqa: B023
        ours = best_of(5, lambda: EMVC(n_clusters, random_state=0).fit(views))  # noqa: B023
        print(f"| {n_samples} | {n_clusters} | {plain:.2f} | {ours:.2f} | {ours / plain:.1f} |", flush=True)
    if folder is None:
        return
    print("\n| data | samples | mean of its graphs, s | EMVC, s | ratio |\n| --- | --- | --- | --- | --- |")
    ratios = []
    for entry in find_sets([folder], most_samples=5500):
        data = entry.read()
        views = impute_cells(data.views)
        options = {"n_clusters": data.n_clusters, "random_state": 0}
        repeats = 3 if entry.n_samples < 2000 else 1
        plain = best_of(repeats, lambda: EMVC(**options, joint_view=False, screen=False).fit(views))  # noqa: B023
        ours = best_of(repeats, lambda: EMVC(**options).fit(views))  # noqa: B023
        ratios.append(ours / plain)
        print(f"| {entry.name} | {entry.n_samples} | {plain:.2f} | {ours:.2f} | {ratios[-1]:.1f} |", flush=True)
    print(f"\nmean ratio {np.mean(ratios):.1f}, median {np.median(ratios):.1f}, largest {np.max(ratios):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
