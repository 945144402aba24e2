"""Leaves that backward reaches and no optimizer holds."""

import pytest
from small_training import LOOP, OPTIMIZER
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply
from graphwidget.model import Finding


def test_a_parameter_that_is_replaced_after_the_optimizer_was_made_is_not_trained() -> None:
    made = f"net = nn.Linear(3, 1)\n{OPTIMIZER}\nnet.weight = nn.Parameter(torch.ones(1, 3))"
    (found,) = findings_of(made, LOOP)
    assert (found.kind, found.severity, found.names) == ("silent", "warning", ("net.weight",))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 3)
    (fix,) = found.fixes
    assert fix.id == "new_optimizer" and fix.edit[0].startswith("- opt =") and fix.edit[-1].startswith("+ opt =")


@pytest.mark.parametrize("freeze", [True, False])
def test_what_was_frozen_when_an_optimizer_took_what_trains(freeze: bool) -> None:
    net = "net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))\nnet[0].requires_grad_(False)"
    made = "trained = [p for p in net.parameters() if p.requires_grad]\nopt = torch.optim.SGD(trained, lr=0.1)"
    cells = (net, made, LOOP, "net[0].requires_grad_(True)", LOOP)
    found = findings_of(*cells if freeze else (net, made, LOOP))
    assert [set(one.names) for one in found] == [{"net[0].weight", "net[0].bias"}] * freeze
    for one in found:
        assert "The optimizer (In[2], line 2) was made of what required grad before" in one.text
        assert one.cause is not None and (one.cause.cell, one.cause.line) == (4, 1)
        mended = apply(made, one.fixes[0].edits)
        assert mended.startswith("trained = [p for p in net.parameters()]\n")
        assert not findings_of(net, mended, *cells[2:])


def test_an_optimizer_that_is_read_before_is_not_moved() -> None:
    made = (
        f"net = nn.Linear(3, 1)\n{OPTIMIZER}\n"
        "plan = torch.optim.lr_scheduler.StepLR(opt, 5)\nnet.weight = nn.Parameter(torch.ones(1, 3))"
    )
    (found,) = findings_of(made, LOOP)
    assert not found.fixes[0].edits


def test_a_part_that_is_replaced_in_a_method_is_named() -> None:
    net = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(3, 1)\n"
        "    def forward(self, x):\n        return self.head(x)\n"
        "    def reset(self):\n        self.head = nn.Linear(3, 2)"
    )
    (found,) = findings_of(net, f"net = Net()\n{OPTIMIZER}\nnet.reset()", LOOP)
    assert set(found.names) == {"net.head.weight", "net.head.bias"}
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 8)


def test_a_part_that_a_method_makes_anew_when_it_is_called_again_is_named() -> None:
    made = (
        "class Fit:\n"
        "    def __init__(self):\n"
        "        self.net = self.opt = None\n"
        "    def train(self, steps, anew=False):\n"
        "        if self.net is None or anew:\n"
        "            self.net = nn.Linear(3, 1)\n"
        "        if self.opt is None:\n"
        "            self.opt = torch.optim.Adam(list(self.net.parameters()))\n"
        "        for _ in range(steps):\n"
        "            self.opt.zero_grad()\n"
        "            self.net(torch.ones(2, 3)).pow(2).sum().backward()\n"
        "            self.opt.step()\n"
        "fit = Fit()"
    )
    (found,) = findings_of(made, "for n in range(2):\n    fit.train(10 if n else 1, n > 0)")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert "`self.net = nn.Linear(3, 1)` (In[1], line 6) replaced them" in found.text


def test_of_two_optimizers_of_one_line_each_has_its_own_module() -> None:
    made = (
        "class Agent:\n"
        "    def __init__(self):\n"
        "        self.actor, self.critic = nn.Sequential(nn.Linear(3, 3)), nn.Linear(3, 1)\n"
        "        self.opts = {k: v for k, v in {'a': torch.optim.SGD(self.actor.parameters(), 0.1),\n"
        "                                       'c': torch.optim.SGD(self.critic.parameters(), 0.1)}.items()}\n"
        "    def widen(self):\n"
        "        self.actor.head = nn.Linear(3, 1)\n"
        "agent = Agent()\nagent.widen()"
    )
    loop = (
        "for _ in range(4):\n"
        "    for opt in agent.opts.values():\n        opt.zero_grad()\n"
        "    x = torch.ones(2, 3)\n"
        "    (agent.actor(x) - agent.critic(x)).pow(2).sum().backward()\n"
        "    for opt in agent.opts.values():\n        opt.step()"
    )
    (found,) = findings_of(made, loop)
    assert found.names == ("agent.actor.head.weight", "agent.actor.head.bias")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    assert "the parameters that `self.actor` had" in found.text


