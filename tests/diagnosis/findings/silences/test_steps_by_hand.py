"""Steps that a program writes by itself: what goes wrong silently, and correct ones of which nothing is said."""

import pytest
from told import findings_of, said

DATA = "x, t = torch.randn(8, 3), torch.randn(8)\nnet = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))"
LEAVES = "w = torch.zeros(3, requires_grad=True)\nb = torch.zeros((), requires_grad=True)"
PASS = "for _ in range(4):\n    loss = (net(x).squeeze(-1) - t).pow(2).mean()\n    loss.backward()\n"
OWN = "for _ in range(4):\n    loss = (x @ w + b - t).pow(2).mean()\n    loss.backward()\n"
EACH = "    with torch.no_grad():\n        for p in net.parameters():\n            "

NEVER_CLEARED = {
    "under no_grad": (PASS + EACH + "p -= 0.1 * p.grad", "p.grad = None"),
    "through data": (PASS + "    for p in net.parameters():\n        p.data.sub_(0.1 * p.grad.data)", "p.grad = None"),
    "assigned data": (PASS + EACH + "p.data = p.data - 0.1 * p.grad", "p.grad = None"),
    "two lines": (
        OWN + "    with torch.no_grad():\n        w -= 0.1 * w.grad\n        b.add_(b.grad, alpha=-0.1)",
        "w.grad = None b.grad = None",
    ),
    "all at once": (
        "params = list(net.parameters())\n"
        + PASS
        + "    grads = [p.grad for p in params]\n    with torch.no_grad():\n"
        + "        torch._foreach_add_(params, grads, alpha=-0.1)",
        "for each in params: each.grad = None",
    ),
    "read behind": (
        PASS + EACH + "p -= 0.1 * p.grad\n    print(net[0].weight.grad.norm())",
        "for p in net.parameters(): p.grad = None",
    ),
    "read between": (OWN + "    w.data -= 0.1 * w.grad\n    print(w.grad.norm())", "w.grad = None"),
}


@pytest.mark.parametrize("name", NEVER_CLEARED)
def test_a_step_by_hand_goes_by_the_sum_of_all_passes(name: str) -> None:
    cell, clearing = NEVER_CLEARED[name]
    found = findings_of(DATA, LEAVES, cell)[0]
    assert found.headline.startswith("Gradients add up from step to step"), found
    assert found.cause is not None and found.cause.source == "loss.backward()"
    assert " ".join(" ".join(edit.new for edit in found.fixes[0].edits).split()) == clearing


INNER = (
    "def infer(t, steps):\n    z = torch.zeros(8, 3, requires_grad=True)\n    for _ in range(steps):\n"
    "        (net(z).squeeze(-1) - t).pow(2).mean().backward()\n        "
)
INNER_STEPS = {
    "data": "z.data = z.data - 0.1 * z.grad",
    "some elements": "grad = z.grad.detach()\n        z.data[2:] -= 0.1 * grad[2:]",
    "elements of the leaf": "with torch.no_grad():\n            z[2:] -= 0.1 * z.grad[2:]",
    "over two names": "g = z.grad\n        step = -0.1 * g.sign()\n        z.data.add_(step)",
    "one call on another": "with torch.no_grad():\n            z.sub_(0.1 * z.grad).clamp_(-1, 1)",
}


@pytest.mark.parametrize("name", INNER_STEPS)
def test_a_leaf_of_a_function_that_no_optimizer_holds(name: str) -> None:
    passes = "for n in (1, 3, 3):\n    z = infer(t, n)\n    net.zero_grad()"
    (found,) = findings_of(DATA, INNER + INNER_STEPS[name], passes)
    assert found.tensor == "z"
    assert [edit.new.strip() for edit in found.fixes[0].edits] == ["z.grad = None"]


