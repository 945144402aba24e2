"""Lines that compute a new value for a gradient or a parameter, and drop it."""

import pytest
from told import findings_of

CELL = """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    loss = net(torch.ones(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    for p in net.parameters():
        {}
    opt.step()
"""


def told(line, cell=CELL):
    found = [one for one in findings_of(cell.format(line)) if " changes no " in (one.headline or "")]
    return [(one.headline, *(line[1:].strip() for line in one.fixes[0].edit if line.startswith("+"))) for one in found]


@pytest.mark.parametrize(
    ("line", "what", "new"),
    [
        ("p.grad.clamp(-1, 1)", "gradient", "p.grad.clamp_(-1, 1)"),
        ("p.grad.data.mul(0.5)", "gradient", "p.grad.data.mul_(0.5)"),
        ("torch.clamp(p.grad, -1, 1)", "gradient", "p.grad.clamp_(-1, 1)"),
        ("p.data.clamp(-0.1, 0.1)", "parameter", "p.data.clamp_(-0.1, 0.1)"),
    ],
)
def test_a_value_that_nothing_takes(line, what, new):
    assert told(line) == [(f"`{line}` changes no {what}.", new)]


def test_parameters_with_their_names():
    cell = CELL.replace("for p in net.parameters()", "for name, p in net.named_parameters()")
    assert told("p.clamp(-1, 1)", cell) == [("`p.clamp(-1, 1)` changes no parameter.", "p.data.clamp_(-1, 1)")]


@pytest.mark.parametrize(
    "line",
    [
        "p.grad.clamp_(-1, 1)",
        "p.grad = p.grad.clamp(-1, 1)",
        "p.data.copy_(p.data.clamp(-1, 1))",
        "torch.clamp(p.grad, -1, 1, out=p.grad)",
        "p.grad.mul(0.5).mul_(2) if False else None",
        "seen = set(); seen.add(p)",
        "q = {1}; q.add(p.grad)",
    ],
)
def test_what_writes_or_belongs_to_something_else_is_not_told(line):
    assert told(line) == []
