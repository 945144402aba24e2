"""A leaf has its owner's name, even if optimizers, lists, averages or loops hold it, too."""

import copy

import pytest
import torch
from torch import nn

from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.owners import search as owners
from graphwidget.render import json_export


def named(text):
    """Return the namespace of a program, and the first name of each leaf that its `loss` reaches."""
    space = {"torch": torch, "nn": nn, "copy": copy, "F": nn.functional}
    exec(text, space)
    search = owners.find(space, budget_s=5.0)
    graph = take([space["loss"]], owners=search.holdings)
    return space, graph


def first_names(text):
    _, graph = named(text)
    return {leaf.paths[0] if leaf.paths else "" for leaf in graph.leaves.values()}


NET = "net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))\nloss = net(torch.ones(2)).sum()\n"
NAMES = {"net[0].weight", "net[0].bias", "net[2].weight", "net[2].bias"}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "LBFGS"])
def test_what_an_optimizer_has_inside_names_nothing(optimizer):
    step = "opt.step(lambda: 0.0)" if optimizer == "LBFGS" else "opt.step()"
    made = f"o = torch.optim.{optimizer}(net.parameters(), lr=0.1)\n"
    run = f"{NET}{made}opt = o\nloss.backward()\n{step}\nloss = net(torch.ones(2)).sum()\n"
    assert first_names(run) == NAMES
    scheduler = "s = torch.optim.lr_scheduler.StepLR(o, 1)\n" if optimizer != "LBFGS" else ""
    assert first_names(run + scheduler + "kept = {'o': o}\n") == NAMES


@pytest.mark.parametrize(
    "more",
    [
        "ps = list(net.parameters())\n",
        "p = dict(net.named_parameters())\n",
        "for p in net.parameters():\n    p.grad = None\n",
        "for n, q in net.named_parameters():\n    pass\n",
        "seen = set(net.parameters())\n",
        "for a in net:\n    pass\n",
        "for n, a in list(net.named_modules()):\n    pass\n",
        "class Average:\n    def __init__(self, net):\n        self.of = list(net.parameters())\ne = Average(net)\n",
        "e = torch.optim.swa_utils.AveragedModel(net)\n",
        "m = nn.ModuleList([net])\n",
        "def f(net=net):\n    return net\n",
        "def outer(ps):\n    return lambda: ps\ng = outer(list(net.parameters()))\n",
        "class Mine:\n    def __init__(self, ps):\n        self.ps = list(ps)\no = Mine(net.parameters())\n",
    ],
)
def test_nor_does_anything_else_that_was_given_the_parameters(more):
    assert first_names(NET + more) == NAMES


def test_a_module_that_only_an_object_has_is_named_through_it():
    trainer = """
class Trainer:
    def __init__(self):
        self.model = nn.Linear(2, 1)
        self.o = torch.optim.Adam(self.model.parameters())
        self.params = [p for group in self.o.param_groups for p in group["params"]]
trainer = Trainer()
loss = trainer.model(torch.ones(2)).sum()
loss.backward(); trainer.o.step()
loss = trainer.model(torch.ones(2)).sum()
"""
    assert first_names(trainer) == {"trainer.model.weight", "trainer.model.bias"}


def test_a_module_that_only_a_closure_has_is_named_before_the_optimizer():
    step = """
def build():
    model = nn.Linear(2, 1)
    def step():
        return model(torch.ones(2)).sum()
    return step, torch.optim.Adam(model.parameters())
step, o = build()
loss = step(); loss.backward(); o.step(); loss = step()
"""
    assert first_names(step) == {"step.__closure__[model].weight", "step.__closure__[model].bias"}


def test_modules_in_containers_keep_the_names_of_their_parameters():
    nets = "nets = {'a': nn.Linear(2, 1)}\nps = [p for m in nets.values() for p in m.parameters()]\n"
    found = first_names(nets + "loss = nets['a'](torch.ones(2)).sum()\n")
    assert found == {"nets['a'].weight", "nets['a'].bias"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_a_scripted_module_has_the_names_of_the_module_that_it_was_made_of():
    scripted = NET.replace("nn.Sequential(", "torch.jit.script(nn.Sequential(").replace("1))", "1)))")
    assert first_names(scripted) == NAMES


def test_bare_tensors_are_named_by_the_variable_that_was_there_first():
    made = "weight = torch.ones(2, requires_grad=True)\nbias = torch.ones(2, requires_grad=True)\n"
    loop = "ps = [weight, bias]\no = torch.optim.Adam(ps)\nfor p in ps:\n    p.grad = None\n"
    assert first_names(made + loop + "loss = (weight + bias).sum()\n") == {"weight", "bias"}


def test_a_leaf_without_another_name_has_the_optimizers():
    made = "o = torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1)\n"
    assert first_names(made + "loss = o.param_groups[0]['params'][0].sum()\n") == {"o.param_groups[0]['params'][0]"}


def test_the_best_name_is_kept_however_many_there_are():
    kept = "".join(f"l{i} = list(net.parameters())\n" for i in range(2 * owners.MAX_PATHS))
    deep = "class Box:\n    pass\nbox = Box(); box.inner = Box(); box.inner.net = nn.Sequential(nn.Sequential(nn.Linear(2, 1)))\n"
    run = f"{deep}net = box.inner.net\n{kept}loss = net(torch.ones(2)).sum()\n"
    assert first_names(run) == {"net[0][0].weight", "net[0][0].bias"}
    _, graph = named(f"{run}del net\n")
    assert {leaf.paths[0] for leaf in graph.leaves.values()} == {
        "box.inner.net[0][0].weight",
        "box.inner.net[0][0].bias",
    }


def test_text_and_json_agree():
    _, graph = named(f"{NET}o = torch.optim.Adam(net.parameters())\nloss.backward(); o.step()\n")
    assert "○ AccumulateGrad  net[0].weight, " in graph.to_text()
    leaves = [json_export.node_record(node) for node in graph.nodes if node.leaf]
    assert {leaf["labels"][0] for leaf in leaves} == NAMES