def test_all_is_gone_when_the_function_has_returned_and_still_it_is_reported() -> None:
    loop = LOOP.replace("\n", "\n    ")
    made = f"def main():\n    net = nn.Linear(3, 1)\n    {OPTIMIZER}\n    net.weight = nn.Parameter(torch.ones(1, 3))\n    {loop}"
    (found,) = findings_of(made, "main()")
    assert found.names == ("net.weight",)


def test_a_variable_of_that_name_in_a_function_replaces_nothing() -> None:
    """ActNorm of a flow makes its scale `s` in the first forward; other layers have a variable `s`."""
    net = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.s = nn.Parameter(torch.ones(3))\n        self.ready = False\n"
        "    def forward(self, x):\n        if not self.ready:\n            self.s = nn.Parameter(x.mean(0))\n"
        "            self.ready = True\n        s, _ = self.split()\n        return x * s\n"
        "    def split(self):\n        s, t = self.s, 1\n        return s, t"
    )
    (found,) = findings_of(net, f"net = Net()\n{OPTIMIZER}", LOOP)
    assert found.names == ("net.s",) and found.cause is not None and found.cause.line == 8


CORRECT = {
    "all are held": f"net = nn.Linear(3, 1)\n{OPTIMIZER}",
    "only a head is trained": (
        "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\nopt = torch.optim.SGD(net[1].parameters(), lr=0.1)"
    ),
    "some are left out by name": (
        "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n"
        "opt = torch.optim.SGD([p for n, p in net.named_parameters() if 'bias' not in n], lr=0.1)"
    ),
    "a second optimizer holds it": (
        f"net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n{OPTIMIZER}\n"
        "net[1] = nn.Linear(3, 1)\nopt.add_param_group({'params': net[1].parameters()})"
    ),
}


@pytest.mark.parametrize("what", CORRECT)
def test_what_may_be_meant_is_not_reported(what: str) -> None:
    assert not said(CORRECT[what], LOOP)


def test_the_gradient_of_an_input_is_meant() -> None:
    loop = (
        "x = torch.ones(2, 3, requires_grad=True)\n"
        "for _ in range(4):\n    opt.zero_grad()\n    loss = net(x).pow(2).sum()\n    loss.backward()\n    opt.step()"
    )
    assert not said(CORRECT["all are held"], loop)


def test_a_leaf_that_is_updated_by_hand_is_trained() -> None:
    loop = (
        "scale = torch.ones((), requires_grad=True)\nnet = nn.Linear(3, 1)\n" + OPTIMIZER + "\n"
        "for _ in range(4):\n    opt.zero_grad()\n    loss = (net(torch.ones(2, 3)) * scale).pow(2).sum()\n"
        "    loss.backward()\n    opt.step()\n"
        "    with torch.no_grad():\n        scale -= 0.1 * scale.grad\n    scale.grad = None"
    )
    assert not said(loop)


GROWS = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
    def widen(self):
        head = nn.Linear(3, 2)
        self.head = head
    def forward(self, x): return self.head(self.body(x))
