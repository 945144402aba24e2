"""Cuts where a pass uses the state that an object carries over: where it is stored, or before its first use.

The loop may be elsewhere, in another file or in a library. The lines that made what the later call reaches, and the
lines that called them, ran in its pass: one of them reads the state, or gives it its next value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.reuse.named_edges import NamedEdge
from graphwidget.diagnosis.source import containers, text_edit
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.none_values import may_be_none
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import at, lines_of, short, spoken
from graphwidget.model import Place

__all__ = ["at_state", "stored_after_call"]


@dataclass(frozen=True)
class _Use:
    """A statement that a pass runs, and the state that it reads, as it writes it (``self.h``).

    `wholes` are the same paths without the local names that only stand for a part of an object: ``self.memory.h`` for
    ``memory.h`` after ``memory = self.memory``.
    """

    spot: Spot
    statement: ast.stmt
    paths: tuple[str, ...]
    wholes: tuple[str, ...]

    def means(self, path: str, name: str) -> bool:
        """Whether one of the paths may be that of a tensor of this name."""
        return _means(path, name) or _means(self.wholes[self.paths.index(path)], name)


def at_state(context: CuttingContext) -> Iterator[Cut]:
    """Store the state detached; or detach it before the first line of a pass that reads it."""
    uses = list(_uses(context))
    for use in uses:
        yield from _stored_detached(context, use)
    for use in uses:
        cut = _before_use(context, use)
        if cut is not None:
            yield cut


def stored_after_call(context: CuttingContext) -> Iterator[Cut]:
    """Store the state detached, where the function that makes the call stores it behind the call: no pass reads it."""
    call = at(context.reuse.later.place)
    function = source.function_at(context.text(call), call[1]) if call is not None else None
    if call is None or function is None:
        return
    for use in _uses(context):
        for cut in _stored_detached(context, use):
            cell, line = cut.at or (0, 0)
            if cell == call[0] and call[1] < line <= (function[1].end_lineno or 0):
                yield cut


def _uses(context: CuttingContext) -> Iterator[_Use]:
    """The statements that read the state in a pass, those nearest to the old part first, each once."""
    reuse, seen = context.reuse, set[tuple[int, int]]()
    for place in (reuse.carrier_place, *reuse.uses_by(reuse.later)):
        for spot in _lines_innermost_first(place):
            text = context.text(spot)
            found = source.statements_at(text, spot[1])[-1:]
            if not found or hasattr(found[0], "body") or (spot[0], found[0].lineno) in seen:
                continue
            seen.add((spot[0], found[0].lineno))
            wholes = {path: _in_full(text, found[0], path) for path in _read(found[0])}
            read = [path for path, whole in wholes.items() if _is_state(context, text, whole, path, found[0])]
            if read and _made_a_node(context, spot):
                yield _Use(spot, found[0], tuple(read), tuple(wholes[path] for path in read))


def _lines_innermost_first(place: Place | None) -> list[Spot]:
    return lines_of(place)[::-1] if place is not None else []


def _read(statement: ast.stmt) -> list[str]:
    """The paths that a statement reads, with the target of ``+=``."""
    added = source.targets(statement) if isinstance(statement, ast.AugAssign) else []
    return [*added, *source.paths_read(statement)]


def _in_full(text: str, statement: ast.stmt, path: str) -> str:
    """``self.memory.h`` for ``memory.h``, where the function has set ``memory = self.memory`` and nothing else."""
    root, dot, rest = path.partition(".")
    function = source.function_at(text, statement.lineno)
    if not dot or root == "self" or function is None:
        return path
    made = [s for s in source.own_statements(function[1].body) if root in source.targets(s)]
    if len(made) != 1 or not isinstance(made[0], ast.Assign) or not isinstance(made[0].value, ast.Attribute):
        return path
    return f"{ast.unparse(made[0].value)}.{rest}"


def _is_state(context: CuttingContext, text: str, whole: str, path: str, statement: ast.stmt) -> bool:
    """Whether a path is that of a carrier, or is given its next value here, and lasts longer than a pass."""
    if "." not in path:
        return path in source.targets(statement) and _lasts(text, statement, path)
    assigned = path in source.targets(statement)
    return assigned or any(_means(one, name) for one in (path, whole) for name in context.paths)


def _lasts(text: str, statement: ast.stmt, name: str) -> bool:
    """Whether a loop of its function carries a local variable from pass to pass."""
    found, loop = source.function_at(text, statement.lineno), source.loop_at(text, statement.lineno)
    inside = found is not None and loop is not None and found[1].lineno < loop.lineno
    return inside and loop is not None and name in source.carried(loop)


def _means(path: str, name: str) -> bool:
    """Whether a line may write a path for a tensor of this name: ``self.carry`` for ``model.carry[0]``."""
    whole = re.sub(r"(\[[^]]*\])+$", "", local(name))
    return whole == path or (path.startswith("self.") and whole.endswith(path[len("self") :]))


def _made_a_node(context: CuttingContext, spot: Spot) -> bool:
    """Whether a line, or a function that it called, has made a node since the earlier call."""
    return any(True for _ in _made_by(context, spot))


def _made_by(context: CuttingContext, spot: Spot) -> Iterator[int]:
    graph, since = context.reuse.graph, context.reuse.earlier.newest_seq
    ran = {at for at, place in enumerate(graph.places) if spot in lines_of(place)}
    return (i for i in context.reuse.new if graph.seq[i] >= since and graph.place[i] in ran)


def _edges(context: CuttingContext, use: _Use) -> frozenset[int]:
    """The edges by which a statement reads the state: by its name, or, if it has none, from the nodes that it made."""
    graph, since = context.reuse.graph, context.reuse.earlier.newest_seq
    named: dict[int, NamedEdge] = {one.edge: one for one in context.later_edges().all}
    made_here = set(use.paths) <= set(source.targets(use.statement))
    read = source.names_read(use.statement)
    found = set[int]()
    for user in _made_by(context, use.spot):
        for edge in range(graph.edge_start[user], graph.edge_start[user + 1]):
            tensor = graph.edge_to[edge]
            if not 0 <= graph.seq[tensor] < since:
                continue
            known = named.get(edge)
            same = known is not None and any(use.means(path, name) for path in use.paths for name in known.names)
            # By a name that it does not read, the statement cannot have come to it.
            other = known is not None and not read.isdisjoint(map(root_of, known.names))
            if same or (made_here and not other and use.spot in lines_of(graph.place_of(tensor))):
                found.add(edge)
    return frozenset(found)


def _before_use(context: CuttingContext, use: _Use) -> Cut | None:
    """Detach the state before a statement that reads it."""
    text = context.text(use.spot)
    lines: list[str] = []
    sure = True
    for path in use.paths:
        names = [name for name in context.paths if use.means(path, name)]
        if "." not in path:
            names = [f"{path}{inside}" for inside in _inside(context, path)]
            if not names:  # it may be a tensor, or a tuple of them
                return _in_words(context, use, path)
        new = _as_written(context.detaching.lines(names), names, path) if names else [f"{path} = {path}.detach()"]
        sure = sure and (not names or context.detaching.sure(names))
        if may_be_none(text, use.statement, path):
            new = [f"if {path} is not None:", *(f"    {line}" for line in new)]
        lines += new
    edges = _edges(context, use)
    if not lines or not edges:
        return None
    shown = short("; ".join(line.strip() for line in lines), 120)
    sentence = f"Cut the graph between passes: {shown} before In[{use.spot[0]}], line {use.statement.lineno}."
    edits = text_edit.insert_before(use.spot[0], text, use.statement, lines)
    return Cut(sentence, (use.spot[0], use.statement.lineno), edits, edges, sure=sure)


def _inside(context: CuttingContext, name: str) -> list[str]:
    """What leads from a local variable to the carriers, by their names elsewhere: ``[0]`` for ``chunk.carry[0]``.

    An empty text: the variable is the carrier itself.
    """
    found = (re.fullmatch(rf"(?:.*\.)?{re.escape(name)}((?:\[[^]]*\])*)", spoken(path)) for path in context.paths)
    return [match[1] for match in found if match is not None]


def _in_words(context: CuttingContext, use: _Use, path: str) -> Cut | None:
    edges = _edges(context, use)
    sentence = f"Cut the graph between passes: detach `{path}` before In[{use.spot[0]}], line {use.statement.lineno}."
    return Cut(sentence, (use.spot[0], use.statement.lineno), (), edges, sure=False) if edges else None


def _as_written(lines: list[str], names: list[str], path: str) -> list[str]:
    """Lines that detach ``model.carry``, with ``self.carry`` in its place."""
    wholes = sorted({re.sub(r"(\[[^]]*\])+$", "", local(name)) for name in names}, key=len, reverse=True)
    for whole in wholes:
        lines = [re.sub(rf"(?<![\w.]){re.escape(whole)}(?!\w)", path, line) for line in lines]
    return list(dict.fromkeys(lines))


def _stored_detached(context: CuttingContext, use: _Use) -> Iterator[Cut]:
    """``self.h = h`` stores `h` detached: only if nothing reads it after that in the same pass."""
    cell, text = use.spot[0], context.text(use.spot)
    function = source.function_at(text, use.statement.lineno)
    if function is None:
        return
    for path in use.paths:
        stores = [s for s in source.own_statements(function[1].body) if path in source.targets(s)]
        if len(stores) != 1 or not isinstance(stores[0], ast.Assign) or not isinstance(stores[0].value, ast.Name):
            continue
        store = stores[0]
        if store.lineno < use.statement.lineno or not _is_read_last(context, path, cell, function[1], store):
            continue
        edits = containers.detached_value(cell, text, store.value)
        sentence = f"Store it detached: {short(text_edit.new_text(text, edits))} (In[{cell}], line {store.lineno})."
        yield Cut(sentence, (cell, store.lineno), edits, _edges(context, use))


def _is_read_last(
    context: CuttingContext, path: str, cell: int, function: ast.FunctionDef | ast.AsyncFunctionDef, store: ast.stmt
) -> bool:
    """Whether all code that reads an attribute of this name stands before the store, in its function."""
    name = path.rsplit(".", 1)[-1]
    for number, text in context.cells.items():
        tree = source.parse(text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                if number != cell or not function.lineno <= node.lineno < store.lineno:
                    return False
    return True
