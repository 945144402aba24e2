"""Places, types and sizes as text: defined once, so that text, errors and labels agree."""

from __future__ import annotations

from graphwidget.model import BackwardCall, Finding, Place, spot_text

__all__ = [
    "call_text",
    "callers_text",
    "count",
    "function_text",
    "op_name",
    "ordinal",
    "place_text",
    "spot_text",
    "whole_text",
]


def op_name(name: str) -> str:
    """A node's name as it is drawn: without the ``torch::autograd::`` of the engine's own nodes."""
    return name.removeprefix("torch::autograd::")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    suffix = "th" if 11 <= number % 100 <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def place_text(place: Place | None) -> str:
    """``In[2]:4``, with the iteration and the outer cell where they say more; empty where nothing is known."""
    if place is None or place.line is None:
        return place.spot if place is not None else ""
    text = place.spot
    if caller := callers_text(place):
        text += f", called from {caller}"
    if place.iteration is not None:
        text += f", iteration {place.iteration}"
    return text


def function_text(place: Place) -> str:
    """``proj/model.py:15 in Encoder.forward``; of a line in a cell, or outside of functions, the line alone."""
    return f"{place.spot} in {place.function}" if place.file is not None and place.function else place.spot


def callers_text(place: Place) -> str:
    """The line that called the function of a place, and the line of the cell that ran: ``proj/train.py:26 ← In[3]:1``.

    Of a function in a cell, only the line of the cell that ran. Empty: the place is that line itself.
    """
    spot = (place.outer_cell, place.outer_file, place.outer_line)
    if place.outer_line is None or spot == (place.cell, place.file, place.line):
        return ""
    outer = spot_text(place.outer_cell, place.outer_line, place.outer_file)
    if place.file is None or len(place.stack) < 2:
        return outer
    return f"{place.stack[-1].spot} ← {outer}"


def call_text(n: int, call: BackwardCall | None) -> str:
    """``call 1 (In[2]:4, iteration 0)``: people count calls from 1, `n` counts from 0."""
    where = place_text(call.place) if call else ""
    return f"call {n + 1} ({where})" if where else f"call {n + 1}"


def whole_text(finding: Finding) -> str:
    """The text of a finding; of an error that is not explained with the whole message."""
    return f"{finding.text} Its message: {finding.unexplained}" if finding.unexplained else finding.text
