"""The tracker: cells and backward calls in, immutable snapshots out.

It ties together who records: `provenance` (where nodes were made), `calls` (what backward calls did), `owners`
(who keeps what alive), `snapshot` (the graph now). What it keeps is plain data, in bounded memory: of the
oldest events the snapshots go first, then the calls' graphs, then the calls themselves.

Nothing of ours raises into the user's code: exceptions end up in `Tracker.problems`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import get_ident
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture import swaps
from graphwidget.capture.calls.counted import Model
from graphwidget.capture.calls.history import History
from graphwidget.capture.calls.log import CallLog, Forecaster
from graphwidget.capture.calls.looks import Looks
from graphwidget.capture.collection import no_collection
from graphwidget.capture.errors import scene, trainable, without_grad
from graphwidget.capture.ghosts import merged
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.pieces import AtLeast, WorkLock, at_once
from graphwidget.capture.graph.snapshot import take, taking
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.capture.owners import holders, reading
from graphwidget.capture.owners import search as owners
from graphwidget.capture.owners.roots import find_roots
from graphwidget.capture.python import hooks as noted
from graphwidget.capture.writes.recorder import Writes
from graphwidget.model import (
    BackwardCall,
    CellRun,
    Drawing,
    Event,
    Finding,
    Kind,
    Record,
    Scene,
    Snapshot,
    TensorRef,
    Write,
    is_notebooks,
)

__all__ = ["HISTORY_BYTES", "Tracker", "track"]

HISTORY_BYTES = 32 * 2**20
MAX_RUNS = 5_000  # cell runs of which the source is kept
SEARCH_SECONDS = 0.02
UIDS = 20_000  # nodes that are remembered before the dead among them are forgotten
AT_ONCE = 10_000  # nodes that are read at the end of a cell, even if the kernel is idle afterwards
FREE_LOOKS = 1.0  # seconds for looking at everything at the ends of cells, at any price
LOOK_SHARE = 0.05  # of the time since the start, for that, after these
SOON = 0.001  # seconds after a cell's end for reading on: the answer to the cell goes first, and whatever has come in
QUIET = 0.1  # seconds after a cell's end without another one: cells no longer follow each other at once
TELL_SECONDS = 0.1  # between two counted calls that listeners hear of
MAX_SCENES = 100  # failed calls of which it is kept what was measured then
MOST_STARTS = 1_000  # calls of a loop that are looked back at, once in a while, for what piles up
OLDER = "Graphs that are older than this call's are left out."
MAX_NOTES = 10  # errors of one cell that are explained in a note


class Tracker:
    """Watches cells and backward calls from `start` to `stop`.

    Parameters
    ----------
    namespace
        Returns the user's variables. Default: those of ``__main__``.
    forecaster, diagnose
        ``analysis.engine.forecast`` and ``analysis.diagnosis.diagnose``: capture does not import analysis.
    explain
        Words for a call that raised, as lines: what is put under its traceback. None: nothing is.
    hidden
        Names that are not the user's own.
    shell
        IPython's shell, for what it keeps.
    code_names
        For cells that ran before the start; see `cells.Book`.
    history_bytes
        Bound of what is remembered.
    idle
        Asked at the end of a cell: has a function called once the kernel is idle; None: it will not be. What takes long
        is left until then, and done before anything else looks or runs.
    notebook
        Whether somebody goes on working in this kernel when a cell has ended; see `Record`.

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
        idle: Callable[[], Callable[[float, Callable[[], None]], object] | None] = lambda: None,
        notebook: bool = False,
    ) -> None:
        self.lock = WorkLock(self.problem)
        self._idle = idle
        self.problems: deque[str] = deque(maxlen=100)
        self.busy: str | None = None
        self.running = False
        self.runs: dict[int, CellRun] = {}
        self._namespace = namespace or (lambda: sys.modules["__main__"].__dict__)
        self._hidden, self._shell, self._diagnose, self._explain = hidden, shell, diagnose, explain
        self.notebook = notebook
        self.notes = True  # whether an error gets a note
        self.unsaid = ""  # the last note, where exceptions take none (Python 3.10)
        self._noted = 0
        self.identity = Identity()
        self.provenance = Provenance(ti.next_number, code_names=code_names, problem=self.problem)
        self.log = CallLog(
            self.identity,
            self.provenance,
            forecaster=forecaster,
            search=self._search,
            finished=self._call_finished,
            failed=self._call_failed,
            problem=self.problem,
            lock=self.lock,
            counted=self._call_counted,
            look=self._look_meanwhile,
        )
        self.looks = Looks()
        self._writes = Writes(
            self.provenance.book,
            calls=lambda: self.log.count,
            where=lambda: self.provenance.where(sys._getframe(2)),
            iteration=self._iteration,
            spot=lambda: self.provenance.lines.where(sys._getframe(2)),
            problem=self.problem,
        )
        self.provenance.book.watched = self._writes.lines_of
        self.provenance.lines.watch = self._writes.line
        self._writes.when_nodes = partial(setattr, self.provenance.lines, "made_nodes")
        if self.provenance.lines.slow:
            steps = self._writes.steps
            steps.pause, steps.unpause = self.provenance.lines.pause, self.provenance.lines.unpause
        self.history = History(history_bytes, self.provenance.place)
        self.log.recent = lambda: self.history.calls
        self.hues = self.log.hues
        self._end_of_notes: Callable[[], None] = lambda: None
        self._end_of_swaps: Callable[[], None] = lambda: None
        self._subscribers: list[Callable[[Event], None]] = []
        self._told_at = 0.0  # when they last heard of a counted call
        self._open: list[int] = []  # runs of the cells that are running, innermost last
        self._run = 0
        self._cached: Snapshot | None = None  # what `snapshot` answers until something changes
        self._findings: tuple[Finding, ...] | None = None
        self._names: dict[int, str] = {}  # uid -> a variable that owned the node at an earlier event
        self._uids = UIDS  # how many may be remembered before the dead are looked for
        self._began, self._looked = perf_counter(), 0.0  # when watching began; seconds for looks at the ends of cells
        self._called: deque[tuple[int, str | None]] = deque(maxlen=64)  # roots of recent calls: uid, name
        self._scenes: dict[int, Scene] = {}  # n -> what was measured where the call raised

    def problem(self, error: BaseException) -> None:
        """Note an exception of our own. Only its text is kept: its frames hold the user's variables."""
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f" ({at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno})" if at is not None else ""
        self.problems.append(f"{type(error).__name__}: {error}{where}")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self.lock:
                yield
        except Exception as error:
            self.problem(error)

    # ------------------------------------------------------------ on and off

    def start(self) -> None:
        """Begin to watch. Starting twice does nothing."""
        with self._guarded():
            if not self.running:
                self.running = True
                self.log.install()
                self.provenance.start()
                self._writes.install()
                self._end_of_notes = noted.watch(self.problem)
                self._end_of_swaps = swaps.watch(self._writes.let_go, self.problem)

    def stop(self) -> None:
        """Restore the engine functions, tracers and hooks. What was recorded stays readable."""
        with self._guarded():
            if self.running:
                self.running = False
                self.log.uninstall()
                self.provenance.stop()
                self._writes.uninstall()
                self._end_of_swaps()
                self._end_of_notes()
                self._open.clear()
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
    ) -> None:
        """A cell is about to run in this thread. Cells nest.

        Parameters
        ----------
        number
            Execution count.
        source, code
            The cell as the user sees it, and as it is compiled where magics changed it.
        filename
            The name under which its code will be compiled.
        frame
            A frame of it that is running already.
        """
        with self._guarded():
            if not self.running:
                return
            cell = self.provenance.begin_cell(
                number, source, cell_id=cell_id, run=self._run, filename=filename, code=code, frame=frame
            )
            run = self._run if cell.run is None else cell.run
            if run == self._run:
                self._run += 1
            if run not in self.runs:
                self.runs[run] = CellRun(run, number, source, cell_id, grad_before=torch.is_grad_enabled())
                if len(self.runs) > MAX_RUNS:
                    del self.runs[next(iter(self.runs))]
            self._open.append(run)
            self.busy = f"In[{number}] is running" if number is not None else "a cell is running"
            self._writes.install()  # torch's optimizers may have been imported meanwhile
            self.log.begin_cell()
            self._noted, self.unsaid = 0, ""
            if self._cached is None:
                known = self.log.everything if not self.identity.apart_below else None
                self._search(since=0 if known is None else known.newest + 1)
            else:  # nothing has happened since everything was looked at
                self._writes.begin_cell()
            self._changed()

    def end_cell(self, error: BaseException | None = None) -> None:
        """The innermost running cell has ended; `error` is what it raised. Only words of it are kept."""
        with self._guarded():
            if not self.running or not self._open:
                return
            self._note_grad_mode()
            if error is not None:
                self._note_modules()
            run = self._open.pop()
            if error is not None and run in self.runs:
                self._note_error(run, error)
            self._writes.end_cell()
            self.provenance.end_cell()
            if not self._open:
                self.busy = None
            self._changed()
            when_idle = self._idle() if not self._open else None
            if error is None and self._spends_too_much() and (when_idle is not None or not self._subscribers):
                event = self._cell_event(run)
                if when_idle is not None and self._subscribers:
                    when_idle(QUIET, partial(self._tell_late, event))
                return
            work = self._after_cell(run, error is None)
            began = perf_counter()
            for left in work:
                self._looked, began = self._looked + perf_counter() - began, perf_counter()
                if when_idle is not None and left > AT_ONCE:
                    number = f"more than {AT_ONCE:,}" if isinstance(left, AtLeast) else f"{left:,}"
                    self.busy = f"reading {number} nodes"
                    self.lock.leave(work, partial(when_idle, SOON))
                    return
            self._looked += perf_counter() - began

    def _spends_too_much(self) -> bool:
        """Whether looking at everything, and drawing it, has taken much of the time.

        So it is where many cells follow each other at once and much is alive. Then it is done when somebody asks, and
        for those who listen when no other cell follows.
        """
        free = FREE_LOOKS + LOOK_SHARE * (perf_counter() - self._began)
        return self.log.everything is not None and self._looked > free

    def _tell_late(self, event: Event) -> None:
        """Tell of a cell that nobody was told of, unless more has happened since: the end of that will be told."""
        with self._guarded():
            if self.running and not self._open and self.history.events[-1].id == event.id:
                self._tell(event)

    def _note_grad_mode(self) -> None:
        """How the running cells would leave it, if they ended now."""
        for run in self._open:
            if run in self.runs:
                self.runs[run] = replace(self.runs[run], grad_after=torch.is_grad_enabled())

    def _note_modules(self) -> None:
        """Which modules could train when the innermost running cell failed."""
        if self._open and self._open[-1] in self.runs:
            run = self._open[-1]
            self.runs[run] = replace(self.runs[run], modules=trainable.modules(self._namespace()))

    def _note_error(self, run: int, error: BaseException) -> None:
        place, frame = self.provenance.book.raised_at(error.__traceback__)
        self.runs[run] = replace(
            self.runs[run],
            error_type=type(error).__name__,
            error=BaseException.__str__(error),
            error_place=place,
            without_grad=without_grad.kinds(frame, place.source) if frame is not None and place is not None else {},
            through_backward=ti.came_through_backward(error.__traceback__),
            scene=scene.of_error(error.__traceback__, self.provenance.book, self._texts()),
        )

    def _texts(self) -> list[str]:
        """Of the cells, the last one first."""
        return [run.source for run in reversed(self.runs.values())]

    def _after_cell(self, run: int, ok: bool) -> Generator[int, None, None]:
        """Look at what a cell has left, and tell of it; yields how many nodes are still to be read."""
        try:
            snapshot = yield from self._looking()
            yield 0
            self._remember_names(snapshot)
            self.hues.settle(snapshot)
            self._forget_the_dead()
            yield 0
            self.provenance.make_room(lambda: sorted(seq for seq in snapshot.seq if seq >= 0))
            held_bytes = snapshot.held_bytes()
            yield 0
        finally:
            if not self._open:
                self.busy = None
        event = self._cell_event(run, ok, snapshot, held_bytes)
        yield 0
        self._tell(event)

    def _cell_event(
        self, run: int, ok: bool = True, snapshot: Snapshot | None = None, held: int | None = None
    ) -> Event:
        """Remember that a cell has ended; without a snapshot if nobody has looked."""
        cell = self.runs[run].cell if run in self.runs else None
        return self.history.add_event(
            Event(
                self.history.next_event,
                "cell",
                cell,
                label=f"In[{cell}]" if cell is not None else "cell",
                ok=ok,
                held_bytes=held,
                nodes=len(snapshot) if snapshot is not None else None,
                snapshot=snapshot,
            )
        )

    # ------------------------------------------------------------ calls

    def _call_failed(self, call: BackwardCall, error: BaseException) -> None:
        """Measure what stands there, before the error leaves it."""
        with self._guarded():
            self._scenes[call.n] = scene.of_call(sys._getframe(1), error, self.provenance.book, self._texts())
            if len(self._scenes) > MAX_SCENES:
                del self._scenes[next(iter(self._scenes))]
        self._add_note(call, error)

    def _add_note(self, call: BackwardCall, error: BaseException) -> None:
        """Put the explanation under the traceback. A program that fails on and on gets the first few only."""
        if self._explain is None or not self.notes or self._noted >= MAX_NOTES:
            return
        self._noted += 1
        self._note_grad_mode()
        self._note_modules()
        text = self._explain(self.record(), call)
        if text and hasattr(error, "add_note"):
            error.add_note(text)
        elif text:
            self.unsaid = text

    def _call_finished(self, call: BackwardCall, after: Snapshot | None) -> None:
        self._changed()
        self.history.add_call(call)
        self._called.extend((after.uid[r.node], r.path) for r in call.roots if r.node >= 0 and after is not None)
        place = call.place
        everything = after is not None and self._shows_all(after)
        if after is not None and not everything:
            after = replace(after, notes=(*after.notes, OLDER))
        event = self.history.add_event(
            Event(
                self.history.next_event,
                "call",
                place.outer_cell if place.outer_cell is not None else place.cell,
                call=call.n,
                iteration=place.iteration,
                label=place.source,
                ok=call.result == "ok",
                held_bytes=after.held_bytes() if after is not None and everything else None,
                nodes=len(after) if after is not None and everything else None,
                snapshot=after,
            )
        )
        if self.provenance.full:
            self.provenance.make_room(self._live_numbers)
        self._forget_the_dead()
        self._tell(event)

    def _shows_all(self, after: Snapshot) -> bool:
        """Whether a call's snapshot shows all that was alive, as far as the last look at everything tells."""
        known = self.log.everything
        first = min((seq for seq in after.seq if seq >= 0), default=0)
        return known is None or not any(0 <= seq < first for seq in known.seq)

    def _call_counted(
        self, n: int, spot: tuple[int, int, int], newest: int, highest: int, thread: int, model: Model
    ) -> None:
        """A call of a tight loop. Listeners hear of some of them only."""
        self._cached = self._findings = None
        self.history.count_call(n, spot, newest, highest, thread, model)
        if not n % 64 and self.provenance.full:
            self.provenance.make_room(self._live_numbers)
        if self._subscribers and perf_counter() - self._told_at > TELL_SECONDS:
            self._tell(self.history.events[-1])
            self._told_at = perf_counter()

    def _look_meanwhile(self, n: int, spot: tuple[int, int, int], frames: Sequence[FrameType]) -> None:
        """Before a call of a loop: graphs of earlier iterations that something still keeps are remembered."""
        here = self.provenance.place(spot)
        line = (here.run, here.cell, here.line, here.outer_line, get_ident())
        starts: list[int] = []
        for call in reversed(self.history.calls.values()):  # of one cell, and few: looking must not cost more and more
            at = call.place
            if at.run != here.run or len(starts) == MOST_STARTS:
                break
            if (at.run, at.cell, at.line, at.outer_line, call.thread) == line:
                starts.append(call.newest_seq)
        starts.reverse()
        self.looks.look(
            line,
            n,
            starts,
            lambda first: self._search(frames, 0 if self.identity.apart_below else first).holdings,
            lambda holdings: take(
                (),
                owners=holdings,
                identity=self.identity,
                places=self.provenance,
                freed_by=self.log.freed,
                previous=self._earlier(),
                watched_from=self.log.watched_from,
            ),
        )

    def _forget_the_dead(self) -> None:
        """Bound what is remembered by uid: nodes that live and those of remembered graphs stay."""
        if len(self.identity) <= self._uids:
            return
        keep = set(self.snapshot().uid)
        for look in self.looks.all():
            keep.update(look.graph.uid)
        for call in self.history.calls.values():
            if call.graph is not None:
                keep.update(call.graph.uid)
        self.identity.forget_missing(keep)
        self.log.forget_missing(keep)
        self._uids = 2 * len(self.identity) + UIDS

    def _live_numbers(self) -> list[int]:
        return sorted(seq for seq in self.snapshot().seq if seq >= 0)

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """The calls that are remembered, oldest first."""
        with self.lock:
            return tuple(self.history.calls.values())

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that are remembered, oldest first."""
        with self.lock:
            return tuple(self.history.events)

    def _iteration(self) -> int:
        top = self.provenance.lines.state().top
        return top.iteration() if top is not None else -1

    @property
    def writes(self) -> tuple[Write, ...]:
        """The in-place writes that are remembered, oldest first."""
        with self.lock:
            return self._writes.all()

    # ------------------------------------------------------------ the graph now

    def _changed(self) -> None:
        self._cached = self._findings = None

    def _search(self, frames: Sequence[FrameType] = (), since: int = 0) -> owners.Search:
        """Names of what is alive; `since`: of what was made from this sequence number on, and of leaves."""
        self.provenance.name_modules([self._namespace()])
        found = owners.find(
            self._namespace(),
            frames=frames,
            shell=self._shell,
            hidden=frozenset(self._hidden()),
            budget_s=SEARCH_SECONDS,
            since=since,
        )
        self._writes.watch(found, only=not since)
        return found

    def snapshot(self) -> Snapshot:
        """The graph of everything that can be named, now. Safe from any thread; cached until something changed."""
        with self.lock:
            if self._cached is not None and not self._open:
                return self._cached
            return self._look()

    def _looking(self) -> Generator[int, None, Snapshot]:
        """Take a snapshot in pieces; see `snapshot.taking`."""
        frames = self.log.cell_frames(sys._getframe(1)) if self._open else []
        search = self._search(frames)
        notes = tuple(search.notes)
        snapshot = yield from taking(
            (),
            owners=search.holdings,
            identity=self.identity,
            places=self.provenance,
            freed_by=self.log.freed,
            previous=self._earlier(),
            watched_from=self.log.watched_from,
        )
        yield 0
        with ti.quiet():
            roots = find_roots(snapshot, search, dict(self._called))
        snapshot = replace(snapshot, roots=roots, notes=(*snapshot.notes, *notes))
        self._cached = self.log.everything = snapshot
        self.log.previous = None
        return snapshot

    _look = at_once(_looking)

    def _earlier(self) -> Snapshot | None:
        """What is known of the graph before looking at it: the snapshot that covers most of it, this or a call's."""
        return self.log.earlier()

    def record(self, live: Snapshot | None = None) -> Record:
        """What a diagnosis reads. `live`: the graph now, from who has just looked; in a running cell none is kept."""
        with self.lock:
            snapshot = self.snapshot() if live is None else live
            theirs = {owner.node for owner in snapshot.owners}
            theirs -= {owner.node for owner in snapshot.owners if not is_notebooks(owner.kind, owner.path)}
            names = {snapshot.uid[index]: self._names.get(snapshot.uid[index]) for index in theirs}
            outlived = {uid: name for uid, name in names.items() if name is not None}
            writes = self._writes
            return Record(
                snapshot,
                self.calls,
                self.writes,
                dict(self.runs),
                outlived,
                writes.hidden(),
                writes.idle(),
                self._holders(snapshot),
                self.notebook,
                self.looks.all(),
                dict(self._scenes),
            )

    def _holders(self, snapshot: Snapshot) -> dict[str, str]:
        """What the names hold that lead to the tensors of a snapshot."""
        spaces: dict[str, Mapping[str, Any]] = {"": self._namespace()}
        for frame in self.log.cell_frames(sys._getframe(2)) if self._open else ():
            if frame.f_code.co_flags & reading.CO_OPTIMIZED:
                spaces.setdefault(frame.f_code.co_name, dict(reading.locals_of(frame)))
        paths = (owner.path for owner in snapshot.owners if not is_notebooks(owner.kind, owner.path))
        leaves = (path for leaf in snapshot.leaves.values() for path in leaf.paths)
        return holders.kinds((*paths, *leaves), spaces)

    def _remember_names(self, snapshot: Snapshot) -> None:
        """Who owned what at this event: later it may be that only `Out` does."""
        names = {}
        for owner in snapshot.owners:
            uid = snapshot.uid[owner.node]
            if not is_notebooks(owner.kind, owner.path):
                names.setdefault(uid, owner.path)
            elif uid in self._names:
                names.setdefault(uid, self._names[uid])
        self._names = names

    def findings(self, live: Snapshot | None = None) -> tuple[Finding, ...]:
        """What is worth telling now. `live` as in `record`."""
        with self._guarded():
            if self._findings is None and self._diagnose is not None:
                with no_collection():
                    self._findings = tuple(self._diagnose(self.record(live)))
        return self._findings or ()

    def drawing(self) -> Drawing:
        """What a picture of now shows: the live graph, with the dead nodes of the calls that matter as ghosts."""
        with self.lock:
            live = self.snapshot()
            events = self.events
            return Drawing(
                merged(live, self._graphs_that_matter(live)),
                self.calls,
                events,
                self.findings(live),
                events[-1].id if events else -1,
                torch.__version__,
                self.busy,
            )

    def _graphs_that_matter(self, live: Snapshot) -> list[Snapshot]:
        """Of a last call that failed: its graph and that of the call that freed it. Else: its graph, if it has died."""
        calls = self.history.calls
        last = next(reversed(calls.values()), None)
        if last is None:
            return []
        wanted = [last] if last.result == "raised" else []
        if wanted and last.freed_by is not None and last.freed_by in calls:
            wanted.insert(0, calls[last.freed_by])
        if not wanted and last.graph is not None and not any(uid in live.index_of for uid in last.graph.uid):
            wanted = [last]
        return [graph for call in wanted if (graph := self.history.graph_after(call)) is not None]

    # ------------------------------------------------------------ roots

    def cells_of(self, snapshot: Snapshot, root: TensorRef) -> tuple[int, ...] | None:
        """Runs whose cells made the graph of a root, in order; None: not all of it is known. See `runs`."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = [root.node] if root.node >= 0 else []
        while stack:
            index = stack.pop()
            if index in seen:
                continue
            seen.add(index)
            if snapshot.kind[index] == Kind.ACCUMULATE:
                continue
            place = snapshot.place_of(index)
            if place is None or place.run is None or place.run not in self.runs:
                return None
            found.add(place.run)
            stack.extend(snapshot.next(index))
        return tuple(sorted(found)) if found else None

    # ------------------------------------------------------------ who listens

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call `callback` with every event, in the thread in which it happens. Returns a function that ends it."""
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def _tell(self, event: Event) -> None:
        for callback in list(self._subscribers):
            try:
                callback(event)
            except Exception as error:
                self.problem(error)


@contextmanager
def track(
    *,
    forecaster: Forecaster | None = None,
    diagnose: Callable[[Record], Sequence[Finding]] | None = None,
    explain: Callable[[Record, BackwardCall], str] | None = None,
    history_bytes: int = HISTORY_BYTES,
    depth: int = 2,
) -> Iterator[Tracker]:
    """Track a stretch of a script: the file of the caller is the cell, its lines are the cell's lines.

    Parameters
    ----------
    depth
        How many frames up the caller is; for functions that wrap this one.
    """
    import linecache

    frame: FrameType | None = sys._getframe(depth)
    assert frame is not None
    filename = frame.f_code.co_filename
    variables = frame.f_globals
    tracker = Tracker(
        lambda: variables, forecaster=forecaster, diagnose=diagnose, explain=explain, history_bytes=history_bytes
    )
    tracker.start()
    tracker.begin_cell(None, "".join(linecache.getlines(filename)), filename=filename, frame=frame)
    del frame
    try:
        yield tracker
    finally:
        tracker.end_cell(sys.exc_info()[1])
        tracker.stop()
