"""One Chromium and one JupyterLab for all browser tests; a notebook of its own for each."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Browser, JupyterPage, JupyterServer

LECTURES = Path(__file__).resolve().parents[2] / "notebooks"
SHOTS = Path(__file__).resolve().parents[2] / ".make" / "shots"


SIZE = (1280, 1000)


@pytest.fixture(scope="session")
def browser():
    with Browser(size=SIZE) as browser:
        yield browser


@pytest.fixture(scope="session")
def server():
    with JupyterServer(sorted(LECTURES.glob("*.ipynb"))) as server:
        yield server


@pytest.fixture(scope="session")
def left_behind():
    """The last notebook of a test that passed, left with its JupyterLab open: to open it anew costs more than most tests."""
    return []


@pytest.fixture
def open_notebook(browser, server, left_behind, request):
    """Open a notebook made of the given cells (or a lecture by its file name) in JupyterLab (`app="lab"`) or Notebook 7 ("notebook").

    JupyterLab is the one in which the last test closed its notebook, if it passed and the page still lives.
    """
    opened, failed_before = [], request.session.testsfailed

    def open_(*cells, lecture=None, app="lab"):
        name = lecture
        if lecture is None:
            name = f"{request.node.name.replace('[', '-').replace(']', '')}.ipynb"
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
            nbformat.write(notebook, server.root / name)
        if app == "lab" and left_behind:
            last = left_behind.pop()
            last.page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
            page = last.open_next(name)
        else:
            page = JupyterPage.open(browser, server, name, app)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        passed = request.session.testsfailed == failed_before
        if passed and page.app == "lab" and not page.page.is_closed() and not left_behind:
            page.leave()
            left_behind.append(page)
        else:
            page.close()


@pytest.fixture
def shots():
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS


@pytest.fixture
def open_page(browser, tmp_path):
    """Write the one-file page of a program with cells, and open it: a page and its log. The view is drawn."""
    opened = []

    def open_(program, name="lecture.py", prepare=lambda page: None):
        (tmp_path / name).write_text(program, encoding="utf-8")
        explain = [sys.executable, "-m", "graphwidget", "explain", "--no-try", "--format", "html", str(tmp_path / name)]
        path = tmp_path / "graph.html"
        path.write_bytes(subprocess.run(explain, capture_output=True).stdout)
        page, log = browser.open()
        prepare(page)
        page.goto(path.as_uri())
        opened.append(page)
        page.locator("[role=treeitem]").first.wait_for()
        return page, log

    yield open_
    for page in opened:
        page.close()
