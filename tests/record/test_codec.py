"""Every record of the model is the same after it was JSON, and what does not fit its type is refused."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from build import call, graph, leaf, reused_product
from hypothesis import given, settings
from hypothesis import strategies as st
from records import records
from stories import story

from graphwidget.model import Drawing, Event, Finding, Fix, Place, Record, Scene, SlotState, Snapshot, TextEdit
from graphwidget.record.codec import Codec
from graphwidget.record.graphs import check
from graphwidget.record.problems import UnreadableRecord


def there_and_back(type_: Any, value: Any) -> Any:
    graphs: list[Snapshot] = []
    writer = Codec(number_of=lambda graph: (graphs.append(graph), len(graphs) - 1)[1])
    data = json.loads(json.dumps(writer.write(type_, value)))
    stored = [json.loads(json.dumps(writer.changes(graph, Snapshot()))) for graph in graphs]
    reader = Codec(snapshot_of=lambda number: reader.changed(Snapshot(), stored[number]))
    return reader.read(type_, data)


def columns(graph: Snapshot) -> dict[str, Any]:
    found = {field.name: getattr(graph, field.name) for field in fields(graph)}
    return {**found, "storages": (graph.storages.key, graph.storages.bytes, graph.storages.owners)}


def plain(value: Any) -> Any:
    """The same with columns in place of snapshots, which are equal to themselves only."""
    if isinstance(value, Snapshot):
        return columns(value)
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


@given(records())
@settings(max_examples=60)
def test_a_record_with_its_graph_and_calls_is_the_same_afterwards(record: Record) -> None:
    back = there_and_back(Record, record)
    assert plain(back) == plain(record)


def test_a_drawing_with_calls_events_findings_and_fixes_is_the_same_afterwards() -> None:
    edit = TextEdit((3, 0), (3, 4), "h = h.detach()\n", file="proj/model.py")
    finding = Finding("leak", "info", "\ud800 text\n", fixes=(Fix("detach", "cut", edits=(edit,), at=(2, 4)),))
    place = Place(None, 3, "x", file="a.py", stack=(Place(None, 1, "f()", file="b.py"),))
    drawing = replace(story(), findings=(*story().findings, finding), busy="In[1] is running")
    drawing = replace(
        drawing, events=(*drawing.events, Event(7, "cell", 3, snapshot=reused_product(), held_bytes=2**40))
    )
    drawing = replace(drawing, calls=(*drawing.calls, call(2, place=place)))
    back = there_and_back(Drawing, drawing)
    assert plain(back) == plain(drawing)
    assert back.calls[2].place.stack == place.stack


def test_a_value_that_is_the_default_takes_no_room() -> None:
    assert Codec().write(Scene, Scene()) == {}
    assert Codec().write(Place, Place(2, None)) == {"cell": 2, "line": None}


def test_only_the_columns_that_differ_are_written() -> None:
    before = reused_product()
    after = replace(before, slot_state=bytearray(SlotState.FREED for _ in before.slot_state))
    changes = Codec().changes(after, before)
    assert list(changes) == ["slot_state"]
    assert columns(Codec().changed(before, changes)) == columns(after)


WRONG = [None, True, 3, -1, 2**70, 1.5, "x", [], [1], [[1, 2]], {}, {"id": 1}]


def leaves_of(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(at for key, one in items for at in leaves_of(one, (*path, key)))]


def planted(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = planted(data[path[0]], path[1:], value)
    return copy


@given(st.data())
@settings(max_examples=400)
def test_a_wrong_value_anywhere_is_refused_or_is_a_value_of_that_type(data: Any) -> None:
    writer = Codec(number_of=lambda graph: 0)
    type_, value = data.draw(st.sampled_from([(Drawing, story()), (Record, Record(Snapshot(), calls=story().calls))]))
    good = writer.write(type_, value)
    bad = planted(good, data.draw(st.sampled_from(leaves_of(good))), data.draw(st.sampled_from(WRONG)))
    try:
        back = Codec(snapshot_of=lambda number: Snapshot()).read(type_, bad)
    except UnreadableRecord:
        return
    assert isinstance(back, type_)
    assert writer.write(type_, back) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"edge_to": [9, 9]},
        {"edge_start": [0, 5, 2, 2, 2]},
        {"uid": [1, 1, 1, 1]},
        {"kind": [77] * 4},
        {"slot_state": [9] * 4},
        {"name": [5000] * 4},
        {"roots": [{"node": 999}]},
        {"owners": [{"path": "x", "node": 999}]},
        {"leaves": [[999, {"paths": [], "shape": [], "dtype": "", "has_grad": False}]]},
        {"storages": [[1], [1, 2], []]},
    ],
)
def test_columns_that_do_not_fit_together_are_refused(change: dict[str, Any]) -> None:
    codec = Codec()
    with pytest.raises(UnreadableRecord):
        check(codec.changed(reused_product(), change))


def test_a_graph_with_a_circle_is_refused() -> None:
    shot = graph(leaf("w"))
    check(shot)
    with pytest.raises(UnreadableRecord):
        check(Codec().changed(shot, {"edge_start": [0, 1], "edge_to": [0], "edge_nr": [0]}))


def test_no_control_character_of_a_record_reaches_a_terminal() -> None:
    assert Codec().read(str, "a\x1b[2Jb\tc\nd\x9b") == "a\ufffd[2Jb\tc\nd\ufffd"
