"""Graphs that are kept without use: they pile up in a holder or in a cycle, or the notebook itself keeps them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from graphwidget.diagnosis.findings import notebook_keeps, piles, unrun
from graphwidget.diagnosis.fixes.piles import cycles
from graphwidget.diagnosis.reuse.passes.loops import ENOUGH
from graphwidget.diagnosis.wording import names
from graphwidget.engine.what_if import bytes_held, reachable
from graphwidget.model import BackwardCall, Finding, Kind, Owner, Record, bytes_text

MOST_HOLDERS = 40  # names examined one by one


def find(record: Record) -> Iterator[Finding]:
    """Yield findings for all graphs that pile up in a record."""
    yield from _cycles(record)
    found = list(piles.find(record))
    yield from found
    yield from unrun.find(record, {path for finding in found for path in finding.carriers})
    yield from notebook_keeps.find(record)


def _cycles(record: Record) -> Iterator[Finding]:
    """`backward(create_graph=True)` gives leaves a `.grad` that refers back to them; C++ holds both for good."""
    lines: dict[tuple[int | None, str | None, int | None], list[BackwardCall]] = defaultdict(list)
    for call in record.calls:
        if call.create_graph and call.api == "backward" and call.result == "ok":
            lines[(call.place.cell, call.place.file, call.place.line)].append(call)
    for calls in lines.values():
        if len(calls) < ENOUGH:
            continue
        kept = [call for call in calls if call.n in record.cyclic]
        if len(kept) < ENOUGH:  # the same leaves each time: their old .grad is replaced, or added to
            yield from _added_up(record, calls)
            continue
        paths = dict.fromkeys(path for call in kept for path in record.cyclic[call.n] if path)
        grads = tuple(f"{path}.grad" for path in paths) or ("a leaf's .grad",)
        last = calls[-1]
        yield Finding(
            "leak",
            "warning",
            f"`backward(create_graph=True)` ran {len(calls)} times on new leaves. Each leaf and its `.grad` refer to "
            "each other through the graph. Python's garbage collector cannot free them.",
            f"Each call leaves a cycle behind: {names(grads)} {'keeps' if len(grads) == 1 else 'keep'} the graph.",
            last.n,
            carriers=grads,
            fixes=cycles.for_cycle(record, last, grads),
        )


def _added_up(record: Record, calls: list[BackwardCall]) -> Iterator[Finding]:
    """Yield findings for a `.grad` that is not reset between calls with create_graph: its graph grows each time."""
    graph, starts = record.snapshot, [call.newest_seq for call in calls]
    grown: list[Owner] = []
    kept: set[int] = set()
    for owner in graph.owners[:MOST_HOLDERS]:
        if not owner.path.endswith(".grad") or not graph.name_of(owner.node).startswith("AddBackward"):
            continue
        inside = {i for i in reachable(graph, [owner.node]) if graph.kind[i] != Kind.ACCUMULATE}
        if len({bisect_right(starts, graph.seq[i]) for i in inside}) > ENOUGH:
            grown.append(owner)
            kept |= inside
    if not grown:
        return
    grads = tuple(owner.path for owner in grown)
    add = "adds" if len(grads) == 1 else "add"
    yield Finding(
        "leak",
        "warning",
        f"{names(grads)} {add} up over {len(calls)} calls. With `create_graph=True` each sum keeps the graphs of all "
        f"before. Now that is {len(kept)} nodes and {bytes_text(bytes_held(graph, kept))} of saved tensors.",
        f"Graphs of {len(calls)} calls pile up in {names(grads)}.",
        calls[-1].n,
        node=graph.name_of(grown[0].node),
        node_uid=graph.uid[grown[0].node],
        carriers=grads,
        bytes=bytes_held(graph, kept),
        uids=tuple(graph.uid[owner.node] for owner in grown),
        fixes=cycles.for_cycle(record, calls[-1], grads),
    )
