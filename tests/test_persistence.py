"""Models as files: the same model comes back, and nothing else is accepted."""

import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import emvc
from emvc import (
    AMGL,
    EMVC,
    ETLMSC,
    GMC,
    LMVSC,
    NEMO,
    RMSC,
    SNF,
    BestSingleView,
    CoRegularized,
    FeatureConcatenation,
    KernelAddition,
    persistence,
)
from emvc.method import landmarks
from emvc.persistence import ModelFileError
from emvc.solvers import ADMM

PEERS = [SNF, NEMO, GMC, LMVSC, ETLMSC]
ESTIMATORS = [EMVC, RMSC, AMGL, CoRegularized, KernelAddition, FeatureConcatenation, BestSingleView, *PEERS]


def assert_same(one, other):
    """Compare fitted attributes, whatever they hold."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif scipy.sparse.issparse(one):
        assert abs(one - other).nnz == 0
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif hasattr(one, "__dict__"):
        assert type(one) is type(other)
        names = vars(one).keys() - {"problem_", "_alone"}  # are made again by a fit
        assert names == vars(other).keys()
        for name in names:
            assert_same(vars(one)[name], vars(other)[name])
    else:
        assert one == other or (np.isnan(one) and np.isnan(other))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_every_estimator_comes_back(estimator, blobs, tmp_path):
    frames = {name: pd.DataFrame(view).rename("s{}".format) for name, view in zip("ab", blobs[0], strict=True)}
    model = estimator(3, random_state=0).fit(frames)
    model.save(tmp_path / "m.emvc")
    again = emvc.load(tmp_path / "m.emvc")
    assert again.get_params() == model.get_params()
    assert_same(model, again)
    assert [path.name for path in tmp_path.iterdir()] == ["m.emvc"]


def test_saved_models_predict_the_same(blobs, tmp_path):
    views = [scipy.sparse.csr_array(blobs[0][0]), blobs[0][1].copy()]
    views[1][4] = np.nan
    model = EMVC("auto", solver=ADMM(tol=1e-3), dtype=np.float32, random_state=0, n_jobs=1).fit(views)
    model.save(str(tmp_path / "m.emvc"))
    again = emvc.load(str(tmp_path / "m.emvc"))
    rng = np.random.default_rng(0)
    new = [rng.standard_normal((50, 4)), 3 * rng.standard_normal((50, 6))]
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert str(again.error_report()) == str(model.error_report())
    assert again.solver == ADMM(tol=1e-3)
    again.fit(views)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("models") / "m.emvc"
    KernelAddition(2, random_state=0).fit(rng.standard_normal((30, 2))).save(path)
    return path


def rewrite(saved, path, change, *, compression=zipfile.ZIP_STORED):
    """Write the archive anew with changed members and the right checksum, as a forger would."""
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != "sha256"}
    members = change(members) or members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("sha256", persistence._checksum(members))


def in_json(**changes):
    def change(members):
        members["model.json"] = json.dumps(json.loads(members["model.json"]) | changes).encode()

    return change


def with_attribute(name, value):
    def change(members):
        content = json.loads(members["model.json"])
        content["attributes"][name] = value
        members["model.json"] = json.dumps(content).encode()

    return change


def object_array(members):
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    members["arrays/0.npy"] = buffer.getvalue()


def huge_array(members):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    members["arrays/0.npy"] = buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_json(format_version=1), "format version 1 .* is not known to emvc"),
        (in_json(format="other"), "not a model file"),
        (in_json(**{"class": "os.system"}), r"unknown class 'os\.system'"),
        (in_json(params={"n_clusters": 2, "shell": "rm"}), "unknown parameter or attribute 'shell'"),
        (in_json(attributes={}), "it has no labels"),
        (in_json(attributes=[]), "parameters or attributes are missing"),
        (with_attribute("__class__", "x"), "unknown parameter or attribute '__class__'"),
        (with_attribute("fit", "x"), "unknown parameter or attribute 'fit'"),
        (with_attribute("history_", {"record": "Popen", "fields": {}}), "unknown record 'Popen'"),
        (with_attribute("history_", {"record": "History", "fields": {"x": 1}}), "its content does not fit together"),
        (with_attribute("weights_", {"array": 99}), "its content does not fit together"),
        (with_attribute("weights_", {"array": -1}), "array -1 does not exist"),
        (with_attribute("weights_", json.loads("[" * 30 + "]" * 30)), "nested too deeply"),
        (with_attribute("weights_", json.loads('{"dict": {"a": ' * 30 + "1" + "}}" * 30)), "nested too deeply"),
        (object_array, "does not have the size or the type"),
        (huge_array, "does not have the size or the type"),
        (lambda members: members.update({"arrays/0.npy": b"nothing"}), "damaged header"),
        (lambda members: members.update({"model.json": b"{"}), "not JSON"),
        (lambda members: members.update({"../evil": b"x"}), r"unexpected member '\.\./evil'"),
        (lambda members: {"arrays/0.npy": b"", **members}, "incomplete or out of order"),
    ],
)
def test_forged_files_are_refused(change, message, saved, tmp_path):
    rewrite(saved, tmp_path / "m.emvc", change)
    with pytest.raises(ModelFileError, match=message) as refusal:
        emvc.load(tmp_path / "m.emvc")
    assert "\n" not in str(refusal.value)


def test_compressed_files_are_refused(saved, tmp_path):
    rewrite(saved, tmp_path / "m.emvc", lambda members: members, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        emvc.load(tmp_path / "m.emvc")


def test_damaged_files_are_refused(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "m.emvc"
    for length in (0, 1, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"m\.emvc"):
            emvc.load(path)
    for position in np.linspace(30, len(content) - 30, 40).astype(int):
        changed = bytearray(content)
        changed[position] ^= 0x01
        path.write_bytes(changed)
        try:  # bits that mean nothing, such as a date, may change without harm
            assert_same(emvc.load(path).labels_, emvc.load(saved).labels_)
        except ModelFileError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017
    rewrite(saved, path, lambda members: members)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["arrays/0.npy"] = members["arrays/0.npy"][:-1] + b"\x07"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match="the checksum does not match"):
        emvc.load(path)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    with pytest.raises(ModelFileError, match="not a model file"):
        emvc.load(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError, match="nothing"):
        emvc.load(tmp_path / "nothing")


def kernel(view):
    return np.exp(-((view[:, None] - view) ** 2).sum(axis=2) / 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"affinity": kernel, "scale": None}, "affinity is a function and cannot be written"),
        ({"random_state": np.random.default_rng(0)}, "random_state is of type Generator"),
    ],
)
def test_what_cannot_be_written(options, message, blobs, tmp_path):
    model = EMVC(3, n_jobs=1, **options).fit(blobs[0])
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "m.emvc")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "m.emvc"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        emvc.load(saved).save(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.emvc"]
    with pytest.raises(IsADirectoryError, match="is a folder"):
        emvc.load(saved).save(tmp_path)
    with pytest.raises(NotFittedError, match="not fitted"):
        EMVC(3).save(path)


@pytest.mark.parametrize("embedding", ["diffusion", "unit-rows", "plain", "weighted"])
def test_models_with_any_embedding_are_read(embedding, blobs, tmp_path):
    model = EMVC(3, embedding=embedding, random_state=0).fit(blobs[0])
    model.save(tmp_path / "m.emvc")
    again = emvc.load(tmp_path / "m.emvc")
    np.testing.assert_array_equal(again.predict(blobs[0]), model.predict(blobs[0]))


@pytest.mark.parametrize("training", [True, False])
def test_landmarks_that_cannot_be_believed_keep_nothing_from_being_saved(training, blobs, tmp_path):
    views = [view.copy() for view in blobs[0]]
    rows = landmarks.draw(len(views[0]), 20)[[0, 7]]
    for view in views:
        view[rows] = 1e4 * np.random.default_rng(1).random((2, view.shape[1]))
    model = EMVC(3, n_landmarks=20, random_state=0).fit(views)
    assert not np.isin(rows, model.landmarks_).any()
    assert np.isfinite(model.confidence_).all()
    model.save(tmp_path / "m.emvc", training=training)
    again = emvc.load(tmp_path / "m.emvc")
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    if training:
        np.testing.assert_array_equal(again.predict_proba(views), model.predict_proba(views))


def test_saving_does_not_rest_on_assertions(tmp_path):
    """Python leaves these out with -O."""
    code = """
import sys
import emvc
from emvc.datasets import make_paper_synthetic
emvc.EMVC(2, random_state=0).fit(make_paper_synthetic(20, random_state=0).views).save(sys.argv[1])
"""
    subprocess.run([sys.executable, "-O", "-c", code, str(tmp_path / "m.emvc")], check=True)
    assert emvc.load(tmp_path / "m.emvc").reliability_.shape == (2,)
