"""Graphs that pile up: kept by a container, by a running total, by a cycle, or by the notebook itself.

A graph piles up when parts made in three or more iterations, in each of which a backward call has
already run, are still owned. A list that is filled first and used by one call afterwards is no leak.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphwidget.analysis import leak_fixes
from graphwidget.analysis.story import source_line
from graphwidget.analysis.surgery import bytes_held, reachable
from graphwidget.analysis.words import names
from graphwidget.model import BackwardCall, Finding, Fix, Kind, Owner, Place, Record, bytes_text

ENOUGH = 3  # iterations before we speak up
MOST_HOLDERS = 40  # names looked at one by one, those with most tensors first: each costs a walk


def find(record: Record) -> Iterator[Finding]:
    """Everything that piles up in a record."""
    yield from _cycles(record)
    yield from _kept_by_variables(record)
    yield from _kept_by_notebook(record)
    yield from _kept_by_traceback(record)


def holder(path: str) -> str:
    """The variable or attribute to which a path's elements belong: ``temp`` for ``temp[3]``."""
    return path.split("[", 1)[0]


class Periods:
    """Between two calls of one line lies a period: an iteration, whichever loop, function or re-run made it."""

    def __init__(self, record: Record) -> None:
        self.graph = record.snapshot
        self.lines: dict[tuple[object, ...], list[BackwardCall]] = defaultdict(list)
        for call in record.calls:
            # A step of a higher-order gradient ends no iteration.
            if not call.create_graph and call.result != "running" and call.newest_seq >= 0:
                self.lines[(call.thread, *source_line(call.place))].append(call)
        self.lines = {line: calls for line, calls in self.lines.items() if len(calls) >= ENOUGH}
        self.starts = {line: [call.newest_seq for call in calls] for line, calls in self.lines.items()}
        self.ran = {call.n: frozenset(call.executed) for calls in self.lines.values() for call in calls}

    def most(self, nodes: Iterable[int]) -> tuple[int, list[BackwardCall]]:
        """In how many periods of a line these nodes were made and run by the call at its end; that line's calls."""
        plain = [i for i in nodes if self.graph.seq[i] >= 0]
        best: tuple[int, list[BackwardCall]] = (0, [])
        for line, calls in self.lines.items():
            done: set[int] = set()
            for index in plain:
                period = bisect_right(self.starts[line], self.graph.seq[index])
                if period < len(calls) and period not in done and self._run_by(calls[period], index):
                    done.add(period)
            if len(done) > best[0]:
                best = (len(done), calls)
        return best

    def _run_by(self, call: BackwardCall, index: int) -> bool:
        """Whether a call ran a node; where nothing is known of what it ran, it is taken for granted."""
        ran = self.ran[call.n]
        if call.distances and call.ran_number(self.graph.seq[index]):
            return True
        return not (ran or call.distances) or self.graph.uid[index] in ran or self._freed(index, call.n)

    def _freed(self, index: int, n: int) -> bool:
        return any(self.graph.slot_freed_by[slot] == n for slot in self.graph.slots_of(index))


