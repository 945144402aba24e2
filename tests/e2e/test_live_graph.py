"""The widget in a real JupyterLab: the picture is true, the buttons run the real call."""

import re

import pytest
from harness import screenshot, wait_for
from small_graphs import FORWARD, LOAD, SEED_002, SEED_002_LOOP, clean, nodes, widget_in

pytestmark = pytest.mark.e2e


def states(widget):
    """data-state of every live node that saves something."""
    found = nodes(widget).evaluate_all("all => all.map(n => n.dataset.state)")
    return [state for state in found if state != "none"]


def test_a_graph_that_is_reused_shows_what_was_freed_and_what_carried_it(open_notebook, shots):
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    for cell in range(4):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 3)
    shared = widget.locator('[data-node="MvBackward0"][data-shared="true"]')
    shared.first.wait_for()
    assert shared.first.get_attribute("data-state") == "freed"
    found = widget.get_by_role("region", name="Findings")
    found.filter(has_text="reaches the same node through y").first.wait_for()
    # A screen reader hears the headline.
    assert widget.locator('[role="alert"]').filter(has_text="needs saved tensors that").count() == 1
    assert widget.locator("svg").get_by_text("y", exact=True).count() >= 1  # the tag on the wire
    screenshot(widget, shots / "seed002-light.png")
    clean(notebook)


def test_clicking_backward_twice_empties_the_slots_and_then_shows_the_error(open_notebook, shots):
    notebook = open_notebook(LOAD, FORWARD, "%graphwidget")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    button = widget.get_by_role("button", name="loss.backward()", exact=True)
    button.wait_for()
    assert set(states(widget)) == {"held"}
    button.click()
    wait_for(lambda: set(states(widget)) == {"freed"}, "freed slots in the picture")
    assert notebook.kernel.eval("net.weight.grad is not None")
    button = widget.get_by_role("button", name="loss.backward()", exact=True)
    wait_for(lambda: button.is_enabled(), "the button again")
    button.click()
    widget.get_by_role("button", name="Run it anyway").click()
    widget.get_by_role("alert").filter(has_text="second time").first.wait_for()
    screenshot(widget, shots / "second-backward.png")
    assert notebook.kernel.eval("1 + 1") == 2
    clean(notebook)


TRUNK = """\
import torch
w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
z = w.exp()
loss1 = (z * 2).sum()
loss2 = (z * v).tanh().sum()
loss1.backward()"""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_call_that_would_raise_asks_first(open_notebook, shots, app):
    notebook = open_notebook(LOAD, TRUNK, "%graphwidget", app=app)
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    page, kernel = notebook.page, notebook.kernel
    button = widget.get_by_role("button", name="loss2.backward()", exact=True)
    question = widget.get_by_role("alertdialog", name="loss2.backward() would raise")

    def untouched():
        return kernel.eval("v.grad is None")

    def has_focus(locator):
        return locator.evaluate("el => document.activeElement === el")

    # The keyboard: the focus goes to the question; Esc says no; the focus is back where it was.
    button.focus()
    page.keyboard.press("Enter")
    question.get_by_text("freed by call 1").wait_for()
    assert has_focus(question.get_by_role("button", name="Cancel"))
    assert question.get_by_text("free 3 saved tensors").count() and question.get_by_text(".grad of v").count()
    screenshot(widget, shots / f"question-{app}.png")
    page.keyboard.press("Escape")
    question.wait_for(state="hidden")
    assert has_focus(button) and untouched()
    # An Enter that repeats says no as well.
    for _ in range(4):
        page.keyboard.press("Enter")
        page.wait_for_timeout(150)
    assert untouched()
    page.keyboard.press("Escape")
    # A press on the second button runs it.
    button.click()
    question.get_by_role("button", name="Run it anyway").click()
    widget.get_by_role("alert").filter(has_text="second time").first.wait_for()
    assert not untouched()
    clean(notebook)


def test_a_button_stays_under_the_pointer_that_asks_for_its_forecast(open_notebook, shots):
    notebook = open_notebook(LOAD, FORWARD, "loss.backward()", "%graphwidget")
    for cell in range(4):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 3)
    widget.evaluate("view => { view.style.width = '600px'; }")
    wait_for(lambda: widget.get_attribute("data-width") == "narrow", "a narrow view")
    button = widget.get_by_role("button", name="loss.backward()", exact=True)
    button.wait_for()
    button.scroll_into_view_if_needed()
    notebook.page.wait_for_timeout(1000)  # fitted to its new width, and scrolled to its end
    before = button.bounding_box()
    button.hover()
    forecast = widget.get_by_role("region", name="Forecast").filter(has_text="raise")
    forecast.wait_for()
    button.evaluate("el => { window.left = 0; el.addEventListener('pointerleave', () => { window.left += 1; }); }")
    notebook.page.wait_for_timeout(1000)
    assert forecast.is_visible()
    assert button.bounding_box() == before
    assert notebook.page.evaluate("window.left") == 0
    screenshot(notebook.page, shots / "forecast-narrow.png")
    clean(notebook)


def test_backward_with_retain_graph_leaves_everything_held(open_notebook):
    notebook = open_notebook(LOAD, FORWARD, "%graphwidget")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    for count in (1, 2):
        button = widget.get_by_role("button", name="loss.backward(retain_graph=True)", exact=True)
        wait_for(lambda: button.count() and button.is_enabled(), "the button")
        button.click()
        wait_for(
            lambda: (
                notebook.kernel.eval("0 if net.bias.grad is None else 1") == 1
                and notebook.kernel.eval("len(__import__('graphwidget.api', fromlist=['api']).current_tracker().calls)")
                == count
            ),
            f"call {count} in the kernel",
        )
        assert set(states(widget)) == {"held"}
    clean(notebook)


