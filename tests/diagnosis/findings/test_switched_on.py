"""Grad mode that a helper leaves on inside a block without it: the line that did so is told, and no block that ends."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

NET = """torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))
def batches(n=10):
    return [torch.randn(256, 64) for _ in range(n)]
"""
HELPER = """def distance(y):
    torch.set_grad_enabled(False)
    c = y.mean(0)
    for _ in range(3):
        c = c / c.norm()
    torch.set_grad_enabled(True)
    return (y - c).pow(2)
"""
BLOCK = """outs = []
with torch.no_grad():
    for x in batches():
        outs.append(distance(net(x)))
"""
DECORATED = """@torch.no_grad()
def evaluate():
    return [distance(net(x)) for x in batches()]
outs = evaluate()
"""
BESIDE = """outs = []
with torch.no_grad():
    for x in batches():
        distance(x)
        outs.append(net(x))
"""


def one_of(*cells: str):
    """The one finding of some cells."""
    (finding,) = findings_of(NET, *cells)
    return finding


@pytest.mark.parametrize(("cell", "line"), [(BLOCK, 2), (DECORATED, 2), (BESIDE, 2)])
def test_the_line_that_switched_it_on_is_the_cause(cell: str, line: int) -> None:
    finding = one_of(HELPER, cell)
    assert (finding.kind, finding.severity) == ("leak", "warning")
    assert (finding.made_at.cell, finding.made_at.line) == (2, 6)
    assert f"inside `torch.no_grad()` (In[3], line {line}), but `torch.set_grad_enabled(True)` (In[2], line 6)" in (
        finding.text
    )


def test_a_block_in_place_of_the_two_lines_puts_back_what_was_there() -> None:
    fix = one_of(HELPER, BLOCK).fixes[0]
    assert fix.id == "restore_the_mode"
    fixed = text_edit.apply(HELPER, fix.edits)
    assert fixed == (
        "def distance(y):\n    with torch.no_grad():\n        c = y.mean(0)\n        for _ in range(3):\n"
        "            c = c / c.norm()\n    return (y - c).pow(2)\n"
    )
    assert findings_of(NET, fixed, BLOCK) == ()


def test_the_block_is_called_as_the_program_calls_torch() -> None:
    helper = HELPER.replace("torch.set", "torch.autograd.set")
    assert "with torch.no_grad():" in text_edit.apply(helper, one_of(helper, BLOCK).fixes[0].edits)


def test_a_line_that_only_switches_it_on_gets_advice() -> None:
    helper = HELPER.replace("    torch.set_grad_enabled(False)\n", "")
    fix = one_of(helper, BLOCK).fixes[0]
    assert "`with torch.enable_grad():` in place of `torch.set_grad_enabled(True)` (In[2], line 5)" in fix.text
    assert not fix.edits


@pytest.mark.parametrize(
    "helper",
    [
        "def distance(y):\n    with torch.enable_grad():\n        return net(torch.randn(256, 64)).pow(2)\n",
        "@torch.enable_grad()\ndef distance(y):\n    return net(torch.randn(256, 64)).pow(2)\n",
        "def distance(y):\n    before = torch.is_grad_enabled()\n    torch.set_grad_enabled(True)\n"
        "    out = net(torch.randn(256, 64)).pow(2)\n    torch.set_grad_enabled(before)\n    return out\n",
    ],
)
def test_what_switches_it_on_for_itself_is_meant(helper: str) -> None:
    finding = one_of(helper, BLOCK)
    assert finding.severity == "info" and "switches grad mode" not in finding.text


@pytest.mark.parametrize(
    "block", ["with torch.enable_grad():", "with torch.set_grad_enabled(net.training):", "if True:"]
)
def test_a_block_that_does_not_switch_it_off_is_none(block: str) -> None:
    assert one_of(HELPER, BLOCK.replace("with torch.no_grad():", block)).severity == "info"
