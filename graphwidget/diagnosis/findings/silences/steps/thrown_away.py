"""Gradients that are cleared before a step has used them: ``zero_grad`` in the loop that is to add them up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.steps.clearing import where_cleared
from graphwidget.diagnosis.findings.silences.steps.kept_grads import owner_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, LostGradients, Place, Record

__all__ = ["find", "moved"]

# A text that reads a `.grad` may have used it before it was cleared. What only clears it does not.
_READS = re.compile(r"\.grad\b(?!\s*\(|\s*=\s*None|\.zero_|\.data\.zero_|\.detach_\(\)\s*$)")


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each optimizer whose steps all go by the last of several calls, and lose the others."""
    if not record.lost_grads or any(_READS.search(run.source) for run in record.runs.values()):
        return
    calls = {call.n: call for call in record.calls if call.api == "backward" and call.result == "ok"}
    for lost in record.lost_grads:
        gone, used = calls.get(lost.lost), calls.get(lost.used)
        if gone is not None and used is not None and _is_one_line(gone, used) and where(lost.place):
            if at(lost.place) not in map(at, gone.place.stack):  # a closure may be evaluated often in one step
                yield _of(record, lost, used)


def _is_one_line(gone: BackwardCall, used: BackwardCall) -> bool:
    """Whether two calls were made by the same line, called from the same lines."""
    lines = [[*map(at, (*call.place.stack, call.place))] for call in (gone, used)]
    return None not in lines[0] and lines[0] == lines[1]


def _of(record: Record, lost: LostGradients, used: BackwardCall) -> Finding:
    owner, cleared = owner_of(lost.place.source), _cleared(record, used)
    shown = f"`{spoken(lost.path)}.grad`" if lost.path else "The gradient of a parameter"
    who = f"{short(cleared.source)} ({where(cleared)})" if cleared is not None else "Something"
    line = f"{short(used.place.source)} ({where(used.place)})"
    often = "once" if lost.often == 1 else f"{lost.often} times"
    return Finding(
        "silent",
        "warning",
        f"{line} gave {shown} a new value {lost.often + 1} times before each step ({where(lost.place)}). {who} "
        f"clears it {often} before that. So each step goes by the last of these calls alone.",
        f"Of {lost.often + 1} gradients in a row, {lost.often} {'is' if lost.often == 1 else 'are'} cleared before a "
        "step uses them.",
        used.n,
        tensor=spoken(lost.path) or None,
        made_at=lost.place,
        cause=cleared or lost.place,
        names=tuple(filter(None, (f"{spoken(lost.path)}.grad" if lost.path else "", owner, "zero_grad"))),
        fixes=_fixes(record, lost, used, cleared),
    )


def _cleared(record: Record, call: BackwardCall) -> Place | None:
    """The one line that clears gradients in the innermost loop around a call, or in what that loop calls."""
    latest, found = Cells.of(record).latest, list[Place]()
    for place in reversed((*call.place.stack, call.place)):
        run = next((one for one in latest if one.cell == place.cell), None)
        if run is None or place.line is None:
            continue
        loops, inside = syntax.loops_around(run.source, place.line), syntax.function_at(run.source, place.line)
        if inside is not None:
            loops = [one for one in loops if one.lineno > inside[1].lineno]
        body = loops[-1].body if loops else inside[1].body if inside is not None else []
        found += [each for one in syntax.own_statements(body) for each in where_cleared(record, run, one)]
        if loops:
            break
    return found[0] if len(set(map(at, found))) == 1 else None


def _fixes(record: Record, lost: LostGradients, used: BackwardCall, cleared: Place | None) -> tuple[Fix, ...]:
    """Clear behind each step, so that gradients add up; and a step for each call, where it stands behind their loop."""
    step, call = (f"{short(place.source)} ({where(place)})" for place in (lost.place, used.place))
    line = f"move {short(cleared.source)} ({where(cleared)})" if cleared is not None else "clear them"
    adding = Fix(
        "zero_grad_or_step_order",
        f"To add the gradients up, {line} behind {step}.",
        False,
        at(cleared) if cleared is not None else at(lost.place),
        "Each step goes by all of these calls.",
        edits=moved(record, cleared, lost.place),
    )
    text = Cells.of(record).text(lost.place.cell)
    loops = [syntax.loops_around(text, place.line or 0) for place in (lost.place, used.place)]
    if lost.place.cell != used.place.cell or len(loops[0]) >= len(loops[1]):
        return (adding,)
    each = Fix(
        "zero_grad_or_step_order",
        f"To make a step for each call, move {step} behind {call}.",
        False,
        at(lost.place),
        "There are more steps.",
        edits=moved(record, lost.place, used.place),
    )
    return (adding, each) if _is_a_share(record, used.place) else (each, adding)


def _is_a_share(record: Record, place: Place) -> bool:
    """Whether the line of a call, or the loop around it, divides: a loss is divided to be added up."""
    text = Cells.of(record).text(place.cell)
    loops = syntax.loops_around(text, place.line or 0)
    nodes = [node for one in syntax.own_statements(loops[-1].body) for node in ast.walk(one)] if loops else []
    return any(isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div) for node in nodes)


def moved(record: Record, what: Place | None, behind: Place) -> text_edit.Edits:
    """A line of its own moved behind another one, where it means the same."""
    text = Cells.of(record).text(behind.cell)
    if what is None or what.line is None or behind.line is None or what.cell != behind.cell or behind.cell is None:
        return ()
    lines = [syntax.beginning_at(text, line) for line in (what.line, behind.line)]
    if [len(found) for found in lines] != [1, 1] or not isinstance(lines[0][0], ast.Expr):
        return ()
    moved, other = lines[0][0], lines[1][0]
    if not _means_the_same(text, moved, other):
        return ()
    return (
        *text_edit.remove(behind.cell, text, moved),
        *text_edit.insert_after(behind.cell, text, other, [ast.unparse(moved)]),
    )


def _means_the_same(text: str, moved: ast.stmt, there: ast.stmt) -> bool:
    """Whether two lines are in one function; or in two methods of a class, and the first reads nothing but `self`."""
    one, other = (syntax.function_at(text, line.lineno) for line in (moved, there))
    if one is None or other is None or one == other:
        return one == other
    same_class = one[0] is not None and one[0] is other[0]
    return same_class and syntax.names_in(moved) == {"self"} and all("self" in _arguments(f) for _, f in (one, other))


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in function.args.args]
