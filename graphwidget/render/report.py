"""The answer of `graphwidget explain`: calls, errors and findings as a JSON document or as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from graphwidget.model import BackwardCall, Finding, Fix, Place, bytes_text
from graphwidget.render.words import count

SCHEMA = 1
CellOf = Callable[[int | None], int | None]


def document(
    file: str,
    torch: str,
    errors: Iterable[dict[str, Any]],
    calls: Iterable[BackwardCall],
    findings: Iterable[Finding],
    cell_of: CellOf = lambda count: count,
) -> dict[str, Any]:
    """The JSON document (schema 1).

    Parameters
    ----------
    file, torch
        Name of the file, version of torch.
    errors
        What the cells raised: step, cell, line, type, message.
    cell_of
        Turns an execution count into the number of the file's cell.

    Notes
    -----
    `cell` counts the code cells of the file from 1, `line` counts from 1 inside the cell, `iteration`
    from 0. A call's cell and line are those of the innermost frame in a cell.
    """
    by_n = {call.n: call for call in calls}
    return {
        "schema": SCHEMA,
        "file": file,
        "torch": torch,
        "errors": list(errors),
        "calls": [_call(call, by_n, cell_of) for call in by_n.values()],
        "findings": [_finding(finding, by_n, cell_of) for finding in findings],
    }


def _call(call: BackwardCall, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any]:
    place = call.place
    return {
        "n": call.n,
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


def _freed_by(n: int | None, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any] | None:
    if n is None:
        return None
    call = by_n.get(n)
    place = call.place if call else Place(None, None)
    return {"n": n, "cell": cell_of(place.cell), "line": place.line}


def _finding(finding: Finding, by_n: dict[int, BackwardCall], cell_of: CellOf) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "call": finding.call,
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
    }


_SIGN = {"error": "✕", "warning": "!", "info": "i"}


def finding_lines(finding: Finding, fixes: int = 3) -> list[str]:
    """A finding as lines of text of at most 100 columns: headline, story, the path to the failing node, the fixes."""
    lines = _story(finding)
    for number, fix in enumerate(finding.fixes[:fixes], 1):
        lines += _fix_lines(fix, number, priced=True)
        lines += [f"       {line}" for line in fix.edit]
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


NOTE_LINES, NOTE_COLUMNS = 12, 100


def note(finding: Finding) -> str:
    """A finding as a note under an exception: at most 12 lines of at most 100 columns.

    The story and the first fix come whole as long as there is room; of the other fixes only the sentence.
    """
    story = _story(finding)
    for number, fix in enumerate(finding.fixes[:3], 1):
        block = _fix_lines(fix, number, priced=number == 1)
        if number == 1 and len(fix.edit) <= 4:
            block += [f"       {line}" for line in fix.edit]
        if len(story) + len(block) <= NOTE_LINES:
            story += block
    if len(story) > NOTE_LINES:
        story = [*story[: NOTE_LINES - 1], "  … more: %graphwidget explain"]
    return "\n".join(line if len(line) <= NOTE_COLUMNS else line[: NOTE_COLUMNS - 1] + "…" for line in story)


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        NOTE_COLUMNS,
        initial_indent=first,
        subsequent_indent=rest if rest is not None else " " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def call_line(call: BackwardCall) -> str:
    """One line of the table of calls."""
    place = call.place
    where = f"In[{place.cell}]:{place.line}" if place.cell is not None else place.outside
    loop = f" iteration {place.iteration}" if place.iteration is not None else ""
    if call.result == "raised":
        told = f"raised at {call.failed_node}" if call.failed_node else "raised"
        told += f", freed by call {call.freed_by + 1}" if call.freed_by is not None else ""
    else:
        ran, freed = count(call.executed_count, "node"), count(call.freed_slots, "saved tensor")
        told = f"ran {ran}, freed {freed} ({bytes_text(call.freed_bytes)})"
    return f"{call.n + 1:>4}  {where}{loop}  {call.place.source.strip()}  {told}"


def text(document_: dict[str, Any], calls: Iterable[BackwardCall], findings: Iterable[Finding]) -> str:
    """The document for people."""
    lines = [f"{document_['file']} · torch {document_['torch']}", ""]
    shown = list(calls)
    lines.append(f"{len(shown)} backward call" + ("" if len(shown) == 1 else "s"))
    lines.extend(call_line(call) for call in shown[:100])
    if len(shown) > 100:
        lines.append(f"      and {len(shown) - 100} more")
    for error in document_["errors"]:
        where = f"In[{error['step']}], line {error['line']}" if error["line"] else f"In[{error['step']}]"
        first = (error["message"].splitlines() or [""])[0]
        lines.append(f"{where} raised {error['type']}: {first[:100]}")
    found = list(findings)
    lines.append("")
    if found:
        lines.append(count(len(found), "finding"))
    else:
        lines.append("No finding: the error is of another kind." if document_["errors"] else "Nothing wrong.")
    for finding in found:
        lines.append("")
        lines.extend(finding_lines(finding))
    return "\n".join(lines) + "\n"
