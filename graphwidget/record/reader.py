"""Reads a record: replays its frames into a history as a tracker has one, so that all is bounded as it was there.

The file may come from anybody. Frames are read up to the first damaged one, every value is checked against the type of
its field and every index of a graph against its columns; what does not hold together is one clear error. Graphs are
read from the newest backwards, as far as the limits go: the timeline shows the others as not stored.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

from graphwidget.capture.calls.counting.models import CountedCall, Model
from graphwidget.capture.calls.history import History
from graphwidget.model import BackwardCall, CellRun, Event, Finding, Place, Record, Snapshot
from graphwidget.record.codec import Codec
from graphwidget.record.frames import Frame, body, first_number, frames
from graphwidget.record.graphs import check
from graphwidget.record.parts import Ending, Header, State, check_schema
from graphwidget.record.problems import UnreadableRecord

__all__ = ["Content", "header_of", "read"]

MOST_BYTES = 4 * 2**30  # of a file
MOST_READ = 256 * 2**20  # bytes of JSON of all frames that are no graphs
MOST_GRAPHS = 48 * 2**20  # bytes of JSON of the graphs
HISTORY_BYTES = 96 * 2**20  # of calls, events and their graphs
MOST_COUNTED = 20_000  # of the calls that were only counted: the newest


def _as_it_is(place: Place | tuple[int, int, int]) -> Place:
    """In a record the places of counted calls are places already."""
    assert isinstance(place, Place), place
    return place


@dataclass
class Content:
    """What is in a record. Where the file ends before them, `findings` and `ending` are None.

    `damaged_at` is the first byte that could not be read; None: the file ends with a whole frame.
    """

    header: Header
    history: History = field(default_factory=lambda: History(HISTORY_BYTES, _as_it_is))
    state: State = field(default_factory=lambda: State(Record(Snapshot())))
    runs: dict[int, CellRun] = field(default_factory=dict)
    calls: int = 0
    findings: tuple[Finding, ...] | None = None
    ending: Ending | None = None
    damaged_at: int | None = None


def read(path: str | os.PathLike[str]) -> Content:
    """Read a record.

    Raises
    ------
    UnreadableRecord
        If there is no such file, if it is no record, is damaged inside a frame, or of a newer schema.
    """
    name = os.fspath(path)
    try:
        if not os.path.isfile(name):
            raise UnreadableRecord(_why_not(name))
        size = os.path.getsize(name)
        if size > MOST_BYTES:
            raise UnreadableRecord(f"{name}: larger than any record is")
        with open(name, "rb") as file:
            found = list(frames(file, size))
    except OSError as error:
        raise UnreadableRecord(f"{name}: {error.strerror or error}") from None
    except UnreadableRecord as error:
        raise _named(name, error) from None
    if not found or found[0].kind != "H":
        raise UnreadableRecord(f"{name}: a record without a whole first frame: nothing of it can be read")
    try:
        reader = _Reader(found)
        end = found[-1].end
        return reader.content(end if end < size else None)
    except UnreadableRecord as error:
        raise _named(name, error) from None
    except (RecursionError, OverflowError, MemoryError) as error:
        raise UnreadableRecord(f"{name}: the data in it cannot be read ({type(error).__name__})") from None


def header_of(path: str) -> Header | None:
    """The header of a record, without reading the rest; None: it is no record, or none that can be read."""
    try:
        with open(path, "rb") as file:
            first = next(frames(file, os.path.getsize(path)), None)
        if first is None or first.kind != "H":
            return None
        data = body(first)
        check_schema(data)
        header: Header = Codec().read(Header, data)
        return header
    except (OSError, UnreadableRecord):
        return None


def _why_not(name: str) -> str:
    if os.path.isdir(name):
        return f"{name}: is a directory; name a record (.gwz) in it"
    return f"{name}: no such file" if not os.path.exists(name) else f"{name}: is no file"


def _named(name: str, error: UnreadableRecord) -> UnreadableRecord:
    text = str(error)
    return error if text.startswith(name) else UnreadableRecord(f"{name}: {text}")


class _Reader:
    """Reads the frames of one file, in the order in which they were written."""

    def __init__(self, found: list[Frame]) -> None:
        self._frames = found
        self._codec = Codec(snapshot_of=self._graph)
        self._graphs: dict[int, Frame] = {}
        self._allowed: set[int] = set()
        self._made: dict[int, Snapshot] = {}
        self._places: dict[int, Place] = {}
        self._models: dict[int, Model] = {}

    def content(self, damaged_at: int | None) -> Content:
        head = body(self._frames[0])
        check_schema(head)
        content = Content(self._codec.read(Header, head), damaged_at=damaged_at)
        rest = self._frames[1:]
        if sum(frame.size for frame in rest if frame.kind != "G") > MOST_READ:
            raise UnreadableRecord("it holds more than a record does")
        data = self._data(rest)
        self._allow(data)
        for kind, one in data:
            self._take(content, kind, one)
        calls = content.history.calls
        for n, order in content.state.orders.items():
            if n in calls:
                calls[n] = replace(calls[n], order=order)
        return content

    def _data(self, rest: list[Frame]) -> list[tuple[str, Any]]:
        """The data of all frames but graphs; of counted calls those of the newest."""
        counted = [frame for frame in rest if frame.kind == "N"]
        dropped = {frame.start for frame in counted[:-MOST_COUNTED]}
        last_state = max((frame.start for frame in rest if frame.kind == "S"), default=-1)
        found: list[tuple[str, Any]] = []
        for frame in rest:
            if frame.kind == "G":
                self._graphs[first_number(frame)] = frame
            elif frame.kind == "S" and frame.start < last_state:
                continue
            elif frame.kind in _TAKES and frame.start not in dropped:
                found.append((frame.kind, body(frame)))
        return found

    def _allow(self, data: list[tuple[str, Any]]) -> None:
        """Choose the graphs that are read: those of the last state and of calls that raised, then the newest."""
        first: list[int] = []
        then: list[int] = []
        for kind, one in reversed(data):
            wanted = first if kind == "S" or (isinstance(one, dict) and one.get("result") == "raised") else then
            wanted += _graph_numbers(kind, one)
        left = MOST_GRAPHS
        for number in (*first, *then):
            frame = self._graphs.get(number)
            if frame is None or number in self._allowed:
                continue
            left -= frame.size
            if left < 0:
                break
            self._allowed.add(number)

    def _graph(self, number: int) -> Snapshot | None:
        """The graph with a number; None: it is not in the file, or was not chosen."""
        made = self._made.get(number)
        if made is not None or number not in self._allowed:
            return made
        data = body(self._graphs[number])
        if not isinstance(data, dict) or data.get("id") != number:
            raise UnreadableRecord("a graph in it has another number than its frame")
        base = Snapshot()
        on = data.get("base")
        if on is not None:
            if type(on) is not int or on >= number or on not in self._graphs:
                raise UnreadableRecord("a graph in it is based on one that is not there")
            self._allowed.add(on)
            found = self._graph(on)
            assert found is not None
            base = found
        graph: Snapshot = self._codec.changed(base, data.get("changes"))
        check(graph)
        self._made[number] = graph
        return graph

    # ------------------------------------------------------------ frames

    def _take(self, content: Content, kind: str, data: Any) -> None:
        getattr(self, _TAKES[kind])(content, data)

    def _take_call(self, content: Content, data: Any) -> None:
        call: BackwardCall = self._codec.read(BackwardCall, data)
        if call.graph is not None:
            _check_refs(call, len(call.graph))
        content.history.add_call(call)
        content.calls = max(content.calls, call.n + 1)

    def _take_model(self, content: Content, data: Any) -> None:
        call: BackwardCall = self._codec.read(BackwardCall, data)
        self._models[call.n] = Model(call)

    def _take_place(self, content: Content, data: Any) -> None:
        if not isinstance(data, dict):
            raise UnreadableRecord("a place in it has no number")
        number = self._codec.read(int, data.get("id"))
        self._places[number] = self._codec.read(Place, data.get("place"))

    def _take_counted(self, content: Content, data: Any) -> None:
        n, event, at, iteration, newest, highest, thread, walked, like = self._codec.read(_Row, data)
        model, place = self._models.get(like), self._places.get(at)
        content.calls = max(content.calls, n + 1)
        if model is not None and place is not None:
            place = replace(place, iteration=iteration if iteration >= 0 else None)
            content.history.next_event = event
            content.history.count_call(CountedCall(n, place, newest, highest, thread, model, bool(walked)))

    def _take_event(self, content: Content, data: Any) -> None:
        content.history.add_event(self._codec.read(Event, data))

    def _take_run(self, content: Content, data: Any) -> None:
        run: CellRun = self._codec.read(CellRun, data)
        content.runs[run.run] = run

    def _take_state(self, content: Content, data: Any) -> None:
        state: State = self._codec.read(State, data)
        content.state = replace(state, record=_without_gaps(state.record))
        content.calls = max(content.calls, state.calls)

    def _take_findings(self, content: Content, data: Any) -> None:
        content.findings = self._codec.read(tuple[Finding, ...], data)

    def _take_ending(self, content: Content, data: Any) -> None:
        content.ending = self._codec.read(Ending, data)


_Row = tuple[int, int, int, int, int, int, int, int, int]

# What reads each kind of frame. Others are of later versions of this schema, and can be left out.
_TAKES = {
    "C": "_take_call",
    "M": "_take_model",
    "P": "_take_place",
    "N": "_take_counted",
    "E": "_take_event",
    "R": "_take_run",
    "S": "_take_state",
    "F": "_take_findings",
    "X": "_take_ending",
}


def _graph_numbers(kind: str, data: Any) -> list[int]:
    """The numbers of the graphs that the data of a frame refer to, as far as they are where they belong."""
    if not isinstance(data, dict):
        return []
    if kind == "S":
        record = data.get("record")
        looks = record.get("looks") if isinstance(record, dict) else None
        found = [record.get("snapshot") if isinstance(record, dict) else None]
        found += [look.get("graph") for look in looks if isinstance(look, dict)] if isinstance(looks, list) else []
    else:
        found = [data.get({"C": "graph", "E": "snapshot"}.get(kind, ""))]
    return [number for number in found if type(number) is int]


def _without_gaps(record: Record) -> Record:
    """A record without looks whose graph is not there, and with an empty graph if its own is not."""
    looks = tuple(look for look in record.looks if look.graph is not None)
    return replace(record, snapshot=record.snapshot or Snapshot(), looks=looks)


def _check_refs(call: BackwardCall, nodes: int) -> None:
    if any(not -1 <= ref.node < nodes for ref in (*call.roots, *(call.inputs or ()))):
        raise UnreadableRecord("a call in it has a root that is not in its graph")
