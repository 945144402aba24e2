"""Ways to stop graphs from piling up, as edits of the lines that keep them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphwidget.analysis import detaching, edits, source
from graphwidget.analysis.detaching import local
from graphwidget.analysis.story import root_name, spoken
from graphwidget.analysis.words import at, names, outer_at, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Record

if TYPE_CHECKING:
    from graphwidget.analysis.piles import Pile

_NONE = "No gradient flows back through it."


def _cells(record: Record) -> list[CellRun]:
    """Each cell once, as it was last run, latest first."""
    latest = {run.cell_id or run.run: run for _, run in sorted(record.runs.items())}
    return sorted(latest.values(), key=lambda run: -run.run)


def for_pile(record: Record, pile: Pile, lasting: bool) -> tuple[Fix, ...]:
    """Fixes for graphs that pile up; `lasting`: they are still there when the program has come this far."""
    name, place = spoken(pile.name), pile.graph.place_of(pile.owners[0].node)
    keep = _cut_each_time(record, pile) if pile.chain else _keep_numbers(record, name, pile)
    if keep is None:
        line = f" ({where(place)})" if where(place) else ""
        keep = Fix(
            "detach",
            f"Keep numbers, not graphs: use `.detach()` for what {names(tuple(map(spoken, pile.paths)))} "
            f"{'keeps' if len(pile.paths) == 1 else 'keep'}{line}.",
            False,
            at(place),
            _NONE,
        )
    return (keep, _let_go(record, name)) if lasting and pile.alone and _is_disposable(pile) else (keep,)


def _is_disposable(pile: Pile) -> bool:
    """Whether the holder is a variable, and nothing but tensors or Python's own containers of them.

    Never an object's attribute, which its methods need, nor a module, a parameter, a buffer.
    """
    plain = all(kind in _CONTAINERS for owner in pile.owners for kind, _ in owner.containers[: owner.path.count("[")])
    return len(pile.paths) == 1 and pile.name.isidentifier() and plain


def _let_go(record: Record, name: str) -> Fix:
    reads = {(run.cell, line) for run in _cells(record) for line in _read_at(run.source, name)}
    price = "What reads it later must stand before that." if reads else "It costs nothing."
    return Fix("del_variable", f"Let go of it when done: `del {name}`.", not reads, None, price, (f"+ del {name}",))


def _read_at(cell: str, name: str) -> Iterator[int]:
    """Lines that read a variable, other than those that put something into it or give it its next value."""
    tree = source.parse(cell)
    for statement in source.steps_of_all(tree) if tree is not None else ():
        if name in source.names_read(statement) and name not in source.changed(statement):
            yield statement.lineno


_CONTAINERS = {"list", "tuple", "dict", "set", "frozenset", "deque", "defaultdict", "OrderedDict"}
_UNLESS = " Only if no backward needs what it keeps."


def _needed(record: Record, name: str, kept_at: set[tuple[int | None, int]]) -> bool:
    """Whether a line, other than those that keep it, reads what `name` keeps as more than a number.

    Parameters
    ----------
    kept_at
        (cell, line)s.
    """
    last = name.rsplit(".", 1)[-1]
    trees = ((run, source.parse(run.source)) for run in _cells(record))
    return any(
        (run.cell, line) not in kept_at
        for run, tree in trees
        if tree is not None
        for line in source.handed_on(tree, last)
    )


def _keep_numbers(record: Record, name: str, pile: Pile) -> Fix | None:
    """Detach at the lines that put tensors into a container."""
    inside = {owner.path[len(pile.name) :] for owner in pile.owners}
    for run in _cells(record):
        found = detaching.kept_detached(run.source, name, inside)
        if not found or run.cell is None:
            continue
        first = found[0][0]
        new = " and ".join(short(edit[1][2:]) for _, edit in found[:2])
        more = f" and {len(found) - 2} more lines" if len(found) > 2 else ""
        text = f"Keep numbers, not graphs: write {new}{more} (In[{run.cell}], line {first})."
        free = not _needed(record, name, {(run.cell, line) for line, _ in found})
        edit = tuple(step for _, one in found for step in one)
        return Fix("detach", text + ("" if free else _UNLESS), free, (run.cell, first), _NONE, edit)
    return None


def carried_names(record: Record) -> set[str]:
    """Last names of what the cells compute from what it was: ``total``, ``h``, ``running_mean``."""
    found: set[str] = set()
    for run in _cells(record):
        tree = source.parse(run.source)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                value = {ast.unparse(n) for n in ast.walk(node.value) if isinstance(n, (ast.Name, ast.Attribute))}
                own = set(source.targets(node))
                found |= own if isinstance(node, ast.AugAssign) else own & value
            elif isinstance(node, (ast.For, ast.While)):
                found |= source.carried(node)
    return {name.rsplit(".", 1)[-1] for name in found}


def _cut_each_time(record: Record, pile: Pile) -> Fix | None:
    """``total += loss.detach()``; or, after the later of call and assignment, ``h = h.detach()``."""
    call, whole = pile.line.calls[-1], local(pile.name)
    last = source.last_name(whole)
    for run in _cells(record):
        statements = source.assigned_as(run.source, last)
        if not statements or run.cell is None or len(pile.paths) > 1:
            continue
        statement, target = _that_made(pile, run, statements)
        text = source.line_text(run.source, statement.lineno)
        edit = detaching.added_detached(text)
        here = f"In[{run.cell}], line {statement.lineno}"
        if edit:
            free = not _needed(record, last, {(run.cell, statement.lineno)})
            text = f"Write {short(edit[1][2:])} ({here}).{'' if free else _UNLESS}"
            return Fix("detach", text, free, (run.cell, statement.lineno), _NONE, edit)
        line = statement.lineno
        inside = source.function_at(run.source, line)
        place = at(call.place) if inside or call.place.outer_cell != run.cell else outer_at(call.place)
        if place is not None and inside != source.function_at(run.source, place[1]):
            place = None  # the call was made elsewhere
        if place is not None and place[0] == run.cell and place[1] > line:
            line = place[1]
        cut = _cut(record, pile, whole, target)
        if not cut:
            return None
        edit = edits.after(run.source, line, cut)
        text = f"Cut the graph each time: {short('; '.join(cut), 90)} after In[{run.cell}], line {line}."
        loop = source.loop_at(run.source, line)  # each pass makes it anew
        inside_loop = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else range(line + 1)
        free = not _needed(record, last, {(run.cell, one) for one in inside_loop})
        return Fix("detach", text + ("" if free else _UNLESS), free, (run.cell, line), _NONE, edit)
    return None


def _that_made(pile: Pile, run: CellRun, statements: list[tuple[ast.stmt, str]]) -> tuple[ast.stmt, str]:
    """Of the statements that assign the holder the one that made what it holds now, else the last."""
    place = pile.graph.place_of(pile.owners[0].node)
    for statement, target in statements:
        lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        if place is not None and place.cell == run.cell and place.line in lines:
            return statement, target
    return statements[-1]


def _cut(record: Record, pile: Pile, whole: str, target: str) -> list[str]:
    """Statements that detach what the holder has, in terms of where it is assigned: ``self.mean`` for ``net.mean``."""
    paths = [local(owner.path) for owner in pile.owners]
    if paths == [whole]:
        return [f"{target} = {target}.detach()"]
    cells = [run.source for run in _cells(record)]
    lines = detaching.detached(paths, cells, pile.owners)
    if whole != target and not all(line.startswith(whole) for line in lines):
        return []
    return [line.replace(whole, target) for line in lines] if all(path.startswith(whole) for path in paths) else []


def for_cycle(record: Record, call: BackwardCall, grads: tuple[str, ...]) -> tuple[Fix, ...]:
    """Fixes for leaves that refer to themselves through a `.grad` with a graph."""
    line, root = call.place.source.strip(), root_name(call)
    leaves = [grad[: -len(".grad")] for grad in grads if grad.endswith(".grad")]
    cell = next((run.source for run in _cells(record) if run.cell == call.place.cell), "")
    instead: edits.Edit = ()
    text = source.backward_root(line)
    if text and leaves:
        call_text = f"torch.autograd.grad({text}, [{', '.join(leaves)}], create_graph=True)"
        instead = edits.replaced(line, f"grads = {call_text}")
    drop = [f"{grad} = None" for grad in grads if detaching.is_code(grad.removesuffix(".grad"))]
    after = edits.after(cell, call.place.line, drop) if call.place.line is not None and drop else ()
    place = at(call.place)
    return (
        Fix(
            "autograd_grad_instead",
            f"Use `torch.autograd.grad({root}, ..., create_graph=True)` ({where(call.place)}): no `.grad` then.",
            True,
            place,
            "It costs nothing.",
            instead,
        ),
        Fix("set_grad_none", f"Set {names(grads)} to None after use.", True, place, "The gradients are gone.", after),
    )
