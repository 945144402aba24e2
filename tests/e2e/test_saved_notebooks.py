"""What is left of a view in a file: HTML of nbconvert, an untrusted notebook, a saved one without its kernel."""

import json
import subprocess
import sys

import nbformat
import pytest
from harness import JupyterPage, wait_for
from small_graphs import FORWARD, LOAD, widget_in

pytestmark = pytest.mark.e2e

# The view stands above what it shows, as in a lecture.
LECTURE = [LOAD, "%graphwidget", FORWARD, "loss.backward()"]
CELLS = [LOAD, FORWARD, "loss.backward()", "%graphwidget"]


def notebook_of(cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return notebook


def is_drawn(image):
    return image.evaluate("image => image.complete && image.naturalWidth > 200")


@pytest.mark.parametrize("cells", [CELLS, LECTURE], ids=["shown last", "shown first"])
def test_nbconvert_shows_the_picture_without_network(browser, tmp_path, shots, cells):
    path = tmp_path / "lecture.ipynb"
    nbformat.write(notebook_of(cells), path)
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(path)]
    done = subprocess.run(convert, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page, log = browser.open((tmp_path / "lecture.html").as_uri())
    image = page.locator(".jp-OutputArea-output img")
    assert image.count() == 1
    wait_for(lambda: is_drawn(image), "the picture")
    image.scroll_into_view_if_needed()
    page.screenshot(path=str(shots / "nbconvert.png"))
    words = page.locator(".jp-OutputArea-output pre").all_inner_texts()
    assert not [each for each in words if "Autograd graph" in each], "the picture stands for the text"
    page.close()


@pytest.fixture
def run_and_saved(open_notebook):
    """A notebook that has run in JupyterLab, as it is on disk."""
    live = open_notebook(*CELLS)
    live.run_all()
    widget_in(live, 3).locator("[role=treeitem]").first.wait_for()
    path = live.save()
    live.page.close()
    return path


def test_an_untrusted_notebook_shows_the_picture(browser, server, run_and_saved, shots):
    notebook = nbformat.read(run_and_saved, as_version=4)
    notebook.cells[0].source += "  # a change by somebody else: the signature does not fit"
    nbformat.write(notebook, server.root / "downloaded.ipynb")
    page = JupyterPage.open(browser, server, "downloaded.ipynb")
    image = page.output(3).locator("img")
    wait_for(lambda: image.count() == 1 and is_drawn(image), "the picture")
    assert page.output(3).locator(".graphwidget").count() == 0
    page.scroll_to(3)
    page.page.screenshot(path=str(shots / "untrusted.png"))
    page.close()


def test_what_github_reads_is_in_the_file(run_and_saved):
    (output,) = json.loads(run_and_saved.read_text(encoding="utf-8"))["cells"][3]["outputs"]
    assert {"image/png", "text/plain"} <= output["data"].keys()
    assert "text/html" not in output["data"], "it would be preferred to the picture"
    assert len(output["data"]["image/png"]) < 200_000
