"""Parameters that a module also keeps in a list of its own: other weights are not in it."""

import pytest
from told import findings_of

NET = """
from torch.func import functional_call
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)])
        self.kept = {kept}
    def penalty(self):
        total = 0.0
        for w in {read}:
            total = total + w.pow(2).sum()
        return total
    def forward(self, x):
        return self.layers[1](self.layers[0](x)).sum(), self.penalty()
net = Net()
"""
FAST = """
fast = {k: p.detach().clone().requires_grad_() for k, p in net.named_parameters() if "weight" in k}
loss, penalty = functional_call(net, fast, (torch.ones(2, 3),))
torch.autograd.grad(penalty, list(fast.values()))
"""
STALE = """
for layer in net.layers:
    layer.weight = nn.Parameter(torch.ones_like(layer.weight))
torch.autograd.grad(net.penalty(), [layer.weight for layer in net.layers])
"""
LIST = "[layer.weight for layer in self.layers]"


@pytest.mark.parametrize(
    ("kept", "read", "new"),
    [
        (LIST, "self.kept", f"for w in {LIST}:"),
        ("{'w': self.layers[0].weight}", "self.kept.values()", "for w in {'w': self.layers[0].weight}.values():"),
        ("list(self.parameters())", "self.kept", "for w in list(self.parameters()):"),
    ],
)
def test_other_weights_are_given_and_the_attribute_keeps_the_own_ones(kept: str, read: str, new: str) -> None:
    (found,) = findings_of(NET.format(kept=kept, read=read), FAST)
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (1, 10)
    assert "`self.kept`" in found.text and "line 7" in found.text and "functional_call" in found.text
    assert found.fixes[0].edit[1:] == (f"+ {new}",)


def test_new_parameters_in_the_place_of_those_that_the_attribute_keeps() -> None:
    (found,) = findings_of(NET.format(kept=LIST, read="self.kept"), STALE)
    assert "no longer has under any other name" in found.text
    assert found.fixes[0].edit[1:] == (f"+ for w in {LIST}:",)


def test_what_the_module_alone_cannot_give_is_said_in_words() -> None:
    net = NET.format(kept="[*first, self.layers[1].weight]", read="self.kept")
    net = net.replace("def __init__(self)", "def __init__(self, first)").replace("Net()", "Net([torch.ones(1)])")
    (found,) = findings_of(net, FAST)
    assert "`self.kept`" in found.text and not found.fixes[0].edits


def test_a_registered_list_and_weights_that_are_used_are_another_matter() -> None:
    for kept in (f"nn.ParameterList({LIST})", LIST):
        (found,) = findings_of(
            NET.format(kept=kept, read="self.kept"),
            "spare = torch.ones(1, requires_grad=True)\n"
            "torch.autograd.grad(net.penalty(), [*(layer.weight for layer in net.layers), spare])",
        )
        assert "self.kept" not in found.text
