"""The autograd graph at one moment, in columns, and views on its nodes and saved tensors."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress

from graphwidget.model.graph.comparison import Comparison, compare
from graphwidget.model.graph.exports import Exportable
from graphwidget.model.graph.parts import (
    KEEPS_MEMORY,
    Kind,
    Leaf,
    ModuleCall,
    NodeFacts,
    Output,
    Owner,
    Place,
    SlotState,
    Storage,
    Storages,
    TensorRef,
    is_notebooks,
)

__all__ = ["Node", "SavedTensor", "Snapshot"]


@dataclass(frozen=True, eq=False)
class Snapshot(Exportable):
    """The autograd graph at one moment, in columns. Immutable by agreement: never write to a column.

    Node columns have one position per node, in order of discovery from the roots. Edges are in
    compressed rows: the edges of node `i` are positions `edge_start[i]` to `edge_start[i + 1]`, in
    the order of `next_functions`, without the empty ones; slots likewise, in the order in which
    the node unpacks them. Text and other repeated values are indices into the tables.

    Attributes
    ----------
    uid
        Node uids.
    name, names
        Index into `names`: torch's own name, e.g. ``MvBackward0`` (``AccumulateGrad`` without its prefix).
    seq
        Sequence numbers; -1 where torch reports 2**64 - 1 (AccumulateGrad, Error nodes).
    kind
        `Kind` values.
    place, places ; module, modules
        Index into `places` and `modules`, -1: unknown.
    ghost
        1 for a node that has died but took part in a call shown on the timeline.
    edge_to, edge_nr
        Index of the next node; which of its inputs the gradient goes to.
    output, outputs
        Index into `outputs`: the outputs of the node's operation, whose gradients it takes. -1: unknown. Only a graph
        on which a call was made, or asked about, has this column; that of others is empty.
    slot_name, slot_names ; slot_dtype, dtypes ; slot_shape, shapes
        Name as Python shows it without prefix (``self``, ``vec``, ``saved_tensors[0]``), type and shape.
    slot_state
        `SlotState` values.
    slot_bytes
        Bytes of the saved tensor itself (0 when nothing is held and nothing is known).
    slot_storage, storages
        Index into `storages`, -1: none or unknown. Several slots of one storage count once.
    slot_freed_by
        n of the call that freed it, -1: not freed or unknown.
    slot_version
        Version counter at which the slot was seen to be held, -1: not held or it counts none. A tensor that
        stands at another version now was modified in place since.
    leaves
        AccumulateGrad index -> `Leaf`.
    facts
        Index -> `NodeFacts`, only for nodes that have any.
    roots, inputs
        The tensors the snapshot was taken for.
    owners
        Every known path that keeps a node alive; of two paths to one tensor the better name comes first.
    notes
        Sentences on what could not be read ("searched 2000 of 100000 objects of `cache`").
    checks_nan
        Anomaly detection was on: a call raises at the first gradient that is NaN.
    ranks
        How many processes the job has.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> graph = graphwidget.snapshot(loss)
    >>> graph
    <Snapshot: 3 nodes, 1 slot, 1 root>
    >>> graph.held_bytes()
    12
    >>> [node.name for node in graph.nodes]
    ['SumBackward0', 'ExpBackward0', 'AccumulateGrad']
    """

    uid: array[int] = field(default_factory=lambda: array("q"))
    name: array[int] = field(default_factory=lambda: array("i"))
    seq: array[int] = field(default_factory=lambda: array("q"))
    kind: bytearray = field(default_factory=bytearray)
    place: array[int] = field(default_factory=lambda: array("i"))
    module: array[int] = field(default_factory=lambda: array("i"))
    ghost: bytearray = field(default_factory=bytearray)
    edge_start: array[int] = field(default_factory=lambda: array("i", [0]))
    edge_to: array[int] = field(default_factory=lambda: array("i"))
    edge_nr: array[int] = field(default_factory=lambda: array("i"))
    output: array[int] = field(default_factory=lambda: array("i"))
    slot_start: array[int] = field(default_factory=lambda: array("i", [0]))
    slot_name: array[int] = field(default_factory=lambda: array("i"))
    slot_state: bytearray = field(default_factory=bytearray)
    slot_dtype: array[int] = field(default_factory=lambda: array("i"))
    slot_shape: array[int] = field(default_factory=lambda: array("i"))
    slot_bytes: array[int] = field(default_factory=lambda: array("q"))
    slot_storage: array[int] = field(default_factory=lambda: array("i"))
    slot_freed_by: array[int] = field(default_factory=lambda: array("i"))
    slot_version: array[int] = field(default_factory=lambda: array("q"))
    names: tuple[str, ...] = ()
    outputs: tuple[tuple[Output, ...], ...] = ()
    slot_names: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    places: tuple[Place, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    storages: Storages = field(default_factory=Storages)
    leaves: Mapping[int, Leaf] = field(default_factory=dict)
    facts: Mapping[int, NodeFacts] = field(default_factory=dict)
    roots: tuple[TensorRef, ...] = ()
    inputs: tuple[TensorRef, ...] = ()
    owners: tuple[Owner, ...] = ()
    notes: tuple[str, ...] = ()
    checks_nan: bool = False
    ranks: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.storages, Storages):  # given as rows
            object.__setattr__(self, "storages", Storages.of(self.storages))

    def __len__(self) -> int:
        return len(self.uid)

    def __repr__(self) -> str:
        sizes = {"node": len(self), "slot": len(self.slot_state), "root": len(self.roots)}
        return f"<Snapshot: {', '.join(f'{n} {word}' + 's' * (n != 1) for word, n in sizes.items())}>"

    def node(self, index: int) -> Node:
        """The node at `index`."""
        return Node(self, index)

    @property
    def nodes(self) -> Iterator[Node]:
        """All nodes, as views made on demand."""
        return (Node(self, i) for i in range(len(self.uid)))

    @cached_property
    def index_of(self) -> dict[int, int]:
        """uid -> index."""
        return {uid: i for i, uid in enumerate(self.uid)}

    @cached_property
    def newest(self) -> int:
        """The highest sequence number; -1: no node has one."""
        return max(self.seq, default=-1)

    def name_of(self, index: int) -> str:
        """torch's name of the node at `index`."""
        return self.names[self.name[index]]

    def next(self, index: int) -> array[int]:
        """Indices of the nodes that `index` hands gradients to, in order, with repeats."""
        return self.edge_to[self.edge_start[index] : self.edge_start[index + 1]]

    def place_of(self, index: int) -> Place | None:
        """Where the node at `index` was made; None: unknown."""
        at = self.place[index]
        return self.places[at] if at >= 0 else None

    def module_of(self, index: int) -> ModuleCall | None:
        """The module call that made the node at `index`; None: none, or unknown."""
        at = self.module[index]
        return self.modules[at] if at >= 0 else None

    def outputs_of(self, index: int) -> tuple[Output, ...] | None:
        """The outputs of the operation that made the node at `index`; None: unknown."""
        at = self.output[index] if index < len(self.output) else -1
        return self.outputs[at] if at >= 0 else None

    def slots_of(self, index: int) -> range:
        """Slot positions of a node."""
        return range(self.slot_start[index], self.slot_start[index + 1])

    @cached_property
    def labels(self) -> dict[int, tuple[str, ...]]:
        """Index -> paths of the tensors that have this node as grad_fn, in the order in which to name them."""
        found: dict[int, list[str]] = {}
        for owner in self.shown_owners:
            found.setdefault(owner.node, []).append(owner.path)
        return {i: tuple(paths) for i, paths in found.items()}

    @cached_property
    def shown_owners(self) -> tuple[Owner, ...]:
        """Paths to show to people: none from the last error's frames; `Out` and `_` only if there is no other."""
        others = {owner.node for owner in self.owners if not is_notebooks(owner.kind, owner.path)}
        return tuple(
            owner
            for owner in self.owners
            if not is_notebooks(owner.kind, owner.path) or (owner.kind == "out" and owner.node not in others)
        )

    def node_with(self, slot: int) -> int:
        """Index of the node that a slot belongs to."""
        return bisect_right(self.slot_start, slot) - 1

    def compare(self, after: Snapshot) -> Comparison:
        """What changed from this snapshot to a later one.

        Parameters
        ----------
        after
            A later snapshot of the same tracker.

        Raises
        ------
        ValueError
            If the same number stands for different nodes in the two: then they are not of one tracker.

        Examples
        --------
        >>> import torch, graphwidget
        >>> with graphwidget.track() as tracker:
        ...     w = torch.ones(3, requires_grad=True)
        ...     loss = w.exp().sum()
        ...     before = graphwidget.snapshot()
        ...     loss = loss * 2
        ...     comparison = before.compare(graphwidget.snapshot())
        >>> [node.name for node in comparison.added], comparison.variables[0].status
        (['MulBackward0'], 'other')
        """
        return compare(self, after)

    def held_bytes(self) -> int:
        """Bytes held by saved tensors; each storage counts once."""
        return self._held_bytes

    @cached_property
    def _held_bytes(self) -> int:
        keeps = self.slot_state.translate(KEEPS_MEMORY)
        known = set(compress(self.slot_storage, keeps))
        unknown = 0
        if -1 in known:
            known.remove(-1)
            slots = zip(self.slot_storage, self.slot_bytes)
            unknown = sum(size for storage, size in compress(slots, keeps) if storage < 0)
        return unknown + sum(map(self.storages.bytes.__getitem__, known))


