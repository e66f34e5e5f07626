"""Quality and robustness of the defaults on real data, against plain averaging and the baselines.

Prints Markdown tables: clean data, destroyed samples, mismatched samples, noise, a view of noise and missing samples.
Every figure is a mean over seeds; no label is used but for scoring.

    python benchmarks/robustness.py [--parts clean,samples,...] [--datasets webkb,...] [--seeds 5]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import numpy as np
from peers import run_peers
from sklearn.metrics import roc_auc_score

from emvc import EMVC, FeatureConcatenation, KernelAddition, datasets
from emvc.experiments.board.ladder import Mean
from emvc.metrics import clustering_scores
from emvc.spectral import cluster_chain

CLEAN = {
    "webkb": (0.972, 0.776),
    "bbcsport": (0.949, 0.854),
    "3sources": (0.675, 0.666),
    "msrc_v1": (0.767, 0.734),
    "100leaves": (0.964, 0.987),
    "handwritten": (0.963, 0.919),
    "citeseer": (0.560, 0.300),
    "scene15": (0.442, 0.428),
}
"""Best accuracy and NMI of five published tools on each set."""

DAMAGED = ("webkb", "bbcsport", "handwritten", "msrc_v1")
PEERS = os.environ.get("EMVC_PEERS", "")
"""Python of an environment with the other packages; see peers.py."""
MISMATCHED = ("bbcsport", "3sources", "100leaves", "handwritten")


def scores(data, labels):
    found = clustering_scores(data.labels, labels)
    return np.array([found["accuracy"], found["nmi"]])


def fit(views, data, seed, **options):
    return EMVC(data.n_clusters, random_state=seed, **options).fit(views)


def dense(views):
    return [np.array(view.toarray() if hasattr(view, "toarray") else view, dtype=float) for view in views]


def reseed(model, data, seeds):
    """Repeat k-means on the consensus of a fit: nothing else depends on the seed."""
    found = []
    for seed in seeds:
        labels = model.labels_ if seed == seeds[0] else None
        if labels is None:
            rng = np.random.default_rng(seed)
            labels = cluster_chain(model.consensus_, data.n_clusters, embedding=model.embedding, rng=rng)[0]
        found.append(scores(data, labels))
    return np.mean(found, axis=0)


def show(*cells):
    print(
        "| " + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True
    )


def head(title, *columns):
    print(f"\n### {title}\n")
    show(*columns)
    show(*["---"] * len(columns))


def clean(names, seeds):
    head(
        "Clean data", "data", "accuracy", "NMI", "target", "screening off", "mean of the graphs", "flagged", "gap", "s"
    )
    total = []
    for name in names or CLEAN:
        data = datasets.load(name)
        start = time.perf_counter()
        model = fit(data.views, data, seeds[0])
        seconds = time.perf_counter() - start
        mine = reseed(model, data, seeds)
        off = reseed(fit(data.views, data, seeds[0], screen=False), data, seeds) if len(data.labels) <= 1200 else None
        runs = [scores(data, Mean(data.n_clusters, random_state=s).fit_predict(data.views)) for s in seeds]
        mean = "{:.3f}/{:.3f}".format(*np.mean(runs, axis=0))
        total.append(mine[1])
        show(
            name, *map(float, mine), "{:.3f}/{:.3f}".format(*CLEAN.get(name, (np.nan, np.nan))),
            "-" if off is None else "{:.3f}/{:.3f}".format(*off), mean,
            float(model.outliers_.any(axis=1).mean()), f"{model.duality_gap_:.1e}", f"{seconds:.0f}",
        )  # fmt: skip
    print(f"\nmean NMI {np.mean(total):.3f}")


def samples(names, seeds):
    columns = ("data", "values", "where", "share", "accuracy", "ceiling", "ratio", "AUC", "condemned", "falsely")
    head("Destroyed samples", *columns)
    for name in names or DAMAGED:
        data = datasets.load(name)
        intact = reseed(fit(data.views, data, 0), data, seeds)[0]
        guess = np.bincount(data.labels).max() / len(data.labels)
        for values, shares in (("uniform", (0.02, 0.06, 0.10)), ("marginal", (0.06,))):
            for same in (True, False):
                for share in shares:
                    runs = []
                    for seed in seeds:
                        views, truth = datasets.corrupt_samples(
                            data.views, share, seed, same_samples=same, values=values
                        )
                        model = fit(views, data, seed)
                        auc = roc_auc_score(truth.ravel(), model.sample_errors_.ravel())
                        caught, falsely = model.outliers_[truth].mean(), model.outliers_[~truth].mean()
                        runs.append([scores(data, model.labels_)[0], auc, caught, falsely])
                    accuracy, auc, caught, falsely = np.mean(runs, axis=0)
                    ceiling = (1 - share) * intact + share * guess if same else intact
                    where = "all views" if same else "per view"
                    show(name, values, where, share, accuracy, ceiling, accuracy / ceiling, auc, caught, falsely)


def mismatch(names, seeds):
    head("Mismatched samples (10 % of one view)", "data", "view", "NMI", "clean", "ratio", "AUC", "right view named")
    for name in names or MISMATCHED:
        data = datasets.load(name)
        intact = reseed(fit(data.views, data, 0), data, seeds)[1]
        for hit in range(min(3, len(data.views))):
            runs = []
            for seed in seeds:
                views, truth = datasets.mismatch_samples(data.views, 0.1, seed, views_hit=hit)
                model = fit(views, data, seed)
                rows = truth[:, hit]
                auc = roc_auc_score(rows, model.sample_errors_[:, hit])
                runs.append([scores(data, model.labels_)[1], auc, np.mean(model.sample_errors_[rows].argmax(1) == hit)])
            nmi, auc, named = np.mean(runs, axis=0)
            show(name, hit, nmi, intact, nmi / intact, auc, named)


def noise(names, seeds):
    head("White noise, NMI (deviation)", "data", "SNR", "EMVC", "kernel addition", "joined features")
    for name in names or ("webkb", "bbcsport", "handwritten"):
        data = datasets.load(name)
        for snr in (0.01, 0.1, 1.0, 10.0, 100.0):
            runs = []
            for seed in seeds:
                views, _ = datasets.add_noise(dense(data.views), snr, seed)
                others = [m(data.n_clusters, random_state=seed) for m in (KernelAddition, FeatureConcatenation)]
                found = [fit(views, data, seed).labels_, *(model.fit_predict(views) for model in others)]
                runs.append([scores(data, labels)[1] for labels in found])
            cells = zip(np.mean(runs, axis=0), np.std(runs, axis=0), strict=True)
            show(name, snr, *(f"{mean:.3f} ({deviation:.3f})" for mean, deviation in cells))


def noise_view(names, seeds):
    head("One view replaced by noise", "data", "view", "NMI", "without the view", "ratio", "named")
    for name in names or DAMAGED:
        data = datasets.load(name)
        for hit in range(len(data.views)):
            runs = []
            rest = [view for k, view in enumerate(data.views) if k != hit]
            without = reseed(fit(rest, data, 0), data, seeds)[1]
            for seed in seeds:
                views = list(data.views)
                views[hit] = np.random.default_rng(seed).standard_normal(views[hit].shape)
                model = fit(views, data, seed)
                runs.append([scores(data, model.labels_)[1], model.view_errors_.argmax() == hit])
            nmi, named = np.mean(runs, axis=0)
            show(name, hit, nmi, without, nmi / without, named)


def missing(names, seeds):
    head("Samples missing from one random view each", "data", "share", "NMI", "complete", "ratio", "NEMO, same masks")
    for name in names or DAMAGED:
        data = datasets.load(name)
        intact = reseed(fit(data.views, data, 0), data, seeds)[1]
        for share in (0.1, 0.3, 0.5):
            runs, others = [], []
            for seed in seeds:
                rng, views = np.random.default_rng(seed), dense(data.views)
                for i in rng.choice(len(data.labels), int(share * len(data.labels)), replace=False):
                    views[rng.integers(len(views))][i] = np.nan
                runs.append(scores(data, fit(views, data, seed).labels_)[1])
                others.append(peer(views, data, "nemo")[1])
            show(name, share, float(np.mean(runs)), intact, float(np.mean(runs) / intact), float(np.mean(others)))


def peer(views, data, name):
    """Return accuracy and NMI of another package, NaN where there is none or it fails."""
    if not PEERS:
        return np.full(2, np.nan)
    found = run_peers(PEERS, views, data.n_clusters, [name])[name]
    if "error" in found:
        print(f"{name} on {data.name}: {found['error']}")
        return np.full(2, np.nan)
    return scores(data, np.asarray(found["labels"]))


def others(names, _seeds):
    """Other packages with their defaults on clean data."""
    head("Other packages, clean data, accuracy/NMI", "data", "NEMO", "SNF", "co-regularised", "joined features")
    for name in names or CLEAN:
        data = datasets.load(name)
        cells = [peer(dense(data.views), data, method) for method in ("nemo", "snf", "coreg", "joined")]
        show(name, *("{:.3f}/{:.3f}".format(*cell) for cell in cells))


def hard(_names, seeds):
    """The hard synthetic case: noise, and 30 % of the rows of each view replaced."""
    head("Hard synthetic case", "seed", "NMI")
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        labels = np.arange(300) % 5
        views = []
        for _ in range(3):
            view = (1.2 * rng.standard_normal((5, 20)))[labels] + 1.6 * rng.standard_normal((300, 20))
            bad = rng.random(300) < 0.3
            view[bad] = 3 * rng.standard_normal((bad.sum(), 20))
            views.append(view)
        found.append(clustering_scores(labels, EMVC(5, random_state=seed).fit_predict(views))["nmi"])
        show(seed, found[-1])
    print(f"\nmean {np.mean(found):.3f}")


PARTS = {
    "clean": clean,
    "samples": samples,
    "mismatch": mismatch,
    "noise": noise,
    "noise_view": noise_view,
    "missing": missing,
    "hard": hard,
    "others": others,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--datasets", default="")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in parts:
        PARTS[part]([name for name in options.datasets.split(",") if name], range(options.seeds))
