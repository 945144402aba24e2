"""Line tracing: at every line of a cell's code, how far the counter of sequence numbers has moved.

What makes nodes is the line that was running while the counter moved, so a tracer only has to read the
counter where a line begins, and where a function of a cell is entered or left. Two ways to get there:

* Python 3.12 and later: `sys.monitoring`, with line events switched on for the code objects of cells only.
  Everything else runs at full speed.
* Python 3.10 and 3.11: `sys.settrace`, whose function returns None for every frame outside cells. A tracer
  that is there already (a debugger, coverage) goes on working: ours calls it.

The counter is an argument, and nothing here knows torch.

Caveats: a debugger that takes the trace function over while a cell runs hides the lines that it steps
through, and the nodes made there have no place. Sequence numbers are counted per thread; where the numbers
of two threads overlap, a node could be of either, and its place is unknown.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

from graphwidget.capture.cells import Book, Scope
from graphwidget.capture.ranges import Ranges

_mon: Any = getattr(sys, "monitoring", None)

__all__ = ["LineTracer", "MonitoringTracer", "SettraceTracer", "line_tracer"]

UNKNOWN_PASS = -(1 << 40)
MAX_SUSPENDED = 1024  # generators and coroutines of cells whose loop counts are remembered


class ThreadState:
    """Of one thread: the frame that is running now, the counter when its line began, and the stretches."""

    __slots__ = ("add", "count", "last", "origin", "ranges", "suspended", "thread", "top", "tracer", "watching")

    def __init__(self, count: Callable[[], int], tracer: LineTracer) -> None:
        self.count, self.tracer = count, tracer
        self.watching = 0  # id of the innermost frame in which a line that may write in place is running
        self.last = self.origin = count()
        self.ranges = Ranges()
        self.add = self.ranges.add
        self.top: FrameState | None = None
        self.thread = threading.get_ident()
        self.suspended: dict[int, FrameState] = {}

    def close(self, now: int) -> None:
        """Give the numbers since the last boundary to the line that was running."""
        top = self.top
        if top is not None:
            inner = top.base + top.line
            outer = top.outer
            iteration = top.around
            if iteration < 0 and top.counts:
                iteration = top.iteration()
            self.add(self.last, now, inner, inner if outer < 0 else outer, iteration)
        self.last = now

    def tell(self, frame: FrameType, line: int, scope: Scope) -> None:
        """Tell whoever watches lines that write."""
        watch = self.tracer.watch
        if watch is not None:
            self.watching = watch(frame, line, scope)


class FrameState:
    """Of one running frame of a cell: its line, and how often each of its loops has begun a pass.

    It knows its frame by `id` only: a frame keeps every local variable alive.
    """

    __slots__ = ("around", "base", "code_id", "counts", "frame_id", "line", "outer", "parent", "recursive", "scope",
                 "stops", "thread")  # fmt: skip

    def __init__(self, scope: Scope, thread: ThreadState, frame: FrameType) -> None:
        self.scope, self.thread, self.base, self.stops = scope, thread, scope.base, scope.stops
        self.code_id = id(frame.f_code)
        self.line = frame.f_lineno or 0
        self.frame_id = id(frame)
        self.counts = [-1] * len(scope.loops)
        self.enter()

    def enter(self) -> None:
        """Become the running frame of the thread. What the frames below do stands still meanwhile."""
        parent = self.thread.top
        self.parent: FrameState | None = parent
        self.outer = self.around = -1
        self.recursive = parent is not None and (parent.recursive or self._has_a_twin())
        if parent is not None and not self.scope.outermost:
            self.outer = parent.outer if parent.outer >= 0 else parent.scope.base + parent.line
            self.around = parent.iteration()
        self.thread.top = self

    def _has_a_twin(self) -> bool:
        """Whether a frame that called this one has the same code: the code alone then does not tell the frame."""
        parent = self.parent
        while parent is not None and parent.code_id != self.code_id:
            parent = parent.parent
        return parent is not None

    def adopted(self) -> None:
        """The frame was running before it was seen: the loops around its line are in an unknown pass."""
        for i in self.scope.loops_at(self.line):
            self.counts[i] = UNKNOWN_PASS

    def iteration(self) -> int:
        """Pass of the innermost loop around the line, in the outermost frame that is in a loop; -1: none."""
        if self.around >= 0:
            return self.around
        if self.counts:
            counts, scope, line = self.counts, self.scope, self.line
            for i in scope.at[line] if line in scope.at else scope.loops_at(line):
                if counts[i] != -1:
                    return max(counts[i], -1)
        return -1

    def stop(self, line: int, frame: FrameType) -> None:
        """There may be more to do at this line than to note it."""
        thread, scope = self.thread, self.scope
        if thread.watching == self.frame_id or line in scope.watched:
            thread.tell(frame, line, scope)
        if line in scope.marks:
            self.arrive(line, frame.f_lasti)

    def arrive(self, line: int, offset: int) -> None:
        """Count: `line` begins passes of loops, or is where a loop is entered."""
        scope, counts = self.scope, self.counts
        before = self.line
        if line in scope.heads:
            for i, loop in scope.heads[line]:
                if loop.inline:
                    # Its line comes once on entry, then (not on 3.12 and later) at one other offset for each pass.
                    if scope.entry.setdefault(i, offset) == offset:
                        counts[i] = 0
                    else:
                        self.again(offset)
                elif before < loop.first or before > loop.last:
                    counts[i] = -1
        for i, inside in scope.marks[line]:
            if scope.entry.setdefault(i, offset) == offset:
                counts[i] += 1
                for j in inside:
                    counts[j] = -1

    def again(self, offset: int) -> None:
        """`for x in y: f(x)` goes into another pass at `offset`."""
        scope = self.scope
        for i, loop in scope.heads.get(self.line, ()):
            if loop.inline and scope.back.setdefault(i, offset) == offset:
                self.counts[i] += 1


class LineTracer:
    """What both ways have in common.

    Parameters
    ----------
    count
        Returns the next sequence number of the calling thread.
    book
        Tells which code belongs to a cell.
    problem
        Called with an exception of our own; tracing goes on.
    """

    def __init__(self, count: Callable[[], int], book: Book, problem: Callable[[BaseException], None]) -> None:
        self.count, self.book, self.problem = count, book, problem
        # Told of a line before it runs (0: its frame is left), if the scope has it among its `watched` lines or
        # another such line of the frame is running. Returns the `id` of the innermost frame of which one is, or 0.
        self.watch: Callable[[FrameType, int, Scope], int] | None = None
        self.threads: list[ThreadState] = []
        self._local = threading.local()
        self._lock = threading.Lock()

    def state(self) -> ThreadState:
        """The state of the calling thread."""
        try:
            return self._local.state  # type: ignore[no-any-return]
        except AttributeError:
            state = self._local.state = ThreadState(self.count, self)
            with self._lock:
                self.threads.append(state)
            return state

    def boundary(self) -> ThreadState:
        """Give what was counted so far to the running line, as at the end of a line."""
        state = self.state()
        now = self.count()
        if now != state.last:
            state.close(now)
        return state

    def skip(self) -> None:
        """Forget the numbers since the last boundary: nobody knows where they were used."""
        self.state().last = self.count()

    def where(self, frame: FrameType | None) -> tuple[int, int, int] | None:
        """(inner, outer, iteration) for the frames from `frame` outwards; None: no cell is running there."""
        scope, foreign, top = self.book.scope, self.book.foreign, self.state().top
        inner = outer = -1
        while frame is not None:
            found = None if frame.f_code.co_filename in foreign else scope(frame.f_code)
            if found is not None:
                if inner < 0 and top is not None and top.frame_id == id(frame) and top.scope is found:
                    inner = found.base + (frame.f_lineno or 0)  # the frames below it are known
                    return inner, inner if top.outer < 0 else top.outer, top.iteration()
                outer = found.base + (frame.f_lineno or 0)
                if inner < 0:
                    inner = outer
                if found.outermost:
                    break
            frame = frame.f_back
        if inner < 0:
            return None
        return inner, outer, top.iteration() if top is not None else -1

    def find(self, seq: int) -> tuple[int, int, int] | None:
        """The place of a sequence number; None where no thread or more than one can have used it."""
        found = None
        for state in self.threads:
            if seq >= state.last:
                continue
            hit = state.ranges.find(seq)
            if found is not None or hit is None:
                return None
            found = hit
        return found

    def make_room(self, live: Callable[[], Sequence[int]]) -> None:
        """Forget stretches without a living node where a thread has too many."""
        for state in self.threads:
            if state.ranges.full:
                state.ranges.keep(live(), state.ranges.limit // 2)

    def resume(self, frame: FrameType | None) -> None:
        """Trace frames that are running already, from `frame` outwards."""
        chain: list[FrameType] = []
        while frame is not None:
            if self.book.scope(frame.f_code) is not None:
                chain.append(frame)
            frame = frame.f_back
        state = self.state()
        state.top, state.last = None, self.count()
        for one in reversed(chain):
            self._adopt(one, state)

    def _adopt(self, frame: FrameType, state: ThreadState) -> None:
        raise NotImplementedError

    lost = False  # whether something took the trace function of this thread away

    def pause(self) -> Any:
        """Stop tracing in this thread while our own code runs. Returns what `unpause` needs."""

    def unpause(self, paused: Any) -> None:
        """Trace again."""

    def reclaim(self, frame: FrameType | None) -> None:
        """Trace again after `lost`, if that is possible."""

    def install(self) -> None:
        """Begin to listen, for as long as the tracker runs."""

    def uninstall(self) -> None:
        """Put everything back as `install` found it."""

    def start(self) -> None:
        """A cell begins in this thread. Calls nest."""

    def stop(self) -> None:
        """The cell has ended."""


class SettraceTracer(LineTracer):
    """Lines through `sys.settrace` (Python 3.10, 3.11)."""

    def __init__(self, count: Callable[[], int], book: Book, problem: Callable[[BaseException], None]) -> None:
        super().__init__(count, book, problem)
        self._previous: list[tuple[Any, Any]] = []
        foreign, enter = book.foreign, self._enter

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            # For nearly every call of the program this line is all that runs.
            if frame.f_code.co_filename in foreign:
                return None
            return enter(frame)

        self._plain = trace
        self._trace: Any = trace

    def start(self) -> None:
        theirs = sys.gettrace()
        self._previous.append((theirs, threading.gettrace()))  # type: ignore[attr-defined,unused-ignore]
        if theirs is None:
            self._trace = self._plain
        elif len(self._previous) == 1 or theirs is not self._trace:
            self._trace = self._beside(theirs)
        threading.settrace(self._plain)
        sys.settrace(self._trace)

    def stop(self) -> None:
        theirs, in_threads = self._previous.pop()
        if sys.gettrace() in (self._trace, self._plain):
            sys.settrace(theirs)
        threading.settrace(in_threads)
        self._trace = theirs if self._previous else self._plain

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return bool(self._previous) and sys.gettrace() not in (self._trace, self._plain)

    def pause(self) -> Any:
        trace = sys.gettrace()
        if trace is self._plain:
            sys.settrace(None)
            return trace
        return None  # nothing is traced, or somebody else traces too and shall not miss anything

    def unpause(self, paused: Any) -> None:
        if paused is not None and self._previous:
            sys.settrace(paused)

    def reclaim(self, frame: FrameType | None) -> None:
        """After a debugger has gone: trace again. While one is there it keeps the trace function."""
        if sys.gettrace() is None:
            sys.settrace(self._trace)
            self.resume(frame)
        else:
            self.skip()

    def _beside(self, theirs: Any) -> Any:
        """A trace function that serves the tracer that was there first, and then ours."""

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            local = theirs(frame, event, arg)
            if sys.gettrace() is not trace:  # coverage's C tracer installs itself again
                sys.settrace(trace)
            ours = self._plain(frame, event, arg)
            if ours is None:
                return local

            def both(frame: FrameType, event: str, arg: object) -> Any:
                nonlocal local
                if local is not None:
                    local = local(frame, event, arg)
                ours(frame, event, arg)
                return both

            both.__self__ = ours.__self__  # type: ignore[attr-defined]
            return both

        return trace

    def _enter(self, frame: FrameType) -> Any:
        """A function of a cell begins, or a generator of one goes on."""
        try:
            scope = self.book.scope(frame.f_code)
            if scope is None:
                return None
            thread = self.boundary()
            local = frame.f_trace
            state = getattr(local, "__self__", None)
            if isinstance(state, TracedFrame) and state.thread is thread:
                state.enter()
                return local
            return TracedFrame(scope, thread, frame).trace
        except Exception as error:
            self.problem(error)
            return None

    def _adopt(self, frame: FrameType, state: ThreadState) -> None:
        traced = TracedFrame(self.book.scope(frame.f_code), state, frame)  # type: ignore[arg-type]
        traced.adopted()
        frame.f_trace = traced.trace


class TracedFrame(FrameState):
    """A frame whose local trace function is a method of its state: the state lives and dies with the frame."""

    __slots__ = ()

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        thread = self.thread
        now = thread.count()
        if now != thread.last:
            thread.close(now)
        if event == "line":
            line: int = frame.f_lineno  # type: ignore[assignment]
            if line in self.stops or thread.watching:
                self.stop(line, frame)
            self.line = line
            thread.top = self
        elif event == "return":
            if thread.watching == self.frame_id:
                thread.tell(frame, 0, self.scope)
            thread.top = self.parent
        # None leaves the frame's trace function as it is (in CPython up to 3.11, which is where this runs).


class MonitoringTracer(LineTracer):
    """Lines through `sys.monitoring` (Python 3.12 and later).

    A global event at the start of a function is answered with DISABLE for code outside cells, so each such
    function costs one event in its life.
    """

    def __init__(self, count: Callable[[], int], book: Book, problem: Callable[[BaseException], None]) -> None:
        super().__init__(count, book, problem)
        self._tool = -1
        self._events = 0

    def install(self) -> None:
        if self._tool >= 0:
            return
        # 0, 1, 2 and 5 are meant for debuggers, coverage, profilers and optimizers.
        free = [i for i in (3, 4, 2, 5, 1, 0) if _mon.get_tool(i) is None]
        if not free:
            raise RuntimeError("all tool ids of sys.monitoring are taken: lines stay unknown")
        self._tool = free[0]
        _mon.use_tool_id(self._tool, "graphwidget")
        events = _mon.events
        self._events = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        for event, callback in self._callbacks():
            _mon.register_callback(self._tool, event, callback)
        for code in self.book.codes():
            self._listen(code)
        _mon.set_events(self._tool, events.PY_START)

    def _callbacks(self) -> list[tuple[int, Callable[..., Any]]]:
        events = _mon.events
        return [
            (events.PY_START, self._started),
            (events.PY_RESUME, self._resumed),
            (events.PY_RETURN, self._left),
            (events.PY_YIELD, self._yielded),
            (events.LINE, self._line_callback()),
            (events.JUMP, self._jumped),
        ]

    def uninstall(self) -> None:
        if self._tool < 0:
            return
        _mon.set_events(self._tool, 0)
        for code in self.book.codes():
            _mon.set_local_events(self._tool, code, 0)
        for event, _ in self._callbacks():
            _mon.register_callback(self._tool, event, None)
        # Else the places answered with DISABLE stay silent for whoever gets this tool id next.
        _mon.restart_events()
        _mon.free_tool_id(self._tool)
        self._tool = -1

    def _adopt(self, frame: FrameType, state: ThreadState) -> None:
        self._listen(frame.f_code)
        FrameState(self.book.scope(frame.f_code), state, frame).adopted()  # type: ignore[arg-type]

    def _listen(self, code: CodeType) -> None:
        if self._tool >= 0 and not _mon.get_local_events(self._tool, code):
            scope = self.book.scope(code)
            # A loop whose body stands on its own line has no line event for its second pass.
            jumps = _mon.events.JUMP if scope is not None and any(loop.inline for loop in scope.loops) else 0
            _mon.set_local_events(self._tool, code, self._events | jumps)

    def _started(self, code: CodeType, offset: int) -> Any:
        try:
            scope = self.book.scope(code)
            if scope is None:
                return _mon.DISABLE
            self._listen(code)
            FrameState(scope, self.boundary(), sys._getframe(1))
        except Exception as error:
            self.problem(error)
        return None

    def _resumed(self, code: CodeType, offset: int) -> Any:
        try:
            self._settle(self.boundary(), sys._getframe(1), code)
        except Exception as error:
            self.problem(error)
        return None

    def _left(self, code: CodeType, offset: int, value: object) -> Any:
        try:
            thread = self.boundary()
            frame = sys._getframe(1)
            state = self._settle(thread, frame, code)
            if thread.watching == state.frame_id:
                thread.tell(frame, 0, state.scope)
            thread.top = state.parent
        except Exception as error:
            self.problem(error)
        return None

    def _yielded(self, code: CodeType, offset: int, value: object) -> Any:
        try:
            thread = self.boundary()
            state = self._settle(thread, sys._getframe(1), code)
            thread.top = state.parent
            # The frame goes on later, and its loops with it.
            if len(thread.suspended) >= MAX_SUSPENDED:
                thread.suspended.clear()
            thread.suspended[state.frame_id] = state
        except Exception as error:
            self.problem(error)
        return None

    def _settle(self, thread: ThreadState, frame: FrameType, code: CodeType) -> FrameState:
        """The state of `frame`, made the running one: frames above it ended with an exception, unseen."""
        key = id(frame)
        state = thread.top
        while state is not None and state.frame_id != key:
            state = state.parent
        if state is not None:
            thread.top = state
            return state
        scope = self.book.scope(code)
        assert scope is not None, "these events are local to the code of cells"
        state = thread.suspended.pop(key, None)
        if state is not None and state.scope is scope:
            state.enter()
            return state
        state = FrameState(scope, thread, frame)
        state.adopted()
        return state

    def _jumped(self, code: CodeType, offset: int, to: int) -> Any:
        try:
            if to < offset:
                state = self._settle(self.boundary(), sys._getframe(1), code)
                state.again(to)
        except Exception as error:
            self.problem(error)
        return None

    def _line_callback(self) -> Callable[[CodeType, int], None]:
        """What runs at every line of a cell: a closure, so that it looks up as little as possible."""
        local, count, frame_at, problem = self._local, self.count, sys._getframe, self.problem

        def line_begins(code: CodeType, line: int) -> None:
            try:
                try:
                    thread: ThreadState = local.state
                except AttributeError:
                    thread = self.state()
                now = count()
                if now != thread.last:
                    thread.close(now)
                state = thread.top
                if state is None or state.code_id != id(code) or state.recursive:
                    state = self._settle(thread, frame_at(1), code)
                if line in state.stops or thread.watching:
                    state.stop(line, frame_at(1))
                state.line = line
            except Exception as error:
                problem(error)

        return line_begins


def line_tracer(count: Callable[[], int], book: Book, problem: Callable[[BaseException], None]) -> LineTracer:
    """The tracer for the running Python."""
    kind = SettraceTracer if _mon is None else MonitoringTracer
    return kind(count, book, problem)
