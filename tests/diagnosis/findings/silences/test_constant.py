"""Parts of a loss that are computed from a gradient without a graph, and programs that mean it so."""

import pytest
from told import findings_of

from graphwidget.diagnosis.findings.silences.constants import gradients as constant
from graphwidget.diagnosis.no_graph.gradients.from_gradients import Parts

NET = (
    "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\n"
    "opt = torch.optim.Adam(net.parameters(), lr=1e-3)\nlam = 10"
)
LOOP = (
    "for _ in range(3):\n    x = torch.randn(6, 4, requires_grad=True)\n    out = net(x)\n    {lines}\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)


def loop(*lines: str) -> str:
    return LOOP.replace("{lines}", "\n    ".join(lines))


PENALTIES = {
    "in the loop": (
        loop(
            "(g,) = torch.autograd.grad(out.sum(), x, retain_graph=True)",
            "loss = out.mean() + lam * (g.norm(dim=1) - 1).pow(2).mean()",
        ),
        (2, 4),
    ),
    "in a function": (
        "def penalty(out, x):\n    g = torch.autograd.grad(out.sum(), x, retain_graph=True)[0]\n    return g.pow(2).sum(1).mean()\n"
        + loop("loss = out.mean()", "loss += lam * penalty(out, x)"),
        (2, 2),
    ),
    "in a method": (
        "class Trainer:\n    def __init__(self, lam=10):\n        self.lam = lam\n    def penalty(self, out, x):\n"
        "        g = torch.autograd.grad(out.sum(), x, retain_graph=True)[0]\n        return self.lam * g.pow(2).mean()\n"
        "    def loss(self, out, x):\n        return out.mean() + self.penalty(out, x)\ntrainer = Trainer()\n"
        + loop("loss = trainer.loss(out, x)"),
        (2, 5),
    ),
}


@pytest.mark.parametrize("where", PENALTIES)
def test_a_penalty_without_a_graph_is_a_constant(where: str) -> None:
    cell, cause = PENALTIES[where]
    (found,) = findings_of(NET, cell)
    assert found.severity == "warning" and found.headline.endswith("was computed without `create_graph=True`.")
    assert "no step goes by it" in found.text and "`net[0].weight`" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == cause
    assert "create_graph=True" in found.fixes[0].edits[0].new


def test_a_second_derivative_without_a_graph_in_a_residual_is_said() -> None:
    lines = (
        "u = torch.autograd.grad(out.sum(), x, create_graph=True)[0]",
        "v = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]",
        "loss = (v + out).pow(2).mean()",
    )
    (found,) = findings_of(NET, loop(*lines))
    assert found.severity == "info" and found.cause is not None and found.cause.line == 5


MEANT = {
    "it has a graph": loop(
        "(g,) = torch.autograd.grad(out.sum(), x, create_graph=True)",
        "loss = out.mean() + (g.norm(dim=1) - 1).pow(2).mean()",
    ),
    "it is detached": loop(
        "(g,) = torch.autograd.grad(out.sum(), x, retain_graph=True)", "loss = out.mean() + g.pow(2).mean().detach()"
    ),
    "it is logged": loop(
        "(g,) = torch.autograd.grad(out.sum(), x, retain_graph=True)", "loss = out.mean()", "seen = loss + g.norm()"
    ),
    "an attack": loop("(g,) = torch.autograd.grad(out.sum(), x)", "loss = net(x + 0.1 * g.sign()).pow(2).mean()"),
    "weights of several losses": loop(
        "a, b = out.mean(), out.pow(2).mean()",
        "ga = torch.autograd.grad(a, net[0].weight, retain_graph=True)[0].norm()",
        "gb = torch.autograd.grad(b, net[0].weight, retain_graph=True)[0].norm()",
        "loss = a / ga + b / gb",
    ),
    "a step of first order": loop(
        "g = torch.autograd.grad(out.mean(), list(net.parameters()))",
        "fast = [p - 0.1 * one for p, one in zip(net.parameters(), g)]",
        "loss = (torch.tanh(x @ fast[0].t() + fast[1]) @ fast[2].t() + fast[3]).pow(2).mean()",
    ),
    "what another net's gradient is": "teacher = nn.Linear(4, 1)\n"
    + loop("(g,) = torch.autograd.grad(teacher(x).sum(), x)", "loss = (out - g.sum(1, keepdim=True)).pow(2).mean()"),
}


@pytest.mark.parametrize("what", MEANT)
def test_what_is_meant_is_no_matter(what: str) -> None:
    assert not findings_of(NET, MEANT[what])


# ------------------------------------------------------------------ neighbours


def test_both_calls_get_a_graph_where_one_differentiates_the_other() -> None:
    lines = (
        "u = torch.autograd.grad(out.sum(), x)[0]",
        "v = torch.autograd.grad(u.sum(), x)[0]",
        "loss = (v + out).mean()",
    )
    (found,) = findings_of(NET, loop(*lines))
    assert [edit.start[0] for edit in found.fixes[0].edits] == [4, 5]


def test_numbers_that_were_taken_out_before_a_new_leaf_are_the_cause() -> None:
    cell = (
        "losses = []\nfor _ in range(3):\n    losses.append(net(torch.randn(2, 4)).mean().item())\n"
        "loss = torch.tensor(sum(losses), requires_grad=True)\nloss.backward()\nopt.step()"
    )
    (found,) = findings_of(NET, cell)
    assert found.cause is not None and found.cause.line == 3 and "had left the graph before" in found.text


def test_a_line_that_adds_many_times_is_looked_at_once(monkeypatch) -> None:
    """A solver adds at one line thousands of times, and each look reads the texts of all files."""
    looked: list[object] = []
    monkeypatch.setattr(constant, "parts", lambda *given: looked.append(given) or Parts(other=True))
    adds = "for _ in range(40):\n        out = out + torch.ones(6, 1)"
    lines = ("(g,) = torch.autograd.grad(out.sum(), x, retain_graph=True)", adds, "loss = out.mean()")
    assert not findings_of(NET, loop(*lines))
    assert 0 < len(looked) <= 2
