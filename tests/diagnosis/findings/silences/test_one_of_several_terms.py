"""A line that adds up more than two parts of a loss, of which one was measured to have left the graph."""

from __future__ import annotations

import pytest
from told import with_lineage

SETUP = """net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
x, y = torch.randn(16, 3), torch.arange(16) % 4
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ce = nn.CrossEntropyLoss()
class Seen:
    def __init__(self, layer):
        layer.register_forward_hook(self.keep)
    def keep(self, module, inputs, output):
        self.value = output.detach()
seen = Seen(net[0])
"""
LOOP = """for step in range(3):
    opt.zero_grad()
    out = net(x)
    fit, size, att = ce(out, y), out.pow(2).mean(), seen.value.abs().mean()
    loss = {total}
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "total, shown",
    [
        ("fit + size + 0.5 * att", "`0.5 * att`"),
        ("fit + att + size", "`att`"),
        ("att + fit + size", "`att`"),
        ("fit + 0.5 * att", "`0.5 * att`"),
    ],
)
def test_the_part_is_named_with_the_line_that_cut_it_off(total: str, shown: str) -> None:
    (found,) = with_lineage(SETUP, LOOP.format(total=total))
    assert found.headline == f"{shown} is a constant: no step goes by it."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 9)
    assert found.fixes[0].edit == ("- self.value = output.detach()", "+ self.value = output")


@pytest.mark.parametrize("total", ["fit + size - att", "fit - size + att"])
def test_what_something_is_taken_from_may_be_centred(total: str) -> None:
    assert not [one for one in with_lineage(SETUP, LOOP.format(total=total)) if "is a constant" in one.headline]


@pytest.mark.parametrize("total", ["fit + size + 0.5 * att", "fit + (att if step else size) + size"])
def test_a_part_that_has_a_graph_in_some_pass_is_none(total: str) -> None:
    cell = (
        LOOP.format(total=total)
        .replace("att = ce", "att = ce")
        .replace("seen.value.abs().mean()", "(seen.value if step else net[0](x)).abs().mean()")
    )
    assert not [one for one in with_lineage(SETUP, cell) if "is a constant" in one.headline]
