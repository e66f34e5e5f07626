"""Write small generated data sets in the format of the board, for a run that needs no real data.

python benchmarks/generated_sets.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import scipy.sparse


def blobs(rng, n_samples, n_clusters, n_features, spread):
    labels = rng.permutation(np.arange(n_samples) % n_clusters)
    views = [
        spread * rng.standard_normal((n_clusters, d))[labels] + rng.standard_normal((n_samples, d)) for d in n_features
    ]
    return labels, views


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name, spread, n_clusters in (("clear", 2.0, 3), ("vague", 0.8, 4), ("many", 1.5, 8)):
        labels, views = blobs(rng, 96, n_clusters, (8, 20, 5), spread)
        np.savez(folder / f"{name}.npz", y=labels, **{f"x{k}": view for k, view in enumerate(views)})
    labels, (dense, counts) = blobs(rng, 80, 4, (6, 40), 1.5)
    dense[:8] = np.nan  # missing from this view
    sparse = scipy.sparse.csr_array(np.floor(np.maximum(counts - 1.0, 0.0)))
    parts = {f"x1_{part}": getattr(sparse, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(folder / "holes.npz", x0=dense, y=labels, **parts)


if __name__ == "__main__":
    main(sys.argv[1])
