"""Cuts where a tensor that was made once is used, or where it was made."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext, edges_of
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.named_edges import NamedEdges
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import is_code, local, root_of
from graphwidget.diagnosis.wording import at, outer_at, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Place

__all__ = ["at_use", "first_use"]

_ABOUT = {"shape", "size", "ndim", "dim", "numel", "dtype", "device"}


def at_use(context: CuttingContext) -> Iterator[Cut]:
    """Read the carrier detached where the later call's own part begins.

    Then the same at every line that reads from the old part. If no line can be changed, detach where it was made, or
    before the loop around both calls, or what is made of it alone: code that nobody can change may have read it, such
    as a `DataLoader`.
    """
    first = first_use(context, context.reuse.later)
    if first is None:
        yield from _where_made(context)
        yield from _before_loop(context)
        made_of_it = _every_use(context, _first_with_names(context))
        if made_of_it is not None:
            yield replace(made_of_it, a_guess=True)
        return
    yield first
    yield from _before_loop(context)
    every = _every_use(context, context.reuse.boundary)
    if every is not None:
        yield every


def first_use(context: CuttingContext, call: BackwardCall) -> Cut | None:
    """The first line that makes a part of a call's own and can read the carrier detached."""
    edges, reuse = context.later_edges(), context.reuse
    cuts = (_read_on_the_way(context, place, context.setting.carrier_names, edges) for place in reuse.uses_by(call))
    return next((cut for cut in cuts if cut is not None), None)


def _first_with_names(context: CuttingContext) -> set[int]:
    """The tensors with names that are made of the old part alone, and of no other such tensor."""
    made, edges = context.reuse.made_of_the_old, context.later_edges().all
    named = {one.tensor for one in edges if one.tensor in made}
    return {one for one in named if not reachable(context.reuse.graph, [one]) & (named - {one})}


def _every_use(context: CuttingContext, inside: Collection[int]) -> Cut | None:
    """All lines that read some tensors from outside of these read them detached."""
    edges, reuse = context.later_edges(), context.reuse
    into = [one for one in edges.all if one.tensor in inside and one.user not in inside]
    places = [place for one in into if (place := reuse.graph.place_of(one.user)) is not None and place.cell is not None]
    parts: list[Cut] = []
    for place in dict.fromkeys(places):
        names = {name for one in edges.read_at(place) if one in into for name in one.names}
        part = _read_on_the_way(context, place, sorted(names), edges)
        if part is not None and part not in parts:
            parts.append(part)
    parts.sort(key=lambda one: one.at or (0, 0))
    if not parts:
        return None
    return Cut(
        sentence=" ".join(one.sentence for one in parts),
        at=parts[0].at,
        edits=tuple(dict.fromkeys(edit for one in parts for edit in one.edits)),
        edges=frozenset[int]().union(*(one.edges for one in parts)),
        before=frozenset[int]().union(*(one.before for one in parts)),
    )


def _read_on_the_way(context: CuttingContext, place: Place, paths: Collection[str], edges: NamedEdges) -> Cut | None:
    """Edits after which a line reads these tensors detached, or the nearest line that called its function does.

    The function may know what it is given by a name of its own.
    """
    here = _read_detached(context, place, paths, edges)
    frames = (*place.stack, place)
    for depth in range(len(place.stack) - 1, -1, -1):
        if here is not None:
            break
        inside = {(frame.function or "").rpartition(".")[2] for frame in frames[depth + 1 :]}
        given = {local(path) for path in paths if ":" in path and path.split(":", 1)[0] in inside}
        above = _read_detached(context, frames[depth], paths, edges, given)
        here = above if above is not None and (above.edges or above.before) else None
    return here


def _read_detached(
    context: CuttingContext, place: Place, paths: Collection[str], edges: NamedEdges, given: Collection[str] = ()
) -> Cut | None:
    """Edits after which a line reads these tensors detached.

    Parameters
    ----------
    given
        Names that functions which the line calls have for what it gives them.
    """
    text = context.setting.text_of_cell(place.cell)
    read: dict[str, Edits] = {}
    done: set[str] = set(given)
    for written, path in _as_written(context, paths, place):
        nodes = _reads(text, place.line, written)
        edits = tuple(edit for node in nodes for edit in text_edit.insert_behind(place.cell, text, node, ".detach()"))
        if edits:
            read[f"`{written}.detach()`"] = edits
            done.add(path)
            continue
        # ``self.weights[k]`` stands for any element.
        holder = written.rpartition("[")[0] if written.endswith("]") else ""
        parts = _reads_any_element(text, place.line, holder) if holder else []
        edits = tuple(edit for node in parts for edit in text_edit.insert_behind(place.cell, text, node, ".detach()"))
        if edits:
            read[f"`{ast.unparse(parts[0])}.detach()`"] = edits
            done.add(path)
    if not read:
        return None
    every = tuple(edit for edits in read.values() for edit in edits)
    sentence = f"Use {' and '.join(read)} in {short(context.setting.text_of(place))} ({where(place)})."
    earlier = context.earlier_edges
    before = edges_of(earlier.read_at(place), done) if earlier is not None else frozenset[int]()
    return Cut(sentence, at(place), every, edges_of(edges.read_at(place), done), before)


