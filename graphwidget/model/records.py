"""Records of what happened and what follows from it: calls, forecasts, findings, fixes, events, writes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphwidget.model.findings import Finding
from graphwidget.model.fixes import Fix
from graphwidget.model.graph.parts import Leaf, ModuleCall, Place, TensorRef
from graphwidget.model.graph.snapshot import Node, SavedTensor, Snapshot
from graphwidget.model.measured.lineage import Lineage
from graphwidget.model.measured.scenes import Scene
from graphwidget.model.measured.starved import (
    EmptyGroup,
    FalseFlag,
    KeptGradients,
    LostGradients,
    MovedWhileFrozen,
    NonFiniteParameters,
    StarvedParameters,
    UnheldLeaf,
)

__all__ = [
    "BackwardCall",
    "CellError",
    "CellRun",
    "FROM_OUTSIDE",
    "Drawing",
    "Event",
    "Finding",
    "Forecast",
    "InnerCall",
    "Look",
    "Reason",
    "Record",
    "Write",
]

# What ends a program, and says nothing of the line where it was.
FROM_OUTSIDE = ("KeyboardInterrupt", "SystemExit", "GeneratorExit", "CellTimeout")

Reason = Literal[
    "freed",
    "inplace",
    "no_grad",
    "not_scalar",
    "unused",
    "detached",
    "leaf_interior",
    "not_differentiable",
    "checkpoint",
    "overlap",
    "raises",  # Python code in the graph whose source says so, or a `.grad` to which nothing can be added
]


@dataclass(frozen=True)
class Forecast:
    """The effects that a backward call would have. Computed on a snapshot; nothing has run.

    Attributes
    ----------
    ok
        True: it would succeed; False: it would raise `reason` at `fails_at`; None: cannot be known
        (`why` says so, `unknown_at` where). `executes`, `frees` and `reaches` then hold what is certain.
    assumes
        Assumptions of the answer that cannot be checked, one sentence each.
    executes
        Nodes in engine order, without the failing one.
    frees
        Node -> the saved tensors that it would release.
    freed_bytes, returned_bytes
        Bytes of the saved tensors that would be freed, once per storage; and those of them that nothing else owns.
    reaches
        Leaves whose `.grad` would change.
    releases
        Whether nodes release their saved tensors once they have run (no `retain_graph`).
    writes
        Storages (indices) of `.grad`s to which the call adds in place; slots that saved one go stale.
    may_write
        The same for `.grad`s to which it is unknown whether a gradient gets.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> forecast = graphwidget.forecast(loss)
    >>> forecast.ok, forecast.freed_bytes, [leaf.labels[0] for leaf in forecast.reaches]
    (True, 12, ['w'])
    >>> loss.backward()
    >>> graphwidget.forecast(loss).word  # a second call would raise
    'freed'
    """

    ok: bool | None
    reason: Reason | None = None
    fails_at: Node | None = None
    fails_slot: SavedTensor | None = None
    unknown_at: Node | None = None
    why: str = ""
    assumes: tuple[str, ...] = ()
    executes: tuple[Node, ...] = ()
    frees: Mapping[Node, tuple[SavedTensor, ...]] = field(default_factory=dict)
    freed_bytes: int = 0
    returned_bytes: int = 0
    reaches: tuple[Node, ...] = ()
    fixes: tuple[Fix, ...] = ()
    releases: bool = True
    writes: tuple[int, ...] = ()
    may_write: tuple[int, ...] = ()

    @property
    def word(self) -> str:
        """The word in the JSON of `explain`: ok, freed, inplace, no_grad, ..., unknown."""
        if self.ok is None:
            return "unknown"
        return "ok" if self.ok else str(self.reason)


@dataclass(frozen=True)
class BackwardCall:
    """One user-level `backward` or `autograd.grad`.

    `executed` holds node uids in engine order as far as they are known; `executed_count` is always
    right. `graph` is the snapshot taken just before the call (plain data, may be dropped to bound
    memory); `uids` in it are the same as elsewhere. `same_as` names an earlier call of the same
    shape when this one was only counted; it ran the nodes whose sequence numbers are less than
    `highest_seq` by the `distances`. `order` picks the hue and style of its first root, which are the same in
    all pictures; -1: unknown.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> call = tracker.calls[0]
    >>> call.api, call.result, call.freed_slots, call.freed_bytes
    ('backward', 'ok', 1, 12)
    """

    n: int
    place: Place
    api: Literal["backward", "autograd.grad"]
    retain_graph: bool
    create_graph: bool
    roots: tuple[TensorRef, ...]
    root_names: tuple[str, ...]
    inputs: tuple[TensorRef, ...] | None = None
    result: Literal["running", "ok", "raised"] = "running"
    error_type: str | None = None
    error: str | None = None
    forecast: str = "unknown"
    assumes: tuple[str, ...] = ()
    failed_node: str | None = None
    failed_uid: int | None = None
    failed_slot: str | None = None
    failed_place: Place | None = None
    stopped_at: tuple[int, ...] = ()  # uids of nodes, one of which raised, where `failed_uid` is unknown
    freed_by: int | None = None
    executed: array[int] = field(default_factory=lambda: array("q"))
    executed_count: int = 0
    freed_slots: int = 0
    freed_bytes: int = 0
    reached: tuple[str, ...] = ()
    reached_uids: tuple[int, ...] = ()  # AccumulateGrad nodes that ran
    ungiven: tuple[int, ...] = ()  # those of leaves that have no `.grad` after it, and no hooks: nothing came there
    carriers: tuple[str, ...] = ()
    boundary: tuple[int, ...] = ()  # uids of the old nodes at which the new part meets the old one
    newest_seq: int = -1  # sequence counter just before the call
    thread: int = 0
    graph: Snapshot | None = None
    same_as: int | None = None
    order: int = -1
    highest_seq: int = -1
    distances: array[int] = field(default_factory=lambda: array("q"))  # ascending
    inner: InnerCall | None = None  # the call inside this one whose error this one passed on

    @property
    def stopped_uid(self) -> int | None:
        """The uid of the node at which the call stopped; None: unknown, or one of several."""
        return self.stopped_at[0] if self.failed_uid is None and len(self.stopped_at) == 1 else self.failed_uid

    def ran_number(self, seq: int) -> bool:
        """Whether a call that was only counted ran the node with this sequence number."""
        at = bisect_left(self.distances, self.highest_seq - seq)
        return at < len(self.distances) and self.distances[at] == self.highest_seq - seq


@dataclass(frozen=True)
class InnerCall:
    """A call that the user's code made while the engine ran another one, and that raised.

    `call` has the number of the call that it ran inside. `grad_enabled`: whether operations were recorded there.
    `freed_at`: the line of an earlier call inside a call that freed what this one needed; None: no such call, or
    unknown.
    """

    call: BackwardCall
    grad_enabled: bool = True
    freed_at: Place | None = None


@dataclass(frozen=True)
class Event:
    """A tick on the timeline: a cell's end or a backward call.

    `cell` is the execution count of the cell it belongs to, `call` the n of the call. `held_bytes`
    counts saved tensors once per storage, `nodes` the live nodes; None: nobody looked at all that was alive.
    `snapshot` may have been dropped.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> [(event.kind, event.call) for event in tracker.events if event.kind == "call"]
    [('call', 0)]
    """

    id: int
    kind: Literal["cell", "call"]
    cell: int | None
    call: int | None = None
    iteration: int | None = None
    label: str = ""
    ok: bool = True
    held_bytes: int | None = None
    nodes: int | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class Drawing:
    """Everything that one picture shows; the tracker hands it to `render`.

    `snapshot` is the live graph merged with the ghosts of recent calls. `current_event` is the id of
    the event shown (-1: none yet), `torch` the version, `busy` a sentence while a cell runs. `steps` are the remembered
    steps of optimizers, oldest first. `record_of`: it is not live but read from the record of this program or process.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> drawing = tracker.drawing()
    >>> len(drawing.calls), drawing.findings, drawing.busy
    (1, (), None)
    """

    snapshot: Snapshot
    calls: tuple[BackwardCall, ...] = ()
    events: tuple[Event, ...] = ()
    findings: tuple[Finding, ...] = ()
    current_event: int = -1
    torch: str = ""
    busy: str | None = None
    steps: tuple[Write, ...] = ()
    record_of: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One line that modified tensors in place.

    `paths` are the names of what it modified, `storages` the `Storage.key`s, `by` the statement as
    written. `after_calls` counts the backward calls that had begun before it, which orders it among them. `made` are
    the sequence numbers of the nodes that were grad_fn of the tensors when the line had ended, and `number` is the
    lowest that a node could get when it began. Neither is known of an optimizer's steps. `inside` is the module with
    ``inplace=True`` that did it, where the graph shows it. `others` are further names, of tensors in the same memory.
    `optimizer_at`: of a step that never modified anything, the number of its optimizer as in
    `MeasuredCut.positions`; -1: it is another write, or unknown.
    """

    place: Place
    by: str
    paths: tuple[str, ...] = ()
    storages: tuple[int, ...] = ()
    after_calls: int = 0
    optimizer: bool = False
    made: tuple[int, ...] = ()
    number: int = -1
    inside: ModuleCall | None = None
    others: tuple[str, ...] = ()
    optimizer_at: int = -1

    def is_to(self, leaf: Leaf) -> bool:
        """Whether it modified a leaf, or would have: the same memory, or else a name of it."""
        return leaf.memory in self.storages or not set(leaf.paths).isdisjoint(self.paths)


