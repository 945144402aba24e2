"""A class without a method that PyTorch calls, though its text has one: indented into another, or misspelt."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.pytorch.custom_functions import functions
from graphwidget.diagnosis.source.pytorch.misplaced import Misplaced, classes, misplaced
from graphwidget.diagnosis.wording import at, place_of, where
from graphwidget.model import Finding, Fix, Place, Record, torch_messages

__all__ = ["fix_of", "in_class", "of_cell", "place_in", "told"]

# The methods that a message asks for, and the fix in words.
_ASKED: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (torch_messages.NO_MODULE_FORWARD, ("forward",), "static_methods"),
    (torch_messages.NO_FORWARD, ("forward",), "static_methods"),
    (torch_messages.NO_SETUP, ("setup_context",), "rule_of_the_function"),
    (torch_messages.NO_JVP, ("jvp",), "rule_of_the_function"),
)


def of_cell(failure: Failure) -> Finding | None:
    """The error of a line for a method that its class has not, and that the text of the class has."""
    message = failure.run.error or ""
    methods, fix = next(((m, id) for words, m, id in _ASKED if torch_messages.says(message, words)), ((), ""))
    taking = re.match(r"(?:\w+\.)*(\w+)\.forward\(\) takes", message)
    if taking is not None and taking[1] in {one.name for one in functions(failure.record)}:
        methods, fix = ("setup_context",), "static_methods"
    named = re.search(r"Module \[(\w+)\]", message) or taking
    names = [named[1]] if named is not None else _applied(failure)
    for name in names if methods else ():
        found = in_class(failure.record, name, *methods)
        if found is not None:
            return failure.finding(
                f"`{name}` has no `{found.wanted}`.",
                f"PyTorch looks for the method `{found.wanted}` of `{name}`. {told(found)}",
                fix_of(found, fix),
                tensor=None,
                cause=place_in(found),
            )
    return None


def _applied(failure: Failure) -> list[str]:
    """The class that was being applied; where that was not seen, those that the line applies by their names."""
    seen = failure.run.scene.applied
    if seen is not None:
        return [seen.name]
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    applied = (node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "apply")
    return [syntax.last_name(ast.unparse(one)) for one in applied]


def in_class(record: Record, name: str, *methods: str) -> Misplaced | None:
    """What was to be one of some methods of a class, or of one that it is derived from."""
    found = (misplaced(record, run, owner, *methods) for run, owner in classes(record, name))
    return next((one for one in found if one is not None), None)


def place_in(found: Misplaced) -> Place:
    """The line of what was to be the method."""
    return replace(place_of(found.run, found.method.lineno), function=None)


def told(found: Misplaced) -> str:
    """Where the method is instead, as a sentence."""
    spot = where(place_in(found))
    if found.inside is None:
        return f"It has a `{found.method.name}` ({spot}), which nothing calls."
    how = "behind its `return`, where it is never reached" if found.behind_return else "as a function of its own"
    return f"The one at {spot} is indented too far: it stands inside `{found.inside.name}`, {how}."


def fix_of(found: Misplaced, id: str) -> Fix:
    """The method is taken out of the other, or gets the name."""
    if found.inside is None:
        text = f"Call it `{found.wanted}`."
    else:
        text = f"Indent `{found.wanted}` like `{found.inside.name}`: then it is a method of the class."
    return Fix(id, text, False, at(place_in(found)), edits=found.edits)
