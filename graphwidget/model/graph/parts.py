"""The types in a snapshot's columns and tables: kinds, states, places, leaves, storages, tensors, owners, facts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, overload

__all__ = [
    "KEEPS_MEMORY",
    "Kind",
    "Leaf",
    "ModuleCall",
    "NodeFacts",
    "Output",
    "Owner",
    "Place",
    "SlotState",
    "Storage",
    "Storages",
    "TensorRef",
    "in_order",
    "is_notebooks",
    "spot_text",
]


def is_notebooks(kind: str, path: str) -> bool:
    """Whether an owner belongs to the notebook itself: IPython's history, or the frames of the last error.

    Frames that a variable of the user keeps alive (an exception in a list) do not count.
    """
    return kind == "out" or (kind == "traceback" and path.startswith(("sys.last_", "get_ipython()")))


def in_order(paths: Iterable[str]) -> tuple[str, ...]:
    """Sort names by their text alone, the best first: short names, and IPython's own names last.

    Names with known owners need no sorting: they are in order already.
    """
    return tuple(sorted(paths, key=lambda path: (path.startswith(("_", "Out[")), len(path), path)))


class SlotState(IntEnum):
    """State of one saved tensor. The names in lower case are the words shown to people.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> loss.backward()
    >>> saved = [saved for node in graphwidget.snapshot(loss).nodes for saved in node.saved]
    >>> [slot.state.word for slot in saved]
    ['freed']
    """

    HELD = 0
    FREED = 1
    STALE = 2  # held, but modified in place since: unpacking would raise
    PACKED = 3  # behind a saved-tensor hook (checkpoint, offload): never unpacked by us
    UNSAVED = 4  # the formula did not need it
    UNKNOWN = 5

    @property
    def word(self) -> str:
        """The word shown to people: ``held``, ``freed``, ..."""
        return self.name.lower()

    @property
    def keeps_memory(self) -> bool:
        """Whether a slot in this state keeps the memory of a tensor."""
        return self in (SlotState.HELD, SlotState.STALE, SlotState.PACKED)

    @property
    def is_final(self) -> bool:
        """Whether a slot never leaves this state again."""
        return self in (SlotState.FREED, SlotState.UNSAVED)


# 1 for each state that keeps memory: `KEEPS_MEMORY[state]`, or `slot_state.translate(KEEPS_MEMORY)` for a whole column.
# Comparing enums is slow in long columns.
KEEPS_MEMORY = bytes(state < len(SlotState) and SlotState(state).keeps_memory for state in range(256))


class Kind(IntEnum):
    """What sort of backward Function a node is.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> [node.kind.name for node in graphwidget.snapshot(w.sum()).nodes]
    ['FUNCTION', 'ACCUMULATE']
    """

    FUNCTION = 0  # generated from a formula, e.g. MulBackward0
    ACCUMULATE = 1  # AccumulateGrad: a leaf
    CUSTOM = 2  # a Python torch.autograd.Function
    COPY_SLICES = 3  # in-place write into a view; its inner node cannot be seen
    ERROR = 4  # always raises when it runs (once_differentiable, not implemented)
    COMPILED = 5  # a torch.compile'd region


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's code something happened. `None` means unknown, never a guess.

    `cell` is the execution count (`In[cell]`), `line` counts from 1 inside the cell. For code in a file, `file` is its
    path, relative to the working directory where it lies below it, and `cell` is None. They name the innermost frame
    of the user's own code, and `function` its function (``Encoder.forward``); `outer_cell`, `outer_file` and
    `outer_line` name the outermost frame, which differs when a function ran. `stack` are the calling lines, outermost
    first. `iteration` counts the passes of the innermost enclosing loop of the outer cell from 0.

    Examples
    --------
    >>> from graphwidget import Place
    >>> place = Place(cell=2, line=4, source="loss.backward()", iteration=0)
    >>> place.cell, place.line, place.outer_line is None
    (2, 4, True)
    """

    cell: int | None
    line: int | None
    source: str = ""
    outer_cell: int | None = None
    outer_line: int | None = None
    outer_source: str = ""
    iteration: int | None = None
    cell_id: str | None = None
    run: int | None = None  # counts cell runs from 0: two runs differ even without execution counts
    button: bool = False  # a button of the view made the call: no line did
    file: str | None = None
    function: str | None = None
    outer_file: str | None = None
    inner_run: int | None = None  # the run of the cell, or of the file, that the line itself belongs to
    anomaly: bool = (
        False  # known only because torch's anomaly mode had stored it: not what called it, nor the iteration
    )
    stack: tuple[Place, ...] = field(default=(), compare=False)

    @property
    def spot(self) -> str:
        """The line as text: ``In[2]:4``, ``proj/model.py:15``; empty where it is unknown."""
        return spot_text(self.cell, self.line, self.file)

    @property
    def outside(self) -> str:
        """Text for a place that is in no cell."""
        if self.button:
            return "the backward button"
        return self.spot or "place unknown"


