"""Other packages on one data file, in an environment of their own; prints one JSON object.

    python benchmarks/peers.py data.npz n_clusters [--once] method...

The file holds the views as v0, v1, ...; rows of NaN are samples that are missing from a view. Methods are ``nemo``
(imml), ``coreg`` (mvlearn), ``snf`` (snfpy and spectral clustering), ``snf-raw`` and ``snf-zscore`` (the same with the
fused network and the package's own number of clusters, for features as they are and for z-scores) and ``joined``
(k-means on standardised joined features). With ``--once`` a method runs only once, and its time means little. This file
must not import emvc: the packages need an older scikit-learn.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")


def nemo(views, n_clusters):
    from imml.cluster import NEMO

    return NEMO(n_clusters=n_clusters, random_state=0).fit_predict(views)


def coreg(views, n_clusters):
    from mvlearn.cluster import MultiviewCoRegSpectralClustering

    return MultiviewCoRegSpectralClustering(n_clusters=n_clusters, random_state=0).fit_predict(views)


def snf(views, n_clusters):
    import snf as package
    from sklearn.cluster import spectral_clustering

    fused = package.snf(package.make_affinity(views))
    return spectral_clustering(fused, n_clusters=n_clusters, random_state=0)


def snf_network(views, n_clusters, *, normalize):
    import snf as package
    from sklearn.cluster import spectral_clustering

    fused = package.snf(package.make_affinity(views, normalize=normalize))
    labels = spectral_clustering(fused, n_clusters=n_clusters, random_state=0)
    return {"labels": labels, "fused": fused, "n_clusters": package.get_n_clusters(fused)[0]}


def joined(views, n_clusters):
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler

    features = np.hstack([StandardScaler().fit_transform(view) for view in views])
    return KMeans(n_clusters, n_init=10, random_state=0).fit_predict(features)


SHORT = 2000
"""Samples up to which the better of two runs counts."""

METHODS = {
    "nemo": nemo,
    "coreg": coreg,
    "snf": snf,
    "snf-raw": partial(snf_network, normalize=False),
    "snf-zscore": partial(snf_network, normalize=True),
    "joined": joined,
}


def run_peers(python, views, n_clusters, names, *, timed=True):
    """Return what the packages make of the views, by name: this file, run by the Python of their environment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.npz"
        np.savez(path, **{f"v{k}": view for k, view in enumerate(views)})
        command = [python, __file__, str(path), str(n_clusters), *([] if timed else ["--once"]), *names]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(path, n_clusters, *names):
    timed = "--once" not in names
    with np.load(path) as stored:
        views = [stored[f"v{k}"] for k in range(len(stored.files))]
    small = [view[: min(len(view), 150)] for view in views]
    results = {}
    for name in (name for name in names if name != "--once"):
        with contextlib.suppress(Exception):  # too few samples for the method: then its first call is measured too
            if timed:
                METHODS[name](small, min(int(n_clusters), 3))  # imports and first calls are not measured
        seconds = float("inf")
        try:
            for _ in range(2 if timed and len(views[0]) <= SHORT else 1):
                start = time.perf_counter()
                found = METHODS[name]([view.copy() for view in views], int(n_clusters))
                seconds = min(seconds, time.perf_counter() - start)
            found = found if isinstance(found, dict) else {"labels": found}
            results[name] = {"seconds": seconds} | {key: np.asarray(value).tolist() for key, value in found.items()}
        except Exception as error:  # reported, not hidden: the reader sees which peer cannot do the job
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
