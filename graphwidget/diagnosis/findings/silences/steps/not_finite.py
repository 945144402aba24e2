"""Parameters that become nan or infinite by a step of their optimizer, and what made the first such value.

Nothing is said where the text tests for such values and then leaves: it knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.gradients.not_a_number import POLES
from graphwidget.diagnosis.no_graph.measured import place_at
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, root_name, short, spoken, where
from graphwidget.model import Finding, Fix, MeasuredNonFinite, NonFiniteParameters, Place, Record

__all__ = ["find"]

MOST_NAMED = 3
SMALL = "1e-12"
_TESTS = ("isnan", "isfinite", "isinf")
_OPERATORS = {"truediv": "Div", "rtruediv": "Div", "true_divide": "Div", "pow": "Pow", "rpow": "Pow"}
_POSITIVE = ("Sqrt", "Rsqrt", "Log", "Log2", "Log10")  # functions of positive numbers


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for the first step that did so."""
    if not record.nonfinite or any(_tests_and_leaves(run.source) for run in record.runs.values()):
        return
    measured = record.lineage.nonfinite if record.lineage is not None else None
    nan = [one for one in record.nonfinite if one.value == "nan"]
    if measured is not None:
        yield _of(record, measured)
    elif nan:  # infinite values may be meant
        yield _of_now(record, nan[0])


def _tests_and_leaves(text: str) -> bool:
    """Whether an `if` asks whether something is finite, and leaves a loop or a function."""
    for one in syntax.nodes_of(text):
        if isinstance(one, ast.If) and any(name.rsplit(".", 1)[-1] in _TESTS for name in syntax.calls_in(one.test)):
            inside = (n for each in (*one.body, *one.orelse) for n in ast.walk(each))
            if any(isinstance(n, (ast.Break, ast.Raise, ast.Return)) for n in inside):
                return True
    return False


# ------------------------------------------------------------------ what is there now


def _of_now(record: Record, found: NonFiniteParameters) -> Finding:
    shown = names(tuple(map(spoken, found.paths)), MOST_NAMED) or "Parameters"
    calls = [call for call in record.calls if call.api == "backward"]
    loss = root_name(calls[-1]) if calls else "loss"
    place = found.place or (calls[-1].place if calls else None)
    after = found.place
    seen = f" It was there after {short(after.source)} ({where(after)})." if after is not None and where(after) else ""
    return Finding(
        "silent",
        "warning",
        f"{shown} {'holds' if len(found.paths) == 1 else 'hold'} nan after {found.steps} steps of the optimizer.{seen} "
        "What is computed from them is nan, too, and no further step changes that.",
        "Parameters hold nan.",
        tensor=spoken(found.paths[0]) if found.paths else None,
        made_at=place,
        names=(*map(spoken, found.paths[:MOST_NAMED]), "nan"),
        fixes=(
            Fix(
                "finite_gradient",
                f"Run it anew, and ask `graphwidget.find_nan({loss})` before each backward: it names the first value "
                "or gradient that is not finite.",
                False,
                at(place),
            ),
        ),
    )


# ------------------------------------------------------------------ what was measured


class _Origin(NamedTuple):
    """What made the first value: a sentence, the line, and the operation as torch's nodes call it."""

    text: str
    place: Place | None
    operation: str = ""


def _of(record: Record, found: MeasuredNonFinite) -> Finding:
    paths = tuple(dict.fromkeys(map(spoken, found.paths)))
    shown = names(paths, MOST_NAMED) or "parameters"
    step, origin = place_at(record, found.stepped), _origin(record, found)
    line = f"{short(step.source)} ({where(step)})" if step is not None and where(step) else "A step"
    place = origin.place or step
    begins = f": that begins at `{origin.operation.lower()}`" if origin.operation else ""
    return Finding(
        "silent",
        "warning",
        f"{line} wrote {found.value} into {shown}: it was step {found.step} of its optimizer, and before it they were "
        f"finite. {origin.text} Measured while the program ran once more.",
        f"Parameters become {found.value}{begins}.",
        found.call,
        tensor=paths[0] if paths else None,
        made_at=place,
        cause=place,
        names=(*paths[:MOST_NAMED], *filter(None, (origin.operation.lower(), found.value))),
        fixes=(_fix(record, found, origin),),
    )


