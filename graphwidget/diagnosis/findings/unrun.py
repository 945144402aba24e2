"""Outputs that are kept with their graphs although no backward runs them: an evaluation that records.

They may be kept for a later call, so this is information, and reported only for a considerable amount of memory. It is
a warning where a loop carries on a graph of a model in evaluation mode, and the program calls no backward at all; and
where grad mode was switched on inside a block that had switched it off.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.piles import holders
from graphwidget.diagnosis.fixes.piles.reads import is_read, needed
from graphwidget.diagnosis.no_graph.grad_mode.switched_on import switched_on
from graphwidget.diagnosis.no_graph.measured import statement_of
from graphwidget.diagnosis.reuse.passes.loops import ENOUGH, MANY
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.source.syntax import last_name, names_read, targets
from graphwidget.diagnosis.wording import at, place_of, short, source_line, spoken, where
from graphwidget.engine.what_if import bytes_held, reachable
from graphwidget.model import (
    CellRun,
    Finding,
    Fix,
    Kind,
    Owner,
    Place,
    Record,
    SlotState,
    Snapshot,
    bytes_text,
    is_notebooks,
)

_EVALUATES = re.compile(r"\.eval\(\)")
_DIFFERENTIATES = re.compile(r"\bbackward\(|\bgrad\(|\.train\(\)")
MUCH = 2**20  # bytes of saved tensors from which on they are reported
MOST = 200  # elements of a container examined one by one


def find(record: Record, known: Collection[str], much: int = MUCH) -> Iterator[Finding]:
    """Findings for containers of outputs that no call has run, from `much` bytes on. `known` have a finding already."""
    graph = record.snapshot
    if graph.held_bytes() < much:
        return
    carried = _carried_on(record)
    if carried is not None:
        yield carried
        return
    ran = {uid for call in record.calls for uid in call.executed}
    groups: dict[tuple[str, object], list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        place = graph.place_of(owner.node)
        if owner.path.endswith("]") and place is not None and _is_unrun(graph, owner, ran):
            groups[(owner.path[: owner.path.rindex("[")], source_line(place))].append(owner)
    for (path, _), owners in groups.items():
        if len(owners) < ENOUGH or spoken(path) in known or not _is_of_a_loop(graph, owners):
            continue
        inside = reachable(graph, (owner.node for owner in owners))
        kept = _bytes_of_their_own(graph, inside, path)
        if kept >= much and not (_are_numbers(graph, owners) and _may_be_summed(record, spoken(path))):
            yield _finding(record, path, tuple(owners), inside, kept)


def _carried_on(record: Record) -> Finding | None:
    """``out, past = model(token, past)`` in a loop, after ``model.eval()``: a pass builds on the graph of the last."""
    graph, cells = record.snapshot, Cells.of(record)
    texts = [run.source for run in cells.latest]
    if record.calls or not any(_EVALUATES.search(text) for text in texts) or any(map(_DIFFERENTIATES.search, texts)):
        return None
    for owner in graph.owners:
        place = graph.place_of(owner.node)
        if place is None or place.outer_line is None or is_notebooks(owner.kind, owner.path):
            continue
        inside = reachable(graph, [owner.node])
        made = (graph.place_of(i) for i in inside)
        passes = {(one.run, one.iteration) for one in made if one is not None and one.iteration is not None}
        if len(passes) >= MANY and (found := _carrying(record, place, root_of(local(owner.path)))) is not None:
            return _of_a_rollout(record, owner, inside, len(passes), *found)
    return None


def _carrying(record: Record, place: Place, name: str) -> tuple[CellRun, ast.stmt] | None:
    """The statement around a place that computes the next value of a variable from the one before."""
    for frame in (*place.stack, place):
        found = statement_of(record, frame)
        if found is not None and name in targets(found[1]) and name in names_read(found[1]):
            return found
    return None


def _of_a_rollout(
    record: Record, owner: Owner, inside: set[int], passes: int, run: CellRun, statement: ast.stmt
) -> Finding:
    graph, place = record.snapshot, place_of(run, statement.lineno)
    shown, line = f"`{spoken(owner.path)}`", short(ast.unparse(statement))
    kept = bytes_held(graph, inside)
    nodes = sum(graph.kind[i] != Kind.ACCUMULATE for i in inside)
    edits = in_block(run.cell, run.source, "with torch.no_grad():", statement, statement)
    advice = f"No backward is called: compute it under `with torch.no_grad():` ({where(place)}). Nothing is saved then."
    return Finding(
        "leak",
        "warning",
        f"{line} ({where(place)}) computes {shown} from its value before, with a graph, and `eval()` does not change "
        f"that: {nodes} nodes of {passes} passes and {bytes_text(kept)} of saved tensors. No backward has run any.",
        f"{shown} carries the graphs of {passes} passes, and no backward is called.",
        node=graph.name_of(owner.node),
        node_uid=graph.uid[owner.node],
        made_at=place,
        carriers=(spoken(owner.path),),
        bytes=kept,
        uids=(graph.uid[owner.node],),
        fixes=(Fix("no_grad_or_item", advice, False, at(place), "No gradient flows back through it.", edits=edits),),
    )


def _is_unrun(graph: Snapshot, owner: Owner, ran: set[int]) -> bool:
    plain = graph.kind[owner.node] != Kind.ACCUMULATE and not is_notebooks(owner.kind, owner.path)
    return plain and graph.uid[owner.node] not in ran and not _freed(graph, owner.node)


def _freed(graph: Snapshot, node: int) -> bool:
    return any(graph.slot_state[slot] == SlotState.FREED for slot in graph.slots_of(node))


def _is_of_a_loop(graph: Snapshot, owners: list[Owner]) -> bool:
    """Whether each output was made in a pass of its own, from no earlier one: they are no recurrent states."""
    sizes, union = 0, set[int]()
    for owner in owners[:MOST]:
        inside = {i for i in reachable(graph, [owner.node]) if graph.kind[i] != Kind.ACCUMULATE}
        if any(_freed(graph, i) for i in inside):
            return False
        sizes += len(inside)
        union |= inside
    return 2 * len(union) > sizes


def _bytes_of_their_own(graph: Snapshot, inside: set[int], path: str) -> int:
    """Bytes of saved tensors that no other name keeps, as parameters and data are."""
    slots = [slot for i in inside for slot in graph.slots_of(i) if graph.slot_state[slot] == SlotState.HELD]
    owners = graph.storages.owners
    mine = {
        graph.slot_storage[slot]
        for slot in slots
        if all(name.startswith(f"{path}[") for name in owners.get(graph.slot_storage[slot], ()))
    }
    return sum(graph.storages.bytes[storage] for storage in mine if storage >= 0)


def _are_numbers(graph: Snapshot, owners: list[Owner]) -> bool:
    sizes = {(ref.node, ref.output_nr): ref.numel for ref in graph.roots}
    return all(sizes.get((owner.node, owner.output_nr), 1) == 1 for owner in owners)


def _may_be_summed(record: Record, name: str) -> bool:
    """Whether a later call may run all losses of a list together: not if the program only reads their values."""
    last = last_name(name)
    return not is_read(record, last) or needed(record, name, set())


def _finding(record: Record, path: str, owners: tuple[Owner, ...], inside: set[int], kept: int) -> Finding:
    graph, name = record.snapshot, spoken(path)
    first = owners[0].node
    place = graph.place_of(first)
    nodes = sum(graph.kind[i] != Kind.ACCUMULATE for i in inside)
    at_all = Fix(
        "no_grad_or_item",
        f"If they are not for training, compute them under `torch.no_grad()` ({where(place)}): nothing is saved then.",
        False,
        at(place),
        "No gradient flows back through them.",
    )
    detached = holders.keep_numbers(record, path, owners)
    on = switched_on(record, place) if place is not None else None
    if on is not None:
        return Finding(
            "leak",
            "warning",
            f"`{name}` keeps {len(owners)} tensors with the graphs that made them: {nodes} nodes and "
            f"{bytes_text(kept)} of saved tensors. {on.text}",
            f"`{name}` keeps {len(owners)} graphs: a line switches grad mode on inside `{on.switch.text}`.",
            node=graph.name_of(first),
            node_uid=graph.uid[first],
            made_at=on.place,
            carriers=(name,),
            bytes=kept,
            uids=tuple(graph.uid[owner.node] for owner in owners[:50]),
            fixes=(on.fix, detached) if detached is not None else (on.fix,),
        )
    return Finding(
        "leak",
        "info",
        f"`{name}` keeps {len(owners)} tensors with the graphs that made them: {nodes} nodes and {bytes_text(kept)} of "
        "saved tensors. No backward has run any of them.",
        f"`{name}` keeps {len(owners)} graphs that no backward has run.",
        node=graph.name_of(first),
        node_uid=graph.uid[first],
        made_at=place,
        carriers=(name,),
        bytes=kept,
        uids=tuple(graph.uid[owner.node] for owner in owners[:50]),
        fixes=(at_all, detached) if detached is not None else (at_all,),
    )
