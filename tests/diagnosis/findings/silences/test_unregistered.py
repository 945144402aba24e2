"""Parts of a module in a container of Python's, where `parameters()` does not see them."""

import pytest
from small_training import LOOP, OPTIMIZER
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply

LISTED = (
    "class Net(nn.Module):\n"
    "    def __init__(self{arguments}):\n"
    "        super().__init__()\n"
    "        self.parts = {parts}\n"
    "        self.out = nn.Linear(3, 1)\n"
    "    def forward(self, x):\n"
    "        return self.out(x + self.parts[0](x))\n"
)


@pytest.mark.parametrize(
    "parts, new",
    [
        ("[nn.Linear(3, 3), nn.Linear(3, 3)]", "nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])"),
        ("{0: nn.Linear(3, 3)}", "nn.ModuleDict({0: nn.Linear(3, 3)})"),
    ],
)
def test_modules_in_a_container_of_pythons_are_not_registered(parts: str, new: str) -> None:
    text = "from torch import nn\n" + LISTED.replace("{arguments}", "").replace("{parts}", parts)
    (found,) = findings_of(text, f"net = Net()\n{OPTIMIZER}", LOOP)
    assert "net.parts[0].weight" in found.names and found.fixes[0].id == "register_modules"
    assert new in apply(text, found.fixes[0].edits)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 5)


MADE_BY_A_METHOD = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.out = self.make(2), nn.Linear(3, 1)
        self.two = self.make(1)
        self.three = self.make(1)
    def make(self, count):
        layers = []
        for _ in range(count):
            layers.append(nn.Linear(3, 3))
        return layers
    def forward(self, x):
        for part in self.two + self.three:
            x = part(x)
        return self.out(x)
"""


@pytest.mark.parametrize("after", ["", "net.eval()\n"])
def test_lists_that_a_method_makes_are_told_together_whatever_else_the_text_says(after: str) -> None:
    text = "from torch import nn\n" + MADE_BY_A_METHOD
    (found,) = findings_of(text, f"net = Net()\n{OPTIMIZER}", LOOP + f"\n{after}")
    assert found.names[0] == "net.three[0].weight" and "net.two[0].bias" in found.names
    assert "`self.two = self.make(1)` (In[1], line 6) and another line put them into a list of Python's" in found.text
    mended = apply(text, found.fixes[0].edits)
    assert "self.two = nn.ModuleList(self.make(1))" in mended and "self.three = nn.ModuleList(self.make(1))" in mended
    assert said(mended, f"net = Net()\n{OPTIMIZER}", LOOP) == []


def test_a_list_in_a_list_that_a_function_makes_is_registered_as_well() -> None:
    text = "from torch import nn\ndef make():\n    return [[nn.Linear(3, 3)]]\n"
    text += LISTED.format(arguments="", parts="make()").replace("self.parts[0](x)", "self.parts[0][0](x)")
    (found,) = findings_of(text, f"net = Net()\n{OPTIMIZER}", LOOP)
    mended = apply(text, found.fixes[0].edits)
    assert "self.parts = nn.ModuleList(map(nn.ModuleList, make()))" in mended
    assert said(mended, f"net = Net()\n{OPTIMIZER}", LOOP) == []


def test_what_a_list_names_once_more_is_registered() -> None:
    """`order` holds parts that are attributes, too: the optimizer was given one of them, and the rest is left out."""
    net = LISTED.format(arguments="", parts="[self.body]").replace(
        "self.parts =", "self.body = nn.Linear(3, 3)\n        self.parts ="
    )
    build = "net = Net()\nopt = torch.optim.SGD(net.out.parameters(), lr=0.1)"
    assert not any("Python's" in one.text for one in findings_of(net, build, LOOP))


def test_a_list_that_a_variable_brings_is_found_beside_another_class_with_that_attribute() -> None:
    other = (
        "class Down(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        parts = [nn.Linear(3, 3)]\n        self.parts = nn.Sequential(*parts)\n"
        "    def forward(self, x):\n        return self.parts(x)\n"
    )
    made = LISTED.replace("{arguments}", "").replace("{parts}", "layers")
    made = made.replace(
        "        self.parts", "        layers = []\n        layers.append(nn.Linear(3, 3))\n        self.parts", 1
    )
    text = f"from torch import nn\n{other}{made}"
    build = "net = Net()\ndown = Down()\nopt = torch.optim.SGD([*net.parameters(), *down.parameters()], lr=0.1)"
    (found,) = findings_of(text, build, LOOP.replace("net(", "net(down(").replace("3))", "3)))"))
    assert found.names == ("net.parts[0].weight", "net.parts[0].bias") and "list of Python's" in found.text
    assert "self.parts = nn.ModuleList(layers)" in apply(text, found.fixes[0].edits)
    filled = text.replace("        self.out", "        layers.append(nn.Linear(3, 3))\n        self.out")
    (found,) = findings_of(filled, build, LOOP.replace("net(", "net(down(").replace("3))", "3)))"))
    assert not found.fixes[0].edits


NESTED = {
    "appended": "self.parts = []\n        self.parts.append([nn.Linear(3, 3)])",
    "written out": "self.parts = [[nn.Linear(3, 3)], [nn.Linear(3, 3)]]",
    "a comprehension": "self.parts = [[nn.Linear(3, 3)] for _ in range(2)]",
}


@pytest.mark.parametrize("how", NESTED)
def test_lists_in_a_list_are_registered_as_well(how: str) -> None:
    net = LISTED.replace("{arguments}", "").replace("self.parts = {parts}", NESTED[how])
    net = "from torch import nn\n" + net.replace("self.parts[0](x)", "self.parts[0][0](x)")
    (found,) = findings_of(net, f"net = Net()\n{OPTIMIZER}", LOOP)
    mended = apply(net, found.fixes[0].edits)
    assert mended.count("nn.ModuleList(") == (3 if how == "written out" else 2)
    assert said(mended, f"net = Net()\n{OPTIMIZER}", LOOP) == []


@pytest.mark.parametrize("call", ["Net(parts)", "Net(parts=parts)"])
def test_a_list_of_the_program_that_a_module_is_given_and_keeps(call: str) -> None:
    text = LISTED.format(arguments=", parts", parts="parts")
    made = f"parts = [nn.Linear(3, 3) for _ in range(2)]\nnet = {call}\n{OPTIMIZER}"
    (found,) = findings_of(text, made, LOOP)
    assert found.severity == "warning" and found.cause is not None and found.cause.line == 4
    assert "self.parts = torch.nn.ModuleList(parts)" in apply(text, found.fixes[0].edits)


def test_a_teacher_that_a_list_hides_is_not_reported() -> None:
    net = LISTED.replace("{arguments}", ", teacher").replace("{parts}", "[teacher]")
    assert not said(net + f"net = Net(nn.Linear(3, 3))\n{OPTIMIZER}", LOOP)
