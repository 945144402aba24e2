"""Programs whose loop, call or cache is in a library: its code has no lines of the program's own."""

import sysconfig
from types import SimpleNamespace

import pytest

from graphwidget.diagnosis.source.edits import text_edit
from tests.support.told import findings_of

LIBRARY = """
import torch

class Accelerator:
    def backward(self, loss, **keywords):
        (loss / 2).backward(**keywords)

class Trainer:
    def fit(self, model, batches):
        for batch in batches:
            self.run(model.loss(batch))
    def run(self, loss):
        loss.backward()

class Writer(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
    @torch.no_grad()
    def generate(self, x):
        return self(x)

class Metric:
    def __init__(self):
        self.values = []
    def update(self, value):
        self.values.append(value)

class Cached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = None
    def forward(self, x, weight):
        if self.norm is None:
            self.norm = weight.exp().sqrt() * weight
        return x * self.norm
"""


@pytest.fixture
def library():
    """The library's classes, as from a file among installed packages."""
    space = {}
    exec(compile(LIBRARY, f"{sysconfig.get_path('purelib')}/library.py", "exec"), space)
    return SimpleNamespace(**space)


def first_of(*cells, **names):
    (finding,) = findings_of(*cells, **names)
    return finding, finding.fixes[0]


TWO = """
enc, opt = nn.Linear(3, 2), None
def losses(x):
    z = enc(x).sigmoid()
    return z.pow(2).mean(), z.sin().mean()
for i in range(2):
    a, b = losses(torch.randn(4, 3))
    acc.backward(a)
    acc.backward(b)
"""


def test_losses_that_a_library_scales_and_runs_are_summed_in_its_call(library):
    finding, fix = first_of(TWO, acc=library.Accelerator())
    assert (fix.id, fix.verified) == ("single_backward_sum", True)
    assert "`acc.backward(a + b)`" in fix.text
    assert [step.strip() for step in fix.edit if step.startswith("+")] == ["+ acc.backward(a + b)"]
    assert finding.fixes[1].id == "retain_graph_earlier_call"


def test_what_one_pass_made_in_a_library_and_later_ones_use_is_no_state(library):
    cell = (
        "logit = nn.Parameter(torch.ones(2))\nnet, head = Cached(), nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD([logit, *head.parameters()], lr=0.1)\n"
        "for i in range(2):\n    loss = head(net(torch.randn(3, 2), logit)).sum()\n    opt.zero_grad()\n"
        "    loss.backward()\n    opt.step()\n"
    )
    finding, fix = first_of(cell, Cached=library.Cached)
    assert fix.id == "recompute_in_loop"
    assert not any(one.verified for one in finding.fixes if one.id == "detach" and not one.starves)


STATE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.mean = nn.Linear(3, 2), None
    def loss(self, x):
        z = self.net(x)
        if self.mean is None:
            self.mean = z.mean(0)
        distance = z - self.mean
        self.mean = 0.9 * self.mean + 0.1 * z.mean(0)
        return distance.pow(2).sum()
Trainer().fit(Model(), [torch.randn(4, 3) for _ in range(3)])
"""


def test_a_state_that_begins_under_a_test_is_not_computed_anew_in_each_pass(library):
    _, fix = first_of(STATE, Trainer=library.Trainer)
    assert (fix.id, fix.verified) == ("detach", True)
    assert fix.edit[1] == "+ self.mean = (0.9 * self.mean + 0.1 * z.mean(0)).detach()"
    assert findings_of(text_edit.apply(STATE, fix.edits), Trainer=library.Trainer) == ()


SPREAD = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.hidden = nn.Linear(3, 2), None
    def loss(self, x):
        z = self.net(x).tanh()
        z = z if self.hidden is None else z + self.hidden
        out, self.hidden = torch.std_mean(z, dim=0, keepdim=True)
        return (out + z).sum()
Trainer().fit(Model(), [torch.randn(4, 3) for _ in range(3)])
"""


def test_where_a_name_is_only_compared_with_none_nothing_is_detached(library):
    """One operation makes the state and what the loss uses: it cannot be stored detached in the same statement."""
    _, fix = first_of(SPREAD, Trainer=library.Trainer)
    assert fix.id == "detach"
    mended = text_edit.apply(SPREAD, fix.edits)
    assert "self.hidden.detach() is None" not in mended
    assert findings_of(mended, Trainer=library.Trainer) == ()


PENALTY = """
class Model(nn.Module):
    def prepare(self):
        self.net = nn.Linear(3, 1)
        self.penalty = sum(p.exp().sum() for p in self.net.parameters())
    def loss(self, x):
        return self.net(x).sum() + 0.01 * self.penalty
model = Model()
model.prepare()
Trainer().fit(model, [torch.randn(4, 3) for _ in range(3)])
"""


def test_a_penalty_made_in_any_method_is_computed_before_its_use(library):
    finding, fix = first_of(PENALTY, Trainer=library.Trainer)
    assert (fix.id, fix.verified) == ("recompute_in_loop", True)
    assert fix.edit[0].strip().startswith("+ self.penalty = sum(")
    cuts = [one for one in finding.fixes if one.id == "detach"]
    assert all("it has no effect on any gradient" in one.price for one in cuts)


FROZEN = """
model = nn.Linear(3, 1)
for p in model.parameters():
    p.requires_grad = False
model.loss = lambda x: model(x).sum()
Trainer().fit(model, [torch.randn(4, 3)])
"""


def test_a_loss_of_a_library_s_own_comes_from_frozen_modules(library):
    finding, fix = first_of(FROZEN, Trainer=library.Trainer)
    assert finding.headline == "The root has no grad_fn."
    assert "no parameter of `model` requires grad" in finding.text
    assert fix.id == "unfreeze"


KEPT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.outputs = nn.Linear(3, 1), []
    def loss(self, x):
        loss = self.net(x).sum()
        self.outputs.append(loss)
        return loss
model = Model()
def fit(net):
    for _ in range(6):
        net.loss(torch.randn(4, 3)).backward()
fit(model)
"""


def test_a_pile_that_a_function_knew_by_another_name_is_told_once():
    assert [one.headline for one in findings_of(KEPT)] == ["Graphs of 6 iterations pile up in `model.outputs`."]


METRIC = """
net, metric = nn.Linear(3, 1), Metric()
for _ in range(6):
    loss = net(torch.randn(4, 3)).sum()
    loss.backward()
    metric.update(loss)
"""


def test_an_object_of_a_library_is_handed_numbers(library):
    _, fix = first_of(METRIC, Metric=library.Metric)
    assert [step for step in fix.edit if step.startswith("+")] == ["+ metric.update(loss.detach())"]
    assert not fix.verified


GENERATED = """
model = Writer()
out = model.generate(torch.randn(2, 3))
reward = (out > 0).float().sum()
loss = -(reward * out.log_softmax(-1).sum())
loss.backward()
"""


def test_a_method_of_a_library_may_run_without_grad_mode(library):
    finding, fix = first_of(GENERATED, Writer=library.Writer)
    assert "`model.generate(…)` (In[1], line 3) returned what has no graph" in finding.text
    assert "`model(…)` itself" in fix.text
