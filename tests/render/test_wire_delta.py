"""A delta says what has changed since a message, in few bytes; and how many a message of a large graph takes."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from random import Random

import pytest
from build import FREED, HELD, call, chain, reused_product
from read_wire import small, who_freed, with_delta

from graphwidget.model import Drawing, Event, Place, SlotState, Storage
from graphwidget.render import wire


def freed(before, *slots: int, by: int = 0):
    """The same graph after a call freed some slots, with the memory table as a new snapshot would have it."""
    states, freed_by, storage = bytearray(before.slot_state), array("i", before.slot_freed_by), before.slot_storage[:]
    for slot in slots:
        states[slot], freed_by[slot], storage[slot] = FREED, by, -1
    used = [s for s in storage if s >= 0]
    moved = array("i", [used.index(s) if s >= 0 else -1 for s in storage])
    table = tuple(before.storages[s] for s in used)
    return replace(before, slot_state=states, slot_freed_by=freed_by, slot_storage=moved, storages=table)


def test_a_delta_gives_what_a_full_message_would() -> None:
    before = chain(200)
    after = freed(before, 3, 4, 5, 9)
    first = wire.Base.of(Drawing(before), 5)
    story = Drawing(after, (call(0),), (Event(0, "call", 1, 0),), current_event=0)
    d = wire.delta(story, first, 6)
    assert d is not None
    m, full = with_delta(first.text, d), json.loads(wire.encode(story, 6))
    for same in ("slotState", "freedBy", "freedCount", "edgeTo", "uid", "held", "event", "serial"):
        assert m[same] == full[same], same
    assert m["strings"][m["calls"][0]["source"]] == "loss.backward()"


def random_states(random: Random, slots: int) -> bytearray:
    """States in stretches and alone, as graphs have them."""
    states = bytearray()
    while len(states) < slots:
        states += bytearray(random.choices(range(6), k=random.choice((1, 2, 3)))) * random.choice((1, 1, 20))
    return states[:slots]


@pytest.mark.parametrize("seed", range(30))
def test_a_delta_brings_any_change_of_states_and_who_freed_them(seed: int) -> None:
    random = Random(seed)
    slots = len(chain(40).slot_state)

    def some():
        states = random_states(random, slots)
        by = array("i", [random.randrange(3) if state == FREED else -1 for state in states])
        return replace(chain(40), slot_state=states, slot_freed_by=by)

    before = some()
    # A freed slot stays freed, by the same call.
    after = some()
    for slot, state in enumerate(before.slot_state):
        if state == FREED:
            after.slot_state[slot], after.slot_freed_by[slot] = FREED, before.slot_freed_by[slot]
    first = wire.Base.of(Drawing(before), 1)
    d = wire.delta(Drawing(after), first)
    assert d is not None
    m = with_delta(first.text, d)
    assert small(m["slotState"]) == "".join(map(str, after.slot_state))
    assert who_freed(m) == {s: n for s, n in enumerate(after.slot_freed_by) if n >= 0}


def size_of_change(before, after) -> int:
    """Bytes of a delta for the states and who freed them."""
    d = wire.delta(Drawing(after), wire.Base.of(Drawing(before), 0))
    assert d is not None
    d = json.loads(d)
    return sum(
        len(json.dumps(d[key], separators=(",", ":"))) for key in ("slotState", "freedBy", "freedCount") if key in d
    )


def test_a_call_that_frees_everything_costs_a_few_bytes_also_past_slots_that_were_never_saved() -> None:
    before = chain(10_000)
    before.slot_state[::3] = bytes([SlotState.UNSAVED]) * len(before.slot_state[::3])
    held = [slot for slot, state in enumerate(before.slot_state) if state == HELD]
    assert size_of_change(before, freed(before, *held)) <= 60


@pytest.mark.parametrize("step", [2, 7, 16])
def test_scattered_changes_cost_one_byte_for_each_changed_slot(step: int) -> None:
    before = chain(10_000)
    after = replace(before, slot_state=bytearray(before.slot_state))
    changed = len(after.slot_state[::step])
    after.slot_state[::step] = bytes([SlotState.STALE]) * changed
    assert size_of_change(before, after) <= changed + 20


@pytest.mark.parametrize(
    "changed",
    [
        lambda s: replace(s, uid=array("q", [99, *s.uid[1:]])),
        lambda s: replace(s, owners=s.owners[1:]),
        lambda s: replace(s, ghost=bytearray([1, *s.ghost[1:]])),
        lambda s: replace(s, roots=()),
        lambda s: replace(s, places=(*s.places, Place(9, 9))),
        lambda s: replace(s, storages=(Storage(1, 4), *s.storages[1:])),
    ],
)
def test_a_changed_structure_needs_a_new_base(changed) -> None:
    before = reused_product()
    assert wire.delta(Drawing(before), wire.Base.of(Drawing(before), 0)) is not None
    assert wire.delta(Drawing(changed(before)), wire.Base.of(Drawing(before), 0)) is None


def test_a_big_graph_needs_at_most_32_bytes_per_node_and_edge() -> None:
    graph = chain(10_000)
    text = wire.encode(Drawing(graph))
    assert len(text) / (len(graph) + len(graph.edge_to)) <= 32


def test_a_big_freed_graph_needs_at_most_32_bytes_per_node_and_edge() -> None:
    graph = chain(10_000)
    graph = freed(graph, *range(len(graph.slot_state)))
    text = wire.encode(Drawing(graph, (call(0),)))
    assert len(text) / (len(graph) + len(graph.edge_to)) <= 32


def ten_times(small):
    """Ten copies of a graph side by side."""
    plain = "uid name seq kind place module ghost edge_nr slot_name slot_state slot_dtype slot_shape slot_bytes"
    columns = {name: getattr(small, name) * 10 for name in [*plain.split(), "slot_storage", "slot_freed_by"]}

    def starts(column: array) -> array:
        step = column[-1]
        return array("i", [at + k * step for k in range(10) for at in column[:-1]] + [10 * step])

    edge_to = array("i", [to + k * len(small) for k in range(10) for to in small.edge_to])
    return replace(
        small,
        **columns,
        edge_to=edge_to,
        edge_start=starts(small.edge_start),
        slot_start=starts(small.slot_start),
    )


def test_a_hundred_thousand_nodes_take_a_few_characters_each() -> None:
    text = wire.encode(Drawing(ten_times(chain(10_000))))
    assert json.loads(text)["n"] == 100_000
    assert len(text) < 40 * 100_000
