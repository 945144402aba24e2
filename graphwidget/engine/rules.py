"""What happens when the engine runs one node: the rules of a forecast, node by node.

Each rule was measured against PyTorch, and the differential tests in `tests/fuzz` check them. A rule
returns None (the node runs) or a `Stop`: a certain error, or a point past which nothing can be known.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final, NamedTuple

from graphwidget.model import Kind, NodeFacts, Reason, SlotState, Snapshot

__all__ = ["DEFINED", "MAYBE", "UNDEFINED", "Rules", "Stop"]

# Whether a gradient that arrives is a tensor. The engine passes undefined gradients on as well. If several arrive at a
# node, their sum is as defined as the most defined of them, hence the order.
UNDEFINED, MAYBE, DEFINED = 0, 1, 2

_UNSEEN_COPY_SLICES = NodeFacts(released=None, inner_stale=None)
_UNSEEN_CUSTOM = NodeFacts()
_NOTHING = NodeFacts()
_RAISES: Final = "raises"  # the first word of an effect whose outcome is certain; there is no other such effect


# Nodes of a second derivative that send a gradient to each of their inputs whenever one arrives. Others may send none
# (convolution, norms, grid_sample), or have no formula at all (cdist, embedding_bag).
_COMPLETE = frozenset(
    """
    AdaptiveAvgPool2D AdaptiveMaxPool2D AvgPool2D AvgPool3D BinaryCrossEntropy Diagonal Elu EmbeddingDense
    FractionalMaxPool2D Gelu Glu Hardshrink Hardswish Hardtanh HuberLoss LeakyRelu LogSigmoid MaskedScatter
    MaxPool2DWithIndices MseLoss NllLoss NllLoss2D ReflectionPad1D ReflectionPad2D RreluWithNoise Select Sigmoid Slice
    SmoothL1Loss SoftMarginLoss Softplus Softshrink Tanh Threshold Unfold UpsampleBicubic2D UpsampleBilinear2D
    """.split()
)
# Nodes of a first derivative whose formula is incomplete.
_INCOMPLETE = ("DirichletGrad", "Igamma", "Igammac", "SpecialZeta", "StandardGammaGrad")


def _doubtful(snapshot: Snapshot) -> frozenset[int]:
    """Nodes generated from formulas that may fail to send a gradient to each of their inputs."""
    incomplete, norms = set(), set()
    for at, name in enumerate(snapshot.names):
        stem = name.rstrip("0123456789")
        inner = stem.removesuffix("BackwardBackward")
        if (inner != stem and inner not in _COMPLETE) or stem.removesuffix("Backward") in _INCOMPLETE:
            incomplete.add(at)
        elif stem.endswith("NormBackward"):
            norms.add(at)
    found = {node for node, name in enumerate(snapshot.name) if name in incomplete} if incomplete else set()
    if norms and any(snapshot.edge_nr):  # if only its mean or deviation has a gradient, only the input gets one
        further = {to for to, nr in zip(snapshot.edge_to, snapshot.edge_nr, strict=True) if nr}
        found.update(node for node in further if snapshot.name[node] in norms)
    return frozenset(node for node in found if snapshot.kind[node] == Kind.FUNCTION)


def _before(snapshot: Snapshot, targets: Set[int]) -> frozenset[int]:
    """Nodes with an edge to one of `targets`."""
    if not targets:
        return frozenset()
    return frozenset(node for node in range(len(snapshot)) if not targets.isdisjoint(snapshot.next(node)))


class Stop(NamedTuple):
    """Why the engine stops at a node. If `reason` is None, it is unknown whether it stops."""

    reason: Reason | None
    why: str
    slot: int = -1


class Rules:
    """The state of the nodes of one snapshot during one simulated call.

    Parameters
    ----------
    snapshot
        The graph.
    create_graph
        With it, AccumulateGrad adds to `.grad` out of place; without it, in place.
    has_inputs
        Whether the call has `inputs=`, which a re-entrant checkpoint refuses.
    """

    def __init__(self, snapshot: Snapshot, *, create_graph: bool, has_inputs: bool) -> None:
        self.snapshot = snapshot
        self.create_graph = create_graph
        self.has_inputs = has_inputs
        self.assumes: dict[str, None] = {}  # an ordered set
        self._grads_written: dict[
            int, bool
        ] = {}  # storage of a .grad that this call adds to in place -> whether that is certain
        self._recomputed: set[int] = set()  # checkpoint frames unpacked so far
        self.doubtful = _doubtful(snapshot)
        self.meets_reshaped = _before(snapshot, {node for node, leaf in snapshot.leaves.items() if leaf.reshaped})
        if snapshot.checks_nan:
            self._assume("No gradient is NaN: anomaly detection is on.")
        if snapshot.ranks > 1:
            # Not every wrapper leaves a trace in the graph: DDP's hooks on AccumulateGrad nodes cannot be seen.
            self._assume(
                f"Each of the {snapshot.ranks} ranks runs this call and reaches the same parameters, as "
                "DistributedDataParallel and FSDP need."
            )

    @property
    def writes_saved_grads(self) -> bool:
        """Whether some `.grad` has been written in this call, so that held slots may be stale by now."""
        return bool(self._grads_written)

    def written(self, surely: bool) -> tuple[int, ...]:
        """Storages of each `.grad` that this call has (`surely`), or may have (not `surely`), added to in place."""
        return tuple(storage for storage, known in self._grads_written.items() if known == surely)

    def facts(self, node: int) -> NodeFacts:
        """The facts of a node; the least favourable ones where capture recorded none."""
        facts = self.snapshot.facts.get(node)
        if facts is not None:
            return facts
        kind = self.snapshot.kind[node]
        if kind == Kind.COPY_SLICES:
            return _UNSEEN_COPY_SLICES
        return _UNSEEN_CUSTOM if kind == Kind.CUSTOM else _NOTHING

    def hooks(self, node: int) -> Stop | None:
        """Pre-hooks run before everything else, also on a node that is only captured."""
        facts = self.facts(node)
        if facts.hook_effect:
            # A hook of a leaf may be one that runs only after a gradient was accumulated.
            surely = facts.hook_effect.startswith(_RAISES) and self.snapshot.kind[node] != Kind.ACCUMULATE
            return Stop(_RAISES if surely else None, f"a hook on {self._name(node)} {facts.hook_effect}")
        if facts.hooks > facts.hooks_plain:
            self._assume(f"The hooks on {self._name(node)} neither raise nor change this graph.")
        return None

    def run(self, node: int, arrived: int) -> Stop | None:
        """Run `node`. `arrived` says how defined the gradients are that reached it: UNDEFINED, MAYBE or DEFINED."""
        kind = self.snapshot.kind[node]
        if node in self.meets_reshaped:
            return Stop(None, f"a leaf that {self._name(node)} used was given data of another shape since")
        if kind == Kind.ACCUMULATE:
            return self._accumulate(node, arrived)
        if kind == Kind.ERROR:
            return Stop("not_differentiable", f"{self._name(node)} always raises: it stands for a missing derivative")
        if kind == Kind.COPY_SLICES:
            return self._copy_slices(node, arrived)
        if kind == Kind.CUSTOM:
            return self._custom(node)
        return self._hidden(node) if self.facts(node).hides_saved else self._slots(node)

    def sends(self, node: int, arrived: int) -> tuple[int, ...] | int:
        """How defined the gradients are that `node` sends: one value for all edges, or one per edge."""
        facts = self.facts(node)
        if self.snapshot.kind[node] != Kind.CUSTOM and not facts.class_name:
            if arrived != UNDEFINED and node in self.doubtful:
                self._assume(f"{self._name(node)} has a formula for each of its inputs and hands each a gradient.")
            return arrived
        # A CopySlices that gets no gradient sends none, whatever node is inside.
        ceiling = DEFINED if facts.materialize_grads and self.snapshot.kind[node] == Kind.CUSTOM else arrived
        if facts.returns:
            return tuple(UNDEFINED if r is False else min(ceiling, DEFINED if r else MAYBE) for r in facts.returns)
        if facts.may_return_none is False:
            return ceiling
        return MAYBE

    def _accumulate(self, node: int, arrived: int) -> Stop | None:
        leaf = self.snapshot.leaves.get(node)
        if leaf is None:
            return None
        doubt = self.facts(node).effect
        if doubt:
            return Stop(None, f"the leaf {leaf.paths[0] if leaf.paths else 'of a node'} {doubt}")
        if not leaf.is_leaf:  # torch checks this before the gradient, so an undefined gradient raises as well
            return Stop("leaf_interior", "the leaf was changed in place and is no leaf any more")
        if arrived == UNDEFINED:
            return None
        if not leaf.requires_grad or not leaf.has_grad or self.create_graph:
            return None
        if leaf.grad_refuses:
            whose = leaf.paths[0] if leaf.paths else "a leaf"
            why = f"the .grad of {whose} {leaf.grad_refuses}: nothing can be added to it"
            return Stop("raises" if arrived == DEFINED else None, why)
        if leaf.grad_storage >= 0:
            surely = self._grads_written.get(leaf.grad_storage, False) or arrived == DEFINED
            self._grads_written[leaf.grad_storage] = surely
        return None

    def _copy_slices(self, node: int, arrived: int) -> Stop | None:
        if arrived == UNDEFINED:
            return None  # returns before it runs its inner node
        facts = self.facts(node)
        if facts.released is None:
            return Stop(None, "whether a call ran over this in-place write before was not seen")
        if facts.released:
            stop: Stop | None = Stop("freed", "an earlier call ran over this in-place write into a view and freed it")
        elif facts.overlap:
            stop = Stop("overlap", "the in-place write went to memory that overlaps itself")
        else:
            stop = self._inside(node, facts)
        if stop and arrived == MAYBE:
            return Stop(None, "whether a gradient reaches this in-place write depends on Python code")
        return stop

    def _inside(self, node: int, facts: NodeFacts) -> Stop | None:
        """The node inside a CopySlices runs."""
        stale = facts.inner_stale
        if stale is False and any(storage in self._grads_written for storage in facts.operands):
            stale = None
        stop = None
        if stale:
            what = "detached in place" if facts.detached_slot else "modified"
            reason: Reason = "detached" if facts.detached_slot else "inplace"
            stop = Stop(reason, f"a tensor that this in-place write needs was {what} since")
        if facts.class_name:
            return self._python_backward(node, facts, lambda: stop)
        if stop is None and facts.effect:
            return Stop(None, f"this in-place write {facts.effect}")
        if stop is None and facts.inner_packed:
            return self._packed(node, -1)
        if stale is None:
            self._assume("The tensors that an in-place write into a view needs were not modified since.")
        return stop

    def _hidden(self, node: int) -> Stop | None:
        """A function written in C++, whose saved tensors cannot be seen."""
        if self.facts(node).released:
            return Stop(
                None, f"{self._name(node)} does not show what it saved, and an earlier call may have freed that"
            )
        self._assume(f"What {self._name(node)} saved was neither freed nor modified since.")
        return None

    def _custom(self, node: int) -> Stop | None:
        facts = self.facts(node)
        if facts.reentrant_checkpoint:
            return self._reentrant_checkpoint(node, facts)

        def unpack() -> Stop | None:
            stop = self._slots(node)
            if stop is None and facts.released:
                stop = Stop("freed", "its (empty) saved tensors were freed by an earlier call")
            return stop

        return self._python_backward(node, facts, unpack)

    def _python_backward(self, node: int, facts: NodeFacts, unpack: Callable[[], Stop | None]) -> Stop | None:
        """A custom Function's backward runs. `unpack` returns what stops it if it reads its saved tensors."""
        surely: Reason | None = _RAISES if facts.effect.startswith(_RAISES) else None
        if facts.effect and facts.reads_saved is not True:
            return Stop(surely if facts.reads_saved is False else None, f"{self._name(node)} {facts.effect}")
        stop = None if facts.reads_saved is False else unpack()
        if stop and stop.reason and facts.reads_saved is None:
            return Stop(None, f"whether {self._name(node)} reads its saved tensors cannot be known")
        if stop is None and facts.effect:
            return Stop(surely, f"{self._name(node)} {facts.effect}")
        if stop is None and not facts.plain:
            self._assume(f"{self._name(node)} runs Python code that neither raises nor changes this graph.")
        return stop

    def _reentrant_checkpoint(self, node: int, facts: NodeFacts) -> Stop | None:
        if self.has_inputs or facts.refuses_inputs:
            return Stop("checkpoint", "a checkpoint with use_reentrant=True refuses autograd.grad and inputs=")
        stop = self._slots(node)
        if stop:
            return stop
        if facts.argument_state == "frozen":
            return Stop(None, "an argument of the checkpoint may need no gradient any more")
        if facts.effect:
            return Stop(None, f"the checkpointed function {facts.effect}")
        if not facts.plain:
            self._assume_recompute(node)
        for storage in facts.nested_grads:
            self._grads_written.setdefault(storage, False)
        return None

    def _slots(self, node: int) -> Stop | None:
        """Unpack every slot in order, as the generated code does before it uses any gradient."""
        snapshot = self.snapshot
        detached = self.facts(node).detached_slot
        for slot in snapshot.slots_of(node):
            state = snapshot.slot_state[slot]
            name = snapshot.slot_names[snapshot.slot_name[slot]]
            if state == SlotState.UNSAVED:
                continue
            if state == SlotState.FREED:
                return Stop("freed", f"its saved tensor {name} was freed by an earlier call", slot)
            if name == detached:
                return Stop("detached", f"its saved tensor {name} was detached in place since", slot)
            if state == SlotState.STALE:
                return Stop("inplace", f"its saved tensor {name} was modified in place since", slot)
            if state == SlotState.UNKNOWN:
                return Stop(None, f"the state of its saved tensor {name} cannot be read", slot)
            stop = self._packed(node, slot) if state == SlotState.PACKED else self._grad_written(node, slot)
            if stop:
                return stop
        return None

    def _grad_written(self, node: int, slot: int) -> Stop | None:
        """A slot that saved the `.grad` of a leaf becomes stale when this call adds to that `.grad`."""
        return self._written(self.snapshot.slot_storage[slot], slot)

    def _written(self, storage: int, slot: int) -> Stop | None:
        if storage < 0 or storage not in self._grads_written:
            return None
        if self._grads_written[storage]:
            return Stop("inplace", "it saved a .grad to which this very call adds in place", slot)
        return Stop(None, "whether this call adds to the .grad that it saved depends on Python code", slot)

    def _packed(self, node: int, slot: int) -> Stop | None:
        """Unpacking a packed slot runs Python: an unpack hook, or a checkpointed function, once per call."""
        facts = self.facts(node)
        if not facts.non_reentrant_checkpoint:
            if not facts.unpack_plain:
                self._assume(f"The hooks that unpack {self._name(node)}'s saved tensors neither raise nor write.")
            return None
        if facts.checkpoint in self._recomputed:
            return None
        self._recomputed.add(facts.checkpoint)
        if facts.argument_state == "inplace":
            return Stop("inplace", "an argument of its checkpoint was modified in place since", slot)
        if facts.argument_state == "detached":
            return Stop("detached", "an argument of its checkpoint was detached in place since", slot)
        for storage in facts.operands:
            stop = self._written(storage, slot)
            if stop:
                return stop
        if facts.argument_state == "used":
            return Stop(
                None, "an earlier call used what its selective checkpoint kept, and it allows for one call", slot
            )
        if facts.argument_state in ("frozen", "unknown"):
            what = "need no gradient any more" if facts.argument_state == "frozen" else "have been modified in place"
            return Stop(None, f"an argument of its checkpoint may {what}", slot)
        if facts.effect:
            return Stop(None, f"the checkpointed function {facts.effect}", slot)
        if not facts.unpack_plain:
            self._assume_recompute(node)
        return None

    def _assume_recompute(self, node: int) -> None:
        place = self.snapshot.place_of(node)
        where = f" of In[{place.cell}], line {place.line}" if place and place.cell is not None else ""
        self._assume(f"The checkpointed function{where} computes the same as before and writes nothing.")

    def _assume(self, sentence: str) -> None:
        self.assumes[sentence] = None

    def _name(self, node: int) -> str:
        return self.snapshot.name_of(node)
