"""Finds the line that modified a tensor in place.

PyTorch counts in-place modifications in a tensor's `_version`. The tensors that user code can name are watched through
weak references, and their versions are compared before and after the lines of cells that may write:

* Lines that look like a write (`x += …`, `x[i] = …`, `x.add_(…)`, `opt.step()`, `out=`) are compared, the tensors
  named in them first. Lines that only call a function (`loss = train(batch)`) are compared, too.
* A line that has written nothing several times is skipped until the cell ends (and compared once more in the next
  cell). If a skipped line writes, the next comparison finds the change. Its line is then unknown, and all skipped lines
  are compared from then on.
* A write to a tensor that no other object holds has no effect on a graph, because no node has saved it (an example are
  gradients written by hand, row by row). Lines with only such writes are skipped, too, until a node is made: the node
  may save the tensors they write to.
* Optimizers report their steps themselves, wherever they are called from.

Nothing is kept alive, and no user code runs.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.lines.cells import Scope
from graphwidget.capture.lines.provenance import Provenance
from graphwidget.capture.owners.search import Search
from graphwidget.capture.writes.log import WriteLog
from graphwidget.capture.writes.named import resolve, variables_of
from graphwidget.capture.writes.optimizer_steps import OptimizerSteps
from graphwidget.capture.writes.statements import CellStatements, Statement
from graphwidget.capture.writes.steps_by_hand import StepsByHand
from graphwidget.capture.writes.through_data import Target, targets_of, written
from graphwidget.capture.writes.watched import MAX_WATCHED, WatchedTensors, version_of
from graphwidget.model import Place, Write

__all__ = ["WriteRecorder"]

# Code whose frame may be left in the middle of a line, and goes on later.
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _Armed:
    """A running line: the tensors that it names, and their versions when it began.

    `hidden`: what it may write to through ``.data``. `number`: the sequence number of the next node when it began.
    """

    __slots__ = ("frame", "hidden", "line", "named", "number", "scope", "statement")

    def __init__(
        self,
        frame: int,
        line: int,
        scope: Scope,
        statement: Statement,
        named: list[tuple[str, Any, int]],
        hidden: list[Target],
    ) -> None:
        self.frame, self.line, self.scope, self.statement = frame, line, scope, statement
        self.named, self.hidden, self.number = named, hidden, internals.next_number()


class WriteRecorder:
    """Records in-place writes.

    Parameters
    ----------
    provenance
        Knows which code belongs to a cell, and where code is running.
    statements
        The lines of cells that may write.
    calls
        Returns the number of backward calls that have begun.
    search
        Looks for the names that tensors have now, and watches those.
    problem
        Called with an exception of our own.
    """

    def __init__(
        self,
        provenance: Provenance,
        statements: CellStatements,
        *,
        calls: Callable[[], int] = lambda: 0,
        search: Callable[[], None] = lambda: None,
        problem: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.book, self.lines, self.statements, self.problem = provenance.book, provenance.lines, statements, problem
        self.watched = WatchedTensors()
        self.log = WriteLog(calls, provenance.place)
        self.steps = OptimizerSteps(
            self.watched, self.log, provenance, unexplained=self._suspect_all, search=search, problem=problem
        )
        self.by_hand = StepsByHand(self.steps.kept_grads, self.steps.unheld)
        self._armed: dict[int, list[_Armed]] = {}  # thread -> running lines, the innermost last
        # thread -> the moment of a comparison, while a line runs that cannot write: `for p in parameters:`.
        self._compared: dict[int, tuple[int, int]] = {}
        # Skipped statements, each with the lines (scope, number) on which it is not compared.
        self._left_out: dict[Statement, set[tuple[Scope, int]]] = {}
        self._unshared: set[Statement] = set()  # statements that wrote only to tensors that no other object holds

    # ---------------------------------------------------------------- the log

    def all(self) -> tuple[Write, ...]:
        """Return the remembered writes, oldest first."""
        return self.log.writes()

    def hidden(self) -> tuple[Write, ...]:
        """Return the remembered writes through ``.data``."""
        return tuple(self.log.hidden())

    def idle(self) -> tuple[Write, ...]:
        """Return the last steps of optimizers that have never modified anything."""
        return tuple(self.steps.idle.values())

    def seen_at_steps(self) -> dict[str, Any]:
        """Return what the steps of optimizers showed, by the fields of `Record`. It reads values: not in a loop."""
        steps = self.steps
        return {
            "starved": steps.starved.found(),
            "unheld": steps.unheld.found(),
            "kept_grads": steps.kept_grads.found(),
            "lost_grads": steps.lost_grads.found(),
            "nonfinite": steps.nonfinite.found(),
            "false_flags": steps.false_flags.found(),
            "moved_while_frozen": steps.frozen.found(),
            "empty_groups": steps.empty_groups.found(),
            "held_frozen": steps.frozen.holds_some(),
        }

    def zero_grads(self) -> bool:
        """Return whether a step was made by gradients of zeros. It reads those that are there now: not in a loop."""
        return self.steps.zero_grads.seen()

    # ---------------------------------------------------------------- events

    def install(self) -> None:
        """Begin to record the steps of optimizers."""
        self.steps.install()

    def let_go(self, tensor: Any) -> Callable[[], None]:
        """Drop every reference to a tensor for a while. Returns a function that restores them."""
        for armed in self._armed.values():
            for line in armed:
                line.named = [named for named in line.named if named[1]() is not tensor]
                line.hidden = [hidden for hidden in line.hidden if hidden.ref() is not tensor]
        self.by_hand.forget(tensor)
        restores = (self.steps.let_go(tensor), self.watched.let_go(tensor))

        def restore() -> None:
            for each in restores:
                each()

        return restore

    def around_call(self, ended: bool) -> None:
        """Note that a backward call begins, or has ended."""
        with internals.quiet():
            self.steps.kept_grads.call(ended)
            self.steps.lost_grads.call(ended)

    def uninstall(self) -> None:
        """Undo `install`."""
        self.steps.uninstall()
        self.end_cell()

    def watch(self, search: Search, everything: bool = True) -> None:
        """Watch the tensors that a search found. If it found `everything`, they replace those watched so far."""
        armed = self._armed.get(threading.get_ident())
        if armed:  # in the middle of a line, before a backward call in it
            self._compare_running(armed[-1])
        self._check_skipped()
        self.steps.false_flags.see(search.flagged)
        tensors = {id(h.tensor): (h.path, h.tensor) for h in reversed(search.holdings)}
        chosen = list(reversed(tensors.values()))
        chosen += [(step.path(), tensor) for tensor, step in search.others[: max(0, MAX_WATCHED - len(chosen))]]
        if everything:
            self.watched.replace(chosen)
        else:
            self.watched.add(chosen)

    def begin_cell(self) -> None:
        """Begin a cell. Its lines are not responsible for writes since the last cell ended."""
        self._check_skipped()

    def line(self, frame: FrameType, line: int, scope: Scope) -> int:
        """Handle a line of a cell that is about to run, or (`line` 0) a frame that is about to be left.

        The line tracer calls it before it counts the iterations of loops.

        Returns
        -------
        int
            `id` of the frame of the innermost running line that may write; 0 if there is none. The next line of that
            frame must be reported, too.
        """
        try:
            thread = threading.get_ident()
            armed = self._armed.setdefault(thread, [])
            compared = self._compared.pop(thread, None)
            ended = self._end_lines(armed, frame)
            if line > 0:
                statement = self.statements.of(scope).get(line)
                if statement is not None:
                    if armed and not ended and not self._left_out:
                        self._compare_running(armed[-1])  # `opt.step(closure)` writes between calls of its closure
                    just_compared = ended or (compared is not None and compared == self._moment(frame))
                    with internals.quiet():
                        self._begin_line(armed, frame, line, scope, statement, just_compared)
                elif ended and self._left_out and not frame.f_code.co_flags & _SUSPENDS:
                    self._compared[thread] = self._moment(frame)
                    return id(frame)
            return armed[-1].frame if armed else 0
        except Exception as error:
            self.problem(error)
            return 0

    def _moment(self, frame: FrameType) -> tuple[int, int]:
        """Return what stays the same while a frame runs lines that run no other frame of the user's own."""
        return id(frame), self.lines.state().entered

    def end_cell(self) -> None:
        """End the cell: compare its last line."""
        armed = self._armed.get(threading.get_ident(), [])
        while armed:
            self._compare(armed.pop(), None)
        self._armed.pop(threading.get_ident(), None)
        self._compared.pop(threading.get_ident(), None)
        self._watch_again()
        self.steps.end_cell()

    # ---------------------------------------------------------------- lines

    def _begin_line(
        self,
        armed: list[_Armed],
        frame: FrameType,
        line: int,
        scope: Scope,
        statement: Statement,
        just_compared: bool,
    ) -> None:
        """Read what the line may write to. `just_compared`: no skipped line has run since the last comparison."""
        if not statement.due():
            self._left_out.setdefault(statement, set()).add((scope, line))
            scope.unwatch(line)
            if statement in self._unshared:
                self.lines.when_nodes_are_made(self._nodes_made)
            return
        if self._left_out and not just_compared:
            self._check_skipped()
        named = []
        variables = variables_of(frame)
        for chain in statement.chains:
            for path, tensor in resolve(variables, chain):
                at = version_of(tensor) if self.watched.position(tensor) is None else None
                if at is not None:
                    named.append((path, weakref.ref(tensor), at))

        def find(text: str, chain: tuple[str, ...]) -> Any:
            here = dict(resolve(variables, chain)).get(text)
            return self.watched.named(text) if here is None else here

        hidden = targets_of(statement, find)
        armed.append(_Armed(id(frame), line, scope, statement, named, hidden))

    def _end_lines(self, armed: list[_Armed], frame: FrameType) -> bool:
        """Compare the lines that have ended: of this frame, and of frames that are gone. False if none has ended."""
        before = len(armed)
        while armed:
            if armed[-1].frame == id(frame):
                self._compare(armed.pop(), frame)
                return True
            outer: FrameType | None = frame.f_back
            while outer is not None and id(outer) != armed[-1].frame:
                outer = outer.f_back
            if outer is not None:  # the line is still running: it called this frame
                break
            self._compare(armed.pop(), frame)
        return len(armed) < before

    def _compare(self, ended: _Armed, frame: FrameType | None) -> None:
        changed = self._changed(ended, *reversed(self._armed.get(threading.get_ident(), ())))
        if changed:
            self._note(ended, changed, frame)
        if ended.hidden:
            with internals.quiet():
                ended.hidden = written(ended.statement, ended.hidden)
        if ended.hidden:
            self.log.hide(self._place(ended, frame), ended.statement.text, ended.hidden, ended.number)
        if ended.statement.sure and not ended.statement.optimizer and (changed or ended.hidden):
            self._note_by_hand(ended, changed, frame)

    def _note_by_hand(self, ended: _Armed, changed: list[tuple[str, Any]], frame: FrameType | None) -> None:
        """Note what a line has written to that may be a parameter, or a gradient."""
        with internals.quiet():
            unseen = [tensor for one in ended.hidden if (tensor := one.ref()) is not None]
            tensors = [*(tensor for _, tensor in changed), *unseen]
            for at, tensor in enumerate(tensors):
                self.by_hand.cleared(tensor, at >= len(changed))
            self.by_hand.wrote(ended.statement, tensors, lambda: self._place(ended, frame))

    def _compare_running(self, running: _Armed) -> None:
        """Record what a line has written while it is still running."""
        changed = self._changed(running)
        if changed:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and id(frame) != running.frame:
                frame = frame.f_back
            self._note(running, changed, frame)

    def _note(self, line: _Armed, changed: list[tuple[str, Any]], frame: FrameType | None) -> None:
        """Remember what a line has written."""
        statement, where = line.statement, self._where(line, frame)
        self._mark_writer(statement, changed)
        if statement.optimizer:
            self.log.add(self.log.place(where), statement.text, changed, True, line.number)
        else:
            statement.last = self.log.add_line(where, statement.text, changed, line.number, statement.last)

    def _changed(self, *lines: _Armed) -> list[tuple[str, Any]]:
        """The tensors that have changed since they were last compared: those that lines name, and those watched.

        Parameters
        ----------
        lines
            The innermost one, to which a change belongs, and then those that called it: what they name it may know by
            another name, or by another tensor of the same memory.
        """
        changed: dict[int, tuple[str, Any]] = {}
        with internals.quiet():
            for line in lines:
                for at, (path, ref, before) in enumerate(line.named):
                    tensor = ref()
                    now = version_of(tensor) if tensor is not None else None
                    if now is not None and now != before:
                        line.named[at] = (path, ref, now)  # so that the caller does not record the same write again
                        changed.setdefault(id(tensor), (path if line is lines[0] else "", tensor))
        found = [*changed.values(), *self.watched.changes()]
        if any(path for path, _ in found):
            return found
        return [(self._name_at(lines, tensor), tensor) for _, tensor in found]

    @staticmethod
    def _name_at(lines: tuple[_Armed, ...], tensor: Any) -> str:
        """The name of a tensor at the innermost line that names it."""
        return next((path for line in lines for path, ref, _ in line.named if ref() is tensor), "")

    def _mark_writer(self, statement: Statement, changed: list[tuple[str, Any]]) -> None:
        """Compare this line each time from now on, unless no other object holds the tensors it wrote to."""
        if statement.wrote:
            return
        if _shared(changed):
            statement.wrote = True
        else:
            self._unshared.add(statement)

    def _check_skipped(self) -> None:
        """Look for changes that a skipped line has made."""
        if _shared(self.watched.changes()):
            self._suspect_all()

    def _nodes_made(self) -> None:
        """Compare the unshared writers once more: a new node may have saved the tensors they write to."""
        try:
            armed = self._armed.get(threading.get_ident())
            if armed:
                self._compare_running(armed[-1])
            else:
                self._check_skipped()
            for statement in self._unshared.intersection(self._left_out):
                statement.once_more()
                for scope, line in self._left_out.pop(statement):
                    scope.watch(line)
            self.lines.when_nodes_are_made(None)
        except Exception as error:
            self.problem(error)

    def _suspect_all(self) -> None:
        """Compare the skipped lines from now on: one of them has written."""
        for statement in self._left_out:
            statement.wrote = True
        self._watch_again()

    def _watch_again(self) -> None:
        """Watch the skipped lines."""
        for lines in self._left_out.values():
            for scope, line in lines:
                scope.watch(line)
        self._left_out.clear()

    def _place(self, ended: _Armed, frame: FrameType | None) -> Place:
        """Return the place of a line that has ended, with the lines of the cell frames around it."""
        return self.log.place(self._where(ended, frame))

    def _where(self, ended: _Armed, frame: FrameType | None) -> tuple[int, int, int]:
        """Return the key of that place."""
        key, top = ended.scope.base + ended.line, self.lines.state().top
        if top is not None and top.frame_id == ended.frame:
            return key, top.stack, top.iteration()
        around = [
            scope.base + (one.f_lineno or 0) for one, scope in self.book.own_frames(frame) if id(one) != ended.frame
        ]
        stack = -1
        for line in reversed(around):
            stack = self.book.stack(stack, line)
        return key, stack, self.lines.iteration()


def _shared(changed: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the tensors that may matter to a graph: leaves, and those that a node, a view or another object holds."""
    if not changed:
        return changed
    with internals.quiet():
        return [one for one in changed if not internals.is_unshared(one[1])]
