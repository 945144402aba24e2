"""Ways out of a backward that met a saved tensor modified in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphwidget.analysis import edits, source
from graphwidget.analysis.fixes import Candidates, at, short, simulate
from graphwidget.analysis.rewriting import rerun
from graphwidget.analysis.story import Meeting, where
from graphwidget.analysis.surgery import with_nothing_stale
from graphwidget.model import BackwardCall, Fix, Record, Snapshot, Write

_COPY = "One more tensor of that size."


def for_inplace(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write | None, meeting: Meeting | None, tensor: str
) -> tuple[Fix, ...]:
    """Fixes for a call that met a saved tensor modified in place.

    Parameters
    ----------
    write
        The line that modified it, None: unknown.
    meeting
        With an earlier call over the same nodes, kept by retain_graph.
    tensor
        Its name.
    """
    if write is not None and (write.optimizer or _is_leaf(graph, tensor)):
        order = _after_a_step(record, call, graph, write, meeting)
    else:
        order = _after_a_write(record, call, graph, write, tensor)
    return tuple(fix for candidate in order if (fix := candidate()) is not None)


def _is_leaf(graph: Snapshot, path: str) -> bool:
    return any(path in leaf.paths for leaf in graph.leaves.values())


def _text(record: Record, cell: int | None) -> str:
    runs = [run for run in record.runs.values() if run.cell == cell]
    return runs[-1].source if runs else ""


def _after_a_step(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, meeting: Meeting | None
) -> Iterator[Callable[[], Fix | None]]:
    fresh = simulate(graph=with_nothing_stale(graph), call=call).ok is True
    if meeting is not None and not meeting.same_root and meeting.built_after:
        yield Candidates(meeting).detach
    elif meeting is not None and meeting.same_root:
        yield lambda: _forward_again(meeting, write, fresh)
    place, line = write.place, call.place.source.strip()
    if _comes_round(write, call):
        return  # the step belongs to an earlier pass: there is no later place for it
    plain = (place.cell, place.line) == (place.outer_cell, place.outer_line) and bool(line)
    moved = _whole(_text(record, place.cell), place.line) if plain and place.line is not None else []
    yield lambda: Fix(
        "zero_grad_or_step_order",
        f"Run every backward before {short(write.by)} ({where(place)}) changes the weights: "
        f"move it behind {where(call.place) or 'this call'}.",
        fresh,
        (place.cell, _first_line(_text(record, place.cell), place.line))
        if moved and place.cell is not None
        else at(place),
        "It costs nothing.",
        (*(f"- {one}" for one in moved), f"  {line}", *(f"+ {one}" for one in moved)) if moved else (),
    )
    if meeting is not None and not meeting.same_root and not meeting.built_after:
        yield Candidates(meeting).detach


def _comes_round(write: Write, call: BackwardCall) -> bool:
    """Whether the write stands behind the call in one loop."""
    a, b = write.place, call.place
    return a.run is not None and a.run == b.run and (a.outer_line or 0) >= (b.outer_line or 0)


def _unit(cell: str, line: int | None) -> list[source.Statement]:
    """The statement to move: the outermost one around a write that makes no sense without it (`with`, `for`)."""
    around = source.statements_at(cell, line) if line is not None else []
    return [s for s in around if source.is_small(s)][:1] or around[-1:]


def _whole(cell: str, line: int | None) -> list[str]:
    unit = _unit(cell, line)
    return edits.statement_text(cell, unit[0]) if unit else []


def _first_line(cell: str, line: int | None) -> int:
    unit = _unit(cell, line)
    return unit[0].lineno if unit else line or 0


def _forward_again(meeting: Meeting, write: Write, fresh: bool) -> Fix | None:
    plan = rerun(meeting, everything=True)
    sentence = f"Run the forward pass again after {short(write.by)}: it saves the new weights."
    place = plan.at if plan else at(meeting.graph.place_of(meeting.root_indices[0]))
    return Fix("recompute_in_loop", sentence, fresh, place, "One more forward pass.", plan.edit if plan else ())


def _after_a_write(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write | None, tensor: str
) -> Iterator[Callable[[], Fix | None]]:
    fresh = simulate(with_nothing_stale(graph), call).ok is True
    place = write.place if write is not None else None
    by = f"{short(write.by)} ({where(place)})" if write else "the in-place operation"
    cell = _text(record, place.cell) if place is not None else ""
    line = place.line if place is not None else None
    edit, spot = _rewritten(record, cell, line, write.by) if write is not None else ((), None)
    new = edit[1][2:].strip() if edit else ""
    sentence = f"Write {short(new)} instead of {by}." if new else f"Write to a new tensor instead of {by}."
    if spot is not None:
        sentence = f"Make it with `inplace=False` (In[{spot[0]}], line {spot[1]})."
    name = (edits.modified(write.by) if write is not None else None) or tensor

    def rewritten() -> Fix:
        return Fix("out_of_place", sentence, fresh, spot or at(place), _COPY, edit)

    def copied() -> Fix:
        return Fix(
            "clone_before_inplace",
            f"Modify a copy: `{name} = {name}.clone()` before {by}.",
            fresh,
            at(place),
            _COPY,
            edits.before(cell, line, [f"{name} = {name}.clone()"]) if line is not None else (),
        )

    reads_itself = write is not None and edits.reads_what_it_writes(write.by)
    if edit or reads_itself or write is None:
        yield rewritten
    if not reads_itself:
        yield copied


def _rewritten(
    record: Record, cell: str, line: int | None, statement: str
) -> tuple[edits.Edit, tuple[int, int] | None]:
    """The statement without its in-place part; for a module, the line that made it with `inplace=True`."""
    edit = edits.out_of_place(statement) or (edits.scattered(cell, line, statement) if line is not None else ())
    if edit:
        return edit, None
    tree = source.parse(statement)
    called = {name.split(".", 1)[0].split("[", 1)[0] for name in source.calls_in(tree)} if tree else set()
    for run in record.runs.values():
        for name in called:
            for made in source.assignments(run.source, name):
                text = source.line_text(run.source, made.lineno)
                if run.cell is not None and "inplace=True" in text:
                    return edits.replaced(text, text.replace("inplace=True", "inplace=False")), (run.cell, made.lineno)
    return (), None