def optimizer(m, lr): return torch.optim.SGD([{"params": m.parameters(), "weight_decay": 0.0}], lr=lr)
net = Net()
opt = optimizer(net, 0.1)
net.widen()"""


def _untrained(made: str) -> list[Finding]:
    return [one for one in findings_of(made, LOOP) if "never trained" in one.headline]


def test_an_optimizer_of_groups_that_a_function_returns() -> None:
    (found,) = _untrained(GROWS)
    assert found.names == ("net.head.weight", "net.head.bias")
    assert found.cause is not None and found.cause.line == 7, "where the part was replaced, in a method"
    assert "with old ones, which nothing computes with any more" in found.text


def test_with_two_optimizers_the_replaced_part_is_still_told() -> None:
    other = GROWS + "\nD = nn.Linear(1, 1)\nopt_d = torch.optim.SGD(D.parameters(), 0.1)"
    (found,) = _untrained(other)
    assert found.cause is not None and found.cause.line == 7 and "`opt_d`" not in found.text


def test_a_choice_of_parameters_is_no_mistake() -> None:
    chosen = GROWS.replace("\nnet.widen()", "").replace(
        '[{"params": m.parameters(), "weight_decay": 0.0}]', '[p for n, p in m.named_parameters() if "body" in n]'
    )
    assert not _untrained(chosen)


def test_a_tensor_that_only_the_optimizer_has_was_no_parameter_of_a_module() -> None:
    made = (
        "base = nn.Linear(3, 3).requires_grad_(False)\n"
        "opt = torch.optim.SGD([p for p in base.parameters() if p.requires_grad] or "
        "[torch.zeros(1, requires_grad=True)], lr=0.1)\n"
        "parts = {0: nn.Linear(3, 1)}\nnet = lambda x: parts[0](base(x))"
    )
    assert not [one for one in findings_of(made, LOOP) if "replaced" in one.text or "old ones" in one.text]


UNIFORM = {
    "weights of a loss": ("w = Weights()", "w(net(torch.ones(2, 3)))", "*w.parameters()"),
    "one temperature": ("w = nn.Parameter(torch.tensor(2.0))", "net(torch.ones(2, 3)).mean() * w.exp()", "w"),
}
WEIGHTS = """
class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return (self.scale.exp().sum() * x.mean() + self.shift).sum()
"""


@pytest.mark.parametrize("what", UNIFORM)
def test_what_is_uniform_was_never_trained_and_is_given_to_the_optimizer(what: str) -> None:
    made, loss, new = UNIFORM[what]
    step = f"for _ in range(4):\n    opt.zero_grad()\n    ({loss}).pow(2).backward()\n    opt.step()"
    cells = (f"{WEIGHTS}\nnet = nn.Linear(3, 1)", made, OPTIMIZER, step)
    (found,) = findings_of(*cells)
    assert (
        found.severity == "warning"
        and "uniform" in found.text
        and f"[*net.parameters(), {new}]" in apply(OPTIMIZER, found.fixes[0].edits)
    )
    assert said(*cells[:2], apply(OPTIMIZER, found.fixes[0].edits), step) == []


def test_what_may_have_been_trained_before_is_an_information() -> None:
    step = "for _ in range(4):\n    opt.zero_grad()\n    net(base(torch.ones(2, 3))).sum().backward()\n    opt.step()"
    base = "base = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))\nnet = nn.Linear(3, 1)"
    (found,) = findings_of(base, OPTIMIZER, step)
    assert found.severity == "info" and len(found.names) == 4


ADAPTED = """
class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.more = nn.Parameter(torch.randn(1, 3))
    def forward(self, x):
        return self.base(x) + x @ self.more.T
def adapt(model):
    for name, part in list(model.named_children()):
        setattr(model, name, Adapted(part))
    return model
"""


def test_parts_that_a_function_puts_into_a_module_come_too_late_for_its_optimizer() -> None:
    made = f"net = nn.Sequential(nn.Linear(3, 1))\n{OPTIMIZER}\nnet = adapt(net)"
    (found,) = findings_of(ADAPTED, made, LOOP)
    assert found.severity == "warning" and found.names == ("net[0].more",)
    mended = apply(made, found.fixes[0].edits)
    assert mended.splitlines()[-1] == OPTIMIZER and said(ADAPTED, mended, LOOP) == []


def test_beside_an_optimizer_that_no_line_makes_a_module_of_its_own_is_an_information() -> None:
    made = "class Trainer: pass\nself = Trainer()\nself.more, net = nn.Linear(1, 1), nn.Linear(3, 1)\n" + (
        "opt = vars(torch.optim)['SGD'](net.parameters(), lr=0.1)"
    )
    step = (
        "for _ in range(4):\n    opt.zero_grad()\n    self.more(net(torch.ones(2, 3))).sum().backward()\n    opt.step()"
    )
    (found,) = findings_of(made, step)
    assert found.severity == "info" and found.names == ("self.more.weight", "self.more.bias")
    assert "A library made the optimizer." in found.text and "`self.more.requires_grad_(False)`" in found.fixes[0].text


AVERAGE = """
import copy
class Average:
    def __init__(self, net):
        self.shadow, self.online = net, copy.deepcopy(net)
        self.shadow.requires_grad_(False)
