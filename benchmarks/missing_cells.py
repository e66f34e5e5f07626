"""Missing cells against complete data, and against filling them with the mean of their column.

    python benchmarks/missing_cells.py FOLDER... [--half choose | confirm] [--sets NAME ...] [--seeds N]

From every data set of at most 700 samples 5, 20 and 40 % of the cells of every view are taken away at random. Printed
are the NMI of the clusters with the classes (means over the seeds), with complete data, with missing cells, and with
the means of columns in their place; then the shares of what complete data reach, and the largest loss to means.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import scipy.sparse

from emvc import EMVC
from emvc.experiments.board.collection import find_sets
from emvc.experiments.board.conditions import impute_cells
from emvc.metrics import clustering_scores

SHARES = (0.05, 0.2, 0.4)
MOST_SAMPLES = 700


def quality(data, views, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without a value
        model = EMVC(data.n_clusters, random_state=seed).fit(views)
    return clustering_scores(data.labels, model.labels_)["nmi"]


def without_cells(views, share, rng):
    """Take cells away; samples that a view does not have stay so, and every sample keeps a cell."""
    result = []
    for full in views:
        view = np.array(full.toarray() if scipy.sparse.issparse(full) else full, dtype=np.float64)
        gone = rng.random(view.shape) < share
        gone[np.arange(len(view)), rng.integers(0, view.shape[1], len(view))] = False
        view[gone] = np.nan
        result.append(view)
    return result


def measure(entry, n_seeds):
    data, found = entry.read(), np.zeros((n_seeds, 1 + 2 * len(SHARES)))
    for seed in range(n_seeds):
        found[seed, 0] = quality(data, data.views, seed)
        for position, share in enumerate(SHARES):
            views = without_cells(data.views, share, np.random.default_rng(seed))
            found[seed, 1 + position] = quality(data, views, seed)
            found[seed, 1 + position + len(SHARES)] = quality(data, impute_cells(views), seed)
    return found.mean(axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--half", choices=("choose", "confirm"))
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    shares = [f"{share:.0%}" for share in SHARES]
    print(f"{'data set':28s} complete  " + "  ".join([*shares, *(f"mean {share}" for share in shares)]))
    rows = []
    for entry in find_sets(options.folders, most_samples=MOST_SAMPLES):
        if options.half not in (None, entry.half) or (options.sets and entry.name not in options.sets):
            continue
        rows.append(measure(entry, options.seeds))
        print(f"{entry.name:28s} " + "  ".join(f"{value:.3f}" for value in rows[-1]), flush=True)
    table = np.array(rows)
    complete, own, means = table[:, :1], table[:, 1 : 1 + len(SHARES)], table[:, 1 + len(SHARES) :]
    print("share of complete data       ", np.round(own.mean(axis=0) / complete.mean(), 3))
    print("the same, column means       ", np.round(means.mean(axis=0) / complete.mean(), 3))
    print("largest loss to column means ", np.round((means - own).max(axis=0), 3))


if __name__ == "__main__":
    main()
