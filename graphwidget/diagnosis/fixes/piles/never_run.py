"""A fix for graphs that pile up and that no backward has run: compute them without one.

An agent acts, and stores what it computed for later: the loss is computed anew from what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Fix, Kind, Owner, Place, Record, SlotState, Snapshot

__all__ = ["without_graph"]

MOST_GRAPHS = 10  # of calls
MOST = 60  # nodes of which it is asked whether a call ran them
_OF_MODULES = ("forward", "__call__")


def without_graph(record: Record, graph: Snapshot, owners: Sequence[Owner], inside: frozenset[int]) -> Fix | None:
    """``with torch.no_grad():`` around the line outside of modules that computes what is kept; None: a call ran some.

    Parameters
    ----------
    owners, inside
        What is kept, and the nodes that it leads to.
    """
    places = [place for owner in owners if (place := graph.place_of(owner.node)) is not None]
    computing = [_computing(place) for place in places]
    if not computing or len({at(one) for one in computing}) != 1 or _some_ran(record, graph, inside):
        return None
    place = computing[0]
    spot = at(place)
    text = Cells.of(record).text(spot[0]) if spot is not None else ""
    found = syntax.statements_at(text, spot[1])[-1:] if spot is not None else []
    if not found or hasattr(found[0], "body") or spot is None or _serves_a_call(record, spot):
        return None
    edits = in_block(spot[0], text, "with torch.no_grad():", found[0], found[0])
    advice = (
        f"No backward has run what {short(place.source)} ({where(place)}) computes: compute it under "
        "`with torch.no_grad():`. Nothing is saved then."
    )
    return Fix("no_grad_or_item", advice, False, spot, "No gradient flows back through it.", edits=edits)


def _computing(place: Place) -> Place:
    """The innermost line that is not in a module's own code."""
    frames = (place, *reversed(place.stack))
    return next((one for one in frames if (one.function or "").rpartition(".")[2] not in _OF_MODULES), place)


def _serves_a_call(record: Record, spot: tuple[int, int]) -> bool:
    """Whether what a line computes led to the root of a call: another result of it is trained."""
    graphs = {id(call.graph): call.graph for call in record.calls if call.graph is not None}
    for graph in list(graphs.values())[-MOST_GRAPHS:]:
        for place in {place for i in range(len(graph)) if (place := graph.place_of(i)) is not None}:
            if spot in map(at, (place, *place.stack)):
                return True
    return False


def _some_ran(record: Record, graph: Snapshot, inside: frozenset[int]) -> bool:
    ran = {uid for call in record.calls for uid in call.executed}
    nodes = [i for i in inside if graph.kind[i] != Kind.ACCUMULATE]
    if any(graph.uid[i] in ran for i in nodes):
        return True
    if any(graph.slot_state[slot] == SlotState.FREED for i in nodes for slot in graph.slots_of(i)):
        return True
    counted = [call for call in record.calls if call.distances]
    return any(call.ran_number(graph.seq[i]) for i in sorted(nodes)[-MOST:] for call in counted)