"""


def test_an_optimizer_of_what_was_copied_holds_nothing_that_is_trained() -> None:
    """The copy's path holds an attribute of the name of the variable that the optimizer was made of, or not."""
    step = "for _ in range(4):\n    opt.zero_grad()\n    {}(torch.ones(2, 3)).sum().backward()\n    opt.step()"
    for attribute in ("online", "net"):
        cells = (AVERAGE.replace("online", attribute), f"net = nn.Linear(3, 1)\n{OPTIMIZER}\naverage = Average(net)")
        (found,) = findings_of(*cells, step.format(f"average.{attribute}"))
        assert found.headline == "`opt.step()` changed nothing." and found.cause is not None
        assert (found.cause.cell, found.cause.line) == (1, 5)
        assert f"parameters of `average.{attribute}`" in found.fixes[0].text


OBJECTIVE = """
class Objective:
    def __init__(self):
        self.scale = torch.ones(1, requires_grad=True)
    def __call__(self, net, x):
        return (net(x) * self.scale - 1).pow(2).mean()
net = nn.Linear(3, 1)
"""
TRAINER = """
class Trainer:
    def __init__(self, net, objective):
        self.net, self.objective = net, objective
        {}
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def run(self):
        for _ in range(4):
            self.opt.zero_grad()
            self.objective(self.net, torch.ones(2, 3)).backward()
            self.opt.step()
"""
PLAIN = "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
OWN_LOOP = "for _ in range(4):\n    opt.zero_grad()\n    objective(net, torch.ones(2, 3)).backward()\n    opt.step()"
GIVEN_TO = {
    "in the same cell": ((OBJECTIVE + "objective = Objective()\n" + PLAIN, OWN_LOOP), "objective.scale"),
    "kept by the trainer": (
        (OBJECTIVE, TRAINER.format("self.loss = objective"), "one = Objective()\nTrainer(net, objective=one).run()"),
        "self.loss.scale",
    ),
    "an argument": (
        (OBJECTIVE, TRAINER.format("pass"), "one = Objective()\nfit = Trainer(net, one)\nfit.run()"),
        "objective.scale",
    ),
    "a variable of the program": (
        (
            OBJECTIVE + "one = Objective()",
            "def fit():\n    " + PLAIN + "\n    " + OWN_LOOP.replace("\n", "\n    ").replace("objective(", "one("),
            "fit()",
        ),
        "one.scale",
    ),
    "made behind": ((OBJECTIVE + PLAIN + "\nobjective = Objective()", OWN_LOOP), ""),
}


@pytest.mark.parametrize("what", GIVEN_TO)
def test_a_plain_leaf_that_nothing_trains_is_named_as_the_optimizers_line_can(what: str) -> None:
    cells, name = GIVEN_TO[what]
    (found,) = findings_of(*cells)
    assert found.severity == "warning" and found.headline.endswith("is never trained: no optimizer holds it.")
    assert [edit.new.rsplit(", ", 1)[-1] for edit in found.fixes[0].edits] == ([f"{name}]"] if name else [])


USED = {
    "asked for": "x = torch.zeros(1, requires_grad=True)\n{}    y = net(x.expand(4, 3))\n"
    "    torch.autograd.grad(y.sum(), x, create_graph=True)[0].pow(2).mean().backward()\n    opt.step()",
    "read in the end": "x = torch.zeros(3, requires_grad=True)\n{}    net(x).pow(2).mean().backward()\n    opt.step()\n"
    "print(x.grad)",
    "read by a function": "def norm(of):\n    return of.grad.norm()\nx = torch.zeros(3, requires_grad=True)\n"
    "{}    net(x).pow(2).mean().backward()\n    opt.step()\nnorm(x)",
    "a batch": "x = torch.zeros(4, 3, requires_grad=True)\n{}    net(x).pow(2).mean().backward()\n    opt.step()",
    "data": "x = torch.arange(3.0).requires_grad_(True)\n{}    net(x).pow(2).mean().backward()\n    opt.step()",
    "fresh in each pass": "{}    x = torch.zeros(3, requires_grad=True)\n    net(x).pow(2).mean().backward()\n    opt.step()",
    "without influence": "x = torch.zeros(1, requires_grad=True)\n{}    (net(torch.ones(3)) + 0 * x).sum().backward()\n"
    "    opt.step()",
    "trained by another optimizer": "x = torch.zeros(3, requires_grad=True)\nmore = torch.optim.SGD([x], lr=0.1)\n"
    "{}    net(x).pow(2).mean().backward()\n    opt.step()\n    more.step()\n    more.zero_grad()",
}


@pytest.mark.parametrize("what", USED)
def test_an_input_that_requires_grad_is_left_alone(what: str) -> None:
    cell = USED[what].format("for _ in range(5):\n    opt.zero_grad()\n")
    assert said("net = nn.Linear(3, 1)\n" + PLAIN, cell) == []
