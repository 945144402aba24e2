"""Whether what an edit detaches may be None, or a number, when its line is reached for the first time."""

import pytest

from graphwidget.diagnosis.source.tensor_or_not import when_tensor


@pytest.mark.parametrize(
    ("before", "inside", "condition"),
    [
        ("h = None", "    g(h)", "h is not None"),
        ("h = None", "    if h is None: h = zeros()", ""),
        ("h = None", "    h = f(h)", ""),
        ("h = None", "    if x: h = f(h)", "h is not None"),
        ("h = zeros()", "    g(h)", ""),
        ("h = 0.0", "    g(h)", "torch.is_tensor(h)"),
    ],
)
def test_a_name_is_a_tensor_where_it_was_assigned_in_any_case(before, inside, condition):
    loop = f"for x in xs:\n{inside}\n    loss.backward()\n"
    assert when_tensor({1: f"{before}\n{loop}"}, (1, 4), "h") == condition
    assert when_tensor({1: f"{before}\n", 2: loop}, (2, 3), "h") == condition


@pytest.mark.parametrize(("path", "condition"), [("box.h", "box.h is not None"), ("box.k", ""), ("other", "")])
def test_an_attribute_is_looked_for_in_all_cells(path, condition):
    cells = {1: "class Box:\n    h = None\nbox = Box()\nbox.h = None\n", 2: "for x in xs:\n    loss.backward()\n"}
    assert when_tensor(cells, (2, 2), path) == condition


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("self.h = x if not hasattr(self, 'h') else self.h + x", "hasattr(self, 'h')"),
        ("self.h = getattr(self, 'h', 0.0) + x", "hasattr(self, 'h')"),
        ("self.h = getattr(self, 'other', 0.0) + x", ""),
    ],
)
def test_an_attribute_may_not_be_there_in_the_first_pass(line, condition):
    cell = f"class Net:\n    def forward(self, x):\n        {line}\n        return self.h\n"
    assert when_tensor({1: cell}, (1, 3), "self.h") == condition


def test_an_attribute_is_there_behind_the_test_that_makes_it():
    cell = "class Net:\n    def forward(self, x):\n        if not hasattr(self, 'h'):\n            self.h = x\n        return self.h + x\n"
    assert when_tensor({1: cell}, (1, 5), "self.h") == ""
