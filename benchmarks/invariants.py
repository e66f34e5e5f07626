"""What must not change the clusters: invariants on random problems.

    python benchmarks/invariants.py [--small 2000] [--medium 200] [--first 0] [--verbose]

Every problem is fitted seven times: as it is, again, with its samples in another order, with its views in another
order, in other units, from sparse matrices, and with another number of threads. Printed is how often the clusters are
the same (ARI 1), by kind of data, and the seeds of the exceptions. Blobs, noise, counts, binary data with many ties and
duplicates, missing samples and cells; 20 to 90 samples (small) or 200 to 600 (medium), one to four views.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict

import numpy as np
import scipy.sparse

from emvc import EMVC
from emvc.method.reliability import rand_index

KINDS = ("blobs", "overlapping blobs", "noise", "counts", "binary", "duplicates", "missing samples", "missing cells")


def problem(seed, *, medium=False):
    """Return views, number of clusters and kind of data."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n_samples = int(rng.integers(200, 601) if medium else rng.integers(20, 91))
    n_clusters, n_views = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    labels, views = rng.integers(n_clusters, size=n_samples), []
    for _ in range(n_views):
        n_features = int(rng.integers(2, 30))
        centers = rng.standard_normal((n_clusters, n_features))
        noise = rng.standard_normal((n_samples, n_features))
        if kind == "noise":
            views.append(noise)
        elif kind == "counts":
            views.append(rng.poisson(0.7 * np.exp(0.8 * centers[labels])).astype(float))
        elif kind == "binary":
            views.append((centers[labels] + noise > 1.0).astype(float))
        else:
            views.append((1.0 if kind == "overlapping blobs" else 3.0) * centers[labels] + noise)
    if kind == "duplicates":
        twins = rng.integers(n_samples, size=n_samples // 4)
        views = [np.vstack([view[: n_samples - len(twins)], view[twins]]) for view in views]
    if kind == "missing samples" and n_views > 1:
        views[0][rng.random(n_samples) < 0.3] = np.nan
    if kind == "missing cells":
        for view in views:
            view[:, 1:][rng.random((n_samples, view.shape[1] - 1)) < 0.3] = np.nan
    return views, n_clusters, kind


def fit(views, n_clusters, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EMVC(n_clusters, random_state=0, **options).fit(views)


def check(seed, *, medium=False):
    """Return the kind of a problem and which invariants hold."""
    views, n_clusters, kind = problem(seed, medium=medium)
    rng = np.random.default_rng(seed + 1)
    model = fit(views, n_clusters)
    labels, order, turn = model.labels_, rng.permutation(len(views[0])), rng.permutation(len(views))
    others = {
        "again": fit(views, n_clusters).labels_,
        "samples": fit([view[order] for view in views], n_clusters).labels_[np.argsort(order)],
        "views": fit([views[k] for k in turn], n_clusters).labels_,
        "units": fit([1000.0 * view for view in views], n_clusters).labels_,
        "sparse": fit([scipy.sparse.csr_matrix(view) for view in views], n_clusters).labels_,
        "threads": fit(views, n_clusters, n_jobs=2).labels_,
    }
    held = {name: rand_index(labels, found) == 1.0 for name, found in others.items()}
    held["range"] = bool(
        set(labels.tolist()) <= set(range(n_clusters))
        and model.duality_gap_ <= 1e-6
        and np.isfinite(model.consensus_).all()
        and np.allclose(model.consensus_.sum(axis=1), 1.0, atol=1e-4)
        and np.nanmin(model.sample_errors_) >= 0.0
        and np.nanmax(model.sample_errors_) <= 1.0
    )
    return kind, held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--medium", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    options = parser.parse_args()
    for title, number, medium in (("small", options.small, False), ("medium", options.medium, True)):
        counts, broken = defaultdict(int), defaultdict(list)
        for seed in range(options.first, options.first + number):
            kind, held = check(seed, medium=medium)
            counts[kind] += 1
            for name, holds in held.items():
                broken[name] += [] if holds else [(kind, seed)]
        print(f"{title}: {sum(counts.values())} problems")
        for name, exceptions in broken.items():
            share = 1.0 - len(exceptions) / sum(counts.values())
            print(f"  {name:8s} {share:7.2%}  " + ", ".join(f"{kind} {seed}" for kind, seed in exceptions[:12]))


if __name__ == "__main__":
    main()
