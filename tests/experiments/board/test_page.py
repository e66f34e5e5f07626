import csv
import io
import re
from html.parser import HTMLParser

import pytest

from emvc.experiments.board.content import Board, Table
from emvc.experiments.board.page import board_files
from emvc.experiments.board.sections import make_sections

PICTURES = {"critical-difference.png", "heat-map.png", "ladder.png", "time-quality.png", "conditions.png"}
TABLES = {"board.html", "board.md", "board.csv", "records.csv"}


def record(dataset="a", method="ours", nmi=0.5, **fields):
    known = {
        "kind": "image", "half": "choose", "n_samples": 100, "n_views": 2, "n_clusters": 3, "error": "clean",
        "oracle": 0, "seed": 0, "seconds": 1.5, "peak_memory": 300.0, "flagged": None, "rank": None, "gap": None,
        "failure": None, "outcome": "done", "imputed": 0, "version": "1.2", "revision": "abc",
        "finished": "2024-05-06T07:08:09+00:00",
    }  # fmt: skip
    return {"dataset": dataset, "method": method, "nmi": nmi, "ari": nmi, "accuracy": nmi} | known | fields


def failed(**fields):
    nothing = {"nmi": None, "ari": None, "accuracy": None, "seconds": None, "outcome": "failed"}
    return record(**nothing | {"failure": "Traceback\n  somewhere\nValueError: no luck\n"} | fields)


