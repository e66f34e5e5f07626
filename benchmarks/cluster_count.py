"""How far ``n_clusters="auto"`` is from the number of classes, beside NEMO's and SNF's estimates.

    python benchmarks/cluster_count.py [FOLDER...]

On generated sets (2 to 12 equal clusters in one to three views, nearest centres 5 to 8 deviations apart) and, if
folders with data sets are named, on these, with at most 5,500 samples: mean |log2(found / true)| by halves of the
board.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.spatial.distance import pdist

from emvc import EMVC, NEMO, SNF
from emvc.experiments.board.collection import find_sets
from emvc.experiments.board.conditions import impute_cells

METHODS = {"EMVC": EMVC, "NEMO": NEMO, "SNF": SNF}


def found(method, views):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return int(method("auto", random_state=0).fit(views).n_clusters_)
    except ValueError:  # SNF needs every sample in every view
        return None


def generated(seed, n_samples=300, n_features=8):
    rng = np.random.default_rng(seed)
    n_clusters, n_views, apart = 2 + seed % 11, 1 + seed % 3, rng.uniform(5.0, 8.0)
    labels, views = rng.permutation(np.arange(n_samples) % n_clusters), []
    for _ in range(n_views):
        centers = rng.standard_normal((n_clusters, n_features))
        centers *= apart / pdist(centers).min()
        views.append(centers[labels] + rng.standard_normal((n_samples, n_features)))
    return views, n_clusters


def main(folders):
    right = dict.fromkeys(METHODS, 0)
    for seed in range(20):
        views, true = generated(seed)
        for name, method in METHODS.items():
            right[name] += found(method, views) == true
    print("generated sets, right of 20: " + ", ".join(f"{name} {number}" for name, number in right.items()))
    errors = {half: {name: [] for name in METHODS} for half in ("choose", "confirm")}
    print("\n| data | half | true | " + " | ".join(METHODS) + " |\n| --- | --- |" + " ---: |" * (1 + len(METHODS)))
    for entry in find_sets(folders, most_samples=5500):
        data = entry.read()
        numbers = [found(method, impute_cells(data.views)) for method in METHODS.values()]
        for name, number in zip(METHODS, numbers, strict=True):
            if number:
                errors[entry.half][name].append(abs(np.log2(number / data.n_clusters)))
        cells = " | ".join("" if number is None else str(number) for number in numbers)
        print(f"| {entry.name} | {entry.half} | {data.n_clusters} | {cells} |", flush=True)
    for half, of in errors.items():
        told = ", ".join(f"{name} {np.mean(part):.3f} ({len(part)} sets)" for name, part in of.items())
        print(f"{half}: {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
