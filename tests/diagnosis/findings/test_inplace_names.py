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
