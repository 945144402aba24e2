"""A notebook that imports a package: the note, the code rail and the finding name the package's own lines."""

import pytest
from harness import screenshot, wait_for

pytestmark = pytest.mark.e2e

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.state = nn.Linear(2, 3), torch.zeros(4, 3)

    def forward(self, x):
        self.state = torch.tanh(self.lin(x) + self.state)
        return self.state
""".lstrip()
TRAIN = """
import torch


def fit(net, steps=2):
    for _ in range(steps):
        out = net(torch.ones(4, 2))
        loss = out.square().mean()
        loss.backward()
""".lstrip()
CELLS = [
    "%load_ext graphwidget",
    "%graphwidget",
    "from shipped.net import Net\nfrom shipped.train import fit\nnet = Net()",
    "fit(net)",
]


@pytest.fixture
def package(server):
    """A package beside the notebook."""
    folder = server.root / "shipped"
    folder.mkdir(exist_ok=True)
    for name, text in (("__init__", ""), ("net", NET), ("train", TRAIN)):
        (folder / f"{name}.py").write_text(text)


def test_a_package_of_a_notebook_has_its_lines_in_note_rail_and_finding(package, open_notebook, shots):
    notebook = open_notebook(*CELLS)
    notebook.page.set_viewport_size({"width": 1700, "height": 1000})
    for cell in range(len(CELLS)):
        notebook.run_cell(cell)
    note = notebook.output(3).inner_text()
    assert "net.state" in note and "shipped/net.py:11" in note
    notebook.scroll_to(1)
    widget = notebook.output(1).locator(".graphwidget").first
    widget.wait_for()
    finding = widget.locator(".gw-finding").first
    finding.wait_for()
    assert "shipped/net.py:11" in finding.inner_text()
    for line in ("net.py:11 forward", "train.py:7 fit", "train.py:8"):
        wait_for(lambda line=line: line in (widget.text_content() or ""), f"{line} in the code rail")
    screenshot(widget, shots / "files.png")
    assert notebook.problems() == []
