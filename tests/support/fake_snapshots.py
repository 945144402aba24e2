"""Snapshots written down by hand, so that rendering is tested without torch."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from itertools import accumulate

from graphwidget.model import (
    BackwardCall,
    Kind,
    Leaf,
    ModuleCall,
    Owner,
    Place,
    SlotState,
    Snapshot,
    Storage,
    TensorRef,
)

HELD, FREED = SlotState.HELD, SlotState.FREED


@dataclass
class N:
    """A node to be: name, indices of the next nodes, saved tensors as (name, shape, state)."""

    name: str
    next: tuple[int | tuple[int, int], ...] = ()
    saved: tuple[tuple[str, tuple[int, ...], SlotState], ...] = ()
    place: Place | None = None
    module: ModuleCall | None = None
    leaf: Leaf | None = None
    ghost: bool = False
    uid: int | None = None
    freed_by: int = -1
    seq: int = field(default=-1)


def snapshot(nodes: list[N], roots: dict[str, int] | None = None, names: dict[str, int] | None = None) -> Snapshot:
    """Columns from nodes. `roots` and `names`: path -> index. Every saved tensor has a storage of its own."""

    def table(values: list) -> tuple[tuple, list[int]]:
        known = list(dict.fromkeys(value for value in values if value is not None))
        return tuple(known), [-1 if value is None else known.index(value) for value in values]

    edges = [[(edge, 0) if isinstance(edge, int) else edge for edge in node.next] for node in nodes]
    slots = [(node, *slot) for node in nodes for slot in node.saved]
    op_names, name = table([node.name for node in nodes])
    places, place = table([node.place for node in nodes])
    modules, module = table([node.module for node in nodes])
    slot_names, slot_name = table([slot[1] for slot in slots])
    shapes, slot_shape = table([slot[2] for slot in slots])
    sizes = [4 * _numel(slot[2]) for slot in slots]
    live = [slot[3] not in (FREED, SlotState.UNSAVED) for slot in slots]
    numbers = list(accumulate(live, initial=0))[:-1]
    seq = [-1 if node.leaf else node.seq if node.seq >= 0 else len(nodes) - i for i, node in enumerate(nodes)]
    refs = [TensorRef(node=i, paths=(path,), dtype="float32", shape=()) for path, i in (roots or {}).items()]
    owned = {**(roots or {}), **(names or {})}
    return Snapshot(
        uid=array("q", [100 + i if node.uid is None else node.uid for i, node in enumerate(nodes)]),
        name=array("i", name),
        seq=array("q", seq),
        kind=bytearray(Kind.ACCUMULATE if node.leaf else Kind.FUNCTION for node in nodes),
        place=array("i", place),
        module=array("i", module),
        ghost=bytearray(node.ghost for node in nodes),
        edge_start=array("i", accumulate(map(len, edges), initial=0)),
        edge_to=array("i", [to for row in edges for to, _ in row]),
        edge_nr=array("i", [nr for row in edges for _, nr in row]),
        slot_start=array("i", accumulate((len(node.saved) for node in nodes), initial=0)),
        slot_name=array("i", slot_name),
        slot_state=bytearray(slot[3] for slot in slots),
        slot_dtype=array("i", [0] * len(slots)),
        slot_shape=array("i", slot_shape),
        slot_bytes=array("q", sizes),
        slot_storage=array("i", [n if alive else -1 for n, alive in zip(numbers, live)]),
        slot_freed_by=array("i", [slot[0].freed_by if slot[3] == FREED else -1 for slot in slots]),
        names=op_names,
        slot_names=slot_names,
        dtypes=("float32",),
        shapes=shapes,
        places=places,
        modules=modules,
        storages=tuple(Storage(key=100 + i, bytes=size) for i, (size, alive) in enumerate(zip(sizes, live)) if alive),
        leaves={i: node.leaf for i, node in enumerate(nodes) if node.leaf},
        roots=tuple(refs),
        owners=tuple(Owner(path=path, node=i) for path, i in owned.items()),
    )


def _numel(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def leaf(*paths: str, shape: tuple[int, ...] = (4,), has_grad: bool = False) -> N:
    return N("AccumulateGrad", leaf=Leaf(paths, shape, "float32", has_grad, bytes=4 * _numel(shape)))


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
            leaf("a"),
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
    nodes += [leaf(f"layers[{i}].weight") for i in range(leaves)]
    return snapshot(nodes, roots={"loss": 0})
