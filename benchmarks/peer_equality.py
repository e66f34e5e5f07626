"""How closely `SNF` and `NEMO` follow the packages that are in use for them, snfpy and imml, on real data.

    python benchmarks/peer_equality.py --peers PYTHON DATA_DIR

``PYTHON`` belongs to an environment with imml, snfpy and scikit-learn < 1.8; `make peers` makes one. ``DATA_DIR`` holds
the .mat files of `emvc.datasets` and a folder ``board`` with .npz files. Prints two Markdown tables: the fused networks
and labels of SNF, and the labels of NEMO. Labels of SNF may differ where k-means ends in another local optimum,
and those of NEMO with dozens of clusters (the 68 of pie_face_10), where imml does not agree with itself after a change
of the views in the fourteenth digit.
"""

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse
from peers import run_peers
from sklearn.metrics import adjusted_rand_score

from emvc import NEMO, SNF, datasets

NETWORKS = ("msrc_v1", "bbcsport", "brca_tcga_348_pam50")
COMPLETE = ("3sources", "bbcsport", "msrc_v1", "brca_tcga_348_pam50", "scgem", "urban_land_cover")
DAMAGED = ("aml_tcga_fab", "kipan_test", "mb_kostic_infants_subject", "tara_oceans_depth")
INCOMPLETE = ("brca_tcga_mixomics",)
"""Sets that have missing samples of their own."""

MISSING = 0.3


def load(name, folder):
    """Return dense views in double precision, and the number of classes."""
    path = Path(folder) / "board" / f"{name}.npz"
    if not path.exists():
        data = datasets.load(name, data_home=folder)
        return [np.asarray(scipy.sparse.csr_array(view).toarray(), dtype=float) for view in data.views], data.n_clusters
    views = []
    with np.load(path) as stored:
        while (key := f"x{len(views)}") in stored or f"{key}_shape" in stored:
            if key in stored:
                views.append(stored[key].astype(float))
            else:
                parts = tuple(stored[f"{key}_{part}"] for part in ("data", "indices", "indptr"))
                views.append(scipy.sparse.csr_array(parts, shape=stored[f"{key}_shape"]).toarray().astype(float))
        return views, len(np.unique(stored["y"]))


def remove(views, seed=0):
    """Take a share of the samples out of one view each, drawn at random."""
    rng = np.random.default_rng(seed)
    n_samples = len(views[0])
    views = [view.copy() for view in views]
    for sample in rng.choice(n_samples, round(MISSING * n_samples), replace=False):
        views[rng.integers(len(views))][sample] = np.nan
    return views


def compare_networks(python, folder):
    print("| SNF | samples | features | largest difference | ARI | clusters by itself, snfpy |")
    print("|---|---|---|---|---|---|")
    for name in NETWORKS:
        views, n_clusters = load(name, folder)
        found = run_peers(python, views, n_clusters, ("snf-raw", "snf-zscore"), timed=False)
        for peer, scale in {"snf-raw": None, "snf-zscore": "zscore"}.items():
            theirs = found[peer]
            if "error" in theirs:
                print(f"| {name} | {len(views[0])} | {scale or 'as they are'} | {theirs['error']} | | |")
                continue
            ours = SNF(n_clusters, scale=scale, random_state=0).fit(views)
            difference = np.abs(ours.fused_ - np.array(theirs["fused"])).max()
            number = SNF("auto", scale=scale, random_state=0).fit(views).n_clusters_
            print(
                f"| {name} | {len(views[0])} | {scale or 'as they are'} | {difference:.1e} "
                f"| {adjusted_rand_score(theirs['labels'], ours.labels_):.3f} | {number}, {theirs['n_clusters']} |"
            )


def compare_labels(python, folder):
    print("\n| NEMO | samples | missing | ARI |")
    print("|---|---|---|---|")
    for name, damage in [*((name, False) for name in COMPLETE + INCOMPLETE), *((name, True) for name in DAMAGED)]:
        views, n_clusters = load(name, folder)
        views = remove(views) if damage else views
        theirs = run_peers(python, views, n_clusters, ("nemo",), timed=False)["nemo"]
        ours = NEMO(n_clusters, scale=None).fit_predict(views)
        n_missing = sum(int(np.isnan(view).all(axis=1).sum()) for view in views)
        score = f"{adjusted_rand_score(theirs['labels'], ours):.3f}" if "labels" in theirs else theirs["error"]
        print(f"| {name} | {len(views[0])} | {n_missing} | {score} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", required=True, help="Python of the environment with the other packages")
    parser.add_argument("data", help="folder with the data sets")
    arguments = parser.parse_args()
    compare_networks(arguments.peers, arguments.data)
    compare_labels(arguments.peers, arguments.data)


if __name__ == "__main__":
    main()
