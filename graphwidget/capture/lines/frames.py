"""Line tracing: read the counter of sequence numbers at every line of a cell's code.

The line that was running while the counter moved has made the nodes. So a tracer only reads the counter where a line
begins, and where a function of a cell is entered or left; `tracers.py` hooks into these events. The counter is an
argument: nothing here knows torch.

Sequence numbers are counted per thread. Where the numbers of two threads overlap, a node could come from either, so
its place is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.cells import BOTH, ENTERS, NOT_SEARCHED, PASS, Scope, Step
from graphwidget.capture.lines.own_code import OUTERMOST
from graphwidget.capture.lines.ranges import FRESH, Ranges

__all__ = ["MAX_SUSPENDED", "FrameState", "LineTracer", "ThreadState", "Watch"]

Watch = Callable[[FrameType, int, Scope], int]

UNKNOWN_PASS = -(1 << 40)
MAX_SUSPENDED = 1024  # generators and coroutines of cells whose loop counts are remembered


class ThreadState:
    """State of one thread: the running frame, the counter when its line began, and the stretches."""

    __slots__ = ("asleep", "cells", "count", "entered", "fresh", "last", "origin", "ranges", "suspended", "thread",
                 "top", "tracer", "watching")  # fmt: skip

    def __init__(self, count: Callable[[], int], tracer: LineTracer) -> None:
        self.count, self.tracer = count, tracer
        self.cells = 0  # cells that are running in this thread, one inside another (with `sys.monitoring` only)
        # Whether events are not recorded: before a cell, or between two, what runs is not the user's program. A thread
        # that began during a cell goes on to be recorded.
        self.asleep = not any(one.cells for one in tracer.threads)
        self.watching = 0  # id of the innermost frame that is at a line that may write in place
        self.entered = 0  # how often a frame of a cell has begun or gone on
        self.last = self.origin = count()
        self.ranges = Ranges()
        self.fresh = self.ranges.fresh
        self.top: FrameState | None = None
        self.thread = threading.get_ident()
        self.suspended: dict[int, FrameState] = {}

    def close(self, now: int) -> None:
        """Assign the numbers since the last boundary to the line that was running."""
        top = self.top
        if top is not None:
            inner, iteration = top.base + top.line, top.around
            if iteration < 0 and top.loop != -1:
                iteration = top.counts[top.loop] if top.loop >= 0 else -1
                if iteration < 0:
                    iteration = top.iteration()
            fresh = self.fresh
            fresh += (self.last, now, inner, top.stack, iteration)
            if len(fresh) > FRESH:
                self.ranges.settle()
        self.last = now
        if self.tracer.made_nodes is not None:
            self.tracer.made_nodes()

    def boundary(self) -> int:
        """Assign the numbers counted so far to the running line, as at its end. Returns the next number."""
        now = self.count()
        if now != self.last:
            self.close(now)
            self.ranges.join()  # library code may call backward in one line of a loop again and again
        return now

    def report(self, frame: FrameType, line: int, scope: Scope) -> None:
        """Report a line to the callback that watches lines that write in place."""
        watch = self.tracer.watch
        if watch is not None:
            self.watching = watch(frame, line, scope)


class FrameState:
    """State of one running frame of a cell: its line, and how many passes each of its loops has begun.

    It stores the `id` of the frame only, because a frame keeps every local variable alive.
    """

    __slots__ = ("around", "base", "code_id", "counts", "frame_id", "line", "loop", "parent", "recursive", "scope",
                 "stack", "steps", "thread")  # fmt: skip

    def __init__(self, scope: Scope, thread: ThreadState, frame: FrameType) -> None:
        if not scope.prepared:
            scope.prepare()
            if scope.cell.file is not None:
                thread.tracer.book.note_module(frame.f_globals.get("__name__"))
        self.scope, self.thread, self.base, self.steps = scope, thread, scope.base, scope.steps
        self.code_id = id(frame.f_code)
        self.line = frame.f_lineno or 0
        self.loop = NOT_SEARCHED if scope.loops else -1  # position of the innermost loop around the line
        self.frame_id = id(frame)
        self.counts = [-1] * len(scope.loops)
        self.enter()

    def enter(self) -> None:
        """Become the running frame of the thread. The frames below do not move while it runs."""
        self.thread.entered += 1
        parent = self.thread.top
        self.parent: FrameState | None = parent
        self.stack = self.around = -1  # the number of the stack of calling lines, see `Book.stacks`
        self.recursive: bool = parent is not None and (parent.recursive or self._is_recursive())
        if parent is not None and not self.scope.outermost:
            self.stack = self.thread.tracer.book.stack(parent.stack, parent.base + parent.line)
            self.around = parent.iteration()
        self.thread.top = self

    def _is_recursive(self) -> bool:
        """Whether a calling frame has the same code: then the code does not identify the frame."""
        parent = self.parent
        while parent is not None and parent.code_id != self.code_id:
            parent = parent.parent
        return parent is not None

    def set_passes_unknown(self) -> None:
        """The frame was already running when first seen: the passes of the loops around its line are unknown."""
        for i in self.scope.loops_at(self.line):
            self.counts[i] = UNKNOWN_PASS

    def iteration(self) -> int:
        """Pass (from 0) of the innermost loop around the line, in the outermost frame that is in a loop; -1: none.

        What the head of a loop does between two passes is for the next one: it asks a generator, or runs a test.
        """
        if self.around >= 0:
            return self.around
        if self.counts:
            counts, scope, line = self.counts, self.scope, self.line
            for i in scope.at[line] if line in scope.at else scope.loops_at(line):
                loop = scope.loops[i]
                if counts[i] != -1 or loop.repeats:
                    return max(counts[i] + (line < loop.mark), -1)
        return -1

    def stop(self, line: int, frame: FrameType) -> None:
        """A line begins that is watched, or whose effect on loop counts is not known yet."""
        thread, scope = self.thread, self.scope
        if thread.watching == self.frame_id or line in scope.watched:
            thread.report(frame, line, scope)
        if line in scope.marks:
            self.arrive(line, frame.f_lasti)
        self.loop = NOT_SEARCHED if scope.loops else -1
        if line not in scope.watched:
            scope.learn(line)

    def turn(self, line: int, step: Step, frame: FrameType) -> None:
        """A line begins at which a loop may be entered or may begin a pass."""
        kind, loop, first, more = step
        if kind == PASS:
            if frame.f_lasti == first:
                self.counts[loop] += 1
                for inside in more:
                    self.counts[inside] = -1
            self.loop = loop
        elif kind == ENTERS:
            if not first <= self.line <= more:
                self.counts[loop] = -1
            self.loop = NOT_SEARCHED
        elif kind == BOTH:
            if frame.f_lasti == first:  # a pass of the outer loop
                self.counts[more[0]] += 1
                for inside in more[1]:
                    self.counts[inside] = -1
            elif not more[2].first <= self.line <= more[2].last:
                self.counts[loop] = -1
            self.loop = NOT_SEARCHED
        else:
            self.stop(line, frame)

    def arrive(self, line: int, offset: int) -> None:
        """Update the loop counts at a line that begins passes or enters loops."""
        scope, counts = self.scope, self.counts
        before = self.line
        if line in scope.heads:
            for i, loop in scope.heads[line]:
                if loop.inline:
                    # Its line event comes once on entry, then for each pass at another offset (not from 3.12 on).
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
        """A loop on one line (`for x in y: f(x)`) begins another pass at `offset`."""
        scope = self.scope
        for i, loop in scope.heads.get(self.line, ()):
            if loop.inline and scope.back.setdefault(i, offset) == offset:
                self.counts[i] += 1


class LineTracer:
    """The part that both kinds of tracer share.

    Parameters
    ----------
    count
        Returns the next sequence number of the calling thread.
    book
        Knows which code belongs to a cell.
    problem
        Called with an exception of our own; tracing goes on.
    watch
        Called with a line before it runs (0: its frame is left), if the line is in the `watched` lines of the scope or
        the frame is at such a line. Returns the `id` of the innermost frame that is at a watched line, or 0.
    """

    def __init__(
        self,
        count: Callable[[], int],
        book: Book,
        problem: Callable[[BaseException], None],
        watch: Watch | None = None,
    ) -> None:
        self.count, self.book, self.problem, self.watch = count, book, problem, watch
        self.made_nodes: Callable[[], None] | None = None  # see `when_nodes_are_made`
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

    def when_nodes_are_made(self, call: Callable[[], None] | None) -> None:
        """Call a function whenever a line has made nodes, until None is given."""
        self.made_nodes = call

    def boundary(self) -> ThreadState:
        """Assign the numbers counted so far to the running line, as at the end of a line."""
        state = self.state()
        state.boundary()
        return state

    def skip(self) -> None:
        """Forget the numbers since the last boundary: where they were used is unknown."""
        self.state().last = self.count()

    def where(self, frame: FrameType | None) -> tuple[int, int, int] | None:
        """(inner, stack, iteration) for the frames from `frame` outwards; None: none of them belongs to a cell."""
        top, foreign = self.state().top, self.book.foreign
        while frame is not None and (code := frame.f_code).co_filename in foreign and id(code) not in OUTERMOST:
            frame = frame.f_back  # as `own_frames` does, which costs several times as much
        if top is not None and top.frame_id == id(frame) and frame is not None:
            if self.book.scope(frame.f_code) is top.scope:
                return top.base + (frame.f_lineno or 0), top.stack, top.iteration()  # the frames below it are known
        keys = [found.base + (one.f_lineno or 0) for one, found in self.book.own_frames(frame)]
        if not keys:
            return None
        stack = -1
        for key in reversed(keys[1:]):
            stack = self.book.stack(stack, key)
        return keys[0], stack, top.iteration() if top is not None else -1

    def iteration(self) -> int:
        """Pass (from 0) of the loop around the running line of this thread; -1: none."""
        top = self.state().top
        return top.iteration() if top is not None else -1

    def find(self, seq: int) -> tuple[int, int, int] | None:
        """The place of a sequence number; None if no thread, or more than one, can have used it."""
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
        """In threads that have too many stretches, drop those without a living node."""
        for state in self.threads:
            if state.ranges.full:
                state.ranges.keep(live())

    def resume(self, frame: FrameType | None) -> None:
        """Trace frames that are running already, from `frame` outwards."""
        chain = [one for one, _ in self.book.own_frames(frame)]
        state = self.state()
        state.top, state.last = None, self.count()
        for one in reversed(chain):
            self._adopt(one, state)

    def _adopt(self, frame: FrameType, state: ThreadState) -> None:
        raise NotImplementedError

    slow = False  # whether line tracing slows down every function call
    lost = False  # whether the trace function of this thread is no longer ours

    def pause(self) -> Any:
        """Stop tracing in this thread while our own code runs. Returns what `unpause` needs."""

    def unpause(self, paused: Any) -> None:
        """Trace again."""

    def reclaim(self, frame: FrameType | None) -> None:
        """Trace again after `lost`, if that is possible."""

    def install(self) -> None:
        """Register for events, for as long as the tracker runs."""

    def uninstall(self) -> None:
        """Undo `install`."""

    def ask_again(self) -> None:
        """Ask again which code is the user's own: a setting has changed."""

    def start(self) -> None:
        """A cell begins in this thread. Calls nest."""

    def stop(self) -> None:
        """The cell has ended."""
