"""The timeline in a real JupyterLab: long loops, who keeps which bytes, two moments compared, forecasts that are kept."""

import pytest
from harness import screenshot, wait_for

pytestmark = pytest.mark.e2e

LOAD = "%load_ext graphwidget"
NETS = """\
import torch
from torch import nn
torch.manual_seed(0)
D, G = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), nn.Linear(2, 3)
opt_D, opt_G = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (D, G))
history = []"""
LOOP = """\
for i in range(300):
    z = torch.randn(4, 2)
    D_loss = D(G(z).detach()).mean()
    D_loss.backward()
    opt_D.step()
    G_loss = D(G(z)).mean()
    G_loss.backward()
    opt_G.step()"""
KEPT = "history.append(D(torch.randn(64, 3)).exp().sum())"
# Pairs of labels of the timeline that touch, and labels that are cut.
TOUCHING = """view => {
  const boxes = [...view.querySelectorAll('.gw-line text, .gw-line .g-callno')].map(text => text.getBoundingClientRect());
  const cut = [...view.querySelectorAll('.gw-seg')].filter(seg => seg.scrollWidth > seg.clientWidth + 1);
  return cut.length + boxes.filter((a, i) => boxes.some((b, k) => k > i && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length; }"""


def test_a_long_training_is_shown_divided_and_compared(open_notebook, shots):
    notebook = open_notebook(LOAD, NETS, LOOP, KEPT, KEPT.replace("64", "128"), "%graphwidget")
    for cell in range(6):
        notebook.run_cell(cell)
    widget = notebook.output(5).locator(".graphwidget").first
    widget.locator('[role="treeitem"]').first.wait_for()
    folded = widget.locator("button.gw-folded").first
    folded.wait_for()
    assert "×29" in folded.get_attribute("aria-label")
    assert widget.evaluate(TOUCHING) == 0
    screenshot(widget, shots / "timeline-600-calls.png")
    folded.click()
    wait_for(lambda: widget.locator("button.gw-folded").count() > 2, "parts of the loop")
    assert widget.evaluate(TOUCHING) == 0
    notebook.page.keyboard.press("Escape")
    wait_for(lambda: widget.locator("button.gw-out").is_hidden(), "the whole timeline again")

    widget.get_by_role("button", name="Enlarge the timeline: who keeps which bytes").click()
    names = widget.locator("ul.gw-names")
    names.get_by_text("history[1]", exact=True).wait_for()
    assert "history[0]" in names.inner_text()
    assert widget.locator(".gw-keeps").count() >= 3
    screenshot(widget, shots / "timeline-bands.png")
    widget.get_by_role("button", name="Reduce the timeline").click()

    notebook.page.keyboard.press("[")
    notebook.page.keyboard.press("c")
    widget.get_by_role("region", name="Compared moments").wait_for()
    notebook.page.keyboard.press("[")
    compared = widget.get_by_role("region", name="Compared moments")
    compared.get_by_text("By variable").wait_for()
    assert "history[1]" in compared.inner_text() and "added" in compared.inner_text()
    screenshot(widget, shots / "compared.png")
    notebook.page.keyboard.press("Escape")
    wait_for(lambda: compared.count() == 0, "the comparison ended")
    notebook.page.keyboard.press("n")
    assert notebook.problems() == [] and notebook.log.offsite() == []
