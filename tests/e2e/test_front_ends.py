"""Notebook 7, Voila and marimo: the view is drawn and answers, its requests reach the kernel, its errors none of ours."""

import nbformat
import pytest
from harness import MarimoServer, VoilaServer, wait_for
from small_graphs import FORWARD, LOAD, widget_in

pytestmark = pytest.mark.e2e

TWICE = "loss.backward()\ntry:\n    loss.backward()\nexcept RuntimeError as error:\n    print(type(error).__name__)"
MARIMO = """import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import torch

    import graphwidget as gw

    return gw, mo, torch


@app.cell
def _(gw, torch):
    torch.manual_seed(0)
    with gw.track() as tracker:
        net = torch.nn.Linear(5, 2)
        loss = torch.nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            caught = type(error).__name__
    return caught, loss, tracker


@app.cell
def _(gw, mo, tracker):
    mo.ui.anywidget(gw.view(tracker))
    return


@app.cell
def _(gw, loss, mo):
    mo.ui.anywidget(gw.view(loss))
    return


if __name__ == "__main__":
    app.run()
"""


def has_the_story(widget):
    """The failing node, both calls on the timeline, the finding with its numbers."""
    widget.locator('[role=treeitem][data-node="NllLossBackward0"]').wait_for()
    widget.locator('.gw-finding[data-finding="second_backward"]').wait_for()
    assert widget.locator(".gw-foot .gw-stepper").is_visible()


def goes_back(widget):
    """A step back: the kernel sends a stored picture."""
    widget.locator('[aria-label^="Previous step"]').click()
    wait_for(lambda: widget.get_attribute("data-past") == "true", "a picture of the past")
    widget.locator('[role=treeitem][data-node="NllLossBackward0"]').wait_for()
    widget.locator('[aria-label^="Now"]').click()
    wait_for(lambda: widget.get_attribute("data-past") is None, "the present")


def ours(log):
    """Complaints of a page that name us; Voila and marimo have some of their own."""
    return [problem for problem in log.problems() if "graphwidget" in problem.lower()]


def test_notebook_7_shows_the_story_and_answers(open_notebook, shots):
    notebook = open_notebook(LOAD, FORWARD, TWICE, "%graphwidget", app="notebook")
    notebook.run_all()
    widget = widget_in(notebook, 3)
    has_the_story(widget)
    goes_back(widget)
    widget.screenshot(path=str(shots / "notebook7.png"))
    assert notebook.problems() == []


def test_voila_shows_the_story_and_runs_what_is_clicked(browser, tmp_path, shots):
    path = tmp_path / "lecture.ipynb"
    cells = [LOAD, FORWARD, "%graphwidget"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, path)
    with VoilaServer(path) as server:
        page, log = browser.open(server.url)
        widget = page.locator(".graphwidget")
        node = widget.locator('[role=treeitem][data-node="NllLossBackward0"]')
        node.wait_for()
        run = widget.get_by_role("button", name="loss.backward()")
        run.click()
        wait_for(lambda: node.get_attribute("data-state") == "freed", "the slots that the click has freed")
        run.click()
        widget.get_by_role("button", name="Run it anyway").click()
        has_the_story(widget)
        page.wait_for_timeout(1000)  # longer than a forecast waits that the button, with the focus again, would ask for
        has_the_story(widget)
        goes_back(widget)
        page.screenshot(path=str(shots / "voila.png"))
        assert ours(log) == []
        assert [each for each in log.offsite() if "fontawesome" not in each] == [], "that font is Voila's own"
        page.close()


@pytest.mark.parametrize("mode", ["edit", "run"])
def test_marimo_shows_the_story_of_a_block_that_has_ended(browser, tmp_path, shots, mode):
    path = tmp_path / "lecture.py"
    path.write_text(MARIMO, encoding="utf-8")
    with MarimoServer(path, mode) as server:
        page, log = browser.open(server.url)
        widgets = page.locator(".graphwidget")
        wait_for(lambda: widgets.count() == 2, "two views")
        for which in range(2):
            widget = widgets.nth(which)
            widget.scroll_into_view_if_needed()
            has_the_story(widget)
            goes_back(widget)
        page.screenshot(path=str(shots / f"marimo_{mode}.png"))
        assert widgets.nth(0).get_by_role("button", name="loss.backward()").is_disabled(), "nobody would record it"
        assert ours(log) == []
        page.close()
