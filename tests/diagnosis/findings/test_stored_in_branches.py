"""What one branch stores at first, and another adds to."""

import pytest
from told import findings_of

PROGRAM = """
class Total:
    def __init__(self):
        self.held = None
    def update(self, out):
        STEP
net = nn.Linear(2, 1)
total = Total()
for _ in range(10):
    out = net(torch.ones(1, 2)).exp().sum()
    total.update(out)
    out.backward()
"""
BRANCHES = (
    "if self.held is None:\n            self.held = -NAME\n        else:\n            self.held = self.held - NAME"
)


@pytest.mark.parametrize("name", ["out", "value"])
def test_both_are_detached(name):
    step = BRANCHES.replace("NAME", name)
    step = step if name == "out" else f"value = out * 2\n        {step}"
    (found,) = findings_of(PROGRAM.replace("STEP", step))
    (edit,) = found.fixes[0].edits
    assert edit.new.strip() == f"{name} = {name}.detach()"


def test_what_is_added_in_place_to_an_element_is_detached_for_both():
    step = (
        "if key not in self.held:\n            self.held[key] = out\n        else:\n            self.held[key] += out"
    )
    program = (
        PROGRAM.replace("None", "{}")
        .replace("update(self", "update(self, key")
        .replace("update(out", "update('a', out")
    )
    (found,) = findings_of(program.replace("STEP", step))
    (edit,) = found.fixes[0].edits
    assert edit.new.strip() == "out = out.detach()"


def test_where_the_value_is_used_otherwise_each_line_is_detached():
    step = "value = out * 2\n        " + BRANCHES.replace("NAME", "value") + "\n        return value"
    program = PROGRAM.replace("    total.update(out)", "    out = out + total.update(out)")
    (found,) = findings_of(program.replace("STEP", step))
    assert sorted((edit.start[0], edit.new) for edit in found.fixes[0].edits) == [
        (8, "("),
        (8, ").detach()"),
        (10, ".detach()"),
    ]
    assert "And the same for the other lines that store it." in found.fixes[0].text
