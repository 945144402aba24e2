"""The line that applied an operation whose node has no number."""

import pytest
from told import findings_of

X = "w = torch.rand(4, 4, requires_grad=True)\ny = w * 1"
HIST = "def hist(v):\n    return torch.histogram(v, 4).hist\n"
FOUND = {
    "the only one": ("def hist(v):\n    h = torch.histogram(v, 4).hist\n    return h / h.sum()", "hist(y).mean()", 2),
    "a method, unpacked": (
        "class Hist(nn.Module):\n    def forward(self, v):\n        h, edges = v.histogram(4)\n        return h * 2\n"
        "hist = Hist()",
        "hist(y).mean()",
        3,
    ),
    "a longer name of PyTorch's": ("def low(v):\n    return torch.linalg.ldl_factor(v).LD", "low(y).mean()", 2),
    "that of two which the sum reads": (
        "def gap(v, t):\n    a = torch.histogram(t, 4).hist\n    b = torch.histogram(v, 4).hist\n    b = b / b.sum()\n"
        "    return (a - b).abs()",
        "gap(y, torch.rand(4)).mean()",
        3,
    ),
    "that which is not detached": (HIST + "other = torch.histogram(y.detach(), 4).hist", "(hist(y) - other).mean()", 2),
}


@pytest.mark.parametrize("how", FOUND)
def test_the_line_that_called_the_operation_is_the_cause(how: str) -> None:
    text, loss, line = FOUND[how]
    (found,) = findings_of(X, text, f"loss = {loss} + y.sum()\nloss.backward()")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, line)
    assert "applied it" in found.text and found.headline.endswith("has no derivative.")


def test_of_several_lines_it_is_not_said_which_it_was() -> None:
    text = "def both(v):\n    a = torch.histogram(v, 4).hist\n    b = torch.histogram(v * 2, 4).hist\n    return a - b"
    (found,) = findings_of(X, text, "both(y).mean().backward()")
    assert "One of" in found.text and found.cause is not None and found.cause.cell == 2
