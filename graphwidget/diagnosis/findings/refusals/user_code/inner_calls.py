"""Errors of calls that the user's code made while the engine ran another call: in a hook, or in a Function's backward.

The error of the inner call is explained as that of any other call. Two reasons are its own: what it needed was freed by
an earlier inner call, and the engine runs a Function's backward without recording.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from graphwidget.diagnosis.fixes.rerun.rerun import first_step
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, opening, root_name, short, when, where
from graphwidget.model import BackwardCall, Finding, Fix, InnerCall, Place, Record

__all__ = ["of_call"]

MOST_LINES = 20  # of a function that are put under `enable_grad`


def of_call(
    record: Record,
    call: BackwardCall,
    reason_of: Callable[[BackwardCall], str | None],
    explain: Callable[[str, Record, BackwardCall], Finding | None],
) -> Finding | None:
    """Return the finding of a call that passed on the error of a call inside it; None: it did not, or unknown.

    `explain` returns the explanation of a call for a reason, where it has one.
    """
    inner = call.inner
    reason = reason_of(inner.call) if inner is not None else None
    if inner is None or reason is None or inner.call.error != call.error:
        return None
    if reason == "freed" and inner.freed_at is not None:
        return _freed(record, call, inner, inner.freed_at)
    if reason == "no_grad" and not inner.grad_enabled:
        return _unrecorded(record, call, inner)
    found = explain(reason, _as_then(record, inner.call), inner.call)
    return replace(found, text=f"{_lead(record, call, inner)} {found.text}") if found is not None else None


def _as_then(record: Record, call: BackwardCall) -> Record:
    """The record in which the writes that came before an inner call come before the call around it, too."""
    inside = call.n + 1  # the calls that had begun by then
    writes = (
        replace(one, after_calls=call.n) if one.after_calls == inside and 0 <= one.number <= call.newest_seq else one
        for one in record.writes
    )
    return replace(record, writes=tuple(writes))


def _lead(record: Record, call: BackwardCall, inner: InnerCall) -> str:
    """The sentence that says which line started the engine inside the call."""
    place = inner.call.place
    function = f"`{place.function}`" if place.function else "code of its own"
    return (
        f"{opening(call.n)} ({when(record, call.place)}) runs {function}, which starts the engine again: "
        f"{short(place.source or root_name(inner.call))} ({where(place)})."
    )


def _freed(record: Record, call: BackwardCall, inner: InnerCall, freed_at: Place) -> Finding:
    """What an inner call needed was freed by an inner call before it."""
    node, place = inner.call.failed_node or "a node", inner.call.place
    same = where(freed_at) == where(place)
    who = "That line ran before, and" if same else f"{short(freed_at.source)} ({where(freed_at)})"
    made = f" ({where(inner.call.failed_place)})" if inner.call.failed_place is not None else ""
    by = "the same line" if same else short(freed_at.source)
    return _finding(
        call,
        inner,
        f"A call inside {opening(call.n)} needs saved tensors that {by} freed before.",
        f"{_lead(record, call, inner)} {who} freed what {node}{made} had saved.",
        Fix(
            "retain_graph_earlier_call",
            f"Keep what {where(freed_at)} frees: pass `retain_graph=True` there.",
            False,
            at(freed_at),
            "What it saved stays until nothing holds that graph any more.",
            edits=_retaining(record, freed_at),
        ),
        kind="second_backward",
    )


def _retaining(record: Record, place: Place) -> Edits:
    spot, cells = at(place), Cells.of(record)
    statement = cells.statement(spot) if spot is not None else None
    if statement is None or spot is None:
        return ()
    return text_edit.with_keyword(spot[0], cells.text(spot[0]), statement, "retain_graph=True")


def _unrecorded(record: Record, call: BackwardCall, inner: InnerCall) -> Finding | None:
    """An inner call on what was computed where nothing is recorded."""
    place = inner.call.place
    spot = at(place)
    text = Cells.of(record).text(spot[0]) if spot is not None else ""
    around = source.function_at(text, spot[1]) if spot is not None else None
    if spot is None or around is None:
        return None
    function = around[1]
    root = root_name(inner.call)
    made = [one for one in function.body if root in _assigned(one) and one.lineno < spot[1]]
    if not made:
        return None
    begun = first_step(function)
    first, last = begun.lineno, made[-1].end_lineno or made[-1].lineno
    lines = text.splitlines()[first - 1 : last]
    block = [
        "with torch.enable_grad():",
        *(f"    {line[begun.col_offset :]}" if line.strip() else line for line in lines),
    ]
    moved = [one for one in function.body if first <= one.lineno <= last]
    plain = len(lines) <= MOST_LINES and not any(map(_has_long_text, moved))
    edits = text_edit.replace_lines(spot[0], text, first, last, block) if plain else ()
    return _finding(
        call,
        inner,
        f"`{root}` has no graph: {opening(call.n)} runs `{place.function}` without recording.",
        f"{_lead(record, call, inner)} The engine runs such code with grad mode off, unless the call has "
        f"`create_graph=True`. So `{source.line_text(text, made[-1].lineno)}` makes a "
        "tensor without a graph.",
        Fix(
            "remove_no_grad",
            f"Compute `{root}` under `with torch.enable_grad():`.",
            False,
            (spot[0], first),
            "Its graph is built in each backward.",
            edits=edits,
        ),
        kind="no_grad",
    )


def _assigned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _has_long_text(statement: ast.stmt) -> bool:
    """Whether a statement has a text of several lines, which an indentation would change."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno != node.end_lineno
        for node in ast.walk(statement)
    )


def _finding(call: BackwardCall, inner: InnerCall, headline: str, text: str, *fixes: Fix, kind: str) -> Finding:
    return Finding(
        kind,  # type: ignore[arg-type]
        "error",
        text,
        headline,
        call.n,
        node=inner.call.failed_node or "",
        node_uid=inner.call.failed_uid,
        made_at=inner.call.failed_place or inner.call.place,
        failed_at=inner.call.place,
        cause=inner.freed_at or inner.call.place,
        names=(root_name(inner.call),),
        freed_by=call.n if inner.freed_at is not None else None,
        fixes=fixes,
    )
