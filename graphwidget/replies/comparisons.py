"""Two moments compared, as the page shows it: sentences, rows by variable, and marks for the nodes of one picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from graphwidget.capture.ghosts import merged
from graphwidget.model import KEEPS_MEMORY, Comparison, SlotState, Snapshot, bytes_text

__all__ = ["compared", "picture_of"]

MAX_VARIABLES = 40


def compared(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON data."""
    after, shown = comparison.after, comparison.variables[:MAX_VARIABLES]
    return {
        "summary": comparison.summary(),
        "held": f"{bytes_text(comparison.held_before)}, then {bytes_text(comparison.held_after)}",
        "variables": [
            {"name": one.name, "status": one.status, "added": one.added, "freed": one.freed, "died": one.died}
            for one in shown
        ],
        "more": len(comparison.variables) - len(shown),
        "added": [node.uid for node in comparison.added],
        "died": [node.uid for node in comparison.died],
        "freed": sorted({after.uid[after.node_with(saved.slot)] for saved in comparison.freed}),
    }


def picture_of(comparison: Comparison, between: Iterable[Snapshot] = ()) -> Snapshot:
    """The later moment, with the nodes that have died since the earlier one as ghosts.

    `between`: graphs of moments between the two, which know which call freed what. What was still held when its node
    was last seen was freed with the node.
    """
    drawn = merged(comparison.after, [comparison.before, *between])
    states = bytearray(drawn.slot_state)
    for index, ghost in enumerate(drawn.ghost):
        for slot in drawn.slots_of(index) if ghost else ():
            if KEEPS_MEMORY[states[slot]]:
                states[slot] = SlotState.FREED
    return replace(drawn, slot_state=states)
