"""One Chromium and one JupyterLab for all browser tests; a notebook of its own for each."""

import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Browser, JupyterPage, JupyterServer

LECTURES = Path(__file__).resolve().parents[2] / "notebooks"
SHOTS = Path(__file__).resolve().parents[2] / ".make" / "shots"


@pytest.fixture(scope="session")
def browser():
    with Browser(size=(1280, 1000)) as browser:
        yield browser


@pytest.fixture(scope="session")
def server():
    with JupyterServer(sorted(LECTURES.glob("*.ipynb"))) as server:
        yield server


@pytest.fixture
def open_notebook(browser, server, request):
    """Open a notebook made of the given cells (or a lecture by its file name) in JupyterLab (`app="lab"`) or Notebook 7 ("notebook")."""
    opened = []

    def open_(*cells, lecture=None, app="lab"):
        name = lecture
        if lecture is None:
            name = f"{request.node.name.replace('[', '-').replace(']', '')}.ipynb"
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
            nbformat.write(notebook, server.root / name)
        page = JupyterPage(browser, server, name, app)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()


@pytest.fixture
def shots():
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS
