"""Errors of calls that nothing explains: where each came from, and the whole message."""

from told import findings_of

from graphwidget.render.report import finding_lines, note

ODD = (
    "class Odd(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
    "    @staticmethod\n    def backward(ctx, g):\n        raise KeyError('lost')\n"
    "w = torch.ones(3, requires_grad=True)"
)


def test_an_error_of_the_engine_has_the_node_and_the_whole_message() -> None:
    cell = (  # the index is changed where PyTorch cannot see it
        "import numpy as np\nx = torch.ones(3, requires_grad=True)\nat = np.array([0])\n"
        "y = x.gather(0, torch.from_numpy(at))\nat[0] = 9\ny.sum().backward()"
    )
    (found,) = findings_of(cell)
    assert "PyTorch's own" in found.text and "`GatherBackward0`" in found.text
    assert "index 9 is out of bounds" in found.unexplained
    whole = "\n".join(finding_lines(found))
    assert "not explained yet" in whole and "index 9 is out of bounds" in " ".join(whole.split())
    assert "bounds" not in note(found)  # it stands under the traceback, which has the message


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


def test_a_line_whose_error_speaks_of_gradients_is_reported_with_what_it_was_given() -> None:
    (found,) = findings_of("w = torch.ones(2, requires_grad=True)", "torch.autograd.forward_ad.make_dual(w, w)")
    assert found.failed_at is not None and (found.failed_at.cell, found.failed_at.line) == (2, 1)
    assert "There `w` is [2]." in found.text and "no level exists" in found.unexplained


def test_an_error_that_the_program_says_itself_is_its_own_business() -> None:
    check = "def check(x):\n    raise RuntimeError(f'this tensor does not require gradients: {x}')\n"
    assert not findings_of(check + "check(torch.ones(2))")


def test_a_call_that_was_refused_at_once_is_reported() -> None:
    again = "torch.autograd.backward(w.sum(), torch.ones(()), grad_variables=torch.ones(()))"
    cell = f"w = torch.ones(2, requires_grad=True)\n{again}"
    (found,) = findings_of(cell)
    assert found.severity == "error" and "before any node ran" in found.text and found.failed_at.line == 2


def test_an_interrupt_is_no_error_of_the_call() -> None:
    cell = (
        "def stop(g):\n    raise SystemExit(3)\n"
        "y = (torch.ones(2, requires_grad=True) * 2)\ny.register_hook(stop)\n"
        "try:\n    y.sum().backward()\nexcept SystemExit:\n    pass"
    )
    assert not findings_of(cell)
