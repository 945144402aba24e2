"""The autograd graph at one moment, and what it is told in: states, places, leaves, owners."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import compress
from os import PathLike
from typing import Any, NamedTuple, overload

__all__ = [
    "Kind",
    "Leaf",
    "ModuleCall",
    "Node",
    "NodeFacts",
    "Owner",
    "Place",
    "SavedTensor",
    "SlotState",
    "Snapshot",
    "Storage",
    "Storages",
    "TensorRef",
    "in_order",
]


def in_order(paths: Iterable[str]) -> tuple[str, ...]:
    """Names of one tensor, the best one first: short ones, and last those that IPython gives (``_``, ``Out[3]``)."""
    return tuple(sorted(paths, key=lambda path: (path.startswith(("_", "Out[")), len(path), path)))


class SlotState(IntEnum):
    """State of one saved tensor. The names in lower case are the words shown to people."""

    HELD = 0
    FREED = 1
    STALE = 2  # held, but modified in place since: unpacking would raise
    PACKED = 3  # behind a saved-tensor hook (checkpoint, offload): never unpacked by us
    UNSAVED = 4  # the formula did not need it
    UNKNOWN = 5

    @property
    def word(self) -> str:
        return self.name.lower()


# By state: whether the slot keeps memory. A table, because comparing enums is slow in long columns.
_KEEPS = bytes(state in (SlotState.HELD, SlotState.STALE, SlotState.PACKED) for state in range(256))


class Kind(IntEnum):
    """What sort of backward Function a node is."""

    FUNCTION = 0  # generated from a formula, e.g. MulBackward0
    ACCUMULATE = 1  # AccumulateGrad: a leaf
    CUSTOM = 2  # a Python torch.autograd.Function
    COPY_SLICES = 3  # in-place write into a view; its inner node cannot be seen
    ERROR = 4  # always raises when it runs (once_differentiable, not implemented)
    COMPILED = 5  # a torch.compile'd region


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's code something happened. `None` means unknown, never a guess.

    `cell` is the execution count (`In[cell]`), `line` counts from 1 inside the cell. They name the
    innermost frame that lies in a cell; `outer_cell` and `outer_line` the outermost one, which
    differs when a function that was defined in another cell ran. `iteration` counts the passes of
    the innermost enclosing loop of the outer cell from 0.
    """

    cell: int | None
    line: int | None
    source: str = ""
    outer_cell: int | None = None
    outer_line: int | None = None
    outer_source: str = ""
    iteration: int | None = None
    cell_id: str | None = None
    run: int | None = None  # counts cell runs from 0: tells two runs apart even without execution counts


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One forward call of an `nn.Module`: dotted path from the user's name, class, and call number from 0."""

    path: str
    class_name: str
    call: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """The leaf behind an AccumulateGrad node. `bytes` counts the tensor itself.

    `grad_refuses` says why nothing can be added to its `.grad` in place ("is a ZeroTensor"); empty: something can.
    `reshaped`: it was given data of another shape than it had when it was used (``w.data = ...``).
    """

    paths: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    has_grad: bool
    requires_grad: bool = True
    is_leaf: bool = True
    bytes: int = 0
    grad_storage: int = -1  # index into Snapshot.storages of `.grad`, -1: none
    grad_refuses: str = ""
    reshaped: bool = False


class Storage(NamedTuple):
    """Memory behind one or more saved tensors. `key` is the same across snapshots while it lives.

    `owners` are the Python paths of tensors that use it too: freeing the slot alone does not give
    these bytes back.
    """

    key: int
    bytes: int
    owners: tuple[str, ...] = ()


