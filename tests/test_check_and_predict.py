"""`emvc check`, `emvc predict`, configuration files, and the same data through every kind of file."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mudata
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from rich.console import Console

import emvc
from emvc import EMVC, cli, files, read_views
from emvc.cli import cluster as cluster_module
from emvc.files import ReadOptions
from messy import clean_views, write_set


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    return stopped.value.code, capsys.readouterr()


@pytest.fixture(autouse=True)
def plain_report(monkeypatch):
    monkeypatch.setattr("emvc.report.write_report", lambda _model, path, **_: path.write_text("a report"))
    monkeypatch.setattr("emvc.cli.cluster._MOST_ASSESSED", 0)


@pytest.fixture
def tables():
    """Two tables of 60 samples, one with text and gaps."""
    views, truth = clean_views(n_samples=60)
    rng = np.random.default_rng(0)
    clinic = views["clinic"].mask(rng.random(views["clinic"].shape) < 0.05)
    clinic["sex"] = rng.choice(["f", "m"], 60)
    clinic["site"] = rng.choice(["Basel", "Oslo", "Turin"], 60)
    return {"gene": views["gene"], "clinic": clinic}, truth


@pytest.fixture
def model(capsys, tables, tmp_path):
    """A model that `emvc cluster` has written, and the tables beside it."""
    for name, table in tables[0].items():
        table.to_csv(tmp_path / f"{name}.csv")
    code, _ = run(
        capsys, "cluster", tmp_path / "gene.csv", tmp_path / "clinic.csv", "-k", 3, "-o", tmp_path / "out", "-q"
    )
    assert code == 0
    return tmp_path / "out" / "model.emvc"


def test_the_same_data_through_every_kind_of_file_give_the_same_labels(tables, tmp_path):
    """Tables with text and gaps as CSV, Excel, Parquet and DataFrame; numbers also as AnnData and MuData."""
    writers = {
        "a.csv": lambda table, path: table.to_csv(path),
        "b.csv": lambda table, path: table.to_csv(path, sep=";", decimal=",", encoding="utf-16"),
        "c.tsv.gz": lambda table, path: table.to_csv(path, sep="\t"),
        "d.xlsx": lambda table, path: table.to_excel(path),
        "e.parquet": lambda table, path: table.to_parquet(path),
        "f.parquet": lambda table, path: table.reset_index().to_parquet(path),
    }
    expected = EMVC(3, random_state=0, n_jobs=1).fit(tables[0])
    assert expected.intake_
    for name, write in writers.items():
        paths = []
        for view, table in tables[0].items():
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            paths.append(folder / f"{view}{name[1:]}")
            write(table, paths[-1])
        found = EMVC(3, random_state=0, n_jobs=1).fit(read_views(paths).views)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        np.testing.assert_array_equal(found.sample_errors_, expected.sample_errors_)
        assert [str(record) for record in found.intake_] == [str(record) for record in expected.intake_]
        assert found.sample_names_.tolist() == expected.sample_names_.tolist()


def test_annotated_files_give_the_labels_of_their_contents(tmp_path):
    views, _ = clean_views(n_samples=60)
    names = pd.DataFrame(index=views["gene"].index.to_numpy())
    parts = {
        name: AnnData(table.to_numpy(), obs=names, var=pd.DataFrame(index=table.columns))
        for name, table in views.items()
    }
    one = parts["gene"].copy()
    one.obsm["lipid"], one.obsm["X_pca"] = views["lipid"].to_numpy(), views["lipid"].to_numpy()[:, :2]
    one.layers["raw"] = one.X + 1
    one.write_h5ad(tmp_path / "one.h5ad")
    with mudata.set_options(pull_on_update=False):
        mudata.MuData(parts).write(tmp_path / "all.h5mu")
    expected = EMVC(3, random_state=0, n_jobs=1).fit(views)
    found = EMVC(3, random_state=0, n_jobs=1).fit(read_views([tmp_path / "all.h5mu"]).views)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert list(found.feature_names_in_["gene"]) == list(views["gene"].columns)
    assert list(read_views([tmp_path / "one.h5ad"]).views) == ["X", "lipid"]  # X_pca is computed from X
    assert list(read_views([tmp_path / "one.h5ad::X_pca"]).views) == ["X_pca"]
    raw = read_views([f"gene={tmp_path / 'one.h5ad'}::raw"]).views["gene"]
    np.testing.assert_array_equal(raw.values, views["gene"].to_numpy() + 1)
    with pytest.raises(ValueError, match=r"no entry of \.obsm 'spliced'"):
        read_views([tmp_path / "one.h5ad::spliced"])


def test_check_shows_what_is_in_files(capsys, tmp_path):
    messy = write_set("other_order_other_samples_other_id_columns", tmp_path)
    code, shown = run(capsys, "check", *messy.files)
    assert code == 0
    rows = [re.findall(r"[●·]|\b\d+\b", line) for line in shown.out.splitlines() if "●" in line]
    assert rows == [["●", "●", "●", "71"], ["●", "●", "·", "9"], ["·", "●", "●", "9"], ["·", "●", "·", "1"]]
    assert "note: lipid: 10 of 90 samples are missing" in shown.out
    assert f"Use: emvc cluster {messy.files[0]} {messy.files[1]} {messy.files[2]} -k auto -o result" in shown.out
    assert {path.name for path in tmp_path.rglob("*.csv")} == {path.name for path in messy.files}


def test_check_tells_types_gaps_and_known_classes(capsys, tables, tmp_path):
    table = tables[0]["clinic"].assign(label=tables[1].to_numpy(), remark=[f"note {i} of nurse" for i in range(60)])
    table.loc[table.index[:40], "clinic0"] = None
    table.to_csv(tmp_path / "clinic.csv")
    _, shown = run(capsys, "check", tmp_path / "clinic.csv", "--json")
    (view,) = json.loads(shown.out)["views"]
    assert (view["n_samples"], view["n_columns"]) == (60, 9)
    assert view["types"] == {"category": 2, "text": 1, "number": 6}
    assert view["missing"] == pytest.approx(table.isna().to_numpy().mean())
    assert "clinic: column 'site' is a category of 3 values: one column of 0 and 1 for each." in view["columns"]
    (warning,) = json.loads(shown.out)["warnings"]
    assert warning.startswith("clinic: column 'label' looks like known classes")
    assert warning in read_views([tmp_path / "clinic.csv"]).notes


def test_check_warns_of_a_view_given_twice_and_of_one_that_tells_nothing(capsys, tables, tmp_path):
    gene = tables[0]["gene"]
    gene.to_csv(tmp_path / "gene.csv")
    gene.iloc[::-1].to_csv(tmp_path / "copy.csv", sep=";")
    (gene * 0 + 1).to_csv(tmp_path / "flat.csv")
    files = [tmp_path / f"{name}.csv" for name in ("gene", "copy", "flat")]
    _, shown = run(capsys, "check", *files, "--json")
    assert json.loads(shown.out)["warnings"] == [
        "flat: no column tells the samples apart; leave the view out.",
        "gene and copy hold the same values, which would count twice: leave one of them out.",
    ]


def test_check_suggests_landmarks_for_many_samples(capsys, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10_001, 2)))
    _, shown = run(capsys, "check", tmp_path / "a.npy", "--json")
    assert json.loads(shown.out)["command"].endswith("-k auto --landmarks 500 -o result")


def test_help_says_what_a_view_is_and_where_to_start(capsys):
    assert "A view is one table about the samples" in run(capsys, "cluster", "--help")[1].out
    assert "Start with 'emvc check FILES...'" in run(capsys, "--help")[1].out
    assert "Views are matched by their names" in run(capsys, "predict", "--help")[1].out


def test_check_ends_with_1_where_files_cannot_be_clustered(capsys, tmp_path):
    (tmp_path / "a.csv").write_text("id,a,b\ns1,1,inf\ns2,3,4\n")
    (tmp_path / "b.csv").write_text("id,a\nx,1\ny,3\n")
    code, shown = run(capsys, "check", tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv", "--json")
    problems = json.loads(shown.out)["problems"]
    assert code == 1
    assert any("the value inf in line 2 (sample 's1'), column 'b' is too large" in problem for problem in problems)
    assert any(
        "b.csv: b has no sample id in common with the other views (a 's1', 's2'; b 'x', 'y')" in p for p in problems
    )
    assert any("c.csv does not exist" in problem for problem in problems)
    assert json.loads(shown.out)["command"] == ""


def test_a_written_config_reads_the_same_files_the_same_way(capsys, tmp_path, monkeypatch):
    messy = write_set("one_table_transposed", tmp_path)
    messy.files[0].write_text(messy.files[0].read_text().replace(",", ";"))
    monkeypatch.chdir(tmp_path)
    code, shown = run(capsys, "check", *messy.files, "--write-config", "study.toml")
    assert code == 0
    assert "Use: emvc cluster --config study.toml -k auto -o result" in shown.out
    text = Path("study.toml").read_text()
    assert '[files."one_table_transposed/lipid.csv"]' in text
    assert "transpose = true" in text
    assert 'separator = ";"' in text
    code, shown = run(capsys, "cluster", "--config", "study.toml", "-k", 3, "-o", "one", "-q")
    assert code == 0, shown.err
    run(capsys, "cluster", *messy.files, "--transpose", "lipid", "-k", 3, "-o", "two", "-q")
    assert Path("one/labels.csv").read_bytes() == Path("two/labels.csv").read_bytes()
    code, shown = run(capsys, "check", "--config", "study.toml", "--write-config", "study.toml")
    assert code == 1
    assert "study.toml exists" in shown.err


def test_a_config_says_how_each_file_is_read_and_gives_options(capsys, tmp_path):
    """Everything that may be said about a file is said once, and changes what is read."""
    (tmp_path / "a.txt").write_bytes("Größe|b|key|age\n1,5|2|x|7\n3,5|4|y|8\n5,5|1|z|9\n".encode("cp1252"))
    with pd.ExcelWriter(tmp_path / "b.xlsx", engine="openpyxl") as book:
        for name, shift in (("old", 0.0), ("new", 100.0)):
            frame = pd.DataFrame(np.arange(6.0).reshape(2, 3) + shift, index=["f", "g"], columns=list("zyx"))
            frame.to_excel(book, sheet_name=name)
    (tmp_path / "study.toml").write_text(
        "clusters = 2\noutput = 'found'\nno-such = 1\n"
        "[files.'a.txt']\nname = 'clinic'\nid_column = 'key'\nseparator = '|'\ndecimal = ','\nencoding = 'latin-1'\n"
        "header = true\ndrop = ['age']\n"
        "[files.'b.xlsx']\nsheet = 'new'\ntranspose = true\n"
    )
    config = files.read_config(tmp_path / "study.toml")
    assert config.options == {"clusters": 2, "output": "found", "no_such": 1}
    joined = read_views(config.paths, options=config.each)
    assert joined.sample_ids == ["x", "y", "z"]
    assert joined.views["clinic"].to_dict("list") == {"Größe": [1.5, 3.5, 5.5], "b": [2, 4, 1]}
    assert joined.views["b"].loc["x"].to_dict() == {"f": 102.0, "g": 105.0}
    code, shown = run(capsys, "cluster", "--config", tmp_path / "study.toml")
    assert (code, shown.err) == (1, "error: study.toml: 'emvc cluster' has no option 'no-such'.\n")
    text = (tmp_path / "study.toml").read_text().replace("no-such = 1\n", "quiet = true\n")
    (tmp_path / "study.toml").write_text(text)
    assert run(capsys, "cluster", "--config", tmp_path / "study.toml")[0] == 0
    assert (tmp_path / "found" / "labels.csv").exists()
    assert run(capsys, "cluster", "--config", tmp_path / "study.toml", "-o", tmp_path / "other")[0] == 0
    assert (tmp_path / "other" / "labels.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters = ", r"c\.toml is not readable as TOML"),
        ("files = 3", r"c\.toml: files are written as \[files\."),
        (
            "[files.'a.csv']\nseperator = ';'",
            r"c\.toml: a\.csv: there is no option 'seperator'; known are name, id_column",
        ),
        ("[files.'a.csv']\ntranspose = 'yes'", "transpose must be true or false, got 'yes'"),
        ("[files.'a.csv']\ndrop = 'age'", "drop must be a list of columns, got 'age'"),
        ("[files.'a.csv']\ndecimal = ';'", "decimal must be '.' or ',', got ';'"),
        ("[files.'a.csv']\nname = 3", "name of a.csv must be text"),
    ],
)
def test_configs_with_mistakes(text, message, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        files.read_config(tmp_path / "c.toml")


def test_options_for_files_that_are_not_there(tmp_path):
    (tmp_path / "a.csv").write_text("id,a\ns1,1\ns2,2\n")
    for options in ({"transpose": ["b"]}, {"options": {"b": ReadOptions()}}):
        with pytest.raises(ValueError, match="There is no file or view 'b' among those to read: a"):
            read_views([tmp_path / "a.csv"], **options)
    with pytest.raises(ValueError, match=r"a\.csv has no column 'age' to drop; it has 'id', 'a'"):
        read_views([tmp_path / "a.csv"], options={"a": ReadOptions(drop=("age",))})
    with pytest.raises(ValueError, match="match_ids"):
        read_views([tmp_path / "a.csv"], match_ids="fuzzy")


def test_ids_that_loose_matching_confuses_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("id,a\ns1.1,1\ns11,2\n")
    with pytest.raises(
        ValueError, match=r"a\.csv: the sample ids 's1\.1' and 's11' are the same when compared loosely"
    ):
        read_views([tmp_path / "a.csv"], match_ids="loose")


def test_a_partly_loose_join_is_said(tmp_path):
    (tmp_path / "a.csv").write_text("id,a\ns-1,1\ns-2,2\ns-3,3\n")
    (tmp_path / "b.csv").write_text("id,b\ns-1,1\ns-2,2\nS_3,3\n")
    joined = read_views([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert len(joined.sample_ids) == 4
    assert any("('s-3' and 'S_3'): use --match-ids loose" in note for note in joined.notes)
    assert read_views([tmp_path / "a.csv", tmp_path / "b.csv"], match_ids="loose").sample_ids == ["s-1", "s-2", "s-3"]


def test_new_samples_get_clusters(capsys, model, tables, tmp_path):
    """Views by name, columns by name in any order, rows in any order."""
    folder = tmp_path / "new"
    folder.mkdir()
    rows = np.random.default_rng(1).permutation(60)[:20]
    for name, table in tables[0].items():
        table.iloc[rows, ::-1].to_csv(folder / f"{name}.csv", sep=";", decimal=",")
    code, shown = run(capsys, "predict", model, folder / "clinic.csv", folder / "gene.csv", "-o", tmp_path / "new.csv")
    assert code == 0, shown.err
    assert "20 samples: labels are in" in shown.out
    assert "separated by semicolons, header in the first line, decimal commas" in shown.out
    found = pd.read_csv(tmp_path / "new.csv", index_col="sample")
    fitted = emvc.load(model)
    expected = pd.Series(fitted.labels_, index=fitted.sample_names_)
    assert found["label"].tolist() == expected[found.index].tolist()
    assert found.columns.tolist() == ["label", "confidence"]
    views = {name: table.iloc[rows] for name, table in tables[0].items()}
    np.testing.assert_allclose(
        found.loc[views["gene"].index, "confidence"], fitted.predict_proba(views).max(axis=1), atol=1e-4
    )


def test_new_samples_in_some_of_the_views(capsys, model, tables, tmp_path):
    tables[0]["gene"].iloc[:9].to_csv(tmp_path / "fresh.csv")
    assert run(capsys, "predict", model, f"gene={tmp_path / 'fresh.csv'}", "-o", tmp_path / "new.csv", "-q")[0] == 0
    found = pd.read_csv(tmp_path / "new.csv")
    assert found["label"].tolist() == emvc.load(model).labels_[:9].tolist()


def test_predict_names_what_does_not_fit(capsys, model, tables, tmp_path):
    tables[0]["gene"].rename(columns={"gene2": "other"}).to_csv(tmp_path / "renamed.csv")
    emvc.KernelAddition(3, random_state=0).fit([np.eye(6) + i for i in range(2)]).save(tmp_path / "k.emvc")
    for arguments, message in (
        (
            [model, tmp_path / "renamed.csv"],
            "The model has no view 'renamed'; it has 'gene', 'clinic'. Name the files so",
        ),
        ([model, f"gene={tmp_path / 'renamed.csv'}"], "column 'gene2' is missing"),
        ([tmp_path / "k.emvc", tmp_path / "gene.csv"], "is a KernelAddition, which cannot place new samples"),
        ([tmp_path / "gene.csv", tmp_path / "gene.csv"], "is not a model file"),
        ([tmp_path / "none", tmp_path / "gene.csv"], "none does not exist"),
    ):
        code, shown = run(capsys, "predict", *arguments, "-o", tmp_path / "new.csv")
        assert code == 1
        assert message in shown.err
        assert len(shown.err.splitlines()) == 1
        assert not (tmp_path / "new.csv").exists()
    (tmp_path / "new.csv").write_text("mine")
    code, shown = run(capsys, "predict", model, tmp_path / "gene.csv", "-o", tmp_path / "new.csv")
    assert code == 1
    assert "exists; choose another name, or --force" in shown.err
    assert run(capsys, "predict", model, tmp_path / "gene.csv", "-o", tmp_path / "new.csv", "--force")[0] == 0


def test_one_hot_is_accepted_and_said_to_be_without_effect(capsys, model, tmp_path):
    files_ = [tmp_path / "gene.csv", tmp_path / "clinic.csv"]
    code, shown = run(capsys, "cluster", *files_, "-k", 3, "--one-hot", "-o", tmp_path / "again")
    assert code == 0
    assert "note: --one-hot has no effect any more" in shown.out
    assert (tmp_path / "again" / "labels.csv").read_bytes() == (model.parent / "labels.csv").read_bytes()


def test_first_compilation_is_announced_on_terminals_only(monkeypatch, tmp_path):
    from emvc.kernels import rows

    dispatcher = next(value for value in vars(rows).values() if hasattr(value, "stats"))
    told = io.StringIO()
    monkeypatch.setattr(cluster_module, "err", Console(file=told, force_terminal=True))
    monkeypatch.setattr(dispatcher._cache, "_cache_path", str(tmp_path))
    cluster_module.announce_compilation(silent=True)
    assert told.getvalue() == ""
    cluster_module.announce_compilation(silent=False)
    assert "compiling, once, about 20 s ..." in told.getvalue()
    (tmp_path / "rows.any-1.py311.nbi").write_text("compiled")
    said = told.getvalue()
    cluster_module.announce_compilation(silent=False)
    assert told.getvalue() == said


def test_shells_can_complete_commands():
    code = "import sys; from emvc.cli import main; sys.argv[0] = 'emvc'; main()"
    words = {"_EMVC_COMPLETE": "complete_bash", "COMP_WORDS": "emvc che", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env=os.environ | words, capture_output=True, text=True, check=False)
    assert shown.stdout.split() == ["check"]
