"""Statements whose `detach` nothing takes, and programs in which that makes no difference."""

import pytest
from told import findings_of

START = """
net, other = nn.Linear(2, 1), nn.Linear(2, 1)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], 0.1)
x, y = torch.ones(4, 2), torch.zeros(4, 1)
"""
VALUES = (
    START
    + """
for _ in range(3):
    value = net(x)
    goal = net(x + 1).mean()
    goal.detach()
    loss = (value - goal - other(y.expand(4, 2))).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)
LOSS = (
    """
def distance(value, goal):
    goal.detach()
    return (value - goal).pow(2).mean()
"""
    + START
    + """
for _ in range(3):
    value = net(x)
    soft = net(x + 1)
    loss = distance(value, soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)


def dropped(cell):
    return [one for one in findings_of(cell) if "thrown away" in (one.headline or "")]


def edits(finding):
    return [line.strip() for line in finding.fixes[0].edit if line.startswith("+")] if finding.fixes else []


@pytest.mark.parametrize(
    ("cell", "edit"), [(VALUES, "+ goal = goal.detach()"), (LOSS, "+ goal = goal.detach()")], ids=["loop", "argument"]
)
def test_what_was_to_be_cut_is_kept(cell, edit):
    (found,) = dropped(cell)
    assert found.severity == "warning" and found.tensor == "goal" and "".join(edits(found)).split() == edit.split()


def test_what_only_this_way_trains_is_no_warning():
    cell = VALUES.replace("goal = net(x + 1).mean()", "goal = other(x + 1).mean()").replace(
        " - other(y.expand(4, 2))", ""
    )
    (found,) = dropped(cell)
    assert found.severity == "info" and not found.fixes and "Only this way leads to `other" in found.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    goal.detach()", "    goal = goal.detach()"),
        ("    goal.detach()", "    print(goal.detach())"),
        ("    goal.detach()", "    if value is None:\n        goal.detach()"),
        ("(value - goal -", "(value -"),
        ("(value - goal -", "(value - goal.detach() -"),
        ("(value - goal -", "(value - goal.item() -"),
        ("value = net(x)", "value = y"),
    ],
    ids=["kept", "shown", "under a condition", "not read", "detached where it is read", "a number of it", "all of it"],
)
def test_where_it_makes_no_difference_nothing_is_said(old, new):
    cell = VALUES.replace(old, new)
    if new == "value = y":
        cell = cell.replace(" - other(y.expand(4, 2))", "")
    assert not dropped(cell)


def test_the_last_line_of_a_cell_shows_its_value():
    cell = START + "goal = net(x)\nloss = (goal - other(x)).mean()\nloss.backward()\ngoal.detach()\n"
    assert not dropped(cell)


def test_after_the_call_it_makes_no_difference():
    cell = START + "goal = net(x)\nloss = (goal - other(x)).mean()\nloss.backward()\ngoal.detach()\nprint(goal)\n"
    assert not dropped(cell)