def make_records(methods=("ours", "theirs"), datasets="abcd", errors=("clean", "noise view"), seeds=2):
    return [
        record(
            name, method, 0.9 - 0.2 * i - 0.1 * (error != "clean") * (1 - oracle) + 0.01 * seed,
            error=error, oracle=oracle, seed=seed, half=("choose", "confirm")[j % 2], kind=("text", "image")[j % 2],
        )
        for j, name in enumerate(datasets)
        for i, method in enumerate(methods)
        for error in errors
        for oracle in ((0,) if error == "clean" else (0, 1))
        for seed in range(seeds)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def files():
    return board_files(
        make_records(), reference="theirs", stages=[("ours", "theirs")], title="A board", notes=["A note."]
    )


def sections_of(records, reference="ours", stages=()):
    """The tables by section and heading, and the paragraphs by section, of a board that is not drawn."""
    sections = make_sections(Board(records, reference, stages, ()))
    tables = {(s.name, part.heading): part for s in sections for part in s.parts if isinstance(part, Table)}
    return tables, {s.name: " ".join(part for part in s.parts if isinstance(part, str)) for s in sections}


class Page(HTMLParser):
    """Headings, tables and attributes of a page; every element must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.tags, self.cells = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append((self.open[-1], data))
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_all_files_are_there(files):
    assert set(files) == TABLES | PICTURES
    assert all(files[name].startswith(b"\x89PNG") for name in PICTURES)


def test_page_is_self_contained_and_in_order(files):
    page = Page(files["board.html"].decode())
    headings = [text for level, text in page.headings if level == "h2"]
    assert headings == [
        "What was run", "Quality", "Average ranks", "Ladder of stages", "Quality under errors", "Share of the oracle",
        "By kind of data", "Every data set", "Time and memory", "Failures", "Data sets", "Protocol",
    ]  # fmt: skip
    assert page.headings[0] == ("h1", "A board")
    tags = {tag for tag, _ in page.tags}
    assert tags.isdisjoint({"script", "link", "iframe", "object"})
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
    links = [attrs[name] for _, attrs in page.tags for name in ("src", "href") if name in attrs]
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in links)
    anchors = {attrs.get("id") for _, attrs in page.tags}
    assert all(link[1:] in anchors for link in links if link.startswith("#"))


def test_pictures_have_words_and_tables_scroll(files):
    page = Page(files["board.html"].decode())
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(images) == len(PICTURES)
    assert all(len(attrs["alt"]) > 20 for attrs in images)
    text = files["board.html"].decode()
    assert text.count("<table>") == len(re.findall(r'<div class="scroll"[^>]*><table>', text))


def test_halves_are_printed_apart(files):
    for text in (files["board.html"].decode(), files["board.md"].decode()):
        for heading in ("All data sets (4)", "Half to choose (2)", "Half to confirm (2)"):
            assert heading in text


def test_a_half_without_data_is_said():
    _, texts = sections_of(make_records(datasets="a"))
    assert "Half to confirm: no data sets." in texts["headline"]


def test_markdown_has_the_tables_of_the_page(files):
    page = Page(files["board.html"].decode())
    text = files["board.md"].decode()
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    cells = [cell.replace("*", "").strip() for line in lines for cell in line.strip("|").split(" | ")]
    assert [cell for cell in cells if cell] == [cell.replace("\xa0", " ") for cell in page.cells]
    assert {f"{name}.png" for name in re.findall(r"\]\(([a-z-]+)\.png\)", text)} == PICTURES
    assert "1.2" in text
    assert "A note." in text


def test_headline_numbers(files):
    line = next(line for line in files["board.md"].decode().splitlines() if line.startswith("| ours | 4 |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2].startswith("**0.905 (0.9")
    assert cells[5:] == ["+0.200 (+0.200 to +0.200)", "4 / 0 / 0", "0.125"]


def test_robustness_is_the_share_of_the_oracle(files):
    text = files["board.md"].decode()
    section = text[text.index("## Share of the oracle") : text.index("## By kind of data")]
    assert f"| ours | **{0.805 / 0.905:.3f}** |" in section


def test_failed_runs_count_as_zero_and_are_listed():
    records = [record("a"), record("b"), failed(dataset="a", method="theirs"), record("b", "theirs", 0.4)]
    records += [failed(dataset="c", method="theirs", outcome="out of time", failure="300 s")]
    tables, texts = sections_of(records)
    assert "Runs that failed: 1; out of time: 1; out of memory: 0." in texts["run"]
    assert tables["failures", "Runs that did not end well"].rows == [
        ["theirs", "failed", "ValueError: no luck", "1", "a"],
        ["theirs", "out of time", "300 s", "1", "c"],
    ]
    ours, theirs = tables["headline", "All data sets (3)"].rows
    assert (ours[:3], theirs[:2]) == (["ours", "2", "0.500 (0.50–0.50)"], ["theirs", "3"])
    assert theirs[2].startswith("0.133 (0.00–")
    assert theirs[6] == "0 / 2 / 0"
    assert tables["time", ""].rows[1][:4] == ["theirs", "3", "1", "1"]


def test_board_csv_has_means_over_seeds_and_records_csv_every_run(files):
    rows = rows_of(files["board.csv"])
    assert len(rows) == 4 * 2 * 3
    row = next(
        r for r in rows if (r["dataset"], r["method"], r["error"], r["oracle"]) == ("a", "ours", "noise view", "0")
    )
    assert float(row["nmi"]) == pytest.approx(0.805)
    assert (row["seeds"], row["kind"], row["half"], row["n_samples"]) == ("2", "text", "choose", "100")
    records = rows_of(files["records.csv"])
    assert len(records) == 4 * 2 * 3 * 2
    assert {"version", "revision", "finished", "outcome", "peak_memory"} <= set(records[0])


def test_facts_that_a_failed_run_does_not_know_come_from_others():
    ignorant = {"n_views": None, "n_clusters": None}
    tables, _ = sections_of([failed(seed=0, **ignorant), record(seed=1), failed(seed=2, **ignorant)])
    assert tables["collection", "1 data set"].rows == [["a", "image", "choose", "100", "2", "3"]]


def test_same_records_in_any_order_give_the_same_bytes(files):
    records = make_records()[::-1]
    again = board_files(records, reference="theirs", stages=[("ours", "theirs")], title="A board", notes=["A note."])
    assert again == files


def test_hostile_names_do_no_harm():
    name = "<script>alert('x')</script> | \"q\" & $x$ _y_ %s {z} 日本"
    records = [record(name, method, 0.5, kind=name) for method in ("ours", name)]
    records += [failed(dataset="b", method=name, failure=name)]
    files = board_files(records, reference=name, stages=[(name, "ours")], title=name, notes=[name])
    page = Page(files["board.html"].decode())
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.headings[0] == ("h1", name)
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert all(set(attrs) == {"class", "src", "width", "height", "alt"} for attrs in images)
    assert any(name in attrs["alt"] for attrs in images)
    tables = [block for block in files["board.md"].decode().split("\n\n") if block.startswith("| ")]
    assert all(len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1 for block in tables)
    assert "<script>" not in re.sub(r"\\<", "", files["board.md"].decode())
    assert rows_of(files["board.csv"])[0]["dataset"] == name


def test_earlier_records_are_methods_of_their_own():
    earlier = [record(name, "ours", 0.2, version="1.1") for name in "abcd"]
    files = board_files(make_records(errors=("clean",)), reference="theirs", earlier=earlier)
    text = files["board.md"].decode()
    assert "| ours (earlier) | 4 | 0.200" in text
    assert "emvc 1.1 and 1.2" in text
    # Clean data alone have no picture of the conditions.
    assert set(files) == TABLES | PICTURES - {"conditions.png", "ladder.png"}
    assert "Quality under errors" not in files["board.html"].decode()


def test_one_method_on_two_sets():
    files = board_files(make_records(methods=("ours",), datasets="ab", errors=("clean",)), reference="ours")
    assert set(files) == TABLES | {"heat-map.png", "time-quality.png"}
    assert "reference" in files["board.md"].decode()


def test_columns_of_conditions_are_over_the_same_sets():
    records = make_records(datasets="ab") + make_records(datasets="cd", errors=("clean",))
    records += make_records(methods=("clean only",), errors=("clean",))
    tables, texts = sections_of(records)
    assert "run under errors (2)" in texts["conditions"]
    assert [row[0] for row in tables["conditions", "All data sets"].rows] == ["ours", "theirs"]
    assert len(tables["headline", "All data sets (4)"].rows) == 3


def test_conditions_of_the_halves_are_apart():
    records = [
        record(name, nmi=value, half=half, error=error)
        for name, half, value in (("a", "choose", 0.2), ("b", "confirm", 0.6))
        for error in ("clean", "noise view")
    ]
    tables, _ = sections_of(records)
    headings = ("All data sets", "Half to choose", "Half to confirm")
    assert [tables["conditions", heading].rows[0][1] for heading in headings] == ["0.400", "0.200", "0.600"]
    assert [tables["conditions", heading].folded for heading in headings] == [False, True, True]


def test_means_over_fewer_sets_say_so_and_do_not_stand_out():
    tables, _ = sections_of([record("a", "ours", 0.5), record("b", "ours", 0.4), record("a", "theirs", 0.9)])
    table = tables["kinds", ""]
    assert table.rows == [["theirs", "0.900 (1)"], ["ours", "0.450"]]
    assert table.strong == {(1, 1)}


def test_errors_without_clean_data():
    records = make_records(errors=("noise view",))
    tables, texts = sections_of(records, stages=[("ours", "theirs")])
    assert "the condition “noise view”" in texts["headline"]
    assert [row[1] for row in tables["ladder", "Half to choose"].rows] == ["noise view"]


def test_nothing_to_show():
    with pytest.raises(ValueError, match="There are no records to show; run at least one method on one data set"):
        board_files([], reference="ours")
    with pytest.raises(ValueError, match="The reference 'mine' has no records; choose from ours"):
        board_files([record()], reference="mine")