CLEARING = {
    "set to None": "z.grad = None",
    "deleted": "del z.grad",
    "zeros": "torch.zero_(z.grad)",
    "by another name": "g = z.grad\n        g.zero_()",
    "where PyTorch does not count": "g = z.grad.data\n        g.zero_()",
    "a new leaf": "z = z.detach().requires_grad_()",
}


@pytest.mark.parametrize("name", CLEARING)
@pytest.mark.parametrize("step", INNER_STEPS)
def test_a_leaf_of_a_function_that_is_cleared(name: str, step: str) -> None:
    cells = (DATA, f"{INNER}{INNER_STEPS[step]}\n        {CLEARING[name]}", "for _ in range(3):\n    infer(t, 3)")
    assert said(*cells) == []


CHANGES_NOTHING = {
    "the loop's name": (EACH + "p = p - 0.1 * p.grad", "p -= 0.1 * p.grad"),
    "the loop's name, with a graph": (
        "    for name, p in net.named_parameters():\n        p = p - 0.1 * p.grad",
        "p.data -= 0.1 * p.grad",
    ),
    "no underscore": (EACH + "p.sub(p.grad, alpha=0.1)", "p.sub_(p.grad, alpha=0.1)"),
    "no equals sign": (EACH + "p.data - 0.1 * p.grad", "p.data -= 0.1 * p.grad"),
}


@pytest.mark.parametrize("name", CHANGES_NOTHING)
def test_a_line_that_changes_no_parameter(name: str) -> None:
    step, written = CHANGES_NOTHING[name]
    (found,) = findings_of(DATA, PASS.replace("    loss =", "    net.zero_grad()\n    loss =") + step + "\nprint(1)")
    assert found.headline.endswith("changes no parameter.")
    assert [edit.new for edit in found.fixes[0].edits] == [written]


OWN_STEPS = {
    "an average of gradients": (
        "state = self.state[p]\n                state.setdefault('m', torch.zeros_like(p)).mul_(0.9).add_(p.grad)\n"
        "                p = p - group['lr'] * state['m']",
        "p -= group['lr'] * state['m']",
    ),
    "a formula": ("g = p.grad\n                p = p * 0.99 - group['lr'] * g.sign()", "p.copy_("),
    "torch.add": ("g = p.grad.sign()\n                p = torch.add(p, g, alpha=-0.1)", "p.add_(g, alpha=-0.1)"),
    "another name": (
        "w = p.data\n                g = p.grad\n                w = w - group['lr'] * g",
        "w -= group['lr'] * g",
    ),
    "nothing takes it": ("g = p.grad\n                p.add(g, alpha=-0.1)", "p.add_(g, alpha=-0.1)"),
}
OPTIMIZER = (
    "class Own(torch.optim.Optimizer):\n    def __init__(self, params):\n"
    "        super().__init__(params, dict(lr=0.1))\n    @torch.no_grad()\n    def step(self):\n"
    "        for group in self.param_groups:\n            for p in group['params']:\n                "
)
STEPS = "opt = Own(net.parameters())\n" + PASS + "    opt.step()\n    opt.zero_grad()"


@pytest.mark.parametrize("name", OWN_STEPS)
def test_an_optimizer_whose_step_changes_no_parameter(name: str) -> None:
    step, written = OWN_STEPS[name]
    (found,) = findings_of(DATA, OPTIMIZER + step, STEPS)
    assert "in `Own.step`" in found.text
    assert found.fixes[0].edits[0].new.startswith(written)


CORRECT_STEPS = {
    "written to": "g = p.grad\n                w = p - group['lr'] * g\n                p.copy_(w)",
    "assigned": "g = p.grad\n                w = p.data\n                w = w - group['lr'] * g\n"
    "                p.data = w",
    "read by the next pass": "g = p.grad\n                self.g = getattr(self, 'g', 0) + g.sum()\n"
    "                self.g = self.g * g.sum()\n                p.sub_(g)",
    "a set": "g = p.grad\n                seen = set()\n                seen.add(g)\n                p.sub_(g)",
}


