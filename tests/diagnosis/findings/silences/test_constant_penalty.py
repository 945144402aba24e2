"""A penalty on parameters that no step goes by."""

import pytest
from told import findings_of, said

NET = (
    "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\nx = torch.ones(8, 3)\n"
    "old = [p.detach().clone() for p in net.parameters()]\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"
)
LOOP = (
    "for step in range(4):\n    opt.zero_grad()\n    loss = net(x).pow(2).mean() + 0.1 * penalty(net)\n"
    "    loss.backward()\n    opt.step()\n"
)
PENALTY = "def penalty(model):\n    total = 0.0\n    for p, o in zip(model.parameters(), old):\n{}    return total"

CONSTANT = {
    "data": (PENALTY.format("        total += p.data.norm()\n"), 4, "- total += p.data.norm()"),
    "detached": (
        PENALTY.format("        total = total + (p.detach() - o).norm()\n"),
        4,
        "- total = total + (p.detach() - o).norm()",
    ),
    "another value": (PENALTY.format("        p = o[:1]\n        total += (p - o).norm()\n"), 4, ""),
    "a comprehension": ("def penalty(model):\n    return sum(p.norm().item() for p in model.parameters())", 2, "-"),
    "without grad mode": (
        "def penalty(model):\n    with torch.no_grad():\n        return sum(p.norm() for p in model.parameters())",
        2,
        "- with torch.no_grad():",
    ),
}


@pytest.mark.parametrize("how", CONSTANT)
def test_a_penalty_without_a_graph_is_a_constant(how: str) -> None:
    function, line, edit = CONSTANT[how]
    (found,) = findings_of(NET, function, LOOP)
    assert found.headline == "`0.1 * penalty(net)` is a constant: no step goes by it."
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, line)
    assert "penalty" in found.names and "\n".join(found.fixes[0].edit).startswith(edit)


CORRECT = {
    "with a graph": PENALTY.format("        total = total + (p - o).norm()\n"),
    "none in the first pass": (
        "def penalty(model):\n    if step == 0:\n        return torch.tensor(0.0)\n"
        "    return sum((p - o).pow(2).sum() for p, o in zip(model.parameters(), old))"
    ),
    "a constant of something else": "def penalty(model):\n    return sum(o.norm() for o in old)",
    "compared with its own values": PENALTY.format("        total = total + (p - p.detach()).norm()\n"),
}


@pytest.mark.parametrize("how", CORRECT)
def test_correct_penalties_are_left_alone(how: str) -> None:
    assert said(NET, CORRECT[how], LOOP) == []
