"""Containers that a line stores as a whole: the form in which their tensors are detached."""

import pytest

from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source.edits import text_edit

DICT = {f"[{at}]['{key}']": (("dict", 2), ("list", 3)) for at in range(3) for key in "ab"}
LARGER = {f"[{at}]['a']": (("dict", 2), ("list", 3)) for at in range(3)}
LIST = {f"[{at}][{n}]": (("list", 2), ("list", 3)) for at in range(3) for n in range(2)}
TUPLE = {f"[{at}][{n}]": (("tuple", 2), ("list", 3)) for at in range(3) for n in range(2)}
OTHERS = {f"[{at}][0]": (("tuple", 2), ("list", 3)) for at in range(3)}
FIELDS = {f"[{at}].loss": (("Out", 2), ("list", 3)) for at in range(3)}
NESTED = {f"[0]['{a}']['{b}']": (("dict", 2), ("dict", 2), ("list", 1)) for a in "pq" for b in "xy"}
UNEVEN = {
    "[0]['a']": (("dict", 3), ("list", 1)),
    "[0]['more']['b']": (("dict", 1), ("dict", 3), ("list", 1)),
}
EACH = "{k: v.detach() for k, v in out.items()}"
ASKED = "{k: v.detach() if hasattr(v, 'detach') else v for k, v in out.items()}"


@pytest.mark.parametrize(
    ("value", "inside", "new"),
    [
        ("out", DICT, EACH),
        ("dict(out)", DICT, EACH),
        ("{**out}", DICT, EACH),
        ("out.copy()", DICT, EACH),
        ("copy.copy(out)", DICT, EACH),
        ("dict(out)", LARGER, ASKED),
        ("OrderedDict(out)", DICT, f"OrderedDict({EACH})"),
        ("dict(out, step=i)", LARGER, f"dict({ASKED}, step=i)"),
        ("{**out, 'step': i}", LARGER, f"{{**{ASKED}, 'step': i}}"),
        ("dict(zip(names, out))", DICT, "{k: v.detach() for k, v in dict(zip(names, out)).items()}"),
        ("summary(out)", DICT, "{k: v.detach() for k, v in summary(out).items()}"),
        ("{k: v for k, v in out.items()}", DICT, EACH),
        ("{k: v for k, v in out.items()}", LARGER, ASKED),
        ("out", LIST, "[v.detach() for v in out]"),
        ("list(out)", LIST, "[v.detach() for v in out]"),
        ("out[:]", LIST, "[v.detach() for v in out]"),
        ("[*out]", LIST, "[v.detach() for v in out]"),
        ("out", TUPLE, "tuple(v.detach() for v in out)"),
        ("tuple(v for v in out)", TUPLE, "tuple(v.detach() for v in out)"),
        ("out", OTHERS, "tuple(v.detach() if hasattr(v, 'detach') else v for v in out)"),
        ("(a, b)", TUPLE, "(a.detach(), b.detach())"),
        ("out", FIELDS, "out._replace(loss=out.loss.detach())"),
        ("out", NESTED, "{k: {key: one.detach() for key, one in v.items()} for k, v in out.items()}"),
        (
            "out",
            UNEVEN,
            "{**out, 'a': out['a'].detach(), 'more': {key: one.detach() for key, one in out['more'].items()}}",
        ),
    ],
)
def test_each_tensor_in_it_is_detached(value, inside, new):
    cell = f"Out = namedtuple('Out', 'loss step')\nlog.append({value})"
    ((_, edits),) = containers.detached_in(1, cell, "log", inside, (), inside)
    assert text_edit.apply(cell, edits).splitlines()[1] == f"log.append({new})"


def test_a_dataclass_is_replaced_where_the_text_can_do_that():
    inside = {f"[{at}].loss": (("Res", -1), ("list", 3)) for at in range(3)}
    defined = "@dataclass\nclass Res:\n    loss: Tensor\n    step: int\nlog.append(out)"
    assert containers.detached_in(1, defined, "log", inside, (), inside) == []
    cell = f"import dataclasses\n{defined}"
    ((_, edits),) = containers.detached_in(1, cell, "log", inside, (), inside)
    assert text_edit.apply(cell, edits).endswith("log.append(dataclasses.replace(out, loss=out.loss.detach()))")


def test_elements_of_several_kinds_are_left_alone():
    inside = {"[0][0]": (("list", 2), ("list", 1)), "[0][1][0]": (("list", 1), ("list", 2), ("list", 1))}
    assert containers.detached_in(1, "log.append(out)", "log", inside, (), inside) == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("kept.update({name: y})", "kept.update({name: y.detach()})"),
        ("kept.setdefault(name, y)", "kept.setdefault(name, y.detach())"),
    ],
)
def test_a_dict_is_given_a_value_by_its_methods(line, new):
    ((_, edits),) = containers.detached_in(1, line, "kept", ["['a']"])
    assert text_edit.apply(line, edits) == new
