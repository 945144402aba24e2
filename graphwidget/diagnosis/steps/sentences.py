"""What happens at one node of a call, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from graphwidget.diagnosis.wording import number, spoken
from graphwidget.engine.rules import DEFINED, MAYBE, UNDEFINED
from graphwidget.engine.walk import Turn, Walk
from graphwidget.model import (
    KEEPS_MEMORY,
    Kind,
    NodeFacts,
    SavedTensor,
    SlotState,
    Snapshot,
    Step,
    bytes_text,
    type_text,
)

__all__ = ["Telling", "counted", "leaf_name", "listing"]

_MOST = 6  # things that a sentence names
_NOTHING = NodeFacts()


def counted(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listing(words: Sequence[str], most: int = _MOST) -> str:
    """``a, b and 3 more``."""
    shown = list(words[:most])
    if len(words) > most:
        return f"{', '.join(shown)} and {len(words) - most} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""


def leaf_name(graph: Snapshot, node: int) -> str:
    """The name of the leaf of an AccumulateGrad node."""
    leaf = graph.leaves.get(node)
    return spoken(leaf.paths[0]) if leaf is not None and leaf.paths else "an unnamed leaf"


@dataclass(frozen=True)
class Telling:
    """Tells the turns of one call.

    Attributes
    ----------
    past
        Whether it has been made.
    keeps
        The argument that makes it keep what its nodes saved; empty: it frees that.
    create_graph
        Whether gradients are added to a `.grad` out of place.
    inputs
        Index -> name, of the tensors whose gradients `autograd.grad` returns.
    narrowed
        Whether the call has `inputs=`, so that not all gradients are handed on.
    """

    walk: Walk
    graph: Snapshot
    past: bool
    keeps: str
    create_graph: bool
    inputs: dict[int, str]
    narrowed: bool

    def step(self, at: int) -> Step:
        """The step at a position."""
        turn = self.walk.turns[at]
        node = self.graph.node(turn.node)
        runs = turn.result == "runs"
        to = dict.fromkeys(sent.node for sent in turn.sends if sent.defined != UNDEFINED)
        return Step(
            number=at + 1,
            node=node,
            result=turn.result,
            shapes=tuple(shape for nr in self._arrived(turn) if (shape := self._shape(turn.node, nr)) is not None),
            frees=self._frees(turn) if runs else (),
            to=tuple(map(self.graph.node, to)),
            grad=self.grad(at) if runs and node.kind == Kind.ACCUMULATE else "",  # type: ignore[arg-type]
            facts=tuple(self._facts(turn, at)),
        )

    def grad(self, at: int) -> str:
        """What an AccumulateGrad node does to the `.grad` of its leaf; see `Step.grad`."""
        turn = self.walk.turns[at]
        leaf = self.graph.leaves.get(turn.node)
        arrives = max((gradient.defined for gradient in turn.arriving), default=UNDEFINED)
        if leaf is None:
            return "unknown"
        if arrives == UNDEFINED or not leaf.requires_grad:
            return ""
        if arrives == MAYBE:
            return "unknown"
        if not leaf.has_grad and not self._set_before(at, leaf.paths):
            return "set"
        return "replaced" if self.create_graph else "added"

    def _set_before(self, at: int, paths: tuple[str, ...]) -> bool:
        """Whether another AccumulateGrad node of the leaf ran before: its type was changed between two uses."""
        if paths not in self._twice:
            return False
        same = {n for n, leaf in self.graph.leaves.items() if leaf.paths == paths}
        return any(turn.node in same for turn in self.walk.turns[:at])

    @cached_property
    def _twice(self) -> frozenset[tuple[str, ...]]:
        """The names of leaves that have two AccumulateGrad nodes."""
        times = Counter(leaf.paths for leaf in self.graph.leaves.values() if leaf.paths)
        return frozenset(paths for paths, number in times.items() if number > 1)

    # -- one node --------------------------------------------------------------------------------------

    def _facts(self, turn: Turn, at: int) -> Iterator[tuple[str, str]]:
        node = turn.node
        kind, facts = self.graph.kind[node], self.graph.facts.get(node, _NOTHING)
        yield "gradient", self._gradient(turn)
        if facts.hooks:
            yield "hooks", f"{counted(facts.hooks, 'Python hook')} {self._v('would run', 'ran')} here."
        if turn.result == "captures":
            name = self.inputs.get(node, "an input")
            yield (
                "returned",
                (
                    f"autograd.grad {self._v('would return', 'returned')} it for {name}. The node itself "
                    f"{self._v('would not run', 'did not run')}."
                ),
            )
            return
        if node in self.inputs:
            yield "returned", f"autograd.grad {self._v('would return', 'returned')} it for {self.inputs[node]}."
        if kind != Kind.ACCUMULATE:
            yield "saved", self._saved(node, facts)
        inside = self._inside(node, facts)
        if inside:
            yield "inside", inside
        if turn.result == "raises":
            yield "raises", self._raises()
        elif turn.result == "unknown":
            yield "unknown", f"Whether it raises is not known: {self._why()}."
        elif kind == Kind.ACCUMULATE:
            yield "grad", self._grad(turn, at)
        else:
            yield from (("frees", text) for text in self._freed(turn, facts))
            yield "goes to", self._hands_on(turn)

    def _gradient(self, turn: Turn) -> str:
        """What arrives."""
        arrived = self._arrived(turn)
        arrive, arrived_ = "would arrive", "arrived"
        begins = ": the call starts here" if turn.starts else ""
        if not arrived:
            if any(gradient.defined == MAYBE for gradient in turn.arriving):
                return "Whether a gradient arrives depends on Python code."
            return f"No gradient {self._v(arrive, arrived_)}."
        outputs = self.graph.outputs_of(turn.node)
        if len(arrived) == 1 and (outputs is None or len(outputs) <= 1):
            ((nr, times),) = arrived.items()
            kind = self._type(turn.node, nr)
            if times == 1:
                return f"A gradient{kind} {self._v(arrive, arrived_)}{begins}."
            return f"{times} gradients{kind} {self._v(arrive + ' and be', arrived_ + ' and were')} added up{begins}."
        each = listing([f"output {nr}{self._type(turn.node, nr)}" for nr in sorted(arrived)])
        return f"Gradients {self._v(arrive, arrived_)} for {each}{begins}."

    def _saved(self, node: int, facts: NodeFacts) -> str:
        slots = [s for s in self.graph.node(node).saved if s.state != SlotState.UNSAVED]
        if slots:
            return f"It saved {listing(list(map(self._slot, slots)))}."
        if self.graph.kind[node] == Kind.COPY_SLICES or facts.hides_saved:
            return "What it saved cannot be seen."
        return "It saved no tensor."

    def _inside(self, node: int, facts: NodeFacts) -> str:
        """What runs as a part of the node and is no step of the call."""
        kind = self.graph.kind[node]
        run = self._v("would run", "ran")
        if facts.reentrant_checkpoint:
            return (
                f"It {run} its function again, and a backward of its own: the nodes inside are no steps of this call."
            )
        if facts.non_reentrant_checkpoint:
            return f"Its checkpoint {run} its function again, at the first node that needs it."
        if kind == Kind.COPY_SLICES:
            return "It is an in-place write into a view: the node inside it is not shown."
        return "It is a region of torch.compile: what runs inside is not shown." if kind == Kind.COMPILED else ""

    def _slot(self, slot: SavedTensor) -> str:
        kind = type_text(slot.dtype, slot.shape)
        state = {
            SlotState.FREED: f"freed by {number(slot.freed_by)}" if slot.freed_by is not None else "freed before",
            SlotState.STALE: "modified in place since",
            SlotState.PACKED: "behind a hook",
            SlotState.UNKNOWN: "in a state that is not known",
        }.get(slot.state)
        return " ".join(filter(None, [slot.name, kind, f"({state})" if state else ""]))

    def _frees(self, turn: Turn) -> tuple[SavedTensor, ...]:
        if self.keeps:
            return ()
        return tuple(s for s in self.graph.node(turn.node).saved if KEEPS_MEMORY[s.state])

    def _freed(self, turn: Turn, facts: NodeFacts) -> Iterator[str]:
        """What it frees."""
        held = [s for s in self.graph.node(turn.node).saved if KEEPS_MEMORY[s.state]]
        hidden = self.graph.kind[turn.node] == Kind.COPY_SLICES or facts.hides_saved
        free = self._v("would free", "freed")
        if self.keeps:
            if held or hidden:
                yield f"It {free} nothing: {self.keeps}."
        elif held:
            yield f"It {free} {listing([s.name for s in held])}, {bytes_text(bytes_behind(held))}."
        elif hidden:
            yield f"It {free} that."

    def _hands_on(self, turn: Turn) -> str:
        """Where its gradients go."""
        targets: dict[int, int] = {}
        kinds: dict[int, list[str]] = {}
        for sent in turn.sends:
            targets[sent.node] = max(sent.defined, targets.get(sent.node, UNDEFINED))
            kinds.setdefault(sent.node, []).append(self._type(sent.node, sent.output_nr).removeprefix(" "))
        said = self._v("would hand", "handed")
        if not targets:
            if self.narrowed and len(self.graph.next(turn.node)):
                return f"It {said} on nothing: no path leads on from here to the inputs."
            return f"It {said} on nothing: what it was computed from needs no gradient."
        given = [self._target(n, kinds[n]) for n, defined in targets.items() if defined == DEFINED]
        maybe = [self._target(n, []) for n, defined in targets.items() if defined == MAYBE]
        none = [self._target(n, []) for n, defined in targets.items() if defined == UNDEFINED]
        parts = []
        if given:
            parts.append(f"It {said} {'a gradient' if len(given) == 1 else 'gradients'} to {listing(given)}.")
        if none:
            parts.append(f"{listing(none)} {self._v('would get', 'got')} none from it.")
        if maybe:
            parts.append(f"Whether {listing(maybe)} {self._v('would get', 'got')} one depends on Python code.")
        return " ".join(parts)

    def _target(self, node: int, kinds: Sequence[str]) -> str:
        if self.graph.kind[node] == Kind.ACCUMULATE:
            name = f"the leaf {leaf_name(self.graph, node)}".replace("the leaf an unnamed", "an unnamed")
        else:
            name = self.graph.name_of(node).removeprefix("torch::autograd::")
        shown = ", ".join(f"{kind} ×{times}" if times > 1 else kind for kind, times in Counter(kinds).items() if kind)
        return f"{name} ({shown})" if shown else name

    def _grad(self, turn: Turn, at: int) -> str:
        leaf, name = self.graph.leaves.get(turn.node), leaf_name(self.graph, turn.node)
        what = self.grad(at)
        if leaf is None:
            return "Its leaf cannot be read."
        if what == "set":
            return f"The .grad of {name} {self._v('is None and would be', 'was None and was')} set."
        if what == "added":
            there = self._v("would be added to", "was added to")
            return f"It {there} the .grad of {name}, which {self._v('is', 'was')} there already."
        if what == "replaced":
            become = self._v("would become", "became")
            return f"The .grad of {name} {become} the sum, in a new tensor: create_graph=True."
        if what == "unknown":
            return f"Whether the .grad of {name} changes depends on Python code."
        if not leaf.requires_grad:
            return f"{name} does not require grad any more: its .grad {self._v('would stay', 'stayed')} as it was."
        return f"The .grad of {name} {self._v('would stay as it is', 'stayed as it was')}."

    def _raises(self) -> str:
        return (
            f"It {self._v('would raise', 'raised')}: {self._why()}. It {self._v('would free', 'freed')} nothing, and "
            f"no node {self._v('would run', 'ran')} after it."
        )

    # -- words -----------------------------------------------------------------------------------------

    def _v(self, would: str, did: str) -> str:
        return did if self.past else would

    def _why(self) -> str:
        """Why it stops."""
        forecast = self.walk.forecast
        why, slot = forecast.why.rstrip("."), forecast.fails_slot
        if slot is not None and slot.freed_by is not None:
            why = why.replace("an earlier call", number(slot.freed_by))
        return why

    def _arrived(self, turn: Turn) -> Counter[int]:
        """Output number -> number of gradients that surely arrive for it."""
        return Counter(gradient.output_nr for gradient in turn.arriving if gradient.defined == DEFINED)

    def _shape(self, node: int, nr: int) -> tuple[int, ...] | None:
        outputs = self.graph.outputs_of(node)
        return outputs[nr].shape if outputs is not None and nr < len(outputs) else None

    def _type(self, node: int, nr: int) -> str:
        """`` float32[3]``; empty where it is not known."""
        outputs = self.graph.outputs_of(node)
        if outputs is None or nr >= len(outputs):
            return ""
        dtype, shape, _ = outputs[nr]
        return f" {type_text(dtype, shape)}".replace("-1", "?")


def bytes_behind(slots: Iterable[SavedTensor]) -> int:
    """Bytes behind some slots, once per storage."""
    seen: set[int] = set()
    total = 0
    for slot in slots:
        at = slot.snapshot.slot_storage[slot.slot]
        if at < 0:
            total += slot.bytes
        elif at not in seen:
            seen.add(at)
            total += slot.snapshot.storages.bytes[at]
    return total
