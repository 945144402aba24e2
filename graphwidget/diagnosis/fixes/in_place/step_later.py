"""A step that changed weights which a backward still needed: it moves behind that backward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.in_place.writes import another_write, works_without
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, short, source_line, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Fix, Place, Record, Snapshot, Write

__all__ = ["adds_to_its_gradients", "step_later"]


def step_later(record: Record, call: BackwardCall, graph: Snapshot, write: Write, mixes: bool) -> Fix | None:
    place = write.place
    line = source_line(place)
    works, other = works_without(
        record, call, graph, lambda found, _: [w for w in found if source_line(w.place) != line]
    )
    cell = Cells.of(record).text(place.cell)
    step = _step(cell, place.line)
    moved = _on_same_line(cell, step) if step is not None else []
    if (
        _read_before_call(record, call, write, moved)
        or _used_before_call(record, call, write)
        or _in_another_loop(record, call, write, step)
    ):
        return None  # its targets are read before the call; or it runs in each pass of a loop
    resets = _own_resets(record, call, write, moved)
    spot = at(place)
    edits: Edits = ()
    by_cell = (place.cell, place.line) == (place.outer_cell, place.outer_line)
    if step is not None and place.cell is not None and (by_cell or _in_one_function(place, call.place)):
        spot, edits = (place.cell, step.lineno), _moved(record, place.cell, moved, resets, call)
    by = (
        short("; ".join(map(ast.unparse, moved))) if step is not None and not hasattr(step, "body") else short(write.by)
    )
    price = "It costs nothing."
    if mixes:
        price = f"{short(write.by)} then takes the gradients of both, also those of {where(call.place) or 'this call'}."
    if mixes and re.search(r"\.step\([^)]", write.by):
        price += " Unless its closure clears them first."
    along = "".join(f", and {short(ast.unparse(s))} with it," for s in resets)
    how = f"move it{along} behind {where(call.place) or 'this call'}"
    second = _made_again(cell, call, step) if edits and not resets and moved == [step] else None
    if second is not None and step is not None and place.cell is not None:
        how = f"leave it out, as line {second.lineno} makes the step for both"
        edits = text_edit.remove(place.cell, cell, step)
    return Fix(
        "zero_grad_or_step_order",
        f"Run every backward before {by} ({where(place)}) changes the weights: {how}.{another_write(other)}",
        works and not mixes,
        spot,
        price,
        choice=mixes,
        edits=edits,
    )


def _made_again(text: str, call: BackwardCall, step: source.Statement | None) -> ast.stmt | None:
    """The same step once more behind the call, in its block, with no gradients cleared in between."""
    if step is None:
        return None
    for one in source.behind(text, step):
        if one.lineno > (call.place.line or 0):
            if ast.dump(one) == ast.dump(step):
                return one
            if any(source.last_name(name) == "zero_grad" for name in source.calls_in(one)):
                return None
    return None


def _in_one_function(a: Place, b: Place) -> bool:
    """Whether one call of a function of the program runs both lines."""
    same = (a.cell, a.function, list(map(at, a.stack))) == (b.cell, b.function, list(map(at, b.stack)))
    return bool(a.function) and same


def adds_to_its_gradients(graph: Snapshot, call: BackwardCall, write: Write) -> bool:
    """Whether the write uses gradients to which the call would also add."""
    if not write.optimizer and ".grad" not in write.by:
        return False
    inside = reachable(graph, (root.node for root in call.roots))
    return any(write.is_to(graph.leaves[i]) for i in inside if i in graph.leaves)


def _step(cell: str, line: int | None) -> source.Statement | None:
    """The statement to move: the outermost one around a write that makes no sense without it (`with`, `for`)."""
    around = source.statements_at(cell, line) if line is not None else []
    whole = [s for s in around if source.is_small(s)][:1] or around[-1:]
    if not whole or hasattr(whole[0], "body"):
        return whole[0] if whole else None
    side_by_side = source.beginning_at(cell, whole[0].lineno)
    return next((s for s in side_by_side if any(c.endswith(".step") for c in source.calls_in(s))), whole[0])


def _on_same_line(cell: str, step: source.Statement) -> list[source.Statement]:
    """A step, and the other statements on its line."""
    there = source.beginning_at(cell, step.lineno)
    return [s for s in there if _owner(s)] if _owner(step) and len(there) > 1 else [step]


def _in_another_loop(record: Record, call: BackwardCall, write: Write, step: source.Statement | None) -> bool:
    """Whether a loop around a step does not go around the call: ``for opt, loss in zip(opts, losses):``."""
    place, there = write.place, call.place
    cell = Cells.of(record).text(place.cell)
    around = source.loops_around(cell, step.lineno) if step is not None else []
    if place.cell != there.cell:
        return bool(around)
    return any(not loop.lineno < (there.line or 0) <= (loop.end_lineno or 0) for loop in around)


def _own_resets(
    record: Record, call: BackwardCall, write: Write, steps: list[source.Statement]
) -> list[source.Statement]:
    """Each `zero_grad` between some steps and the call that clears gradients which the moved steps need."""
    owners = set(map(_owner, steps))
    return [s for s, name in _resets(record, call, write, steps[0]) if name in owners] if steps else []


def _read_before_call(record: Record, call: BackwardCall, write: Write, steps: list[source.Statement]) -> bool:
    """Whether a line between some steps and the call, or the call's own, reads what the steps assign.

    ``hidden = emb(ctx)`` may be what changed a weight: behind the call it would be read before it is there.
    """
    assigned = {name for step in steps for name in source.targets(step)}
    cell, there = write.place.cell, call.place.cell
    runs = [run for _, run in sorted(record.runs.items()) if (write.place.run or 0) <= run.run <= (call.place.run or 0)]
    for run in runs if assigned else ():
        first = steps[-1].lineno if run.cell == cell else 0
        last = (call.place.line or 0) if run.cell == there else len(run.source.splitlines())
        between = source.between(run.source, first, last)
        if any(assigned & source.names_read(s) for s in between):
            return True
    return False


def _used_before_call(record: Record, call: BackwardCall, write: Write) -> bool:
    """Whether a line between a write and the call uses what the write has filled: ``target(x)`` after a copy to it.

    A step is meant for the next pass. What is copied to an object may be meant for the next line.
    """
    place, there = write.place, call.place
    if write.optimizer or ".grad" in write.by or place.cell != there.cell:
        return False
    holders = {re.match(r"(?:self\.)?\w+", local(path)) for path in write.paths}
    names = {found[0] for found in holders if found is not None}
    lines = source.between(Cells.of(record).text(place.cell), place.line or 0, (there.line or 0) - 1)
    clears = (s for s in lines if not any(called.endswith(".zero_grad") for called in source.calls_in(s)))
    return any(names & source.paths_read(s) for s in clears)


def _moved(
    record: Record, cell: int, steps: list[source.Statement], resets: list[source.Statement], call: BackwardCall
) -> Edits:
    """Move the steps behind the call, and behind them the statements that clear their gradients in between."""
    cells, there = Cells.of(record), at(call.place)
    if there is None:
        return ()
    text, target = cells.text(cell), cells.text(there[0])
    lines = [line for step in steps for line in _lines(text, step)]
    lines += [line for reset in resets for line in _lines(target, reset)]
    added = text_edit.insert_after(there[0], target, there[1], ["\n".join(lines)])
    if cell == there[0]:
        removed = text_edit.remove(cell, text, *steps, *resets)
    else:
        removed = (*text_edit.remove(cell, text, *steps), *text_edit.remove(there[0], target, *resets))
    return (*removed, *added) if added else ()


def _lines(text: str, statement: source.Statement) -> list[str]:
    """The lines of a statement; if it shares its line, the statement alone."""
    alone = len(source.beginning_at(text, statement.lineno)) < 2
    return text_edit.statement_lines(text, statement) if alone else [ast.unparse(statement)]


def _resets(
    record: Record, call: BackwardCall, write: Write, step: source.Statement | None
) -> Iterator[tuple[source.Statement, str]]:
    """The statements that clear gradients between a step and a call, in the call's cell, each with its owner."""
    cell, there = Cells.of(record).text(write.place.cell), Cells.of(record).text(call.place.cell)
    first = (step.end_lineno or step.lineno) if step is not None and there == cell else 0
    for statement in source.between(there, first, call.place.line or 0):
        for called in source.calls_in(statement):
            if called.endswith(".zero_grad"):
                yield statement, called.removesuffix(".zero_grad")


def _owner(step: source.Statement | None) -> str:
    """The optimizer of a statement that is a step."""
    called = source.calls_in(step) if step is not None else ()
    return next((name.removesuffix(".step") for name in called if name.endswith(".step")), "")
