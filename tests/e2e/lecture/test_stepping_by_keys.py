"""Stepping through one call in JupyterLab: a forecast and a recorded call, by keys; what the keys do stays in the view."""

import pytest
from harness import wait_for
from small_graphs import clean

pytestmark = pytest.mark.e2e

LOAD = "%load_ext graphwidget\nimport torch"
FORWARD = """w = torch.ones(3, requires_grad=True)
y = w.exp()
loss = (y * y).sum()"""
REAL = """names = []
for node in (loss.grad_fn, *(n for n, _ in loss.grad_fn.next_functions), y.grad_fn):
    node.register_prehook(lambda _, name=node.name(): names.append(name))
loss.backward()"""


def opened(open_notebook, *cells):
    notebook = open_notebook(LOAD, FORWARD, "%graphwidget", *cells)
    for cell in range(3 + len(cells)):
        notebook.run_cell(cell)
    widget = notebook.output(2).locator(".graphwidget")
    widget.locator('[data-node="ExpBackward0"]').wait_for()
    return notebook, widget


def step_on(notebook, widget):
    """Press the arrow key until the end; what each step says."""
    slider = widget.locator(".gw-play input[type=range]")
    slider.wait_for()
    assert notebook.page.evaluate("() => document.activeElement.type") == "range", "the arrow keys go to the slider"
    status, last = widget.locator(".gw-play [role=status]"), int(slider.get_attribute("max"))
    said = []
    for at in range(1, last + 1):
        notebook.page.keyboard.press("ArrowRight")
        begins = f"Step {at} of {last - 1}" if at < last else "After the call"
        wait_for(lambda begins=begins: status.inner_text().startswith(begins), begins)
        said.append(status.inner_text())
    return said


def names_in(said):
    return [
        text.split(": ")[1].split(" of ")[0].split(",")[0].split(".")[0] for text in said if text.startswith("Step")
    ]


def test_the_steps_ahead_are_those_that_the_call_then_makes(open_notebook, shots):
    notebook, widget = opened(open_notebook)
    widget.locator('[role="treeitem"]').first.focus()
    notebook.page.keyboard.press("s")
    said = step_on(notebook, widget)
    assert names_in(said) == ["SumBackward0", "MulBackward0", "ExpBackward0", "AccumulateGrad"]
    assert said[-1] == "After the call. 4 nodes would run and free 3 saved tensors, 12 B. The .grad of w would be set."
    notebook.page.keyboard.press("ArrowLeft")
    notebook.page.keyboard.press("ArrowLeft")
    widget.locator(
        '[data-sign="now n' + widget.locator('[data-node="ExpBackward0"]').get_attribute("data-uid") + '"]'
    ).wait_for(state="attached")
    widget.screenshot(path=shots / "stepping-ahead.png")
    assert notebook.kernel.eval("w.grad is None"), "nothing has run"
    notebook.page.keyboard.press("Escape")
    widget.locator(".gw-play").wait_for(state="detached")
    notebook.set_cell(2, REAL)
    notebook.run_cell(2)
    real = notebook.kernel.eval("names")
    assert list(dict.fromkeys(real)) == names_in(said)[:3]
    clean(notebook)


def test_a_recorded_call_is_stepped_through_on_the_picture_before_it(open_notebook, shots):
    notebook, widget = opened(open_notebook, "loss.backward()")
    node = widget.locator('[data-node="ExpBackward0"]')
    wait_for(lambda: node.get_attribute("data-state") == "freed", "the freed picture")
    widget.locator('button[aria-label="Step through a call"]').click()
    choice = widget.locator('select[aria-label="Call to step through"]')
    choice.select_option(label="1 loss.backward()")
    wait_for(lambda: node.get_attribute("data-state") == "held", "the picture before the call")
    widget.locator(".gw-play input[type=range]").focus()
    said = step_on(notebook, widget)
    assert "The .grad of w was None and was set." in said[-2] and node.get_attribute("data-state") == "freed"
    widget.screenshot(path=shots / "stepping-recorded.png")
    widget.locator('button[aria-label="End stepping"]').click()
    wait_for(lambda: widget.get_attribute("data-past") is None, "now")
    clean(notebook)
