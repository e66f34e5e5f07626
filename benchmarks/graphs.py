"""Which graph to build by default: plain averaging of the graphs of all views, on every data set.

    python benchmarks/graphs.py [--datasets webkb,...] [--seeds 3]

One row per graph, one column per data set, NMI averaged over the seeds of k-means; then the mean over the data sets and
the mean of the differences from the best graph on each. The choice is made by the last two columns, not by any set.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from emvc import KernelAddition, datasets
from emvc.metrics import clustering_scores

DATA = ("webkb", "bbcsport", "3sources", "msrc_v1", "100leaves", "handwritten", "citeseer", "scene15")


def neighbors(n_samples, n_clusters, rule):
    """Return the number of neighbours by a rule, a number or an expression in N and k."""
    number = {"N/2k": n_samples / (2 * n_clusters), "sqrt(N)": n_samples**0.5}.get(rule, rule)
    return max(2, min(n_samples - 1, round(float(number))))


GRAPHS = {
    "local, max(10, N/4k) neighbours": {"affinity": "local"},
    "local, 10 neighbours": {"affinity": "local", "n_neighbors": 10},
    "local, 30 neighbours": {"affinity": "local", "n_neighbors": 30},
    "local, N/2k neighbours": {"affinity": "local", "n_neighbors": "N/2k"},
    "local, sqrt(N) neighbours": {"affinity": "local", "n_neighbors": "sqrt(N)"},
    "local, z-scores always": {"affinity": "local", "scale": "zscore"},
    "local, unit rows always": {"affinity": "local", "scale": "unit"},
    "local, raw features": {"affinity": "local", "scale": None},
    "self-tuning": {"affinity": "self-tuning"},
    "cosine": {"affinity": "cosine"},
    "rbf, median width": {"affinity": "rbf"},
    "rbf, raw features (paper)": {"affinity": "rbf", "scale": None},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = options.datasets.split(",")
    table = np.empty((len(GRAPHS), len(names)))
    for column, name in enumerate(names):
        data = datasets.load(name)
        for row, settings in enumerate(GRAPHS.values()):
            chosen = dict(settings)
            if "n_neighbors" in chosen:
                chosen["n_neighbors"] = neighbors(len(data.labels), data.n_clusters, chosen["n_neighbors"])
            found = [
                clustering_scores(
                    data.labels, KernelAddition(data.n_clusters, random_state=seed, **chosen).fit_predict(data.views)
                )["nmi"]
                for seed in range(options.seeds if row == 0 or len(data.labels) < 3000 else 1)
            ]
            table[row, column] = np.mean(found)
    print("| graph | " + " | ".join(names) + " | mean | below the best |")
    print("| --- " * (len(names) + 3) + "|")
    behind = (table.max(axis=0) - table).mean(axis=1)
    for name, values, loss in zip(GRAPHS, table, behind, strict=True):
        print(
            f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + f" | {values.mean():.3f} | {loss:.3f} |"
        )


if __name__ == "__main__":
    main()
