"""Gradients that were exactly zero in all steps: the operation that made them so, and programs that are right."""

import pytest
from told import with_zero_flow

from graphwidget.model import Finding

LOOP = "for step in range(4):\n    opt.zero_grad()\n    {}\n    loss.backward()\n    opt.step()"
TWO = "a, b = nn.Linear(3, 4), nn.Linear(4, 1)\n"
SGD = "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\nx, y = torch.randn(8, 3), torch.rand(8, 1)"


def found(made: str, line: str) -> list[Finding]:
    return [one for one in with_zero_flow(made, LOOP.format(line)) if "only zeros" in one.headline]


@pytest.mark.parametrize(
    ("line", "operation", "why"),
    [
        ("loss = (b(a(x)).softmax(1) - y).pow(2).mean()", "softmax", "size 1"),
        ("loss = -(torch.log_softmax(b(a(x)), -1) * y).mean()", "log_softmax", "the result is 0"),
        ("loss = (b(torch.relu(a(x) - 100)) - y).pow(2).mean() + b.weight.pow(2).sum()", "relu", "above zero"),
        ("loss = ((b(a(x)) * 9 + 99).clamp(0, 1) - y).pow(2).mean()", "clamp", "above its limit"),
        ("loss = ((b(a(x)) + 99) ** 2).mean().clamp(max=1)", "clamp", "above its limit"),
        ("loss = (b(a(x) * torch.zeros(4)) - y).pow(2).mean()", "mul", "the other factor was zero"),
        ("loss = (b(a(x)) * torch.zeros(8, 1)).sum()", "mul", "the other factor was zero"),
        ("loss = (torch.where(x[:, :1] > 99, b(a(x)), y) - 1).pow(2).mean()", "where", "chose other values"),
        ("h = b(a(x)); loss = (h - h.max(1, keepdim=True).values + y).pow(2).sum()", "sub", "sum of exactly zero"),
        ("loss = (torch.sigmoid(b(a(x)) * 0 + 1e4) - y).pow(2).mean()", "sigmoid", "nothing but zeros"),
    ],
)
def test_an_operation_that_lets_only_zeros_pass(line: str, operation: str, why: str) -> None:
    (one,) = found(TWO + SGD, line)
    assert one.names[-1] == operation and why in one.text and one.severity == "warning"
    assert "`a.weight`" in one.text and one.made_at is not None and (one.made_at.cell, one.made_at.line) == (2, 3)


def test_both_factors_are_zero() -> None:
    made = "a, b = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))\nopt = torch.optim.Adam([a, b])"
    (one,) = found(made, "loss = (a * b - 1).pow(2).sum()")
    assert "both factors" in one.text and "`a` and `b` get only zeros" in one.headline


def test_the_module_of_the_softmax_is_replaced() -> None:
    made = "net = nn.Sequential(nn.Linear(3, 1), nn.Softmax(dim=-1))\nx, y = torch.randn(8, 3), torch.rand(8, 1)\n"
    (one,) = found(made + "opt = torch.optim.SGD(net.parameters(), 0.1)", "loss = (net(x) - y).abs().mean()")
    (edit,) = one.fixes[0].edits
    assert (edit.cell, edit.new) == (1, "nn.Sigmoid()")


def test_a_softmax_over_a_batch_of_one_gets_another_dimension() -> None:
    made = "a = nn.Linear(3, 4)\nopt = torch.optim.SGD(a.parameters(), 0.1)\nx, y = torch.randn(1, 3), torch.rand(1, 4)"
    (one,) = found(made, "loss = (a(x).softmax(0) - y).pow(2).mean()")
    assert "dim=-1" in one.fixes[0].text and not one.fixes[0].edits


@pytest.mark.parametrize(
    "line",
    [
        "loss = torch.relu(0.5 - 9 - b(a(x)).abs()).mean()",  # all margins are met
        "loss = torch.relu(0.5 - 9 - b(a(x)).abs()).pow(2).mean()",
        "loss = (b(a(x)) - b(a(x)).detach()).pow(2).mean()",  # at its lowest
        "loss = nn.functional.cross_entropy(b(a(x)) @ torch.tensor([[0., 1e4]]) + torch.tensor([1e6, 0.]), y[:, 0].long())",
        "loss = y.mean().requires_grad_() + 0.0 * b(a(x)).sum()",  # keeps parameters in the graph
        "weight = torch.tensor(0.0); loss = (y * nn.Parameter(y)).mean() + weight * b(a(x)).sum()",
        "h = a(x); h.register_hook(lambda g: g * 0); loss = b(h).sum()",  # the program's own choice
        "loss = b(a(x[:0])).sum()",  # nothing was given to it
        "loss = (b(a(x)) - b(a(x.flip(0)))).pow(2).mean()",  # the biases of what is compared with itself
        "e = nn.functional.embedding(torch.zeros(2).long(), a.weight, padding_idx=0); loss = b.weight.sum() * e.sum()",
    ],
)
def test_zeros_that_are_meant_are_not_told(line: str) -> None:
    assert found(TWO + SGD, line) == []


