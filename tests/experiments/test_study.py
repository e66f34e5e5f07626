import csv
import io
import json

import pytest

from emvc import cli
from emvc.experiments import figures, methods, paper, read_records, tables
from emvc.experiments.study import QUICK, Study, reproduce
from emvc.metrics import METRICS


def record(method="EMVC", parameters=None, failure=None, **numbers):
    scores = dict.fromkeys(METRICS, 0.5) | numbers
    return {"method": method, "parameters": json.dumps(parameters or {}), "failure": failure, **scores}


def test_printed_values_are_those_of_the_paper():
    webkb = paper.printed("webkb")
    assert webkb["EMVC", "accuracy"] == (0.972, 0.0)
    assert webkb["kernel addition", "nmi"] == (0.717, 0.0)
    assert len(webkb) == 10 * 7
    assert paper.printed("3sources") == {}
    assert {row.label for row in paper.rows()} == {method for method, _ in webkb}


def test_summary_has_means_deviations_and_differences():
    line = tables.summarize(
        "EMVC",
        [record(accuracy=0.9), record(accuracy=1.0), record(failure="no")],
        {("EMVC", "accuracy"): (0.972, 0.0)},
    )
    value = next(value for value in line.values if value.metric == "accuracy")
    assert value.mean == pytest.approx(0.95)
    assert value.std == pytest.approx(0.05)
    assert value.difference == pytest.approx(-0.022)
    assert (line.n_runs, line.failures) == (2, 1)


def test_tables_in_three_formats():
    lines = [
        tables.summarize("EMVC", [record(accuracy=0.9, parameters={"beta": 0.1})], {("EMVC", "accuracy"): (0.8, 0.0)}),
        tables.summarize("AMGL", [record("AMGL")], {}),
    ]
    markdown = tables.to_markdown(lines, "A title", ["A note."])
    assert "| EMVC | 0.500 (0.000) |" in markdown
    assert "0.900 (0.000) [0.800, +0.100]" in markdown
    assert "beta=0.1" in markdown
    assert markdown.endswith("A note.\n")
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(lines))))
    assert len(rows) == 14
    assert {row["paper"] for row in rows if row["method"] == "AMGL"} == {""}
    latex = tables.to_latex(lines, "A_title")
    assert r"\caption{A\_title}" in latex
    assert latex.count(r"\quad paper") == 1
    assert latex.count("{") == latex.count("}")


def test_curves_show_every_method_with_its_spread():
    records = {"EMVC": {0.1: [record(nmi=0.5), record(nmi=0.7)], 1.0: [record(nmi=0.9)]}, "AMGL": {0.1: [], 1.0: []}}
    figure = figures.curves(records, title="t", xlabel="x", log=True)
    line = figure.axes[0].containers[0].lines[0]
    assert line.get_xdata().tolist() == [0.1, 1.0]
    assert line.get_ydata() == pytest.approx([0.6, 0.9])
    images = figures.render(figure)
    assert images["png"].startswith(b"\x89PNG")
    assert b"<svg" in images["svg"]


def test_heat_map_has_a_cell_for_every_pair():
    records = [
        record(parameters={"beta": b, "lam": c}, accuracy=b + c / 10) for b in (0.1, 0.2, 0.3) for c in (1.0, 2.0)
    ]
    image = figures.heat_map(records, title="t").axes[0].images[0].get_array()
    assert image.shape == (3, 2)
    assert image[2, 1] == pytest.approx(0.5)


def test_every_method_has_its_own_look():
    assert set(figures.STYLE) == set(methods.METHODS)
    assert len({look[0] for look in figures.STYLE.values()}) == len(methods.METHODS)
    assert len({look[1] for look in figures.STYLE.values()}) == len(methods.METHODS)


def test_paper_protocol_chooses_by_labels_and_repeats_with_all_seeds(tmp_path):
    row = paper.Row("EMVC", "EMVC", {"beta": [0.0, 1.0], "lam": [0.0]})
    records = paper.run_row(row, "synthetic-small", "paper", tmp_path / "r.db", seeds=(0, 1, 2))
    assert [r["seed"] for r in records] == [0, 1, 2]
    assert {r["parameters"] for r in records} == {'{"beta": 1.0, "lam": 0.0}'}  # without weights it is at chance
    assert len(read_records(tmp_path / "r.db")) == 4  # one candidate was dropped after the first seed


def test_kernel_is_chosen_with_equal_weights_first(tmp_path, monkeypatch):
    options = {"beta": [0.01, 1.0], "lam": [0.01, 1.0], "affinity": ["rbf", "cosine"]}
    ran = []

    def pretend(cells, *_, **__):
        ran.extend(cell.parameters for cell in cells)
        kernels = {"rbf": 0.5, "cosine": 0.7}
        return [
            {"accuracy": kernels[c.parameters["affinity"]] + c.parameters["beta"] / 10, "parameters": c.parameters}
            for c in cells
        ]

    monkeypatch.setattr(paper, "run_cells", pretend)
    row = paper.Row("EMVC", "EMVC", options, kernel_first=True)
    records = paper.run_row(row, "synthetic-small", "paper", tmp_path / "r.db", seeds=(0, 1))
    assert [record["parameters"]["affinity"] for record in records] == ["cosine", "cosine"]
    assert records[0]["parameters"]["beta"] == 1.0
    unequal = [p["affinity"] for p in ran if p["beta"] != p["lam"]]
    assert unequal
    assert set(unequal) == {"cosine"}


def test_ablations_share_the_kernel_of_their_leader():
    rows = {row.label: row for row in paper.rows()}
    assert [label for label, row in rows.items() if row.leader] == ["EMVC(*)", "EMVC(g1)", "EMVC(l21)"]
    for row in rows.values():
        if row.leader:
            assert len(row.paper["affinity"]) > 1
            follower = row.following({"parameters": '{"affinity": "rbf-t100", "beta": 7.0}'})
            assert follower.paper == {**row.paper, "affinity": ["rbf-t100"]}


def test_honest_protocol_tries_nothing(tmp_path):
    row = next(row for row in paper.rows() if row.label == "EMVC")
    records = paper.run_row(row, "synthetic-small", "honest", tmp_path / "r.db", seeds=(0,))
    assert [r["parameters"] for r in records] == ["{}"]
    assert len(read_records(tmp_path / "r.db")) == 1
    assert paper.run_row(paper.rows()[6], "synthetic-small", "honest", tmp_path / "r.db") == []


def test_unknown_target(tmp_path):
    with pytest.raises(ValueError, match="Unknown target 'tables'; choose from synthetic, real"):
        reproduce("tables", Study(tmp_path / "r.db", QUICK), [], [])


def test_command_line_writes_tables_and_resumes(tmp_path, capsys, monkeypatch):
    arguments = ["reproduce", "synthetic", "--quick", "--protocol", "honest", "-o", str(tmp_path)]
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 0
    assert "Bayes limit" in capsys.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"records.sqlite", *(f"table-synthetic-small-honest.{ending}" for ending in ("md", "csv", "tex"))}
    monkeypatch.setattr("emvc.experiments.runner.run_cell", lambda *_: pytest.fail("run again"))
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 0


def test_command_line_refuses_unknown_names(capsys):
    for arguments in (["reproduce", "everything"], ["reproduce", "--protocol", "lucky"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(arguments)
        assert stopped.value.code == 1
        assert "error: Unknown" in capsys.readouterr().err
