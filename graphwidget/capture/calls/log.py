"""The log of backward calls: the arguments, the forecast and the outcome of each.

`backward` and `autograd.grad` both start the engine through one function, which is wrapped here. Before a call its
graph is read and a forecast is made; afterwards the outcome is compared with it. If they disagree, torch is right, and
facts that can no longer be measured stay unknown. A call that is like an earlier one is only counted: see
`recognition`.

Two kinds of calls are not the user's and are not recorded: calls inside a running backward (custom Functions, hooks,
re-entrant checkpoints), and calls that torch makes on fake or functional tensors while it traces.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.carriers import Carriers
from graphwidget.capture.calls.counting.models import CountedCall, Model
from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.calls.counting.recognition import Recognition
from graphwidget.capture.calls.counting.steady import SteadyCalls
from graphwidget.capture.calls.cyclic_grads import CyclicGrads
from graphwidget.capture.calls.graph_reader import GraphReader
from graphwidget.capture.calls.hues import Hues
from graphwidget.capture.calls.inner import InnerCalls
from graphwidget.capture.calls.name_search import NameSearch, with_names_of_inputs
from graphwidget.capture.calls.outcome import (
    Outcome,
    afterwards,
    agrees,
    as_it_ended,
    before_it_raised,
    executed_nodes,
    newly_freed,
    same_freed,
    with_grads,
)
from graphwidget.capture.calls.pending import PendingCall, engine_arguments, given, record_of_pending
from graphwidget.capture.calls.reachable import grads_now, numbers_by_path
from graphwidget.capture.calls.retention import due
from graphwidget.capture.graph.freed import Freed
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.walk import live_nodes
from graphwidget.capture.lines.provenance import BUTTON, NOWHERE, Provenance
from graphwidget.capture.owners.search import Search
from graphwidget.model import BackwardCall, Forecast, Kind, Snapshot

__all__ = ["CallLog", "Forecaster"]

Forecaster = Callable[..., Forecast]
MOST_STORED = 2000  # nodes of a call that raised for which anomaly mode's record is asked
MOST_WITHOUT = 50  # of these, if none has a record


class CallLog:
    """Records calls while it is installed.

    Parameters
    ----------
    forecaster
        A function such as ``engine.forecast.forecast``; None: no forecast is made.
    search
        Finds names, given the frames of running cells and the lowest sequence number that matters. (Leaves always
        matter.)
    finished
        Called after each call with its record and the graph that it left; None: unknown.
    counted
        Called instead of `finished` if a call was only counted.
    around
        Called with False right before a call of the user's runs, and with True when it has ended, also by an error.
    failed
        Called with a call that raised and its exception, after `finished`.
    sample
        Called before a few calls of each line with a pending call, the sequence numbers at the earlier calls of the
        line, and the frames of cells: detects growing graphs.
    recent
        The calls that are still remembered, by n.
    problem
        Called with an exception of our own; the user's call continues.
    """

    def __init__(
        self,
        identity: Identity,
        provenance: Provenance,
        *,
        forecaster: Forecaster | None = None,
        search: Callable[[Sequence[FrameType], int], Search] = lambda frames, since: Search(),
        finished: Callable[[BackwardCall, Snapshot | None], None] = lambda call, graph: None,
        counted: Callable[[CountedCall], None] = lambda counted: None,
        around: Callable[[bool], None] = lambda ended: None,
        failed: Callable[[BackwardCall, BaseException], None] = lambda call, error: None,
        sample: Callable[[PendingCall, Sequence[int], Sequence[FrameType]], None] = lambda pending, starts, frames: (
            None
        ),
        recent: Callable[[], dict[int, BackwardCall]] = dict,
        problem: Callable[[BaseException], None] = lambda error: None,
        lock: Any = None,
        policy: CallPolicy | None = None,
    ) -> None:
        policy = policy or CallPolicy()
        self.identity, self.provenance, self.forecaster = identity, provenance, forecaster
        self.finished, self.counted, self.failed, self.around = finished, counted, failed, around
        self.sample, self.recent, self.problem = sample, recent, problem
        self.lock = lock or threading.RLock()
        self.freed = Freed(apart_below=lambda: identity.apart_below)
        self.reader = GraphReader(identity, provenance, self.freed)
        self.recognition = Recognition(policy, self.freed, identity, provenance)
        self.names = NameSearch(policy, search)
        self.carriers = Carriers(self.freed, identity, self.names, recent)
        self.hues = Hues()
        self.inner = InnerCalls(provenance)
        self.steady = SteadyCalls(self)
        self.cyclic = CyclicGrads(identity)
        self.count = 0
        self.running: dict[int, PendingCall] = {}
        self._layer: ti.Layer = {}  # what is around the engine while calls are recorded
        self.elsewhere = NOWHERE  # the place of calls made outside of cells
        self.begins: Callable[[int, Any, Any], None] | None = None  # called before a call: its n, outputs and inputs

    @property
    def watched_from(self) -> int:
        """Return the first sequence number since recording began."""
        return self.reader.watched_from

    def install(self) -> None:
        """Begin to record."""
        self.recognition.start()
        self.reader.start()
        self._layer = ti.wrap_engine(self._wrap)

    def uninstall(self) -> None:
        """Restore what `install` found."""
        ti.unwrap_engine(self._layer)

    def begin_cell(self) -> None:
        """Begin a new cell, whose first calls are read in full again."""
        self.recognition.begin_cell()
        self.names.begin_cell()
        self.inner.begin_cell()

    def forget_missing(self, alive: set[int]) -> None:
        """Forget the nodes that are not `alive` any more."""
        self.freed.forget_missing(alive)

    @contextmanager
    def pressed(self) -> Iterator[None]:
        """Attribute calls outside of cells to a button, until this context ends."""
        self.elsewhere = BUTTON
        try:
            yield
        finally:
            self.elsewhere = NOWHERE

    # ------------------------------------------------------------ around the engine

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # the user's traceback is about the user's code
            if torch.compiler.is_compiling():
                return original(outputs, *args, **kwargs)
            pending = self.steady.begin(outputs, args, kwargs) or self._guarded(self._before, outputs, args, kwargs)
            if pending is None:
                try:
                    return original(outputs, *args, **kwargs)
                finally:
                    self._guarded(self._after_unseen)
            try:
                with ti.nested(self):
                    result = original(outputs, *args, **kwargs)
            except BaseException as error:
                self._guarded(self._after, pending, outputs, args, error)
                raise
            if pending.steady:
                self.steady.end(pending)
            else:
                self._guarded(self._after, pending, outputs, args, None)
            return result

        return run_backward

    def _guarded(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of our own steps untraced, under the lock. If it raises, record that; the user's call continues."""
        try:
            lines = self.provenance.lines
            paused = lines.pause()
            if paused is None and lines.lost:
                lines.reclaim(sys._getframe(2))
                paused = lines.pause()
            lines.boundary()
            began = perf_counter()
            try:
                with self.lock, ti.quiet():
                    return step(*arguments)
            finally:
                self.recognition.spend(perf_counter() - began)
                lines.unpause(paused)
        except Exception as error:
            self.problem(error)
            return None

    # ------------------------------------------------------------ before

    def _before(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PendingCall | None:
        """Read the graph before a call; None if it is not a call of the user's."""
        if ti.is_fake(outputs):
            return None
        if ti.in_backward(self):
            return self._before_inner(outputs, args, kwargs)
        if self.begins is not None:
            self.begins(self.count, outputs, _inputs(args))
        frame = sys._getframe(3)
        pending = self._pending(args, kwargs, frame)
        self.count += 1
        pending.alone = not self.running
        self.running[pending.n] = pending
        try:
            if due(self.recognition.count(pending)):
                self.sample(pending, self.recognition.starts(pending), self.provenance.cell_frames(frame))
            if not self.recognition.recognise(pending, outputs):
                self._read_in_full(pending, outputs, args, self.provenance.cell_frames(frame))
            self.around(False)
        except Exception as error:
            self.problem(error)
        return pending

    def _before_inner(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PendingCall | None:
        """Read the graph of a call that runs inside another one; None if it is not a call of the user's code."""
        frame = sys._getframe(4)
        if not self.running or not self.inner.due(frame):
            return None
        pending = self._pending(args, kwargs, frame)
        pending.n, pending.inside = next(reversed(self.running)), True
        self._read_in_full(pending, outputs, args, self.provenance.cell_frames(frame))
        return pending

    def _after_unseen(self) -> None:
        """Handle the end of a call that is not recorded."""
        self.recognition.freed_unknown_nodes()

    def _pending(self, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> PendingCall:
        """Return the call before it runs, made in `frame`."""
        key = self.provenance.lines.where(frame)
        api, keep, create, has_inputs, allow_unused = engine_arguments(args, kwargs)
        place = self.elsewhere if key is None else key
        pending = PendingCall(self.count, place, api, keep, create, allow_unused, has_inputs, ti.sequence_nr())
        if not has_inputs and len(args) > 3:
            pending.given = given(args, kwargs)
        return pending

    def _read_in_full(
        self, pending: PendingCall, outputs: Any, args: tuple[Any, ...], frames: Sequence[FrameType]
    ) -> None:
        began = perf_counter()
        search = self.names.find(frames, pending.since)
        holdings = search.holdings if search is not None else ()
        pending.held = numbers_by_path(holdings) if search is not None else None
        pending.graph = self._graph_of(outputs, args, holdings, since=pending.since)
        pending.graph = with_names_of_inputs(pending.graph, _inputs(args), search)
        del search, holdings
        pending.forecast = self._forecast(pending, pending.graph)
        self.recognition.spend(perf_counter() - began, in_full=True)

    def _forecast(self, pending: PendingCall, graph: Snapshot) -> Forecast | None:
        if self.forecaster is None:
            return None
        return self.forecaster(
            graph,
            graph.roots,
            inputs=graph.inputs if pending.has_inputs else None,
            retain_graph=pending.keep,
            create_graph=pending.create,
            api=pending.api,
            allow_unused=pending.allow_unused,
            grad_given=True,
        )

    def _graph_of(self, outputs: Any, args: tuple[Any, ...], *holdings: Any, **how: Any) -> Snapshot:
        return self.reader.of_call(outputs, _inputs(args), *holdings, **how)

    # ------------------------------------------------------------ after

    def _after(self, pending: PendingCall, outputs: Any, args: tuple[Any, ...], error: BaseException | None) -> None:
        if pending.inside:
            self._after_inner(pending, outputs, args, error)
            return
        self.running.pop(pending.n, None)
        self.around(True)
        if error is None:
            self.cyclic.called(pending, outputs)
        if pending.model is not None and error is None:
            self.count_like(pending, pending.model)
            return
        try:
            outcome = self._outcome(pending, outputs, args, error)
            # Among the nodes of `before` are those of other graphs that have names.
            whole = (
                error is None
                and outcome.agreed
                and not pending.has_inputs
                and len(outcome.executed) == pending.shape[1]
            )
            if whole and pending.like is not None:  # in a long loop, one more equal graph would only fill memory
                self.count_like(pending, pending.like)
                return
            call, after = self._record(pending, outcome, outputs, error, whole)
        except Exception as problem:  # the call and its result are known in any case
            self.problem(problem)
            text = None if error is None else BaseException.__str__(error)
            unknown = Outcome(Snapshot(), None, text, False, ())
            place = self.provenance.place(pending.place)
            call, after = record_of_pending(pending, place, unknown, error, self.freed), None
            self.recognition.freed_unknown_nodes()
        self.finished(call, after)
        if error is not None:
            self.failed(call, error)

    def _after_inner(
        self, pending: PendingCall, outputs: Any, args: tuple[Any, ...], error: BaseException | None
    ) -> None:
        outcome = self._outcome(pending, outputs, args, error)
        call = record_of_pending(pending, self.provenance.place(pending.place), outcome, error, self.freed)
        self.inner.ended(call, self.running.get(pending.n))
        if not pending.keep:
            before = outcome.before
            self.freed.add(pending.n, pending.newest, ((before.uid[i], before.seq[i]) for i in outcome.executed))
            self.recognition.freed_unknown_nodes()

    def count_like(self, pending: PendingCall, model: Model) -> None:
        """Count a call like an earlier one. All its nodes were new, so it ran over its whole graph."""
        if not pending.keep:
            self.freed.add_whole(pending.n, pending.newest, pending.highest, model.distances)
        thread = threading.get_ident()
        self.counted(
            CountedCall(pending.n, pending.place, pending.newest, pending.highest, thread, model, pending.walked)
        )

    def _outcome(
        self, pending: PendingCall, outputs: Any, args: tuple[Any, ...], error: BaseException | None
    ) -> Outcome:
        """Compare the forecast with the result, and return the outcome."""
        before, forecast = pending.graph, pending.forecast
        if before is None:  # the call was to be counted but raised, or reading failed
            before, forecast = self._graph_of(outputs, args), None
            if pending.model is not None:
                if not pending.keep:
                    before = before_it_raised(before, max(self.freed.unsure_below, self.identity.apart_below))
                pending.forecast = forecast = self._forecast(pending, before)
            pending.shape = (pending.shape[0], len(before))
        text = None if error is None else BaseException.__str__(error)
        agreed = forecast is not None and pending.alone and agrees(forecast, text)
        later = None
        if not agreed:
            later = self._graph_of(outputs, args, since=pending.since, thorough=error is not None)
        executed = executed_nodes(before, forecast if agreed else None, later, _runs_everything(pending, error))
        if error is not None and agreed and text is not None and executed and not pending.keep:
            later = self._graph_of(outputs, args, since=pending.since, thorough=True)
            if not same_freed(before, later, executed):
                agreed, executed = False, newly_freed(before, later)
        if error is not None and not agreed and pending.alone and later is not None:
            guess = pending.inner is None
            found = as_it_ended(before, later, partial(self._forecast, pending), text or "", pending.keep, guess)
            if found is not None:
                return found
        return Outcome(before, forecast, text, agreed, executed)

    def _record(
        self, pending: PendingCall, outcome: Outcome, outputs: Any, error: BaseException | None, whole: bool
    ) -> tuple[BackwardCall, Snapshot]:
        """Return the record of a call and the graph after it. `whole`: it ran over its whole graph, as forecast."""
        if error is not None:
            outcome = replace(outcome, before=self._with_stored_places(outcome.before, outputs))
        before, executed = outcome.before, outcome.executed
        call = record_of_pending(pending, self.provenance.place(pending.place), outcome, error, self.freed)
        if not pending.keep:
            inner = [i for i in executed if before.kind[i] != Kind.ACCUMULATE]
            self.freed.add(pending.n, pending.newest, ((before.uid[i], before.seq[i]) for i in inner))
            if pending.held:
                self.carriers.remember(pending.n, pending.held)
            known = outcome.agreed or _runs_everything(pending, error)
            if not known or not self.recognition.at_home:
                self.recognition.freed_unknown_nodes()
        after = afterwards(before, executed, None if pending.keep else pending.n)
        grads, hookless = grads_now(outputs, self.identity)
        after = with_grads(after, grads)
        if pending.api == "backward":
            nothing = tuple(uid for uid in call.reached_uids if grads.get(uid) is False and uid in hookless)
            call = replace(call, ungiven=nothing)
        earlier = self.recent().get(call.freed_by) if call.freed_by is not None else None
        call = replace(call, order=self.hues.of_call(call, after, earlier))
        if call.error and earlier is not None:
            call = self._with_first_hues(call, earlier)
        if whole:
            self.recognition.remember(pending, call)
        index = before.index_of.get(call.stopped_uid) if error is not None and call.stopped_uid is not None else None
        stopped = before.place_of(index) if index is not None else None
        if stopped is not None and stopped.anomaly and call.failed_place is None:
            call = replace(call, failed_place=stopped)
        if call.error and call.freed_by is not None:
            call = self.carriers.added_to(call, before, self.provenance.cell_frames(sys._getframe(4)))
        return call, after

    def _with_stored_places(self, before: Snapshot, outputs: Any) -> Snapshot:
        """Return the graph of a call that raised with the lines that anomaly mode stored, where tracking saw none."""
        edges = [ti.as_edge(one) or ti.history(one, asked=True) for one in outputs]
        starts = [(edge[0], root.node) for edge, root in zip(edges, before.roots, strict=False)]
        column, table = before.place[:], {place: i for i, place in enumerate(before.places)}
        asked = 0
        for index, node in islice(live_nodes(starts, before), MOST_STORED):
            if column[index] < 0 and before.kind[index] != Kind.ACCUMULATE:
                asked += 1
                place = self.provenance.recorded_by_anomaly_mode(node)
                if place is not None:
                    column[index] = table.setdefault(place, len(table))
                elif asked > MOST_WITHOUT and len(table) == len(before.places):
                    break  # it was off
        return replace(before, place=column, places=tuple(table)) if len(table) > len(before.places) else before

    def _with_first_hues(self, call: BackwardCall, earlier: BackwardCall) -> BackwardCall:
        """Return a call that failed, with one of the first two hues; calls that had these get others."""
        swapped = self.hues.first_two(earlier, call)
        if not swapped:
            return call
        self.recognition.models.forget()
        known = self.recent()
        for n, one in list(known.items()):
            if one.order in swapped and self.hues.is_present(one):
                known[n] = replace(one, order=swapped[one.order])
        return replace(call, order=swapped.get(call.order, call.order))


def _inputs(args: tuple[Any, ...]) -> Any:
    """Return the inputs that the engine was given; empty: none."""
    return args[3] if len(args) > 3 and args[3] else ()


def _runs_everything(pending: PendingCall, error: BaseException | None) -> bool:
    """Whether a call surely ran over its whole graph."""
    return error is None and not pending.has_inputs
