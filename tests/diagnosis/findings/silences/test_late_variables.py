"""What a checkpoint computes again when the loop around it is over."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

MODEL = """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            scale = 1.0 / (i + 1)
            CALL
        return x
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
LOOP = """
for _ in range(3):
    loss = net(torch.ones(2, 3).requires_grad_()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BY_LAMBDA = "x = checkpoint(lambda h: layer(h) * scale, x, use_reentrant=MODE)"
BY_NAME = "def run(h):\n                return layer(h) * scale\n            x = checkpoint(run, x, use_reentrant=MODE)"


def late(*cells):
    return [one for one in findings_of(*cells) if "computed again" in one.headline]


@pytest.mark.parametrize("mode", ["True", "False"])
@pytest.mark.parametrize("call", [BY_LAMBDA, BY_NAME])
def test_variables_of_the_loop_are_those_of_its_last_pass(call, mode):
    cell = MODEL.replace("CALL", call.replace("MODE", mode))
    (found,) = late(cell, LOOP)
    assert found.names == ("layer", "scale") and found.severity == "warning"
    new = text_edit.apply(cell, found.fixes[0].edits)
    assert "h, *, layer=layer, scale=scale" in new
    assert not findings_of(new, LOOP)


@pytest.mark.parametrize(
    "call",
    [
        "x = checkpoint(layer, x, use_reentrant=False) * scale",
        "x = checkpoint(lambda h, layer=layer, scale=scale: layer(h) * scale, x, use_reentrant=False)",
        "x = checkpoint(lambda h, layer, scale: layer(h) * scale, x, layer, scale, use_reentrant=False)",
    ],
)
def test_what_the_function_is_given_is_as_it_was(call):
    assert not findings_of(MODEL.replace("CALL", call), LOOP)


def test_a_variable_that_is_the_same_in_each_pass_is_never_late():
    call = (
        "mask = torch.ones(3)\n            x = checkpoint(lambda h: self.layers[0](h) * mask, x, use_reentrant=False)"
    )
    assert not late(MODEL.replace("CALL", call), LOOP)


@pytest.mark.parametrize("ends", ["loss.backward()", "finish(loss)"])
def test_a_backward_in_the_same_pass_comes_in_time(ends):
    loop = (
        "from torch.utils.checkpoint import checkpoint\nlayer = nn.Linear(3, 3)\ndef finish(loss):\n    loss.backward()\n"
        "opt = torch.optim.SGD(layer.parameters(), 0.1)\nfor scale in (1.0, 0.5):\n    opt.zero_grad()\n"
        "    loss = checkpoint(lambda h: layer(h) * scale, torch.ones(2, 3), use_reentrant=False).sum()\n"
        f"    {ends}\n    opt.step()"
    )
    assert not findings_of(loop)


def test_a_backward_of_the_loop_outside_of_it_comes_too_late():
    loop = (
        "from torch.utils.checkpoint import checkpoint\nlayers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))\n"
        "opt = torch.optim.SGD(layers.parameters(), 0.1)\nfor _ in range(2):\n    x = torch.ones(2, 3)\n"
        "    for layer in layers:\n        x = checkpoint(lambda h: layer(h), x, use_reentrant=False)\n"
        "    opt.zero_grad()\n    x.sum().backward()\n    opt.step()"
    )
    (found,) = late(loop)
    assert found.names == ("layer",)
