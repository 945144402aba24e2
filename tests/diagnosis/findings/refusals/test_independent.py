"""What the strict mode of `torch.autograd.functional` refuses: the line of the function that leaves the graph."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

START = "from functools import partial\nfrom torch.autograd.functional import hessian, jacobian, vjp\ns, u = torch.ones(2), torch.ones(1)"
STEP = "def step(s, u):\n    a = s[0].sin() * u[0]\n    return torch.tensor([a, s[1]])"
HELPER = "class Model:\n    def __init__(self, f, s):\n        self.A = jacobian(f, (s, u), strict=True)"


@pytest.mark.parametrize(
    "call",
    [
        "jacobian(step, (s, u), strict=True)",
        "vjp(step, (s, u), torch.ones(2), strict=True)",
        "jacobian(lambda s: step(s, u), s, strict=True)",
        "jacobian(partial(step, u=u), s, strict=True)",
        "step(s, u)\nModel(step, s)",
    ],
)
def test_the_line_of_the_function_that_leaves_the_graph(call: str) -> None:
    (found,) = findings_of(START, STEP, HELPER, call)
    assert found.made_at is not None and (found.made_at.cell, found.made_at.line) == (2, 3)
    (fix,) = found.fixes
    fixed = text_edit.apply(STEP, fix.edits)
    assert "torch.stack([a, s[1]])" in fixed and not findings_of(START, fixed, HELPER, call)


def test_a_method_of_an_attribute_is_followed() -> None:
    car = "class Car:\n    def step(self, s):\n        return s.detach() * 2"
    ekf = "class Ekf:\n    def __init__(self):\n        self.car = Car()\n    def predict(self, s):\n        return jacobian(self.car.step, s, strict=True)"
    (found,) = findings_of(START, car, ekf, "Ekf().predict(s)")
    assert "`step`" in found.headline and (found.made_at.cell, found.made_at.line) == (2, 3)


def test_a_cut_of_another_input_is_not_blamed() -> None:
    function = "def f(s, u):\n    return s ** 2 * s.detach() + 0 * (u > 0)"
    (found,) = findings_of(START, function, "jacobian(f, (s, u), strict=True)")
    assert "its input `u`" in found.headline and not any(fix.edits for fix in found.fixes)


def test_what_never_reads_an_input_is_right_as_it_is() -> None:
    (found,) = findings_of(START, "def f(s, u):\n    return s ** 2", "jacobian(f, (s, u), strict=True)")
    assert "does not depend on an input" in found.headline and "graph" not in found.headline


def test_a_linear_function_has_no_second_derivative() -> None:
    (found,) = findings_of(START, "def f(s):\n    return 3 * s.sum()", "hessian(f, s, strict=True)")
    assert "linear" in found.text and not any(fix.edits for fix in found.fixes)