@dataclass(frozen=True, slots=True)
class CellRun:
    """One run of a cell: `run` counts from 0, `cell` is its execution count, `error` what it raised.

    Or a file of the user's own that code ran in: `file` is its path, `cell` is None, and `run` is below 0, except for a
    script, which is what runs itself. `edited`: the file is not what ran, so its `source` is empty. `changed`: it has
    been edited since its code was first seen, and its `source` is that of what ran.

    `grad_before` and `grad_after`: whether grad mode was on when it began, and when it ended (or at its last error).
    `modules`: the modules that the notebook's variables named at its last error, and whether any of their parameters
    required grad. Those without parameters are left out.
    `without_grad`: the tensors of which the line that raised read a `.grad` that was None, as it writes them: a
    ``"leaf"`` that requires grad, ``"computed"`` from such, or ``"plain"``.
    `through_backward`: whether the error came out of a call of `backward` or `autograd.grad`.
    `scene`: what else was measured where it raised.
    """

    run: int
    cell: int | None
    source: str
    cell_id: str | None = None
    error_type: str | None = None
    error: str | None = None
    error_place: Place | None = None
    grad_before: bool = True
    grad_after: bool = True
    modules: Mapping[str, bool] = field(default_factory=dict)
    without_grad: Mapping[str, Literal["leaf", "computed", "plain"]] = field(default_factory=dict)
    through_backward: bool = False
    scene: Scene = Scene()
    file: str | None = None
    edited: bool = False
    changed: bool = False


