"""Statements like ``target.detach()``, whose result nothing takes: a backward ran on through what was to be cut."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphwidget.diagnosis.fixes.cuts.lost import callers
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.lost_detaches import detached_path
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import at, lines_of, names, place_of, short, spoken, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Kind, Leaf, Record, Snapshot

__all__ = ["find"]

MOST_CALLS = 20  # calls whose graphs are looked at, the newest first
MOST_NAMED = 3


class _Way(NamedTuple):
    """A call that ran through a tensor behind the statement: the graph's edges that lead to it, and who reads it."""

    call: BackwardCall
    reader: Spot
    edges: frozenset[tuple[int, int]]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each such statement."""
    cells = Cells.of(record)
    calls = [one for one in reversed(record.calls) if one.result == "ok" and one.graph is not None][:MOST_CALLS]
    for run in cells.latest if calls else ():
        if run.error is None and run.cell is not None and ".detach(" in run.source:
            for statement in _dropped(run.source):
                yield from _of(record, calls, run, statement)


def _dropped(text: str) -> Iterator[ast.Expr]:
    """The statements that detach and drop the result. A cell shows what its last line returns."""
    tree = syntax.parse(text)
    last = tree.body[-1] if tree is not None and tree.body else None
    for one in syntax.nodes_of(text):
        if isinstance(one, ast.Expr) and one is not last and detached_path(one.value):
            yield one


def _of(record: Record, calls: list[BackwardCall], run: CellRun, statement: ast.Expr) -> Iterator[Finding]:
    cells, path = Cells.of(record), detached_path(statement.value)
    made, others = _made(cells, run, statement, path)
    readers = _readers(run, statement, path, others)
    ways = [way for one in calls for way in _ways(one, made, readers)] if made and readers else []
    if not ways:
        return
    cut = {way.call.n: way.edges for way in ways}
    before, after = (_reached(calls, edges) for edges in ({}, cut))
    if any(not _leaves(way.call, way.edges) for way in ways):
        return  # nothing else leads to a parameter: cut off there, the call could not run
    yield _found(run, statement, ways[0], tuple(before[key] for key in before.keys() - after.keys()))


def _reached(calls: list[BackwardCall], cut: dict[int, frozenset[tuple[int, int]]]) -> dict[object, str]:
    """What the calls would reach without some edges: leaves by their memory, each with a name."""
    leaves = (leaf for one in calls for leaf in _leaves(one, cut.get(one.n, frozenset())))
    return {leaf.memory if leaf.memory >= 0 else leaf.paths: spoken(leaf.paths[0]) for leaf in leaves if leaf.paths}


def _leaves(call: BackwardCall, cut: frozenset[tuple[int, int]]) -> list[Leaf]:
    """The leaves that a call would reach without some edges of its graph."""
    graph = call.graph
    if graph is None:
        return []
    seen = {root.node for root in call.roots if root.node >= 0}
    work = [*seen]
    for index in work:
        more = {following for following in graph.next(index) if following >= 0 and (index, following) not in cut} - seen
        seen |= more
        work += more
    return [graph.leaves[index] for index in seen if graph.kind[index] == Kind.ACCUMULATE and index in graph.leaves]


# ------------------------------------------------------------------ where it is made and read


def _made(cells: Cells, run: CellRun, statement: ast.Expr, path: str) -> tuple[set[Spot], set[str]]:
    """The lines that give the tensor to the path, or to what callers hand in for it; and what else they give."""
    inside = syntax.function_at(run.source, statement.lineno)
    here = syntax.block_of(run.source, statement)
    spots, others = set[Spot](), set[str]()
    for at_, (spot, written) in enumerate(callers(cells, (run.cell or 0, statement.lineno), path)):
        before = [one for one in syntax.leading_to(cells.text(spot[0]), spot[1]) if one.lineno < spot[1]]
        giving = next((one for one in reversed(before) if written in syntax.targets(one)), None)
        if giving is not None and not syntax.blocks_of(giving):
            if at_ == 0 and giving not in here:
                return set(), set()  # the statement stands under a condition of its own
            spots |= _lines(spot[0], giving)
            others |= {*syntax.targets(giving)} - {written}
            if at_ == 0:
                break
        elif at_ == 0 and (inside is None or here is not inside[1].body or root_of(path) == "self"):
            return set(), set()
    return spots, others


def _readers(run: CellRun, statement: ast.Expr, path: str, others: Collection[str]) -> set[Spot]:
    """The lines behind the statement that read the path, and nothing else of the line that made it.

    What gives the path another value is the last of them.
    """
    inside, tree = syntax.function_at(run.source, statement.lineno), syntax.parse(run.source)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    found = set[Spot]()
    for one in syntax.own_statements(body):
        if one.lineno <= (statement.end_lineno or 0) or syntax.blocks_of(one):
            continue
        read = syntax.paths_read(one)
        if path in read and read.isdisjoint(others):
            found |= _lines(run.cell or 0, one)
        if path in syntax.targets(one):
            break
    return found


def _lines(cell: int, statement: ast.stmt) -> set[Spot]:
    return {(cell, line) for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)}


def _ways(call: BackwardCall, made: set[Spot], readers: set[Spot]) -> Iterator[_Way]:
    """The edges of a call's graph from nodes that the readers made to nodes that the first lines made."""
    graph = call.graph
    if graph is None:
        return
    edges, reader = set[tuple[int, int]](), None
    for index in reachable(graph, (root.node for root in call.roots)):
        here = _first(graph, index, readers)
        for following in graph.next(index) if here is not None else ():
            if following >= 0 and _first(graph, following, made) is not None:
                edges.add((index, following))
                reader = reader or here
    if reader is not None:
        yield _Way(call, reader, frozenset(edges))


def _first(graph: Snapshot, index: int, spots: set[Spot]) -> Spot | None:
    """The first of some lines that was running when a node was made."""
    return next((spot for spot in lines_of(graph.place_of(index)) if spot in spots), None)


# ------------------------------------------------------------------ what is said


def _found(run: CellRun, statement: ast.Expr, way: _Way, lost: tuple[str, ...]) -> Finding:
    place, path, value = place_of(run, statement.lineno), detached_path(statement.value), ast.unparse(statement.value)
    reader = place_of(run, way.reader[1])
    new = f"{path} = {value}"
    trained = f" Only this way leads to {names(lost, MOST_NAMED)}." if lost else ""
    return Finding(
        "silent",
        "info" if lost else "warning",
        f"{short(value)} ({where(place)}) returns a new tensor, and nothing takes it: `{path}` keeps its graph. "
        f"{short(reader.source)} ({where(reader)}) computes with it, and {short(way.call.place.source)} "
        f"({where(way.call.place)}) sent a gradient back through it.{trained}",
        f"A gradient flows through `{path}`: what `detach` returns is thrown away.",
        way.call.n,
        tensor=path,
        made_at=place,
        cause=place,
        names=(path,),
        fixes=(
            Fix(
                "detach",
                f"Keep what `detach` returns: {short(new)}.",
                False,
                at(place),
                "No gradient flows back through it.",
                edits=text_edit.replace_node(run.cell, run.source, statement, new),
            ),
        )
        if not lost
        else (),
    )
