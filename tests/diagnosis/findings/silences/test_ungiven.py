"""Backward calls that run to the leaves of an optimizer and give them nothing."""

import pytest
from told import findings_of, said

FUNCTION = """class Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        return x * scale
    @staticmethod
    def backward(ctx, g):
        return {given}, None
net, head = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
LOOP = "for _ in range(4):\n    opt.zero_grad()\n    {loss}.backward()\n    opt.step()\n"
FIRST = "net(torch.ones(2, 3)).mean().backward()\nopt.step()\n"
ALONE = "Pass.apply(net(torch.ones(2, 3)), 2.0).sum()"


@pytest.mark.parametrize("before", ["", FIRST], ids=["never stepped", "stepped by another loss"])
def test_the_function_that_returns_none_is_named(before: str) -> None:
    (found,) = findings_of(FUNCTION.format(given="None") + before + LOOP.format(loss=ALONE))
    assert (found.kind, found.severity) == ("silent", "warning")
    assert found.headline.endswith("gave no gradient to anything that an optimizer holds.")
    assert found.cause is not None and found.cause.line == 7
    assert set(found.names) == {"net[0].weight", "net[0].bias", "Pass"}
    assert "its `backward` (In[1], line 7) returned None" in found.text


PENALTY = """class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g):
        return g * 2
    @staticmethod
    def backward(ctx, gg):
        return {given}
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return Outer.apply(g)
net = nn.Sequential(nn.Linear(3, 3), nn.Softplus(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(2, 3)).mean().backward()
    opt.step()
    opt.zero_grad()
    x = torch.ones(2, 3, requires_grad=True)
    g, = torch.autograd.grad(net(Double.apply(x)).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    opt.step()
"""


def test_a_penalty_behind_a_second_derivative_that_is_missing() -> None:
    (found,) = findings_of(PENALTY.format(given="None"))
    assert found.cause is not None and found.cause.line == 7 and found.names[-1] == "Outer"
    assert said(PENALTY.format(given="gg * 2")) == []


@pytest.mark.parametrize(
    "program",
    [
        FUNCTION.format(given="g * 2") + LOOP.format(loss=ALONE),
        FUNCTION.format(given="None") + LOOP.format(loss=f"({ALONE} + net(torch.ones(2, 3)).mean())"),
        # what is behind the Function is not meant to learn from this loss: the head is
        FUNCTION.format(given="None")
        + "both = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)\n"
        + FIRST
        + "for _ in range(4):\n    head(Pass.apply(net(torch.ones(2, 3)), 2.0)).sum().backward()\n    both.step()\n",
        # each parameter is stepped, and its gradient let go, when it comes
        FUNCTION.format(given="g * 2")
        + "each = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}\n"
        + "def take(p):\n    each[p].step()\n    p.grad = None\n"
        + "for p in net.parameters():\n    p.register_post_accumulate_grad_hook(take)\n"
        + f"for _ in range(4):\n    {ALONE}.backward()\n",
    ],
    ids=["a gradient", "beside another way", "a head", "taken by a hook"],
)
def test_where_a_gradient_comes_nothing_is_said(program: str) -> None:
    assert said(program) == []
