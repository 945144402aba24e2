"""Presenting in JupyterLab, also of views that are made later; and the view beside the notebook, by Lab's own menu."""

import pytest
from harness import wait_for
from small_graphs import LOAD, SEED_002, SEED_002_LOOP, clean

pytestmark = pytest.mark.e2e


def presents(widget):
    return widget.get_attribute("data-present") is not None


def test_presenting_is_remembered_from_cell_to_cell_and_for_later_views(open_notebook, shots):
    later = "import graphwidget\nz = torch.ones(2, requires_grad=True).exp().sum()\ngraphwidget.view(z)"
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget --present", "%graphwidget", later)
    for cell in range(4):
        notebook.run_cell(cell)
    first, second, other = (notebook.output(cell).locator(".graphwidget") for cell in (3, 4, 5))
    first.locator('[data-node="MvBackward0"]').first.wait_for()
    assert presents(first) and not first.locator(".gw-foot").is_visible()
    assert first.locator(".gw-panel section").count() == 1
    ink = first.evaluate("el => getComputedStyle(el).getPropertyValue('--g-ink')").strip()
    assert ink in ("#000", "#fff"), "strong contrast, whatever the theme's colours are"
    assert float(first.locator(".gw-canvas").get_attribute("data-scale")) > 1
    heading = first.locator(".gw-presented h3").evaluate("el => parseFloat(getComputedStyle(el).fontSize)")
    assert heading >= 16, "large type"
    first.screenshot(path=shots / "presenting.png")
    for cell in (4, 5):
        notebook.run_cell(cell)
    for widget in (second, other):
        wait_for(lambda widget=widget: presents(widget), "a later view that presents")
    notebook.scroll_to(3)
    first.locator('[role="treeitem"][tabindex="0"]').focus()
    notebook.page.keyboard.press("p")
    wait_for(lambda: not presents(first) and not presents(second), "both views of one model")
    assert notebook.kernel.eval("graphwidget.view().presenting") is False
    assert notebook.kernel.eval("graphwidget.view(z).presenting") is False
    clean(notebook)


def test_the_menu_leads_to_a_live_view_beside_the_notebook(open_notebook, shots):
    notebook = open_notebook(LOAD, SEED_002, "%graphwidget", "z = (y * 2).sum()")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = notebook.output(2).locator(".graphwidget")
    widget.locator('[data-node="MvBackward0"]').wait_for()
    widget.locator('button[aria-label^="More"]').click()
    widget.get_by_role("button", name="Show beside the notebook").click()
    said = widget.locator(".gw-answer[role=status]")
    wait_for(lambda: 'Choose "Create New View for Cell Output"' in said.inner_text(), "the sentence")
    notebook.page.get_by_role("menuitem", name="Create New View for Cell Output").click()
    beside = notebook.page.locator(".jp-LinkedOutputView .graphwidget")
    beside.wait_for()
    notebook.page.evaluate("() => window.jupyterapp.shell.activateById(document.querySelector('.jp-NotebookPanel').id)")
    notebook.run_cell(3)
    wait_for(lambda: beside.locator('[data-node="MulBackward0"]').count() == 1, "the new node in the view beside")
    notebook.page.screenshot(path=shots / "beside-the-notebook.png")
    clean(notebook)
