"""Damages files and models of all formats and has them read: `make fuzz`, and a few in the suite.

A process reads one damaged file after the other, as a user's program would, while this one watches over it: it must
neither crash nor hang nor grow, and what it refuses must be an error in one line that names the file. Everything
follows from the seed; a finding is kept as a file.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

EXTREMES = [0, 1, -1, 2, 7, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, -(2**63)]
SECONDS = 20.0
GIGABYTES = 2.0
EXPECTED = ("ValueError", "TypeError", "MemoryError", "ImportError", "ModelFileError", "UnsafeFileError")


# Files that are as they should be


def make_seeds(folder):
    """Write a few small files of every format, and models."""
    import h5py
    import pandas as pd
    import scipy.io
    import scipy.sparse
    import zarr
    from anndata import AnnData
    from mudata import MuData, set_options

    rng = np.random.default_rng(0)
    values = np.round(rng.standard_normal((30, 5)), 3)
    counts = scipy.sparse.csr_matrix((values > 1) * 1.0)
    names = [f"s{i}" for i in range(30)]
    frame = pd.DataFrame(values, index=pd.Index(names, name="id"), columns=list("abcde"))
    frame.to_csv(folder / "a.csv")
    frame.assign(kind=["x", "y", None] * 10).to_csv(folder / "b.tsv", sep="\t")
    (folder / "c.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes(), mtime=0))
    frame.to_excel(folder / "d.xlsx")
    frame.reset_index().to_parquet(folder / "e.parquet")
    np.save(folder / "f.npy", values)
    np.savez(folder / "g.npz", x=values, y=np.arange(30))
    for kind in ("csr", "csc", "coo", "dia", "bsr"):
        scipy.sparse.save_npz(folder / f"h-{kind}.npz", counts.asformat(kind), compressed=False)
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = values, counts
    for compress in (False, True):
        scipy.io.savemat(folder / f"i-{compress}.mat", {"X": cell, "y": np.arange(30)}, do_compression=compress)
    with h5py.File(folder / "j.mat", "w", userblock_size=512) as file:
        file["X"] = values.T
        sparse = file.create_group("S")
        sparse.attrs["MATLAB_sparse"] = 30
        columns = counts.tocsc()
        for name, part in (("data", columns.data), ("ir", columns.indices), ("jc", columns.indptr)):
            sparse[name] = part
    with h5py.File(folder / "k.h5", "w") as file:
        file.create_dataset("deep/x", data=values, chunks=(10, 5), compression="gzip")
    for version in (2, 3):
        group = zarr.open_group(folder / f"l{version}.zarr", mode="w", zarr_format=version)
        group.create_array("x", shape=values.shape, chunks=(10, 5), dtype="f8")[:] = values
    obs = pd.DataFrame(index=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = AnnData(values, obs=obs, var=pd.DataFrame(index=list("abcde")))
        other = AnnData(counts, obs=obs, var=pd.DataFrame(index=list("vwxyz")), obsm={"X_other": values})
        other.write_h5ad(folder / "m.h5ad")
        with set_options(pull_on_update=False):
            MuData({"one": one, "other": other}).write(folder / "n.h5mu")
    _make_models(folder, values)


def _make_models(folder, values):
    from emvc import EMVC, KernelAddition

    views = {"one": values, "other": values[:, :3] ** 2}
    EMVC(3, random_state=0, n_jobs=1).fit(views).save(folder / "o.emvc")
    EMVC(3, n_landmarks=12, random_state=0, n_jobs=1).fit(views).save(folder / "p.emvc")
    KernelAddition(3, random_state=0).fit(views).save(folder / "q.emvc")


# Damage


def damage(content, rng):
    """Return bytes with one or a few things done to them."""
    content = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        _KINDS[int(rng.integers(len(_KINDS)))](content, rng)
    return bytes(content)


def _place(content, rng, *, before=0):
    return int(rng.integers(max(len(content) - before, 1)))


def _flip(content, rng):
    if content:
        content[_place(content, rng)] ^= 1 << int(rng.integers(8))


def _overwrite(content, rng):
    start, length = _place(content, rng), int(rng.integers(1, 17))
    content[start : start + length] = rng.bytes(min(length, len(content) - start))


def _extreme(content, rng):
    size = int(rng.choice([1, 2, 4, 8]))
    value = int(EXTREMES[int(rng.integers(len(EXTREMES)))]) % 2 ** (8 * size)
    start = _place(content, rng, before=size)
    part = value.to_bytes(size, "little" if rng.random() < 0.8 else "big")
    content[start : start + size] = part[: len(content) - start]


def _truncate(content, rng):
    del content[_place(content, rng) :]


def _remove(content, rng):
    start = _place(content, rng)
    del content[start : start + int(rng.integers(1, 65))]


def _repeat(content, rng):
    start = _place(content, rng)
    content[start:start] = content[start : start + int(rng.integers(1, 65))]


def _zero(content, rng):
    start, length = _place(content, rng), int(rng.integers(1, 65))
    content[start : start + length] = bytes(min(length, len(content) - start))


def _digits(content, rng):
    """Change a number that is written in digits, as in headers and descriptions."""
    places = [i for i, c in enumerate(content) if 48 <= c <= 57]
    if places:
        start = places[int(rng.integers(len(places)))]
        content[start : start + 1] = str(EXTREMES[int(rng.integers(len(EXTREMES)))]).encode()


_KINDS = [_flip, _overwrite, _extreme, _extreme, _truncate, _remove, _repeat, _zero, _digits]


def damaged_copy(seed, target, rng):
    """Write a damaged copy of a file or a folder; what is packed is damaged inside as often as outside."""
    if seed.is_dir():
        shutil.copytree(seed, target)
        files = sorted(path for path in target.rglob("*") if path.is_file())
        victim = files[int(rng.integers(len(files)))]
        victim.write_bytes(damage(victim.read_bytes(), rng))
    elif zipfile.is_zipfile(seed) and rng.random() < 0.7:
        _damage_inside(seed, target, rng)
    elif seed.suffix == ".gz" and rng.random() < 0.5:
        target.write_bytes(gzip.compress(damage(gzip.decompress(seed.read_bytes()), rng), mtime=0))
    else:
        target.write_bytes(damage(seed.read_bytes(), rng))


def _damage_inside(seed, target, rng):
    """Damage one member and write the archive anew, with checksums that are right."""
    with zipfile.ZipFile(seed) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    model = seed.suffix == ".emvc"
    names = [name for name in members if name != "sha256"]
    victim = "model.json" if model and rng.random() < 0.5 else names[int(rng.integers(len(names)))]
    if victim == "model.json":
        members[victim] = _damaged_description(members[victim], rng)
    else:
        members[victim] = damage(members[victim], rng)
    if model:
        from emvc.persistence import _checksum

        members.pop("sha256")
        members["sha256"] = _checksum(members).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED if model else zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _damaged_description(text, rng):
    """Change one value of a description, somewhere inside; half of the time it stays JSON of the right form."""
    if rng.random() < 0.3:
        return damage(text, rng)
    content = json.loads(text)
    holder, key = content, str(rng.choice(["attributes", "attributes", "params", "class"]))
    while True:
        value = holder[key]
        inside = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        if not inside or rng.random() < 0.15:
            break
        holder, key = value, inside[int(rng.integers(len(inside)))]
    choices = [*EXTREMES, None, True, "x", "<b>", [], {}, {"array": 0}, {"array": 5}, {"float": "nan"}, 1.5, -1e308]
    holder[key] = choices[int(rng.integers(len(choices)))]
    return json.dumps(content).encode()


# Reading, in a process that is watched


def work():
    """Read the files whose names come in, and say how each ended."""
    import emvc
    from emvc.files import read_views

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    new = {"one": rng.standard_normal((4, 5)), "other": rng.standard_normal((4, 3))}
    print("ready", flush=True)
    for line in sys.stdin:
        path = line.rstrip("\n")
        found = {"outcome": "read"}
        faulthandler.dump_traceback_later(2 * SECONDS)
        try:
            if path.endswith(".emvc"):
                model = emvc.load(path)
                found["outcome"] = "loaded"
                if hasattr(model, "predict"):
                    model.predict(new)
            else:
                read_views([path])
        except Exception as error:
            found |= {"outcome": f"{found['outcome']}, refused", "type": type(error).__name__, "message": str(error)}
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(found), flush=True)


class Reader:
    """The process that reads, seen from outside."""

    def __init__(self):
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"

    def read(self, path):
        """Return what the process says, or how it died."""
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        watch = threading.Timer(3 * SECONDS, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self._log.seek(0)
        return {"outcome": f"died with {code}: {self._log.read()[-2000:]}"}

    def peak(self):
        """Return the peak memory of the process and of those that it started, in GB."""
        pids = [self._process.pid]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            children = Path(f"/proc/{pids[0]}/task/{pids[0]}/children")
            pids += [int(pid) for pid in children.read_text().split()] if children.exists() else []
        return max((_peak_of(pid) for pid in pids), default=0.0)

    def end(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
        self._log.close()


def _peak_of(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM:")), default=0.0)


def judge(found, seconds, peak, name):
    """Return what is wrong with the way in which a file was read, or nothing."""
    if "died" in found["outcome"]:
        return found["outcome"]
    if seconds > SECONDS:
        return f"took {seconds:.0f} s"
    if peak > GIGABYTES:
        return f"needed {peak:.1f} GB"
    if "message" not in found:
        return ""
    kind, message = found["type"], found["message"]
    if kind not in EXPECTED and not kind.endswith(("OSError", "FileError", "ExistsError", "NotFoundError")):
        return f"{kind}: {message}"
    if "\n" in message or "Traceback" in message:
        return f"more than one line: {message}"
    # A model that was loaded names itself no more, it is used.
    return "" if name in message or found["outcome"].startswith("loaded") else f"does not name the file: {message}"


def fuzz(number, *, seed=0, first=0, keep=None, report=None):
    """Damage files and have them read.

    Parameters
    ----------
    number : int
        How many.
    seed, first : int
        Seed, and number of the first one: ranges can be run one after the other.
    keep : Path, optional
        Folder for those that something was wrong with.
    report : callable, optional
        Called with the number of files done and a dict of figures.

    Returns
    -------
    findings : list of (str, str)
        Name of the file, and what was wrong.
    figures : dict
        Counts of outcomes, longest time and largest memory.
    """
    findings, outcomes = [], collections.Counter()
    figures = {"seconds": 0.0, "gigabytes": 0.0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "seeds").mkdir()
        make_seeds(folder / "seeds")
        seeds = sorted((folder / "seeds").iterdir())
        reader = Reader()
        for i in range(first, first + number):
            rng = np.random.default_rng([seed, i])
            chosen = seeds[i % len(seeds)]
            path = folder / f"x{i}-{chosen.name}"
            damaged_copy(chosen, path, rng)
            start = time.monotonic()
            found = reader.read(path)
            seconds, peak = time.monotonic() - start, reader.peak()
            wrong = judge(found, seconds, peak, path.name)
            figures = {"seconds": max(figures["seconds"], seconds), "gigabytes": max(figures["gigabytes"], peak)}
            outcomes[found["outcome"] if "died" not in found["outcome"] else "died"] += 1
            if wrong:
                findings.append((path.name, wrong))
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    path.rename(keep / path.name)
                if "died" in found["outcome"] or peak > GIGABYTES:
                    reader.end()
                    reader = Reader()
            if path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if report is not None and (i - first + 1) % 500 == 0:
                report(i - first + 1, figures | dict(outcomes) | {"findings": len(findings)})
        reader.end()
    return findings, figures | dict(outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("emvc-fuzz"))
    parser.add_argument("--work", action="store_true")
    options = parser.parse_args()
    if options.work:
        work()
        return 0

    def report(done, figures):
        print(done, figures, flush=True)

    start = time.monotonic()
    findings, figures = fuzz(options.number, seed=options.seed, first=options.first, keep=options.keep, report=report)
    print(f"{options.number} files in {time.monotonic() - start:.0f} s: {figures}")
    for name, wrong in findings:
        print(f"{name}: {wrong}")
    print(f"{len(findings)} findings" + (f", kept in {options.keep}" if findings else ""))
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
