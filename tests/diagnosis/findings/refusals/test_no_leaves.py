"""Optimizers that are given what was computed."""

import pytest
from told import findings_of

MADE = {
    "a factor": (
        "U = torch.randn(5, 2, requires_grad=True) * 0.1",
        "U",
        ["(torch.randn(5, 2) * 0.1).requires_grad_()"],
    ),
    "a type": (
        "U = torch.randn(5, requires_grad=True).double()",
        "U",
        ["torch.randn(5).double().requires_grad_()"],
    ),
    "a parameter": ("U = nn.Parameter(torch.ones(3)) * 0.1", "U", ["nn.Parameter(torch.ones(3) * 0.1)"]),
    "a function": (
        "U = nn.functional.normalize(torch.randn(4, 3).requires_grad_(), dim=1)",
        "U",
        ["nn.functional.normalize(torch.randn(4, 3), dim=1).requires_grad_()"],
    ),
    "a list": (
        "ws = [torch.randn(5, requires_grad=True) * 0.1 for _ in range(2)]",
        "ws",
        ["(torch.randn(5) * 0.1).requires_grad_()"],
    ),
    "a dict of lists": (
        "net = nn.Linear(2, 1)\nps = {'a': [torch.zeros(3, requires_grad=True) + 1], 'b': list(net.parameters())}",
        "[{'params': ps['a']}, {'params': ps['b']}]",
        ["(torch.zeros(3) + 1).requires_grad_()"],
    ),
    "an object": (
        "class Net:\n    def __init__(self):\n        self.U = torch.randn(5, requires_grad=True) / 2\n"
        "        self.b = torch.zeros(5, requires_grad=True)\n    def parameters(self):\n        return [self.U, self.b]\n"
        "net = Net()",
        "net.parameters()",
        ["(torch.randn(5) / 2).requires_grad_()"],
    ),
    "what a function returns": (
        "def init(n):\n    return torch.randn(n, requires_grad=True) / n\nU, V = init(3), init(4)",
        "[U, V]",
        ["(torch.randn(n) / n).requires_grad_()"],
    ),
}


@pytest.mark.parametrize("how", MADE)
def test_what_was_computed_of_a_leaf_without_a_name_is_made_the_leaf(how):
    made, given, new = MADE[how]
    parameters = given if given != "U" else "[U]"
    (found,) = findings_of(f"{made}\nopt = torch.optim.Adam({parameters})")
    assert ("is no leaf" in found.headline) or ("are no leaves" in found.headline)
    assert [edit.new for edit in found.fixes[0].edits] == new


def test_leaves_in_the_same_list_stay_as_they_are():
    cell = (
        "ws = [torch.randn(5, requires_grad=True) * 0.1, torch.zeros(2, requires_grad=True)]\ntorch.optim.SGD(ws, 0.1)"
    )
    (found,) = findings_of(cell)
    assert found.headline == "`ws[0]` is no leaf."
    assert [edit.new for edit in found.fixes[0].edits] == ["(torch.randn(5) * 0.1).requires_grad_()"]


def test_what_was_computed_of_a_leaf_with_a_name_leaves_the_choice():
    (found,) = findings_of("img = torch.rand(3, requires_grad=True)\nz = img.clone()\ntorch.optim.Adam([z])")
    assert [fix.id for fix in found.fixes] == ["leaf", "leaf"]
    assert any("`img`" in fix.text for fix in found.fixes)
    assert not any("rand" in edit.new for fix in found.fixes for edit in fix.edits)


QUERY = "query = torch.randn(3, requires_grad=True) * 0.1\nkey = nn.Parameter(torch.ones(2))\n"
IN_A_FUNCTION = """def build():
    query = torch.randn(3, requires_grad=True) * 0.1
    params = [nn.Parameter(torch.ones(2))] + [query]
    return torch.optim.Adam(params)
build()"""


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (QUERY + "params = [key] + [query]\ntorch.optim.Adam(params)", "`query` (`params[1]`)"),
        (QUERY + "gs = [{'params': [key, query]}]\ntorch.optim.Adam(gs)", "`query` (`gs[0]['params'][1]`)"),
        (IN_A_FUNCTION, "`query`"),
    ],
    ids=["a list", "a group", "a function"],
)
def test_an_element_is_called_by_the_variable_that_it_is(code, shown):
    (found,) = findings_of(code)
    assert found.headline == f"{shown} is no leaf." and found.tensor == "query"
    assert [edit.new for edit in found.fixes[0].edits] == ["(torch.randn(3) * 0.1).requires_grad_()"]


def test_the_variable_of_a_loop_is_no_name_of_its_last_element():
    code = "ws = []\nfor i in range(2):\n    w = torch.randn(3, requires_grad=True) * 0.1\n    ws.append(w)\n"
    (found,) = findings_of(f"{code}torch.optim.SGD(ws, 0.1)")
    assert found.headline == "`ws[0]` and `ws[1]` are no leaves."


def test_a_variable_that_is_assigned_again_behind_its_list_is_not_in_it():
    (found,) = findings_of(IN_A_FUNCTION.replace("    return", "    query = query * 2\n    return"))
    assert found.tensor is None and not found.fixes[0].edits
