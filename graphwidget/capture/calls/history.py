"""Events and calls, within a limit of bytes: the oldest details are dropped first."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from graphwidget.capture.calls.counting.models import CountedCall, record_of
from graphwidget.model import BackwardCall, Event, Place, Snapshot

__all__ = ["Follower", "History", "size_of"]

# Rough bytes of a record, an event, a small object.
_CALL, _EVENT, _OBJECT = 2000, 500, 240
_NODE = 100  # its entry in an index by uid


def size_of(snapshot: Snapshot) -> int:
    """Return the approximate size of a snapshot in bytes."""
    columns = sum(len(column) * column.itemsize for column in vars(snapshot).values() if isinstance(column, array))
    columns += 16 * len(snapshot.storages)
    tables = len(snapshot.places) + len(snapshot.storages.owners) + len(snapshot.owners) + len(snapshot.modules)
    objects = _OBJECT * (tables + len(snapshot.leaves) * 2)
    return columns + len(snapshot.kind) * _NODE + len(snapshot.slot_state) + objects


class Follower(Protocol):
    """What gets everything that a history gets, at once: it writes a record. Its methods raise nothing of their own."""

    def called(self, call: BackwardCall) -> None:
        """A call has ended."""

    def counted(self, call: CountedCall, event: int) -> None:
        """A call has ended that was only counted; `event` is the id of its event."""

    def failed(self, call: BackwardCall) -> None:
        """A call raised, which was measured and explained after it had ended."""

    def happened(self, event: Event) -> None:
        """An event: of a call that was recorded in full, or the end of a cell."""


class History:
    """Events and calls, the oldest first.

    Parameters
    ----------
    limit
        Bytes. Above it, the snapshots of old events are dropped, then the graphs of old calls. Records without graphs
        may take a quarter of it; above that, calls that were like an earlier one are dropped, then the oldest calls and
        events. Whatever the newest call refers to stays.
    place
        Returns the place for a key of `Provenance.place`.
    """

    def __init__(
        self, limit: int, place: Callable[[Place | tuple[int, int, int]], Place] = lambda key: Place(None, None)
    ) -> None:
        self.limit, self.place = limit, place
        self._calls: dict[int, BackwardCall] = {}
        self._events: list[Event] = []
        # Event ids and counted calls, newer than the records above; they become records when somebody reads.
        self._counted: list[tuple[int, CountedCall]] = []
        self.next_event = 0
        self.merged_calls = 0
        self.follower: Follower | None = None
        self._after: dict[int, Snapshot] = {}  # n -> the graph as the call left it
        self._graph_bytes: dict[int, int] = {}  # n -> bytes of its two graphs
        self._event_bytes: dict[int, int] = {}  # id -> bytes of its snapshot
        self._size = 0

    @property
    def size(self) -> int:
        """Return the estimated size in bytes."""
        return self._size

    @property
    def calls(self) -> dict[int, BackwardCall]:
        """Return n -> call, the oldest first."""
        self._settle()
        return self._calls

    @property
    def events(self) -> list[Event]:
        """Return the events, the oldest first."""
        self._settle()
        return self._events

    def _settle(self) -> None:
        """Turn the counted calls into records."""
        counted, self._counted = self._counted, []
        for event_id, one in counted:
            self._calls[one.n], event = record_of(one, self.place(one.place), event_id)
            self._events.append(event)

    def count_call(self, counted: CountedCall) -> None:
        """Remember a call that was only counted, and its event."""
        self._counted.append((self.next_event, counted))
        if self.follower is not None:
            self.follower.counted(counted, self.next_event)
        self.next_event += 1
        self._size += _CALL + _EVENT
        if self._size > self.limit:
            self._make_room()

    def add_call(self, call: BackwardCall) -> None:
        """Remember a call."""
        self.calls[call.n] = call
        self._size += _CALL + 8 * len(call.executed)
        if self.follower is not None:
            self.follower.called(call)

    def add_event(self, event: Event) -> Event:
        """Remember an event, and drop old details if there are too many bytes."""
        self.next_event = max(self.next_event, event.id + 1)
        self.events.append(event)
        self._size += _EVENT
        call = self.calls.get(event.call) if event.call is not None else None
        if call is not None and event.snapshot is not None:
            self._after[call.n] = event.snapshot
            # The two snapshots share all columns except the states.
            grown = (size_of(call.graph) if call.graph is not None else 0) + 5 * len(event.snapshot.slot_state)
            self._graph_bytes[call.n] = grown
            self._size += grown
        elif event.snapshot is not None:
            self._event_bytes[event.id] = size_of(event.snapshot)
            self._size += self._event_bytes[event.id]
        if self._size > self.limit:
            self._make_room()
        if self.follower is not None:
            self.follower.happened(event)
        return event

    def graph_after(self, call: BackwardCall) -> Snapshot | None:
        """Return the graph after a call, if it is still remembered."""
        return self._after.get(call.n)

    def _make_room(self) -> None:
        # Down to three quarters of the limit, so that not every event has to do this.
        target = self.limit * 3 // 4
        for event in self._events[:-1]:
            if self._size <= target:
                return
            if event.id in self._event_bytes:
                self._drop_snapshot(event)
        wanted = self._referred_to()
        for n in list(self._graph_bytes):
            if self._size <= target:
                return
            if n not in wanted:
                self._drop_graph(n)
        # One graph that cannot be dropped may alone exceed the limit: that is no reason to forget calls.
        target = max(target, self.limit // 4 + sum(self._graph_bytes.values()) + sum(self._event_bytes.values()))
        dropped: set[int] = set()
        for alike in (True, False):
            for n in list(self._calls):
                if self._size <= target:
                    break
                if n not in wanted and (self._calls[n].same_as is not None) == alike:
                    self._drop_call(n)
                    dropped.add(n)
            if alike and self._size > target and self._counted:
                over = min(len(self._counted) - 1, -(-(self._size - target) // (_CALL + _EVENT)))
                del self._counted[:over]
                self._size -= over * (_CALL + _EVENT)
                self.merged_calls += over
        self._events = [event for event in self._events if event.call not in dropped]
        while self._size > target and len(self._events) > 1:
            self._events.pop(0)
            self._size -= _EVENT

    def _referred_to(self) -> set[int]:
        """Return n of the newest call, of the newest that failed, and of the calls that these refer to."""
        wanted: set[int] = set()
        newest = next(reversed(self._calls.values()), None)
        failed = next((call for call in reversed(self._calls.values()) if call.result == "raised"), None)
        for call in (newest, failed):
            if call is not None:
                wanted.update(n for n in (call.n, call.freed_by, call.same_as) if n is not None)
        if self._counted:
            wanted.add(self._counted[-1][1].model.n)
        return wanted

    def _drop_snapshot(self, event: Event) -> None:
        self._size -= self._event_bytes.pop(event.id)
        at = next(i for i, one in enumerate(self._events) if one.id == event.id)
        self._events[at] = replace(event, snapshot=None)

    def _drop_graph(self, n: int) -> None:
        self._size -= self._graph_bytes.pop(n)
        self._after.pop(n, None)
        if n in self._calls:
            self._calls[n] = replace(self._calls[n], graph=None)
        for at, event in enumerate(self._events):
            if event.call == n:
                self._events[at] = replace(event, snapshot=None)

    def _drop_call(self, n: int) -> None:
        if n in self._graph_bytes:
            self._drop_graph(n)
        call = self._calls.pop(n)
        self._size -= _CALL + _EVENT + 8 * len(call.executed)  # the caller drops its event
        self.merged_calls += 1
