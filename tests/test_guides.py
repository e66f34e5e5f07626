"""The code of the guides runs as printed."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCKS = re.compile(r"^```(python|text)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["dataframes.md"])
def test_the_code_of_a_guide_prints_what_the_guide_says(page):
    namespace, printed = {}, ""
    blocks = BLOCKS.findall((DOCS / page).read_text(encoding="utf-8"))
    assert [kind for kind, _ in blocks].count("python") > 3
    for kind, content in blocks:
        if kind == "text":
            assert printed == content
            continue
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            exec(compile(content, page, "exec"), namespace)
        printed = stream.getvalue()