@dataclass(frozen=True)
class CellError:
    """An error that a cell raised.

    `step` counts runs from 1, `cell` is the file's cell (None: a script), `number` the execution count, `line` the
    outermost frame's. `place`: the innermost line of the user's own code. `leaves`: it is a ``sys.exit()`` with
    status 0, which ended the cell and reports success.
    """

    step: int
    cell: int | None
    number: int | None
    line: int | None
    type: str
    message: str
    leaves: bool = False
    place: Place | None = None


@dataclass(frozen=True)
class Look:
    """What was alive just before call `call` (its n), if graphs of several iterations were."""

    call: int
    graph: Snapshot


@dataclass(frozen=True)
class Record:
    """The input of a diagnosis: the present graph, and the recorded history that led to it.

    `outlived` names nodes (uids) that a user's variable owned at an earlier event and that now only
    the notebook itself keeps (`Out`, `_`, the last traceback), with the name they had. `hidden` are the
    writes through ``.data``, which PyTorch does not count. `idle` are steps of optimizers that have never modified
    anything, because none of their parameters (`Write.paths`) had a gradient: of each the last. `holders` says what the
    names hold that lead to the tensors: ``"module"``, ``"parameter"``, ``"buffer"``, ``"optimizer"``, ``"loader"``,
    ``"leaf"``, ``"leaves"``, ``"tensor"``, ``"container"`` (of tensors and plain values), ``"value"`` or ``"object"``.
    `notebook`: the user goes on working in this kernel, so it matters what the notebook itself keeps. `looks`:
    what was alive when some of the calls were made, oldest first. `scenes`: measurements where calls (by n) raised.
    `starved`: parameters for which no step of their optimizer found a gradient. `unheld`: leaves with a gradient that
    no optimizer has held. `kept_grads`: parameters whose gradients were never cleared between steps. `lost_grads`:
    parameters whose gradients were cleared before any step used them. `nonfinite`: parameters of optimizers that are
    not finite. `false_flags`: what was to be frozen by an attribute that torch does not read. `moved_while_frozen`:
    parameters that steps changed though they require no grad. `empty_groups`: groups of optimizers that have lost
    their parameters. `held_frozen`: optimizers hold parameters that were frozen at their last steps.
    `cyclic`: n of a call -> names of leaves that refer to themselves since then, through a `.grad` with a graph
    (empty: without a name). Only the first calls of each line are looked at.
    `lineage`: where values left the graph, if the program has run once more to measure that.
    `unfinished`: the program was stopped, or raised, before its end: calls that were to come did not.
    """

    snapshot: Snapshot
    calls: tuple[BackwardCall, ...] = ()
    writes: tuple[Write, ...] = ()
    runs: Mapping[int, CellRun] = field(default_factory=dict)
    outlived: Mapping[int, str] = field(default_factory=dict)
    hidden: tuple[Write, ...] = ()
    idle: tuple[Write, ...] = ()
    holders: Mapping[str, str] = field(default_factory=dict)
    notebook: bool = False
    looks: tuple[Look, ...] = ()
    scenes: Mapping[int, Scene] = field(default_factory=dict)
    starved: tuple[StarvedParameters, ...] = ()
    unheld: tuple[UnheldLeaf, ...] = ()
    kept_grads: tuple[KeptGradients, ...] = ()
    lost_grads: tuple[LostGradients, ...] = ()
    nonfinite: tuple[NonFiniteParameters, ...] = ()
    false_flags: tuple[FalseFlag, ...] = ()
    moved_while_frozen: tuple[MovedWhileFrozen, ...] = ()
    empty_groups: tuple[EmptyGroup, ...] = ()
    held_frozen: bool = False
    cyclic: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    lineage: Lineage | None = None
    unfinished: bool = False

    def was_run(self, uid: int, seq: int) -> bool:
        """Whether a call is known to have run a node, given by its uid and its sequence number."""
        return any(uid in call.executed or call.ran_number(seq) for call in self.calls)

    def is_stepped(self, leaf: Leaf) -> bool:
        """Whether a step of an optimizer modified a leaf, which may have another name there: in another function."""
        return any(write.optimizer and write.is_to(leaf) for write in self.writes)
