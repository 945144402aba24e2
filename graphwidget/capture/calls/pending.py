"""A backward call while it runs, and the record built from it."""

from __future__ import annotations

import threading
from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphwidget.capture.calls.counting.models import Model
from graphwidget.capture.calls.outcome import Outcome, bytes_behind, failed_node, only_one, stopped_at
from graphwidget.capture.graph.freed import Freed
from graphwidget.model import KEEPS_MEMORY, BackwardCall, Forecast, InnerCall, Kind, Place, Snapshot, torch_messages

__all__ = ["PendingCall", "Signature", "engine_arguments", "given", "record_of_pending"]

_ENGINE_S = ("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable", "accumulate_grad")


class Signature(NamedTuple):
    """The facts about a call that are known without a walk of its graph.

    `moved` and `behind`: how far the counter of sequence numbers moved since the last call of the line, and since the
    root was computed. `arguments`: the arguments of the call.
    """

    moved: int
    root: type
    arguments: tuple[Any, ...]
    behind: int


@dataclass(slots=True)
class PendingCall:
    """A call while it runs, as plain data.

    Attributes
    ----------
    place
        The line that makes it: a place, or a key of `Provenance.place`.
    newest, highest
        The counter of sequence numbers before the call, and the highest sequence number in its graph.
    alone
        Whether no other call was running when it began.
    shape
        A hash of its graph, and the number of nodes below the roots, if the graph was walked.
    distances
        How far the sequence number of each node is below the highest one, ascending.
    since
        The lowest sequence number of the nodes below the roots; 0: sequence numbers do not identify nodes.
    model
        The earlier call that this one is like, if it is only counted.
    like
        The same, for a call that is read in full to check that it is still like the earlier one.
    walked
        Whether its graph was walked.
    steady
        Whether its signature was all that was compared.
    given
        Its arguments, as `given` returns them; empty: they are not compared.
    graph, forecast, held
        The graph before it, the forecast, and the named tensors: path -> sequence number.
    inside
        Whether the user's code makes it while the engine runs call `n`: in a hook, or in the backward of a Function.
    inner
        The call inside this one that raised first.
    """

    n: int
    place: Place | tuple[int, int, int]
    api: Any
    keep: bool
    create: bool
    allow_unused: bool
    has_inputs: bool
    newest: int
    alone: bool = True
    shape: tuple[int, int] = (0, -1)
    model: Model | None = None
    highest: int = -1
    distances: array[int] = field(default_factory=lambda: array("q"))
    signature: Signature | None = None
    walked: bool = True
    steady: bool = False
    given: tuple[Any, ...] = ()
    since: int = 0
    like: Model | None = None
    graph: Snapshot | None = None
    forecast: Forecast | None = None
    held: dict[str, int] | None = None
    inside: bool = False
    inner: InnerCall | None = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return what `CallLog` has read from the arguments of the call."""
        return self.api, self.keep, self.create, self.has_inputs, self.allow_unused

    @property
    def line_key(self) -> tuple[int, int] | None:
        """Return the line of the call and the line of the outermost cell around it; None for a call outside cells."""
        return self.place[:2] if isinstance(self.place, tuple) else None


def engine_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the API of a call, and whether it keeps the graph, creates one, has inputs, and may leave some unused.

    `args` are the engine's, without the outputs; torch passes the last ones by name.
    """
    if len(args) < len(_ENGINE_S):
        args = (*args, *(kwargs.get(name) for name in _ENGINE_S[len(args) :]))
    _, keep, create, inputs, allow_unused, accumulates = args[: len(_ENGINE_S)]
    api = "backward" if accumulates else "autograd.grad"
    return api, bool(keep), bool(create), bool(inputs), bool(allow_unused)


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the same as `engine_arguments`, unread, to be compared."""
    return args[1], args[2], not args[3], args[4:], kwargs


def record_of_pending(
    pending: PendingCall, place: Place, outcome: Outcome, error: BaseException | None, freed: Freed
) -> BackwardCall:
    """Return the record of a finished call. `freed` knows which call freed a node."""
    before, forecast, text = outcome.before, outcome.forecast, outcome.text
    failed = failed_node(before, forecast if outcome.agreed else None, text)
    freed_by = None
    if text is not None and torch_messages.says(text, torch_messages.FREED):
        freed_by = freed.of(before.uid[failed], before.seq[failed]) if failed is not None else only_one(before, freed)
    slots = [s for i in outcome.executed for s in before.slots_of(i) if KEEPS_MEMORY[before.slot_state[s]]]
    leaves = [i for i in outcome.executed if before.kind[i] == Kind.ACCUMULATE]
    stopped: tuple[int, ...] = ()
    if error is not None and failed is None and pending.alone:
        stopped = stopped_at(before, forecast, outcome.executed)
    slot = forecast.fails_slot if outcome.agreed and forecast is not None and error is not None else None
    return BackwardCall(
        n=pending.n,
        place=place,
        api=pending.api,
        retain_graph=pending.keep,
        create_graph=pending.create,
        roots=before.roots,
        root_names=tuple(before.name_of(r.node) if r.node >= 0 else "" for r in before.roots),
        inputs=before.inputs if pending.has_inputs else None,
        result="ok" if error is None else "raised",
        error_type=None if error is None else type(error).__name__,
        error=text,
        forecast=pending.forecast.word if pending.forecast is not None else "unknown",
        assumes=pending.forecast.assumes if pending.forecast is not None else (),
        failed_node=before.name_of(failed) if failed is not None else None,
        failed_uid=before.uid[failed] if failed is not None else None,
        failed_slot=slot.name if slot is not None else None,
        failed_place=before.place_of(failed) if failed is not None else None,
        stopped_at=tuple(before.uid[i] for i in stopped),
        freed_by=freed_by,
        executed=array("q", (before.uid[i] for i in outcome.executed)),
        executed_count=len(outcome.executed),
        freed_slots=0 if pending.keep else len(slots),
        freed_bytes=0 if pending.keep else bytes_behind(before, slots),
        reached=tuple(leaf.paths[0] for i in leaves if (leaf := before.leaves.get(i)) is not None and leaf.paths),
        reached_uids=tuple(before.uid[i] for i in leaves),
        newest_seq=pending.newest,
        thread=threading.get_ident(),
        graph=before,
        inner=pending.inner,
    )
