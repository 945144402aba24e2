"""Ways to stop graphs from piling up, as edits of the lines that keep them."""

from __future__ import annotations

import ast

from graphwidget.analysis import detaching, edits, source
from graphwidget.analysis.story import root_name
from graphwidget.analysis.words import at, names, outer_at, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Owner, Place, Record

_NONE = "No gradient flows back through it."


def _cells(record: Record) -> list[CellRun]:
    """Each cell once, as it was last run, latest first."""
    latest = {run.cell_id or run.run: run for _, run in sorted(record.runs.items())}
    return sorted(latest.values(), key=lambda run: -run.run)


def for_pile(
    record: Record, name: str, owners: list[Owner], call: BackwardCall, place: Place | None, alone: bool
) -> tuple[Fix, ...]:
    """Fixes for graphs that `name` keeps; `alone`: nothing else does."""
    container = len(owners) > 1 or "[" in owners[0].path
    keep = _keep_numbers(record, name, owners) if container else _cut_each_time(record, name, call)
    if keep is None:
        line = f" ({where(place)})" if where(place) else ""
        keep = Fix(
            "detach",
            f"Keep numbers, not graphs: use `.detach()` for what `{name}` keeps{line}.",
            False,
            at(place),
            _NONE,
        )
    end = Fix(
        "del_variable", f"Let go of it when done: `del {name}`.", True, None, "It costs nothing.", (f"+ del {name}",)
    )
    return (keep, end) if alone and detaching.is_code(name) else (keep,)


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


def _keep_numbers(record: Record, name: str, owners: list[Owner]) -> Fix | None:
    """Detach at the lines that put tensors into a container."""
    inside = {owner.path[len(name) :] for owner in owners}
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


def is_total(record: Record, name: str) -> bool:
    """Whether a name is what a line adds to: ``total += loss``."""
    assigned = (found for run in _cells(record) if (found := source.assigned_as(run.source, name.rsplit(".", 1)[-1])))
    return any(isinstance(statement, ast.AugAssign) for statement, _ in next(assigned, ()))


def _cut_each_time(record: Record, name: str, call: BackwardCall) -> Fix | None:
    """``total += loss.detach()``; or, after the later of call and assignment, ``h = h.detach()``."""
    last = name.rsplit(".", 1)[-1]
    for run in _cells(record):
        statements = source.assigned_as(run.source, last)
        if not statements or run.cell is None:
            continue
        statement, target = statements[-1]
        text = source.line_text(run.source, statement.lineno)
        edit = detaching.added_detached(text)
        here = f"In[{run.cell}], line {statement.lineno}"
        if edit:
            free = not _needed(record, name, {(run.cell, statement.lineno)})
            text = f"Write {short(edit[1][2:])} ({here}).{'' if free else _UNLESS}"
            return Fix("detach", text, free, (run.cell, statement.lineno), _NONE, edit)
        line = statement.lineno
        inside = source.function_at(run.source, line)
        place = at(call.place) if inside or call.place.outer_cell != run.cell else outer_at(call.place)
        if place is not None and inside != source.function_at(run.source, place[1]):
            place = None  # the call was made elsewhere
        if place is not None and place[0] == run.cell and place[1] > line:
            line = place[1]
        edit = edits.after(run.source, line, [f"{target} = {target}.detach()"])
        text = f"Cut the graph each time: `{target} = {target}.detach()` after In[{run.cell}], line {line}."
        loop = source.loop_at(run.source, line)  # each pass makes it anew
        inside_loop = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else range(line + 1)
        free = not _needed(record, name, {(run.cell, one) for one in inside_loop})
        return Fix("detach", text + ("" if free else _UNLESS), free, (run.cell, line), _NONE, edit)
    return None


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
        Fix("set_grad_none", f"Set {names(grads)} to None after use.", True, place, "It costs nothing.", after),
    )
