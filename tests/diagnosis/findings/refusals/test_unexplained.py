"""Errors of calls that nothing explains: where each came from, and the whole message."""

from told import findings_of

from graphwidget.render.report import finding_lines, note

ODD = (
    "class Odd(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
    "    @staticmethod\n    def backward(ctx, g):\n        raise KeyError('lost')\n"
    "w = torch.ones(3, requires_grad=True)"
)
SCATTER = (
    "src = torch.ones(2, 3, requires_grad=True)\n"
    "z = torch.zeros(1, 3).scatter(0, torch.zeros(1, 3, dtype=torch.long), src.exp())\n"
    "loss = z.tanh().sum()\nloss.backward()"
)


def test_an_error_of_python_code_has_its_line_and_the_node() -> None:
    (found,) = findings_of(ODD, "loss = Odd.apply(w * 1).exp().sum()\nloss.backward()")
    assert (found.kind, found.severity, found.node, found.unexplained) == ("refused", "error", "OddBackward", "lost")
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    assert "It stopped at `OddBackward` (In[2], line 1)." in found.text


def test_an_error_of_the_engine_has_the_node_and_the_whole_message() -> None:
    (found,) = findings_of(SCATTER)
    assert found.node == "ScatterBackward0" and "PyTorch's own" in found.text
    assert found.unexplained.endswith("expected shape compatible with [2, 3]")
    whole = "\n".join(finding_lines(found))
    assert "not explained yet" in whole and "returned an invalid gradient" in whole
    assert "returned an invalid gradient" not in note(found)  # it stands under the traceback, which has the message


def test_what_stopped_is_not_guessed() -> None:
    # Nothing was freed, so all nodes may have run.
    (found,) = findings_of(
        ODD, "y = w * 1\nz = y.neg()\nloss = Odd.apply(z).neg().sum()\nloss.backward(retain_graph=True)"
    )
    assert found.node in ("", "OddBackward")
    if not found.node:
        assert "not known" in found.text or "one of" in found.text


def test_an_error_that_the_program_catches_is_none() -> None:
    cell = "try:\n    Odd.apply(w).sum().backward()\nexcept KeyError:\n    pass"
    (found,) = findings_of(ODD, cell)
    assert found.severity == "info" and "The program has caught it." in found.text


def test_a_call_that_was_refused_at_once_is_reported() -> None:
    cell = "w = torch.ones(2, requires_grad=True)\nw.sum().backward(torch.ones((), dtype=torch.complex64))"
    (found,) = findings_of(cell)
    assert found.severity == "error" and "before any node ran" in found.text and found.failed_at.line == 2


def test_an_interrupt_is_no_error_of_the_call() -> None:
    cell = (
        "def stop(g):\n    raise SystemExit(3)\n"
        "y = (torch.ones(2, requires_grad=True) * 2)\ny.register_hook(stop)\n"
        "try:\n    y.sum().backward()\nexcept SystemExit:\n    pass"
    )
    assert not findings_of(cell)
