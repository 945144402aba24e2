"""Snapshots written by hand, a graph in a few lines, root first: so that what is pure is tested without torch."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from graphwidget.model import (
    BackwardCall,
    Kind,
    Leaf,
    ModuleCall,
    Node,
    NodeFacts,
    Owner,
    Place,
    SlotState,
    Snapshot,
    Storage,
    TensorRef,
)

HELD, FREED, STALE, PACKED = SlotState.HELD, SlotState.FREED, SlotState.STALE, SlotState.PACKED
SLOT_NAMES = ("self", "other", "result")  # of slots that are given as a state alone
Slot = SlotState | tuple[str, tuple[int, ...], SlotState]


@dataclass
class N:
    """A node to be.

    `to` are the next nodes: names (``"a b:1"``, input 1 of b) or indices (``(1, (2, 1))``). A slot is a state alone
    (8 bytes) or (name, shape, state). `storage` says which storage each slot has; without it each has its own.
    """

    name: str
    to: str | tuple[int | tuple[int, int], ...] = ()
    slots: tuple[Slot, ...] = ()
    place: Place | None = None
    module: ModuleCall | None = None
    leaf: Leaf | None = None
    ghost: bool = False
    uid: int | None = None
    freed_by: int = -1
    seq: int | None = None
    kind: Kind = Kind.FUNCTION
    facts: NodeFacts | None = None
    storage: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """By which other nodes name it."""
        return self.leaf.paths[0] if self.leaf and self.leaf.paths else self.name


def leaf(*paths: str, shape: tuple[int, ...] = (), **more: object) -> N:
    """A leaf. `more` goes to `Leaf`."""
    described = {"dtype": "float32", "has_grad": False, "bytes": 4 * prod(shape), **more}
    return N("AccumulateGrad", leaf=Leaf(paths, shape, **described), kind=Kind.ACCUMULATE, seq=-1)


def graph(*nodes: N, storages: tuple[Storage, ...] = (), first_uid: int = 0, **more: object) -> Snapshot:
    """A snapshot of nodes, root first. They get the sequence numbers n … 1 in the order given; `more` goes to `Snapshot`."""

    def table(values: list) -> tuple[tuple, list[int]]:
        index = {value: i for i, value in enumerate(dict.fromkeys(value for value in values if value is not None))}
        return tuple(index), [-1 if value is None else index[value] for value in values]

    index = {node.key: i for i, node in enumerate(nodes)}
    edges = [_edges(node, index) for node in nodes]
    slots = [(node, at, *_slot(slot, at)) for node in nodes for at, slot in enumerate(node.slots)]
    op_names, name = table([node.name for node in nodes])
    places, place = table([node.place for node in nodes])
    modules, module = table([node.module for node in nodes])
    slot_names = tuple(dict.fromkeys([*SLOT_NAMES, *(slot[2] for slot in slots)]))
    shapes, slot_shape = table([slot[3] for slot in slots])
    sizes = [8 if shape is None else 4 * prod(shape) for _, _, _, shape, _ in slots]
    made = list(storages)
    slot_storage = []
    for (node, at, _, _, state), size in zip(slots, sizes):
        if node.storage:
            slot_storage.append(node.storage[at])
        elif state in (FREED, SlotState.UNSAVED):
            slot_storage.append(-1)
        else:
            slot_storage.append(len(made))
            made.append(Storage(1000 + len(made), size))
    columns = {
        "uid": array("q", [first_uid + i if node.uid is None else node.uid for i, node in enumerate(nodes)]),
        "name": array("i", name),
        "seq": array("q", [len(nodes) - i if node.seq is None else node.seq for i, node in enumerate(nodes)]),
        "kind": bytearray(node.kind for node in nodes),
        "place": array("i", place),
        "module": array("i", module),
        "ghost": bytearray(node.ghost for node in nodes),
        "edge_start": array("i", accumulate(map(len, edges), initial=0)),
        "edge_to": array("i", [to for row in edges for to, _ in row]),
        "edge_nr": array("i", [nr for row in edges for _, nr in row]),
        "slot_start": array("i", accumulate((len(node.slots) for node in nodes), initial=0)),
        "slot_name": array("i", [slot_names.index(slot[2]) for slot in slots]),
        "slot_state": bytearray(state for *_, state in slots),
        "slot_dtype": array("i", [-1 if shape is None else 0 for _, _, _, shape, _ in slots]),
        "slot_shape": array("i", slot_shape),
        "slot_bytes": array("q", sizes),
        "slot_storage": array("i", slot_storage),
        "slot_freed_by": array("i", [node.freed_by if state == FREED else -1 for node, *_, state in slots]),
        "names": op_names,
        "slot_names": slot_names,
        "dtypes": ("float32",),
        "shapes": shapes,
        "places": places,
        "modules": modules,
        "storages": tuple(made),
        "leaves": {i: node.leaf for i, node in enumerate(nodes) if node.leaf},
        "facts": {i: node.facts for i, node in enumerate(nodes) if node.facts},
    }
    return Snapshot(**{**columns, **more})


def _edges(node: N, index: dict[str, int]) -> list[tuple[int, int]]:
    if isinstance(node.to, str):
        parts = (target.partition(":") for target in node.to.split())
        return [(index[name], int(nr or 0)) for name, _, nr in parts]
    return [(edge, 0) if isinstance(edge, int) else edge for edge in node.to]


def _slot(slot: Slot, at: int) -> tuple[str, tuple[int, ...] | None, SlotState]:
    return slot if isinstance(slot, tuple) else (SLOT_NAMES[at], None, slot)


def snapshot(nodes: list[N], roots: dict[str, int] | None = None, names: dict[str, int] | None = None) -> Snapshot:
    """A snapshot with uids from 100. `roots` and `names`: path -> index."""
    refs = [TensorRef(node=i, paths=(path,), dtype="float32", shape=()) for path, i in (roots or {}).items()]
    owners = [Owner(path=path, node=i) for path, i in {**(roots or {}), **(names or {})}.items()]
    return graph(*nodes, first_uid=100, roots=tuple(refs), owners=tuple(owners))


def ref(shot: Snapshot, name: str, output_nr: int = 0, **more: object) -> TensorRef:
    """The tensor whose grad_fn is the node called `name`, or the leaf of this name."""
    at = next(node.index for node in shot.nodes if name == (node.leaf.paths[0] if node.leaf else node.name))
    return TensorRef(at, output_nr, (name,), **more)


def names(nodes: Iterable[Node]) -> list[str]:
    """Of functions torch's name, of leaves their own."""
    return [node.leaf.paths[0] if node.leaf else node.name for node in nodes]


