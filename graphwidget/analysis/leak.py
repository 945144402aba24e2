"""Graphs that pile up: kept by a container, by a running total, by a cycle, or by the notebook itself.

A graph piles up when parts made in three or more iterations, in each of which a backward call has
already run, are still owned. A list that is filled first and used by one call afterwards is no leak.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphwidget.analysis.fixes import names, size
from graphwidget.analysis.surgery import reachable
from graphwidget.model import BackwardCall, Finding, Fix, Kind, Owner, Place, Record, SlotState, Snapshot

ENOUGH = 3  # iterations before we speak up
Pass = tuple[int | None, int | None]  # (run of a cell, iteration)
_KEPT = (SlotState.HELD, SlotState.STALE, SlotState.PACKED)


def find(record: Record) -> Iterator[Finding]:
    """Everything that piles up in a record."""
    yield from _cycles(record)
    yield from _kept_by_variables(record)
    yield from _kept_by_notebook(record)
    yield from _kept_by_traceback(record)


def _pass_of(place: Place | None) -> Pass | None:
    return (place.run, place.iteration) if place is not None and place.run is not None else None


def _passes_with_calls(calls: Iterable[BackwardCall]) -> set[Pass]:
    """Iterations in which a backward ran that was not a step of a higher-order gradient."""
    made = (_pass_of(call.place) for call in calls if not call.create_graph and call.result != "running")
    return {one for one in made if one is not None}


def holder(path: str) -> str:
    """The variable or attribute to which a path's elements belong: ``temp`` for ``temp[3]``."""
    return path.split("[", 1)[0]