def _reads(text: str, line: int | None, path: str, *, elements: bool = False) -> Iterator[ast.expr]:
    """Where a line reads a whole tensor by its path: not an element, not to call it or to assign to a part of it.

    Reads that are detached already are left out. `elements`: where it reads an element of the container at the path,
    or the container itself.
    """
    tree = source.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)} if tree else {}
    for node, above in parents.items():
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or node.lineno != line:
            continue
        if not isinstance(node.ctx, ast.Load) or ast.unparse(node) != path:
            continue
        element = isinstance(above, ast.Subscript) and above.value is node
        if elements and isinstance(above, ast.Subscript) and element:
            node, above = above, parents[above]
            element = isinstance(above, ast.Subscript) and above.value is node
        called = isinstance(above, ast.Call) and above.func is node
        detached = isinstance(above, ast.Attribute) and above.attr == "detach"
        if not (element or called or detached or _asks_only(above) or _is_in_target(node, parents)):
            yield node


def _reads_any_element(text: str, line: int | None, holder: str) -> list[ast.expr]:
    """Where a line reads an element of a container by a variable, if it does not use the container in another way."""
    nodes = list(_reads(text, line, holder, elements=True))
    found = [node for node in nodes if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant)]
    return list(found) if len(found) == len(nodes) else []


def _asks_only(above: ast.AST) -> bool:
    """Whether a tensor is read for its size, its type, or whether it is one: no graph begins there."""
    if isinstance(above, ast.Call):
        return ast.unparse(above.func) in ("len", "isinstance", "type", "id", "torch.is_tensor")
    if isinstance(above, ast.Compare):
        return all(isinstance(one, (ast.Is, ast.IsNot)) for one in above.ops)
    return isinstance(above, ast.Attribute) and above.attr in _ABOUT


def _is_in_target(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a node is part of the target of an assignment."""
    above = parents[node]
    while isinstance(above, ast.expr):
        node, above = above, parents[above]
    return isinstance(above, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and above.value is not node


def _as_written(context: CuttingContext, paths: Collection[str], place: Place) -> Iterator[tuple[str, str]]:
    """Spellings that a line may use for some paths, each with its path: in a method `self.fake` for `gan.fake`."""
    method = source.method_at(context.setting.text_of_cell(place.cell), place.line or 0)
    for path in filter(is_code, map(local, paths)):
        yield path, path
        if method is not None and "." in path:
            yield "self." + path.split(".", 1)[1], path


def _where_made(context: CuttingContext) -> Iterator[Cut]:
    setting, made = context.setting, context.reuse.carrier_place
    paths = setting.carrier_names
    spot = outer_at(made) if context.reuse.carrier_paths else at(made)
    lines = context.detaching.lines(_assigned_at(context, spot, paths) or paths)
    if not lines or made is None or spot is None or not runs_between(setting, spot, made):
        return
    if source.loop_at(context.text(spot), spot[1]) is not None:
        return  # each pass made one, from which the next pass began
    sentence = f"Cut the graph where it was made: {short(lines[0])} after In[{spot[0]}], line {spot[1]}."
    gone, earlier = edges_of(context.later_edges().after(spot), paths), context.earlier_edges
    before = edges_of(earlier.after(spot), paths) if earlier is not None else frozenset[int]()
    edits = text_edit.insert_after(spot[0], context.text(spot), spot[1], lines)
    yield Cut(sentence, spot, edits, gone, before, context.detaching.sure(paths))


def _before_loop(context: CuttingContext) -> Iterator[Cut]:
    """Detach what was made before a loop whose passes read it, in front of the loop: the state of a rollout."""
    earlier, later = context.reuse.earlier.place, context.reuse.later.place
    spot, edges = at(later), context.later_edges()
    if spot is None or (earlier.cell, earlier.inner_run) != (later.cell, later.inner_run):
        return
    text = context.text(spot)
    for loop in source.loops_around(text, spot[1]):
        function, tree = source.function_at(text, loop.lineno), source.parse(text)
        inside = loop.lineno <= (earlier.line or 0) <= (loop.end_lineno or 0)
        steps = source.own_statements(function[1].body if function is not None else tree.body if tree else [])
        given = {name for one in steps if one.lineno < loop.lineno for name in source.targets(one)}
        read = source.names_in(loop)
        unchanged = given & read - source.changed(loop)
        paths = [path for path in context.setting.carrier_names if root_of(path) in unchanged]
        known = [replace(one, names=frozenset(n for n in one.names if root_of(n) in read)) for one in edges.all]
        gone = edges_of((one for one in known if one.tensor in context.reuse.boundary and one.names), paths)
        lines = context.detaching.lines(paths)
        if inside and lines and gone:
            edits = text_edit.insert_before(spot[0], text, loop, lines)
            shown = " and ".join(map(short, lines))
            sentence = f"Cut the graph before the loop: {shown} before In[{spot[0]}], line {loop.lineno}."
            yield Cut(sentence, (spot[0], loop.lineno), edits, gone, sure=context.detaching.sure(paths))
            return


def _assigned_at(context: CuttingContext, spot: Spot | None, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Of several paths to one tensor those that its own line assigns: the others got it from these."""
    found = source.statements_at(context.text(spot), spot[1]) if spot is not None else []
    assigned = set(source.targets(found[-1])) if found else set[str]()
    return tuple(path for path in paths if local(path) in assigned)
