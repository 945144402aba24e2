"""Which findings are about a value that has left the graph: more than one line may have let it."""

from __future__ import annotations

from graphwidget.model import BackwardCall, Finding, torch_messages

__all__ = ["depends_on_cuts", "failed_by_a_cut"]


def failed_by_a_cut(finding: Finding, call: BackwardCall | None) -> bool:
    """Whether a call failed because its root has no graph, or because no path leads from it to an input.

    Parameters
    ----------
    call
        The one that the finding is about.
    """
    error = call.error if call is not None and finding.kind == "refused" else None
    return finding.kind == "no_grad" or (error is not None and torch_messages.says(error, torch_messages.UNUSED))


def depends_on_cuts(finding: Finding, call: BackwardCall | None) -> bool:
    """The same; or nothing failed, and something does not train."""
    return finding.kind == "silent" or failed_by_a_cut(finding, call)
