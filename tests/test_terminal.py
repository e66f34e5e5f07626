"""Names are text: they cannot control a terminal, and on request they are no formulas in a spreadsheet."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from emvc import cli
from emvc._terminal import Console, csv_bytes, printable

EVIL = "gene\x1b]0;owned\x07\x1b[2J\x9b31m\rx\x08\u202e"


def shown(renderable):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    console.print(renderable)
    return stream.getvalue()


def table(name):
    found = Table()
    found.add_column(Text(name))
    found.add_row(Text(name))
    return found


@pytest.mark.parametrize("make", [Text, table, str], ids=["text", "table", "markup"])
def test_control_characters_never_reach_the_terminal(make):
    text = shown(make(EVIL))
    assert "gene" in text
    # What the library writes itself sets styles, and nothing else.
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
    )
    assert "\x1b]0" not in text
    assert "\x1b[2J" not in text


def test_what_the_library_asks_for_still_works():
    assert shown(Text("bold", style="bold")).startswith("\x1b[1m")
    stream = io.StringIO()
    with Progress(console=Console(file=stream, force_terminal=True, width=60)) as progress:
        progress.update(progress.add_task(EVIL, total=2), completed=2)
        progress.refresh()
    assert "\x1b[2K" in stream.getvalue()  # the line is erased and written again
    assert "\x1b]0" not in stream.getvalue()
    assert printable("line\n\ttab äöü 漢字") == "line\n\ttab äöü 漢字"


@pytest.fixture
def files(tmp_path, blobs):
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\x1b[2Jplain", *(f"s{i}" for i in range(55))]
    for name, view in zip("ab", blobs[0], strict=True):
        pd.DataFrame(view, index=pd.Index(names, name="id")).to_csv(tmp_path / f"{name}.csv")
    return names, [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*arguments, "--force"])
    assert stopped.value.code == 0


@pytest.mark.parametrize("safe", [False, True])
def test_formulas_are_neutralised_on_request(safe, files, tmp_path):
    names, paths = files
    flag = ["--safe-csv"] if safe else []
    run("cluster", *paths, "-k", "3", "-o", str(tmp_path / "out"), "--no-assess", "--jobs", "1", *flag)
    run("predict", str(tmp_path / "out" / "model.emvc"), *paths, "-o", str(tmp_path / "new.csv"), *flag)
    for path in (tmp_path / "out" / "labels.csv", tmp_path / "new.csv"):
        with path.open(newline="") as stream:
            found = [row["sample"] for row in csv.DictReader(stream)]
        dangerous = [name for name in found if name.startswith(("=", "+", "-", "@"))]
        assert dangerous == ([] if safe else names[:4])
        assert [name.removeprefix("'") for name in found] == names


def test_numbers_are_no_formulas():
    assert csv_bytes([["-x", -1, np.float64(-0.5)]], safe=True) == b"'-x,-1,-0.5\n"
