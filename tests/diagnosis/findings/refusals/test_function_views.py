"""Views that a custom Function returns, and that are modified in place."""

import pytest
from told import findings_of

FUNCTION = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y.view(-1)
    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 2) * 2
w = torch.ones(2, 2, requires_grad=True)
"""


@pytest.mark.parametrize("given", ["w", "torch.ones(2, 2)"])
def test_the_function_is_named_and_the_write_made_one_of_a_new_tensor(given):
    """PyTorch says it in other words where no input requires grad."""
    (found,) = findings_of(
        FUNCTION, f"def run():\n    out = Twice.apply({given})\n    out += w.sum()\n    return out\nrun()"
    )
    assert found.headline == "`out` is a view that `Twice` returned, and is modified in place."
    assert (found.cause.cell, found.cause.line) == (2, 3)
    assert [fix.edits[0].new.strip() for fix in found.fixes] == ["out = out + w.sum()", "y.view(-1).clone()"]


def test_a_function_that_is_not_found_has_no_edit_of_its_own():
    (found,) = findings_of(FUNCTION, "make = Twice.apply", "out = make(w)\nout.add_(1)")
    assert "`Twice`" in found.headline  # PyTorch names it
    (found,) = findings_of(FUNCTION, "make = Twice.apply", "out = make(torch.ones(2, 2))\nout.add_(w.sum())")
    assert found.headline == "`out` is a view that a custom Function returned, and is modified in place."
    assert [bool(fix.edits) for fix in found.fixes] == [True, False]