def _kept_by_variables(record: Record) -> Iterator[Finding]:
    graph = record.snapshot
    finished = _passes_with_calls(record.calls)
    if len(finished) < ENOUGH:
        return
    groups: dict[str, list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        if owner.kind not in ("out", "traceback"):
            groups[holder(owner.path)].append(owner)
    told: set[int] = set()
    for name, owners in sorted(groups.items(), key=lambda item: -len(item[1])):
        starts = {owner.node for owner in owners}
        inside = reachable(graph, starts)
        passes = {one for i in inside if (one := _pass_of(graph.place_of(i))) in finished}
        if len(passes) < ENOUGH or starts <= told:
            continue
        told |= inside
        yield _pile(graph, name, owners, inside, len(passes))


def _pile(graph: Snapshot, name: str, owners: list[Owner], inside: set[int], passes: int) -> Finding:
    nodes = sum(graph.kind[i] != Kind.ACCUMULATE for i in inside)
    kept = bytes_held(graph, inside)
    several = len(owners) > 1
    first = min(owners, key=lambda owner: (len(owner.path), owner.path))
    place = graph.place_of(first.node)
    where = f" (In[{place.cell}], line {place.line})" if place is not None and place.cell is not None else ""
    element = "each tensor it keeps" if several else f"`{name}`"
    advice = (
        f"Keep numbers, not graphs: append `.detach()`, or `.item()` for a scalar, to `{name}`{where}."
        if several
        else f"Add the number, not the graph: `.detach()` or `.item()` where `{name}` is updated{where}."
    )
    return Finding(
        "leak",
        "warning",
        f"Each iteration leaves about {nodes // passes} nodes and {size(kept // passes)} of saved tensors behind, "
        f"kept by `{name}`: {element} refers to the graph that made it, after its backward has run.",
        f"Graphs of {passes} iterations pile up in `{name}`.",
        node=graph.name_of(first.node),
        node_uid=graph.uid[first.node],
        made_at=place,
        carriers=(name,),
        bytes=kept,
        uids=tuple(graph.uid[owner.node] for owner in owners[:50]),
        fixes=(
            Fix("detach", advice, True, _at(place), "No gradient flows back through it."),
            Fix("del_variable", f"Let go of it when done: `del {name}`.", True, None, "None."),
        ),
    )


def _at(place: Place | None) -> tuple[int, int] | None:
    return (place.cell, place.line) if place is not None and place.cell is not None and place.line is not None else None


def bytes_held(graph: Snapshot, nodes: Iterable[int]) -> int:
    """Bytes of saved tensors that these nodes hold, once per storage."""
    seen: set[int] = set()
    total = 0
    for index in nodes:
        for slot in graph.slots_of(index):
            storage = graph.slot_storage[slot]
            if graph.slot_state[slot] in _KEPT and storage not in seen:
                total += graph.slot_bytes[slot] if storage < 0 else graph.storages[storage].bytes
                if storage >= 0:
                    seen.add(storage)
    return total


def _cycles(record: Record) -> Iterator[Finding]:
    """`backward(create_graph=True)` gives leaves a `.grad` that refers back to them; C++ holds both for good."""
    lines: dict[tuple[int | None, int | None], list[BackwardCall]] = defaultdict(list)
    for call in record.calls:
        if call.create_graph and call.api == "backward" and call.result == "ok":
            lines[(call.place.cell, call.place.line)].append(call)
    for calls in lines.values():
        leaves = {leaf for call in calls for leaf in call.reached_uids}
        if len(calls) < ENOUGH or len(leaves) < ENOUGH:
            continue  # the same leaves each time: their old .grad is replaced
        last = calls[-1]
        grads = tuple(f"{path}.grad" for path in last.reached) or ("a leaf's .grad",)
        yield Finding(
            "leak",
            "warning",
            f"`backward(create_graph=True)` ran {len(calls)} times on new leaves. Each leaf and its `.grad` refer to each "
            "other through the graph; Python's garbage collector cannot free them.",
            f"Each call leaves a cycle behind: {names(grads)} keeps its own graph.",
            last.n,
            carriers=grads,
            fixes=(
                Fix(
                    "autograd_grad_instead",
                    "Use `torch.autograd.grad(..., create_graph=True)`: it leaves `.grad` alone.",
                    True,
                    _at(last.place),
                    "None.",
                ),
                Fix("set_grad_none", f"Set {names(grads)} to None after use.", True, _at(last.place), "None."),
            ),
        )


def _kept_by_notebook(record: Record) -> Iterator[Finding]:
    """Nodes that a variable owned once and that only `Out` and `_` keep now."""
    graph = record.snapshot
    by_node: dict[int, list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        by_node[owner.node].append(owner)
    for index, owners in by_node.items():
        name = record.outlived.get(graph.uid[index])
        if name is None or any(owner.kind != "out" for owner in owners):
            continue
        paths = tuple(sorted((o.path for o in owners), key=lambda p: (not p.startswith("Out"), len(p), p)))
        kept = bytes_held(graph, reachable(graph, [index]))
        yield Finding(
            "leak",
            "warning",
            f"`{name}` is gone, but IPython keeps what a cell displayed: {names(paths)}. "
            f"Its graph stays, with {size(kept)} of saved tensors.",
            f"{names(paths)} keep the graph of `{name}`.",
            node=graph.name_of(index),
            node_uid=graph.uid[index],
            made_at=graph.place_of(index),
            carriers=paths,
            bytes=kept,
            uids=(graph.uid[index],),
            fixes=(
                Fix(
                    "del_variable", f"Let IPython forget it: `%xdel {name}` instead of `del`, or `%reset -f out`.", True
                ),
                Fix("no_display", "End the line with `;`, or display `.detach()`: then nothing is kept.", True),
            ),
        )


def _kept_by_traceback(record: Record) -> Iterator[Finding]:
    """Graphs with held saved tensors that only the frames of the last traceback keep."""
    graph = record.snapshot
    kinds: dict[int, set[str]] = defaultdict(set)
    for owner in graph.owners:
        kinds[owner.node].add(owner.kind)
    elsewhere = reachable(graph, (node for node, found in kinds.items() if found != {"traceback"}))
    only = {node for node, found in kinds.items() if found == {"traceback"}} - elsewhere
    kept = bytes_held(graph, reachable(graph, only) - elsewhere)
    if not kept:
        return
    paths = tuple(dict.fromkeys(o.path for o in graph.owners if o.node in only))
    explained = any(call.result == "raised" for call in record.calls)
    first = min(only)
    yield Finding(
        "leak",
        "info" if explained else "warning",
        f"The last exception's traceback keeps the local variables of the function that raised, and with them "
        f"{size(kept)} of saved tensors: {names(paths)}.",
        "sys.last_traceback keeps a graph.",
        node=graph.name_of(first),
        node_uid=graph.uid[first],
        made_at=graph.place_of(first),
        carriers=paths,
        bytes=kept,
        uids=tuple(graph.uid[i] for i in sorted(only)),
        fixes=(
            Fix(
                "clear_last_traceback",
                "Let it go: `import sys; sys.last_traceback = sys.last_value = sys.last_exc = None`. "
                "The next error replaces it, too.",
                True,
            ),
        ),
    )
