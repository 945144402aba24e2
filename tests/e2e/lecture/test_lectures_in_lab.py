"""Every lecture runs in JupyterLab, and is looked at: each error, each view, wide and narrow, light and dark."""

import re

import pytest
from harness import screenshot
from lectures import NAMES, Lecture

pytestmark = pytest.mark.e2e
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 900, "height": 1000}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@pytest.mark.parametrize("name", NAMES)
def test_the_lecture_runs(open_notebook, shots, name):
    cells = Lecture.read(name).cells
    notebook = open_notebook(lecture=name)
    notebook.page.set_viewport_size(WIDE)
    notebook.command("application:toggle-left-area")
    notebook.run_all()
    for k, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        raises = "raises-exception" in cell.tags
        assert any(output["output_type"] == "error" for output in notebook.outputs(k)) == raises, cell.source
        if raises:
            _the_explanation_is_in_sight(notebook, k, shots / "lectures" / f"{name[:2]}-{k:02}")
        if cell.source.endswith("%graphwidget"):
            notebook.scroll_to(k)
            _view(notebook, k).locator("[data-node]").first.wait_for()
            screenshot(notebook.page, shots / "lectures" / f"{name[:2]}-{k:02}-view.png")
        if "solution" in cell.tags:
            notebook.scroll_to(k)
            assert not notebook.cell(k).locator(".cm-content").is_visible(), "a solution is folded"
    _look_at_the_last_view(notebook, cells, shots / "lectures" / name[:2])
    assert notebook.problems() == []
    assert notebook.log.offsite() == []


def _view(notebook, k):
    return notebook.output(k).locator(".graphwidget").first


def _the_explanation_is_in_sight(notebook, k, path):
    """The whole output of a cell that raised fits on the screen: the note stands under the code, in both widths."""
    for size in (WIDE, NARROW):
        notebook.page.set_viewport_size(size)
        notebook.scroll_to(k)
        output = notebook.output(k)
        output.wait_for()
        assert output.bounding_box()["height"] < 500, "IPython's own lines are left out"
        assert re.search(r"✕ |ValueError", output.inner_text()), "the error is explained"
        screenshot(notebook.page, f"{path}-{size['width']}.png")
    notebook.page.set_viewport_size(WIDE)


def _look_at_the_last_view(notebook, cells, path):
    k = [k for k, cell in enumerate(cells) if cell.source.endswith("%graphwidget")][-1]
    for theme, lab in THEMES.items():
        notebook.command("apputils:change-theme", {"theme": lab})
        for size in (WIDE, NARROW):
            notebook.page.set_viewport_size(size)
            notebook.scroll_to(k)
            view = _view(notebook, k)
            view.locator("[data-node]").first.wait_for()
            assert notebook.page.evaluate("e => e.scrollWidth <= e.clientWidth + 1", view.element_handle())
            screenshot(view, f"{path}-last-{theme}-{size['width']}.png")
    notebook.command("apputils:change-theme", {"theme": THEMES["light"]})