@pytest.mark.parametrize("name", CORRECT_STEPS)
def test_a_correct_step_of_an_optimizer_is_left_alone(name: str) -> None:
    assert said(DATA, OPTIMIZER + CORRECT_STEPS[name], STEPS) == []


def test_the_parameter_of_a_function_is_only_a_name() -> None:
    step = "def update(p):\n    p = p - 0.1 * p.grad"
    loop = "for _ in range(3):\n    net.zero_grad()\n    net(x).sum().backward()\n    for p in net.parameters():\n"
    (found,) = findings_of(DATA, step, loop + "        update(p)")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 2)


def test_a_leaf_that_no_step_reaches() -> None:
    (found,) = findings_of(DATA, LEAVES, OWN + "    w.data -= 0.1 * w.grad\n    w.grad = None")
    assert found.headline == "`b` is never trained: no step writes to it."
    assert found.fixes[0].edits[0].new.strip() == "b.data -= 0.1 * b.grad"


def test_parameters_in_a_list_that_no_step_reaches() -> None:
    net = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = [nn.Linear(3, 3)]\n        self.head = nn.Linear(3, 1)\n"
        "    def forward(self, x):\n        return self.head(self.layers[0](x))\nnet = Net()"
    )
    (found,) = findings_of(DATA, net, PASS + EACH + "p -= 0.1 * p.grad\n            p.grad = None")
    assert found.headline.endswith("are never trained: no step writes to them.")
    assert found.fixes[0].id == "register_modules"


CORRECT = {
    "cleared": PASS + EACH + "p -= 0.1 * p.grad\n            p.grad = None",
    "cleared with zeros": OWN + "    w.data -= 0.1 * w.grad\n    b.data -= 0.1 * b.grad\n"
    "    for one in (w, b):\n        one.grad.zero_()",
    "cleared where PyTorch does not count": OWN + "    w.data -= 0.1 * w.grad\n    b.data -= 0.1 * b.grad\n"
    "    for one in (w, b):\n        one.grad.data.zero_()",
    "an optimizer, and weights that are clamped": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + PASS + EACH + "p.clamp_(-1, 1)\n    opt.step()\n"
        "    opt.zero_grad()"
    ),
    "clamped while gradients add up": PASS + EACH + "p.clamp_(-1, 1)",
    "a step after several passes": (
        PASS
        + "    if _ % 2:\n        for p in net.parameters():\n            p.data -= 0.1 * p.grad\n        net.zero_grad()"
    ),
    "momentum": (
        "speed = [torch.zeros_like(p) for p in net.parameters()]\n"
        + PASS
        + "    with torch.no_grad():\n        for p, v in zip(net.parameters(), speed):\n"
        "            v.mul_(0.9).add_(p.grad)\n            p.sub_(0.1 * v)\n    net.zero_grad()"
    ),
    "an input that is changed": OWN + "    x = (x + 0.1 * b.grad).detach()\n    w.grad, b.grad = None, None",
    "a new name that is used": PASS + "    new = []\n    for p in net.parameters():\n        p = p - 0.1 * p.grad\n"
    "        new.append(p)\n    net.zero_grad()",
    "a value that is returned": "def update(p):\n    p = p - 0.1 * p.grad\n    return p\n" + OWN + "    w2 = update(w)",
    "a leaf whose gradient is read": OWN
    + "    w.data -= 0.1 * w.grad\n    w.grad = None\n    print(b.grad)\n    b.grad = None",
    "a leaf in a list": "every = [w, b]\n"
    + OWN
    + "    w.data -= 0.1 * w.grad\n    for one in every:\n        one.grad = None",
    "a frozen trunk": PASS + "    for p in net[2].parameters():\n        p.data -= 0.1 * p.grad\n    net.zero_grad()",
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_steps_by_hand_are_left_alone(name: str) -> None:
    assert said(DATA, LEAVES, CORRECT[name]) == []
