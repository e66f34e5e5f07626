"""Views from files, joined on sample ids; hostile files are refused in one line."""

import io
import time

import h5py
import mudata
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from anndata import AnnData

from emvc import EMVC, read_views, to_mudata
from emvc.files import ReadOptions, read_file

X = np.arange(12.0).reshape(4, 3) + 0.5
Y = np.arange(8.0).reshape(4, 2) ** 2


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize(
    ("text", "ids", "columns"),
    [
        ("a,b\n1,2\n3,4\n", None, ("a", "b")),
        ('"a","b"\r\n1,2\r\n3,4\r\n', None, ("a", "b")),
        ("1,2\n3,4\n", None, ("0", "1")),
        ("id,a,b\ns1,1,2\ns2,3,4\n", ("s1", "s2"), ("a", "b")),
        (",a,b\n0,1,2\n1,3,4\n", ("0", "1"), ("a", "b")),
        ("s1,1,2\ns2,3,4\n", ("s1", "s2"), ("1", "2")),
        ("a,b\ns1,1,2\ns2,3,4\n", ("s1", "s2"), ("a", "b")),
        ("sample,1,2\n7,1,2\n8,3,4\n", ("7", "8"), ("1", "2")),
        ("gene;a;b\ns1;1;2\ns2;3;4\n", ("s1", "s2"), ("a", "b")),
        ("\ufeffa,b\n\n1,2\n\n3,4\n\n", None, ("a", "b")),
        ("0,1\n1.0,2\n3,4\n", None, ("0", "1")),
        ("Tier,11,7\ns1,1.0,2.0\ns2,3.0,4.0\n", ("s1", "s2"), ("11", "7")),
        ("id,a,b\n# of May\n#1,1,2\n#2,3,4\n", ("#1", "#2"), ("a", "b")),
        ("id,a,b\ns\u20281,1,2\ns\x85,3,4\n", ("s\u20281", "s"), ("a", "b")),
        ("country,2019,2020,2021\ns1,1,2,0\ns2,3,4,0\n", ("s1", "s2"), ("2019", "2020", "2021")),
        ("id,a,b\ns1,1,2,\ns2,3,4,\n", ("s1", "s2"), ("a", "b")),
        ("id,a,b,\ns1,1,2,\ns2,3,4,\n", ("s1", "s2"), ("a", "b")),
        ('"a" "b"\n"s1" 1 2\n"s2" 3 4\n', ("s1", "s2"), ("a", "b")),
        ("My study, of 2020\n\nid;a;b\ns1;1,0;2\ns2;3,0;4\n", ("s1", "s2"), ("a", "b")),
        ("# twice\n#id\ta\tb\ns1\t1\t2\n# and here\ns2\t3\t4\n", ("s1", "s2"), ("a", "b")),
        ("subject,a,b\n007,1,2\n010,3,4\n", ("007", "010"), ("a", "b")),
        ("site,subject,a,b\nX,7,1,2\nX,8,3,4\n", ("7", "8"), ("site", "a", "b")),
        ("id,a,b\ns1,1,2\n,,\ns2,3,4\n", ("s1", "s2"), ("a", "b")),
    ],
)
def test_header_and_ids_are_found(text, ids, columns, tmp_path):
    (view,) = read_file(write(tmp_path / "v.csv", text))
    assert (view.name, view.ids, view.columns) == ("v", ids, columns)
    np.testing.assert_array_equal(
        view.values.iloc[:, 1:] if "site" in columns else view.values.iloc[:, :2], [[1, 2], [3, 4]]
    )


