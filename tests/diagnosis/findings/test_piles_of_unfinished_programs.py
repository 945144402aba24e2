"""Graphs that are kept when a program is stopped: a call that was still to come may be what they are kept for."""

from dataclasses import replace

import pytest

from graphwidget.diagnosis.diagnose import diagnose
from tests.support.told import findings_of, record_of

# Each task adapts a weight, and the sum of the losses behind is for one call that comes after all tasks.
TASKS = """
net = nn.Linear(2, 1)
def adapted(tasks):
    total = 0
    for _ in range(tasks):
        fast = net.weight
        for _ in range(2):
            loss = nn.functional.linear(torch.ones(3, 2), fast).exp().sum()
            (grad,) = torch.autograd.grad(loss, [fast])
            fast = fast - 0.01 * grad
        total = total + nn.functional.linear(torch.ones(3, 2), fast).exp().sum()
    return total
total = adapted(4)
"""
OWN_CALLS = """
net, kept = nn.Linear(2, 1), []
for _ in range(6):
    loss = net(torch.ones(3, 2)).exp().sum()
    loss.backward(RETAIN)
    kept.append(loss)
"""
STEPPED = """
net, kept = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), []
opt = torch.optim.SGD(net.parameters(), 0.01)
for _ in range(6):
    opt.zero_grad()
    net(torch.ones(3, 2)).exp().sum().backward()
    opt.step()
    kept.append(net(torch.zeros(3, 2)).exp().sum())
"""


def piles(cell, *, unfinished):
    found = diagnose(replace(record_of(cell), unfinished=unfinished))
    return [one.carriers for one in found if one.kind == "leak"]


def test_what_no_call_has_run_is_no_pile_where_the_program_did_not_come_to_its_end():
    assert piles(TASKS, unfinished=False) == [("total",)]
    assert piles(TASKS, unfinished=True) == []


@pytest.mark.parametrize("retain", ["", "retain_graph=True"])
def test_what_its_own_call_ran_is_a_pile_and_what_that_call_retained_may_wait_for_another(retain):
    cell = OWN_CALLS.replace("RETAIN", retain)
    assert piles(cell, unfinished=False) == [("kept",)]
    assert piles(cell, unfinished=True) == ([] if retain else [("kept",)])


def test_what_saved_weights_that_have_been_modified_since_waits_for_no_call():
    assert piles(STEPPED, unfinished=True) == [("kept",)]


# A solver lets the graph of its steps grow for one backward, and tries some steps beyond the one that it returns.
SOLVER = """
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), 0.01)
def slope(y):
    dy = net(y).tanh()
    return dy, torch.autograd.grad(dy.sum(), y, retain_graph=True)[0]
def advance(y, steps):
    f = y
    for _ in range(steps):
        dy, trace = slope(f)
        f = f + 0.1 * dy + 0 * trace
    return f
def solve(y):
    found = advance(y, 6)
    advance(found, 6)
    return found
loss = solve(torch.ones(3, 2, requires_grad=True)).pow(2).sum()
loss.backward()
opt.step()
"""


def test_a_graph_that_a_function_lets_grow_for_a_later_backward_is_no_pile():
    assert findings_of(SOLVER) == ()
