"""The kinds of the objects on the path to a tensor."""

import torch
from torch import nn

from graphwidget.capture.owners.holders import kinds


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([nn.Linear(2, 2)])
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.h = torch.zeros(2)
        self.layers = [nn.Linear(2, 2)]


class Trainer:
    def __init__(self):
        self.net = Flow()


def of(*paths, **names):
    return kinds(paths, {"": names})


def test_a_module_its_parameters_and_buffers():
    found = of("flow.steps[0].weight", "flow.scale", "flow.mean", "flow.h", "flow.layers[0].bias", flow=Flow())
    assert found["flow"] == found["flow.steps"] == found["flow.steps[0]"] == found["flow.layers"] == "module"
    assert found["flow.steps[0].weight"] == found["flow.scale"] == "parameter"
    assert (found["flow.mean"], found["flow.h"]) == ("buffer", "tensor")


def test_tensors_leaves_and_containers():
    w = torch.ones(2, requires_grad=True)
    found = of("w", "y", "kept['a'][0]", "ws[0]", w=w, y=w * 2, kept={"a": [w * 3], "n": 1}, ws=[w])
    assert found == {
        "w": "leaf", "y": "tensor", "kept": "container", "kept['a']": "container", "kept['a'][0]": "tensor",
        "ws": "leaves", "ws[0]": "leaf",
    }  # fmt: skip


def test_optimizers_loaders_and_objects():
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader([1, 2])
    found = of("opt", "loader", "trainer.net.scale", opt=opt, loader=loader, trainer=Trainer())
    assert (found["opt"], found["loader"]) == ("optimizer", "loader")
    assert (found["trainer"], found["trainer.net"]) == ("object", "module")


def test_what_cannot_be_followed_is_left_out_and_nothing_is_run():
    class Odd:
        def __getattr__(self, name):
            raise AssertionError("run")

    assert of("odd.h", "gone", "f.__closure__[h]", odd=Odd()) == {"odd": "object"}


def test_local_variables_by_their_function():
    assert kinds(["fit:h", "other:h"], {"fit": {"h": torch.ones(1)}}) == {"fit:h": "tensor"}
