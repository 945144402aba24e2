"""Checkpointed functions that read a variable of the loop around them: ``checkpoint(lambda h: layer(h), x)``.

A checkpoint runs its function again in backward. The loop is over then, and a Python function reads its variables when
it runs: each of them computes with the last ones.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.kept_by_functions import with_defaults
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["find"]

_REENTRANT = "CheckpointFunctionBackward"


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each such function, if a backward ran behind its loop."""
    reentrant = any(call.graph is not None and _REENTRANT in call.graph.names for call in record.calls)
    for run in Cells.of(record).latest if record.calls else ():
        for call in syntax.calls_by_name(run.source).get("checkpoint", ()):
            asked = [ast.unparse(one.value) for one in call.keywords if one.arg == "use_reentrant"]
            function = _function(run, call)
            late = _late(record, run, function, call.lineno) if function is not None else []
            if function is not None and late and (asked != ["True"] or reentrant):
                yield _of(run, function, late)


def _of(run: CellRun, function: ast.Lambda | ast.FunctionDef, late: list[str]) -> Finding:
    place = place_of(run, function.lineno)
    shown = short(ast.unparse(function)) if isinstance(function, ast.Lambda) else f"`{function.name}`"
    variables, one = names(tuple(late)), len(late) == 1
    return Finding(
        "silent",
        "warning",
        f"The checkpoint runs {shown} ({where(place)}) again in backward. The loop is over then: {variables} "
        f"{'has its value' if one else 'have their values'} of the last pass. So every pass is computed again with "
        f"{'that' if one else 'these'}, and gradients go to what the last pass used.",
        f"What is checkpointed is computed again with the last {variables}.",
        tensor=late[0],
        made_at=place,
        cause=place,
        names=tuple(late),
        fixes=(_fix(run, function, late),),
    )


def _fix(run: CellRun, function: ast.Lambda | ast.FunctionDef, late: list[str]) -> Fix:
    shown = ", ".join(f"{name}={name}" for name in late)
    edits = with_defaults(run.cell, run.source, function, {name: name for name in late})
    spot = at(place_of(run, function.lineno))
    return Fix("bind_now", f"Give the function the values of now as defaults: `{shown}`.", False, spot, edits=edits)


def _function(run: CellRun, call: ast.Call) -> ast.Lambda | ast.FunctionDef | None:
    """The function that a call is given, if it is made in the loop around the call."""
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Lambda) or not isinstance(given, ast.Name):
        return given if isinstance(given, ast.Lambda) else None
    loops = syntax.loops_around(run.source, call.lineno)
    body = [node for one in loops[-1:] for node in ast.walk(one)]
    made = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == given.id]
    return made[0] if len(made) == 1 else None


def _late(record: Record, run: CellRun, function: ast.Lambda | ast.FunctionDef, line: int) -> list[str]:
    """The variables that each pass of the loop binds anew, and the function reads; none where a pass ran backward."""
    inside = syntax.function_at(run.source, line)
    first = inside[1].lineno if inside is not None and inside[1] is not function else 0
    loops = [one for one in syntax.loops_around(run.source, line) if one.lineno > first]
    if not loops or _ran_backward(record, run, loops[-1]):
        return []
    bound = _varying(loops[-1])
    arguments = function.args
    own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [node for one in body for node in ast.walk(one) if isinstance(node, ast.Name)]
    own |= {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    return sorted({node.id for node in nodes if isinstance(node.ctx, ast.Load)} & bound - own)


def _ran_backward(record: Record, run: CellRun, loop: ast.For | ast.While) -> bool:
    """Whether a call was made in a loop, or in what it called: then the variables were those of that pass."""
    lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    places = (place for call in record.calls for place in (call.place, *call.place.stack))
    return any(spot[0] == run.cell and spot[1] in lines for place in places if (spot := at(place)) is not None)


def _varying(loop: ast.For | ast.While) -> set[str]:
    """The variables that may have another value in each pass of a loop: its own, and what is computed from these."""
    found = syntax.names_in(loop.target) if isinstance(loop, ast.For) else set()
    given = [(set(syntax.targets(one)), syntax.names_in(syntax.given(one))) for one in syntax.own_statements(loop.body)]
    for _ in given:
        for targets, read in given:
            found |= targets if read & (found | targets) else set()
    return {name for name in found if name.isidentifier()}
