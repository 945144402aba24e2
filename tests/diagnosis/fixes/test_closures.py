"""A state that a closure keeps in a variable of the function around it is cut there, as one of an object is."""

import pytest
from told import findings_of

LOOP = """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = step(torch.randn(2, 4)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
READ_AND_SET = """
def make(net):
    h = torch.zeros(2, 4)
    def step(x):
        nonlocal h
        h = torch.tanh(net(x) + h)
        return h
    return step
net = nn.Linear(4, 4)
step = make(net)
"""
HANDED_OVER = """
def make(net):
    last = None
    def step(x):
        nonlocal last
        if last is None:
            last = torch.zeros(2, 4)
        out = torch.tanh(net(x) + last)
        last = out
        return out
    return step
net = nn.Linear(4, 4)
step = make(net)
"""
NONE_AT_FIRST = """
def make(net):
    mean = None
    def step(x):
        nonlocal mean
        y = net(x).tanh()
        mean = y if mean is None else 0.9 * mean + 0.1 * y
        return y * mean
    return step
net = nn.Linear(4, 4)
step = make(net)
"""
A_NUMBER_AT_FIRST = """
def make(net):
    total = 0.0
    def step(x):
        nonlocal total
        total = total + net(x).tanh()
        return total
    return step
net = nn.Linear(4, 4)
step = make(net)
"""


@pytest.mark.parametrize(
    "program, line, edit",
    [
        (READ_AND_SET, 6, "h = h.detach()"),
        (HANDED_OVER, 8, "last = last.detach()"),
        (NONE_AT_FIRST, 7, "if mean is not None:\n            mean = mean.detach()"),
        (A_NUMBER_AT_FIRST, 6, "if torch.is_tensor(total):\n            total = total.detach()"),
    ],
)
def test_the_cut_stands_before_the_line_that_reads_it(program, line, edit):
    found = next(one for one in findings_of(program, LOOP) if one.kind == "second_backward")
    assert [fix.id for fix in found.fixes] == ["detach"]
    (fix,) = found.fixes
    (only,) = fix.edits
    assert fix.verified and only.cell == 1 and only.start[0] == line
    assert only.new.strip() == edit
