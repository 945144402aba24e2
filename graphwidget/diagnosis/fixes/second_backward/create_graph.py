"""Build a graph for the gradient, too: ``torch.autograd.grad(..., create_graph=True)`` in the earlier call."""

from __future__ import annotations

from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.wording import at
from graphwidget.model import Fix


def propose(case: Case) -> Fix:
    """For a loss that uses the gradient which the earlier call returned."""
    return Fix(
        id="create_graph",
        text=f"The loss uses this gradient: pass `create_graph=True` in {earlier_call.named(case.reuse.earlier)}.",
        verified=case.works_if_line_retains,
        at=at(case.reuse.earlier.place),
        price="It keeps the graph, and builds one for the gradient.",
        edits=earlier_call.with_keyword(case.setting, "create_graph=True"),
    )
