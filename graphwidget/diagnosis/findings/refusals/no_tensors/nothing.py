"""A loss that is None: a function returned nothing, or what was to be set never was."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.refusals.no_tensors.asked import Asked
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix

__all__ = ["found"]

_CHANGES = ("append", "extend", "insert", "update", "sort", "reverse", "add")  # of Python's containers, and return None


def found(one: Asked) -> Finding:
    """Where the None comes from, as far as the text shows it."""
    made = one.made
    function = one.function(made.given) if made is not None else None
    if function is not None:
        told = _of_function(one, *function)
        if told is not None:
            return told
    why = f"{made.told} gave it its value." if made is not None else ""
    called = made.given.func if made is not None and isinstance(made.given, ast.Call) else None
    if made is not None and isinstance(called, ast.Attribute) and called.attr in _CHANGES:
        why = f"{made.told} changes a container in place, and returns None."
    advice = f"See that `{one.name}` is set before this line runs."
    if one.name.endswith(".loss"):
        advice = (
            f"See that the model was given what it computes a loss from, its labels: without them `{one.name}` is None."
        )
    return one.failure.finding(
        f"`{one.name}` is None, and no tensor.",
        f"{one.line} asks `{one.name}` for `{one.attribute}`, and only a tensor has one. {why}".strip(),
        Fix("mend_the_code", advice, False, at(made.place if made is not None else one.failure.place)),
        tensor=one.name,
        cause=made.place if made is not None else None,
    )


def _of_function(one: Asked, run: CellRun, function: ast.FunctionDef) -> Finding | None:
    """A function of the user's own that returns no value, or not on each way through it."""
    returns = [s for s in syntax.own_statements(function.body) if isinstance(s, ast.Return)]
    with_values = [s for s in returns if s.value is not None and ast.unparse(s.value) != "None"]
    empty = [s for s in returns if s not in with_values]
    last = function.body[-1]
    ends = not isinstance(last, ast.Return | ast.Raise)
    if not ends and not empty:
        return None
    line = empty[0] if empty else last
    place = place_of(run, line.lineno)
    some = " on this way through it" if with_values else ""
    name = _computed(one, function)
    edits: text_edit.Edits = ()
    if name and ends and not returns:
        edits = text_edit.insert_after(run.cell, run.source, last, [f"return {name}"])
    advice = (
        f"Return it: `return {name}`, at the end of `{function.name}`." if name else f"Let `{function.name}` return it."
    )
    return one.failure.finding(
        f"`{function.name}` returns None{some}, and `{one.name}` is what it returns.",
        f"`{function.name}` ends with {short(place.source)} ({where(place)}){' without a value' * bool(empty)}, so it "
        f"returns None{some}. {one.line} asks that for `{one.attribute}`, and only a tensor has one.",
        Fix("mend_the_code", advice, False, at(place), edits=edits),
        tensor=one.name,
        cause=place,
    )


def _computed(one: Asked, function: ast.FunctionDef) -> str:
    """The variable that a function surely means to return: of the caller's name, or the only loss; empty: unknown."""
    given = [t for s in syntax.own_statements(function.body) for t in syntax.targets(s) if t.isidentifier()]
    if one.name in given:
        return one.name
    losses = dict.fromkeys(name for name in given if "loss" in name.lower())
    return next(iter(losses)) if len(losses) == 1 else ""