@dataclass(frozen=True, slots=True)
class Node:
    """A view on one node of a snapshot.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> node = graphwidget.snapshot(w.exp().sum()).node(1)
    >>> node.name, node.next[0].name, node.next[0].labels
    ('ExpBackward0', 'AccumulateGrad', ('w',))
    >>> node.saved
    (<saved result: held>,)
    """

    snapshot: Snapshot
    index: int

    @property
    def uid(self) -> int:
        """The number that names the node in all snapshots, from first sight to death."""
        return self.snapshot.uid[self.index]

    @property
    def name(self) -> str:
        """torch's own name, such as ``MvBackward0``."""
        return self.snapshot.name_of(self.index)

    @property
    def sequence_nr(self) -> int:
        """torch's sequence number, higher for later nodes; -1 where it has none."""
        return self.snapshot.seq[self.index]

    @property
    def kind(self) -> Kind:
        """Kind of backward Function."""
        return Kind(self.snapshot.kind[self.index])

    @property
    def place(self) -> Place | None:
        """Place in the code that made the node; None: unknown."""
        return self.snapshot.place_of(self.index)

    @property
    def module(self) -> ModuleCall | None:
        """The module call that made the node; None: none, or unknown."""
        return self.snapshot.module_of(self.index)

    @property
    def leaf(self) -> Leaf | None:
        """The leaf, of an AccumulateGrad node; None for others."""
        return self.snapshot.leaves.get(self.index)

    @property
    def labels(self) -> tuple[str, ...]:
        """Paths of the tensors whose grad_fn this is; for a leaf, the paths of the leaf."""
        leaf = self.leaf
        return leaf.paths if leaf else self.snapshot.labels.get(self.index, ())

    @property
    def is_ghost(self) -> bool:
        """Whether the node has died. It is in the snapshot because a call on the timeline ran it."""
        return bool(self.snapshot.ghost[self.index])

    @property
    def saved(self) -> tuple[SavedTensor, ...]:
        """Its saved tensors, in the order in which it unpacks them."""
        return tuple(SavedTensor(self.snapshot, s) for s in self.snapshot.slots_of(self.index))

    @property
    def next(self) -> tuple[Node, ...]:
        """The nodes that it hands gradients to, in order, with repeats."""
        return tuple(Node(self.snapshot, i) for i in self.snapshot.next(self.index))

    def __repr__(self) -> str:
        return f"<{self.name} #{self.uid}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.index == self.index and other.snapshot is self.snapshot

    def __hash__(self) -> int:
        return hash((id(self.snapshot), self.index))


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A view on one slot of a snapshot.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> saved = graphwidget.snapshot(w.exp().sum()).node(1).saved[0]
    >>> saved.name, saved.state.word, saved.shape, saved.bytes, saved.freed_by
    ('result', 'held', (3,), 12, None)
    """

    snapshot: Snapshot
    slot: int

    @property
    def name(self) -> str:
        """Name of the slot as Python shows it, without prefix: ``self``, ``vec``, ``saved_tensors[0]``."""
        return self.snapshot.slot_names[self.snapshot.slot_name[self.slot]]

    @property
    def state(self) -> SlotState:
        """State of the saved tensor: held, freed, modified since, ..."""
        return SlotState(self.snapshot.slot_state[self.slot])

    @property
    def dtype(self) -> str | None:
        """Type of the tensor, such as ``float32``; None: unknown."""
        at = self.snapshot.slot_dtype[self.slot]
        return self.snapshot.dtypes[at] if at >= 0 else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the tensor; None: unknown."""
        at = self.snapshot.slot_shape[self.slot]
        return self.snapshot.shapes[at] if at >= 0 else None

    @property
    def bytes(self) -> int:
        """Bytes of the tensor itself; 0 when nothing is held and nothing is known."""
        return self.snapshot.slot_bytes[self.slot]

    @property
    def storage(self) -> Storage | None:
        """The memory behind the tensor; None: none, or unknown."""
        at = self.snapshot.slot_storage[self.slot]
        return self.snapshot.storages[at] if at >= 0 else None

    @property
    def freed_by(self) -> int | None:
        """n of the call that freed the slot; None: not freed, or unknown."""
        n = self.snapshot.slot_freed_by[self.slot]
        return n if n >= 0 else None

    def __repr__(self) -> str:
        return f"<saved {self.name}: {self.state.word}>"
