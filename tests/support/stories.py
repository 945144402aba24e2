"""A drawing with a story: two calls, the second one raises."""

from __future__ import annotations

from build import call, reused_product

from graphwidget.model import Drawing, Event, Finding, Fix

__all__ = ["story"]


def story() -> Drawing:
    finding = Finding(
        kind="second_backward",
        severity="error",
        headline="Call 2 needs saved tensors that call 1 freed.",
        text="`y` is built once, in In[1]:6.",
        call=1,
        node="MvBackward0",
        node_uid=4,
        path=("loss", "y", "MvBackward0"),
        fixes=(Fix("recompute_in_loop", "Compute y inside the loop: y = t @ a", verified=True),),
    )
    calls = (call(0, graph=reused_product()), call(1, result="raised", failed_uid=4, freed_by=0, boundary=(4,)))
    events = (Event(0, "call", 2, call=0), Event(1, "cell", 2, ok=False))
    return Drawing(reused_product(), calls, events, (finding,), 1, "2.13.0")
