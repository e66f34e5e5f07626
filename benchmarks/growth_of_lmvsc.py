"""How the time of LMVSC grows with the number of samples: the slope of log time over log N.

python benchmarks/growth_of_lmvsc.py [--samples 5000,10000,20000,40000,80000] [--features 20]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from machine import peak_memory

from emvc import LMVSC


def views_of(n_samples, n_features, n_clusters=10):
    """Return two views of overlapping clusters."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_clusters, n_samples)
    centres = [2.0 * rng.standard_normal((n_clusters, n_features)) for _ in range(2)]
    return [centre[labels] + rng.standard_normal((n_samples, n_features)) for centre in centres]


def exponent(samples, n_features, repeats=2):
    """Return the fitted exponent; print the shortest time for each number of samples."""
    LMVSC(10, random_state=0).fit(views_of(1000, n_features))  # compiles
    seconds = []
    for n_samples in samples:
        views = views_of(n_samples, n_features)
        taken = []
        for _ in range(repeats):
            start = time.perf_counter()
            model = LMVSC(10, random_state=0).fit(views)
            taken.append(time.perf_counter() - start)
        seconds.append(min(taken))
        print(f"| {n_samples} | {seconds[-1]:.2f} | {model.n_iter_} | {peak_memory() / 2**20:.0f} |", flush=True)
    return float(np.polyfit(np.log(samples), np.log(seconds), 1)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", default="5000,10000,20000,40000,80000")
    parser.add_argument("--features", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| samples | seconds | steps | peak MiB |\n| --- | --- | --- | --- |")
    print(f"\nexponent {exponent([int(n) for n in options.samples.split(',')], options.features):.2f}")


if __name__ == "__main__":
    main()
