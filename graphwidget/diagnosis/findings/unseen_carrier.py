"""A state that no variable in sight holds: a local one of a generator that waits carries it from pass to pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at
from graphwidget.model import Fix, Place, Record

__all__ = ["unseen_carrier"]


def unseen_carrier(record: Record, made: Place | None, fixes: Sequence[Fix]) -> tuple[str, Place] | None:
    """The variable that a loop computes from its previous value, and its line; None: none, or no fix detaches it.

    Parameters
    ----------
    made
        The line that made the old part, with the lines that were running around it: ``state = step(state)``.
    """
    for place in (made, *reversed(made.stack)) if made is not None else ():
        spot = at(place)
        text = Cells.of(record).text(spot[0]) if spot is not None else ""
        found = syntax.statements_at(text, spot[1])[-1:] if spot is not None else []
        loop = syntax.loop_at(text, spot[1]) if found and spot is not None else None
        carried = syntax.carried(loop) if loop is not None else set()
        for name in syntax.targets(found[0]) if loop is not None else ():
            if name in carried and any(_detaches(fix, name) for fix in fixes):
                return name, place
    return None


def _detaches(fix: Fix, name: str) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\.detach\(", edit.new) for edit in fix.edits)
