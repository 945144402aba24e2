"""Two moments compared, as the page shows it: sentences, rows by variable, and marks for the nodes of one picture."""

from __future__ import annotations

from typing import Any

from graphwidget.capture.ghosts import merged
from graphwidget.model import Comparison, Snapshot, bytes_text

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


def picture_of(comparison: Comparison) -> Snapshot:
    """The later moment, with the nodes that have died since the earlier one as ghosts."""
    return merged(comparison.after, [comparison.before])
