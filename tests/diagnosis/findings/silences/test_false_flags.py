"""What a line was to freeze by an attribute that torch does not read."""

from __future__ import annotations

import pytest
from told import findings_of, said

NET = "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))"
TRAIN = """
opt = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _ in range(3):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_FIRST = [("warning", "`net[0]` is not frozen: the parameters go on training.")]


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("net[0].requires_grad = False", "net[0].requires_grad_(False)"),
        ("net[0].requires_grad_ = False", "net[0].requires_grad_(False)"),
        ("net[0].require_grad = not True", "net[0].requires_grad_(not True)"),
        ("setattr(net[0], 'requires_grad', False)", "net[0].requires_grad_(False)"),
        ("first = net[0]; first.requires_grad = False", "first.requires_grad_(False)"),
        ("def freeze(part):\n    part.requires_grad = False\nfreeze(net[0])", "part.requires_grad_(False)"),
    ],
)
def test_a_module_is_not_frozen_by_an_attribute(line: str, new: str) -> None:
    (found,) = findings_of(NET, line, TRAIN)
    assert [(found.severity, found.headline.replace("`first`", "`net[0]`"))] == OF_FIRST
    assert found.cause is not None and found.cause.cell == 2
    assert [edit.new for edit in found.fixes[0].edits] == [new]
    assert len(found.fixes[0].starves) == 2  # which the fix is to take their gradients from


def test_parameters_of_a_loop_whose_flag_is_misspelt() -> None:
    (found,) = findings_of(NET, "for one in net[0].parameters():\n    one.requires_grads = False", TRAIN)
    assert found.headline == "`net[0].weight` and `net[0].bias` are not frozen, and trained."
    assert [edit.new for edit in found.fixes[0].edits] == ["one.requires_grad = False"]


def test_where_it_is_set_to_true_later_both_lines_are_mended() -> None:
    later = TRAIN + "net[0].requires_grad = True\n" + TRAIN
    (found,) = findings_of(NET, "net[0].requires_grad = False", later)
    assert sorted(edit.new for edit in found.fixes[0].edits) == [
        "net[0].requires_grad_(False)",
        "net[0].requires_grad_(True)",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "net[0].requires_grad = False\nfor one in net[0].parameters():\n    one.requires_grad = False",
        "net[0].requires_grad = False\nnet[0].requires_grad_(False)",
        "net[1].requires_grad = False",  # it has no parameters
        "net[0].requires_grad = False\nprint(net[0].requires_grad)",  # the program's own
        "net[0].requires_grad = True",
        "net[0].frozen = False",
        "net[0].grad = False",
    ],
)
def test_an_attribute_that_says_what_holds_or_is_of_the_program_s_own(line: str) -> None:
    assert not said(NET, line, TRAIN)
