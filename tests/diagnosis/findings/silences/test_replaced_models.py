"""A model that is replaced in the middle of a program, while the optimizer goes on with the parameters of the first."""

import pytest

from tests.support.told import findings_of, said

SETUP = """import copy
torch.manual_seed(0)
def build():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
def passes(model, opt, steps):
    for _ in range(steps):
        x = torch.rand(8, 3)
        loss = (model(x) - x[:, :1]).pow(2).mean()
        {zero}
        loss.backward()
        opt.step()
"""
PLAIN = SETUP.format(zero="opt.zero_grad()")
ROUNDS = """model = build()
first = copy.deepcopy(model)
opt = torch.optim.{optimizer}
for at in range(3):
    if at:
        model = copy.deepcopy(first)
        {anew}
    passes(model, opt, 11)
"""
SGD = "SGD(model.parameters(), lr=0.1)"
NAMES = {f"model[{at}].{name}" for at in (0, 2) for name in ("weight", "bias")}


@pytest.mark.parametrize("zero", ["opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "model.zero_grad()"])
@pytest.mark.parametrize("optimizer", [SGD, "Adam(model.parameters(), lr=0.1)"])
def test_it_is_told_when_the_first_rounds_were_right(zero: str, optimizer: str) -> None:
    (found,) = findings_of(SETUP.format(zero=zero), ROUNDS.format(optimizer=optimizer, anew="pass"))
    assert (found.kind, found.severity) == ("silent", "warning") and set(found.names) == NAMES
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (2, 6)
    edit = found.fixes[0].edit
    assert edit == ("  model = copy.deepcopy(first)", f"+ opt = torch.optim.{optimizer}")


def test_an_optimizer_of_each_new_model_is_right() -> None:
    assert said(PLAIN, ROUNDS.format(optimizer=SGD, anew=f"opt = torch.optim.{SGD}")) == []


METHODS = """class Search:
    def __init__(self, lr):
        self.rate = lr
        self.model = build()
        self.first = copy.deepcopy(self.model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr)
    def run(self):
        for at in range(3):
            if at:
                self.model = copy.deepcopy(self.first)
            passes(self.model, self.opt, 9)
search = Search(0.1)
search.run()
"""


def test_in_a_method_the_line_has_the_values_that_the_object_keeps() -> None:
    (found,) = findings_of(PLAIN, METHODS)
    assert found.fixes[0].edit[1] == "+ self.opt = torch.optim.SGD(self.model.parameters(), lr=self.rate)"


def test_what_only_the_constructor_has_is_no_value_for_another_line() -> None:
    (found,) = findings_of(PLAIN, METHODS.replace("self.rate = lr", "pass"))
    assert found.fixes[0].id == "new_optimizer" and not found.fixes[0].edits


def test_a_scheduler_would_go_on_with_the_old_one() -> None:
    schedule = "schedule = torch.optim.lr_scheduler.StepLR(opt, 5)\nfor at in"
    (found,) = findings_of(PLAIN, ROUNDS.format(optimizer=SGD, anew="pass").replace("for at in", schedule))
    assert found.fixes[0].id == "new_optimizer" and not found.fixes[0].edits


PHASES = """model = build()
model[0].requires_grad_(False)
opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
passes(model, opt, 9)
model[0].requires_grad_(True)
opt.add_param_group({"params": model[0].parameters()})
passes(model, opt, 9)
model[2] = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
passes(model, opt, 9)
"""
SIDES = """a, b = build(), build()
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for at in range(6):
    passes(a if at % 2 else b, opt, 5)
"""
META = """model = build()
outer = torch.optim.SGD(model.parameters(), lr=0.1)
for task in range(6):
    fast = copy.deepcopy(model)
    passes(fast, torch.optim.SGD(fast.parameters(), lr=0.1), 3)
    for p, q in zip(model.parameters(), fast.parameters()):
        p.grad = q.grad.clone()
    outer.step()
"""
TARGET = """model, best = build(), None
target = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for at in range(4):
    passes(model, opt, 6)
    best = copy.deepcopy(model)
    target.load_state_dict(model.state_dict())
"""


@pytest.mark.parametrize("program", [PHASES, SIDES, META, TARGET])
def test_phases_sides_copies_and_targets_are_meant(program: str) -> None:
    assert said(PLAIN, program) == []


def test_the_search_for_names_leaves_the_variables_of_running_functions_alone() -> None:
    masks = "def masked(model):\n    for p in model.parameters():\n        with torch.no_grad():\n"
    masks += "            p.mul_(torch.ones_like(p))\n    return model\n"
    rounds = ROUNDS.format(optimizer=SGD, anew="pass").replace("passes(", "model = masked(model); passes(")
    loop = PLAIN.replace("        opt.step()\n", "        opt.step()\n        masked(model)\n")
    assert not [one for one in findings_of(masks + loop, rounds) if one.severity == "error"]
