"""The answer of ``graphwidget explain``: the calls of a whole program and the findings, as JSON or as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwidget.model import (
    FROM_OUTSIDE,
    BackwardCall,
    CellError,
    CellRun,
    Drawing,
    Finding,
    Fix,
    Place,
    TextEdit,
    Trial,
    Verdict,
    cut,
)
from graphwidget.render import dot
from graphwidget.render.calls import call_lines
from graphwidget.render.patch import patch
from graphwidget.render.report import cell_text, finding_lines, is_exit, summary, verdict_lines, wrapped
from graphwidget.render.words import count, whole_text

__all__ = ["SCHEMA", "ProgramRun", "diff_text", "dot_text", "json_text", "text"]

SCHEMA = 2
_ERROR_COLUMNS = 160
CellOf = Callable[[int | None], int | None]


@dataclass(frozen=True)
class ProgramRun:
    """A program that has run.

    Attributes
    ----------
    file, torch
        Name of the file, version of torch.
    errors
        The errors of the cells.
    calls, findings
        The recorded calls, and the findings about them.
    verdict
        The errors without a finding.
    drawing
        Makes the picture of the last moment. It takes time, and not every format has one.
    cell_of
        Turns an execution count into the number of the file's cell.
    target, argv
        What was to be run, and the program's ``sys.argv[1:]``.
    exit
        The status that the program itself would have exited with; None: unknown.
    texts
        The files that ran, by their paths relative to the working directory, as they are on the disk.
    notes
        Sentences on what all this was read from.
    not_tried
        Why no fix was tried, as a sentence.
    """

    file: str
    torch: str
    errors: Sequence[CellError]
    calls: Sequence[BackwardCall]
    findings: Sequence[Finding]
    verdict: Verdict
    drawing: Callable[[], Drawing]
    cell_of: CellOf = lambda number: number
    target: str = ""
    argv: Sequence[str] = ()
    exit: int | None = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    not_tried: str = ""


def diff_text(run: ProgramRun) -> str:
    """The first fix that can be made in files, as a patch for ``git apply``; empty if there is none."""
    return patch(run.findings, run.texts).rstrip("\n")


def json_text(run: ProgramRun) -> str:
    """The JSON document (schema 2).

    Notes
    -----
    A place is an object with `file` (relative to the working directory where it lies below it; null for a cell),
    `cell` (null for a file), `line`, `function` and `source`, the line as it is written. `cell` counts the code
    cells of the file from 1, `line` counts from 1 inside the cell, `iteration` from 0, calls (`n`, `call`) from
    1. A call's cell and line are those of the innermost frame in a cell.

    A fix's `status` is ``advice``, ``simulated`` or ``tried``, and `tried` what came of its trial, or null: `ok` (null:
    it decided nothing), `seconds`, `passes` (of the loop, or calls, that ran further), `why`. A fix that changes what
    the program means keeps its status however well it ran. `not_tried` says why no fix was tried.
    """
    by_n = {call.n: call for call in run.calls}
    cell_of, verdict = run.cell_of, run.verdict
    document = {
        "schema": SCHEMA,
        "file": run.file,
        "torch": run.torch,
        "target": run.target,
        "argv": list(run.argv),
        "exit": run.exit,
        "notes": list(run.notes),
        "errors": [
            {"step": error.step, "cell": error.cell, "line": error.line, "type": error.type, "message": error.message}
            | _places_of(error.place, cell_of)
            for error in run.errors
        ],
        "calls": [_call(call, by_n, cell_of) for call in by_n.values()],
        "findings": [_finding(finding, by_n, cell_of) for finding in run.findings],
        "unexplained": [
            *({"call": call.n + 1, **_raised(call.place, call, cell_of)} for call in verdict.unexplained),
            *({"call": None, **_raised(one.error_place, one, cell_of)} for one in verdict.open_cells),
        ],
        "summary": summary(verdict),
        "not_tried": run.not_tried or None,
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def text(run: ProgramRun) -> str:
    """The answer for people."""
    head = [f"{run.file} · torch {run.torch}", *run.notes]
    lines = [*head, "", count(run.verdict.calls, "backward call"), *call_lines(run.calls)]
    for error in run.errors:
        first = next(iter(error.message.strip().splitlines()), "")
        lines.append(cut(f"{_ending(error)}: {first}" if first else _ending(error), _ERROR_COLUMNS))
    lines += ["", *verdict_lines(run.verdict)]
    for finding in run.findings:
        lines += ["", *finding_lines(finding)]
    lines += ["", *wrapped(run.not_tried)] if run.not_tried else []
    return "\n".join(lines)


def _ending(error: CellError) -> str:
    """``proj/train.py:26 raised ValueError``; where only code raised that is not the user's own, no line is named."""
    known = error.number is not None or error.place is not None
    where = cell_text(error.number, error.line, error.place) if known else ""
    if is_exit(error.type):
        return f"Ended{f' at {where}' if where else ''} by {error.type}"
    if error.type in FROM_OUTSIDE:
        return f"Stopped{f' at {where}' if where else ''} by {error.type}"
    return f"{where or 'The program'} raised {error.type}"


