"""Leaves of each pass that take only the values of what is computed, where that is measured."""

from __future__ import annotations

import pytest
from told import with_lineage

BLUR = """
class SymmetricBlur(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, width, padding=width // 2)
        self.side = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        self.conv.weight = nn.Parameter(self.side + self.side.flip(-1))
        return self.gain * self.conv(x)
"""
ADAPTED = """
class Adapted(nn.Module):
    def __init__(self, inside, outside, rank=2):
        super().__init__()
        self.linear = nn.Linear(inside, outside)
        self.register_buffer("base", self.linear.weight.detach().clone())
        self.down = nn.Parameter(torch.randn(rank, inside) * 0.1)
        self.up = nn.Parameter(torch.zeros(outside, rank))

    def forward(self, x):
        self.linear.weight.data.copy_(self.base + self.up @ self.down)
        return self.linear(x)
"""
WAVES = """
class Waves(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.log_rates = nn.Parameter(torch.linspace(0, 2, count))
        self.mix = nn.Linear(count, 1)

    def forward(self, t):
        rates = torch.tensor(self.log_rates.exp(), requires_grad=True)
        return self.mix(torch.sin(t[:, None] * rates)).squeeze(1)
"""
TRAIN = """
opt = torch.optim.SGD({trained}, lr=0.01)
x, y = torch.randn({size}), torch.randn({size})
for _ in range(4):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GREY = """
class Grey(nn.Module):
    # Takes pictures of one channel, with the weights of a stem for three.

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.first = nn.Conv2d(1, 4, 3)
        self.first.weight = nn.Parameter(self.stem.weight.mean(1, keepdim=True))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.first(x).mean((2, 3)))
"""
MEANT = """
import copy
net = Grey()
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 0, 1, 0, 1])
for _ in range(4):
    before = copy.deepcopy(net)
    loss = nn.functional.cross_entropy(net(x), y) + (net(x) - target(x) - before(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for slow, quick in zip(target.parameters(), net.parameters()):
        slow.data.copy_(0.9 * slow + 0.1 * quick)
"""


def test_a_parameter_made_in_each_pass() -> None:
    (found,) = with_lineage(
        BLUR, "model = SymmetricBlur()" + TRAIN.format(trained="model.parameters()", size="8, 1, 30")
    )
    assert found.headline == "`model.side` has had no gradient in any step of the optimizer."
    assert found.cut_at is not None and (found.cut_at.cell, found.cut_at.line) == (1, 10)
    assert found.fixes[0].edit == (
        "- self.conv.weight = nn.Parameter(self.side + self.side.flip(-1))",
        "+ del self.conv.weight",
        "+ self.conv.weight = self.side + self.side.flip(-1)",
    )


@pytest.mark.parametrize("write", ["self.linear.weight.data.copy_({})", "self.linear.weight.data = {}"])
def test_a_weight_that_takes_the_values_of_a_sum(write: str) -> None:
    layer = ADAPTED.replace("self.linear.weight.data.copy_(self.base + self.up @ self.down)", write)
    layer = layer.format("self.base + self.up @ self.down")
    trained = "[model.down, model.up, model.linear.bias]"
    (found,) = with_lineage(layer, "model = Adapted(3, 3)" + TRAIN.format(trained=trained, size="8, 3"))
    assert found.headline == "`model.down` and `model.up` have had no gradient in any step of the optimizer."
    assert "writes only the values into a leaf" in found.text
    assert found.fixes[0].edit[1:] == (
        "+ del self.linear.weight",
        "+ self.linear.weight = self.base + self.up @ self.down",
    )


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_a_tensor_that_is_asked_to_train_in_each_pass() -> None:
    (found,) = with_lineage(WAVES, "model = Waves()" + TRAIN.format(trained="model.parameters()", size="50"))
    assert found.headline == "`model.log_rates` has had no gradient in any step of the optimizer."
    assert found.cut_at is not None and (found.cut_at.cell, found.cut_at.line) == (1, 9)


def test_weights_that_begin_with_those_of_another_are_meant_so() -> None:
    """The target follows by values that have a graph, and each round keeps a copy; the old stem is used nowhere."""
    assert not with_lineage(GREY, MEANT)
