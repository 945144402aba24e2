"""No key that is pressed in the widget reaches the notebook; the widget's own keys, and the browser's, go on working.

Which keys could do something there is asked of the running application: every binding whose selector matches somewhere
in the notebook. Where the focus can be is asked of the widget: everything in it that takes the focus.
"""

import re

import pytest
from harness import wait_for
from small_graphs import FORWARD, LOAD, SEED_002, SEED_002_LOOP, clean, nodes, widget_in

pytestmark = pytest.mark.e2e

BOTH = pytest.mark.parametrize("app", ["lab", "notebook"])
MODIFIERS = {"Accel": "Control", "Ctrl": "Control", "Alt": "Alt", "Shift": "Shift", "Cmd": "Meta"}

_CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(
  c => [c.model.type, c.model.sharedModel.getSource()])"""
# Bindings of the whole application (`body`), and those that match where the notebook or something in it has the focus.
_BINDINGS = """() => window.jupyterapp.commands.keyBindings
  .filter(b => b.selector === 'body' || /jp-Notebook|:focus/.test(b.selector))
  .map(b => b.keys)"""
# Commands that have run, and key events that got past the widget's root.
_WATCH = """() => {
  window.ran = []; window.passed = [];
  window.jupyterapp.commands.commandExecuted.connect((_, {id}) => window.ran.push(id));
  for (const type of ['keydown', 'keypress', 'keyup'])
    document.addEventListener(type, event => {
      if (event.composedPath().some(one => one.classList?.contains('graphwidget'))) window.passed.push(event.key);
    });
}"""
# One of each kind: what differs only in the words on it takes keys in the same way.
_KINDS = """async widget => {
  window.spots = {};
  if (!widget.querySelector('[type=search]').getClientRects().length) {
    widget.querySelector('[aria-label=Search]').click();
    await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  }
  for (const el of [widget, ...widget.querySelectorAll('button, input, select, a[href], [tabindex], summary')]) {
    if (el.closest('dialog:not([open])') || el.disabled || !el.getClientRects().length) continue;
    const kind = [el.tagName, el.getAttribute('class'), el.getAttribute('role'), el.type].filter(Boolean).join(' ');
    window.spots[kind] ??= el;
  }
  return Object.keys(window.spots);
}"""
_FOCUS = """(widget, kind) => {
  for (const open of widget.querySelectorAll('dialog[open]')) open.close();
  const spot = window.spots[kind];
  if (!spot?.isConnected || spot.disabled || !spot.getClientRects().length) return false;
  spot.focus({preventScroll: true});
  return widget.contains(document.activeElement);
}"""


def strokes(binding):
    """A binding's keys as playwright presses them."""
    for chord in binding:
        *held, key = chord.split()
        key = key.lower() if len(key) == 1 else key
        yield "+".join([*(MODIFIERS[one] for one in held), key])


def prepared(open_notebook, app, *cells):
    """A notebook with the error picture in its last cell, run."""
    notebook = open_notebook(*cells, app=app)
    for cell in range(len(cells)):
        notebook.run_cell(cell)
    widget = widget_in(notebook, len(cells) - 1)
    nodes(widget).first.wait_for()
    notebook.page.evaluate(_WATCH)
    return notebook, widget


def end_modes(widget):
    """Leave what a key has begun: a prediction, a step-through, a comparison, large type, another part of the graph."""
    for key in [*["Escape"] * 6, *["p"] * (widget.get_attribute("data-present") is not None)]:
        widget.focus()
        widget.press(key)
    widget.get_by_label("What to show").select_option("auto")


def focused(widget, kind):
    """Whether the focus is on one of `kind`, which is looked for again: a closing search is drawn a moment later."""
    widget.evaluate(_KINDS)
    return widget.evaluate(_FOCUS, kind)