def test_a_training_loop_updates_the_view_while_it_runs(open_notebook, tmp_path):
    enough = tmp_path / "enough"  # the loop runs until four pictures have been seen, however busy the machine is
    loop = f"""\
import os, time
opt = torch.optim.SGD(net.parameters(), lr=.1)
for step in range(1200):
    loss = torch.nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))
    opt.zero_grad(); loss.backward(); opt.step()
    time.sleep(.2)
    if os.path.exists({str(enough)!r}): break"""
    notebook = open_notebook(LOAD, FORWARD, "%graphwidget", loop)
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    nodes(widget).first.wait_for()
    notebook.page.evaluate("k => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = k; }", 3)
    notebook.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    seen = set()
    wait_for(lambda: seen.add(widget.get_attribute("data-serial")) or len(seen) >= 4, "four pictures in the loop")
    running = notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[3].model.executionState"
    )
    assert running == "running"
    enough.touch()
    notebook.wait_idle()
    clean(notebook)


def test_the_picture_follows_the_dark_theme(open_notebook, shots):
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    for cell in range(4):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 3)

    def background():
        return widget.evaluate("w => getComputedStyle(w).backgroundColor")

    light = background()
    notebook.command("apputils:change-theme", {"theme": "JupyterLab Dark"})
    try:
        wait_for(lambda: background() != light, "another background")
        red, green, blue = (int(part) for part in background().split("(")[1].rstrip(")").split(",")[:3])
        assert max(red, green, blue) < 100
        screenshot(widget, shots / "seed002-dark.png")
    finally:
        notebook.command("apputils:change-theme", {"theme": "JupyterLab Light"})
    clean(notebook)


def test_a_cell_that_runs_later_is_seen_by_the_open_view(open_notebook):
    notebook = open_notebook(LOAD, "%graphwidget", FORWARD, "loss.backward()", "del loss, net")
    for cell in range(2):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 1)
    widget.get_by_text("No autograd graph yet").wait_for()
    notebook.run_cell(2)
    nodes(widget, "NllLossBackward0").wait_for()
    assert set(states(widget)) == {"held"}
    notebook.run_cell(3)
    wait_for(lambda: set(states(widget)) == {"freed"}, "freed slots")
    notebook.run_cell(4)
    wait_for(lambda: nodes(widget).count() == 0, "no live node")
    clean(notebook)


def test_every_drawn_node_says_all_of_itself(open_notebook):
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    for cell in range(4):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 3)
    nodes(widget, "MvBackward0").first.wait_for()
    drawn = nodes(widget, live=False).evaluate_all(
        "all => all.map(n => ({...n.dataset, role: n.getAttribute('role'), tab: n.getAttribute('tabindex'),"
        " label: n.getAttribute('aria-label') ?? ''}))"
    )
    assert {"MvBackward0", "AccumulateGrad"} <= {node["node"] for node in drawn}
    assert any(node["ghost"] == "true" for node in drawn)
    for node in drawn:
        assert node["role"] == "treeitem" and node["tab"] in ("0", "-1"), node
        assert node["uid"].isdigit(), node
        assert node["state"] in {"held", "freed", "mixed", "stale", "packed", "none"}, node
        assert node["shared"] in {"true", "false"} and node["ghost"] in {"true", "false"}, node
        assert node["node"] in node["label"] and "saved tensor" in node["label"], node
        if node["node"].endswith("Backward0"):
            assert re.search(r"In\[\d+\] line \d+", node["label"]), node
    clean(notebook)


def test_dialogs_and_the_slider_are_the_browsers_own(open_notebook, shots):
    notebook = open_notebook(LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    for cell in range(4):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 3)
    nodes(widget, "MvBackward0").first.wait_for()
    keyboard = notebook.page.keyboard
    button = widget.get_by_role("button", name="Legend", exact=True)
    button.focus()
    keyboard.press("Enter")
    dialog = widget.get_by_role("dialog", name="Legend")
    dialog.get_by_text("would be freed (forecast)").wait_for()
    screenshot(widget, shots / "legend.png")
    focus_inside = "dialog => dialog.contains(document.activeElement)"
    for _ in range(3):
        keyboard.press("Tab")
        # Between the last and the first element the focus may rest on the page itself, never on what is behind.
        assert dialog.evaluate(f"d => ({focus_inside})(d) || document.activeElement === document.body")
    keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert button.evaluate("button => document.activeElement === button")
    slider = widget.get_by_role("slider", name="Time")
    now = slider.get_attribute("aria-valuetext")
    slider.focus()
    keyboard.press("Home")
    wait_for(lambda: widget.get_attribute("data-past") == "true", "a picture of the past")
    assert slider.get_attribute("aria-valuetext") != now
    keyboard.press("n")
    wait_for(lambda: widget.get_attribute("data-past") is None, "now")
    assert slider.get_attribute("aria-valuetext") == now
    assert slider.evaluate("slider => slider.value === slider.max")
    clean(notebook)


def test_text_from_the_kernel_is_drawn_as_text(open_notebook):
    evil = 'd = {"<img src=x onerror=window.hacked=1>": torch.ones(2, requires_grad=True).exp().sum()}'
    notebook = open_notebook(LOAD, "import torch\n" + evil, "%graphwidget")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = widget_in(notebook, 2)
    nodes(widget, "ExpBackward0").wait_for()
    assert widget.locator("img").count() == 0
    assert notebook.page.evaluate("() => window.hacked ?? null") is None
    clean(notebook)
