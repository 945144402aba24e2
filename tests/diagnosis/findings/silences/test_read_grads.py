"""A `.grad` as a part of a loss: no graph was built for it."""

import pytest
from told import findings_of, said

NET = (
    "net = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = torch.randn(8, 3, requires_grad=True)"
)
LOOP = "for _ in range(2):\n    opt.zero_grad()\n    x.grad = None\n    fit = net(x).pow(2).mean()\n{}    opt.step()\n"
PARAMETERS = (
    "    fit.backward()\n    fit = net(x).pow(2).mean()\n{}    opt.zero_grad()\n    (fit + 0.1 * size).backward()\n"
)

CONSTANT = {
    "of an input": (
        "    fit.backward(retain_graph=True)\n    size = x.grad.norm(dim=1).mean()\n    loss = fit + size\n"
        "    opt.zero_grad()\n    loss.backward()\n",
        "autograd_grad_instead",
    ),
    "of all parameters": (
        PARAMETERS.format("    size = sum(p.grad.pow(2).sum() for p in net.parameters())\n"),
        "create_graph",
    ),
    "summed in a loop": (
        PARAMETERS.format("    size = 0.0\n    for p in net.parameters():\n        size += p.grad.pow(2).sum()\n"),
        "create_graph",
    ),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_a_penalty_of_a_grad_is_a_constant(name: str) -> None:
    body, fix = CONSTANT[name]
    (found,) = findings_of(NET, LOOP.format(body))
    assert found.headline.endswith("the `.grad` that it reads was computed without `create_graph=True`.")
    assert found.cause is not None and "fit.backward" in found.cause.source
    assert found.fixes[0].id == fix and found.fixes[0].edits


def test_a_function_whose_only_task_is_the_gradient_asks_for_it() -> None:
    function = "def slope(a):\n    a.grad = None\n    net(a).sum().backward()\n    return a.grad.pow(2).mean()"
    body = "    size = slope(x)\n    opt.zero_grad()\n    loss = net(x).mean() + size\n    loss.backward()\n"
    (found,) = findings_of(NET, function, LOOP.format(body))
    new = [line for line in found.fixes[0].edit if line.startswith("+")]
    assert new == ["+ return torch.autograd.grad(net(a).sum(), a, create_graph=True)[0].pow(2).mean()"]


def test_a_loss_that_is_only_a_grad_says_how_to_ask_for_it() -> None:
    found = findings_of(NET, "out = net(x).sum()\nout.backward()\nsize = x.grad.pow(2).sum()\nsize.backward()")[0]
    assert found.kind == "no_grad" and found.severity == "error"
    assert [edit.new.strip() for edit in found.fixes[0].edits] == [
        "retain_graph=True",
        "torch.autograd.grad(out, x, create_graph=True)[0]",
    ]


CORRECT = {
    "built by the backward": "    fit.backward(create_graph=True)\n    size = x.grad.norm(dim=1).mean()\n"
    "    loss = net(x).mean() + size\n    opt.zero_grad()\n    x.grad = None\n    loss.backward()\n",
    "a number": "    fit.backward()\n    loss = net(x).mean() + x.grad.norm().item()\n    opt.zero_grad()\n"
    "    loss.backward()\n",
    "meant as a constant": "    fit.backward()\n    size = x.grad.norm().detach()\n    loss = net(x).mean() + size\n"
    "    opt.zero_grad()\n    loss.backward()\n",
    "a direction": "    fit.backward()\n    near = x.detach() + 0.1 * x.grad.sign()\n    opt.zero_grad()\n"
    "    loss = net(near).pow(2).mean()\n    loss.backward()\n",
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_uses_of_a_grad_are_left_alone(name: str) -> None:
    assert said(NET, LOOP.format(CORRECT[name])) == []
