"""Time, memory and quality with landmarks: growth with the samples, a million from disk on two workers, real data.

    python benchmarks/scaling.py [growth million hdigit fashion corrupted]

Every fit of `growth` and `million` is a process of its own, so that its peak memory can be read. `hdigit` and
`corrupted` need the files of ``emvc datasets``; `fashion` needs the four files of Fashion-MNIST in a folder that
``FASHION_MNIST`` names (the Debian package dataset-fashion-mnist puts them where it looks by default).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from anchors import cluster_anchors, cluster_joined
from machine import peak_memory
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from emvc import EMVC, datasets, open_views
from emvc.graphs import scale_view
from emvc.metrics import clustering_scores

FASHION = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def make_chunk(first, n_rows, n_views, n_clusters=10, n_features=20):
    """Return rows of generated views and their labels, the same wherever the chunks begin."""
    centers = np.random.default_rng(1).standard_normal((n_views, n_clusters, n_features))
    rng = np.random.default_rng([2, first])
    labels = rng.integers(n_clusters, size=n_rows)
    noise = rng.standard_normal((n_views, n_rows, n_features))
    return [center[labels] + part for center, part in zip(centers, noise, strict=True)], labels


def peak():
    """Return the peak memory of this process in GB."""
    return peak_memory() / 1e9


def child(*arguments):
    """Run this script in a process of its own and return the record that it prints last."""
    result = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(result.stdout.splitlines()[-1])


def one_fit(n_samples):
    views, labels = make_chunk(0, n_samples, 3)
    EMVC(10, n_landmarks=50, random_state=0).fit([view[:500] for view in views])  # compiles
    before = peak()
    start, cpu = time.perf_counter(), time.process_time()
    model = EMVC(10, n_landmarks=200, random_state=0).fit(views)
    print(json.dumps({
        "n": n_samples, "seconds": time.perf_counter() - start, "n_iter": model.n_iter_, "gap": model.duality_gap_,
        "cpu": time.process_time() - cpu, "peak": peak(), "before": before,
        "ari": adjusted_rand_score(labels, model.labels_),
    }))  # fmt: skip


def growth():
    print(
        "\n### Growth with the samples: K = 3, m = 200\n\n| N | s | CPU s | iterations | gap | peak GB | ARI |\n"
        "|---|---|---|---|---|---|---|"
    )
    found = []
    for n_samples in (10_000, 20_000, 50_000, 100_000):
        record = child("--one-fit", n_samples)
        found.append((n_samples, record["seconds"], record["cpu"]))
        print(
            "| {n} | {seconds:.1f} | {cpu:.1f} | {n_iter} | {gap:.1e} | {peak:.2f} | {ari:.3f} |".format(**record),
            flush=True,
        )
    numbers, seconds, cpu = (np.log(column) for column in zip(*found, strict=True))
    exponents = np.polyfit(numbers, seconds, 1)[0], np.polyfit(numbers, cpu, 1)[0]
    print("\nexponent of the time {:.2f}, of the CPU time {:.2f}".format(*exponents), flush=True)


def one_million(n_samples, chunk=25_000):
    import dask
    from distributed import Client, LocalCluster

    # Blocks live as long as the fit: writing them to disk between two iterations would help nobody.
    dask.config.set({f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")})
    with tempfile.TemporaryDirectory() as folder:
        labels = []
        files = [np.lib.format.open_memmap(f"{folder}/{k}.npy", "w+", np.float32, (n_samples, 20)) for k in range(2)]
        for first in range(0, n_samples, chunk):
            views, found = make_chunk(first, min(chunk, n_samples - first), 2)
            labels.append(found)
            for file, view in zip(files, views, strict=True):
                file[first : first + chunk] = view
        for file in files:
            file.flush()
        del files, file, views
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, memory_limit="3GB", dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            start = time.perf_counter()
            model = EMVC(10, n_landmarks=100, random_state=0).fit(
                open_views([f"{folder}/{k}.npy" for k in range(2)], chunks=chunk)
            )
            seconds = time.perf_counter() - start
            workers = list(client.run(peak).values())
            labels_found = model.labels_.compute()
            print(json.dumps({
                "n": n_samples, "seconds": seconds, "n_iter": model.n_iter_, "gap": model.duality_gap_,
                "client": peak(), "workers": workers, "ari": adjusted_rand_score(np.concatenate(labels), labels_found),
            }))  # fmt: skip


def million(n_samples=1_000_000):
    record = child("--one-million", n_samples)
    workers = ", ".join(f"{value:.2f}" for value in record.pop("workers"))
    print("\n### A million samples from disk: K = 2, m = 100, two workers of 3 GB\n")
    print("N = {n}: {seconds:.0f} s, {n_iter} iterations, gap {gap:.1e}, ARI {ari:.3f}".format(**record))
    print("peak memory: client {:.2f} GB, workers {} GB".format(record["client"], workers), flush=True)


def show(name, data_labels, labels, seconds, more=""):
    found = clustering_scores(data_labels, labels)
    print(f"| {name} | {found['accuracy']:.3f} | {found['nmi']:.3f} | {seconds:.0f} | {more} |", flush=True)
    return found


def timed(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - start


def head(title):
    print(f"\n### {title}\n\n| method | accuracy | NMI | s | |\n|---|---|---|---|---|", flush=True)


def hdigit(n_exact=4000):
    data = datasets.load("hdigit")
    head(f"hdigit, {len(data.labels)} samples, and {n_exact} of them for the exact method")
    for number in (100, 200, 500):
        model, seconds = timed(EMVC(10, n_landmarks=number, random_state=0).fit, data.views)
        show(f"m = {number}", data.labels, model.labels_, seconds)
    rows = np.sort(np.random.default_rng(0).permutation(len(data.labels))[:n_exact])
    part = [view[rows] for view in data.views]
    for number in (500, n_exact):
        model, seconds = timed(EMVC(10, n_landmarks=number, random_state=0).fit, part)
        name = "exact" if number == n_exact else f"m = {number}"
        show(f"{name}, {n_exact} samples", data.labels[rows], model.labels_, seconds)


def read_idx(name, offset):
    with gzip.open(Path(FASHION) / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=offset)


def fashion_views():
    """Return three views of all 70,000 images: principal components, gradient histograms, block means with Fourier."""
    parts = ("train", "t10k")
    images = np.concatenate([read_idx(f"{part}-images-idx3-ubyte.gz", 16) for part in parts]).reshape(-1, 28, 28)
    labels = np.concatenate([read_idx(f"{part}-labels-idx1-ubyte.gz", 8) for part in parts]).astype(int)
    images = images.astype(np.float32) / 255.0
    pixels = PCA(50, random_state=0).fit_transform(images.reshape(len(images), -1))
    vertical, horizontal = np.gradient(images, axis=(1, 2))
    strength = np.hypot(vertical, horizontal)
    bins = ((np.arctan2(vertical, horizontal) % np.pi) / np.pi * 8).astype(int) % 8
    cells = [np.where(bins == b, strength, 0.0).reshape(-1, 7, 4, 7, 4).sum(axis=(2, 4)) for b in range(8)]
    histograms = np.stack(cells, axis=-1).reshape(len(images), 49, 8)
    histograms /= np.linalg.norm(histograms, axis=2, keepdims=True) + 0.1
    blocks = images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(images), -1)
    waves = np.log1p(np.abs(np.fft.rfft2(images)[:, :6, :6])).reshape(len(images), -1)
    return [pixels, histograms.reshape(len(images), -1), np.hstack([blocks, waves])], labels


def fashion(seeds=3):
    views, labels = fashion_views()
    views = [view.astype(np.float64) for view in views]
    head(f"Fashion-MNIST, {len(labels)} images, three views, mean of {seeds} seeds of k-means where it says so")
    for number in (200, 500):
        model, seconds = timed(EMVC(10, n_landmarks=number, random_state=0).fit, views)
        show(f"EMVC, m = {number}", labels, model.labels_, seconds, f"{model.n_iter_} iterations")
    scaled = []
    for view in views:
        part = scale_view(view, "auto")
        part = part - part.mean(axis=0)
        scaled.append(part / np.sqrt(np.mean(np.sum(part**2, axis=1))))
    runs = [timed(cluster_joined, scaled, 10, seed) for seed in range(seeds)]
    means = np.mean([[clustering_scores(labels, r)[name] for name in ("accuracy", "nmi")] for r, _ in runs], axis=0)
    best = max(clustering_scores(labels, r)["nmi"] for r, _ in runs)
    print(
        "| MiniBatchKMeans on joined features | {:.3f} | {:.3f} | {:.0f} | best NMI {:.3f} |".format(
            *means, runs[0][1], best
        )
    )
    for alpha in (0.001, 0.01, 0.1, 1.0):
        found, seconds = timed(cluster_anchors, scaled, 10, 100, alpha)
        show(f"anchors (LMVSC), 100 per view, alpha = {alpha:g}", labels, found, seconds)


def corrupted(share=0.06):
    print("\n### 6 % of the samples destroyed in all views\n")
    print(
        "| data | m | clean | accuracy | ceiling | AUC | condemned | falsely |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    for name in ("handwritten", "hdigit"):
        data = datasets.load(name)
        guess = np.bincount(data.labels).max() / len(data.labels)
        clean = EMVC(data.n_clusters, n_landmarks=500, random_state=0).fit_predict(data.views)
        intact = clustering_scores(data.labels, clean)["accuracy"]
        views, truth = datasets.corrupt_samples(data.views, share, 0)
        model = EMVC(data.n_clusters, n_landmarks=500, random_state=0).fit(views)
        found = clustering_scores(data.labels, model.labels_)["accuracy"]
        auc = roc_auc_score(truth.ravel(), model.sample_errors_.ravel())
        caught, falsely = model.outliers_[truth].mean(), model.outliers_[~truth].mean()
        ceiling = (1 - share) * intact + share * guess
        cells = (intact, found, ceiling, auc, caught, falsely)
        print(f"| {name} | 500 | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


PARTS = {"growth": growth, "million": million, "hdigit": hdigit, "fashion": fashion, "corrupted": corrupted}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--one-fit", type=int)
    parser.add_argument("--one-million", type=int)
    options = parser.parse_args()
    if options.one_fit:
        one_fit(options.one_fit)
    elif options.one_million:
        one_million(options.one_million)
    else:
        for part in options.parts or PARTS:
            PARTS[part]()
