"""A penalty on gradients that were made without a graph: what they were computed from is no cause."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

PENALTY = """critic, generator = nn.Linear(2, 1), nn.Linear(2, 2)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
def penalty(real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    slopes = torch.autograd.grad(critic(mixed).sum(), mixed, retain_graph=True)[0]
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean() * 10.0
fake = generator(torch.ones(4, 2)).data
cost = penalty(torch.ones(4, 2), fake.data)
cost.backward()"""


def test_the_gradient_and_not_the_fake_is_the_cause() -> None:
    (found,) = findings_of(PENALTY)
    assert found.cut_at is not None and found.cut_at.line == 5
    assert found.fixes[0].id == "create_graph" and found.fixes[0].edits


def test_a_cut_behind_the_gradient_is_the_cause() -> None:
    (found,) = findings_of(PENALTY.replace("retain_graph", "create_graph").replace("slopes.norm", "slopes.data.norm"))
    assert found.cut_at is not None and found.cut_at.line == 6


GRAD_NORM = """net = nn.Linear(3, 2)
weights = torch.ones(2, requires_grad=True)
out = net(torch.ones(4, 3))
losses = torch.stack([out[:, 0].pow(2).mean(), (out[:, 1] - 1).pow(2).mean()])
start = losses.detach()
"""
NORMS = [
    "norms = []\nfor w, one in zip(weights, losses):\n"
    "    g = torch.autograd.grad(w * one, net.weight, retain_graph=True)[0]\n    norms.append(g.norm())\n"
    "norms = torch.stack(norms)\n",
    "norms = torch.stack([\n"
    "    torch.autograd.grad(w * one, net.weight, retain_graph=True)[0].norm() for w, one in zip(weights, losses)\n])\n",
]


@pytest.mark.parametrize("norms", NORMS)
def test_gradients_that_are_compared_with_a_constant_lack_their_graph(norms: str) -> None:
    asked = (
        "with torch.no_grad():\n    target = norms.mean() * (losses / start)\n"
        "loss = (norms - target).abs().sum()\nweights.grad = torch.autograd.grad(loss, weights)[0]"
    )
    (found,) = findings_of(GRAD_NORM, norms + asked)
    assert found.fixes[0].id == "create_graph" and "create_graph=True" in found.fixes[0].edits[0].new
    assert not findings_of(GRAD_NORM, apply(norms + asked, found.fixes[0].edits))
