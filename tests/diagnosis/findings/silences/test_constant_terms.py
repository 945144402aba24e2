"""Terms of a loss that have left the graph: those that were meant to train, and those that are constants on purpose."""

import pytest
from told import findings_of, said

NET = (
    "net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))\nx, y = torch.randn(16, 3), torch.arange(16) % 4\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nce = nn.CrossEntropyLoss()\ngate = nn.Parameter(torch.ones(()))\n"
    "opt.add_param_group({'params': [gate]})"
)
LOOP = "for step in range(3):\n    opt.zero_grad()\n    out = gate * net(x)\n{}    loss.backward()\n    opt.step()\n"
COUNTED = "def wrong(scores):\n    chosen = scores.argmax(dim=1)\n    return (chosen != y).float().mean()"

CONSTANT = {
    "data": ("", "    loss = ce(out, y) + 0.1 * gate.data.pow(2)\n", (3, 4), "+ loss = ce(out, y) + 0.1 * gate.pow(2)"),
    "data of a layer": ("", "    reg = net[0].weight.data.norm()\n    loss = reg + ce(out, y)\n", (3, 4), "+ reg ="),
    "an item in a chain": (
        "",
        "    size = out.pow(2).mean().item()\n    loss = ce(out, y) + gate ** 2 + 0.1 * size\n",
        (3, 4),
        "+ size = out.pow(2).mean()",
    ),
    "an argmax in a function": (COUNTED, "    loss = ce(out, y) + 0.5 * wrong(out)\n", (2, 2), ""),
    "a comparison": ("", "    loss = ce(out, y)\n    loss += (out > 0.5).float().mean()\n", (3, 5), ""),
    "a mask in a sum of a list": (
        "",
        "    area = torch.where(out > 0, 1.0, 0.0).mean()\n    loss = sum([ce(out, y), area])\n",
        (3, 4),
        "",
    ),
    "scaled together": (COUNTED, "    loss = (ce(out, y) + wrong(out)) / 4\n", (2, 2), ""),
    "a method of an object": (
        "class Terms:\n    def __init__(self, beta=0.5):\n        self.beta = beta\n"
        "    def balance(self, scores):\n        counts = torch.bincount(scores.argmax(1), minlength=4).float()\n"
        "        return self.beta * counts.var()\nterms = Terms()",
        "    loss = ce(out, y) + terms.balance(out)\n",
        (2, 5),
        "",
    ),
}


@pytest.mark.parametrize("how", CONSTANT)
def test_a_term_that_has_left_the_graph_is_a_constant(how: str) -> None:
    before, terms, (cell, line), edit = CONSTANT[how]
    (found,) = findings_of(NET, before or "pass", LOOP.format(terms))
    assert (found.headline or "").endswith("is a constant: no step goes by it.") and found.severity == "warning"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (cell, line)
    assert edit in "\n".join(found.fixes[0].edit) and bool(found.fixes[0].edit) is bool(edit)


