"""Arguments that are tensors in some calls and may be numbers in others."""

import ast

import pytest

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.number_arguments import detached_where_tensor

METER = "class Meter:\n    def add(self, v, n=1):\n        self.total += v * n\n"
ASKED = "(v.detach() if hasattr(v, 'detach') else v)"


@pytest.mark.parametrize(
    ("calls", "asked"),
    [
        ("m.add(loss)", []),
        ("m.add(loss)\nm.add(acc.item())", [ASKED]),
        ("acc = float(right)\nm.add(acc)\nm.add(loss, len(x))", [ASKED]),
        ("m.add(2.0)", []),  # it has always been a number
        ("for k, v in stats.items():\n    m[k].add(v, 8)", [ASKED]),
        ("out = {'loss': loss, 'acc': acc.item()}\nm.add(out['loss'])\nm.add(out['acc'])", [ASKED]),
        ("def log(v):\n    m.add(v)\nlog(loss)\nlog(0.5)", [ASKED]),
        ("def log(m, v):\n    m.add(v)\nlog(m, loss)", []),
        ("m.add(v=loss)\nm.add(v=hits / len(x))\nhits = int(h)", [ASKED]),
    ],
)
def test_an_argument_that_may_be_a_number_is_asked_first(calls: str, asked: list[str]) -> None:
    added = syntax.statements_at(METER, 3)[-1]
    assert isinstance(added, ast.AugAssign)
    assert [*detached_where_tensor([METER, calls], METER, added.value).values()] == asked


def test_a_variable_of_no_function_is_no_argument() -> None:
    (statement,) = syntax.statements_at("total += loss", 1)
    assert not detached_where_tensor(["total += loss"], "total += loss", statement.value)  # type: ignore[attr-defined]