def test_header_and_ids_may_be_named(tmp_path):
    path = write(tmp_path / "v.tsv", "a\tkey\tb\n1\tx\t2\n3\ty\t4\n")
    (view,) = read_file(path, options=ReadOptions(id_column="key"))
    assert view.ids == ("x", "y")
    np.testing.assert_array_equal(view.values, [[1, 2], [3, 4]])
    numbers = write(tmp_path / "n.csv", "1,2\n3,4\n5,6\n")
    assert read_file(numbers, options=ReadOptions(header=True))[0].columns == ("1", "2")
    assert read_file(numbers, options=ReadOptions(header=False))[0].n_samples == 3
    assert read_file(path, options=ReadOptions(id_column=""))[0].ids is None
    with pytest.raises(ValueError, match=r"v\.tsv has no column 'name' for the sample ids; it has 'a', 'key', 'b'"):
        read_file(path, options=ReadOptions(id_column="name"))


def test_text_stays_as_it_is_until_the_fit(tmp_path):
    path = write(tmp_path / "v.csv", "id,sex,age\ns1,f,1\ns2,m,2\ns3,NA,\ns4,f,3\n")
    (view,) = read_file(path)
    assert view.values["sex"].tolist()[:2] == ["f", "m"]
    assert view.values["age"].tolist()[1] == 2.0
    assert view.values.isna().sum().tolist() == [1, 1]


def test_a_header_may_be_longer_than_what_is_looked_at_first(tmp_path, rng):
    names = [f"a rather long name of feature number {i}" for i in range(9000)]
    table = pd.DataFrame(rng.standard_normal((3, 9000)).round(2), columns=names)
    table.to_csv(tmp_path / "v.csv", index=False)
    (view,) = read_file(tmp_path / "v.csv")
    assert view.columns == tuple(names)
    np.testing.assert_array_equal(view.values, table)


def test_row_numbers_are_no_ids_where_others_are_there_or_they_differ(tmp_path):
    table = pd.DataFrame(X, columns=list("abc"))
    table.to_csv(tmp_path / "zero.csv")
    table.set_axis(range(1, 5)).to_csv(tmp_path / "one.csv")
    table.set_axis(list("wxyz")).to_csv(tmp_path / "named.csv")
    joined = read_views([tmp_path / "zero.csv", tmp_path / "named.csv"])
    assert joined.sample_ids == list("wxyz")
    assert "zero: no sample ids; its rows were taken in the order of named.csv." in joined.notes
    assert len(read_views([tmp_path / "zero.csv", tmp_path / "one.csv"]).sample_ids) == 4
    assert len(read_views([tmp_path / "zero.csv", tmp_path / "zero.csv"]).sample_ids) == 4


def test_ids_are_found_by_what_files_have_in_common(tmp_path, rng):
    """A column of whole numbers that nobody would take for ids by its name, in another order in each file."""
    for name in ("one", "two"):
        numbers = rng.permutation(np.arange(100, 130))
        pd.DataFrame({"Fall": numbers, "value": numbers / 7}).to_csv(tmp_path / f"{name}.csv", index=False)
    joined = read_views([tmp_path / "one.csv", tmp_path / "two.csv"])
    assert joined.has_ids
    np.testing.assert_array_equal(joined.views["one"], joined.views["two"])


def test_of_two_columns_of_ids_that_which_the_other_file_has_counts(tmp_path):
    both = pd.DataFrame({"sample_id": list("xyz"), "patient_id": list("abc"), "v": [1.5, 2.5, 3.5]})
    both.to_csv(tmp_path / "both.csv", index=False)
    pd.DataFrame({"patient_id": list("cba"), "w": [3, 2, 1]}).to_csv(tmp_path / "one.csv", index=False)
    joined = read_views([tmp_path / "both.csv", tmp_path / "one.csv"])
    assert joined.sample_ids == list("abc")
    assert joined.views["both"].columns.tolist() == ["sample_id", "v"]
    assert joined.views["one"]["w"].tolist() == [1, 2, 3]


