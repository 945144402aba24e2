"""Every lecture runs from top to bottom in JupyterLab, with errors only where it says so."""

import nbformat
import pytest
from conftest import LECTURES
from harness import screenshot

pytestmark = pytest.mark.e2e
NAMES = sorted(path.name for path in LECTURES.glob("*.ipynb"))


def test_there_is_a_lecture():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_lecture_runs(open_notebook, shots, name):
    cells = nbformat.read(LECTURES / name, as_version=4).cells
    notebook = open_notebook(lecture=name)
    for k, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        notebook.run_cell(k)
        raised = any(output["output_type"] == "error" for output in notebook.outputs(k))
        assert raised == ("raises-exception" in cell.metadata.get("tags", [])), cell.source
        if cell.source.startswith("%graphwidget"):
            widget = notebook.output(k).locator(".graphwidget").first
            widget.locator("[data-node]").first.wait_for()
            screenshot(widget, shots / f"{name}-{k}.png")
    assert notebook.log.problems() == []
    assert notebook.log.offsite() == []


@pytest.mark.parametrize("name", NAMES)
def test_the_lecture_is_committed_without_outputs(name):
    notebook = nbformat.read(LECTURES / name, as_version=4)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
