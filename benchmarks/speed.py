"""Speed as ratios within one run: against plain NumPy, the published algorithm written plainly, and other packages.

    python benchmarks/speed.py [--parts solve,passes,alm,peers,growth,start] [--peers PYTHON] [--output DIR]

``--peers`` is the Python of an environment with imml, mvlearn, snfpy and scikit-learn < 1.8; `make bench` makes one.
Prints Markdown tables, and with ``--output`` writes the plot of the growth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import naive
import numba
import numpy as np
import scipy
import sklearn
from peers import run_peers
from sklearn.metrics import normalized_mutual_info_score

from emvc import EMVC, datasets
from emvc.kernels import fused
from emvc.problem import Problem
from emvc.solvers import ADMM, ALM, run


def generated(n_samples, n_views, seed=0, n_clusters=10):
    """Return Gaussian clusters seen from several sides, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n_samples)
    sizes = (20, 40, 30, 25)[:n_views]
    return [
        rng.standard_normal((n_clusters, d))[labels] * 1.2 + rng.standard_normal((n_samples, d)) for d in sizes
    ], labels


def show(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(title, *columns):
    print(f"\n### {title}\n")
    show(*columns)
    show(*["---"] * len(columns))


def best_of(function, repeats):
    """Return the shortest time of several, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def problem_of(n_samples, n_views, dtype=np.float64):
    """Return the problem that the default settings make of generated data, without a joint view."""
    from emvc._validation import check_views

    views, _ = generated(n_samples, n_views)
    chains = EMVC(joint_view=False, screen=False)._rows(check_views(views), 10).problem.transitions
    weight = 4.0 * math.sqrt(10 / n_samples) / n_views
    return Problem(chains.astype(dtype), weight, weight)


def solve():
    head(
        "Certified solve, N = 1000, K = 3, gap 1e-3",
        "version", "iterations", "gap", "seconds", "ratio", "ratio, gap of emvc",
    )  # fmt: skip
    double = problem_of(1000, 3)
    single = problem_of(1000, 3, np.float32)
    for problem in (double, single):
        run(ADMM(), problem, max_iter=5)  # compilation
    plain = []
    for name, fitted in (("plain NumPy, gap of the iterates", False), ("plain NumPy, gap of emvc", True)):
        seconds, (_, gap, iterations) = best_of(
            lambda fitted=fitted: naive.solve(
                double.transitions, double.beta, double.lam, double.weights, fitted=fitted
            ),
            1,
        )
        plain.append(seconds)
        show(name, iterations, f"{gap:.1e}", f"{seconds:.2f}", f"{plain[0] / seconds:.1f}", "1" if fitted else "-")
    for name, problem in (("float64", double), ("float32", single)):
        seconds, solution = best_of(lambda problem=problem: run(ADMM(), problem), 3)
        show(
            f"emvc, {name}", solution.n_iter, f"{solution.gap:.1e}", f"{seconds:.2f}",
            *(f"{other / seconds:.1f}" for other in plain),
        )  # fmt: skip


def passes():
    head("Element-wise work of one iteration, N = 2000, K = 3", "what", "ms", "ratio")
    for dtype in (np.float64, np.float32):
        problem = problem_of(2000, 3, dtype)
        solver = ADMM()
        state = solver.init(problem, np.random.default_rng(0))
        for _ in range(3):
            solver.step(problem, state)

        def sweep(problem=problem, state=state, solver=solver):
            fused.sweep(
                problem.transitions, **state.arrays, thresholds=state.thresholds, relaxation=solver.relaxation,
                row_steps=problem.beta * problem.weights / state.penalty,
                column_steps=problem.lam * problem.weights / state.penalty, low_rank_weight=state.low_rank_weight,
            )  # fmt: skip

        arrays = [
            problem.transitions,
            *(a for a in state.arrays.values() if a.ndim >= 2 and a.size >= problem.transitions[0].size),
        ]
        targets = [np.empty_like(a) for a in arrays]

        def copy(arrays=arrays, targets=targets):
            for target, array in zip(targets, arrays, strict=True):
                np.copyto(target, array)

        copied, swept = best_of(copy, 7)[0], best_of(sweep, 7)[0]
        show(f"copying the same arrays, {np.dtype(dtype).name}", f"{1e3 * copied:.1f}", "1")
        show(f"one sweep, {np.dtype(dtype).name}", f"{1e3 * swept:.1f}", f"{swept / copied:.2f}")
    matrix = np.random.default_rng(0).standard_normal((2000, 2000)) / 40
    fused.project_simplex(matrix)
    sort, newton = (
        best_of(lambda: naive.project_simplex(matrix), 3)[0],
        best_of(lambda: fused.project_simplex(matrix), 7)[0],
    )
    show("simplex projection by sorting", f"{1e3 * sort:.1f}", "1")
    show("simplex projection, fused", f"{1e3 * newton:.1f}", f"{sort / newton:.1f}x faster")


def alm():
    head("Published algorithm on WebKB, beta = 1e-3, lam = 1e-2", "version", "iterations", "seconds", "ratio")
    from emvc.graphs import compute_affinity, stack_transitions

    data = datasets.load("webkb")
    affinities = [compute_affinity(np.asarray(view), "rbf") for view in data.views]
    transitions = stack_transitions(affinities, len(affinities), len(data.labels))
    problem = Problem(transitions, 1e-3, 1e-2)
    run(ALM(), problem, max_iter=3)
    plain, (consensus, iterations) = best_of(lambda: naive.published(transitions, 1e-3, 1e-2), 1)
    seconds, solution = best_of(lambda: run(ALM(), problem), 2)
    show("plain transcription", iterations, f"{plain:.2f}", "1")
    show("`alm`", solution.n_iter, f"{seconds:.2f}", f"{plain / seconds:.1f}")
    print(f"\nlargest difference of the two results: {np.abs(consensus - solution.consensus).max():.1e}")


def peers(python):
    head("Default fit against other packages, K = 2", "data", "N", "method", "NMI", "seconds", "ratio to emvc")
    if not python:
        print("\nnot measured: no environment with the other packages (--peers)")
        return
    paper = datasets.make_paper_synthetic(random_state=0)
    cases = [("paper's synthetic", paper.views, paper.labels)]
    cases += [(f"{k} clusters", *generated(1000, 2, n_clusters=k)) for k in (3, 5, 10, 20)]
    cases += [("10 clusters", *generated(4000, 2))]
    for name, views, labels in cases:
        n_samples, n_clusters = len(labels), len(np.unique(labels))
        EMVC(n_clusters, random_state=0).fit([view[::3] for view in views])
        seconds, model = best_of(lambda views=views, k=n_clusters: EMVC(k, random_state=0).fit(views), 2)
        nmi = normalized_mutual_info_score(labels, model.labels_)
        show(name, n_samples, "emvc", f"{nmi:.3f}", f"{seconds:.2f}", "1")
        for peer, found in run_peers(python, views, n_clusters, ("nemo", "coreg", "snf", "joined")).items():
            if "error" in found:
                show(name, n_samples, peer, "-", found["error"], "-")
            else:
                nmi = normalized_mutual_info_score(labels, found["labels"])
                ratio = found["seconds"] / seconds
                show(name, n_samples, peer, f"{nmi:.3f}", f"{found['seconds']:.2f}", f"{ratio:.1f}")


_FIT = """
import json, sys, time
sys.path.insert(0, sys.argv[3])
import speed
from machine import peak_memory
from emvc import EMVC
n, k = int(sys.argv[1]), int(sys.argv[2])
EMVC(10, random_state=0).fit(speed.generated(300, k)[0])
views, _ = speed.generated(n, k)
base = peak_memory()
start = time.perf_counter()
model = EMVC(10, random_state=0).fit(views)
seconds = time.perf_counter() - start
peak = peak_memory()
print(json.dumps([seconds, (peak - base) / 8 / n**2, model.rank_, model.n_iter_]))
"""


def growth(folder):
    n_views = 2
    head(
        "Growth of the default fit, K = 2", "N", "seconds", "iterations", "rank", "peak memory, words / N^2",
        f"3K + 6 = {3 * n_views + 6}",
    )  # fmt: skip
    sizes, times = (1000, 2000, 4000, 8000), []
    for n_samples in sizes:
        command = [sys.executable, "-c", _FIT, str(n_samples), str(n_views), str(Path(__file__).parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, words, rank, iterations = json.loads(done.stdout.strip().splitlines()[-1])
        times.append(seconds)
        show(
            n_samples,
            f"{seconds:.2f}",
            iterations,
            rank,
            f"{words:.1f}",
            "holds" if words <= 3 * n_views + 6 else "missed",
        )
    exponent = math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])
    print(f"\ntime grows as N^{exponent:.2f} between N = {sizes[0]} and {sizes[-1]}")
    if folder:
        plot(sizes, times, exponent, Path(folder))


def plot(sizes, times, exponent, folder):
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(4.2, 3.0), layout="constrained")
    axes.loglog(sizes, times, "o-", color="#0072B2", label=f"default fit, $N^{{{exponent:.2f}}}$")
    axes.loglog(sizes, times[0] * (np.array(sizes) / sizes[0]) ** 2.0, ":", color="0.4", label="$N^2$")
    axes.loglog(sizes, times[0] * (np.array(sizes) / sizes[0]) ** 3.0, "--", color="0.6", label="$N^3$")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set(xlabel="samples", ylabel="seconds")
    axes.legend(frameon=False)
    figure.savefig(folder / "growth.png", dpi=160)
    plt.close(figure)


def start():
    head("Start", "what", "seconds")
    command = [
        sys.executable,
        "-c",
        "import time; s = time.perf_counter(); import emvc; print(time.perf_counter() - s)",
    ]
    runs = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    show("`import emvc`, best of three", f"{min(runs):.2f}")
    code = (
        "import time, numpy as np; from emvc import EMVC; r = np.random.default_rng(0); v = [r.random((60, 5))] * 2;"
        "s = time.perf_counter(); EMVC(2).fit(v); a = time.perf_counter(); EMVC(2).fit(v);"
        "print(a - s - (time.perf_counter() - a))"
    )
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    show("first fit of a process beyond the second (loading compiled code)", f"{min(runs[1:]):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="solve,passes,alm,peers,growth,start")
    parser.add_argument("--peers", default=os.environ.get("EMVC_PEERS", ""))
    parser.add_argument("--output", default="")
    arguments = parser.parse_args()
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, scipy, sklearn, numba))
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}")
    for part in arguments.parts.split(","):
        if part == "peers":
            peers(arguments.peers)
        elif part == "growth":
            growth(arguments.output)
        else:
            {"solve": solve, "passes": passes, "alm": alm, "start": start}[part]()


if __name__ == "__main__":
    main()