def test_numbers_in_excel_and_text_are_the_same_ids(tmp_path):
    pd.DataFrame({"a": [1.5, 2.5]}, index=pd.Index([7, 9], name="id")).to_excel(tmp_path / "one.xlsx")
    other = write(tmp_path / "two.csv", "id,b\n9,1\n7,2\n")
    joined = read_views([tmp_path / "one.xlsx", other])
    assert joined.sample_ids == ["7", "9"]
    assert joined.views["two"]["b"].tolist() == [2, 1]
    padded = write(tmp_path / "three.csv", "id,c\n007,1\n009,2\n")
    with pytest.raises(ValueError, match=r"\('7' and '007'\): use --match-ids loose"):
        read_views([tmp_path / "one.xlsx", padded])
    assert read_views([tmp_path / "one.xlsx", padded], match_ids="loose").sample_ids == ["7", "9"]


def test_lists_in_parquet_are_left_out(tmp_path):
    pd.DataFrame({"id": ["x", "y"], "v": [1.0, 2.0], "parts": [[1], [2, 3]]}).to_parquet(tmp_path / "a.parquet")
    joined = read_views([tmp_path / "a.parquet"])
    assert joined.views["a"].columns.tolist() == ["v"]
    assert joined.notes == ["a.parquet: Parquet table without the lists in 'parts'; sample ids from column 'id'."]


def test_ids_in_another_order_and_partly_missing(tmp_path):
    """The join is checked value by value, and the method takes its result."""
    one = write(tmp_path / "gene.csv", "id,a,b\ns1,1,10\ns2,2,20\ns3,3,30\n")
    other = write(tmp_path / "lipid.csv", "id,c\ns4,400\ns3,300\ns1,100\n")
    third = write(tmp_path / "pixel.tsv", "id\td\ns2\t\ns1\t-1\ns4\t-4\ns3\t-3\n")
    joined = read_views([one, other, third])
    assert joined.sample_ids == ["s1", "s2", "s3", "s4"]
    np.testing.assert_array_equal(joined.views["gene"]["b"], [10, 20, 30, np.nan])
    np.testing.assert_array_equal(joined.views["lipid"]["c"], [100, np.nan, 300, 400])
    np.testing.assert_array_equal(joined.views["pixel"]["d"], [-1, np.nan, -3, -4])
    assert joined.views["lipid"].index.tolist() == joined.sample_ids
    assert joined.notes[-2:] == [
        "gene: 1 of 4 samples is missing ('s4').",
        "lipid: 1 of 4 samples is missing ('s2').",
    ]


