"""What changed between two snapshots: nodes made, saved tensors freed, nodes that died, and by which variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphwidget.model.graph.parts import Kind, SlotState
from graphwidget.model.sizes import bytes_text

if TYPE_CHECKING:
    from graphwidget.model.graph.snapshot import Node, SavedTensor, Snapshot

__all__ = ["Comparison", "VariableChange", "compare"]


@dataclass(frozen=True)
class VariableChange:
    """What changed in the graph of one variable, as far as no other variable inside it is nearer.

    Attributes
    ----------
    name
        Its path; empty: no name leads there.
    status
        ``"new"``, ``"gone"``, ``"other"`` (it names another tensor now) or ``"same"``.
    added, freed, died
        Number of nodes made, of saved tensors freed, and of nodes that died.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     loss = w.exp().sum()
    ...     before = graphwidget.snapshot()
    ...     loss.backward()
    ...     changed = before.compare(graphwidget.snapshot()).variables
    >>> [(one.name, one.status, one.freed) for one in changed]
    [('loss', 'same', 1)]
    """

    name: str
    status: str
    added: int = 0
    freed: int = 0
    died: int = 0


@dataclass(frozen=True)
class Comparison:
    """What changed from the snapshot `before` to the snapshot `after`. Leaves are not counted as nodes.

    Attributes
    ----------
    added, died
        Nodes of `after` that were not there, and nodes of `before` that are not there any more.
    freed
        Saved tensors of `after` that were not freed before.
    variables
        The same by variable: those with most changes first.
    held_before, held_after
        Bytes held by saved tensors; each storage counts once.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     loss = w.exp().sum()
    ...     before = graphwidget.snapshot()
    ...     loss.backward()
    ...     comparison = before.compare(graphwidget.snapshot())
    >>> print(comparison.explain())
    1 saved tensor freed; no node was added, no node died.
    Held by saved tensors: 12 B, then 0 B.
    loss: 1 saved tensor freed
    """

    before: Snapshot
    after: Snapshot
    added: tuple[Node, ...] = ()
    died: tuple[Node, ...] = ()
    freed: tuple[SavedTensor, ...] = ()
    variables: tuple[VariableChange, ...] = ()

    @property
    def held_before(self) -> int:
        """Bytes that saved tensors held before."""
        return self.before.held_bytes()

    @property
    def held_after(self) -> int:
        """Bytes that saved tensors hold afterwards."""
        return self.after.held_bytes()

    def explain(self) -> str:
        """The comparison in sentences, one line for each variable."""
        held = f"Held by saved tensors: {bytes_text(self.held_before)}, then {bytes_text(self.held_after)}."
        return "\n".join([self.summary(), held, *map(_line, self.variables)])

    def summary(self) -> str:
        """The counts in one sentence."""
        said = [
            f"{_count(len(self.freed), 'saved tensor')} freed" if self.freed else "",
            f"{_count(len(self.added), 'node')} added" if self.added else "",
            f"{_count(len(self.died), 'node')} died" if self.died else "",
        ]
        unsaid = [
            "no saved tensor was freed" if not self.freed else "",
            "no node was added" if not self.added else "",
            "no node died" if not self.died else "",
        ]
        return "; ".join(filter(None, [", ".join(filter(None, said)), ", ".join(filter(None, unsaid))])) + "."


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    """What changed from `before` to `after`; see `Snapshot.compare`."""
    _check_same_nodes(before, after)
    there = {uid for uid, ghost in zip(before.uid, before.ghost) if not ghost}
    here = {uid for uid, ghost in zip(after.uid, after.ghost) if not ghost}
    added = [i for i in _alive(after) if after.uid[i] not in there]
    died = [i for i in _alive(before) if before.uid[i] not in here]
    freed = [(i, position) for i in _alive(after) if after.uid[i] in there for position in _freed(before, after, i)]
    counts: dict[str, list[int]] = {}
    nearest_now, nearest_then = nearest_names(after), nearest_names(before)
    for column, names in enumerate(
        (
            [nearest_now[i] for i in added],
            [nearest_now[i] for i, _ in freed],
            [nearest_then[i] for i in died],
        )
    ):
        for name in names:
            counts.setdefault(name, [0, 0, 0])[column] += 1
    changes = [VariableChange(name, _status(name, before, after), *numbers) for name, numbers in counts.items()]
    changes.sort(key=lambda change: (-change.added - change.freed - change.died, change.name))
    return Comparison(
        before,
        after,
        tuple(map(after.node, added)),
        tuple(map(before.node, died)),
        tuple(after.node(i).saved[position] for i, position in freed),
        tuple(changes),
    )


def _freed(before: Snapshot, after: Snapshot, index: int) -> Iterator[int]:
    """Positions of the saved tensors of a node of `after` that were freed since."""
    then = before.slots_of(before.index_of[after.uid[index]])
    for position, (slot, was) in enumerate(zip(after.slots_of(index), then)):
        if after.slot_state[slot] == SlotState.FREED and before.slot_state[was] != SlotState.FREED:
            yield position


def nearest_names(snapshot: Snapshot) -> list[str]:
    """Of each node its own name, else that of the nearest tensor with a name that was computed from it; else ``""``."""
    names = [""] * len(snapshot)
    own = {node: paths[0] for node, paths in snapshot.labels.items() if paths}
    # Nodes come in the order of discovery from the roots; a name is nearer the fewer steps lead to it.
    near = [node for node in own if snapshot.kind[node] != Kind.ACCUMULATE]
    for node in near:
        names[node] = own[node]
    while near:
        further = []
        for node in near:
            for following in snapshot.next(node):
                if not names[following]:
                    names[following] = names[node]
                    further.append(following)
        near = further
    return names


def _alive(snapshot: Snapshot) -> Iterator[int]:
    """The living nodes, without leaves."""
    for index, (kind, ghost) in enumerate(zip(snapshot.kind, snapshot.ghost)):
        if kind != Kind.ACCUMULATE and not ghost:
            yield index


def _status(name: str, before: Snapshot, after: Snapshot) -> str:
    then, now = _uids(name, before), _uids(name, after)
    if not then or not now:
        return "new" if now else "gone" if then else "same"
    return "same" if then == now else "other"


def _uids(name: str, snapshot: Snapshot) -> set[int]:
    return {snapshot.uid[owner.node] for owner in snapshot.owners if owner.path == name}


def _check_same_nodes(before: Snapshot, after: Snapshot) -> None:
    """Only where both are of one tracker a number stands for the same node in both."""
    for uid in before.index_of.keys() & after.index_of.keys():
        one, other = before.index_of[uid], after.index_of[uid]
        if before.seq[one] != after.seq[other] or before.name_of(one) != after.name_of(other):
            raise ValueError(
                "these snapshots cannot be compared, as they were not taken by one tracker: "
                "take both after %load_ext graphwidget, or inside one `with graphwidget.track():`."
            )


def _line(change: VariableChange) -> str:
    said = [
        {"new": "new", "gone": "gone", "other": "another tensor", "same": ""}[change.status],
        f"{_count(change.added, 'node')} added" if change.added else "",
        f"{_count(change.freed, 'saved tensor')} freed" if change.freed else "",
        f"{_count(change.died, 'node')} died" if change.died else "",
    ]
    return f"{change.name or 'without a name'}: {', '.join(filter(None, said))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