class Storages(Sequence[Storage]):
    """The storages of a snapshot, about as many as nodes: in columns, each made when it is asked for.

    Attributes
    ----------
    key, bytes
        Of all.
    owners
        Index -> paths, of those that have any.
    """

    __slots__ = ("bytes", "key", "owners")

    def __init__(
        self, key: Iterable[int] = (), bytes: Iterable[int] = (), owners: Mapping[int, tuple[str, ...]] | None = None
    ) -> None:
        self.key, self.bytes, self.owners = array("q", key), array("q", bytes), owners or {}

    @classmethod
    def of(cls, rows: Sequence[Storage]) -> Storages:
        """The same as columns."""
        owners = {i: row.owners for i, row in enumerate(rows) if row.owners}
        return cls([row.key for row in rows], [row.bytes for row in rows], owners)

    def __len__(self) -> int:
        return len(self.key)

    @overload
    def __getitem__(self, at: int) -> Storage: ...

    @overload
    def __getitem__(self, at: slice) -> Storages: ...

    def __getitem__(self, at: int | slice) -> Storage | Storages:
        if isinstance(at, slice):
            return Storages.of([self[i] for i in range(len(self))[at]])
        return Storage(self.key[at], self.bytes[at], self.owners.get(at % len(self.key), ()))


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor as autograd sees it: which output of which node. `node` is an index, -1: no node.

    `problem` says why a backward cannot start, or is not known to, although `requires_grad` is true:
    ``no_grad_view`` (a view made under `no_grad`: refused as if it did not require grad), ``no_grad_view_modified``
    (the same, modified since: even reading its history raises), ``view_modified`` (one of several views that one
    operation made, modified since: so does reading this one's), ``stale_view`` (a view that may have been modified
    through its base; torch rebuilds its history when it is next used, so we did not look), ``unreadable``.
    For a leaf `node` is its AccumulateGrad node. A leaf root always has one, if need be one that torch has not
    made yet.
    """

    node: int
    output_nr: int = 0
    paths: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    dtype: str = ""
    numel: int = 1
    requires_grad: bool = True
    is_leaf: bool = False
    problem: str | None = None

    @property
    def path(self) -> str | None:
        """The shortest path, or None for a tensor that nobody can name."""
        return self.paths[0] if self.paths else None


@dataclass(frozen=True, slots=True)
class Owner:
    """A Python path that keeps a node alive through output `output_nr` of that node (an index).

    `kind`: variable, element, attribute, closure, frame, generator, out, traceback, grad, hook, other.
    """

    path: str
    node: int
    output_nr: int = 0
    kind: str = "variable"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What only some nodes have and only the engine's simulation needs. Defaults: nothing special.

    Attributes
    ----------
    reads_saved
        For a custom Function: whether its backward reads `ctx.saved_tensors`; None: cannot be known.
    plain
        For a custom Function: its backward was read and contains nothing whose effect cannot be foreseen.
    may_return_none
        For a custom Function: False if every gradient it returns is defined, None: cannot be known.
    reentrant_checkpoint, non_reentrant_checkpoint
        Node of `torch.utils.checkpoint`. `checkpoint` numbers the frame that its slots belong to.
    argument_state
        Worst state of the arguments that the checkpoint frame kept: "ok", "inplace", "detached", "frozen" (a leaf that
        it uses was switched to `requires_grad=False` since: the recomputation may save other tensors), "used" (it is a
        selective one, and an earlier call used what it kept), "unknown".
    hooks
        Number of Python hooks known to be registered on the node or leaf; 0: none known.
    released
        For a CopySlices node: whether a call has run over it without retain_graph. None: cannot be known.
        For a custom Function: True where it was released although it shows no slot (it saved nothing), so that
        reading `ctx.saved_tensors` raises "freed". For one that hides what it saved: as for CopySlices.
    hides_saved
        A function written in C++ (TorchScript, extensions): whether it saved anything cannot be seen.
    inner_stale
        For a CopySlices node: whether its inner node would meet a stale operand. None: cannot be known.
    inner_packed
        For a CopySlices node: what its inner node saved lies behind a hook, see `unpack_plain` and `checkpoint`.
    overlap
        For a CopySlices node: it wrote to memory that overlaps itself and raises when it runs.
    returns
        For a custom Function: per edge of the snapshot, whether the gradient it returns is defined
        when those it gets are (None: cannot be known). Empty: `may_return_none` speaks for all.
    effect
        What Python code behind the node (backward, recomputed function) was seen to do that nobody can foresee.
        Not empty: a call that runs the node cannot be forecast ("calls backward itself").
    unpack_plain
        For a node with packed slots: the unpack or recomputed functions were read and are harmless.
    hooks_plain, hook_effect
        How many of the `hooks` were read and are harmless; what one of them was seen to do otherwise.
    operands
        Storages (indices) of tensors that are checked although no slot of the graph shows them: arguments of a
        checkpoint; for a CopySlices node, `.grad`s that its inner node may have saved.
    refuses_inputs
        For a re-entrant checkpoint: a call in progress uses `inputs=`, so that it would refuse any call nested in it.
    nested_grads
        For a re-entrant checkpoint: storages (indices) of `.grad`s to which its own backward may add in place.
    """

    class_name: str = ""
    reads_saved: bool | None = None
    plain: bool = False
    may_return_none: bool | None = None
    materialize_grads: bool = True
    reentrant_checkpoint: bool = False
    non_reentrant_checkpoint: bool = False
    checkpoint: int = -1
    argument_state: str = "ok"
    hooks: int = 0
    released: bool | None = False
    hides_saved: bool = False
    inner_stale: bool | None = False
    inner_packed: bool = False
    overlap: bool = False
    detached_slot: str | None = None  # name of a slot (state STALE): a saved input that was `.detach_()`ed since
    returns: tuple[bool | None, ...] = ()
    effect: str = ""
    unpack_plain: bool = False
    hooks_plain: int = 0
    hook_effect: str = ""
    operands: tuple[int, ...] = ()
    refuses_inputs: bool = False
    nested_grads: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Snapshot:
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
        Every known path that keeps a node alive.
    notes
        Sentences on what could not be looked at ("searched 2000 of 100000 objects of `cache`").
    checks_nan
        Anomaly detection was on: a call raises at the first gradient that is NaN.
    memo
        What the capture keeps for its next snapshot; says nothing to others.
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
    memo: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.storages, Storages):  # given as rows
            object.__setattr__(self, "storages", Storages.of(self.storages))

    def __len__(self) -> int:
        return len(self.uid)

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self)} nodes, {len(self.slot_state)} slots, {len(self.roots)} roots>"

    def node(self, index: int) -> Node:
        """The node at `index`."""
        return Node(self, index)

    @property
    def nodes(self) -> Iterator[Node]:
        """All nodes, as views made on the way."""
        return (Node(self, i) for i in range(len(self.uid)))

    @cached_property
    def index_of(self) -> dict[int, int]:
        """uid -> index."""
        return {uid: i for i, uid in enumerate(self.uid)}

    def name_of(self, index: int) -> str:
        return self.names[self.name[index]]

    def next(self, index: int) -> array[int]:
        """Indices of the nodes that `index` hands gradients to, in order, with repeats."""
        return self.edge_to[self.edge_start[index] : self.edge_start[index + 1]]

    def place_of(self, index: int) -> Place | None:
        at = self.place[index]
        return self.places[at] if at >= 0 else None

    def module_of(self, index: int) -> ModuleCall | None:
        at = self.module[index]
        return self.modules[at] if at >= 0 else None

    def slots_of(self, index: int) -> range:
        """Slot positions of a node."""
        return range(self.slot_start[index], self.slot_start[index + 1])

    @cached_property
    def labels(self) -> dict[int, tuple[str, ...]]:
        """Index -> paths of the tensors that have this node as grad_fn, shortest first."""
        found: dict[int, list[str]] = {}
        for owner in self.owners:
            found.setdefault(owner.node, []).append(owner.path)
        return {i: tuple(sorted(paths, key=lambda p: (len(p), p))) for i, paths in found.items()}

    def held_bytes(self) -> int:
        """Bytes that saved tensors keep, once per storage."""
        keeps = self.slot_state.translate(_KEEPS)
        known = set(compress(self.slot_storage, keeps))
        unknown = 0
        if -1 in known:
            known.remove(-1)
            slots = zip(self.slot_storage, self.slot_bytes)
            unknown = sum(size for storage, size in compress(slots, keeps) if storage < 0)
        return unknown + sum(map(self.storages.bytes.__getitem__, known))

    # The ways out. Each imports its renderer when called: this module stays at the bottom of the house.

    def to_text(self) -> str:
        """A picture in characters: one line per node from the losses to the leaves."""
        from graphwidget.model.records import Drawing
        from graphwidget.render import text

        return text.picture(Drawing(self))

    def to_json(self) -> str:
        """The graph as JSON text: one object per node, for other programs."""
        from graphwidget.render import json_export

        return json_export.to_json(self)

    def to_dot(self) -> str:
        """The graph in Graphviz' language."""
        from graphwidget.render import dot

        return dot.to_dot(self)

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph` with uids as nodes, edges from loss to leaves.

        Raises
        ------
        ImportError
            If networkx is not installed.
        """
        from graphwidget.render import networkx_export

        return networkx_export.to_networkx(self)

    def to_svg(self) -> str:
        """A static picture as SVG text.

        Raises
        ------
        ImportError
            If quickjs-ng is not installed.
        """
        from graphwidget.model.records import Drawing
        from graphwidget.render import picture

        return picture.to_svg(Drawing(self))

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the picture to `path` as one HTML file that needs no network.

        Raises
        ------
        ImportError
            If quickjs-ng is not installed.
        OSError
            If `path` cannot be written.
        """
        from graphwidget.model.records import Drawing
        from graphwidget.render import picture

        picture.write_html(Drawing(self), path)


@dataclass(frozen=True, slots=True)
class Node:
    """A view on one node of a snapshot."""

    snapshot: Snapshot
    index: int

    @property
    def uid(self) -> int:
        return self.snapshot.uid[self.index]

    @property
    def name(self) -> str:
        return self.snapshot.name_of(self.index)

    @property
    def sequence_nr(self) -> int:
        return self.snapshot.seq[self.index]

    @property
    def kind(self) -> Kind:
        return Kind(self.snapshot.kind[self.index])

    @property
    def place(self) -> Place | None:
        return self.snapshot.place_of(self.index)

    @property
    def module(self) -> ModuleCall | None:
        return self.snapshot.module_of(self.index)

    @property
    def leaf(self) -> Leaf | None:
        return self.snapshot.leaves.get(self.index)

    @property
    def labels(self) -> tuple[str, ...]:
        """Paths of the tensors whose grad_fn this is; for a leaf, the paths of the leaf."""
        leaf = self.leaf
        return leaf.paths if leaf else self.snapshot.labels.get(self.index, ())

    @property
    def is_ghost(self) -> bool:
        return bool(self.snapshot.ghost[self.index])

    @property
    def saved(self) -> tuple[SavedTensor, ...]:
        return tuple(SavedTensor(self.snapshot, s) for s in self.snapshot.slots_of(self.index))

    @property
    def next(self) -> tuple[Node, ...]:
        return tuple(Node(self.snapshot, i) for i in self.snapshot.next(self.index))

    def __repr__(self) -> str:
        return f"<{self.name} #{self.uid}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.index == self.index and other.snapshot is self.snapshot

    def __hash__(self) -> int:
        return hash((id(self.snapshot), self.index))


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A view on one slot of a snapshot."""

    snapshot: Snapshot
    slot: int

    @property
    def name(self) -> str:
        return self.snapshot.slot_names[self.snapshot.slot_name[self.slot]]

    @property
    def state(self) -> SlotState:
        return SlotState(self.snapshot.slot_state[self.slot])

    @property
    def dtype(self) -> str | None:
        at = self.snapshot.slot_dtype[self.slot]
        return self.snapshot.dtypes[at] if at >= 0 else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        at = self.snapshot.slot_shape[self.slot]
        return self.snapshot.shapes[at] if at >= 0 else None

    @property
    def bytes(self) -> int:
        return self.snapshot.slot_bytes[self.slot]

    @property
    def storage(self) -> Storage | None:
        at = self.snapshot.slot_storage[self.slot]
        return self.snapshot.storages[at] if at >= 0 else None

    @property
    def freed_by(self) -> int | None:
        n = self.snapshot.slot_freed_by[self.slot]
        return n if n >= 0 else None

    def __repr__(self) -> str:
        return f"<saved {self.name}: {self.state.word}>"