def test_joined_views_are_clustered_right(tmp_path, blobs):
    views, labels = blobs
    rng = np.random.default_rng(0)
    names = np.array([f"p{i:02d}" for i in range(60)])
    present = np.sort(rng.choice(60, 50, replace=False))
    shuffled = rng.permutation(present)
    pd.DataFrame(views[0], index=names).to_csv(tmp_path / "a.csv")
    pd.DataFrame(views[1][shuffled], index=names[shuffled]).to_csv(tmp_path / "b.csv")
    joined = read_views([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert joined.sample_ids == names.tolist()
    np.testing.assert_array_equal(joined.views["b"].to_numpy()[present], views[1][present])
    assert np.isnan(np.delete(joined.views["b"].to_numpy(), present, axis=0)).all()
    np.testing.assert_array_equal(EMVC(3, random_state=0, n_jobs=1).fit_predict(joined.views), labels)


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", first=X, second=Y.T, labels=np.arange(4), note=np.array("text"))
    scipy.sparse.save_npz(tmp_path / "c.npz", scipy.sparse.csr_matrix(Y))
    joined = read_views([tmp_path / "a.npy", tmp_path / "b.npz", tmp_path / "c.npz"])
    assert list(joined.views) == ["a", "first", "second", "c"]
    assert not joined.has_ids
    np.testing.assert_array_equal(joined.views["second"], Y)
    np.testing.assert_array_equal(joined.views["c"].toarray(), Y)
    assert joined.notes == [
        "b.npz: 'labels' looks like true classes and was left out.",
        "b.npz: 'note' is no matrix of numbers and was left out.",
        "second: stored as features x samples, transposed.",
    ]


def test_array_files_are_turned_to_fit_the_others(tmp_path):
    np.save(tmp_path / "a.npy", X.T)
    text = write(tmp_path / "b.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n")
    joined = read_views([tmp_path / "a.npy", text])
    np.testing.assert_array_equal(joined.views["a"], X)
    named = write(tmp_path / "c.csv", "id,b\nx,2\ny,4\nz,6\nw,8\n")
    joined = read_views([tmp_path / "a.npy", named])
    assert joined.sample_ids == ["x", "y", "z", "w"]
    assert joined.notes[-1] == "a: no sample ids; its rows were taken in the order of c.csv."
    np.savez(tmp_path / "d.npz", v=X, ids=np.array(["w", "x", "y", "z"]))
    joined = read_views([named, tmp_path / "d.npz"])
    np.testing.assert_array_equal(joined.views["v"], X[[1, 2, 3, 0]])


def cell(*matrices):
    box = np.empty((1, len(matrices)), dtype=object)
    for i, matrix in enumerate(matrices):
        box[0, i] = matrix
    return box


def test_matlab_files(tmp_path):
    content = {"X": cell(X.T.astype(np.uint8), scipy.sparse.csc_matrix(Y.T)), "gt": np.arange(4)[:, None], "k": 3}
    scipy.io.savemat(tmp_path / "a.mat", content)
    joined = read_views([tmp_path / "a.mat"])
    assert list(joined.views) == ["X1", "X2"]
    np.testing.assert_array_equal(joined.views["X1"], X.astype(np.uint8))
    np.testing.assert_array_equal(joined.views["X2"].toarray(), Y)
    scipy.io.savemat(tmp_path / "b.mat", {"words": X, "links": Y})
    assert list(read_views([tmp_path / "b.mat"]).views) == ["words", "links"]


def test_matlab_files_of_version_73(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        cells = file.create_group("#refs#")
        refs = file.create_dataset("X", (1, 2), dtype=h5py.ref_dtype)
        for i, matrix in enumerate((X, Y)):
            refs[0, i] = cells.create_dataset(str(i), data=matrix.T).ref
        file.create_dataset("y", data=np.arange(4.0)[None])
        group = file.create_group("S")
        matrix = scipy.sparse.csc_matrix(Y)
        group.attrs["MATLAB_sparse"] = 4
        group["data"], group["ir"], group["jc"] = matrix.data, matrix.indices, matrix.indptr
        file.create_dataset("name", data=np.array([[65, 66]], dtype=np.uint16)).attrs["MATLAB_class"] = np.bytes_(
            "char"
        )
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    joined = read_views([path])
    np.testing.assert_array_equal(joined.views["X1"], X)
    np.testing.assert_array_equal(joined.views["X2"], Y)
    np.testing.assert_array_equal(joined.views["S"].toarray(), Y)
    monkeypatch.setattr("emvc.files._apart._serving", True)
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(
        ImportError, match=r"a\.mat, a MATLAB file of version 7\.3, needs h5py: pip install 'emvc\[mat73"
    ):
        read_views([path])


def test_parquet_tables(tmp_path):
    pd.DataFrame(X, index=list("abcd"), columns=["u", "v", "w"]).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"key": list("dcba"), "z": [1, 2, None, 4]}).to_parquet(tmp_path / "b.parquet")
    joined = read_views([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert joined.sample_ids == list("abcd")
    np.testing.assert_array_equal(joined.views["b"]["z"], [4, np.nan, 2, 1])
    pd.DataFrame({"key": ["a", None], "z": [1, 2]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c\.parquet: the sample id in row 1 is empty"):
        read_file(tmp_path / "c.parquet", options=ReadOptions(id_column="key"))


@pytest.fixture
def mdata(blobs):
    names = np.array([f"cell{i}" for i in range(60)])
    parts = {}
    for name, view, rows in (("rna", blobs[0][0], np.arange(60)), ("atac", blobs[0][1], np.arange(59, 9, -1))):
        features = pd.DataFrame(index=[f"{name}{i}" for i in range(view.shape[1])])
        parts[name] = AnnData(view[rows], obs=pd.DataFrame(index=names[rows]), var=features)
    with mudata.set_options(pull_on_update=False):
        yield mudata.MuData(parts)


def test_mudata_in_and_out(mdata, blobs, tmp_path):
    model = EMVC(3, random_state=0, n_jobs=1).fit(mdata)
    order = [int(name[4:]) for name in mdata.obs_names]
    truth = np.asarray(blobs[1])[order]
    assert len(set(zip(truth, model.labels_, strict=True))) == 3
    assert model.view_names_ == ["rna", "atac"]
    assert np.isnan(model.sample_errors_[:, 1]).sum() == 10
    np.testing.assert_array_equal(model.predict(mdata), model.labels_)
    to_mudata(model, mdata)
    np.testing.assert_array_equal(mdata.obs["emvc_label"], model.labels_)
    assert {"emvc_error_rna", "emvc_error_atac", "emvc_outlier"} <= set(mdata.obs.columns)
    frame = model.labels_frame()
    assert frame.index.tolist() == mdata.obs_names.tolist()
    mdata.write(tmp_path / "m.h5mu")
    joined = read_views([tmp_path / "m.h5mu"])
    assert joined.notes == ["atac: 10 of 60 samples are missing ('cell0', 'cell1', 'cell2', 'cell3', 'cell4', ...)."]
    again = EMVC(3, random_state=0, n_jobs=1).fit(joined.views)
    by_name = dict(zip(joined.sample_ids, again.labels_, strict=True))
    assert len({(by_name[name], label) for name, label in zip(mdata.obs_names, model.labels_, strict=True)}) == 3
    unnamed = EMVC(3, random_state=0, n_jobs=1).fit([view[:50] for view in blobs[0]])
    with pytest.raises(ValueError, match="The model has 50 samples, the MuData 60 observations"):
        to_mudata(unnamed, mdata)


def test_frames_out(blobs):
    frames = {name: pd.DataFrame(view).rename("s{}".format) for name, view in zip("ab", blobs[0], strict=True)}
    model = EMVC(3, random_state=0, n_jobs=1).fit(frames)
    table = model.labels_frame()
    assert table.index[:2].tolist() == ["s0", "s1"]
    np.testing.assert_array_equal(table["label"], model.labels_)
    assert {"error_a", "error_b", "outlier", "outlier_a", "missing_b"} <= set(table.columns)
    assert not hasattr(model.fit(blobs[0]), "sample_names_")


def test_error_report_in_notebooks_is_escaped(blobs):
    views = [view.copy() for view in blobs[0]]
    views[0][3] = 1e3
    model = EMVC(3, random_state=0, n_jobs=1).fit({"<script>alert(1)</script>": views[0], "b": views[1]})
    page = model.error_report()._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<td>3</td>" in page


HOSTILE = {
    "ragged.csv": (b"a,b\n1,2\n3\n", r"ragged\.csv: line 3 has 1 cells instead of 2"),
    "long.csv": (b"a,b\n1,2\n3,4,5\n", r"long\.csv: line 3 has 3 cells instead of 2"),
    "twice.csv": (b"id,a\ns1,1\ns2,2\ns1,3\n", r"twice\.csv: the sample id 's1' appears twice \(line 4 and line 2\)"),
    "noid.csv": (b"id,a\ns1,1\n ,2\n", r"noid\.csv: the sample id in line 3 is empty"),
    "header.csv": (b"id,a,b\n", r"header\.csv has a header but no samples"),
    "empty.csv": (b"", r"empty\.csv is empty"),
    "huge.csv": (b"a,b\n1,2\n3,1e308\n", r"huge\.csv: the value 1e\+308 in line 3, column 'b' is too large"),
    "inf.csv": (b"a,b\n1,inf\n3,4\n", r"inf\.csv: the value inf in line 2, column 'b' is too large"),
    "nul.csv": (b"a,b\n1,2\n3,\x00\n", r"nul\.csv"),
    "quote.csv": (b'a,b\n1,"2\n3,4\n', r"quote\.csv is not readable as a table"),
    "bad.npz": (b"PK\x03\x04nothing", r"bad\.npz cannot be read"),
    "bad.npy": (b"\x93NUMPY", r"bad\.npy"),
    "bad.mat": (b"MATLAB 5.0 MAT-file" + b"x" * 200, r"bad\.mat cannot be read as a MATLAB file"),
    "bad.parquet": (b"PAR1", r"bad\.parquet cannot be read as a Parquet table"),
    "bad.h5mu": (b"nothing", r"bad\.h5mu cannot be read as a MuData file"),
    "page.csv": (b"<!DOCTYPE html>\n<html>404</html>\n", r"page\.csv is a page of the web or XML, no table"),
    "wrong.csv": (b"id,a\ns1,1\ns1,2\ns2,2\ns3,3\n", r"'s1' appears twice .* Keep one row per sample"),
    "bad.h5ad": (b"nothing", r"bad\.h5ad cannot be read as an AnnData file"),
    "bad.xlsx": (b"PK\x03\x04nothing", r"bad\.xlsx cannot be read as a workbook"),
    "bad.csv.gz": (b"\x1f\x8bnothing", r"bad\.csv\.gz is not a readable \.gz file"),
    "view.rds": (b"", r"view\.rds: \.rds files are not read here\. In R, write the table with write\.csv"),
    "view.xyz": (b"", r"view\.xyz: unknown kind of file '\.xyz'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    content, message = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as refusal:
        read_views([tmp_path / name])
    assert "\n" not in str(refusal.value)


def test_pickles_are_not_read(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "b.npz", np.array([{"a": 1}], dtype=object))
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match="holds Python objects instead of numbers"):
            read_views([tmp_path / name])


def test_files_that_do_not_fit_together(tmp_path):
    one = write(tmp_path / "a.csv", "a,b\n1,2\n3,4\n")
    longer = write(tmp_path / "b.csv", "a,b\n1,2\n3,4\n5,6\n")
    with pytest.raises(ValueError, match=r"a\.csv: the views do not have the same samples: a 2 x 2, b 3 x 2"):
        read_views([one, longer])
    left, right = write(tmp_path / "l.csv", "id,a\nx,1\ny,2\n"), write(tmp_path / "r.csv", "id,a\nz,1\nw,2\n")
    with pytest.raises(ValueError, match=r"r\.csv: r has no sample id in common"):
        read_views([left, right])
    with pytest.raises(ValueError, match="b is 3 x 2, but there are 2 samples"):
        read_views([left, longer])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_views([tmp_path / "none.csv"])
    with pytest.raises(IsADirectoryError, match="is a folder: name the files in it, one for each view"):
        read_views([tmp_path])
    with pytest.raises(ValueError, match="has no column 'key'"):
        read_views([one], id_column="key")
    with pytest.raises(ValueError, match="No files"):
        read_views([])


def test_text_is_read_fast_enough(tmp_path, rng):
    """At least 4 MB a second on a busy machine, so that 100 MB take less than half a minute."""
    buffer = io.StringIO()
    np.savetxt(buffer, rng.standard_normal((2000, 200)), fmt="%.8f", delimiter=",")
    path = write(tmp_path / "v.csv", buffer.getvalue())
    start = time.process_time()
    (view,) = read_file(path)
    assert view.values.shape == (2000, 200)
    assert path.stat().st_size / 1e6 / (time.process_time() - start) > 4


def test_views_of_files_with_equal_names_are_kept_apart(tmp_path):
    """Also where the number that tells two of them apart makes the name of a third."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    paths = [tmp_path / "one" / "gene.csv", tmp_path / "two" / "gene.csv", tmp_path / "gene-2.csv"]
    for i, path in enumerate(paths):
        write(path, f"id,a\ns1,{i}\ns2,5\n")
    joined = read_views(paths)
    assert {name: view["a"].iloc[0] for name, view in joined.views.items()} == {"gene": 0, "gene-3": 1, "gene-2": 2}
