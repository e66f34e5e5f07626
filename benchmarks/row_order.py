"""What the order of the rows does to ETLMSC: NMI with samples sorted by class and shuffled, in both of its forms.

    EMVC_DATA=... python benchmarks/row_order.py [--output docs/images] [--shuffles 3]

Prints Markdown tables and draws row-order.png. The second table gives the released form the best of several weights,
chosen with labels for each order on its own, so that no order is at a disadvantage.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np

from emvc import ETLMSC, datasets
from emvc.metrics import clustering_scores

DATA = ("bbcsport", "msrc_v1", "3sources")
FORMS = {"released form": {"published": True}, "order-invariant form (default)": {}}
STARTS = 500  # of k-means: many, because they depend on the order of the samples as well
WEIGHTS = (0.02, 0.03, 0.04, 0.06, 0.1, 0.2)


def orders(labels, shuffles):
    """Return the samples sorted by class, then shuffled several times."""
    shuffled = [np.random.default_rng(seed).permutation(len(labels)) for seed in range(shuffles)]
    return [np.argsort(labels, kind="stable"), *shuffled]


def measure(data, order, **options):
    """Return accuracy and NMI."""
    views = [view[order] for view in data.views]
    labels = ETLMSC(data.n_clusters, n_init=STARTS, random_state=0, **options).fit_predict(views)
    found = clustering_scores(data.labels[order], labels)
    return found["accuracy"], found["nmi"]


def cells(scores):
    return " | ".join(f"{accuracy:.3f}/{nmi:.3f}" for accuracy, nmi in scores)


def draw(results, path):
    """Draw sorted against shuffled; told apart by shape and filling as well as by colour."""
    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(FORMS), figsize=(8, 3.4), sharey=True, layout="constrained")
    for panel, form in zip(panels, FORMS, strict=True):
        for x, name in enumerate(DATA):
            ordered, *shuffled = (nmi for _, nmi in results[name, form])
            panel.plot([x - 0.15, x + 0.15], [ordered, np.mean(shuffled)], color="0.7", zorder=1)
            panel.scatter(x - 0.15, ordered, s=70, color="#0072B2", marker="s", label=None if x else "sorted by class")
            hollow = {"facecolors": "white", "edgecolors": "#D55E00", "linewidths": 1.8}
            places = np.full(len(shuffled), x + 0.15)
            panel.scatter(places, shuffled, s=60, **hollow, label=None if x else "shuffled", zorder=3)
        panel.set(title=form, xticks=range(len(DATA)), xticklabels=DATA, xlim=(-0.5, len(DATA) - 0.5))
        panel.set_ylim(-0.03, 1.05)
        panel.grid(axis="y", color="0.92")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("NMI")
    panels[1].legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--shuffles", type=int, default=3)
    options = parser.parse_args()
    loaded = {name: datasets.load(name, data_home=os.environ.get("EMVC_DATA")) for name in DATA}
    names = " | ".join(f"shuffled {k + 1}" for k in range(options.shuffles))
    head = f"| sorted | {names} |\n| --- | --- |" + " --- |" * (options.shuffles + 1)
    results = {}
    print(f"Accuracy/NMI\n\n| data | form {head}")
    for name, data in loaded.items():
        for form, settings in FORMS.items():
            results[name, form] = [measure(data, order, **settings) for order in orders(data.labels, options.shuffles)]
            print(f"| {name} | {form} | {cells(results[name, form])} |", flush=True)
    print(f"\nReleased form, best weight by labels\n\n| data | weights {head}")
    for name, data in loaded.items():
        runs = [
            max((measure(data, order, published=True, lam=lam) for lam in WEIGHTS), key=lambda scores: scores[1])
            for order in orders(data.labels, options.shuffles)
        ]
        print(f"| {name} | {min(WEIGHTS)} to {max(WEIGHTS)} | {cells(runs)} |", flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    draw(results, options.output / "row-order.png")


if __name__ == "__main__":
    main()
