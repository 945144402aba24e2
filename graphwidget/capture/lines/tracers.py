"""Two ways to be called at the lines of cells, and of files of the user's own.

* Python 3.12 and later: `sys.monitoring`, with line events switched on for the code objects of cells only.
  Everything else runs at full speed.
* Python 3.10 and 3.11: `sys.settrace`, whose function returns None for every frame outside cells. A tracer
  that was installed before (a debugger, coverage) goes on working: ours calls it.

Limit: a debugger that replaces the trace function while a cell runs hides lines until the next call of a module, of
`backward` or of an optimizer. Nodes made there have no place.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.cells import ENTERS, NOT_SEARCHED, PASS
from graphwidget.capture.lines.frames import MAX_SUSPENDED, FrameState, LineTracer, ThreadState, Watch

_mon: Any = getattr(sys, "monitoring", None)

__all__ = ["MonitoringTracer", "SettraceTracer", "line_tracer"]


class SettraceTracer(LineTracer):
    """Lines through `sys.settrace` (Python 3.10, 3.11)."""

    slow = True

    def __init__(
        self,
        count: Callable[[], int],
        book: Book,
        problem: Callable[[BaseException], None],
        watch: Watch | None = None,
    ) -> None:
        super().__init__(count, book, problem, watch)
        self._previous: list[tuple[Any, Any]] = []
        foreign, enter = book.foreign, self._enter

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            # For nearly every call of the program this line is all that runs.
            if frame.f_code.co_filename in foreign:
                return None
            return enter(frame)

        trace.tracers, trace.theirs = (self,), None  # type: ignore[attr-defined]
        self._plain = trace
        self._trace: Any = trace
        self._beside: Any = None  # the other tracer that `_trace` calls, too

    def start(self) -> None:
        theirs = _going_on(sys.gettrace())
        self._previous.append((theirs, threading.gettrace()))
        if theirs is None:
            self._trace = self._plain
        elif len(self._previous) == 1 or theirs is not self._trace:
            self._trace = self._combined(theirs)
        threading.settrace(self._plain)
        sys.settrace(self._trace)

    def stop(self) -> None:
        theirs, in_threads = self._previous.pop()
        if sys.gettrace() in (self._trace, self._plain):
            sys.settrace(theirs if self._previous else _going_on(self._beside))
        threading.settrace(in_threads)
        self._trace = theirs if self._previous else self._plain

    @property
    def is_on(self) -> bool:
        """Whether it traces: `start` was called more often than `stop`."""
        return bool(self._previous)

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self.is_on and not self._is_called_by(sys.gettrace())

    def pause(self) -> Any:
        trace = sys.gettrace()
        if trace is self._plain:
            sys.settrace(None)
            return trace
        return None  # nothing is traced, or another tracer runs too and must not miss anything

    def unpause(self, paused: Any) -> None:
        if paused is not None and self._previous:
            sys.settrace(paused)

    def reclaim(self, frame: FrameType | None) -> None:
        """Trace again: beside a debugger that has installed itself over us, or alone once it has gone."""
        theirs = sys.gettrace()
        self._trace = self._combined(theirs) if theirs is not None else self._alone()
        sys.settrace(self._trace)
        self.resume(frame)

    def _alone(self) -> Any:
        self._beside = None
        return self._plain

    def _combined(self, theirs: Any) -> Any:
        """A trace function that calls the tracer that was there before ours, and then ours."""
        self._beside = theirs

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            local = theirs(frame, event, arg)
            now = sys.gettrace()
            if not self._is_called_by(now):  # coverage's C tracer installs itself again; a debugger may have gone
                self._trace = self._alone() if now is None else trace
                sys.settrace(self._trace)
            ours = self._plain(frame, event, arg)
            return local if ours is None else _both(local, ours)

        trace.tracers, trace.theirs = (*getattr(theirs, "tracers", ()), self), theirs  # type: ignore[attr-defined]
        return trace

    def _is_called_by(self, trace: Any) -> bool:
        """Whether a trace function is ours, or one of another tracker that calls ours, too."""
        return self in getattr(trace, "tracers", ())

    def _enter(self, frame: FrameType) -> Any:
        """A function of a cell begins, or a generator of a cell is resumed."""
        try:
            scope = self.book.scope(frame.f_code) if self.is_on else None
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
        traced.set_passes_unknown()
        local = frame.f_trace
        alone = local is None or isinstance(getattr(local, "__self__", None), TracedFrame)
        frame.f_trace = traced.trace if alone else _both(local, traced.trace)


def _going_on(trace: Any) -> Any:
    """A trace function, without those of trackers that have ended: another tracker may have lain on top of them."""
    while getattr(trace, "tracers", ()) and not trace.tracers[-1].is_on:
        trace = trace.theirs
    return trace


def _both(theirs: Any, ours: Any) -> Any:
    """The local trace function of a frame that a debugger traces, too: its own, and then ours."""

    def both(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal theirs
        if theirs is not None:
            theirs = theirs(frame, event, arg)
        ours(frame, event, arg)
        return both

    both.__self__ = ours.__self__  # type: ignore[attr-defined]
    return both


class TracedFrame(FrameState):
    """A frame whose local trace function is a method of its state: the state lives and dies with the frame."""

    __slots__ = ()

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        # The common cases of `turn`, inlined: in a loop of small steps a call would be a good part of the time.
        thread = self.thread
        now = thread.count()
        if now != thread.last:
            thread.close(now)
        if event == "line":
            line = frame.f_lineno or 0
            step = self.steps.get(line)
            if step is None or thread.watching == self.frame_id:
                self.stop(line, frame)
            else:
                kind, self.loop, first, more = step
                if kind == PASS and not more:
                    if frame.f_lasti == first:
                        self.counts[self.loop] += 1
                elif kind:
                    self.turn(line, step, frame)
            self.line = line
            thread.top = self
        elif event == "return":
            if thread.watching == self.frame_id:
                thread.report(frame, 0, self.scope)
            thread.top = self.parent
        # Returning None keeps the frame's trace function (in CPython up to 3.11, the only ones where this runs).


class MonitoringTracer(LineTracer):
    """Lines through `sys.monitoring` (Python 3.12 and later).

    For code outside cells, the callback for the start of a function returns DISABLE, so each such function
    costs one event in total. Events come from all threads and at all times, so that what `sys.settrace` leaves out by
    itself is left out here: what a thread runs between its cells, and the frames that run a cell.
    """

    def __init__(
        self,
        count: Callable[[], int],
        book: Book,
        problem: Callable[[BaseException], None],
        watch: Watch | None = None,
    ) -> None:
        super().__init__(count, book, problem, watch)
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
        _mon.set_events(self._tool, events.PY_START | events.PY_UNWIND)  # there is no PY_UNWIND of one code object

    def _callbacks(self) -> list[tuple[int, Callable[..., Any]]]:
        events = _mon.events
        return [
            (events.PY_START, self._started),
            (events.PY_RESUME, self._resumed),
            (events.PY_RETURN, self._left),
            (events.PY_YIELD, self._yielded),
            (events.PY_UNWIND, self._unwound),
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
        # Otherwise events disabled with DISABLE stay off for the next user of this tool id.
        _mon.restart_events()
        _mon.free_tool_id(self._tool)
        self._tool = -1

    def ask_again(self) -> None:
        if self._tool >= 0:
            _mon.restart_events()

    def start(self) -> None:
        thread = self.state()
        thread.cells += 1
        thread.asleep = False

    def stop(self) -> None:
        thread = self.state()
        thread.cells = max(0, thread.cells - 1)
        thread.asleep = thread.cells == 0

    def _adopt(self, frame: FrameType, state: ThreadState) -> None:
        FrameState(self.book.scope(frame.f_code), state, frame).set_passes_unknown()  # type: ignore[arg-type]
        self._listen(frame.f_code)

    def _listen(self, code: CodeType) -> None:
        if self._tool >= 0 and not _mon.get_local_events(self._tool, code):
            scope = self.book.scope(code)
            if scope is not None and not scope.prepared:  # it has not run yet
                scope.prepare()
            # A loop with its body on one line has no line event for its second pass.
            jumps = _mon.events.JUMP if scope is not None and any(loop.inline for loop in scope.loops) else 0
            _mon.set_local_events(self._tool, code, self._events | jumps)

    def _started(self, code: CodeType, offset: int) -> Any:
        try:
            scope = self.book.scope(code)
            if scope is None:
                return _mon.DISABLE
            thread = self.boundary()
            if not thread.asleep:
                FrameState(scope, thread, sys._getframe(1))
                self._listen(code)
        except Exception as error:
            self.problem(error)
        return None

    def _resumed(self, code: CodeType, offset: int) -> Any:
        try:
            self._settle(self.boundary(), sys._getframe(1), code, resumed=True)
        except Exception as error:
            self.problem(error)
        return None

    def _left(self, code: CodeType, offset: int, value: object) -> Any:
        try:
            self._leave(sys._getframe(1), code)
        except Exception as error:
            self.problem(error)
        return None

    def _unwound(self, code: CodeType, offset: int, error: BaseException) -> Any:
        """An exception leaves a function: one of any code of the program."""
        if id(code) in self.book.scopes:
            try:
                self._leave(sys._getframe(1), code)
            except Exception as problem:
                self.problem(problem)
        return None

    def _leave(self, frame: FrameType, code: CodeType) -> None:
        thread = self.boundary()
        state = self._settle(thread, frame, code)
        if state is not None:
            if thread.watching == state.frame_id:
                thread.report(frame, 0, state.scope)
            thread.top = state.parent

    def _yielded(self, code: CodeType, offset: int, value: object) -> Any:
        try:
            thread = self.boundary()
            state = self._settle(thread, sys._getframe(1), code)
            if state is not None:
                thread.top = state.parent
                # The frame is resumed later, with its loop counts.
                if len(thread.suspended) >= MAX_SUSPENDED:
                    thread.suspended.clear()
                thread.suspended[state.frame_id] = state
        except Exception as error:
            self.problem(error)
        return None

    def _settle(
        self, thread: ThreadState, frame: FrameType, code: CodeType, resumed: bool = False
    ) -> FrameState | None:
        """The state of `frame`, now the running one; None if it is not to be recorded.

        `resumed`: it is a generator or a coroutine that goes on, and may have begun before the cell.
        """
        if thread.asleep:
            return None
        key = id(frame)
        state = thread.top
        while state is not None and state.frame_id != key:
            state = state.parent
        if state is not None:
            thread.top = state
            return state
        scope = self.book.scope(code)
        if scope is None:  # it was the user's own until a setting changed
            _mon.set_local_events(self._tool, code, 0)
            return None
        state = thread.suspended.pop(key, None)
        if state is not None and state.scope is scope:
            state.enter()
            return state
        if not resumed:
            return None  # it was running before the cell began: it is what runs the cell
        state = FrameState(scope, thread, frame)
        state.set_passes_unknown()
        return state

    def _jumped(self, code: CodeType, offset: int, to: int) -> Any:
        try:
            if to < offset:
                state = self._settle(self.boundary(), sys._getframe(1), code)
                if state is not None:
                    state.again(to)
        except Exception as error:
            self.problem(error)
        return None

    def _line_callback(self) -> Callable[[CodeType, int], None]:
        """The callback for every line of a cell: a closure, so that it needs as few look-ups as possible.

        The common cases of `FrameState.turn` are inlined: among torch's operations a call costs some tenths of a µs.
        """
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
                    if state is None:
                        return
                step = state.steps.get(line)
                if step is None or thread.watching == state.frame_id:
                    state.stop(line, frame_at(1))
                else:
                    kind, state.loop, first, more = step
                    if kind == PASS and not more:
                        if frame_at(1).f_lasti == first:
                            state.counts[state.loop] += 1
                    elif kind == ENTERS:
                        if not first <= state.line <= more:
                            state.counts[state.loop] = -1
                        state.loop = NOT_SEARCHED
                    elif kind:
                        state.turn(line, step, frame_at(1))
                state.line = line
            except Exception as error:
                problem(error)

        return line_begins


def line_tracer(
    count: Callable[[], int],
    book: Book,
    problem: Callable[[BaseException], None],
    watch: Watch | None = None,
) -> LineTracer:
    """The tracer for the running Python."""
    kind = SettraceTracer if _mon is None else MonitoringTracer
    return kind(count, book, problem, watch)