def reused_product() -> Snapshot:
    """`y = t @ a` in In[1], used by a loss of iteration 0 (gone) and one of iteration 1; call 0 freed y's part."""
    y = Place(1, 6, "y = t @ a")
    return snapshot(
        [
            N("SumBackward0", (1,), place=Place(2, 4, "loss = ...", 2, 4, "", 1), uid=10, seq=9),
            N("MulBackward0", (2,), (("self", (3,), HELD),), place=Place(2, 3, "out = y * b"), uid=9, seq=8),
            N(
                "MvBackward0",
                (3, 4),
                (("self", (3, 4), FREED), ("vec", (4,), FREED)),
                place=y,
                uid=4,
                freed_by=0,
                seq=2,
            ),
            leaf("t", shape=(3, 4), has_grad=True),
            leaf("a", shape=(4,)),
            N("SumBackward0", (6,), place=Place(2, 4, "loss = ..."), ghost=True, uid=6, seq=5),
            N("MulBackward0", (2,), (("self", (3,), FREED),), ghost=True, uid=5, freed_by=0, seq=4),
        ],
        roots={"loss": 0},
        names={"y": 2},
    )


def call(n: int, **more: object) -> BackwardCall:
    defaults: dict = {
        "place": Place(2, 5, "loss.backward()", 2, 5, "", n),
        "api": "backward",
        "retain_graph": False,
        "create_graph": False,
        "roots": (TensorRef(0, paths=("loss",)),),
        "root_names": ("SumBackward0",),
        "result": "ok",
        "executed": array("q", [6, 5, 4]),
        "executed_count": 3,
        "freed_slots": 3,
        "newest_seq": 6,
    }
    return BackwardCall(n=n, **{**defaults, **more})


def chain(length: int) -> Snapshot:
    """A synthetic graph like a training step: a chain with a leaf every tenth node, two saved tensors every second."""
    nodes: list[N] = []
    places = [Place(3, line, f"line {line}") for line in range(1, 21)]
    leaves = max(1, length // 10)
    for i in range(length - leaves):
        more = (length - leaves + i // 10,) if i % 10 == 0 and i // 10 < leaves else ()
        forward = (i + 1,) if i + 1 < length - leaves else ()
        saved = (("self", (8, 8), HELD), ("other", (8,), HELD)) if i % 2 else ()
        nodes.append(N(f"Op{i % 12}Backward0", forward + more, saved, place=places[i % 20], seq=length - i))
    nodes += [leaf(f"layers[{i}].weight", shape=(4,)) for i in range(leaves)]
    return snapshot(nodes, roots={"loss": 0})
