"""What the findings are worth: noise of any kind, generated clusters, well-known tables, and calibration of confidence.

python benchmarks/trust.py [noise] [clusters] [tables] [blame FOLDER] [confidence FOLDER]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import emvc
from emvc import EMVC
from emvc.estimators._confidence import matched
from emvc.experiments.board.collection import find_sets
from emvc.experiments.board.conditions import impute_cells
from emvc.structure import LEVEL

KINDS = ("normal", "uniform", "counts", "correlated", "heavy tails")


def noise(seed):
    rng = np.random.default_rng(seed)
    n_samples = int(np.exp(rng.uniform(np.log(60), np.log(1500))))
    views, names = [], []
    for _ in range(rng.integers(1, 6)):
        kind, width = KINDS[rng.integers(5)], int(np.exp(rng.uniform(np.log(2), np.log(300))))
        if kind == "normal":
            view = rng.standard_normal((n_samples, width))
        elif kind == "uniform":
            view = rng.uniform(size=(n_samples, width))
        elif kind == "counts":
            width = max(width, 20)
            view = rng.poisson(rng.gamma(0.3, 0.5, size=width), size=(n_samples, width)).astype(float)
        elif kind == "correlated":
            view = rng.standard_normal((n_samples, width)) @ rng.standard_normal((width, width))
        else:
            view = rng.standard_t(2, size=(n_samples, width))
        views.append(view)
        names.append(f"{kind} {width}")
    return views, names


def clusters(seed):
    """Return views with 2 to 12 clusters of unequal sizes, one of them of noise, the labels and the bad view."""
    rng = np.random.default_rng(10_000 + seed)
    number, n_views = int(rng.integers(2, 13)), int(rng.integers(2, 6))
    sizes = rng.integers(20, 101, size=number)
    labels = rng.permutation(np.repeat(np.arange(number), sizes))
    views = []
    for _ in range(n_views):
        width = int(rng.integers(3, 41))
        centers = rng.uniform(2.0, 6.0) / np.sqrt(2) * rng.standard_normal((number, width)) / np.sqrt(min(width, 5))
        views.append(centers[labels] + rng.standard_normal((len(labels), width)))
    bad = int(rng.integers(n_views))
    views[bad] = rng.standard_normal(views[bad].shape)
    return views, labels, bad


def noise_table(first=0, number=100):
    none, reliability = 0, []
    for seed in range(first, first + number):
        views, names = noise(seed)
        model = EMVC("auto", random_state=0).fit(views)
        found = model.n_clusters_ > 1
        none += not found
        forced = EMVC(3, random_state=0).fit(views)
        if len(views) > 1:
            reliability.append(forced.reliability_.mean())
        if found:
            print(
                f"  structure in noise: seed {seed}, {len(views[0])} samples, {names}, p {model.structure_p_value_:.3f}"
            )
    print(f"noise: no structure in {none} of {number} sets")
    print(f"noise, three clusters asked for, two views or more: mean reliability {np.mean(reliability):.3f}")


def cluster_table(number=100):
    missed, clear, found_bad, perfect = 0, 0, [], []
    for seed in range(number):
        views, labels, bad = clusters(seed)
        c = labels.max() + 1
        forced = EMVC(c, random_state=0).fit(views)
        ari = adjusted_rand_score(labels, forced.labels_)
        clear += ari >= 0.8
        if ari >= 0.8:
            found_bad.append(forced.reliability_.argmin() == bad or len(views) == 2)
            p = EMVC("auto", random_state=0).fit(views).structure_p_value_
            if p > LEVEL:
                missed += 1
                print(
                    f"  missed: {seed}, {len(labels)} samples, {c} clusters, {len(views)} views, ARI {ari:.2f}, {p:.2f}"
                )
        rng = np.random.default_rng(seed)
        exact = [20.0 * rng.standard_normal((c, 10))[labels] + rng.standard_normal((len(labels), 10)) for _ in views]
        perfect.append(EMVC(c, random_state=0).fit(exact).reliability_.min())
    print(f"clusters: 'no structure' in {missed} of {clear} sets whose clusters are found (ARI >= .8)")
    print(f"bad view has the least reliability in {np.mean(found_bad):.0%}; perfect views: least reliability "
          f"{np.min(perfect):.2f}, below .9 in {np.sum(np.array(perfect) < 0.9)} of {number}")  # fmt: skip


def natural_views():
    iris, wine, cancer, digits = load_iris(), load_wine(), load_breast_cancer(), load_digits()
    images = digits.images
    yield "iris: sepal, petal", [iris.data[:, :2], iris.data[:, 2:]], 3
    yield "wine: two halves", [wine.data[:, :6], wine.data[:, 6:]], 3
    yield "breast cancer: mean, error, worst", [cancer.data[:, k : k + 10] for k in (0, 10, 20)], 2
    yield "digits: rows, columns, halves", [digits.data, np.hstack([images.sum(1), images.sum(2)])], 10


def table_table():
    print("| table | classes | found | best numbers | p |\n| --- | ---: | ---: | --- | ---: |")
    for name, views, classes in natural_views():
        model = EMVC("auto", random_state=0).fit(views)
        best = sorted(model.n_clusters_evidence_, key=lambda record: -record["score"])[:3]
        told = ", ".join(f"{r['n_clusters']:.0f} ({r['score']:.2f})" for r in best)
        print(f"| {name} | {classes} | {model.n_clusters_} | {told} | {model.structure_p_value_:.3f} |")


def blame_table(folder):
    print("| data | error in the damaged view, least | in the others, largest |\n| --- | ---: | ---: |")
    shown = 0
    for entry in find_sets([folder], most_samples=1100):
        data = entry.read()
        views = [np.asarray(v.toarray() if hasattr(v, "toarray") else v, float) for v in impute_cells(data.views)]
        if len(views) < 3 or len(data.labels) < 100:
            continue
        rng = np.random.default_rng(0)
        rows = rng.choice(len(data.labels), 6, replace=False)
        low, high = views[0].min(axis=0), views[0].max(axis=0)
        views[0][rows] = rng.uniform(low, high, (6, views[0].shape[1]))
        errors = EMVC(data.n_clusters, random_state=0).fit(views).sample_errors_[rows]
        print(f"| {entry.name} | {errors[:, 0].min():.2f} | {np.nanmax(errors[:, 1:]):.2f} |")
        shown += 1
    print(f"{shown} sets")


def confidence_table(folder):
    print("| data | samples | calibration error | errors among the least confident, times their share | attainable |")
    print("| --- | ---: | ---: | ---: | ---: |")
    errors, lifts, attainable = [], [], []
    for entry in find_sets([folder], most_samples=1100):
        data = entry.read()
        views = impute_cells(data.views)
        names = np.unique(data.labels, return_inverse=True)[1]
        model = EMVC(data.n_clusters, random_state=0).fit(views)
        confidence = model.confidence_
        kept = emvc.assess(views, model, n_resamples=30, n_clusters=[], random_state=7).sample_stability
        bins = np.minimum((10 * confidence).astype(int), 9)
        calibration = sum(np.mean(bins == b) * abs(confidence[bins == b].mean() - np.nanmean(kept[bins == b]))
                          for b in np.unique(bins))  # fmt: skip
        size = max(data.n_clusters, model.n_clusters_)
        wrong = matched(model.labels_, names, size) != names
        least = np.lexsort((model.membership_.max(axis=1), confidence))[: max(1, round(0.1 * len(names)))]
        lift = wrong[least].mean() / wrong.mean() if wrong.any() else np.nan
        errors.append(calibration)
        lifts.append(lift)
        attainable.append(wrong.any() and wrong.mean() <= 0.5)
        most = 1 / wrong.mean() if wrong.any() else np.nan
        print(f"| {entry.name} | {len(names)} | {calibration:.3f} | {lift:.2f} | {most:.1f} |", flush=True)
    print(f"calibration error at most .05 on {np.sum(np.array(errors) <= 0.05)} of {len(errors)} sets, mean "
          f"{np.mean(errors):.3f}; lift of at least 2 on {np.sum(np.array(lifts) >= 2)}, which can be reached on "
          f"{np.sum(attainable)}")  # fmt: skip


def time_table():
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=1000)
    views = [2.0 * rng.standard_normal((5, 20))[labels] + rng.standard_normal((1000, 20)) for _ in range(3)]
    model = EMVC(5, random_state=0).fit(views)
    start = time.perf_counter()
    emvc.assess(views, model, n_resamples=50)
    print(f"emvc.assess, 1,000 samples, three views, 50 parts: {time.perf_counter() - start:.1f} s")


def main():
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:] or ["noise", "clusters", "tables", "time"]
    folder = next((a for a in arguments if "/" in a or a == "."), None)
    tables = {"noise": noise_table, "clusters": cluster_table, "tables": table_table, "time": time_table}
    for name in arguments:
        if name in tables:
            tables[name]()
        elif name in ("blame", "confidence"):
            {"blame": blame_table, "confidence": confidence_table}[name](folder)


if __name__ == "__main__":
    main()
