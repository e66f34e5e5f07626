"""Certificates and quality on WebKB and on the synthetic data, as Markdown tables.

python benchmarks/foundation.py            (about 5 minutes on 2 cores; needs the WebKB file, see emvc.datasets)
"""

import time

import numpy as np

from emvc import EMVC, KernelAddition, datasets
from emvc.metrics import clustering_scores
from emvc.problem import relative_gap

PLAIN = {"joint_view": False, "screen": False, "embedding": "unit-rows", "random_state": 0}
"""The decomposition alone, without what is done around it."""


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*names):
    print()
    row(*names)
    row(*("---" for _ in names))


def scores(labels, model):
    result = clustering_scores(labels, model.labels_)
    return f"{result['accuracy']:.3f}/{result['nmi']:.3f}"


def certificates(data):
    """Default graph, beta = lam = c / sqrt(N): gap of the certified solver, and of the published one beside it."""
    header(
        "c", "iterations", "rank", "objective", "gap", "seconds", "acc/NMI", "`alm` objective", "`alm` gap", "acc/NMI"
    )
    for c in (2, 4, 8):
        weight = c / np.sqrt(len(data.labels))
        start = time.perf_counter()
        model = EMVC(2, beta=weight, lam=weight, max_iter=300, **PLAIN).fit(data.views)
        seconds = time.perf_counter() - start
        published = EMVC(2, beta=weight, lam=weight, solver="alm", **PLAIN).fit(data.views)
        bound = model.objective_ * (1 - model.duality_gap_)
        row(
            c, model.n_iter_, model.rank_, f"{model.objective_:.4f}", f"{model.duality_gap_:.1e}", f"{seconds:.1f}",
            scores(data.labels, model), f"{published.objective_:.4f}",
            f"{relative_gap(published.objective_, bound):.1e}", scores(data.labels, published),
        )  # fmt: skip


def published(data):
    """The published configuration on a coarse subset of the paper's grid; the best point is chosen with labels."""
    header("beta", "lam", "accuracy/NMI")
    found = []
    for beta in (1e-9, 1e-6, 1e-3, 1e-1):
        for lam in (1e-6, 1e-3, 1e-2, 1e-1):
            model = EMVC.paper(2, beta, lam, random_state=0).fit(data.views)
            result = clustering_scores(data.labels, model.labels_)
            found.append((result["accuracy"], result["nmi"], beta, lam))
            row(f"{beta:g}", f"{lam:g}", scores(data.labels, model))
    accuracy, nmi, beta, lam = max(found)
    print(f"\nbest, chosen with labels: {accuracy:.3f}/{nmi:.3f} at beta = {beta:g}, lam = {lam:g} (paper .972/.776)")
    baseline = KernelAddition(2, scale=None, random_state=0).fit(data.views)
    print(f"kernel addition: {scores(data.labels, baseline)} (paper .963/.717)")


def optimality(data):
    """Objective of both solvers with the published kernel at beta = lam = 0.01."""
    options = {"beta": 0.01, "lam": 0.01, "affinity": "rbf", "scale": None, **PLAIN}
    certified = EMVC(2, **options).fit(data.views)
    published = EMVC(2, solver="alm", **options).fit(data.views)
    print(
        f"\nrbf kernel, beta = lam = 0.01: certified {certified.objective_:.4f} (gap {certified.duality_gap_:.0e}), "
        f"published {published.objective_:.4f}"
    )


def synthetic():
    """Five draws of the paper's synthetic data; the Bayes limit is .861/.419."""
    methods = {
        "EMVC(*), published": lambda: EMVC.paper(2, 0.0, 0.0, random_state=0),
        "EMVC(*), certified": lambda: EMVC(2, beta=0.0, lam=0.0, **PLAIN),
        "EMVC, published, beta = 1e-3, lam = 1e-1": lambda: EMVC.paper(2, 1e-3, 1e-1, random_state=0),
        "EMVC, certified, default": lambda: EMVC(2, random_state=0),
        "kernel addition": lambda: KernelAddition(2, scale=None, random_state=0),
    }
    header("method", "accuracy", "NMI")
    for name, make in methods.items():
        results = []
        for seed in range(5):
            data = datasets.make_paper_synthetic(random_state=seed)
            result = clustering_scores(data.labels, make().fit(data.views).labels_)
            results.append((result["accuracy"], result["nmi"]))
        (accuracy, nmi), (accuracy_std, nmi_std) = np.mean(results, axis=0), np.std(results, axis=0)
        row(name, f"{accuracy:.3f} ({accuracy_std:.3f})", f"{nmi:.3f} ({nmi_std:.3f})")


if __name__ == "__main__":
    webkb = datasets.load("webkb")
    print("## WebKB, default graph")
    certificates(webkb)
    print("\n## WebKB, published configuration")
    published(webkb)
    optimality(webkb)
    print("\n## Synthetic data of the paper, five draws")
    synthetic()
