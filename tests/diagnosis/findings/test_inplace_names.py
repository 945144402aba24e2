"""A tensor that is modified in place under another name than the one by which it is told."""

from told import findings_of

EDGES = """def clamp_ends(u):
    u[0] = 0
    return u"""
FIELD = "field = torch.ones(4, requires_grad=True) * 2\nenergy = field.square().sum()"


def test_the_name_in_the_line_that_writes_is_told_too() -> None:
    (found,) = findings_of(EDGES, FIELD, "clamp_ends(field)", "energy.backward()")
    assert found.tensor == "field" and "modified `field`, there `u`, after" in found.text and "u" in found.names


def test_one_name_is_told_once() -> None:
    (found,) = findings_of(FIELD, "field[0] = 0", "energy.backward()")
    assert "modified `field` after" in found.text and found.names == ("field",)


ACTIVATION = """
class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x.mul_(w)
        x.sigmoid_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x, w)
        return x
    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return g * y * (1 - y) * w, None
"""


def test_a_custom_function_saves_what_its_forward_has_written():
    (found,) = findings_of(
        ACTIVATION,
        "w = torch.ones(3, requires_grad=True)\nout = Shifted.apply(w * 2, torch.ones(3))\nout += 1\nout.sum().backward()",
    )
    assert found.modified_at is not None and (found.modified_at.cell, found.modified_at.line) == (2, 3)
    assert "x.mul_" not in found.text and "sigmoid_" not in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["out = out + 1"]
