"""Side effects of running statements again: new parameters, a state that starts over."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from graphwidget.diagnosis.fixes.harm import held_by
from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import lines_of
from graphwidget.model import Kind

_TAKING = ("pop", "popleft", "popitem", "remove", "clear")
# Kinds of objects that a program makes once.
ONCE = ("module", "parameter", "leaf", "leaves", "optimizer", "loader")


def makes_what_is_made_once(reuse: Reuse, statements: Iterable[Statement]) -> bool:
    """Whether statements made what a program makes once: a module, a parameter or another leaf, an optimizer.

    That is what the names hold that they assign, and what leaves the nodes use that they made: one without a name was
    made on their lines. Made again, it would be another one, which nothing trains.
    """
    graphs = [graph for graph in (reuse.graph, reuse.earlier.graph) if graph is not None]
    lines: set[tuple[int | None, int]] = set()
    for one in statements:
        within = (node for node in ast.walk(one.node) if isinstance(node, ast.stmt))
        assigned = {name for statement in within for name in source.targets(statement)}
        if any(held_by(reuse.record, name, graphs) in ONCE for name in assigned):
            return True
        lines |= {(one.run.cell, line) for line in range(one.node.lineno, (one.node.end_lineno or 0) + 1)}
    graph = reuse.graph
    nameless = {i for i, leaf in graph.leaves.items() if leaf.requires_grad and not leaf.paths}
    users = (i for i in reuse.reached if graph.kind[i] != Kind.ACCUMULATE and nameless.intersection(graph.next(i)))
    return any((place := graph.place_of(i)) is not None and not lines.isdisjoint(lines_of(place)) for i in users)


def starts_over(made: Collection[ast.stmt], loop: ast.For | ast.While) -> bool:
    """Whether a loop carries a state over that these statements would reset in each pass.

    This is a state that each pass updates, a list that grows, a queue from which each pass takes. A trial cannot tell:
    the program runs, with a memory that never has more than its first element.
    """
    changed = {name for statement in made for name in source.changed(statement)}
    kept = source.carried(loop)
    return bool(changed & (kept | taken_from(loop)))


def taken_from(loop: ast.For | ast.While) -> set[str]:
    """Names of containers from which a loop removes elements."""
    calls = (n.func for n in ast.walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    holders = [func.value for func in calls if func.attr in _TAKING]
    holders += [n.value for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Del)]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}
