"""Attributes of a module that were to be parameters, and are computed from one."""

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply

NET = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.shift = {shift}\n        self.out = nn.Linear(3, 1)\n"
    "    def forward(self, x):\n        return self.out(x + self.shift)\nnet = Net()\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
)
LOOP = (
    "for _ in range(4):\n    loss = net(torch.ones(2, 3)).pow(2).sum()\n    opt.zero_grad()\n    loss.backward()\n"
    "    opt.step()\n"
)

COMPUTED = {
    "cast": (
        "nn.Parameter(torch.zeros(3)).to(torch.double).float()",
        "nn.Parameter(torch.zeros(3).to(torch.double).float())",
    ),
    "of another shape": ("nn.Parameter(torch.zeros(6)).view(2, 3)", "nn.Parameter(torch.zeros(6).view(2, 3))"),
    "a tensor that requires grad": (
        "torch.zeros(6, requires_grad=True).view(2, 3)",
        "torch.nn.Parameter(torch.zeros(6).view(2, 3))",
    ),
}


@pytest.mark.parametrize("how", COMPUTED)
def test_what_is_computed_from_a_parameter_is_none(how: str) -> None:
    shift, new = COMPUTED[how]
    text = NET.replace("{shift}", shift)
    (found,) = findings_of(text, LOOP)
    assert found.headline == "`net.shift` is never trained: it is computed from a parameter, and is none."
    assert (found.cause.cell, found.cause.line) == (1, 4)
    mended = apply(text, found.fixes[0].edits)
    assert f"self.shift = {new}\n" in mended and said(mended, LOOP) == []


def test_where_its_graph_is_freed_the_fix_is_the_same() -> None:
    (found,) = findings_of(NET.replace("{shift}", "nn.Parameter(torch.ones(3)) * 0.1"), LOOP)
    assert found.kind == "second_backward"
    assert [(fix.id, fix.edits[0].new) for fix in found.fixes] == [
        ("register_modules", "nn.Parameter(torch.ones(3) * 0.1)")
    ]


CORRECT = {
    "a parameter": "nn.Parameter(torch.zeros(6).view(2, 3))",
    "a frozen one": "nn.Parameter(torch.zeros(3)).detach()",
    "a part of another": "nn.ParameterList([nn.Parameter(torch.zeros(3))])[0]",
}


@pytest.mark.parametrize("how", CORRECT)
def test_correct_attributes_are_left_alone(how: str) -> None:
    assert said(NET.replace("{shift}", CORRECT[how]), LOOP) == []
