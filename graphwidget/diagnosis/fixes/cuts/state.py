"""The statements of a pass that use what an earlier pass has left, and the names by which they write that.

The loop may be elsewhere, in another file or in a library. The lines that made what the later call reaches, and the
lines that called them, ran in its pass: one of them reads the state, or gives it its next value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.cuts.cut import CuttingContext
from graphwidget.diagnosis.reuse.named_edges import NamedEdge
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import lines_of, spoken
from graphwidget.model import Place

__all__ = ["Use", "edges", "uses", "with_the_name"]


@dataclass(frozen=True)
class Use:
    """A statement that a pass runs, and the state that it reads, as it writes it (``self.h``).

    `wholes` are the same paths without the local names that only stand for an object, or a part of one:
    ``self.memory.h`` for ``memory.h`` after ``memory = self.memory``.
    """

    spot: Spot
    statement: ast.stmt
    paths: tuple[str, ...]
    wholes: tuple[str, ...]

    def whole(self, path: str) -> str:
        """One of the paths without local names."""
        return self.wholes[self.paths.index(path)]

    def means(self, path: str, name: str) -> bool:
        """Whether one of the paths may be that of a tensor of this name."""
        return _means(path, name) or _means(self.whole(path), name)


def uses(context: CuttingContext) -> Iterator[Use]:
    """The statements that read the state in a pass, those nearest to the old part first, each once."""
    reuse, seen = context.reuse, set[tuple[int, int]]()
    crossing = [reuse.graph.place_of(one.user) for one in context.later_edges().carried()]
    for place in dict.fromkeys((reuse.carrier_place, *reuse.uses_by(reuse.later), *crossing)):
        for spot in _lines_innermost_first(place):
            text = context.text(spot)
            found = source.statements_at(text, spot[1])[-1:]
            if not found or hasattr(found[0], "body") or (spot[0], found[0].lineno) in seen:
                continue
            seen.add((spot[0], found[0].lineno))
            wholes = {path: _in_full(context, text, found[0], path) for path in _read(found[0])}
            read = [path for path, whole in wholes.items() if _is_state(context, text, whole, path, found[0])]
            if read and _made_a_node(context, spot):
                yield Use(spot, found[0], tuple(read), tuple(wholes[path] for path in read))


def edges(context: CuttingContext, use: Use, paths: Collection[str] = ()) -> frozenset[int]:
    """The edges by which a statement reads the state: by its name, or, if it has none, from the nodes that it made.

    Parameters
    ----------
    paths
        Of the state, as the statement writes them. Empty: all.
    """
    graph = context.reuse.graph
    named: dict[int, NamedEdge] = {one.edge: one for one in context.later_edges().all}
    made_here = set(paths or use.paths) <= set(source.targets(use.statement))
    read = source.names_read(use.statement)
    found = set[int]()
    for user in _made_by(context, use.spot):
        if context.reuse.is_from_before(user):
            continue
        for edge in range(graph.edge_start[user], graph.edge_start[user + 1]):
            tensor = graph.edge_to[edge]
            if not context.reuse.is_from_before(tensor):
                continue
            known = named.get(edge)
            same = known is not None and any(use.means(p, name) for p in paths or use.paths for name in known.names)
            # By a name that it does not read, the statement cannot have come to it.
            other = known is not None and not read.isdisjoint(map(root_of, known.names))
            if same or (made_here and not other and use.spot in lines_of(graph.place_of(tensor))):
                found.add(edge)
    return frozenset(found)


def with_the_name(lines: list[str], names: list[str], path: str) -> list[str]:
    """Lines that detach ``model.carry``, with ``self.carry`` in its place."""
    wholes = sorted({re.sub(r"(\[[^]]*\])+$", "", local(name)) for name in names}, key=len, reverse=True)
    for whole in wholes:
        lines = [re.sub(rf"(?<![\w.]){re.escape(whole)}(?!\w)", path, line) for line in lines]
    return list(dict.fromkeys(lines))


def _lines_innermost_first(place: Place | None) -> list[Spot]:
    return lines_of(place)[::-1] if place is not None else []


def _read(statement: ast.stmt) -> list[str]:
    """The paths that a statement reads, with the target of ``+=``."""
    added = source.targets(statement) if isinstance(statement, ast.AugAssign) else []
    return [*added, *source.paths_read(statement)]


def _in_full(context: CuttingContext, text: str, statement: ast.stmt, path: str) -> str:
    """``self.memory.h`` for ``memory.h``, where the function has set ``memory = self.memory`` before.

    For ``store.LAST`` it is ``LAST``, if that is a variable of the module `store`.
    """
    root, dot, rest = path.partition(".")
    if any(name.replace(":", ".") == path != name for name in context.paths):
        return rest
    function = source.function_at(text, statement.lineno)
    if root == "self" or function is None:
        return path
    made = [s for s in source.own_statements(function[1].body) if root in source.targets(s)]
    if dot and len(made) != 1:
        return path
    made = [s for s in made if s.lineno < statement.lineno]
    if not made or not isinstance(made[-1], ast.Assign):
        return path
    attribute = _attribute(source.given_to(made[-1], root)[0])
    return f"{attribute}{dot}{rest}" if attribute is not None else path


def _attribute(value: ast.expr) -> str | None:
    """The one attribute that a value may be, or is an element of: ``self.h if self.h is not None else zeros(4)``."""
    parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    parts = value.values if isinstance(value, ast.BoolOp) else parts
    found = {ast.unparse(one) for one in map(_holder, parts) if isinstance(one, ast.Attribute)}
    return found.pop() if len(found) == 1 else None


def _holder(value: ast.expr) -> ast.expr:
    while isinstance(value, ast.Subscript):
        value = value.value
    return value


def _is_state(context: CuttingContext, text: str, whole: str, path: str, statement: ast.stmt) -> bool:
    """Whether a path is that of a carrier, or is given its next value here, and lasts longer than a pass."""
    named = any(_means(one, name) for one in (path, whole) for name in context.paths)
    if "." not in path and "." not in whole:
        if path in source.targets(statement) and _lasts(text, statement, path):
            return True
        return named and source.is_from_outside(text, statement.lineno, path)
    return named or path in source.targets(statement)


def _lasts(text: str, statement: ast.stmt, name: str) -> bool:
    """Whether a loop of its function carries a local variable from pass to pass."""
    found, loop = source.function_at(text, statement.lineno), source.loop_at(text, statement.lineno)
    inside = found is not None and loop is not None and found[1].lineno < loop.lineno
    return inside and loop is not None and name in source.carried(loop)


def _means(path: str, name: str) -> bool:
    """Whether a line may write a path for a tensor of this name: ``self.carry`` for ``model.carry[0]``."""
    whole = re.sub(r"(\[[^]]*\])+$", "", spoken(name))
    return path == whole or (path.startswith("self.") and whole.endswith(path[len("self") :]))


def _made_a_node(context: CuttingContext, spot: Spot) -> bool:
    """Whether a line, or a function that it called, has made a node since the earlier call."""
    return any(True for _ in _made_by(context, spot))


def _made_by(context: CuttingContext, spot: Spot) -> Iterator[int]:
    graph, since = context.reuse.graph, context.reuse.earlier.newest_seq
    ran = {at for at, place in enumerate(graph.places) if spot in lines_of(place)}
    return (i for i in context.reuse.new if graph.seq[i] >= since and graph.place[i] in ran)
