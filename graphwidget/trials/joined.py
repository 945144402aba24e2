"""Two faults, one behind the other: a fix that leads to the next error, joined with the fix of that error.

Or graphs that piled up in one place, and pile up in another where the first lets go of them.

The edits of the second are of the text that the first has written. Together they are one change of the program as it
is. Where they pass, the second may do without the first, which then only led to the right place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphwidget.diagnosis.fixes import CHOICES
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.moved_edits import moved_back
from graphwidget.diagnosis.wording import number
from graphwidget.model import Fix, TextEdit
from graphwidget.trials.account import Next
from graphwidget.trials.attempt import Ran
from graphwidget.trials.rerun import CannotEdit, edits_by_text, text_at

__all__ = ["joined", "second_alone"]


def joined(ran: Ran, first: Fix, after: Next) -> Fix | None:
    """Both changes as one fix; None where they cannot be joined, or the second changes what the program means."""
    if after.choice or after.id in CHOICES or not first.edits:
        return None
    try:
        one, two = _by_text(ran, first, after)
        texts = {where: text_at(ran.rerun, where) for where in (*one, *two)}
        edits = {
            where: text_edit.between(
                text,
                text_edit.apply(text_edit.apply(text, one.get(where, ())), two.get(where, ())),
                *_place(ran, where),
            )
            for where, text in texts.items()
        }
    except (CannotEdit, KeyError, ValueError):
        return None
    if any(_repeats_itself(edit.new) for own in edits.values() for edit in own):
        return None  # the first did not help where it was put, and the same once more would not
    return replace(
        first,
        text=f"{first.text} Then {'the next error comes' if after.error else 'this is left'}: "
        f"{_without_later_calls(after.headline, ran.begun)} So also: {_without_places(after.text)}",
        price=" ".join(dict.fromkeys(filter(None, (first.price, _without_calls(after.price))))),
        edit=_shown(ran, texts, edits),
        edits=tuple(edit for own in edits.values() for edit in own),
        starves=tuple(dict.fromkeys((*first.starves, *after.starves))),
        verified=False,
        tried=None,
    )


def _repeats_itself(text: str) -> bool:
    """Whether lines are followed by the same lines."""
    half, rest = divmod(len(lines := text.splitlines()), 2)
    return bool(lines) and not rest and lines[:half] == lines[half:]


def second_alone(ran: Ran, first: Fix, after: Next) -> Fix | None:
    """The second change without the first, of the program as it is; None: it changes what the first has written."""
    try:
        one, two = _by_text(ran, first, after)
        texts = {where: text_at(ran.rerun, where) for where in two}
        moved = {where: moved_back(text, one.get(where, ()), two[where]) for where, text in texts.items()}
        edits: dict[int | str, Sequence[TextEdit]] = {}
        for where, own in moved.items():
            if own is None:
                return None
            cell, file = _place(ran, where)
            edits[where] = [replace(edit, cell=cell, file=file) for edit in own]
            text_edit.apply(texts[where], edits[where])
    except (CannotEdit, KeyError, ValueError):
        return None
    text = _without_places(after.text)
    whole = tuple(edit for own in edits.values() for edit in own)
    first_of = whole[0] if whole else None
    spot = (first_of.cell, first_of.start[0]) if first_of is not None and first_of.cell is not None else None
    return Fix(
        after.id,
        f"{text[:1].upper()}{text[1:]}",
        at=spot,
        price=_without_calls(after.price),
        edit=_shown(ran, texts, edits),
        edits=whole,
        starves=after.starves,
    )


def _by_text(
    ran: Ran, first: Fix, after: Next
) -> tuple[dict[int | str, list[TextEdit]], dict[int | str, list[TextEdit]]]:
    """The edits of both by the text that they change."""
    return edits_by_text(ran.rerun, first.edits, ran.cell_of), edits_by_text(ran.rerun, after.edits, lambda at: at)


def _place(ran: Ran, where: int | str) -> tuple[int | None, str | None]:
    """The cell by the number in the record, or the file."""
    if isinstance(where, str):
        return None, where
    numbers = {ran.cell_of(run.cell): run.cell for run in ran.record.runs.values() if run.cell is not None}
    return numbers[where], None


def _shown(ran: Ran, texts: Mapping[int | str, str], edits: Mapping[int | str, Sequence[TextEdit]]) -> tuple[str, ...]:
    """What the edits change, under the names of their texts if there are several."""
    shown: list[str] = []
    for where, own in edits.items():
        cell, file = _place(ran, where)
        shown += [f"  {file}:" if file is not None else f"  In[{cell}]:"] if len(edits) > 1 else []
        shown += text_edit.shown(texts[where], own)
    return tuple(shown)


def _without_calls(price: str) -> str:
    """A price without the line of a call: it has another number in the edited text."""
    return re.sub(r" from (?:In\[\d+\], line \d+|\S+\.py:\d+)", " from that call", price)


def _without_later_calls(headline: str, begun: int) -> str:
    """A headline without the numbers of calls that only the trial made: nothing says which calls these are."""
    later = re.findall(r"[\u2460-\u2469]|\b[Cc]all \d+", headline)
    later = [one for one in dict.fromkeys(later) if one.lower() not in {number(n) for n in range(begun)}]
    for at, one in enumerate(later):
        headline = re.sub(rf"{one}(?!\d)", "another later call" if at else "a later call", headline)
    return f"{headline[:1].upper()}{headline[1:]}"


def _without_places(text: str) -> str:
    """A fix in the middle of a sentence, without lines of the edited text: the program's own have other numbers."""
    text = re.sub(r" \((?:In\[\d+\], line \d+|[^()\s]+:\d+)[^()]*\)", "", text)
    return f"{text[:1].lower()}{text[1:]}"
