"""A re-entrant checkpoint of which no input requires grad, by whatever name it is called."""

from __future__ import annotations

import pytest
from told import with_lineage

from graphwidget.diagnosis.source.edits.text_edit import apply

NET = """from functools import partial
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.embed = nn.Embedding(5, 3).requires_grad_(False)
        self.block, self.head = nn.Linear(3, 3), nn.Linear(3, 2).requires_grad_(False)
        {before}
        self.run = {made}
    def forward(self, x):
        h = {call}
        return self.head(h)
net = Net()
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
"""
TRAIN = "loss = net(torch.arange(5)).pow(2).mean()\nloss.backward()\nopt.step()"


@pytest.mark.parametrize(
    "before, made, call, line",
    [
        (
            "options.setdefault('use_reentrant', True)",
            "partial(checkpoint, **options)",
            "self.run(self.block, self.embed(x))",
            8,
        ),
        ("options['use_reentrant'] = True", "partial(checkpoint, **options)", "self.run(self.block, self.embed(x))", 8),
        ("", "partial(checkpoint, use_reentrant=True)", "self.run(self.block, self.embed(x))", 9),
        ("", "None", "checkpoint(self.block, self.embed(x), use_reentrant=True)", 11),
    ],
)
def test_the_option_is_the_place_and_the_edit(before: str, made: str, call: str, line: int) -> None:
    setup = NET.format(before=before, made=made, call=call)
    (found,) = with_lineage(setup, TRAIN)
    assert found.kind == "no_grad" and found.fixes[0].id == "use_reentrant_false"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, line)
    fixed = apply(setup, found.fixes[0].edits)
    assert not with_lineage(fixed, TRAIN, "assert net.block.weight.grad is not None")
