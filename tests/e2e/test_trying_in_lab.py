"""A fix is tried from the view of a real JupyterLab: asked first, run elsewhere, the result beside the fix."""

import pytest
from harness import screenshot
from small_graphs import LOAD, SEED_002, SEED_002_LOOP, clean, widget_in

pytestmark = pytest.mark.e2e


def opened(open_notebook, *more):
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget", *more)
    for cell in range(4):
        notebook.run_cell(cell)
    return notebook, widget_in(notebook, 3)


def test_a_fix_is_tried_on_a_click_and_the_kernel_stays_as_it_is(open_notebook, shots):
    notebook, widget = opened(open_notebook, "print(it, x_out.grad_fn is None, torch.is_grad_enabled())")
    finding = widget.locator("[data-finding=second_backward]").first
    first = finding.locator("[data-fix]").first
    button = first.get_by_role("button", name="try it")
    button.focus()
    button.press("Enter")
    question = widget.get_by_role("alertdialog", name="This fix can be tried")
    question.get_by_text("In[1], In[2] and In[3] run again in a fresh process, with the fix").wait_for()
    question.get_by_text("Nothing has run.").wait_for()
    screenshot(widget, shots / "try_a_fix_question.png")
    question.get_by_role("button", name="Run the cells").click()
    first.get_by_text("Tried: ran").wait_for(timeout=90_000)
    widget.get_by_role("status").get_by_text("Tried: ran").first.wait_for()
    screenshot(widget, shots / "try_a_fix_result.png")
    first.get_by_role("button", name="try it again").wait_for()
    notebook.run_cell(4)
    assert "1 False True" in notebook.output(4).inner_text()
    clean(notebook)


def test_a_trial_can_be_cancelled(open_notebook):
    _, widget = opened(open_notebook)
    widget.get_by_role("button", name="try it").first.click()
    widget.get_by_role("button", name="Run the cells").click()
    widget.get_by_text("The trial").first.wait_for()
    widget.get_by_role("button", name="Cancel", exact=True).first.click()
    widget.get_by_text("it was cancelled").first.wait_for(timeout=30_000)
