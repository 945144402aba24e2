"""Where to run statements again: the plan that gives the later call a graph of its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from graphwidget.diagnosis.fixes.rerun.by_position import by_position
from graphwidget.diagnosis.fixes.rerun.holders import holder
from graphwidget.diagnosis.fixes.rerun.keeping_blocks import inside_its_loop
from graphwidget.diagnosis.fixes.rerun.moving import taken_out
from graphwidget.diagnosis.fixes.rerun.own_names import with_own_names
from graphwidget.diagnosis.fixes.rerun.readers import are_read
from graphwidget.diagnosis.fixes.rerun.rerun import AT_START, Rerun, Statement, begins_on_head_line, first_step, quoted
from graphwidget.diagnosis.fixes.rerun.special_places import in_special_place
from graphwidget.diagnosis.fixes.rerun.statements import Target, statements_to_rerun
from graphwidget.diagnosis.reuse.inside_function import inside_function
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit

__all__ = ["Rerun", "rerun"]


def rerun(setting: Setting, everything: bool = False) -> Rerun | None:
    """How to build the old part again. None: each pass builds it already, or the place is unknown.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed saved tensors.
    """
    plan = _plan(setting, everything)
    inner = inside_function(setting, everything) if plan is None else None
    plan = plan if inner is None else _plan(inner, everything)
    return plan if plan is not None else inside_its_loop(setting)


def _plan(setting: Setting, everything: bool) -> Rerun | None:
    """A plan in one of the special places, or for lines of the cell that ran, not of functions that it called."""
    special = in_special_place(setting)
    if special is not None:
        return special
    target = _target(setting)
    if target is None or _makes_both_calls(setting, target):
        return None
    again = statements_to_rerun(setting, target, everything)
    sure = bool(again)
    if not again:
        found = by_position(setting, target, everything)
        again = holder(setting, target) if found is None else []
        if not again:
            return found
    target, items = _before_what_takes_it(setting, target, again)
    if not are_read(setting, again, (target.cell, target.line), items):
        return None
    if any(isinstance(one.node, ast.Expr) and (target.function or _is_from_outside(target, one)) for one in again):
        return None  # called for its effects, which each pass may undo
    new = with_own_names(again, target.loop)
    if new is None:
        return None
    renamed = new != with_own_names(again, None)
    what, away = quoted(again), taken_out(setting, target, again) if not renamed else ()
    if target.loop is not None:
        where = f"Move {what} into the loop" if away else f"Run {what} again in the loop"
        sentence = f"{where}, so that each iteration builds its own graph."
    elif target.function:
        sentence = AT_START.format(what=what, function=target.function)
    else:
        sentence = f"Run {what} again before In[{target.cell}], line {target.line}: it builds a fresh graph."
    edits = text_edit.insert_before(target.cell, target.text, target.statement, new)
    return Rerun(sentence, (target.cell, target.line), (*away, *edits) if edits else (), sure)


def _before_what_takes_it(setting: Setting, target: Target, again: Sequence[Statement]) -> tuple[Target, set[str]]:
    """The target before the loop around it that goes through what is made again, and the names that this loop assigns.

    ``for optimizer, loss in zip(optimizers, losses): loss.backward()``: made again inside, `losses` gives no new loss.
    The target as it is, where the earlier call or what is made again is in that loop.
    """
    names = set[str]().union(*(source.targets(one.node) for one in again))
    earlier = setting.reuse.earlier.place
    lines = [(setting.text_of_cell(earlier.cell), earlier.line), *((one.run.source, one.node.lineno) for one in again)]
    for loop in source.loops_around(target.text, target.line) if target.loop is None else ():
        if not isinstance(loop, ast.For) or names.isdisjoint(source.names_in(loop.iter)):
            continue
        if not any(text == target.text and loop in source.loops_around(text, line or 0) for text, line in lines):
            return replace(target, line=loop.lineno), source.names_in(loop.target)
    return target, set()


def _is_from_outside(target: Target, one: Statement) -> bool:
    """Whether the line before which a statement would stand is in a function, and the statement is not in that one."""
    around = source.function_at(target.text, target.line)
    if around is None:
        return False
    return one.run.source != target.text or source.function_at(target.text, one.node.lineno) != around


def _makes_both_calls(setting: Setting, target: Target) -> bool:
    """Whether one run of a statement makes both calls: ``[l.backward() for l in losses]``, an optimizer's closure.

    A line before that statement, or at the start of its pass, does not run between the calls.
    """
    a, b = setting.reuse.earlier.place, setting.reuse.later.place
    if target.function or (a.run, a.outer_line) != (b.run, b.outer_line):
        return False
    return target.loop is None or (target.in_cell_that_ran and not runs_between(setting, (target.cell, target.line)))


def _target(setting: Setting) -> Target | None:
    """The first line of the loop around both calls, or the line of the later call."""
    place = setting.reuse.later.place
    run = setting.run_of(place)
    if run is None or run.cell is None or place.line is None:
        return None
    outer = place.outer_line if place.outer_line is not None else place.line
    if setting.in_loop:
        found = _start_of_loop(run.cell, run.source, outer, in_cell_that_ran=True)
        called = place.cell is not None and (place.cell, place.line) != (run.cell, outer)
        if found is not None and not (called and _makes_both_calls(setting, found)):
            return found
        if found is None and source.loop_at(run.source, outer) is not None:
            return None  # its body stands on the line of its head
        text = setting.text_of_cell(place.cell)
        if place.cell is not None and called:
            inner = _start_of_loop(place.cell, text, place.line, in_cell_that_ran=False)
            return inner or _start_of_function(place.cell, text, place.line)
    return Target(run.cell, run.source, _start_of_statement(run.source, outer), in_cell_that_ran=True)


def _start_of_loop(cell: int, text: str, line: int, in_cell_that_ran: bool) -> Target | None:
    loop = source.loop_at(text, line)
    if loop is None or begins_on_head_line(loop):
        return None
    return Target(cell, text, loop.body[0].lineno, in_cell_that_ran, loop)


def _start_of_function(cell: int, text: str, line: int) -> Target | None:
    found = source.function_at(text, line)
    if found is None:
        return Target(cell, text, _start_of_statement(text, line), in_cell_that_ran=False)
    function = found[1]
    if begins_on_head_line(function):
        return None
    return Target(cell, text, first_step(function).lineno, in_cell_that_ran=False, function=function.name)


def _start_of_statement(text: str, line: int) -> int:
    found = source.statements_at(text, line)
    return found[-1].lineno if found else line
