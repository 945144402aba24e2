"""Graphs of gradients (`create_graph=True`) that pile up; those that a step of higher order needs are no pile."""

import pytest

from tests.support.told import findings_of, said

MOMENTS = """from typing import NamedTuple
class State(NamedTuple):
    m: dict
    count: int
class Momentum:
    def __init__(self, net):
        self.net, self.state = net, State({n: torch.zeros_like(p) for n, p in net.named_parameters()}, 0)
    def step(self, loss):
        names, params = zip(*self.net.named_parameters())
        grads = torch.autograd.grad(loss, params, create_graph=True)
        m = {n: KEPT for n, g in zip(names, grads)}
        self.state = State(m, self.state.count + 1)
        with torch.no_grad():
            for n, p in zip(names, params):
                p -= 0.1 * m[n]
net, other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Linear(1, 1)
mine, opt = Momentum(net), torch.optim.SGD(other.parameters(), lr=0.1)
"""
ALONE = "for _ in range(12):\n    mine.step(net(torch.rand(5, 3)).pow(2).mean())\n"
BESIDE = ALONE + "    loss = (other(net(torch.rand(5, 3)).detach()) - 1).pow(2).mean()\n"
BESIDE += "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
WITH_GRAPH, WITHOUT = "0.9 * self.state.m[n] + g", "(0.9 * self.state.m[n] + g).detach()"


@pytest.mark.parametrize("loop", [ALONE, BESIDE], ids=["alone", "beside a backward"])
def test_moments_that_keep_the_graphs_of_all_steps_are_a_pile(loop: str) -> None:
    (found,) = findings_of(MOMENTS.replace("KEPT", WITH_GRAPH), loop)
    assert (found.kind, found.severity) == ("leak", "warning")
    assert found.headline == "Graphs of 12 iterations pile up in `mine.state.m`."
    assert found.made_at is not None and found.made_at.line == 11
    assert ".detach()" in found.fixes[0].edit[1]
    assert said(MOMENTS.replace("KEPT", WITHOUT), loop) == []


AVERAGE = """w = torch.rand(3, requires_grad=True)
def train():
    h = [torch.zeros(3)]
    for _ in range(12):
        g, = torch.autograd.grad((w * torch.rand(3)).exp().sum(), w, create_graph=True)
        hv, = torch.autograd.grad(g.sum(), w, create_graph=True)
        h[0] = 0.9 * h[0] + 0.1 * hv
    return h
last = train()
"""


def test_an_average_of_curvatures_is_cut_where_it_is_updated() -> None:
    (found,) = findings_of(AVERAGE)
    assert found.kind == "leak" and "`last" in found.headline
    assert found.fixes[0].edit[1] == "+ h[0] = (0.9 * h[0] + 0.1 * hv).detach()"


STEPS = """w = torch.rand(3, 1, requires_grad=True)
x = torch.rand(8, 3)
f, moment, total, losses = w, torch.zeros(3, 1), 0, []
for _ in range(15):
    loss = (x @ f - 1).pow(2).mean()
    g, = torch.autograd.grad(loss, f, create_graph=True)
    moment = 0.9 * moment + g
    f = f - 0.1 * moment
    total = total + loss
    losses.append(loss)
"""
OUTER = """w = torch.rand(3, 1, requires_grad=True)
x = torch.rand(8, 3)
for _ in range(5):
    f, total = w, 0
    for _ in range(4):
        g, = torch.autograd.grad((x @ f - 1).pow(2).mean(), f, create_graph=True)
        f = f - 0.1 * g
        total = total + (x @ f - 1).pow(2).mean()
    g, = torch.autograd.grad(total, w)
    with torch.no_grad():
        w -= 0.1 * g
"""
FEW = AVERAGE.replace("range(12)", "range(6)")


@pytest.mark.parametrize("cell", [STEPS, OUTER, FEW], ids=["an inner loop", "many inner loops", "a few steps"])
def test_steps_that_a_later_call_may_run_are_no_pile(cell: str) -> None:
    assert not [found for found in findings_of(cell) if found.kind == "leak"]