def _origin(record: Record, found: MeasuredNonFinite) -> _Origin:
    call = call_at(record.calls, found.call)
    root = f"`{root_name(call)}`" if call is not None else "its root"
    asked = f"{short(call.place.source)} ({where(call.place)})" if call is not None and where(call.place) else "A call"
    was = "nan" if found.what == "nan" else "infinite"
    made, behind = place_at(record, found.made), place_at(record, found.behind_made)
    if found.stage == "step":
        return _Origin("All gradients that it went by were finite, so the step itself made it.", None)
    if found.stage == "backward":
        operation = _operation(found.by)
        saved = f", where it had saved {found.held}" if found.held else ""
        return _Origin(
            f"{asked} ran on {root}, which was finite. So was what arrived at `{found.by}`, {_line(made)}, and it "
            f"passed {found.what} on{saved}{_pole(operation)}.",
            made,
            operation,
        )
    if found.stage == "forward":
        operation, source = _operation(found.by), _operation(found.behind)
        of = "finite values"
        if found.behind:
            line = _line(behind) if found.behind_made != found.made else "of the same line"
            of = f"what `{found.behind}`, {line}, had made infinite{_pole(source)}"
        text = (
            f"{asked} ran on {root}, which was {was} already. `{found.by}`, {_line(made)}, made the first such "
            f"value, of {of}{_pole(operation) if not found.behind else ''}."
        )
        return _Origin(text, behind, source) if source in POLES else _Origin(text, made, operation)
    if found.stage == "written":
        text = f"{asked} ran on {root}, which was {was} already. `{found.by}`, {_line(made)}, brought it in."
        return _Origin(text, made)
    if found.stage == "given":
        used = f" It came in at {short(made.source)} ({where(made)})." if made is not None and where(made) else ""
        return _Origin(f"{asked} ran on {root}, which was {was} already, and no operation made that.{used}", made)
    return _Origin("Its gradients were not finite, and which operation made them so is not known.", None)


def _line(place: Place | None) -> str:
    return (
        f"made by {short(place.source)} ({where(place)})" if place is not None and where(place) else "of no known line"
    )


def _operation(by: str) -> str:
    """``Sqrt`` of ``SqrtBackward0``, and of ``sqrt``."""
    if "Backward" in by:
        return by.split("Backward", 1)[0]
    plain = by.strip("_")
    return _OPERATORS.get(plain, "".join(map(str.capitalize, plain.split("_"))))


def _pole(operation: str) -> str:
    return f" ({POLES[operation]})" if operation in POLES else ""


def _fix(record: Record, found: MeasuredNonFinite, origin: _Origin) -> Fix:
    spot = at(origin.place or place_at(record, found.stepped))
    if found.stage == "step":
        text = "Look at the learning rate, at what the step divides by, and at the largest number of the dtype."
        return Fix("finite_gradient", text, False, spot)
    if origin.place is None:
        call = call_at(record.calls, found.call)
        text = f"Ask `graphwidget.find_nan({root_name(call) if call is not None else 'loss'})` before the backward of "
        return Fix("finite_gradient", f"{text}that pass: it names the first value that is not finite.", False, spot)
    edits, new = _kept_away(record, origin)
    text = "Keep the argument away from there: add a small number inside, or clamp it before"
    if not edits:
        where_it_is = f" ({where(origin.place)})"
        advice = text if origin.operation in POLES else _other_advice(found)
        return Fix("finite_gradient", f"{advice}{where_it_is}.", False, spot)
    return Fix(
        "finite_gradient",
        f"{text}: {short(new)}.",
        False,
        spot,
        f"Where the argument is below {SMALL}, the gradient is zero.",
        edits=edits,
    )


def _other_advice(found: MeasuredNonFinite) -> str:
    if found.behind:
        return f"Look at what `{found.behind}` makes infinite: where nothing else is left, the result is nan"
    if found.stage == "forward" and found.what != "nan":
        return "The result is too large for its dtype: try a smaller learning rate, or clip the gradients"
    return "Look at the values that this line was given"


def _kept_away(record: Record, origin: _Origin) -> tuple[Edits, str]:
    """The edit that clamps the argument of the one such call in the line, and the new call; none: it is not plain."""
    spot, cells = at(origin.place), Cells.of(record)
    statement = cells.statement(spot) if spot is not None else None
    if spot is None or statement is None or origin.operation not in _POSITIVE or hasattr(statement, "body"):
        return (), ""
    name = origin.operation.lower()
    called = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
    ]
    if len(called) != 1 or len(called[0].args) > 1 or called[0].keywords:
        return (), ""
    call = called[0]
    argument = call.args[0] if call.args else call.func.value  # type: ignore[attr-defined]
    new = f"{syntax.in_brackets(argument)}.clamp(min={SMALL})"
    edits = text_edit.replace_node(spot[0], cells.text(spot[0]), argument, new)
    return edits, f"{ast.unparse(call.func)}({new})" if call.args else f"{new}.{name}()"
