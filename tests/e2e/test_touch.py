"""Fingers and the lower edge: two fingers zoom, one scrolls the page, a dragged height is kept."""

import pytest
from harness import wait_for
from small_graphs import FORWARD, LOAD, clean, widget_in

pytestmark = pytest.mark.e2e

SHOW = "import graphwidget\nview = graphwidget.view()\nview"


def test_two_fingers_zoom_what_they_hold(open_notebook):
    notebook = open_notebook(LOAD, FORWARD, SHOW)
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    widget.locator("[role=treeitem]").first.wait_for()
    canvas = widget.locator(".gw-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    middle_x, middle_y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = notebook.page.context.new_cdp_session(notebook.page)

    def fingers(kind, apart):
        points = [{"x": middle_x + side * apart, "y": middle_y + side * apart, "id": side} for side in (-1, 1)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points if apart else []})

    def scale():
        return float(canvas.get_attribute("data-scale"))

    def scrolled():
        return canvas.bounding_box()["y"]

    before, top = scale(), scrolled()
    fingers("touchStart", 40)
    for apart in (50, 60, 70, 80):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    wait_for(lambda: scale() > 1.8 * before, f"a picture twice as large as {before}")
    assert scale() == pytest.approx(2 * before, rel=0.05)
    assert scrolled() == top
    clean(notebook)


def test_a_dragged_height_is_kept_in_the_kernel_and_shown_again(open_notebook):
    notebook = open_notebook(LOAD, FORWARD, SHOW, "view")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    edge = widget.get_by_role("separator", name="Height of the view")
    edge.scroll_into_view_if_needed()
    box = edge.bounding_box()
    before = round(widget.bounding_box()["height"])
    assert 420 <= before <= 760 and notebook.kernel.eval("view.height") == 0, "by the content, until it is dragged"
    mouse = notebook.page.mouse
    mouse.move(box["x"] + box["width"] / 2, box["y"] + 4)
    mouse.down()
    mouse.move(box["x"] + box["width"] / 2, box["y"] - 26, steps=3)
    mouse.move(box["x"] + box["width"] / 2, box["y"] - 96, steps=3)
    mouse.up()
    wait_for(lambda: notebook.kernel.eval("view.height") == before - 100, "the height in the kernel")
    edge.focus()
    notebook.page.keyboard.press("ArrowDown")
    wait_for(lambda: notebook.kernel.eval("view.height") == before - 80, "the height by a key")
    notebook.run_cell(3)
    assert widget_in(notebook, 3).evaluate("view => view.style.getPropertyValue('--gw-h')") == f"{before - 80}px"
    clean(notebook)