@BOTH
def test_no_key_pressed_in_the_widget_reaches_the_notebook(open_notebook, app):
    notebook, widget = prepared(open_notebook, app, LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    page, before = notebook.page, notebook.page.evaluate(_CELLS)
    bindings = page.evaluate(_BINDINGS)
    pressed = sorted({stroke for binding in bindings for stroke in strokes(binding)})
    assert {"x", "d", "a", "b", "m", "Shift+Enter", "Control+s"} <= set(pressed), pressed
    widget.get_by_role("button", name="Search", exact=True).click()
    nodes(widget).first.click()  # the inspector
    kinds = widget.evaluate(_KINDS)
    assert len(kinds) >= 10, kinds
    for kind in kinds:
        for stroke in pressed:
            if not widget.evaluate(_FOCUS, kind):  # an earlier key has closed or replaced it
                end_modes(widget)
                wait_for(lambda: focused(widget, kind), f"{kind} after a key before {stroke}")
            page.keyboard.press(stroke)
    assert page.evaluate("window.ran") == []
    assert page.evaluate("window.passed") == []
    assert page.evaluate(_CELLS) == before
    clean(notebook)


@BOTH
def test_a_click_anywhere_in_the_widget_keeps_the_keys_there(open_notebook, app):
    notebook, widget = prepared(open_notebook, app, LOAD, FORWARD, "%graphwidget")
    page, before = notebook.page, notebook.page.evaluate(_CELLS)
    nodes(widget).first.click()
    widget.get_by_role("tree").click(position={"x": 8, "y": 8})  # the empty canvas
    places = [
        nodes(widget).first,
        widget.get_by_role("button", name="Fit", exact=True),
        widget.get_by_role("button", name="loss.backward(retain_graph=True)", exact=True),
        widget.get_by_text("Autograd graph", exact=True),
        widget.locator(".gw-panel"),
        widget.get_by_role("slider", name="Time"),
        widget.locator(".gw-facts"),
    ]
    for place in [None, *places]:
        if place is not None:
            place.click()
        assert widget.evaluate("w => w.contains(document.activeElement)"), place
        for key in "xddabmyzv":
            page.keyboard.press(key)
    assert page.evaluate("window.ran") == [] and page.evaluate("window.passed") == []
    assert page.evaluate(_CELLS) == before
    clean(notebook)


@BOTH
def test_a_key_whose_element_has_gone_does_not_reach_the_notebook(open_notebook, app):
    notebook, widget = prepared(open_notebook, app, LOAD, FORWARD, "%graphwidget")
    page, before = notebook.page, notebook.page.evaluate(_CELLS)
    has_focus = "w => w.contains(document.activeElement)"
    # A key moves the focus while it is being handled: the search box opens, a dialog opens and closes.
    for opening in ("/", "l", "?"):
        nodes(widget).first.focus()
        page.keyboard.press(opening)
        page.keyboard.press("x")
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        assert widget.evaluate(has_focus), opening
    # What has the focus is taken away or switched off.
    for gone in ("el.remove()", "el.hidden = true", "el.disabled = true"):
        widget.evaluate(
            "(w, gone) => { const el = w.querySelector('.gw-head button:not([hidden], :disabled)'); el.focus();"
            " new Function('el', gone)(el); }",
            gone,
        )
        wait_for(lambda: widget.evaluate(has_focus), f"the focus in the widget after {gone}")
        for key in "xdd":
            page.keyboard.press(key)
    assert page.evaluate("window.ran") == [] and page.evaluate("window.passed") == []
    assert page.evaluate(_CELLS) == before


@BOTH
def test_the_browsers_own_keys_and_the_widgets_go_on_working(open_notebook, app):
    notebook, widget = prepared(open_notebook, app, LOAD, SEED_002, SEED_002_LOOP, "%graphwidget")
    page = notebook.page
    # Copy: what is selected in the widget, and not the cell.
    page.evaluate("addEventListener('copy', () => { window.copied = String(getSelection()); })")
    text = widget.locator(".gw-panel p").first
    text.click()
    text.evaluate("el => getSelection().selectAllChildren(el)")
    page.keyboard.press("Control+c")
    assert page.evaluate("window.copied") == text.evaluate("el => String(getSelection())") != ""
    # In a field letters are text, and Ctrl+A selects all of it.
    widget.get_by_role("button", name="Search", exact=True).click()
    field = widget.get_by_role("searchbox")
    wait_for(lambda: field.evaluate("el => el === el.getRootNode().activeElement"), "the focus in the search")
    page.keyboard.type("xdd")
    page.keyboard.press("Control+a")
    page.keyboard.type("mv")
    assert field.input_value() == "mv"
    page.keyboard.press("Escape")
    # Tab goes on to the next element; arrows walk; l opens the legend.
    first = widget.get_by_role("button", name="Search", exact=True)
    first.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Fit"
    nodes(widget).first.focus()
    page.keyboard.press("l")
    widget.get_by_role("dialog", name="Legend").wait_for()
    page.keyboard.press("Escape")
    # What was typed into a cell is not undone from here.
    source = notebook.page.evaluate(_CELLS)[1]
    notebook.cell(1).locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("  # typed")
    typed = notebook.page.evaluate(_CELLS)
    assert typed[1] != source
    nodes(widget).first.focus()
    page.keyboard.press("Control+z")
    assert notebook.page.evaluate(_CELLS) == typed
    # Ctrl+S would save the page: nothing is saved, and the view says so. Outside of the view it saves the notebook.
    page.evaluate("window.ran.length = 0")
    page.keyboard.press("Control+s")
    widget.get_by_text(re.compile("Nothing was saved")).wait_for()
    assert page.evaluate("window.ran") == []
    notebook.cell(0).locator(".jp-InputPrompt").click()
    page.keyboard.press("Control+s")
    wait_for(lambda: "docmanager:save" in page.evaluate("window.ran"), "the notebook saved")
    wait_for(lambda: not page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty"), "saved")
    clean(notebook)
