"""Snapshots written by hand: a graph in a few lines, root first."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from graphwidget.model import Kind, Leaf, NodeFacts, SlotState, Snapshot, Storage, TensorRef

HELD, FREED, STALE, PACKED = SlotState.HELD, SlotState.FREED, SlotState.STALE, SlotState.PACKED


@dataclass
class N:
    """One node: where its gradients go, the states of its slots, and what else it needs to say."""

    name: str
    to: str = ""  # names of the next nodes, in order; "a:1" for input 1 of node a
    slots: tuple[SlotState, ...] = ()
    seq: int | None = None
    kind: Kind = Kind.FUNCTION
    facts: NodeFacts | None = None
    leaf: Leaf | None = None
    storage: tuple[int, ...] = ()  # of each slot; own ones without


def leaf(name: str, **more: object) -> N:
    described = Leaf(**{"paths": (name,), "shape": (), "dtype": "float32", "has_grad": False, **more})
    return N(name, kind=Kind.ACCUMULATE, seq=-1, leaf=described)


def graph(*nodes: N, storages: tuple[Storage, ...] = ()) -> Snapshot:
    """Nodes get the sequence numbers n - 1 … 0 in the order given, 8 bytes a slot."""
    index = {node.name: i for i, node in enumerate(nodes)}
    shot = Snapshot(
        uid=array("q", range(len(nodes))),
        name=array("i", range(len(nodes))),
        names=tuple(node.name for node in nodes),
        seq=array("q", [len(nodes) - i if n.seq is None else n.seq for i, n in enumerate(nodes)]),
        kind=bytearray(node.kind for node in nodes),
        place=array("i", [-1] * len(nodes)),
        module=array("i", [-1] * len(nodes)),
        ghost=bytearray(len(nodes)),
        slot_names=("self", "other", "result"),
        leaves={i: node.leaf for i, node in enumerate(nodes) if node.leaf},
        facts={i: node.facts for i, node in enumerate(nodes) if node.facts},
    )
    made = list(storages)
    for node in nodes:
        for target in node.to.split():
            name, _, nr = target.partition(":")
            shot.edge_to.append(index[name])
            shot.edge_nr.append(int(nr or 0))
        shot.edge_start.append(len(shot.edge_to))
        for position, state in enumerate(node.slots):
            shot.slot_name.append(position)
            shot.slot_state.append(state)
            shot.slot_bytes.append(8)
            shot.slot_dtype.append(-1)
            shot.slot_shape.append(-1)
            shot.slot_freed_by.append(-1)
            if node.storage:
                shot.slot_storage.append(node.storage[position])
            else:
                shot.slot_storage.append(len(made))
                made.append(Storage(len(made), 8))
        shot.slot_start.append(len(shot.slot_state))
    return Snapshot(**{**vars(shot), "storages": tuple(made)})


def ref(shot: Snapshot, name: str, output_nr: int = 0, **more: object) -> TensorRef:
    """The tensor whose grad_fn is the node called `name`."""
    return TensorRef(shot.names.index(name), output_nr, (name,), **more)


def names(nodes: object) -> list[str]:
    return [node.name for node in nodes]
