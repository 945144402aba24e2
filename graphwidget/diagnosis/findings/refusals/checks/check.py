"""A check of PyTorch's: by which words it is known, what is to be said, and what cures it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from graphwidget.diagnosis.findings.refusals.checks.edits import Edit

__all__ = ["Check"]

Kind = Literal["refused", "no_grad"]


class Check(NamedTuple):
    """A check of PyTorch's. `{line}` in its headline is the line that raised; `{node}` the operation, or the line.

    `makers`: functions and keywords by which a program asks for what is checked. The only such call is the cause.
    `edit`: what writes the change of the fix into the program, if the text shows where.
    """

    words: tuple[str, ...]
    headline: str
    why: str
    fix: tuple[str, str]
    kind: Kind = "refused"
    makers: tuple[str, ...] = ()
    edit: Edit | None = None
