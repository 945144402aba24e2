"""Modules that could train are found without running any of their code."""

import torch
from torch import nn

from graphwidget.capture.errors import trainable


def test_modules_are_reported_with_those_inside_them():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    net[0].requires_grad_(False)
    told = trainable.modules({"net": net, "head": net[2], "x": torch.ones(1), "_": net})
    assert told == {"net": True, "net.0": False, "net.2": True, "head": True}


def test_a_module_that_holds_itself_ends_somewhere():
    net = nn.Linear(1, 1)
    net._modules["me"] = net
    assert trainable.modules({"net": net}) == {"net": True}


def test_no_code_of_a_module_runs():
    class Nosy(nn.Linear):
        def __getattr__(self, name):
            raise AssertionError(name)

        def parameters(self, *_):
            raise AssertionError("parameters")

    assert trainable.modules({"net": Nosy.__new__(Nosy)}) == {}
    net = nn.Linear(1, 1)
    net.__class__ = Nosy
    assert trainable.modules({"net": net}) == {"net": True}


def test_of_too_many_modules_nothing_is_reported(monkeypatch):
    monkeypatch.setattr(trainable, "MOST", 3)
    assert trainable.modules({"net": nn.Sequential(*(nn.Linear(1, 1) for _ in range(4)))}) == {}
