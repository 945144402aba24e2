"""Whether a call is like an earlier one at its line, so that it need not be read in full.

A call in a training loop must cost next to nothing. The first calls of a line are read in full, and further ones as
long as that takes a small share of the time. Otherwise a call is only counted if none of its nodes has been freed and
its graph has the same shape as one read before at the same line: it runs over everything, as its model did.

If even walking the graph takes too large a share of the time (tiny layers in a tight loop), the walk is left out after
a while. If the counter of sequence numbers then has moved just as far since the last call of the line, and the root is
of the same kind, the call counts as like its model, and its `assumes` says so.

Once a call was counted without a walk, the line is *steady*: `at_once` compares the signatures of its next calls and
does nothing else, until one differs or the next look is due. If such a call raises, the graph before it is found from
the graph after it: what it has freed is what no earlier call had (`outcome.before_it_raised`).
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable
from itertools import count
from time import perf_counter
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.counting.models import Model, Models
from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.calls.pending import PendingCall, Signature, given
from graphwidget.capture.calls.reachable import reachable_nodes, root_node
from graphwidget.capture.calls.retention import due
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.model import BackwardCall

__all__ = ["Recognition"]


MAX_ALIKE = 64  # graphs on which one line calls in turn
COST = 15e-6  # seconds that a call of a steady line takes: reading a clock would add to them


class _Line:
    """The calls of one line in this cell, of one thread."""

    def __init__(self, starts: int) -> None:
        self.calls = 0
        self.starts: deque[int] = deque(maxlen=starts)  # the counter of sequence numbers at the last calls
        self.newest = -1  # the counter of sequence numbers at the last call
        # The calls that a walk found like their models, since one was not: a line may call on several graphs in turn.
        self.walked: dict[Signature, Model] = {}
        self.steady_until = 0  # calls below this number are compared by their signature only
        # The last of these calls, by their facts: one object serves all that share them, as they do not overlap.
        self.like: dict[tuple[int, type, int], PendingCall] = {}
        self.number_of: dict[type, Callable[[Any], int]] = {}  # what reads the sequence number of their roots


class Recognition:
    """Compares each call with those before it at the same line.

    Parameters
    ----------
    freed
        Knows which nodes earlier calls freed.
    identity, provenance
        Know which threads make nodes.
    """

    def __init__(self, policy: CallPolicy, freed: Freed, identity: Identity, provenance: Provenance) -> None:
        self.policy, self.freed, self.identity, self.provenance = policy, freed, identity, provenance
        self.models = Models(policy.max_models)
        self._home = threading.get_ident()
        self.any_steady = False  # whether a line of this cell is steady, or was
        self._unknown_frees = False  # whether a call may have freed unknown nodes
        self._lines: dict[tuple[tuple[int, int] | None, int], _Line] = {}
        self._began = perf_counter()
        self._spent = self._spent_in_full = 0.0  # seconds in this cell: all our work, and reading in full

    def start(self) -> None:
        """Begin to record in this thread."""
        self._home = threading.get_ident()

    def begin_cell(self) -> None:
        """Begin a new cell, whose first calls are read in full again."""
        self._began, self._spent, self._spent_in_full = perf_counter(), 0.0, 0.0
        self._lines.clear()
        self.any_steady = False

    def spend(self, seconds: float, *, in_full: bool = False) -> None:
        """Add the seconds that work for a call took; `in_full`: the seconds of reading it in full.

        The seconds of reading in full are also added without `in_full`, as part of all our work.
        """
        if in_full:
            self._spent_in_full += seconds
        else:
            self._spent += seconds

    def freed_unknown_nodes(self) -> None:
        """Record that a call may have freed unknown nodes."""
        self._unknown_frees = True

    @property
    def at_home(self) -> bool:
        """Whether this is the thread that records."""
        return threading.get_ident() == self._home

    def count(self, pending: PendingCall) -> int:
        """Count a call, and return how many calls its line has made in this cell."""
        line = self._line(pending)
        line.calls += 1
        line.starts.append(pending.newest)
        return line.calls

    def starts(self, pending: PendingCall) -> list[int]:
        """Return the sequence numbers at the earlier calls of the line, ascending, once this one is counted."""
        return list(self._line(pending).starts)[:-1]

    def _line(self, pending: PendingCall) -> _Line:
        key = (pending.line_key, threading.get_ident())
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(self.policy.max_starts + 1)
        return line

    def recognise(self, pending: PendingCall, outputs: Any) -> bool:
        """Whether a call need only be counted. If so, set its `model`; if not, set its `shape`."""
        policy, line = self.policy, self._line(pending)
        self._sign(pending, line, outputs)
        elapsed = perf_counter() - self._began
        wanted_in_full = line.calls <= policy.in_full or not line.calls % policy.every
        read_in_full = wanted_in_full and self._spent_in_full < policy.full_share * elapsed
        familiar = self.at_home and line.calls > policy.always_in_full and not read_in_full
        if familiar and line.calls > policy.walked and self._spent > policy.walk_share * elapsed:
            signature = pending.signature
            model = line.walked.get(signature) if signature is not None else None
            if model is not None and signature is not None:
                pending.model, pending.walked = model, False
                line.like[signature.moved, signature.root, signature.behind] = pending
                if line.calls >= line.steady_until:
                    line.steady_until = self._next_look(line.calls)
                line.number_of[signature.root] = ti.node_readers(signature.root)[1]
                self.any_steady = True
                return True
        own = self._walk(pending, outputs)
        fresh = bool(own) and self.freed.none_of(own)
        model = self.models.get(pending.shape)
        if fresh and model is not None and familiar:
            pending.model = model
            if pending.signature is not None and len(line.walked) < MAX_ALIKE:
                line.walked[pending.signature] = model
            return True
        if fresh and line.calls > policy.in_full:
            pending.like = model
        line.steady_until = 0
        line.walked.clear()
        line.like.clear()
        pending.distances = array("q", sorted(pending.highest - number for number in own))
        # Sequence numbers ascend: a node from before the first of these nodes is not among them or above them.
        if own and not self.identity.apart_below:
            pending.since = min(own)
        return False

    def _next_look(self, calls: int) -> int:
        """Return the number of the next call of a line that gets more than a comparison of signatures."""
        return next(number for number in count(calls + 1) if due(number) or not number % self.policy.every)

    def at_once(
        self, key: tuple[int, int], newest: int, output: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> PendingCall | None:
        """Return a call that its signature shows to be like the one before it at a steady line; None: look at it.

        `key` is the line's, `newest` the counter of sequence numbers, `args` and `kwargs` are the engine's. The call
        that is returned is valid until the next one.
        """
        line = self._lines.get((key, self._home))
        if line is None or line.calls + 1 >= line.steady_until or not self.at_home:
            return None
        root = ti.grad_fn(output)
        number_of = line.number_of.get(type(root))
        if number_of is None:
            return None
        highest = number_of(root)
        pending = line.like.get((newest - line.newest, type(root), newest - highest))
        if pending is None or given(args, kwargs) != pending.given:
            return None
        self._spent += COST
        line.calls += 1
        line.starts.append(newest)
        line.newest = newest
        pending.newest, pending.highest = newest, highest
        pending.steady, pending.alone, pending.inner = True, True, None
        return pending

    def remember(self, pending: PendingCall, call: BackwardCall) -> None:
        """Make a call that ran over its whole graph the model of later ones."""
        self.models.remember(pending.shape, call, pending.distances)

    def _sign(self, pending: PendingCall, line: _Line, outputs: Any) -> None:
        """Set the signature, which needs no walk: how far the counter moved since the last call, and the root."""
        root = root_node(outputs[0]) if len(outputs) == 1 else None
        if root is not None:
            pending.highest = ti.node_readers(type(root))[1](root)
            pending.signature = Signature(
                pending.newest - line.newest,
                type(root),
                pending.arguments,
                pending.newest - pending.highest,
            )
        line.newest = pending.newest

    def _walk(self, pending: PendingCall, outputs: Any) -> list[int]:
        """Walk the graph of a call and set its shape; return the sequence numbers of its nodes, without leaves."""
        nodes, numbers = reachable_nodes(outputs)
        types = tuple(map(type, nodes))
        own = [number for number in numbers if number != ti.NO_SEQUENCE]
        pending.highest = max(own, default=-1)
        distances = [pending.highest - number for number in own]
        arguments = (pending.line_key, *pending.arguments[:4])
        pending.shape = (hash((arguments, tuple(distances), types)), len(nodes))
        self._notice_threads(pending)
        if self._unknown_frees and self.at_home:
            self._unknown_frees = False
            self.freed.unsure(pending.newest)
        return own

    def _notice_threads(self, pending: PendingCall) -> None:
        """Tell `identity` about numbers that another thread reached: they no longer identify nodes."""
        if not self.at_home:
            self.identity.tell_apart(pending.newest)
        elif pending.highest >= pending.newest:  # an unknown thread made the node
            self.identity.tell_apart(pending.highest + 1)
        threads = self.provenance.lines.threads
        if len(threads) > 1:
            self.identity.tell_apart(max((state.last for state in threads if state.thread != self._home), default=0))
