"""Two faults, one behind the other: a fix that leads to the next error, joined with the fix of that error.

Or graphs that piled up in one place, and pile up in another where the first lets go of them.

The edits of the second are of the text that the first has written. Together they are one change of the program as it
is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from graphwidget.diagnosis.fixes import CHOICES
from graphwidget.diagnosis.source import text_edit
from graphwidget.model import Fix, TextEdit
from graphwidget.trials.account import Next
from graphwidget.trials.attempt import Ran
from graphwidget.trials.rerun import CannotEdit, edits_by_text, text_at

__all__ = ["joined"]


def joined(ran: Ran, first: Fix, after: Next) -> Fix | None:
    """Both changes as one fix; None where they cannot be joined, or the second changes what the program means."""
    if after.id in CHOICES or not first.edits:
        return None
    number_of = {ran.cell_of(run.cell): run.cell for run in ran.record.runs.values() if run.cell is not None}
    try:
        one = edits_by_text(ran.rerun, first.edits, ran.cell_of)
        two = edits_by_text(ran.rerun, after.edits, lambda number: number)
        edits: list[TextEdit] = []
        shown: list[str] = []
        texts = dict.fromkeys((*one, *two))
        for where in texts:
            text = text_at(ran.rerun, where)
            between = text_edit.apply(text, one.get(where, ()))
            whole = text_edit.apply(between, two.get(where, ()))
            place = (None, where) if isinstance(where, str) else (number_of[where], None)
            own = text_edit.between(text, whole, *place)
            edits += own
            named = (
                [f"  {where}:" if isinstance(where, str) else f"  In[{number_of[where]}]:"] if len(texts) > 1 else []
            )
            shown += [*named, *text_edit.shown(text, own)]
    except (CannotEdit, KeyError, ValueError):
        return None
    return replace(
        first,
        text=f"{first.text} Then {'the next error comes' if after.error else 'this is left'}: {after.headline} "
        f"So also: {_without_places(after.text)}",
        price=" ".join(dict.fromkeys(filter(None, (first.price, after.price)))),
        edit=tuple(shown),
        edits=tuple(edits),
        starves=tuple(dict.fromkeys((*first.starves, *after.starves))),
        verified=False,
        tried=None,
    )


def _without_places(text: str) -> str:
    """A fix in the middle of a sentence, without lines of the edited text: the program's own have other numbers."""
    text = re.sub(r" \((?:In\[\d+\], line \d+|[^()\s]+:\d+)[^()]*\)", "", text)
    return f"{text[:1].lower()}{text[1:]}"
