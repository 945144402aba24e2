"""An input that was computed anew: the root is made of what another call of the same function returned."""

from __future__ import annotations

from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import BackwardCall, Fix, Place, TensorRef

__all__ = ["made_again"]

_Found = tuple[str, Place, tuple[Fix, ...]]


def made_again(call: BackwardCall, asked: TensorRef | None, root: str, shown: str) -> _Found | None:
    """``image = synthesis(latents(z))``, and ``grad(image, latents(z))``: the same values, and another tensor."""
    graph = call.graph
    if graph is None or asked is None or asked.node < 0 or asked.is_leaf:
        return None
    own = graph.place_of(asked.node)
    if own is None or own.line is None:
        return None
    for index in sorted(below(graph, call), key=lambda one: -graph.seq[one]):
        place = graph.place_of(index)
        same = place is not None and (place.cell, place.line) == (own.cell, own.line)
        if place is None or not same or graph.name_of(index) != graph.name_of(asked.node):
            continue
        apart = _apart(own, place)
        if apart is not None:
            here, there = apart
            text = (
                f"No path leads from `{root}` to {shown}: {short(here.source)} ({where(here)}) computes it anew. "
                f"`{root}` is made of what {short(there.source)} ({where(there)}) computed in the same way: the values "
                "may be equal, and it is another tensor."
            )
            advice = f"Compute it once: keep what {where(there)} is given, and ask for the gradient of that."
            return text, here, (Fix("use_input", advice, False, at(here)),)
    return None


def _apart(one: Place, other: Place) -> tuple[Place, Place] | None:
    """The lines at which the ways to two places part, seen from outside; None: they are the same."""
    for here, there in zip((*one.stack, one), (*other.stack, other)):
        if (here.cell, here.line) != (there.cell, there.line):
            return here, there
    return None