CORRECT = {
    "a number": ("", "    loss = ce(out, y) + 0.5 * math.log(2 * math.pi)\n"),
    "detached": ("", "    loss = ce(out, y) + out.detach().pow(2).mean()\n"),
    "detached before it is chosen": (COUNTED, "    loss = ce(out, y) + wrong(out.detach())\n"),
    "data of all of it": ("", "    aux = out.pow(2).mean()\n    loss = ce(out, y) + aux.data\n"),
    "a straight-through estimate": (
        "",
        "    hard = (gate > 0.5).float()\n    loss = ce(out, y) + (hard - gate.data) + gate\n",
    ),
    "a maximum that cancels": (
        "",
        "    most = out[0].data.max()\n    loss = most + (out[0] - most).exp().sum().log() - out[0, 1]\n",
    ),
    "a margin of what is chosen": (
        "",
        "    best = out[0].argmax()\n    cost = (best != y[0]).float()\n    loss = out[0][best] + cost - out[0][y[0]]\n",
    ),
    "without grad mode": (
        "",
        "    with torch.no_grad():\n        target = out.pow(2).mean()\n    loss = ce(out, y) - target\n",
    ),
    "switched off": (COUNTED, "    loss = ce(out, y) + 0.0 * wrong(out)\n"),
    "switched off by a name": (COUNTED + "\nweight = 0", "    loss = ce(out, y) + weight * wrong(out)\n"),
    "switched off by a dictionary": (
        COUNTED + "\nconfig = {'wrong': 0.0}",
        "    loss = ce(out, y) + config['wrong'] * wrong(out)\n",
    ),
    "switched off in a function": (
        "def wrong(scores, weight=0.0):\n    return weight * (scores.argmax(dim=1) != y).float().mean()",
        "    loss = ce(out, y) + wrong(out)\n",
    ),
    "not yet": (COUNTED, "    w = 0.0 if step < 9 else 0.1\n    loss = ce(out, y) + w * wrong(out)\n"),
    "a constant in the first steps": (
        "",
        "    aux = out.pow(2).mean() if step > 9 else (out > 0).float().mean()\n    loss = ce(out, y) + aux\n",
    ),
    "of other weights": (
        "teacher = nn.Linear(3, 4)",
        "    loss = ce(out, y) + teacher.weight.data.norm() + (teacher(x).argmax(1) == y).float().mean()\n",
    ),
    "of frozen weights": (
        "net[0].requires_grad_(False)",
        "    loss = ce(out, y) + net[0].weight.data.norm()\n",
    ),
    "of the data": ("", "    loss = ce(out, y) + (x > 0).float().mean() + (y == 1).float().sum()\n"),
    "a factor that is learned": (COUNTED, "    loss = ce(out, y) + gate * wrong(out) - gate.log()\n"),
    "inside of a square": (COUNTED, "    loss = ce(out, y) + (gate - wrong(out)).pow(2)\n"),
    "values that are averaged": (
        "",
        "    p = out.softmax(1)\n    loss = (p.data * (p.data.log() - out.log_softmax(1))).sum()\n",
    ),
    "a target of values": ("", "    loss = (out - out.data.max(1, keepdim=True).values).abs().mean()\n"),
    "a weight of samples": (
        "",
        "    w = (out.argmax(1) != y).float()\n    loss = (w * out.pow(2).sum(1)).mean() + ce(out, y)\n",
    ),
    "a distance from older weights": (
        "old = [p.detach().clone() for p in net.parameters()]",
        "    loss = ce(out, y) + sum((p - o).pow(2).sum() for p, o in zip(net.parameters(), old))\n",
    ),
    "a codebook": (
        "book = nn.Parameter(torch.randn(5, 4))\nopt.add_param_group({'params': [book]})",
        "    code = book[torch.cdist(out, book).argmin(1)]\n"
        "    loss = ce(out, y) + F.mse_loss(code, out.detach()) + 0.25 * F.mse_loss(out, code.detach())\n",
    ),
    "experts that are balanced": (
        "",
        "    p = out.softmax(1)\n    share = F.one_hot(p.argmax(1), 4).float().mean(0)\n"
        "    loss = ce(out, y) + 4 * (share * p.mean(0)).sum()\n",
    ),
    "shown only": (COUNTED, "    loss = ce(out, y)\n    shown = loss + wrong(out)\n"),
    "a surrogate with the value of another": (
        "",
        "    soft = out.pow(2).mean()\n    loss = soft + (ce(out, y) - soft).item()\n",
    ),
    "an empty list": (
        "extra = []",
        "    loss = ce(out, y) + sum(one.pow(2).sum() for one in extra)\n",
    ),
}


@pytest.mark.parametrize("how", CORRECT)
def test_terms_that_are_meant_as_constants_are_left_alone(how: str) -> None:
    before, terms = CORRECT[how]
    assert said("import math\nimport torch.nn.functional as F\n" + NET, before or "pass", LOOP.format(terms)) == []
