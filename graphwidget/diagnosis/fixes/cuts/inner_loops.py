"""Loops inside of one pass, such as the time steps of a sample: what these hand on to each other is not to be cut."""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphwidget.diagnosis.fixes.cuts.cut import CuttingContext
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import lines_of

__all__ = ["cuts_steps", "first_in_pass"]


def cuts_steps(context: CuttingContext, spot: Spot, paths: Collection[str]) -> bool:
    """Whether a cut of these paths at a line would cut between the steps of one pass.

    The line stands in a loop whose steps hand the state on, or its function is called in one.
    """
    if any(_hands_on(one, paths) for one in _inner_loops(context, spot)):
        return True
    graph = context.reuse.graph
    places = {graph.place_of(index) for index in context.reuse.new}
    for lines in (lines_of(one) for one in places if one is not None):
        for frame in lines[: lines.index(spot)] if spot in lines else ():
            called = source.statements_at(context.text(frame), frame[1])[-1:]
            heads = {root_of(name) for one in called for name in source.calls_in(one)}
            if any(not heads & _own(loop) for loop in _inner_loops(context, frame)):
                return True
    return False


def _inner_loops(context: CuttingContext, spot: Spot) -> list[ast.For | ast.While]:
    """The loops around a line that run inside of one pass, outermost first: the later call stands in none of them.

    A loop of a generator runs a step for each pass of what takes its values.
    """
    calls = [line for cell, line in lines_of(context.reuse.later.place) if cell == spot[0]]
    around = (one for one in source.loops_around(context.text(spot), spot[1]) if not _yields(one))
    return [one for one in around if not any(one.lineno <= line <= (one.end_lineno or 0) for line in calls)]


def _yields(loop: ast.For | ast.While) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(loop))


def first_in_pass(
    context: CuttingContext, spot: Spot, statement: ast.stmt, paths: Collection[str]
) -> tuple[ast.stmt, list[str]] | None:
    """The statement before which a pass has not read these paths yet, and the heads of loops to write around a cut.

    That is the outermost loop around a statement whose steps hand the state on. A loop inside of it that goes over the
    objects that have the state, ``for cell in self.cells:``, stands around the cut. None: there is no such place, or
    the paths are not known there.
    """
    loops = _inner_loops(context, spot)
    at = next((number for number, one in enumerate(loops) if _hands_on(one, paths)), len(loops))
    loops = loops[at:]
    if not loops:
        return (statement, []) if not cuts_steps(context, spot, paths) else None
    first = loops[0]
    if cuts_steps(context, (spot[0], first.lineno), paths):
        return None
    moved = {name for one in loops for name in source.changed(one)}
    over = [one for one in loops if isinstance(one, ast.For) and _own(one) & set(map(root_of, paths))]
    held = {root_of(path) for path in paths if "." in path}
    if len(over) > 1 or (not over and held & moved) or any(source.names_in(one.iter) & moved for one in over):
        return None
    return first, [f"for {ast.unparse(one.target)} in {ast.unparse(one.iter)}" for one in over]


def _own(loop: ast.For | ast.While) -> set[str]:
    """The names that stand for something else in each step."""
    return source.bound(loop.target) if isinstance(loop, ast.For) else set()


def _hands_on(loop: ast.For | ast.While, paths: Collection[str]) -> bool:
    """Whether steps of a loop hand one of these paths on to each other: not where each has an object of its own."""
    statements = [node for one in loop.body for node in ast.walk(one) if isinstance(node, ast.stmt)]
    written = {name for one in statements for name in source.targets(one)}
    read = {name for one in statements if not hasattr(one, "body") for name in source.paths_read(one)}
    added = {name for one in statements if isinstance(one, ast.AugAssign) for name in source.targets(one)}
    return any(path in written and path in read | added and root_of(path) not in _own(loop) for path in paths)
