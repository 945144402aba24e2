"""A loss that was made to require grad: that line and the one that had cut the graph are undone together."""

import warnings

import pytest
from told import with_lineage

from graphwidget.diagnosis.source.edits import text_edit

SET_UP = "net, gain = nn.Linear(3, 2), nn.Linear(3, 2)\nopt = torch.optim.SGD([*net.parameters(), *gain.parameters()], 0.1)\n"
LOOP = """\
for _ in range(3):
    out = net(torch.ones(3))
    {cut}
    {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FORCED = [
    ("out = out.data * 2", "loss = out.sum(); loss.requires_grad = True", ("out = out * 2",), ("requires_grad",)),
    (
        "out = out.detach() + 1",
        "loss = out.sum().requires_grad_()",
        ("out = out + 1", "loss = out.sum()"),
        ("requires_grad_",),
    ),
    (
        "parts = [out[0], out[1]]",
        "loss = torch.tensor(parts, requires_grad=True).sum()",
        ("loss = torch.stack(parts).sum()",),
        (),
    ),
    (
        "part = out.sum().item()",
        "loss = torch.tensor(part * 2, requires_grad=True)",
        ("part = out.sum()", "loss = part * 2"),
        (),
    ),
    (
        "a, b = out[0].item(), 0\n    b = gain(torch.ones(3)).sum().item()",
        "loss = torch.tensor(a + b, requires_grad=True)",
        ("loss = a + b",),
        ("item",),
    ),
]


@pytest.mark.parametrize(("cut", "loss", "new", "gone"), FORCED)
def test_both_lines_are_undone(cut, loss, new, gone):
    loop = LOOP.format(cut=cut, loss="\n    ".join(loss.split("; ")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of a tensor that is made of tensors
        found = [
            one
            for one in with_lineage(SET_UP, loop)
            if "`opt.step()` changed" in one.headline or "reached no" in one.headline
        ]
        assert found
        for one in found:
            fixed = text_edit.apply(loop, one.fixes[0].edits)
            lines = [line.strip() for line in fixed.splitlines()]
            assert all(line in lines for line in new) and not any(name in fixed for name in gone)
            assert not with_lineage(SET_UP, fixed), "it trains, and nothing is left to say"


def test_what_was_made_of_nothing_that_trains_is_left_alone():
    loop = LOOP.format(cut="w = torch.ones(2)", loss="loss = (out.detach() * 0 + w).requires_grad_().sum() + out.sum()")
    assert not any(fix.edits for one in with_lineage(SET_UP, loop) for fix in one.fixes)
