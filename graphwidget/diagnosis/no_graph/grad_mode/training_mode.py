"""Lines that take a model out of training mode, and where it is put back: behind them, or where a loop trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Fix

__all__ = ["Switch", "back_in_training", "put_back", "switched_off"]

_HARMLESS = frozenset(("float", "int", "len", "max", "min", "round", "sum", "tuple", "list", "dict"))
_KEPT = "was_training"


class Switch(NamedTuple):
    """A call such as ``self.model.eval()``, in a run, of which `at` is the index."""

    at: int
    run: CellRun
    call: ast.Call
    holder: str


def switched_off(values: Values) -> list[Switch]:
    """The calls that take a module out of training mode."""
    last = {run.cell: index for index, run in enumerate(values.runs)}  # of a cell that ran twice
    return [one for index in last.values() for one in _of(values, index)]


def _of(values: Values, index: int) -> Iterator[Switch]:
    run = values.runs[index]
    named = syntax.calls_by_name(run.source)
    off = [one for one in named.get("eval", ()) if not one.args and not one.keywords]
    for one in named.get("train", ()):
        given = [*one.args, *(keyword.value for keyword in one.keywords)]
        off += [one] if len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False else []
    for one in off:
        if isinstance(one.func, ast.Attribute):
            yield Switch(index, run, one, ast.unparse(one.func.value))


def back_in_training(values: Values, off: Sequence[Switch], call: BackwardCall) -> Fix | None:
    """Put the model back into training mode, each time that the loop of a backward begins; None: it is not known which.

    It is written where the loop begins, or in it where the loop itself leads to the evaluation.
    """
    spot = at(call.place)
    index = max((i for i, run in enumerate(values.runs) if spot is not None and run.cell == spot[0]), default=-1)
    if spot is None or index < 0 or len({one.holder for one in off}) != 1:
        return None
    run, line, switch = values.runs[index], spot[1], off[0]
    holder = _name_there(values, switch, Spot(index, line))
    inside = syntax.function_at(run.source, line)
    loops = [one for one in syntax.loops_around(run.source, line) if inside is None or one.lineno > inside[1].lineno]
    if holder is None or not (loops or inside is not None):
        return None
    within = syntax.function_at(switch.run.source, switch.call.lineno)
    evaluates = within[1].name if within is not None else None
    if loops:
        inner = min(loops, key=lambda one: one.end_lineno - one.lineno if one.end_lineno else 0)
        called = {syntax.last_name(ast.unparse(one.func)) for one in ast.walk(inner) if isinstance(one, ast.Call)}
        leads = evaluates in called or any(one is switch.call for one in ast.walk(inner))
        before = inner.body[0] if leads else inner
    else:
        body = inside[1].body if inside is not None else []
        before = body[1] if len(body) > 1 and ast.get_docstring(inside[1]) is not None else body[0]  # type: ignore[index]
    off_at = place_of(switch.run, switch.call.lineno)
    return Fix(
        "training_mode",
        f"Put the model back into training mode before it trains, by `{holder}.train()`: what {short(off_at.source)} "
        f"({where(off_at)}) does lasts until then.",
        False,
        (spot[0], before.lineno),
        edits=text_edit.insert_before(run.cell, run.source, before, [f"{holder}.train()"]),
    )


def put_back(values: Values, off: Sequence[Switch]) -> Fix | None:
    """Put the model back into training mode where the function ends that took it out; None: no one function does so."""
    if len(off) != 1:
        return None
    switch, run = off[0], off[0].run
    inside = syntax.function_at(run.source, switch.call.lineno)
    if inside is None or any(ast.unparse(one).startswith(f"{switch.holder}.train(") for one in ast.walk(inside[1])):
        return None
    # What is evaluated has to stand between the switch and what undoes it: at the top level of the function.
    body = inside[1].body
    at_top = next((one for one in body if isinstance(one, ast.Expr) and one.value is switch.call), None)
    leaves = [one for one in syntax.own_statements(body) if isinstance(one, ast.Return)]
    last, back = body[-1], [f"{switch.holder}.train({_KEPT})"]
    if at_top is None or any(one is not last and one.lineno > at_top.lineno for one in leaves):
        return None
    if not isinstance(last, ast.Return):
        write = text_edit.insert_behind_block if hasattr(last, "body") else text_edit.insert_after
        undone = write(run.cell, run.source, last, back)
    elif last.value is None or _evaluates_nothing(last.value, switch.holder):
        undone = text_edit.insert_before(run.cell, run.source, last, back)
    else:
        undone = ()
    if not undone:
        return None
    keeps = [f"{_KEPT} = {switch.holder}.training"]
    off_at = place_of(run, switch.call.lineno)
    return Fix(
        "training_mode",
        f"Put `{switch.holder}` back into its mode where `{inside[1].name}` ends: nothing undoes what "
        f"{short(off_at.source)} ({where(off_at)}) does.",
        False,
        at(off_at),
        edits=(*text_edit.insert_before(run.cell, run.source, at_top, keeps), *undone),
    )


def _evaluates_nothing(value: ast.expr, holder: str) -> bool:
    """Whether an expression is computed of numbers alone, as ``sum(errors) / len(errors)`` is."""
    called = {ast.unparse(one.func) for one in ast.walk(value) if isinstance(one, ast.Call)}
    return called <= _HARMLESS and holder.partition(".")[0] not in syntax.names_in(value)


def _name_there(values: Values, switch: Switch, spot: Spot) -> str | None:
    """What is called there what a switch has switched; None: nothing that is known."""
    own = _made(values, switch.holder, Spot(switch.at, switch.call.lineno))
    inside = syntax.function_at(values.runs[spot.at].source, spot.line)
    given = [one.arg for one in inside[1].args.args] if inside is not None else []
    # Calls of other functions of that name may pass something else: ``model.train(False)`` beside ``train(model)``.
    return next((name for name in (switch.holder, *given) if own and own <= _made(values, name, spot)), None)


def _made(values: Values, name: str, spot: Spot) -> set[str]:
    """What a name stands for, as the text writes it: the values that it gets, or what calls pass for it."""
    made = (syntax.given(one) if isinstance(one, ast.stmt) else one for _, one in values.made(name, spot))
    return {ast.unparse(one) for one in made}
