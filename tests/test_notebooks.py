"""The notebooks run from top to bottom and print what is stored in them."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def texts(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[output.get("text") or output["data"]["text/plain"] for output in cell.outputs] for cell in cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the kernel's client
def test_notebooks_print_what_is_stored_in_them(path):
    stored = nbformat.read(path, as_version=4)
    wanted = texts(stored)
    assert sum(map(len, wanted)) > 3
    client = nbclient.NotebookClient(stored, timeout=120, kernel_name="python3")
    assert texts(client.execute()) == wanted
