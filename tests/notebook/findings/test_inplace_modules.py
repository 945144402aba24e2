"""Modules with ``inplace=True``: which one modified a tensor, also where no line and no name tells."""

from __future__ import annotations

import pytest

LAYERS = "from torch import nn\nnet = nn.Sequential(nn.Linear(3, 3), {}, nn.Linear(3, 1))\nx = torch.ones(2, 3)"
BACKWARD = "net(x).sum().backward()"


@pytest.mark.parametrize(
    "layers, named",
    [
        ("nn.Sigmoid(), nn.ReLU(True)", "`net[2]`, a `ReLU`"),
        ("nn.Tanh(), nn.Dropout(0.5, True)", "`net[2]`, a `Dropout`"),  # its node saves a mask only
        ("nn.Softmax(-1), nn.Sequential(nn.SiLU(True))", "`net[2][0]`, a `SiLU`"),
    ],
)
def test_the_module_is_named_and_can_be_switched(run, layers, named):
    (found, *_) = run(LAYERS.format(layers), BACKWARD)
    assert f"modified a tensor in {named} with `inplace=True`, after " in found.text
    module = named.split("`")[1]
    assert found.fixes[0].verified and found.fixes[0].edit[0] == f"+ {module}.inplace = False"
    assert (found.modified_at.cell, found.modified_at.line) == (3, 1)


def test_it_is_reported_before_the_backward_runs(run):
    (found,) = run(LAYERS.format("nn.Sigmoid(), nn.ReLU(True)"), "loss = net(x).sum()")
    assert found.severity == "warning" and "in `net[2]`, a `ReLU` with `inplace=True`" in found.text


def test_a_module_that_works_in_place_no_more_is_not_accused(run):
    layers = LAYERS.format("nn.Sigmoid(), nn.ReLU(True)")
    (found, *_) = run(layers, "loss = net(x).sum()\nnet[2].inplace = False", "loss.backward()")
    assert "By which line is unknown." in found.text and not found.fixes[0].verified


def test_one_that_modifies_what_nobody_needs_is_not_accused(run):
    (found, *_) = run(
        LAYERS.format("nn.Linear(3, 3), nn.ReLU(True)"),
        "h = net[:3](x)\nout = h.exp()\nout += 1\nout.sum().backward()",
    )
    assert "ReLU" not in found.text and found.tensor == "out"


def test_a_module_that_only_calls_itself_inplace_is_not_believed(run):
    own = "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inplace = True\n    def forward(self, x):\n        return x.relu_()"
    (found, *_) = run("from torch import nn\n" + own, LAYERS.format("nn.Sigmoid(), Own()"), BACKWARD)
    assert "Own" not in found.text


def test_a_module_without_a_name_is_known_by_its_class(run):
    body = LAYERS.format("nn.Sigmoid(), nn.ReLU(True)").replace("\n", "\n    ")
    (found, *_) = run(f"def main():\n    {body}\n    {BACKWARD}", "main()")
    assert "modified a tensor in a `ReLU` with `inplace=True`" in found.text
    assert found.fixes[0].text == "Make the `ReLU` with `inplace=False`." and not found.fixes[0].verified


HOOK = """
def clear(module, given, out):
    with torch.no_grad():
        {}
net[2].register_forward_hook(clear)
loss = net(x).pow(2).sum()"""


def test_what_it_wrote_before_a_node_saved_it_is_not_blamed(run):
    layers = LAYERS.format("nn.ReLU(True)").replace("(3, 1)", "(3, 3)")
    (found, *_) = run(layers, HOOK.format("given[0].zero_()"), "loss.backward()")
    assert found.node == "AddmmBackward0" and "ReLU" not in found.text
    assert not any("inplace" in fix.text for fix in found.fixes)


def test_of_two_writers_the_later_one_is_reported(run):
    layers = LAYERS.format("nn.Sigmoid(), nn.ReLU(True)")
    hook = "kept = []\nnet[1].register_forward_hook(lambda module, given, out: kept.append(out))"
    (found, *_) = run(
        layers, hook, "loss = net(x).sum()", "with torch.no_grad():\n    kept[0].add_(1)", "loss.backward()"
    )
    assert found.text.startswith("`kept[0].add_(1)` (In[5], line 2) modified `kept[0]` after ")


def test_of_two_modules_on_one_line_both_are_switched(run):
    layers = LAYERS.format("nn.Sigmoid(), nn.ReLU(True), nn.Linear(3, 3), nn.Tanh(), nn.SiLU(True)")
    (found, *_) = run(layers, BACKWARD)
    assert found.fixes[0].verified
    assert found.fixes[0].edit[:2] == ("+ net[5].inplace = False", "+ net[2].inplace = False")
