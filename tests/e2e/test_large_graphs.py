"""Large graphs in a real JupyterLab: readable at first sight, open down to the last node, smooth at any size."""

import pytest
from harness import screenshot, wait_for
from models import GPT2, LSTM, WIDE

pytestmark = pytest.mark.e2e

LOAD = "%load_ext graphwidget"
BOX = '[role="treeitem"][data-node]:not([data-node=AccumulateGrad])'
# Stands where the drawing stands only after the frame that moved it was painted.
PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
# Font size on screen, px, of every text of a card. SVG text scales with the camera.
SIZES = """view => [...view.querySelectorAll('svg.gw-tree [data-node] text')].map(text =>
  parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


def show(open_notebook, source):
    """A notebook that has run `source` and shows its graph; the widget, once it has drawn it."""
    notebook = open_notebook(LOAD, source, "%graphwidget")
    for cell in range(3):
        notebook.run_cell(cell)
    widget = notebook.output(2).locator(".graphwidget").first
    widget.locator(BOX).first.wait_for()
    settle(notebook, widget)
    return notebook, widget


def settle(notebook, widget):
    """Wait until the picture is the newest one, and drawn."""
    newest = "str(max(w._serial for w in __import__('ipywidgets').Widget.widgets.values() if hasattr(w, '_serial')))"
    wait_for(lambda: widget.get_attribute("data-serial") == notebook.kernel.eval(newest), "the newest picture")
    # A view draws again once it knows its room and its fonts.
    widget.locator("svg.gw-tree:not([aria-busy])").first.wait_for(state="attached")
    notebook.page.evaluate(PAINTED)


def drawn_as(widget):
    return widget.locator(".gw-canvas").get_attribute("data-drawn-as")


def titles(widget):
    """What the boxes say they are."""
    return widget.locator(BOX).evaluate_all("all => all.map(box => box.dataset.node)")


def ink(widget):
    """How many pixels of the bitmap are drawn on, and a number that changes with where they are."""
    return widget.locator("canvas.gw-bitmap").evaluate(
        """canvas => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let count = 0, hash = 0;
          for (let i = 3; i < data.length; i += 4) if (data[i]) { count++; hash = (hash * 31 + i) | 0; }
          return [count, hash]; }"""
    )


def clean(notebook):
    assert notebook.log.problems() == []
    assert notebook.log.offsite() == []


@pytest.fixture
def dark(request):
    """Switches a notebook to the dark theme, and back after the test."""
    switched = []

    def switch(notebook):
        switched.append(notebook)
        notebook.command("apputils:change-theme", {"theme": "JupyterLab Dark"})

    yield switch
    for notebook in switched:
        notebook.command("apputils:change-theme", {"theme": "JupyterLab Light"})


def test_gpt2_is_readable_at_first_sight_light_and_dark(open_notebook, dark, shots):
    notebook, widget = show(open_notebook, GPT2)
    notebook.page.set_viewport_size({"width": 1400, "height": 1000})
    widget.evaluate("view => { view.style.width = '900px'; }")
    notebook.page.evaluate(PAINTED)
    boxes = titles(widget)
    assert 14 <= len(boxes) <= 60
    assert [f"model.h[{k}]" in boxes or f"h[{k}]" in boxes for k in range(12)] == [True] * 12
    for told in ("2 saved tensors held", "50 nodes"):
        assert widget.locator(f'{BOX}[aria-label*="{told}"]').count() >= 1
    assert drawn_as(widget) == "svg"
    assert min(widget.evaluate(SIZES)) >= 9
    screenshot(widget, shots / "gpt2-light.png")
    light = widget.evaluate("view => getComputedStyle(view).backgroundColor")
    dark(notebook)
    wait_for(lambda: widget.evaluate("view => getComputedStyle(view).backgroundColor") != light, "dark colours")
    notebook.page.locator("#jupyterlab-splash").wait_for(state="detached")
    screenshot(widget, shots / "gpt2-dark.png")
    clean(notebook)


def places(tree):
    """Where the boxes of a drawing are, by key, in its own coordinates."""
    return tree.locator(BOX).evaluate_all("all => all.map(box => [box.dataset.key, box.style.transform])")


@pytest.mark.parametrize("how", ["Enter", "double click"])
def test_opening_a_group_shows_what_is_inside_beside_a_column_that_stays(open_notebook, shots, how):
    notebook, widget = show(open_notebook, GPT2)
    column = widget.locator("svg.gw-tree").first
    before = places(column)
    group = column.locator('[aria-expanded=false][data-node^="model.h"]').first
    name = group.get_attribute("data-node")
    if how == "Enter":
        group.focus()
        notebook.page.keyboard.press("Enter")
    else:
        group.dblclick()
    lens = widget.get_by_role("region", name=f"Inside {name}", exact=True)
    lens.locator(BOX).first.wait_for()
    assert places(column) == before
    assert " · from " in lens.inner_text() and " · to " in lens.inner_text()
    wedge = widget.locator(".gw-wedge path").bounding_box()
    card, frame = group.bounding_box(), lens.bounding_box()
    assert wedge["x"] <= card["x"] + card["width"] + 2 and wedge["x"] + wedge["width"] >= frame["x"] - 2
    assert card["x"] + card["width"] <= frame["x"] + 12  # the second edges of a group may reach under the frame
    wait_for(lambda: lens.evaluate("lens => lens.contains(document.activeElement)"), "the focus in the lens")
    screenshot(widget, shots / f"gpt2-open-{how.replace(' ', '-')}.png")
    inner = lens.locator("[aria-expanded=false]").first
    deep = inner.get_attribute("data-node")
    inner.dblclick()
    deeper = widget.get_by_role("region", name=f"Inside {deep}", exact=True)
    deeper.get_by_role("button", name=name, exact=True).wait_for()
    deeper.locator(BOX).first.wait_for()
    for left in (1, 0):
        notebook.page.keyboard.press("Escape")
        wait_for(lambda left=left: widget.locator(".gw-trail > :is(b, button)").count() == left, f"{left} open")
    assert group.evaluate("group => group === document.activeElement")
    assert places(column) == before
    clean(notebook)


# Whether everything that can have the focus is inside the drawing.
INSIDE = """view => {
  const room = view.querySelector('.gw-canvas').getBoundingClientRect();
  return [...view.querySelectorAll('svg.gw-tree [role=treeitem]')].every(item => {
    const { left, right, top, bottom } = item.getBoundingClientRect();
    return left >= room.left && right <= room.right && top >= room.top && bottom <= room.bottom; }); }"""
# Whether cards are drawn, and how many of them cover another one. The front edge of a group's is the last one.
COVERED = """view => {
  const cards = [...view.querySelectorAll('svg.gw-tree [role=treeitem][data-node]')];
  const rects = cards.flatMap(card => [...card.querySelectorAll('rect.g-node')].slice(-1))
    .map(edge => edge.getBoundingClientRect());
  return [rects.length > 2, rects.filter((a, i) => rects.some((b, k) => k > i && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length]; }"""
# Losses side by side, with code beside them.
BESIDE = """\
import torch
v, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
first = v.exp().sum()
second = w.sin().sum()
third = v.cos().sum()"""


def test_a_first_look_follows_the_width_and_leaves_out_the_code_where_there_is_no_room(open_notebook):
    notebook, widget = show(open_notebook, BESIDE)
    code = widget.locator("svg.gw-tree text.g-code")
    notebook.page.set_viewport_size({"width": 1500, "height": 1000})
    for width, has_code in ((1300, True), (800, False), (1300, True)):
        widget.evaluate("(view, width) => { view.style.width = `${width}px`; }", width)
        wait_for(lambda has_code=has_code: (code.count() > 0) == has_code, f"code beside at {width} px: {has_code}")
        wait_for(lambda: widget.evaluate(INSIDE), f"every card in view at {width} px")
        assert widget.get_attribute("data-width") == "wide"
        assert float(widget.locator(".gw-canvas").get_attribute("data-scale")) >= 0.79  # everything is written out
        assert widget.evaluate(COVERED) == [True, 0]
    clean(notebook)


# A chain of two lists of layers: with 24 boxes it is cut off.
DEEP = """\
import torch
from torch import nn
model = nn.Transformer(16, 4, 2, 2, 32, batch_first=True, dropout=0.0)
loss = model(torch.randn(2, 5, 16), torch.randn(2, 4, 16)).pow(2).mean()"""
# Three branches: cards get wider when the code beside them goes.
BRANCHES = """\
import torch
from torch import nn
encode = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8))
anchor, near, far = (encode(x) for x in torch.randn(3, 2, 1, 8, 8))
loss = nn.functional.triplet_margin_loss(anchor, near, far)
loss.backward()"""


@pytest.mark.parametrize(("source", "groups"), [(DEEP, 4), (BRANCHES, 0)], ids=["deep", "branches"])
def test_a_first_look_has_every_card_readable_and_covered_by_no_other(open_notebook, shots, request, source, groups):
    notebook, widget = show(open_notebook, source)
    wait_for(lambda: widget.evaluate(INSIDE), "every card in view")
    assert float(widget.locator(".gw-canvas").get_attribute("data-scale")) >= 0.55
    assert widget.locator("[role=treeitem][aria-expanded=false]").count() >= groups
    assert widget.evaluate(COVERED) == [True, 0]
    screenshot(widget, shots / f"first-look-{request.node.callspec.id}.png")
    clean(notebook)


def test_another_width_is_fitted_anew_with_the_lens_open(open_notebook, shots):
    notebook, widget = show(open_notebook, GPT2)
    widget.locator("[aria-expanded=false]").first.dblclick()
    lens = widget.locator(".gw-lens")
    lens.locator(BOX).first.wait_for()
    widget.evaluate("view => { view.style.width = '600px'; }")
    wait_for(lambda: widget.get_attribute("data-width") == "narrow", "a narrow view")
    widget.evaluate("view => { view.style.width = '500px'; }")
    wait_for(lambda: lens.bounding_box()["width"] > 450, "the lens over the whole drawing")
    screenshot(widget, shots / "gpt2-narrow.png")
    clean(notebook)


def test_search_finds_operations_modules_and_lines_in_closed_blocks(open_notebook):
    notebook, widget = show(open_notebook, GPT2)
    widget.get_by_role("button", name="Search", exact=True).click()
    field, found = widget.get_by_role("searchbox"), widget.locator(".gw-found")
    for words, least in (("Softmax", 12), ("model.h[7].mlp", 4), ("return self.c_proj(F.gelu", 12), ("logits", 1)):
        field.fill("there is no such thing")
        wait_for(lambda: found.inner_text() == "none", "no hit")
        field.fill(words)
        wait_for(lambda: found.inner_text().startswith("1 of "), f"hits for {words}")
        hits = int(found.inner_text().split()[-1])
        assert hits >= least, words
        field.press("Enter")
        wait_for(lambda: found.inner_text() == f"{min(2, hits)} of {hits}", "the next hit")
        if least > 1:
            widget.locator(".gw-lens .g-hitcard").first.wait_for()  # it is in a closed block: the lens shows it
    field.press("Escape")
    wait_for(lambda: not field.is_visible(), "the search closed")
    assert widget.locator(".gw-lens").count() == 0
    clean(notebook)


def test_every_node_of_a_long_lstm_can_be_shown_and_closed_again(open_notebook, shots):
    notebook, widget = show(open_notebook, LSTM)
    assert len(titles(widget)) <= 60 and drawn_as(widget) == "svg"
    screenshot(widget, shots / "lstm10k.png")
    menu = widget.get_by_label("What to show")
    menu.select_option("all")
    wait_for(lambda: drawn_as(widget) == "bitmap", "10,000 nodes as a bitmap")
    wait_for(lambda: ink(widget)[0] > 1000, "nodes on the bitmap")
    assert "10,4" in widget.locator(".gw-facts").inner_text() or "as 7," in widget.locator(".gw-facts").inner_text()
    # The keyboard walks the bitmap too: the focused node is an element.
    focused = widget.locator('svg.gw-tree [tabindex="0"]')
    focused.focus()
    first = focused.get_attribute("data-key")
    notebook.page.keyboard.press("ArrowUp")
    wait_for(lambda: focused.get_attribute("data-key") != first, "the next node along an edge")
    screenshot(widget, shots / "lstm10k-all.png")
    menu.select_option("auto")
    wait_for(lambda: drawn_as(widget) == "svg" and len(titles(widget)) <= 60, "the folded picture again")
    clean(notebook)


def test_a_graph_of_100_000_nodes_pans_and_zooms(open_notebook, shots):
    notebook, widget = show(open_notebook, WIDE.format(nodes=100_000))
    assert len(titles(widget)) <= 60
    widget.get_by_label("What to show").select_option("all")
    wait_for(lambda: drawn_as(widget) == "bitmap", "100,000 nodes as a bitmap")
    wait_for(lambda: ink(widget)[0] > 1000, "nodes on the bitmap")
    screenshot(widget, shots / "wide100k.png")
    bitmap, canvas = widget.locator("canvas.gw-bitmap"), widget.locator(".gw-canvas")
    box = canvas.bounding_box()
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def place():
        return bitmap.evaluate("canvas => canvas.getBoundingClientRect().y")

    def drag(pixels):
        notebook.page.mouse.move(*at)
        notebook.page.mouse.down()
        notebook.page.mouse.move(at[0], at[1] + pixels, steps=8)
        notebook.page.mouse.up()

    was = place()
    drag(100)
    # The bitmap follows the pointer, then is drawn anew around the view.
    wait_for(lambda: place() != was or ink(widget)[1], "a drawing that moved")
    drawn = ink(widget)
    drag(box["height"] / 2 - 20)
    wait_for(lambda: ink(widget) != drawn, "another part of the graph")
    assert ink(widget)[0] > 1000
    scale = canvas.get_attribute("data-scale")
    widget.get_by_role("button", name="Zoom out").click()
    wait_for(lambda: canvas.get_attribute("data-scale") != scale, "another scale")
    clean(notebook)