def spot_text(cell: int | None, line: int | None, file: str | None = None) -> str:
    """``In[2]:4``; ``proj/model.py:15``; ``line 4`` in a cell without a number (marimo); empty where it is unknown."""
    if line is None:
        return file or (f"In[{cell}]" if cell is not None else "")
    if file is not None:
        return f"{file}:{line}"
    return f"line {line}" if cell is None else f"In[{cell}]:{line}"


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One forward call of an `nn.Module`: dotted path from the user's name, class, and call number from 0.

    `named`: the path begins with a variable of the user's, not with a class. `inplace`: a module of torch's own that
    was made to modify what it is given (``nn.ReLU(inplace=True)``).

    Examples
    --------
    >>> from graphwidget import ModuleCall
    >>> call = ModuleCall("model.h[0]", "Block", call=2, named=True)
    >>> f"{call.path}: {call.class_name}, call {call.call + 1}"
    'model.h[0]: Block, call 3'
    """

    path: str
    class_name: str
    call: int
    named: bool = False
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """The leaf behind an AccumulateGrad node. `bytes` is the size of the tensor itself.

    `grad_refuses`: reason why nothing can be added to its `.grad` in place ("is a ZeroTensor"); empty: there is none.
    `reshaped`: since its use, it got data of another shape (``w.data = ...``). `memory` is the `Storage.key` of its
    values: by it a leaf is known again in other snapshots, where it may have other names; -1: unknown.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> leaf = graphwidget.snapshot(w.sum()).node(1).leaf
    >>> leaf.paths, leaf.shape, leaf.dtype, leaf.has_grad, leaf.bytes
    (('w',), (3,), 'float32', False, 12)
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
    memory: int = -1


class Output(NamedTuple):
    """One output of an operation, and so the gradient that arrives for it: of its type, shape and device.

    A length of -1 in the shape is not one number.
    """

    dtype: str
    shape: tuple[int, ...]
    device: str


class Storage(NamedTuple):
    """Memory behind one or more saved tensors. `key` is the same across snapshots while it lives.

    `owners` are the Python paths of tensors that use it too: freeing the slot alone does not give
    these bytes back.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> y = w.exp()
    >>> storage = graphwidget.snapshot(y.sum()).node(1).saved[0].storage
    >>> storage.bytes, storage.owners  # `y` itself is what exp() saved: freeing the slot gives no memory back
    (12, ('y',))
    """

    key: int
    bytes: int
    owners: tuple[str, ...] = ()


