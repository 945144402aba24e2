"""Findings as text: in full, as a note under a traceback; and the errors without a finding."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from graphwidget.model import FROM_OUTSIDE, CellRun, Finding, Fix, Place, Verdict, cut, cut_edit
from graphwidget.render.words import count

__all__ = ["cell_text", "finding_lines", "is_exit", "note", "summary", "verdict_lines", "wrapped"]

EXIT_COLUMNS = 70  # of what a program says when it exits
_SIGN = {"error": "✕", "warning": "!", "info": "i"}


def finding_lines(finding: Finding, fixes: int = 3) -> list[str]:
    """A finding as lines of text: headline, story, the path to the failing node, the fixes."""
    lines = _story(finding)
    if finding.unexplained:
        lines += ["  Its message:", *_message(finding.unexplained)]
    for number, fix in enumerate(finding.fixes[:fixes], 1):
        lines += _fix_lines(fix, number, priced=True)
        lines += _edit_lines(fix)
    return lines


def _story(finding: Finding) -> list[str]:
    lines = wrapped(finding.headline or finding.kind, f"{_SIGN[finding.severity]} ")
    lines += wrapped(finding.text, "  ") if finding.text else []
    if len(finding.path) > 1:
        shown = [f"[{step}]" if step in finding.carriers else step for step in finding.path]
        lines.append("  " + " → ".join(shown))
    return lines


def _fix_lines(fix: Fix, count: int, *, priced: bool) -> list[str]:
    checked = "" if fix.verified or fix.tried is not None else " (not checked by simulation)"
    price = f" {fix.price}" if fix.price and priced else ""
    tried = f" {fix.tried.sentence}" if fix.tried is not None else ""
    return wrapped(f"{fix.text}{checked}{price}{tried}", f"  {count}. ", "     ")


def _edit_lines(fix: Fix) -> list[str]:
    files = tuple(dict.fromkeys(edit.file for edit in fix.edits if edit.file is not None))
    heads = [f"--- {file}" for file in files] if len(files) == 1 else []
    return [f"       {line}" for line in (*heads, *cut_edit(fix.edit, NOTE_COLUMNS - 7))]


NOTE_LINES, NOTE_COLUMNS = 14, 100
TEXT_COLUMNS = 84  # as wide as an output is in a notebook of 900 pixels; a wider line would be broken twice


def note(finding: Finding, more: str = "%graphwidget explain") -> str:
    """A finding as a note under an exception: at most 14 lines of at most 84 columns, and of code 100.

    The story and the first fix come whole as long as there is room; of the other fixes only the sentence. `more` is
    the command that tells all.
    """
    story = _story(finding)
    for number, fix in enumerate(finding.fixes[:3], 1):
        block = _fix_lines(fix, number, priced=number == 1)
        if number == 1 and len(fix.edit) <= 4:
            block += _edit_lines(fix)
        if len(story) + len(block) <= NOTE_LINES:
            story += block
    if len(story) > NOTE_LINES:
        story = [*story[: NOTE_LINES - 1], f"  … more: {more}"]
    return "\n".join(cut(line, NOTE_COLUMNS) for line in story)


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Text as lines; `first` and `rest` are what the first line, and each further one, begins with."""
    return textwrap.wrap(
        text,
        TEXT_COLUMNS,
        initial_indent=first,
        subsequent_indent=rest if rest is not None else " " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- errors without a finding ----------------------------------------------------------------------------


def verdict_lines(verdict: Verdict) -> list[str]:
    """The errors without any finding, each with its whole message; the last line says what was examined."""
    lines: list[str] = []
    for run in verdict.open_cells:
        if not run.through_backward:
            lines += _unexplained(_cell_of(run), run.error_type, run.error)
    return [*lines, summary(verdict)]


def summary(verdict: Verdict) -> str:
    """One line: ``No finding. 12 backward calls, all ran.`` Nothing in it says that nothing is wrong."""
    parts = [(count(verdict.findings, "finding") if verdict.findings else "No finding") + ".", _calls_text(verdict)]
    open_ = len(verdict.unexplained) + len(verdict.open_cells)
    if open_:
        parts.append(f"{count(open_, 'error')} {'is' if open_ == 1 else 'are'} not explained yet.")
    others = [run for run in verdict.other_cells if run.error_type not in FROM_OUTSIDE]
    raised = [f"{run.error_type}{_in_brackets(run)}" for run in others]
    if raised:
        parts.append(f"Raised outside of any backward call: {_listed(raised)}.")
    stopped = [run for run in verdict.other_cells if run.error_type in FROM_OUTSIDE and not is_exit(run.error_type)]
    if stopped:
        parts.append(f"Stopped by {_listed([f'{run.error_type}{_in_brackets(run)}' for run in stopped])}.")
    exits = [run for run in verdict.other_cells if is_exit(run.error_type)]
    if exits:
        parts.append(f"Ended by {_listed([exit_text(run.error or '') + _in_brackets(run) for run in exits])}.")
    return " ".join(parts)


def is_exit(error_type: str | None) -> bool:
    """Whether an error is ``sys.exit()``: it ends a program, and says nothing of what is wrong."""
    return error_type == "SystemExit"


def exit_text(message: str) -> str:
    """``SystemExit: 5``, ``SystemExit: no data``."""
    return cut(": ".join(["SystemExit", *message.strip().splitlines()[:1]]), EXIT_COLUMNS)


def _listed(texts: Iterable[str]) -> str:
    """The first three different ones, and how many more there are."""
    different = list(dict.fromkeys(texts))
    more = f" and {len(different) - 3} more" if len(different) > 3 else ""
    return ", ".join(different[:3]) + more


def _in_brackets(run: CellRun) -> str:
    """Where a run raised, if that is known."""
    return f" ({_cell_of(run)})" if run.cell is not None or run.error_place is not None else ""


def _calls_text(verdict: Verdict) -> str:
    calls = count(verdict.calls, "backward call")
    if not verdict.calls:
        said = "No backward call was recorded."
    elif verdict.remembered < verdict.calls:
        said = f"{calls}; of the {verdict.remembered} that are remembered, {verdict.raised or 'none'} raised."
    elif verdict.raised:
        said = f"{calls}, {verdict.raised} raised."
    else:
        said = f"{calls}, {'which' if verdict.calls == 1 else 'all'} ran."
    return said + (
        f" {verdict.refused} more {'was' if verdict.refused == 1 else 'were'} refused." * bool(verdict.refused)
    )


def _unexplained(where: str, type_: str | None, message: str | None) -> list[str]:
    head = f"? {where} raised {type_ or 'an error'}, which is not explained yet. Its message:"
    return [*wrapped(head, "", "  "), *_message(message or ""), ""]


def _message(text: str) -> list[str]:
    """An error's message, with its own lines."""
    return [line for part in text.splitlines() for line in wrapped(part, "    ") or [""]]


def _cell_of(run: CellRun) -> str:
    place = run.error_place
    return cell_text(run.cell, place.outer_line if place is not None and place.outer_line is not None else None, place)


def cell_text(number: int | None, line: int | None, place: Place | None = None) -> str:
    """``In[2], line 4``; ``proj/train.py:26``, if the place is in a file and the code that ran is no cell."""
    if number is None and place is not None and place.file is not None:
        return place.spot
    where = f"In[{number}]" if number is not None else "A cell"
    return f"{where}, line {line}" if line is not None else where
