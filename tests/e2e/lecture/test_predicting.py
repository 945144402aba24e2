"""Predicting a call in JupyterLab: marks on the cards, the call on a click, and what it then really did."""

import pytest
from harness import wait_for
from small_graphs import clean

pytestmark = pytest.mark.e2e

LOAD = "%load_ext graphwidget\nimport torch"
TWO = """w = torch.ones(3, requires_grad=True)
y = w.exp()
first = (y * y).sum()
second = (y * y).mean()"""


def opened(open_notebook):
    notebook = open_notebook(LOAD, TWO, "%graphwidget")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = notebook.output(2).locator(".graphwidget")
    widget.locator('[data-node="ExpBackward0"]').wait_for()
    widget.locator('button[aria-label="Predict first"]').click()
    widget.locator('select[aria-label="Call to predict"]').select_option(label="first.backward()")
    return notebook, widget


def test_marks_in_the_picture_are_scored_by_what_the_call_did(open_notebook, shots):
    notebook, widget = opened(open_notebook)
    uid = widget.locator('[data-node="ExpBackward0"]').get_attribute("data-uid")
    widget.locator(f'[data-sign="mark {uid}:0"] rect').click()
    wait_for(widget.get_by_label("ExpBackward0.result of y").is_checked, "the same mark in the list")
    widget.get_by_label("MulBackward0.self of In[2]:4").check()
    widget.get_by_label("It runs").check()
    widget.screenshot(path=shots / "predicting-asked.png")
    assert notebook.kernel.eval("w.grad is None"), "nothing has run"
    widget.get_by_role("button", name="Run it and compare").click()
    score = widget.locator(".gw-score")
    score.wait_for()
    assert score.inner_text().replace("\n", " ") == "1 of 3 found · 2 missed · 1 too many"
    assert widget.locator('.gw-guessing [data-sign] [class="g-ringmissed"]').count() == 2
    why = widget.locator(".gw-why").inner_text()
    assert "MulBackward0.self (In[2]:4) was not freed: first.backward() does not reach it." in why
    widget.screenshot(path=shots / "predicting-scored.png")
    assert notebook.kernel.eval("w.grad is not None")
    clean(notebook)


def test_a_student_without_a_mouse_predicts_where_a_call_raises(open_notebook):
    notebook, widget = opened(open_notebook)
    keys = notebook.page.keyboard
    widget.locator('button[aria-label="End predicting"]').press("Enter")
    notebook.kernel.eval("first.backward()")
    wait_for(lambda: widget.locator('[data-node="ExpBackward0"]').get_attribute("data-state") == "freed", "freed")
    widget.locator('[role="treeitem"][tabindex="0"]').focus()
    keys.press("q")
    widget.locator('select[aria-label="Call to predict"]').select_option(label="second.backward()")
    widget.get_by_label("It raises, at").focus()
    keys.press("Space")
    widget.locator('[data-node="ExpBackward0"]').focus()
    keys.press("Enter")
    chosen = widget.locator("[aria-label='Node at which it raises'] option:checked")
    wait_for(lambda: chosen.inner_text().startswith("ExpBackward0"), "the node that was named")
    widget.get_by_role("button", name="Run it and compare").press("Enter")
    widget.locator(".gw-score").wait_for()
    assert widget.locator(".gw-score").inner_text() == "All right"
    assert "raised at ExpBackward0" in widget.locator(".gw-why").inner_text()
    assert not notebook.page.locator("dialog[open]").count(), "a question would have given the answer away"
    clean(notebook)
