"""A flag that is set on what nothing keeps."""

import pytest
import torch
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

NET = "net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))\nnet.requires_grad_(False)\n"
LOOP = """
net[2].requires_grad_()
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1)
for _ in range(2):
    loss = net(torch.ones(3, 2)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ROWS = [
    "net[0].weight.requires_grad = True",
    "part = torch.zeros_like(net[0].weight)",
    "part[1:] = 1.0",
    "net[0].weight.register_hook(lambda grad, part=part: grad * part)",
]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("net[0].weight[1:].requires_grad = True", ROWS),
        ("net[0].weight.data.requires_grad = True", ROWS[:1]),
        ("net[0].weight.detach().requires_grad_()", ROWS[:1]),
        ("net[2].weight.data.requires_grad = False", ["net[2].weight.requires_grad = False"]),
    ],
)
def test_a_tensor_gets_its_own_flag(line, new):
    cell = NET + line + LOOP
    (found,) = findings_of(cell)
    assert (found.kind, found.severity, found.cause.line) == ("silent", "warning", 3)
    assert "has no effect" in found.headline
    lines = text_edit.new_text(cell, found.fixes[0].edits)
    assert all(one in lines for one in new)


def test_the_rows_are_trained_with_the_edit_and_no_others():
    loop = "for name, p in net.named_parameters():\n    if name == '0.weight':\n        p[1:].requires_grad = True"
    cell = NET + loop + LOOP
    (found,) = findings_of(cell)
    new = text_edit.apply(cell, found.fixes[0].edits).replace("opt =", "before = net[0].weight.detach().clone()\nopt =")
    assert not findings_of(new)
    space = {"torch": torch, "nn": torch.nn}
    exec(new, space)
    moved = (space["net"][0].weight.detach() - space["before"]).abs().sum(1) > 0
    assert moved.tolist() == [False, True]


def test_modules_in_a_slice_are_the_modules():
    assert not findings_of(NET + "net[:2].requires_grad_(True)" + LOOP)
    (found,) = findings_of(NET + "net[:2].requires_grad = True" + LOOP)
    assert "`net[:2].requires_grad_(True)`" in found.fixes[0].text and not found.fixes[0].edits


def test_a_function_that_nothing_calls_is_left_alone():
    assert not findings_of(NET + "def thaw(p):\n    p.weight[1:].requires_grad = True" + LOOP)
