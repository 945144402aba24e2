"""A `.grad` that is None, because the leaf that had one was replaced."""

import pytest
from told import findings_of

BEFORE = """
w = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x = torch.ones(4)
(w * x + b - 1).pow(2).mean().backward()
"""
STEPS = {
    "under no_grad": (
        "with torch.no_grad():\n    w = w - 0.1 * w.grad\n    b = b - 0.1 * b.grad\nw.grad.zero_()",
        ["w -= 0.1 * w.grad", "b -= 0.1 * b.grad"],
    ),
    "without an operator": (
        "with torch.no_grad():\n    w -= 0.1 * w.grad\n    w = torch.clamp(w, -1, 1)\nw.grad.zero_()",
        ["w.copy_(torch.clamp(w, -1, 1))"],
    ),
    "in a dict": (
        "params = {'w': w}\nwith torch.no_grad():\n    for k in params:\n        params[k] = params[k] - 0.1 * params[k].grad\n"
        "        params[k].grad.zero_()",
        ["params[k] -= 0.1 * params[k].grad"],
    ),
    "in a decorated function": (
        "@torch.no_grad()\ndef step(ps):\n    for p in ps:\n        p = p - 0.1 * p.grad\n        p.grad.zero_()\nstep([w, b])",
        ["p -= 0.1 * p.grad"],
    ),
}


@pytest.mark.parametrize("how", STEPS)
def test_the_line_that_replaced_the_leaf_is_the_cause(how):
    step, lines = STEPS[how]
    (found,) = findings_of(BEFORE, step)
    assert found.headline.endswith(".grad` is None.")
    assert "it made a new tensor without a graph" in found.text and "no longer the leaf" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == lines


def test_what_is_a_new_leaf_each_time_has_nothing_to_clear():
    step = "w = (w - 0.1 * w.grad).detach().requires_grad_()\nb = (b - 0.1 * b.grad).detach().requires_grad_()\n"
    (found,) = findings_of(BEFORE, step + "w.grad.zero_()\nb.grad.zero_()\nprint(w)")
    assert "made a new leaf, which no backward has reached yet" in found.text
    assert (
        found.fixes[0].text == "Leave out `w.grad.zero_()` and `b.grad.zero_()`: a new leaf has no gradient to clear."
    )
    assert sorted(edit.start[0] for edit in found.fixes[0].edits) == [3, 4]
    (found,) = findings_of(BEFORE, step + "print(w.grad.norm())")
    assert found.fixes[0].edits == () and "Read it before that line" in found.fixes[0].text


def test_a_call_that_computes_something_else_of_a_leaf_is_no_step():
    """Where grad mode is on, ``x.relu()`` is a part of the computation, whatever its name."""
    (found,) = findings_of("x = torch.randn(3, requires_grad=True)\nx = x.relu()\nx.sum().backward()\nx.grad.norm()")
    assert not any("copy_" in edit.new for fix in found.fixes for edit in fix.edits)


def test_what_never_was_a_leaf_was_not_replaced():
    step = "with torch.no_grad():\n    x = torch.clamp(x, 0, 1)\nx.grad.norm()"
    (found,) = findings_of(BEFORE, step)
    assert "no longer the leaf" not in found.text and not any(fix.edits for fix in found.fixes)
