"""Cuts at the statement that stores a state for the next pass: it stores the state without its graph.

The statement may stand anywhere: in the loop, in a method, in a callback of another file. What it stores is read by the
next pass. Whether this pass reads it, too, before its own call, is known from the graphs: a state that had another
value when the earlier call began was stored after that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.fixes.cuts.inner_loops import cuts_steps
from graphwidget.diagnosis.fixes.cuts.state import Use, edges, with_the_name
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, short

__all__ = ["stored_after_call", "stored_before_call"]

_Store = tuple[int, ast.Assign, ast.expr]  # cell, statement, the one of its targets that is the state


def stored_after_call(context: CuttingContext, uses: Sequence[Use]) -> Iterator[Cut]:
    """Store the state detached, where it is stored behind the call: that pass has no more use for its graph."""
    yield from _at_stores(context, uses, after_call=True)


def stored_before_call(context: CuttingContext, uses: Sequence[Use]) -> Iterator[Cut]:
    """Store the state detached, if all code that reads it has run before that, in the same function."""
    yield from _at_stores(context, uses, after_call=False)


def _at_stores(context: CuttingContext, uses: Sequence[Use], *, after_call: bool) -> Iterator[Cut]:
    done = set[str]()
    for use in (*uses, *(_unread(context) if after_call else ())):
        for path in use.paths:
            name = use.whole(path).rsplit(".", 1)[-1]
            if name in done or _is_stored_after(context, use, path) != after_call:
                continue
            done.add(name)
            gone = _edges(context, uses, name) or _named(context, use, path)
            put = _put_detached(context, use, path, gone)
            if put is not None and put.at is not None:
                if after_call or _is_read_before(context, path, *put.at):
                    yield put
                continue
            stores = list(_stores(context, use, path))
            if len(stores) != 1 or _sets_by_name(context):
                continue
            if after_call or _is_read_before(context, path, stores[0][0], stores[0][1].lineno):
                yield from _cut(context, use, path, stores[0], gone)


def _unread(context: CuttingContext) -> Iterator[Use]:
    """The carriers as if the line that made them read them by their own names: others may read them by local ones."""
    spot = at(context.reuse.carrier_place)
    found = source.statements_at(context.text(spot), spot[1])[-1:] if spot is not None else []
    holders = tuple(dict.fromkeys(local(path).split("[", 1)[0] for path in context.paths if is_code(local(path))))
    if spot is not None and found and holders:
        yield Use(spot, found[0], holders, holders)


def _named(context: CuttingContext, use: Use, path: str) -> frozenset[int]:
    """The edges to tensors that are known by no other name than the path."""
    carried = context.later_edges().carried()
    return frozenset(one.edge for one in carried if all(use.means(path, name) for name in one.names))


def _edges(context: CuttingContext, uses: Sequence[Use], name: str) -> frozenset[int]:
    """The edges by which statements read the state of this name."""
    found = set[int]()
    for use in uses:
        paths = [path for path in use.paths if use.whole(path).rsplit(".", 1)[-1] == name]
        found |= edges(context, use, paths) if paths else frozenset()
    return frozenset(found)


def _put_detached(context: CuttingContext, use: Use, path: str, gone: frozenset[int]) -> Cut | None:
    """The one statement that puts carriers into this container puts them in detached: ``self.keys.append(z)``."""
    names = [local(name) for name in context.paths if use.means(path, name)]
    if not names or not all(name.endswith("]") for name in names):
        return None
    holder, inside = names[0].split("[", 1)[0], {name[name.index("[") :] for name in names}
    seen = {local(one.path)[len(holder) :]: one.containers for one in context.reuse.graph.owners}
    found = [
        (cell, line, edits)
        for cell, text in context.cells.items()
        for line, edits in containers.detached_in(cell, text, holder, inside, context.cells.values(), seen)
    ]
    if len(found) != 1:
        return None
    cell, line, edits = found[0]
    shown = short(text_edit.new_text(context.cells[cell], edits))
    return Cut(f"Store it detached: {shown} (In[{cell}], line {line}).", (cell, line), edits, gone)


def _is_stored_after(context: CuttingContext, use: Use, path: str) -> bool:
    """Whether the carrier got this name after the earlier call had begun."""
    before, now = context.reuse.earlier.graph, context.reuse.graph
    carriers = {now.uid[i] for i in context.reuse.unrun or context.reuse.boundary}
    named = [{o.path for o in g.owners if g.uid[o.node] in carriers} if g is not None else set() for g in (before, now)]
    then, there = ({name for name in some if use.means(path, name)} for some in named)
    return before is not None and bool(there) and not then


def _stores(context: CuttingContext, use: Use, path: str) -> Iterator[_Store]:
    """The assignments that give the state a value that may have a graph.

    A constructor does not run in each pass, nor does ``if self.mean is None:``. What they assign is where the state
    begins, or a number of the same name.
    """
    for cell, text in context.cells.items():
        for node in source.nodes_of(text):
            if not isinstance(node, ast.Assign) or _is_in_constructor(text, node):
                continue
            for target in _parts(node.targets):
                if _is_of(context, cell, target, use, path) and _may_have_a_graph(node, target):
                    if not _begins(text, node, target):
                        yield cell, node, target


def _sets_by_name(context: CuttingContext) -> bool:
    """Whether code sets attributes by names that it computes: then another line may be the one that stores.

    The only assignment in the text may be that of `reset`, which does not run between the passes: a cut there would be
    the first fix, and cut nothing.
    """
    return any(re.search(r"\bsetattr\(|\.__dict__|\bvars\(", text) for text in context.cells.values())


def _is_in_constructor(text: str, statement: ast.stmt) -> bool:
    found = source.function_at(text, statement.lineno)
    return found is not None and found[1].name in ("__init__", "__new__", "__post_init__")


def _begins(text: str, statement: ast.Assign, target: ast.expr) -> bool:
    """Whether a statement runs only while the state is None: one that stores the next value is the one to change.

    The state could also be detached where it is read, but in the first pass that is what this pass has made.
    """
    tests = [s.test for s in source.statements_at(text, statement.lineno) if isinstance(s, ast.If)]
    return any(ast.unparse(test) == f"{ast.unparse(target)} is None" for test in tests)


def _is_of(context: CuttingContext, cell: int, target: ast.expr, use: Use, path: str) -> bool:
    """Whether the target of an assignment in a cell is the state that a statement reads by this path.

    An attribute is known by its name. A variable is one that the function has from outside, and not one of its own.
    """
    whole = use.whole(path)
    name = whole.rsplit(".", 1)[-1]
    if isinstance(target, ast.Attribute):
        return target.attr == name
    if not isinstance(target, ast.Name) or target.id != name:
        return False
    files = context.files
    same_names = cell == use.spot[0] or not {cell, use.spot[0]} & files
    if "." in whole or not ("." in path or same_names):
        return False
    return source.is_from_outside(context.cells[cell], target.lineno, name)


def _parts(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)


def _may_have_a_graph(statement: ast.Assign, target: ast.expr) -> bool:
    """Not of what is made of numbers alone. An element of what a call returns may have one."""
    return containers.may_have_a_graph(source.given_to(statement, ast.unparse(target))[0])


def _is_read_before(context: CuttingContext, path: str, cell: int, line: int) -> bool:
    """Whether all code that reads an attribute of this name stands before the line that stores it, in its function."""
    name, text = path.rsplit(".", 1)[-1], context.cells[cell]
    function, store = source.function_at(text, line), source.statements_at(text, line)[-1:]
    if "." not in path or function is None:
        return False
    own = {id(node) for statement in store for node in ast.walk(statement)}
    for number, other in context.cells.items():
        for node in source.nodes_of(other):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                if id(node) not in own and (number != cell or not function[1].lineno <= node.lineno < line):
                    return False
    return True


def _cut(context: CuttingContext, use: Use, path: str, store: _Store, gone: frozenset[int]) -> Iterator[Cut]:
    cell, statement, target = store
    text, written = context.cells[cell], ast.unparse(target)
    value, element = source.given_to(statement, written)
    if cuts_steps(context, (cell, statement.lineno), (written,)):
        return
    names = [name for name in context.paths if use.means(path, name)]
    if not gone:
        return
    single = element is None and not isinstance(value, (ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.BoolOp))
    inside = [name for name in names if local(name).endswith("]") or context.detaching.is_field(name)]
    if single and not inside:
        edits = containers.detached_value(cell, text, value)
        sentence = f"Store it detached: {short(text_edit.new_text(text, edits))} (In[{cell}], line {statement.lineno})."
        yield Cut(sentence, (cell, statement.lineno), edits, gone)
        return
    lines = (
        with_the_name(context.detaching.lines(names), names, written) if names else [f"{written} = {written}.detach()"]
    )
    if not lines:
        return
    sure = context.detaching.sure(names) and not isinstance(value, (ast.IfExp, ast.BoolOp))
    edits = text_edit.insert_after(cell, text, statement.lineno, lines)
    shown = ", ".join(map(short, lines))
    sentence = f"Store it detached: {shown} after In[{cell}], line {statement.lineno}."
    yield Cut(sentence, (cell, statement.lineno), edits, gone, sure=sure)
