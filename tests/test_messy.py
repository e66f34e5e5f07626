"""Files as people have them: thirty sets are read, checked and clustered as the clean tables are."""

import json
import re
import shlex

import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from emvc import EMVC, cli
from messy import CASES, ENDS, N_CLUSTERS, write_set

SUGGESTED = {
    "one_table_transposed": {"transpose": ["lipid"]},
    "all_tables_transposed": {"transpose": ["clinic", "gene", "lipid"]},
    "ids_written_differently": {"match_ids": "loose"},
}
"""Options that `emvc check` must find out; all other sets need none."""

SAID = {
    "header_counts_columns": "header in the first line",
    "row_numbers_beside_ids": "sample ids from column 'id'",
    "numeric_subject": "sample ids from column 'subject'",
    "decimal_commas_and_semicolons": "separated by semicolons, header in the first line, decimal commas",
    "european_thousands": "decimal commas and thousands points",
    "utf16_from_a_spreadsheet": "UTF-16 text, separated by tabs",
    "latin1_names": "Latin-1 (Windows) text",
    "workbooks_with_notes": "sheet 'data' (also in it: 'read me'; FILE.xlsx::SHEET chooses), header in row 3",
    "parquet_with_an_index": "Parquet table; sample ids from column 'id'",
    "one_table_transposed": "lipid: features x samples in the file, so it is transposed",
    "comments_and_titles": "header in line 3, 2 lines above the table left out",
    "other_order_other_samples_other_id_columns": "sample ids from column 'Pseudonym'",
    "quotes_and_mixed_separators": "separated by bars",
    "aligned_text": "separated by blanks",
}
"""What was guessed, in the words of the notes."""


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    return stopped.value.code, capsys.readouterr()


@pytest.fixture(autouse=True)
def plain_report(monkeypatch):
    monkeypatch.setattr("emvc.report.write_report", lambda _model, path, **_: path.write_text("a report"))


def test_there_are_thirty_sets():
    assert len(CASES) == 30
    assert len(ENDS) <= 3


@pytest.mark.parametrize("name", sorted(set(CASES) - set(ENDS)))
def test_messy_files_are_clustered_as_clean_ones(name, capsys, tmp_path):
    messy = write_set(name, tmp_path)
    code, shown = run(capsys, "check", *messy.files, "--json")
    found = json.loads(shown.out)
    assert (code, found["problems"]) == (0, [])
    assert found["options"] == SUGGESTED.get(name, {})
    command = shlex.split(found["command"])
    if name in SUGGESTED:
        code, shown = run(capsys, "cluster", *messy.files, "-k", N_CLUSTERS, "-o", tmp_path / "none", "--no-assess")
        assert code == 1
        assert len(shown.err.splitlines()) == 1
        option = "--match-ids loose" if "match_ids" in found["options"] else "--transpose lipid"
        assert option in shown.err
        assert option in found["command"]
    command[command.index("auto")], command[command.index("result")] = str(N_CLUSTERS), str(tmp_path / "out")
    code, shown = run(capsys, *command[1:], "--no-assess", "--json")
    assert code == 0, shown.err
    assert SAID.get(name, "") in " ".join(json.loads(shown.out)["notes"])
    table = pd.read_csv(tmp_path / "out" / "labels.csv", dtype={"sample": str})
    numbers = [int(re.search(r"\d+$", sample.strip())[0]) for sample in table["sample"]]
    labels = pd.Series(table["label"].to_numpy(), index=numbers).sort_index()
    assert len(labels) == len(messy.truth)
    clean = EMVC(N_CLUSTERS, random_state=0, n_jobs=1).fit(messy.clean)
    assert adjusted_rand_score(messy.truth, clean.labels_) >= 0.95
    assert adjusted_rand_score(clean.labels_, labels) >= 0.95


@pytest.mark.parametrize("name", ENDS)
def test_the_rest_ends_in_one_line_that_says_what_to_do(name, capsys, tmp_path):
    messy = write_set(name, tmp_path)
    code, shown = run(capsys, "cluster", *messy.files, "-k", N_CLUSTERS, "-o", tmp_path / "out")
    assert code == 1
    assert len(shown.err.splitlines()) == 1
    assert messy.ends_with in shown.err
    code, shown = run(capsys, "check", *messy.files, "--json")
    assert code == 1
    assert messy.ends_with in json.loads(shown.out)["problems"][0]
