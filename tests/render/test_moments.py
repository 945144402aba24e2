"""The events in a message: passes of a loop are sent once, and optimizer steps stand where they happened."""

from __future__ import annotations

import json
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

import graphwidget as gw
from graphwidget.model import Drawing, Event, Place, Snapshot, Write
from graphwidget.render import wire


def sent(drawing: Drawing) -> list[dict]:
    """The rows of a message, with their texts."""
    m = json.loads(wire.encode(drawing))
    s = m["strings"]
    return [{**row, "label": s[row["label"]], "steps": [s[i] for i in row["steps"]]} for row in m["events"]]


def read(rows: list[dict]) -> list[dict]:
    """What the page makes of the rows: each event in full."""
    events: list[dict] = []
    for row in rows:
        again = row.pop("again", [1, 0])
        events.append(row)
        one_pass = events[-again[0] :]
        calls = sum(event["call"] is not None for event in one_pass)
        for i in range(1, again[1] + 1):
            events += [
                event
                | {
                    "id": event["id"] + i * again[0],
                    "call": None if event["call"] is None else event["call"] + i * calls,
                    "iteration": None if event["iteration"] is None else event["iteration"] + i,
                }
                for event in one_pass
            ]
    return events


def facts(event: Event) -> tuple[object, ...]:
    return event.id, event.kind, event.cell, event.call, event.iteration, event.label, event.ok, event.held_bytes


def as_sent(event: dict) -> tuple[object, ...]:
    return tuple(event[key] for key in ("id", "kind", "cell", "call", "iteration", "label", "ok", "held"))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Event, ...]:
    """Loops of a few calls in a pass, cells and gaps, some measured."""
    events: list[Event] = []
    calls = 0
    for cell in range(draw(st.integers(1, 4))):
        size, times = draw(st.integers(1, 4)), draw(st.integers(0, 9))
        held = draw(st.sampled_from([None, 0, 8]))
        odd = draw(st.integers(0, 40))
        for i in range(size * times):
            ok = len(events) != odd
            event = Event(len(events), "call", cell, calls, i // size, f"line {i % size}", ok, held if i > size else 4)
            events.append(event)
            calls += 1
        events.append(Event(len(events), "cell", cell, label=f"In[{cell}]", held_bytes=0))
    gone = draw(st.sets(st.integers(0, len(events) - 1), max_size=2)) if len(events) > 3 else set()
    return tuple(event for event in events if event.id not in gone)


@given(histories())
def test_the_page_reads_the_very_events_that_there_were(events: tuple[Event, ...]) -> None:
    assert [as_sent(event) for event in read(sent(Drawing(Snapshot(), (), events)))] == list(map(facts, events))


def test_a_hundred_thousand_passes_are_one_row_each_of_their_events() -> None:
    events = []
    for i in range(200_000):
        events.append(Event(i, "call", 2, i, i // 2, "d.backward()" if i % 2 else "g.backward()"))
    rows = sent(Drawing(Snapshot(), (), tuple(events)))
    assert [row.get("again") for row in rows] == [None, [2, 99_999]]


def test_only_the_newest_rows_are_sent_and_never_a_part_of_a_pass() -> None:
    alone = [Event(i, "cell", i, held_bytes=i * i) for i in range(wire.MAX_EVENTS - 1)]
    first = [Event(i - 600, "call", 0, i, i // 2, f"line {i % 2}") for i in range(600)]
    events = [replace(event, id=event.id + 600) for event in (*first, *alone)]
    rows = sent(Drawing(Snapshot(), (), tuple(events)))
    assert rows[0]["id"] == 600 and len(rows) == wire.MAX_EVENTS - 1


def step(by: str, calls: int, cell: int = 2) -> Write:
    return Write(Place(cell, 3, by, cell, 3), by, after_calls=calls, optimizer=True)


def test_steps_of_optimizers_belong_to_the_first_event_after_them() -> None:
    events = (
        Event(0, "cell", 1),
        Event(1, "call", 2, 0, 0),
        Event(2, "call", 2, 1, 1),
        Event(3, "cell", 2),
        Event(4, "cell", 3),
        Event(5, "cell", 4),
        Event(6, "call", 5, 2),
    )
    steps = (step("a.step()", 1), step("b.step(); c", 1), step("a.step()", 2), step("late.step()", 2, cell=4))
    rows = sent(Drawing(Snapshot(), (), events, steps=steps))
    said = {row["id"]: row["steps"] for row in rows if row["steps"]}
    assert said == {2: ["a.step()", "b.step()"], 3: ["a.step()"], 5: ["late.step()"]}


def test_a_step_of_a_cell_that_still_runs_waits_for_its_event() -> None:
    rows = sent(Drawing(Snapshot(), (), (Event(0, "call", 2, 0),), steps=(step("opt.step()", 1),)))
    assert [row["steps"] for row in rows] == [[]]


def test_a_real_training_loop_with_two_optimizers_tells_its_steps() -> None:
    first, second = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    a, b = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second))
    with gw.track() as tracker:
        for _ in range(30):
            first(torch.ones(1, 2)).sum().backward()
            a.step()
            second(torch.ones(1, 2)).sum().backward()
            b.step()
    drawing = tracker.drawing()
    events = read(sent(drawing))
    assert len(events) == 61 and len(sent(drawing)) < 20
    assert [event["steps"] for event in events[1:5]] == [["a.step()"], ["b.step()"], ["a.step()"], ["b.step()"]]
    assert events[-1]["steps"] == ["b.step()"]