def _kept_by_variables(record: Record) -> Iterator[Finding]:
    graph = record.snapshot
    periods = Periods(record)
    if not periods.lines:
        return
    groups: dict[str, list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        if owner.kind not in ("out", "traceback"):
            groups[holder(owner.path)].append(owner)
    everything = reachable(graph, (owner.node for owners in groups.values() for owner in owners))
    if periods.most(everything)[0] < ENOUGH:
        return
    likely = sorted(groups, key=lambda name: -len(groups[name]))[:MOST_HOLDERS]
    reached = {name: reachable(graph, (owner.node for owner in groups[name])) for name in likely}
    told: set[int] = set()
    # Containers first; of two names on one chain, the one that the other builds on.
    for name in sorted(likely, key=lambda name: (-len(groups[name]), len(reached[name]), name)):
        # What is detached where it is put into a container still is in a running total, and the other way round.
        inside = reached[name] if leak_fixes.is_total(record, name) else reached[name] - told
        count, calls = periods.most(inside)
        if count >= ENOUGH:
            told |= inside
            others = reachable(graph, (o.node for other, owners in groups.items() if other != name for o in owners))
            alone = periods.most(inside & others)[0] < ENOUGH
            yield _pile(record, name, groups[name], inside, count, calls[-1], alone)


def _pile(
    record: Record, name: str, owners: list[Owner], inside: set[int], passes: int, call: BackwardCall, alone: bool
) -> Finding:
    """Graphs that `name` keeps; `alone`: without it they would go."""
    graph = record.snapshot
    nodes = sum(graph.kind[i] != Kind.ACCUMULATE for i in inside)
    kept = bytes_held(graph, inside)
    several = len(owners) > 1
    first = min(owners, key=lambda owner: (len(owner.path), owner.path))
    place = graph.place_of(first.node)
    tensors = len({(owner.node, owner.output_nr) for owner in owners})
    held = f"{nodes} nodes and {bytes_text(kept)} of saved tensors" if kept else f"{nodes} nodes"
    holding = f"keeps {tensors} tensors. Each refers" if several else "refers"
    return Finding(
        "leak",
        "warning",
        f"`{name}` {holding} to the graph that made it: {held} in all. "
        f"They come from {passes} iterations in which a backward ran.",
        f"Graphs of {passes} iterations pile up in `{name}`.",
        node=graph.name_of(first.node),
        node_uid=graph.uid[first.node],
        made_at=place,
        carriers=(name,),
        bytes=kept,
        uids=tuple(graph.uid[owner.node] for owner in owners[:50]),
        fixes=leak_fixes.for_pile(record, name, owners, call, place, alone),
    )


def _at(place: Place | None) -> tuple[int, int] | None:
    return (place.cell, place.line) if place is not None and place.cell is not None and place.line is not None else None


def _cycles(record: Record) -> Iterator[Finding]:
    """`backward(create_graph=True)` gives leaves a `.grad` that refers back to them; C++ holds both for good."""
    lines: dict[tuple[int | None, int | None], list[BackwardCall]] = defaultdict(list)
    for call in record.calls:
        if call.create_graph and call.api == "backward" and call.result == "ok":
            lines[(call.place.cell, call.place.line)].append(call)
    for calls in lines.values():
        leaves = {leaf for call in calls for leaf in call.reached_uids}
        if len(calls) < ENOUGH:
            continue
        last = calls[-1]
        if len(leaves) < ENOUGH:  # the same leaves each time: their old .grad is replaced, or added to
            yield from _added_up(record, calls)
            continue
        grads = tuple(f"{path}.grad" for path in last.reached) or ("a leaf's .grad",)
        yield Finding(
            "leak",
            "warning",
            f"`backward(create_graph=True)` ran {len(calls)} times on new leaves. Each leaf and its `.grad` refer to "
            "each other through the graph. Python's garbage collector cannot free them.",
            f"Each call leaves a cycle behind: {names(grads)} {'keeps' if len(grads) == 1 else 'keep'} the graph.",
            last.n,
            carriers=grads,
            fixes=leak_fixes.for_cycle(record, last, grads),
        )


def _added_up(record: Record, calls: list[BackwardCall]) -> Iterator[Finding]:
    """A `.grad` that nobody resets between calls with create_graph: its graph has those of all before."""
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
        fixes=leak_fixes.for_cycle(record, calls[-1], grads),
    )


def _kept_by_notebook(record: Record) -> Iterator[Finding]:
    """Nodes that a variable owned once and that only `Out` and `_` keep now."""
    graph = record.snapshot
    by_node: dict[int, list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        by_node[owner.node].append(owner)
    outlived = [index for index in by_node if graph.uid[index] in record.outlived]
    for index in outlived[-MOST_HOLDERS:]:
        owners = by_node[index]
        name = record.outlived.get(graph.uid[index])
        if name is None or any(owner.kind != "out" for owner in owners):
            continue
        paths = tuple(sorted((o.path for o in owners), key=lambda p: (not p.startswith("Out"), len(p), p)))
        kept = bytes_held(graph, reachable(graph, [index]))
        yield Finding(
            "leak",
            "warning",
            f"`{name}` is gone, but IPython keeps what a cell displayed: {names(paths)}. "
            f"Its graph stays, with {bytes_text(kept)} of saved tensors.",
            f"{names(paths)} {'keeps' if len(paths) == 1 else 'keep'} the graph of `{name}`.",
            node=graph.name_of(index),
            node_uid=graph.uid[index],
            made_at=graph.place_of(index),
            carriers=paths,
            bytes=kept,
            uids=(graph.uid[index],),
            fixes=(
                Fix(
                    "del_variable",
                    f"Let IPython forget it, too: `%reset -f out`, or `%xdel {name}` in place of `del {name}`.",
                    True,
                    None,
                    "What cells displayed is gone.",
                    ("+ %reset -f out",),
                ),
                Fix("no_display", "End the line with `;`, or display `.detach()`: then nothing is kept.", True),
            ),
        )


def _kept_by_traceback(record: Record) -> Iterator[Finding]:
    """Graphs with held saved tensors that only the frames of the last traceback keep."""
    graph = record.snapshot
    kinds = graph.owner_kinds()
    suspects = {node for node, found in kinds.items() if found == {"traceback"}}
    if not suspects:
        return
    elsewhere = reachable(graph, kinds.keys() - suspects)
    only = suspects - elsewhere
    kept = bytes_held(graph, reachable(graph, only) - elsewhere)
    if not kept:
        return
    paths = tuple(dict.fromkeys(o.path for o in graph.owners if o.node in only))
    explained = any(call.result == "raised" for call in record.calls)
    first = min(only)
    yield Finding(
        "leak",
        "info" if explained else "warning",
        "The last exception's traceback keeps the local variables of the function that raised. "
        f"With {names(paths)} it keeps {bytes_text(kept)} of saved tensors.",
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
                "Let it go: set `sys.last_traceback`, `sys.last_value` and `sys.last_exc` to None. "
                "The next error replaces it, too.",
                True,
                None,
                "The debugger cannot go back to it.",
                ("+ import sys", "+ sys.last_traceback = sys.last_value = sys.last_exc = None"),
            ),
        ),
    )
