"""The tracker: cells and backward calls in, immutable snapshots out.

It connects the recorders: `lines` (the line that made each node), `calls` (backward calls), `writes` (in-place writes),
`owners` (the names that keep tensors alive), `LiveGraph` (the present graph), `CellRuns` and `Failures`. The records
are plain data in bounded memory: the snapshots of the oldest events are dropped first, then the graphs of calls, then
the calls themselves.

Nothing of ours raises into the user's code: exceptions end up in `Tracker.problems`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture import tensor_swaps
from graphwidget.capture.calls.counting.models import CountedCall, event_of
from graphwidget.capture.calls.history import History
from graphwidget.capture.calls.hues import Hues
from graphwidget.capture.calls.log import CallLog, Forecaster
from graphwidget.capture.calls.retention import RetentionSamples
from graphwidget.capture.cell_reading import CellReading, WhenIdle
from graphwidget.capture.cell_runs import CellRuns
from graphwidget.capture.failures import Failures
from graphwidget.capture.ghosts import graphs_that_matter, merged
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.pieces import WorkLock
from graphwidget.capture.lines.code_setting import OwnCode, from_settings
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.capture.listeners import Listeners
from graphwidget.capture.live_graph import LiveGraph
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.capture.problems import Problems
from graphwidget.capture.python import hooks
from graphwidget.capture.writes.recorder import WriteRecorder
from graphwidget.capture.writes.statements import CellStatements
from graphwidget.model import BackwardCall, CellRun, Drawing, Event, Finding, Place, Record, Snapshot, TensorRef, Write

__all__ = ["HISTORY_BYTES", "Tracker"]

HISTORY_BYTES = 32 * 2**20
OLDER = "Graphs that are older than this call's are left out."


class Tracker:
    """Watches cells and backward calls from `start` to `stop`.

    Parameters
    ----------
    namespace
        Returns the user's variables. Default: those of ``__main__``.
    forecaster, diagnose
        ``engine.forecast.forecast`` and ``diagnosis.diagnose.diagnose``: capture imports neither.
    explain
        Returns the note to put under the traceback of a call that raised. None: no error gets a note.
    hidden
        Names that are not the user's own.
    shell
        IPython's shell, which keeps results alive.
    code_names
        For cells that ran before the start; see `cells.Book`.
    history_bytes
        Limit for the history, in bytes.
    idle
        Called at the end of a cell. Returns what schedules a function for the idle kernel; None: it will not be idle.
        Long work waits until then, and is completed before anything else reads or runs.
    notebook
        Whether somebody continues to work in this kernel after a cell; see `Record`.
    policy
        Thresholds: how much is remembered, and how much time watching may take.
    own_code
        Which files are the user's own: their code is recorded as that of cells is.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     loss = w.exp().sum()
    ...     loss.backward()
    >>> len(tracker.calls), tracker.findings()
    (1, ())
    """

    def __init__(
        self,
        namespace: Callable[[], dict[str, Any]] | None = None,
        *,
        forecaster: Forecaster | None = None,
        diagnose: Callable[[Record], Sequence[Finding]] | None = None,
        explain: Callable[[Record, BackwardCall], str] | None = None,
        hidden: Callable[[], Any] = frozenset,
        shell: Any = None,
        code_names: Mapping[str, object] | Callable[[str], object] | None = None,
        history_bytes: int = HISTORY_BYTES,
        idle: Callable[[], WhenIdle | None] = lambda: None,
        notebook: bool = False,
        policy: TrackerPolicy | None = None,
        own_code: OwnCode | None = None,
    ) -> None:
        self.own_code = own_code or from_settings()
        self.policy = policy or TrackerPolicy()
        self.problems = Problems()
        problem = self.problems.note
        self.lock = WorkLock(problem)
        self.busy: str | None = None
        self.running = False
        self.notebook = notebook
        self._diagnose = diagnose
        namespace = namespace or (lambda: sys.modules["__main__"].__dict__)
        self.identity = Identity()
        statements = CellStatements()
        self.provenance = Provenance(
            ti.next_number,
            code_names=code_names,
            watched=statements.lines_of,
            watch=lambda frame, line, scope: self.write_recorder.line(frame, line, scope),
            is_own=self.own_code,
            problem=problem,
        )
        self.history = History(history_bytes, self.provenance.place)
        self.log = CallLog(
            self.identity,
            self.provenance,
            forecaster=forecaster,
            search=lambda frames, since: self.live.search(frames, since),
            finished=self._call_finished,
            counted=self._call_counted,
            around=lambda ended: self.write_recorder.around_call(ended),
            failed=self._call_failed,
            sample=lambda pending, starts, frames: self.retention.take(pending, starts, frames),
            recent=lambda: self.history.calls,
            problem=problem,
            lock=self.lock,
            policy=self.policy.calls,
        )
        self.write_recorder = WriteRecorder(
            self.provenance, statements, calls=lambda: self.log.count, search=lambda: self.live.again(), problem=problem
        )
        self.live = LiveGraph(
            namespace,
            shell=shell,
            hidden=hidden,
            provenance=self.provenance,
            reader=self.log.reader,
            watch=self.write_recorder.watch,
            running=lambda: bool(self.cells.running),
            search_seconds=self.policy.search_seconds,
            lock=self.lock,
            is_own=self.own_code,
        )
        self.cells = CellRuns(self.provenance.book, namespace, self.policy.max_runs)
        self.failures = Failures(self.policy, self.cells, record=lambda: self.record(), explain=explain)
        self.listeners = Listeners(problem)
        self.retention = RetentionSamples(
            search=lambda frames, since: self.live.search(frames, 0 if self.identity.apart_below else since).holdings,
            read=self.log.reader.of_holdings,
        )
        self._cell_reading = CellReading(
            lambda: self.policy,
            self.lock,
            live=self.live,
            cells=self.cells,
            history=self.history,
            listeners=self.listeners,
            idle=idle,
            busy=self._set_busy,
            settle=self._settle,
            is_on=lambda: self.running,
        )
        self._ends: list[Callable[[], None]] = []  # functions that stop the watching of hooks and swaps
        self._findings: tuple[Finding, ...] | None = None
        self._uids = self.policy.max_uids  # number of remembered uids above which dead nodes are forgotten

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self.lock:
                yield
        except Exception as error:
            self.problems.note(error)

    # ------------------------------------------------------------ on and off

    def start(self) -> None:
        """Begin to watch. A second start does nothing."""
        with self._guarded():
            if not self.running:
                self.running = True
                self.log.install()
                self.provenance.start()
                self.write_recorder.install()
                note = self.problems.note
                self._ends = [hooks.watch(note), tensor_swaps.watch(self.write_recorder.let_go, note)]

    def stop(self) -> None:
        """Restore the engine functions, tracers and hooks. The records stay readable."""
        with self._guarded():
            if self.running:
                self.running = False
                self.log.uninstall()
                self.provenance.stop()
                self.write_recorder.uninstall()
                while self._ends:
                    self._ends.pop()()
                self.cells.running.clear()
                self.busy = None

    # ------------------------------------------------------------ cells

    def begin_cell(
        self,
        number: int | None,
        source: str,
        *,
        cell_id: str | None = None,
        filename: str | None = None,
        code: str | None = None,
        frame: FrameType | None = None,
        script: CodeType | None = None,
    ) -> None:
        """Begin a cell, which is about to run in this thread. Cells may be nested.

        Parameters
        ----------
        number
            Execution count.
        source, code
            The cell as the user sees it, and as it is compiled where magics changed it.
        filename, script
            The name under which its code will be compiled; code of that file, where it runs itself and is no cell.
        frame
            A frame of the cell that is already running.
        """
        with self._guarded():
            if not self.running:
                return
            run = self.cells.next
            cell = self.provenance.begin_cell(
                number, source, cell_id=cell_id, run=run, filename=filename, code=code, frame=frame, script=script
            )
            self.cells.begin(cell, number, source, cell_id)
            self.busy = f"{cell.label} is running"
            self.write_recorder.install()  # torch's optimizers may have been imported since the last cell
            self.log.begin_cell()
            self.failures.begin_cell()
            if self.live.is_known:
                self.write_recorder.begin_cell()
            else:
                known = self.log.reader.everything if not self.identity.apart_below else None
                self.live.search(since=0 if known is None else known.newest + 1)
            self._changed()

    def end_cell(self, error: BaseException | None = None) -> None:
        """End the innermost running cell. Only the text of `error`, the exception it raised, is kept."""
        with self._guarded():
            if not self.running or not self.cells.running:
                return
            run = self.cells.end(error)
            self.write_recorder.end_cell()
            self.provenance.end_cell()
            if not self.cells.running:
                self.busy = None
            self._changed()
            self._cell_reading.cell_ended(run, error is None)

    def _set_busy(self, words: str | None) -> None:
        self.busy = words

    def _settle(self, snapshot: Snapshot) -> None:
        """After the graph at the end of a cell was read: fix the hues of its roots, and forget dead nodes."""
        self.hues.settle(snapshot)
        self._forget_the_dead()
        self.provenance.make_room(lambda: sorted(seq for seq in snapshot.seq if seq >= 0))

    def code(self, added: Iterable[str] = (), left_out: Iterable[str] = ()) -> None:
        """Treat packages, modules or folders as the user's own code, or leave them out, from now on.

        Raises
        ------
        ValueError
            If there is no such file, folder or module.
        """
        self.own_code.change(added, left_out)
        self.provenance.forget_files()

    # ------------------------------------------------------------ calls

    def _call_finished(self, call: BackwardCall, after: Snapshot | None) -> None:
        self._changed()
        self.history.add_call(call)
        event = event_of(call, self.history.next_event)
        if after is not None:
            self.live.remember_roots(call, after)
            if self.live.is_all_in(after):
                event = replace(event, held_bytes=after.held_bytes(), nodes=len(after), snapshot=after)
            else:
                event = replace(event, snapshot=replace(after, notes=(*after.notes, OLDER)))
        self.history.add_event(event)
        if self.provenance.full:
            self.provenance.make_room(self._live_numbers)
        self._forget_the_dead()
        self.listeners.tell(event)

    def _call_counted(self, counted: CountedCall) -> None:
        """Record a call of a loop that is like an earlier one. Listeners are called for some of them only."""
        self._changed()
        self.history.count_call(counted)
        if not counted.n % 64 and self.provenance.full:
            self.provenance.make_room(self._live_numbers)
        self.listeners.tell_of_many(lambda: self.history.events[-1], self.policy.tell_seconds)

    def _call_failed(self, call: BackwardCall, error: BaseException) -> None:
        with self._guarded():
            self.failures.measure(call, error)
        self.failures.add_note(call, error)
        if self.history.follower is not None:
            self.history.follower.failed(call)

    def _forget_the_dead(self) -> None:
        """Limit the memory for uids: living nodes and the nodes of remembered graphs stay."""
        if len(self.identity) <= self._uids:
            return
        keep = set(self.snapshot().uid)
        for sample in self.retention.all():
            keep.update(sample.graph.uid)
        for call in self.history.calls.values():
            if call.graph is not None:
                keep.update(call.graph.uid)
        self.identity.forget_missing(keep)
        self.log.forget_missing(keep)
        self._uids = 2 * len(self.identity) + self.policy.max_uids

    def _live_numbers(self) -> list[int]:
        return sorted(seq for seq in self.snapshot().seq if seq >= 0)

    # ------------------------------------------------------------ records

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """Return the remembered calls, oldest first."""
        with self.lock:
            return tuple(self.history.calls.values())

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the remembered events, oldest first."""
        with self.lock:
            return tuple(self.history.events)

    @property
    def writes(self) -> tuple[Write, ...]:
        """Return the remembered in-place writes, oldest first."""
        with self.lock:
            return self.write_recorder.all()

    @property
    def runs(self) -> dict[int, CellRun]:
        """Return the remembered cell runs by number."""
        return self.cells.runs

    @property
    def hues(self) -> Hues:
        """Return the hues and stroke styles of roots."""
        return self.log.hues

    @property
    def notes(self) -> bool:
        """Whether errors get notes."""
        return self.failures.notes

    @notes.setter
    def notes(self, wanted: bool) -> None:
        self.failures.notes = wanted

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call `callback` with every event, in the event's thread. Returns a function that unsubscribes it."""
        return self.listeners.subscribe(callback)

    # ------------------------------------------------------------ now

    def _changed(self) -> None:
        self.live.changed()
        self._findings = None

    def place_of_error(self, error: BaseException) -> Place | None:
        """Return the innermost line of the user's own code that an error has passed; None: none is known."""
        with self._guarded():
            return self.provenance.book.raised_at(error.__traceback__)[0]
        return None

    def snapshot(self) -> Snapshot:
        """Return the present graph of everything with a name. Safe from any thread; cached until something changes."""
        with self.lock:
            return self.live.snapshot()

    def record(self, live: Snapshot | None = None) -> Record:
        """Return the input of a diagnosis. `live`: the present graph, if the caller has just read it."""
        with self.lock:
            snapshot = self.snapshot() if live is None else live
            return Record(
                snapshot,
                self.calls,
                self.writes,
                {**self.provenance.book.file_runs(), **self.runs},
                self.live.outlived_names(snapshot),
                self.write_recorder.hidden(),
                self.write_recorder.idle(),
                self.live.holders(snapshot),
                self.notebook,
                self.retention.all(),
                dict(self.failures.scenes),
                cyclic=self.log.cyclic.alive(),
                **self.write_recorder.seen_at_steps(),
            )

    def findings(self, live: Snapshot | None = None) -> tuple[Finding, ...]:
        """Return the present findings. `live` as in `record`."""
        with self._guarded():
            if self._findings is None and self._diagnose is not None:
                with ti.no_collection():
                    self._findings = tuple(self._diagnose(self.record(live)))
        return self._findings or ()

    def drawing(self) -> Drawing:
        """Return the content of a picture: the live graph, with the dead nodes of relevant calls as ghosts."""
        with self.lock:
            live = self.snapshot()
            events = self.events
            return Drawing(
                merged(live, graphs_that_matter(live, self.history.calls, self.history.graph_after)),
                self.calls,
                events,
                self.findings(live),
                events[-1].id if events else -1,
                torch.__version__,
                self.busy,
                self.write_recorder.log.steps(),
            )

    def cells_of(self, snapshot: Snapshot, root: TensorRef) -> tuple[int, ...] | None:
        """Return the runs (see `runs`) that made the graph of a root, in order; None if a node's run is unknown."""
        return self.cells.that_made(snapshot, root)
