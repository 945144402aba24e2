"""Writes a record while a program runs: what its tracker's history gets, at once; and the rest now and then.

A call that was only counted costs one small write. Graphs, and the state of everything (which takes a search for
names), are written only while that takes a small share of the time; where a call raised, always. Nothing here raises
into the user's program: when a record can no longer be written, that is said once, and the program goes on.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from graphwidget.capture.calls.counting.models import CountedCall
from graphwidget.model import BackwardCall, CellRun, Event, Finding, Place, Snapshot
from graphwidget.record.codec import Codec
from graphwidget.record.frames import TooLarge, packed, small
from graphwidget.record.output import Key, Output
from graphwidget.record.parts import Ending, Header, State

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["MOST_MB", "Writer"]

MOST_MB = 64.0  # bound of a record, in megabytes
FREE_SECONDS = 0.5  # time for writing that needs no permission
SHARE = 0.01  # of the time that writing may take after that
STATE_SECONDS = 1.0  # least time between two states
MOST_COUNTED = 1000  # calls in an entry of those that were only counted
ALWAYS = 20  # calls that raised after which the state is written whatever it costs


def _say(words: str) -> None:
    """A line on standard error, as the process had it when it started."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"graphwidget: {words}", file=sys.__stderr__, flush=True)


class Writer:
    """A record of what a tracker sees, from now on.

    Parameters
    ----------
    tracker
        Its history is followed.
    where
        Returns the path to write to. It is asked, and the file made, with the first thing that is written.
    header
        Returns what the record says of the program.
    most_mb
        Bound of the file, in megabytes.
    in_fork
        Returns where a fork of this process writes its own record; None: it writes none.
    say
        Called with a sentence about the file that the user should know.
    """

    def __init__(
        self,
        tracker: Tracker,
        where: Callable[[], str],
        header: Callable[[], Header],
        *,
        most_mb: float = MOST_MB,
        in_fork: Callable[[], str] | None = None,
        say: Callable[[str], None] = _say,
    ) -> None:
        self.tracker, self._where, self._header = tracker, where, header
        self.path = ""
        self._pid, self._parent = os.getpid(), 0
        self._calls_before = tracker.log.count
        self.most = int(most_mb * 1_000_000)
        self._in_fork, self._say = in_fork, say
        self.output: Output | None = None
        self.stopped = ""  # why nothing more is written
        self._codec = Codec(self._stored)
        self._begin()
        _writers.add(self)
        tracker.history.follower = self

    def _begin(self) -> None:
        """Nothing is in the file yet."""
        self._began, self._seconds = perf_counter(), 0.0
        self._state_at, self._state_seconds = -1e9, 0.0
        self._numbers: weakref.WeakKeyDictionary[Snapshot, int] = weakref.WeakKeyDictionary()
        self._too_large: weakref.WeakSet[Snapshot] = weakref.WeakSet()  # graphs that no frame can hold
        self._graphs_too_large = 0  # how many there were
        self._next_graph = 0
        self._base: Snapshot | None = None  # the last graph in the file
        self._places: dict[Any, int] = {}
        self._next_place = 0
        self._runs: dict[int, CellRun] = {}
        self._counted: Key = ("N", -1)  # the newest entry of counted calls
        self._like = (-1, -1)  # their place and their model
        self._left = 0  # more of them that still go to that entry
        self._orders: dict[int, int] = {}  # of the remembered calls, as they were written
        self._raised = 0  # calls that raised
        self._last_raised = -1
        self._must = False
        self._used: list[Key] = []

    def begin(self) -> None:
        """Make the file now, so that the user learns at once where the record is, or why there is none."""
        with self._guarded():
            self.open()

    # ------------------------------------------------------------ what the history gets

    def called(self, call: BackwardCall) -> None:
        """Write a call that ended, with its graph."""
        with self._guarded(must=call.result == "raised"):
            self._write_call(call)

    def counted(self, call: CountedCall, event: int) -> None:
        """Write a call that was only counted."""
        if self.stopped:
            return
        with self._guarded():
            self._write_counted(call, event)
            self._write_state_if_cheap()

    def failed(self, call: BackwardCall) -> None:
        """Write everything that explains a call that raised."""
        with self._guarded(must=self._raised <= ALWAYS):
            self._write_state_if_cheap()

    def happened(self, event: Event) -> None:
        """Write an event with its graph."""
        if self.output is None and event.call is None:
            return  # a process that makes no call gets no file by itself
        with self._guarded():
            data, used = self._written(Event, event)
            self._put("E", event.id, packed("E", data), used)
            if event.ok or event.call is None:
                self._write_state_if_cheap()

    def end(self, ending: Ending) -> None:
        """Write the last state, the findings and the ending; nothing more after that."""
        with self._guarded(must=True):
            with self.tracker.lock:
                self._write_state()
                findings = self.tracker.findings()
            self._put("F", 0, packed("F", self._codec.write(tuple[Finding, ...], findings)), (), lasts=True)
            self._put("X", 0, packed("X", self._codec.write(Ending, ending)), (), lasts=True)
        self.close()

    def close(self) -> None:
        """Write nothing more. The record says that it has no end."""
        if self.tracker.history.follower is self:
            self.tracker.history.follower = None
        if self.output is not None:
            self.output.close()
            self.stopped = self.stopped or "it has ended"
        _writers.discard(self)

    # ------------------------------------------------------------ the file

    @property
    def file(self) -> str | None:
        """The file, as the user named it or beside that; None: there is none yet."""
        if self.output is None:
            return None
        return os.path.join(os.path.dirname(self.path), self.output.path.name)

    def remove(self) -> None:
        """Remove the file of an ended record, in which there is nothing."""
        if self.output is not None:
            with suppress(OSError):
                os.unlink(self.output.path)
            self.output = None

    def open(self) -> None:
        """Make the file, and write the header.

        Raises
        ------
        UnwritableRecord
            If no file can be made there.
        """
        if self.output is not None:
            return
        self.path = self._where()
        self.output = output = Output(self.path, self.most)
        header = replace(self._header(), parent=self._parent, calls_before=self._calls_before)
        output.append(("H", 0), packed("H", header.data()), lasts=True)
        if output.moved is not None:
            self._say(f"the earlier record {self.path} is now {output.moved.name}")
        elif output.path != output.wanted:
            self._say(f"{self.path} is in use, or no record: the record is {self.file}")

    @contextmanager
    def _guarded(self, must: bool = False) -> Iterator[None]:
        """Nothing of ours gets out; the time is counted."""
        began, self._must = perf_counter(), must
        try:
            yield
        except _Stopped:
            pass
        except OSError as error:
            self._stop(error)
        except Exception as error:
            self.tracker.problems.note(error)
        finally:
            self._must = False
            self._seconds += perf_counter() - began

    def _stop(self, error: OSError) -> None:
        self.stopped = error.strerror or str(error)
        if self.output is None:
            where = self.path or error.filename
            self._say(f"no record is written: {where}: {self.stopped}. The program goes on.")
        else:
            self._say(f"the record {self.file} ends here: {self.stopped}. The program goes on.")

    def _put(self, kind: str, number: int, frame: bytes, used: Sequence[Key], *, lasts: bool = False) -> bool:
        if self.stopped:
            raise _Stopped
        self.open()
        assert self.output is not None
        if kind != "N":
            self._left = 0
        return self.output.append((kind, number), frame, uses=tuple(used), lasts=lasts)

    # ------------------------------------------------------------ frames

    def _may(self) -> bool:
        """Whether there is time for what takes some."""
        return self._must or self._seconds < FREE_SECONDS + SHARE * (perf_counter() - self._began)

    def _written(self, type_: Any, value: Any) -> tuple[Any, list[Key]]:
        """Data, and the entries that they refer to."""
        outer, self._used = self._used, []
        try:
            data = self._codec.write(type_, value)
            return data, self._used
        finally:
            self._used = outer

    def _stored(self, graph: Snapshot) -> int | None:
        """The number of a graph in the file, which is written if there is time for it; None: it is not there."""
        number = self._numbers.get(graph)
        if number is None or self.output is None or ("G", number) not in self.output:
            if graph in self._too_large or not self._may():
                return None
            number = self._write_graph(graph)
            if number is None:
                return None
        self._used.append(("G", number))
        return number

    def _write_graph(self, graph: Snapshot) -> int | None:
        number = self._next_graph
        base: int | None = None
        self._next_graph += 1
        if self._base is not None and self._base.uid is graph.uid and self.output is not None:
            last = self._numbers[self._base]
            base = last if ("G", last) in self.output else None
        try:
            changes = self._codec.changes(graph, self._base if base is not None else Snapshot())
            frame = packed("G", {"id": number, "base": base, "changes": changes})
        except TooLarge:
            self._too_large.add(graph)
            self._graphs_too_large += 1
            return None
        if not self._put("G", number, frame, [("G", base)] if base is not None else []):
            return None
        self._numbers[graph] = number
        if base is None:
            self._base = graph
        return number

    def _write_call(self, call: BackwardCall) -> None:
        raised = call.result == "raised"
        data, used = self._written(BackwardCall, call)
        if raised and call.freed_by is not None:
            used = [*used, ("C", call.freed_by), ("M", call.freed_by)]
        self._put("C", call.n, packed("C", data), used, lasts=raised)
        self._orders[call.n] = call.order
        if raised:
            self._raised += 1
            if self._raised > 2 and self.output is not None:  # the first one and the last one stay
                self.output.no_longer_lasts(("C", self._last_raised))
            self._last_raised = call.n

    def _write_counted(self, call: CountedCall, event: int) -> None:
        model = call.model
        if self.output is None or ("M", model.n) not in self.output:
            data, used = self._written(BackwardCall, replace(model.call, graph=None))
            self._put("M", model.n, packed("M", data), used)
        place, iteration = self._place(call.place)
        row = (call.n, event, place, iteration, call.newest, call.highest, call.thread, int(call.walked), model.n)
        frame = small("N", f"[{','.join(map(str, row))}]")
        self._orders[call.n] = model.call.order
        like = (place, model.n)
        if self._left > 0 and like == self._like and self.output and self.output.extend(self._counted, frame):
            self._left -= 1
            return
        self._counted, self._like = ("N", call.n), like
        self._put("N", call.n, frame, [("M", model.n), ("P", place)])
        self._left = MOST_COUNTED

    def _place(self, key: Place | tuple[int, int, int]) -> tuple[int, int]:
        """The number of a place in the file, which is one for all passes of a loop, and the pass (-1: none)."""
        if isinstance(key, Place):
            iteration = -1 if key.iteration is None else key.iteration
            about: Any = (replace(key, iteration=None), tuple(caller.spot for caller in key.stack))
        else:
            about, iteration = key[:2], key[2]
        number = self._places.get(about)
        if number is None or self.output is None or ("P", number) not in self.output:
            place = replace(self.tracker.history.place(key), iteration=None)
            number = self._places[about] = self._next_place
            self._next_place += 1
            self._put("P", number, packed("P", {"id": number, "place": self._codec.write(Place, place)}), ())
        return number, iteration

    def _write_state_if_cheap(self) -> None:
        now = perf_counter()
        since = now - self._state_at
        if self._must or (self._may() and since > max(STATE_SECONDS, self._state_seconds / SHARE)):
            with self.tracker.lock:
                self._write_state()
            self._state_seconds = perf_counter() - now

    def _write_state(self) -> None:
        """Everything that a diagnosis and a picture need, apart from calls and events."""
        tracker = self.tracker
        record = tracker.record()
        self._must = True
        for number, run in record.runs.items():
            if self._runs.get(number) != run:
                self._put("R", number, packed("R", self._codec.write(CellRun, run)), (), lasts=True)
                self._runs[number] = run
        state = State(
            replace(record, calls=(), runs={}),
            tracker.log.count,
            tracker.write_recorder.log.steps(),
            tuple(tracker.problems),
            self._new_orders(),
            dict(self.output.left_out) if self.output is not None else {},
        )
        data, used = self._written(State, state)
        if self._graphs_too_large:  # known only now: writing the state writes the last graph
            data["graphs_too_large"] = self._graphs_too_large
        self._put("S", 0, packed("S", data), used, lasts=True)
        self._state_at = perf_counter()

    def _new_orders(self) -> dict[int, int]:
        """The orders of calls that have got another one since they were written."""
        calls = self.tracker.history.calls
        self._orders = {n: order for n, order in self._orders.items() if n in calls}
        return {n: calls[n].order for n, order in self._orders.items() if calls[n].order != order}

    # ------------------------------------------------------------ forks

    def forked(self) -> None:
        """This process is a fork of the one that the record is of: it leaves that alone."""
        if self.output is not None:
            self.output.close(unlock=False)
            self.output = None
        if self._in_fork is None:
            self.stopped = "it is a fork"
            return
        self._where = self._in_fork
        self._pid, self._parent = os.getpid(), self._pid
        self._calls_before = self.tracker.log.count
        self.stopped = ""
        self._begin()


class _Stopped(Exception):
    """Nothing more is written: raised inside, and caught there."""


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _in_fork() -> None:
    for writer in list(_writers):
        with suppress(Exception):
            writer.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_fork)
