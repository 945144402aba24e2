"""A part of a loss that had a graph at first and lost it: ``create_graph=self.training``, and `eval()` was called.

What decides is measured: at one line the loss was put together with a graph of all its parts, and later with one that
lacks a part; and a line of ``autograd.grad`` built its graph before the former, and none before the latter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.constants.sums import sums
from graphwidget.diagnosis.no_graph.grad_mode.training_mode import Switch, back_in_training, switched_off
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, number, opening, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Snapshot

__all__ = ["find"]

_MOST = 20  # expressions that a flag is followed through
_Line = tuple[int, int]


class _Lost(NamedTuple):
    """A line that adds to the loss, the last call that had a graph of all there, and the first behind it that had not.

    `gradient` is the call of ``autograd.grad`` before the latter, at a line that built a graph before the former.
    `again`: later there was a graph of all again.
    """

    place: Place
    had: BackwardCall
    lacks: BackwardCall
    gradient: BackwardCall
    again: bool


class _Parts(NamedTuple):
    """How many sums at a line have a graph of both parts, and how many only of one: ``sum(terms)`` begins at 0."""

    place: Place
    full: int
    lacks: int


_Key = tuple[_Line, _Line]  # a line that adds, and a line that calls backward


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line of ``autograd.grad`` that builds no graph any more for what a loss adds."""
    values, told = Values([run for _, run in sorted(record.runs.items())]), set[_Line]()
    for lost in _lost(record) if any(write.optimizer for write in record.writes) else ():
        spot = at(lost.gradient.place)
        statement = Cells.of(record).statement(spot) if spot is not None else None
        if spot is None or statement is None or spot in told:
            continue
        index = max((i for i, run in enumerate(values.runs) if run.cell == spot[0]), default=-1)
        flag, meant = _flag(statement), list[ast.expr]()
        if flag is not None:
            meant = _meant(values, flag, Spot(index, statement.lineno))
        by_mode = any(isinstance(one, ast.Attribute) and one.attr == "training" for one in meant)
        # A test of numbers is a schedule, and what comes and goes is one, too: somebody wants it so.
        if flag is not None and meant and (by_mode or not (lost.again or any(map(_is_test, meant)))):
            told.add(spot)
            off = switched_off(values) if by_mode else []
            yield _of(record, lost, statement, flag, off, back_in_training(values, off, lost.lacks))


def _lost(record: Record) -> Iterator[_Lost]:
    """The lines that lost a part of the loss, where a line of ``autograd.grad`` has built its graph, and does not."""
    whole = dict[_Key, tuple[BackwardCall, _Parts]]()  # the last call that had all of it
    lacking = dict[_Key, tuple[Place, BackwardCall]]()
    again = set[_Key]()
    before = dict[int, list[BackwardCall]]()  # n of a backward -> what asked for gradients since the one before it
    window: list[BackwardCall] = []
    for call in record.calls:
        if call.api != "backward":
            window.append(call)
            continue
        before[call.n], window = window, []
        there = at(call.place)
        if call.result != "ok" or call.graph is None or there is None:
            continue
        for spot, parts in _sums_by_line(call, call.graph).items():
            key = spot, there
            known = whole[key][1] if key in whole else parts
            if parts.lacks > known.lacks and parts.full < known.full:
                lacking.setdefault(key, (parts.place, call))
            elif key in lacking:
                again.add(key)
            else:
                whole[key] = call, parts
    for key, (place, call) in lacking.items():
        had = whole[key][0]
        built = {at(one.place) for one in before[had.n] if one.result == "ok" and one.create_graph}
        kept = {at(one.place) for one in before[call.n] if one.result == "ok" and one.create_graph}
        gradient = [one for one in before[call.n] if one.result == "ok" and at(one.place) in built - kept]
        if gradient:
            yield _Lost(place, had, call, gradient[-1], key in again)


def _sums_by_line(call: BackwardCall, graph: Snapshot) -> dict[_Line, _Parts]:
    """What the lines add that put the loss of a call together."""
    found: dict[_Line, _Parts] = {}
    for one in sums(call, graph):
        place = graph.place_of(one.node)
        spot = at(place) if one.plainly else None
        if spot is not None and place is not None:
            before = found.get(spot, _Parts(place, 0, 0))
            found[spot] = _Parts(place, before.full + (not one.lacks), before.lacks + one.lacks)
    return found


def _flag(statement: ast.stmt) -> ast.expr | None:
    """What a statement passes as ``create_graph``, if that is no constant."""
    given = [
        one.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) == "grad"
        for one in node.keywords
        if one.arg == "create_graph"
    ]
    return given[0] if len(given) == 1 and not isinstance(given[0], ast.Constant) else None


def _meant(values: Values, flag: ast.expr, spot: Spot) -> list[ast.expr]:
    """A flag, and the expressions that it was made from."""
    queue, seen = [(flag, spot)], list[ast.expr]()
    for node, line in queue:
        if any(node is one for one in seen) or len(seen) > _MOST:
            continue
        seen.append(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            for there, one in values.made(ast.unparse(node), line):
                given = syntax.given(one) if isinstance(one, ast.stmt) else one
                queue += [(given, there)] if isinstance(given, ast.expr) else []
        elif isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Call)):
            queue += [(one, line) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return seen


def _is_test(node: ast.expr) -> bool:
    return isinstance(node, (ast.Compare, ast.BinOp))


def _of(
    record: Record, lost: _Lost, statement: ast.stmt, flag: ast.expr, off: Sequence[Switch], back: Fix | None
) -> Finding:
    line, place, call = lost.gradient.place, lost.place, lost.lacks
    given, made = f"create_graph={ast.unparse(flag)}", list(syntax.targets(statement))
    shown = f"`{made[0]}`" if made else "the gradient"
    lines = [place_of(one.run, one.call.lineno) for one in off]
    said = " or ".join(f"{short(one.source)} ({where(one)})" for one in lines[:2])
    by = f" {said} has switched it off, and nothing had switched it on again." if said else ""
    spot = at(line)
    text = (
        f"If the loss is to train by it, pass `create_graph=True` ({where(line)}). If it is meant as a constant, "
        "`.detach()` says so."
    )
    edits = Cells.of(record).with_keyword(spot, "create_graph=True")
    fix = Fix("create_graph", text, False, spot, "It builds a graph in evaluation, too.", edits=edits)
    return Finding(
        "silent",
        "warning",
        f"{short(line.source)} ({where(line)}) builds a graph for the gradient only while `{ast.unparse(flag)}` is "
        f"true. It was so for {number(lost.had.n)}, and is not for {number(call.n)}.{by} So what is "
        f"computed from {shown} has no graph any more, and {short(place.source)} ({where(place)}) adds "
        f"a constant to the loss. {opening(call.n)} gives no parameter a gradient from it.",
        f"From {number(call.n)} on no step goes by {shown}: `{given}` has become false.",
        call.n,
        made_at=line,
        cause=line,
        cut_at=line,
        names=tuple(dict.fromkeys((*made, "create_graph", syntax.last_name(ast.unparse(flag))))),
        fixes=tuple(one for one in (back, fix) if one is not None),
    )
