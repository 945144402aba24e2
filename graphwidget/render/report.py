"""The answer of `graphwidget explain`: calls, errors and findings as a JSON document or as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, TextEdit, Verdict, cut, cut_edit
from graphwidget.render.calls import call_lines
from graphwidget.render.words import call_text, count

SCHEMA = 1
_ERROR_COLUMNS = 160
CellOf = Callable[[int | None], int | None]


def document(
    file: str,
    torch: str,
    errors: Iterable[dict[str, Any]],
    calls: Iterable[BackwardCall],
    findings: Iterable[Finding],
    verdict: Verdict,
    cell_of: CellOf = lambda count: count,
) -> dict[str, Any]:
    """The JSON document (schema 1).

    Parameters
    ----------
    file, torch
        Name of the file, version of torch.
    errors
        What the cells raised: step, cell, line, type, message.
    verdict
        What the findings leave open.
    cell_of
        Turns an execution count into the number of the file's cell.

    Notes
    -----
    `cell` counts the code cells of the file from 1, `line` counts from 1 inside the cell, `iteration`
    from 0, calls (`n`, `call`) from 1. A call's cell and line are those of the innermost frame in a cell.
    """
    by_n = {call.n: call for call in calls}
    return {
        "schema": SCHEMA,
        "file": file,
        "torch": torch,
        "errors": list(errors),
        "calls": [_call(call, by_n, cell_of) for call in by_n.values()],
        "findings": [_finding(finding, by_n, cell_of) for finding in findings],
        "unexplained": [
            *({"call": call.n + 1, **_raised(call.place, call, cell_of)} for call in verdict.unexplained),
            *({"call": None, **_raised(run.error_place, run, cell_of)} for run in verdict.open_cells),
        ],
        "summary": summary(verdict),
    }


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
    }


def _raised(place: Place | None, what: BackwardCall | CellRun, cell_of: CellOf) -> dict[str, Any]:
    at = _at(place, cell_of, outer=True) or [None, None]
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
        "made_at": _at(finding.made_at, cell_of),
        "headline": finding.headline,
        "text": finding.text,
        "carriers": list(finding.carriers),
        "freed_by": _freed_by(finding.freed_by, by_n, cell_of),
        "tensor": finding.tensor,
        "modified_at": _at(finding.modified_at, cell_of, outer=True),
        "bytes": finding.bytes,
        "path": list(finding.path),
        "fixes": [_fix(fix, cell_of) for fix in finding.fixes],
    }


def _at(place: Place | None, cell_of: CellOf, *, outer: bool = False) -> list[int | None] | None:
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
        "at": at,
        "price": fix.price,
        "edit": list(fix.edit),
        "edits": [_edit(edit, cell_of) for edit in fix.edits],
    }


def _edit(edit: TextEdit, cell_of: CellOf) -> dict[str, Any]:
    cell = cell_of(edit.cell) if edit.cell is not None else None
    return {"file": edit.file, "cell": cell, "start": list(edit.start), "end": list(edit.end), "new": edit.new}


_SIGN = {"error": "✕", "warning": "!", "info": "i"}


def finding_lines(finding: Finding, fixes: int = 3) -> list[str]:
    """A finding as lines of text of at most 100 columns: headline, story, the path to the failing node, the fixes."""
    lines = _story(finding)
    for number, fix in enumerate(finding.fixes[:fixes], 1):
        lines += _fix_lines(fix, number, priced=True)
        lines += _edit_lines(fix)
    return lines


def _story(finding: Finding) -> list[str]:
    lines = _wrapped(finding.headline or finding.kind, f"{_SIGN[finding.severity]} ")
    lines += _wrapped(finding.text, "  ") if finding.text else []
    if len(finding.path) > 1:
        shown = [f"[{step}]" if step in finding.carriers else step for step in finding.path]
        lines.append("  " + " → ".join(shown))
    return lines


def _fix_lines(fix: Fix, count: int, *, priced: bool) -> list[str]:
    checked = "" if fix.verified else " (not checked by simulation)"
    price = f" {fix.price}" if fix.price and priced else ""
    return _wrapped(f"{fix.text}{checked}{price}", f"  {count}. ", "     ")


def _edit_lines(fix: Fix) -> list[str]:
    return [f"       {line}" for line in cut_edit(fix.edit, NOTE_COLUMNS - 7)]


NOTE_LINES, NOTE_COLUMNS = 12, 100


def note(finding: Finding) -> str:
    """A finding as a note under an exception: at most 12 lines of at most 100 columns.

    The story and the first fix come whole as long as there is room; of the other fixes only the sentence.
    """
    story = _story(finding)
    for number, fix in enumerate(finding.fixes[:3], 1):
        block = _fix_lines(fix, number, priced=number == 1)
        if number == 1 and len(fix.edit) <= 4:
            block += _edit_lines(fix)
        if len(story) + len(block) <= NOTE_LINES:
            story += block
    if len(story) > NOTE_LINES:
        story = [*story[: NOTE_LINES - 1], "  … more: %graphwidget explain"]
    return "\n".join(cut(line, NOTE_COLUMNS) for line in story)


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        NOTE_COLUMNS,
        initial_indent=first,
        subsequent_indent=rest if rest is not None else " " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def text(
    file: str,
    torch: str,
    errors: Iterable[tuple[int | None, int | None, str, str]],
    calls: Iterable[BackwardCall],
    findings: Iterable[Finding],
    verdict: Verdict,
) -> str:
    """The same for people. `errors` are (execution count, line, type, message)."""
    lines = [f"{file} · torch {torch}", "", count(verdict.calls, "backward call"), *call_lines(calls)]
    for number, line, type_, message in errors:
        first = next(iter(message.strip().splitlines()), "")
        lines.append(cut(f"{_cell(number, line)} raised {type_}" + (f": {first}" if first else ""), _ERROR_COLUMNS))
    lines += ["", *verdict_lines(verdict)]
    for finding in findings:
        lines += ["", *finding_lines(finding)]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------ what was looked at


def verdict_lines(verdict: Verdict) -> list[str]:
    """The errors that are not explained, each with its whole message, and last what was looked at."""
    lines: list[str] = []
    for call in verdict.unexplained:
        lines += _unexplained("C" + call_text(call.n, call)[1:], call.error_type, call.error)
    for run in verdict.open_cells:
        lines += _unexplained(_cell_of(run), run.error_type, run.error)
    return [*lines, summary(verdict)]


def summary(verdict: Verdict) -> str:
    """One line: ``No finding. 12 backward calls, all ran.`` Nothing in it says that nothing is wrong."""
    parts = [(count(verdict.findings, "finding") if verdict.findings else "No finding") + ".", _calls_told(verdict)]
    open_ = len(verdict.unexplained) + len(verdict.open_cells)
    if open_:
        parts.append(f"{count(open_, 'error')} {'is' if open_ == 1 else 'are'} not explained yet.")
    if verdict.other_cells:
        raised = list(dict.fromkeys(f"{run.error_type} ({_cell_of(run)})" for run in verdict.other_cells))
        more = f" and {len(raised) - 3} more" if len(raised) > 3 else ""
        parts.append(f"Raised outside of any backward call: {', '.join(raised[:3])}{more}.")
    return " ".join(parts)


def _calls_told(verdict: Verdict) -> str:
    calls = count(verdict.calls, "backward call")
    if not verdict.calls:
        told = "No backward call was recorded."
    elif verdict.remembered < verdict.calls:
        told = f"{calls}; of the {verdict.remembered} that are remembered, {verdict.raised or 'none'} raised."
    elif verdict.raised:
        told = f"{calls}, {verdict.raised} raised."
    else:
        told = f"{calls}, {'which' if verdict.calls == 1 else 'all'} ran."
    return told + (
        f" {verdict.refused} more {'was' if verdict.refused == 1 else 'were'} refused." * bool(verdict.refused)
    )


def _unexplained(where: str, type_: str | None, message: str | None) -> list[str]:
    head = f"? {where} raised {type_ or 'an error'}, which is not explained yet. Its message:"
    whole = [line for part in (message or "").splitlines() for line in _wrapped(part, "    ") or [""]]
    return [*_wrapped(head, "", "  "), *whole, ""]


def _cell_of(run: CellRun) -> str:
    place = run.error_place
    return _cell(run.cell, place.outer_line if place is not None and place.outer_line is not None else None)


def _cell(number: int | None, line: int | None) -> str:
    where = f"In[{number}]" if number is not None else "A cell"
    return f"{where}, line {line}" if line is not None else where