POLICY = "mean, spread = nn.Linear(3, 2), nn.Parameter(torch.zeros(2))\nobs, gain = torch.randn(8, 3), torch.randn(8)\n"
ADAM = "opt = torch.optim.Adam([*mean.parameters(), spread])\nNormal = torch.distributions.Normal"
SCORES = {
    "of a distribution": (
        "p = Normal(mean(obs), spread.exp())\n    act = p.rsample()\n    loss = -(p.log_prob(act).sum(1) * gain).mean()",
        ["p.sample", ".detach()"],
    ),
    "written out": (
        "mu, eps = mean(obs), torch.randn(8, 2)\n    act = mu + spread.exp() * eps\n"
        "    loss = ((((act - mu) / spread.exp()) ** 2).sum(1) * gain).mean()",
        ["(mu + spread.exp() * eps).detach()"],
    ),
    "of a parameter": (
        "act = spread + torch.randn(8, 2)\n    keep = mean.weight.mean()\n"
        "    loss = (((act - spread) ** 2).sum(1) * gain).mean() + keep",
        ["(spread + torch.randn(8, 2)).detach()"],
    ),
}


@pytest.mark.parametrize("what", SCORES)
def test_a_sample_that_moves_with_what_it_is_scored_by(what: str) -> None:
    line, written = SCORES[what]
    told = found(POLICY + ADAM, line)
    assert [edit.new for one in told for fix in one.fixes for edit in fix.edits] == written
    assert told[0].cause is not None and told[0].cause.source.startswith("act =")
    assert "moves with them" in told[0].text


def test_the_sample_may_be_drawn_and_scored_in_a_function() -> None:
    made = "def scored(p):\n    jump = p.rsample()\n    return p.log_prob(jump).sum(1)\n"
    line = "loss = (scored(torch.distributions.Laplace(mean(obs), torch.ones(2))) * gain).mean()"
    (one,) = found(POLICY + made + ADAM, line)
    assert one.cause is not None and one.cause.source == "jump = p.rsample()"
    assert [fix.id for fix in one.fixes] == ["fixed_sample", "fixed_sample"]


def test_ways_that_cancel_without_a_sample_have_no_edit() -> None:
    (one,) = found(
        TWO + SGD,
        "z = torch.randn(4); h = b(a(x) + z)\n    loss = (h - h.max(1, keepdim=True).values + y).pow(2).sum()",
    )
    assert not one.fixes[0].edits and "sample" not in one.text


def test_a_bias_of_two_passes_that_cancel_is_no_news() -> None:
    line = "loss = (torch.relu(9 - b(a(x))) + torch.relu(9 + b(a(x + 1)))).mean()"
    assert found(TWO + SGD, line) == []


@pytest.mark.parametrize("rate", ["0.1", "0.0 if step < 2 else 0.1"])
def test_a_layer_that_begins_with_zeros_opens_the_way_by_itself(rate: str) -> None:
    line = f"opt.param_groups[0]['lr'] = {rate}; loss = (b(a(x)) - y).pow(2).mean()"
    assert found(TWO + "nn.init.zeros_(b.weight)\n" + SGD, line) == []


def test_a_layer_of_zeros_that_is_frozen() -> None:
    (one,) = found(
        TWO + "nn.init.zeros_(b.weight)\nb.requires_grad_(False)\n" + SGD, "loss = (b(a(x)) - y).pow(2).mean()"
    )
    assert "`a.weight`" in one.headline and "`addmm`" in one.headline


def test_a_gradient_that_is_cleared_by_the_program_is_its_own_business() -> None:
    loop = LOOP.format("loss = b(a(x)).sum()").replace("    opt.step()", "    a.weight.grad.zero_()\n    opt.step()")
    assert not [one for one in with_zero_flow(TWO + SGD, loop) if "zeros" in one.headline]


def test_one_step_of_zeros_is_no_news() -> None:
    made, line = TWO + SGD, "loss = (b(torch.relu(a(x) - 100 * (step < 3))) - y).pow(2).mean()"
    assert found(made, line) == []


SCALED = """a, b = nn.Linear(2, 8), nn.Linear(8, 1)
scale = nn.Parameter(torch.tensor(0.5))
opt = torch.optim.SGD([*a.parameters(), *b.parameters(), scale], lr=0.1)
def curved(t):
    t = t.requires_grad_()
    u = b(ACT(a(t)))
    (first,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t, create_graph=True)
    return first - scale * second"""


@pytest.mark.parametrize(("activation", "zeros"), [("torch.relu", True), ("torch.tanh", False)])
def test_a_factor_that_is_zero_and_that_nothing_trains(activation: str, zeros: bool) -> None:
    several = found(SCALED.replace("ACT", activation), "loss = curved(torch.rand(5, 2)).pow(2).mean()")
    assert [one.names[0] for one in several] == (["scale"] if zeros else [])


def test_a_factor_that_is_zero_and_is_trained() -> None:
    made = "low, up = nn.Linear(3, 2), nn.Linear(2, 3)\nnn.init.zeros_(up.weight), nn.init.zeros_(up.bias)\n"
    made += "gain = nn.Parameter(torch.ones(3))\nopt = torch.optim.SGD([gain, *up.parameters()], lr=1e-12)"
    assert not found(made, "loss = ((gain * up(low(torch.ones(3)))) - 1).pow(2).sum()")
