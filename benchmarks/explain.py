"""Measure what `emvc.explain` promises: markers that are true, p-values that hold, annotations, time and memory.

python benchmarks/explain.py noise | discoveries | markers | annotations | speed
"""

import resource
import sys
import time
import warnings

import numpy as np

import emvc
from emvc import EMVC

RUNS = 200


def noise_views(rng, kind, n_views=3, n_samples=100, n_features=40):
    """Return views without clusters: columns of several laws, correlated inside a view or not."""
    views = []
    for _ in range(n_views):
        values = rng.standard_normal((n_samples, n_features))
        if kind == "heavy":
            values = rng.standard_t(2, values.shape)
        elif kind == "counts":
            values = rng.poisson(0.5, values.shape).astype(float)
        elif kind == "correlated":
            values = values + 1.5 * rng.standard_normal((n_samples, 2)) @ rng.standard_normal((2, n_features))
        elif kind == "binary":
            values = (rng.random(values.shape) < 0.1).astype(float)
        views.append(values)
    return views


def noise():
    """Share of runs on pure noise with a discovery at FDR .05: all features are null, so that share is the FDR."""
    for kind in ("normal", "heavy", "counts", "correlated", "binary"):
        found = {True: 0, False: 0}
        without = 0
        for run in range(RUNS):
            views = noise_views(np.random.default_rng([run, 7]), kind)
            model = EMVC(3, random_state=0).fit(views)
            for split in found:
                explained = emvc.explain(model, views, split=split)
                found[split] += bool((explained.marker_table.fdr <= 0.05).any())
            without += not explained.has_structure if np.isfinite(explained.structure_p_value) else 0
        print(
            f"{kind:11} split {found[True] / RUNS:.3f}  not split {found[False] / RUNS:.3f}  of {RUNS} runs", flush=True
        )


def discoveries():
    """Mean share of false features among those found at FDR .05, where clusters are real and most features "
    "are noise."""
    for shift, runs in ((1.0, 500), (2.0, 100)):  # few are found of weak ones: their share varies more
        false = {True: [], False: []}
        for run in range(runs):
            views, marked, _ = marked_views(np.random.default_rng([run, 5]), shift, n_features=200, n_marked=5)
            model = EMVC(4, random_state=0).fit(views)
            true = [set(features.ravel()) for features in marked]
            for split, shares in false.items():
                table = emvc.explain(model, views, split=split).marker_table
                found = np.flatnonzero(table.fdr <= 0.05)
                wrong = sum(table.feature[row] not in true[table.view[row]] for row in found)
                shares.append(wrong / max(len(found), 1))
        print(
            f"shift {shift}: false discoveries, split {np.mean(false[True]):.3f}, not split {np.mean(false[False]):.3f}"
        )


def marked_views(rng, shift, n_clusters=4, n_per_cluster=40, n_features=500, n_marked=15):
    """Return three views in which each cluster has its own shifted features, the features, and the clusters."""
    labels = np.repeat(np.arange(n_clusters), n_per_cluster)
    views, marked = [], []
    for _ in range(3):
        values = rng.standard_normal((len(labels), n_features))
        chosen = rng.permutation(n_features)[: n_clusters * n_marked].reshape(n_clusters, n_marked)
        for cluster, features in enumerate(chosen):
            values[np.ix_(labels == cluster, features)] += shift * rng.choice([-1.0, 1.0], n_marked)
        views.append(values)
        marked.append(chosen)
    return views, marked, labels


def markers():
    """Precision of the ten strongest markers of each cluster and view."""
    for shift in (1.0, 1.5, 2.0):
        precision, worst = [], 1.0
        for run in range(20):
            views, marked, labels = marked_views(np.random.default_rng([run, 3]), shift)
            model = EMVC(4, random_state=0).fit(views)
            table = emvc.explain(model, views).marker_table
            for cluster in range(4):
                true = np.bincount(labels[model.labels_ == cluster]).argmax()
                rows = np.flatnonzero(table.cluster == cluster)[:10]
                hits = [table.feature[row] in marked[table.view[row]][true] for row in rows]
                precision.append(np.mean(hits))
                worst = min(worst, precision[-1])
        print(f"shift {shift}: precision@10 {np.mean(precision):.3f}, worst cluster {worst:.1f}", flush=True)


def annotations():
    """Annotations whose rows are shuffled: how many of ten are found at FDR .05, in each of 100 rounds."""
    rng = np.random.default_rng(0)
    views, _, labels = marked_views(rng, 2.0)
    model = EMVC(4, random_state=0).fit(views)
    rounds = []
    for _ in range(100):
        columns = {}
        for j in range(10):
            order = rng.permutation(len(labels))
            columns[f"c{j}"] = [labels[order].astype(str), rng.standard_normal(len(labels)),
                                (rng.exponential(1.0, len(labels)), rng.random(len(labels)) < 0.6)][j % 3]  # fmt: skip
        rounds.append(sum(finding.fdr <= 0.05 for finding in emvc.explain(model, None, columns).findings))
    counts = np.bincount(rounds)
    print(f"shuffled annotations: rounds with 0, 1, ... of ten found: {counts.tolist()}")
    found = emvc.explain(model, None, {"class": labels.astype(str)}).findings[0]
    print(f"true classes: FDR {found.fdr:.1e}")


def speed():
    """Three views of 2,000 samples and 20,000 features, ten clusters; the labels are given, not fitted."""
    from types import SimpleNamespace

    rng = np.random.default_rng(0)
    views = [rng.standard_normal((2000, 20_000), dtype=np.float32).astype(np.float64) for _ in range(3)]
    model = SimpleNamespace(labels_=rng.integers(0, 10, 2000), n_clusters_=10, view_names_=["0", "1", "2"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    started = time.perf_counter(), time.process_time()
    explained = emvc.explain(model, views)
    wall, used = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(explained.marker_table):,} tests in {wall:.1f} s ({used:.1f} s of processors), "
          f"{before:.2f} GiB before (the views), {peak:.2f} GiB at most")  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or ("markers", "annotations", "discoveries", "speed", "noise"):
        {"noise": noise, "markers": markers, "annotations": annotations, "speed": speed, "discoveries": discoveries}[
            name
        ]()