class Storages(Sequence[Storage]):
    """The storages of a snapshot, about as many as nodes: kept in columns, each object is made on demand.

    Attributes
    ----------
    key, bytes
        Of all storages.
    owners
        Index -> paths, for storages that have any.
    """

    __slots__ = ("bytes", "key", "owners")

    def __init__(
        self, key: Iterable[int] = (), bytes: Iterable[int] = (), owners: Mapping[int, tuple[str, ...]] | None = None
    ) -> None:
        self.key, self.bytes, self.owners = array("q", key), array("q", bytes), owners or {}

    @classmethod
    def of(cls, rows: Sequence[Storage]) -> Storages:
        """Convert storages to columns."""
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

    `known_as`: only the last error's traceback keeps it; what it was called when a call was made on it, or there.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.sum()
    >>> root = graphwidget.snapshot(loss).roots[0]
    >>> root.path, root.numel, root.is_leaf
    ('loss', 1, False)
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
    known_as: str = ""

    @property
    def path(self) -> str | None:
        """The shortest path; None: the tensor has no name. If only the last error keeps it, the path says so."""
        if self.known_as:
            return f"{self.known_as} (kept by the last error)"
        return self.paths[0] if self.paths else None


@dataclass(frozen=True, slots=True)
class Owner:
    """A Python path that keeps a node alive through output `output_nr` of that node (an index).

    `kind`: variable, element, attribute, closure, frame, generator, out, traceback, grad, hook, other.
    `containers`: name of the type and length of the container that an element is in, and of the one around that.
    `bounded`: it is in a queue with a small `maxlen`, or in one that is full and lets the oldest go.
    `anchor`: identity of the object that a class name stands for with which the path begins (``Net(…).h``); 0: none.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> losses = [w.sum()]
    >>> owner = graphwidget.snapshot(*losses).owners[0]
    >>> owner.path, owner.kind, owner.containers
    ('losses[0]', 'element', (('list', 1),))
    """

    path: str
    node: int
    output_nr: int = 0
    kind: str = "variable"
    containers: tuple[tuple[str, int], ...] = ()
    bounded: bool = False
    anchor: int = 0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts that only some nodes have and only the engine's simulation needs. Defaults: nothing special.

    Attributes
    ----------
    class_name
        For a custom Function: the qualified name of the class.
    reads_saved
        For a custom Function: whether its backward reads `ctx.saved_tensors`; None: cannot be known.
    plain
        For a custom Function: its backward was read and contains nothing whose effect cannot be foreseen.
    may_return_none
        For a custom Function: False if every gradient it returns is defined, None: cannot be known.
    materialize_grads
        For a custom Function: whether undefined gradients reach its backward as zeros.
    reentrant_checkpoint, non_reentrant_checkpoint
        Node of `torch.utils.checkpoint`. `checkpoint` numbers the frame that its slots belong to.
    argument_state
        Worst state of the arguments that the checkpoint frame kept: "ok", "inplace", "detached", "frozen" (a leaf that
        it uses was switched to `requires_grad=False` since: the recomputation may save other tensors), "used" (it is a
        selective one, and an earlier call used what it kept), "unknown".
    arguments
        For a custom Function: per tensor that it was applied to, the position among all that it was applied to; -1: the
        tensor needs no gradient.
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
    detached_slot
        Name of a slot (state STALE): a saved input that was `.detach_()`ed since.
    returns
        For a custom Function: per edge of the snapshot, whether the gradient it returns is defined
        when those it gets are (None: cannot be known). Empty: `may_return_none` speaks for all.
    effect
        Effect of Python code behind the node (backward, recomputed function) that cannot be foreseen ("calls backward
        itself"). Not empty: a call that runs the node cannot be forecast.
    unpack_plain
        For a node with packed slots: the unpack or recomputed functions were read and are harmless.
    hooks_plain, hook_effect
        How many of the `hooks` were read and are harmless; an unforeseeable effect of one of the others.
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
    detached_slot: str | None = None
    returns: tuple[bool | None, ...] = ()
    effect: str = ""
    unpack_plain: bool = False
    hooks_plain: int = 0
    hook_effect: str = ""
    operands: tuple[int, ...] = ()
    refuses_inputs: bool = False
    nested_grads: tuple[int, ...] = ()
    arguments: tuple[int, ...] = ()