def dot_text(run: ProgramRun) -> str:
    """The graph at the end of the program in Graphviz' language."""
    return dot.to_dot(run.drawing().snapshot).rstrip("\n")


def _call(call: BackwardCall, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any]:
    place = call.place
    return {
        "n": call.n + 1,
        "cell": cell_of(place.cell),
        "line": place.line,
        "outer_cell": cell_of(place.outer_cell),
        "outer_line": place.outer_line,
        "iteration": place.iteration,
        "api": call.api,
        "retain_graph": call.retain_graph,
        "create_graph": call.create_graph,
        "roots": list(call.root_names),
        "root_vars": [root.path for root in call.roots],
        "forecast": call.forecast,
        "result": call.result,
        "failed_node": call.failed_node,
        "freed_by": _freed_by(call.freed_by, by_n, cell_of),
        "executed": call.executed_count,
        "freed_bytes": call.freed_bytes,
        **_places_of(place, cell_of),
    }


def _places_of(place: Place | None, cell_of: CellOf) -> dict[str, Any]:
    """The innermost line, and the whole stack, outermost first."""
    here = _place(place, cell_of)
    callers = [_place(one, cell_of) for one in place.stack] if place is not None and here is not None else []
    return {"place": here, "stack": [one for one in (*callers, here) if one is not None]}


def _place(place: Place | None, cell_of: CellOf) -> dict[str, Any] | None:
    """A line; null where its cell or file is unknown."""
    if place is None or place.line is None or (place.cell is None and place.file is None):
        return None
    cell, source = cell_of(place.cell), place.source.strip()
    return {"file": place.file, "cell": cell, "line": place.line, "function": place.function, "source": source}


def _raised(place: Place | None, what: BackwardCall | CellRun, cell_of: CellOf) -> dict[str, Any]:
    at = _cell_and_line(place, cell_of, outer=True) or [None, None]
    return {"cell": at[0], "line": at[1], "type": what.error_type, "message": what.error}


def _freed_by(n: int | None, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any] | None:
    if n is None:
        return None
    call = by_n.get(n)
    place = call.place if call else Place(None, None)
    return {"n": n + 1, "cell": cell_of(place.cell), "line": place.line}


def _finding(finding: Finding, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "call": finding.call + 1 if finding.call is not None else None,
        "node": finding.node,
        "made_at": _cell_and_line(finding.made_at, cell_of),
        "headline": finding.headline,
        "text": whole_text(finding),
        "carriers": list(finding.carriers),
        "freed_by": _freed_by(finding.freed_by, by_n, cell_of),
        "tensor": finding.tensor,
        "modified_at": _cell_and_line(finding.modified_at, cell_of, outer=True),
        "bytes": finding.bytes,
        "path": list(finding.path),
        "fixes": [_fix(fix, cell_of) for fix in finding.fixes],
        "cause": _place(finding.cause, cell_of),
        "places": {
            "made_at": _place(finding.made_at, cell_of),
            "freed_by": _place(finding.freed_at, cell_of),
            "modified_at": _place(finding.modified_at, cell_of),
            "stored_at": _place(finding.stored_at, cell_of),
            "cut_at": _place(finding.cut_at, cell_of),
        },
        "names": list(finding.names),
    }


def _cell_and_line(place: Place | None, cell_of: CellOf, *, outer: bool = False) -> list[int | None] | None:
    if place is None or place.cell is None:
        return None
    if outer and place.outer_cell is not None:
        return [cell_of(place.outer_cell), place.outer_line]
    return [cell_of(place.cell), place.line]


def _fix(fix: Fix, cell_of: CellOf) -> dict[str, Any]:
    at = [cell_of(fix.at[0]), fix.at[1]] if fix.at else None
    return {
        "id": fix.id,
        "text": fix.text,
        "verified": fix.verified,
        "status": fix.status,
        "tried": _trial(fix.tried),
        "at": at,
        "price": fix.price,
        "edit": list(fix.edit),
        "edits": [_edit(edit, cell_of) for edit in fix.edits],
    }


def _trial(tried: Trial | None) -> dict[str, Any] | None:
    if tried is None:
        return None
    return {"ok": tried.ok, "seconds": tried.seconds, "passes": tried.passes, "why": tried.why}


def _edit(edit: TextEdit, cell_of: CellOf) -> dict[str, Any]:
    cell = cell_of(edit.cell) if edit.cell is not None else None
    return {"file": edit.file, "cell": cell, "start": list(edit.start), "end": list(edit.end), "new": edit.new}
