from __future__ import annotations

import json
import re
from array import array
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from random import Random

from build import FREED, HELD, N, call, chain, leaf, reused_product, snapshot
from read_wire import decode

from graphwidget.model import Drawing, Event, Finding, Fix, ModuleCall, Owner, Place, SlotState, Storage
from graphwidget.render import wire


def test_a_message_says_what_the_snapshot_says() -> None:
    graph = reused_product()
    m = decode(wire.encode(Drawing(graph, torch="2.13.0"), 12))
    assert (m["schema"], m["serial"], m["n"]) == (2, 12, 7)
    assert m["uid"] == [10, 9, 4, 103, 104, 6, 5]
    assert m["name"] == [graph.name_of(i) for i in range(7)]
    assert m["seq"] == list(graph.seq)
    assert m["kind"] == "0001100" and m["ghost"] == "0000011"
    assert m["edges"] == [[0, 1], [1, 2], [2, 3], [2, 4], [5, 6], [6, 2]]
    assert m["slotEnd"] == [0, 1, 3, 3, 3, 3, 4]
    assert m["slotName"] == ["self", "self", "vec", "self"]
    assert m["slotState"] == "0111"
    assert m["slotType"] == ["float32[3]", "float32[3,4]", "float32[4]", "float32[3]"]
    assert m["slotBytes"] == [12, 48, 16, 12]
    assert m["slotStorage"] == [0, -1, -1, -1] and m["storageBytes"] == [12]
    assert m["freedBy"] == {1: 0, 2: 0, 3: 0}
    assert m["held"] == 12


def test_places_name_the_inner_and_the_outer_line_and_unknown_is_null() -> None:
    graph = snapshot(
        [
            N("A", (1,), place=Place(1, 2, "f(x)", 3, 4, "g()", 5, "id-1", 6)),
            N("B", place=Place(None, None)),
            N("C", place=Place(1, 2, "f(x)", 3, 4, "g()", 6, "id-1", 6)),
            N("D"),
            N(
                "E",
                place=Place(
                    None, 9, "z", file="p/m.py", outer_line=9, outer_file="p/m.py", function="M.f", run=-1, inner_run=-1
                ),
            ),
        ]
    )
    m = decode(wire.encode(Drawing(graph)))
    s = m["s"].index
    unknown = [None] * 4
    assert m["places"] == [
        [1, 2, s("f(x)"), 3, 4, s("g()"), s("id-1"), 6, *unknown, s("In[3]:4")],
        [None, None, s(""), None, None, s(""), None, None, *unknown, s("")],
        [None, 9, s("z"), None, 9, s(""), None, -1, s("p/m.py"), s("p/m.py"), s("M.f"), -1, s("")],
    ]
    assert m["place"] == [0, 1, 0, -1, 2] and m["iteration"] == [5, -1, 6, -1, -1]
    assert m["module"] == [-1] * 5


def test_modules_and_the_owners_of_storages_carry_names() -> None:
    calls = (ModuleCall("net[0]", "Linear", 2), ModuleCall("net[1]", "Tanh", 0))
    graph = replace(reused_product(), modules=calls, storages=(Storage(1, 12, owners=("x", "w")),))
    m = decode(wire.encode(Drawing(graph)))
    assert list(zip(m["modulePath"], m["moduleClass"], m["moduleCall"])) == [
        ("net[0]", "Linear", 2),
        ("net[1]", "Tanh", 0),
    ]
    assert [[at, [m["s"][name] for name in names]] for at, names in m["storageOwners"]] == [[0, ["x", "w"]]]


def test_any_snapshot_comes_back_from_its_columns() -> None:
    random = Random(3)
    for size in (1, 2, 40, 300):
        graph = random_graph(random, size)
        m = decode(wire.encode(Drawing(graph)))
        for key, column in (
            ("uid", graph.uid),
            ("seq", graph.seq),
            ("edgeTo", graph.edge_to),
        ):
            assert m[key] == list(column)
        assert m["name"] == [graph.name_of(i) for i in range(size)]
        assert [0, *m["edgeEnd"]] == list(graph.edge_start) and [0, *m["slotEnd"]] == list(graph.slot_start)
        assert m["slotBytes"] == list(graph.slot_bytes) and m["slotStorage"] == list(graph.slot_storage)
        assert m["storageBytes"] == [storage.bytes for storage in graph.storages]
        places = [graph.place_of(i) for i in range(size)]
        assert m["iteration"] == [-1 if p is None or p.iteration is None else p.iteration for p in places]
        assert [m["places"][at][:2] if at >= 0 else None for at in m["place"]] == [
            p and [p.cell, p.line] for p in places
        ]


def random_graph(random: Random, size: int):
    """Columns of any numbers that fit one another; it need not be a graph that torch could make."""
    any_number = (0, 1, 15, 16, -16, -17, 511, 2**31 - 1, 2**40)
    ends = list(accumulate(random.choice((0, 1, 1, 2, 40)) for _ in range(size)))
    places = [Place(1, line, "y = x", iteration=i) for i in (None, 0, 7, 5000) for line in (1, 2)]
    base = chain(size)
    storages = tuple(Storage(key, random.choice(any_number[:4])) for key in range(9))
    return replace(
        base,
        uid=array("q", random.sample(range(2**50), size)),
        seq=array("q", [random.choice(any_number) for _ in range(size)]),
        edge_start=array("i", [0, *ends]),
        edge_to=array("i", [random.randrange(size) for _ in range(ends[-1])]),
        edge_nr=array("i", [random.choice((0, 0, 1, 70)) for _ in range(ends[-1])]),
        place=array("i", [random.randrange(-1, len(places)) for _ in range(size)]),
        places=tuple(places),
        slot_bytes=array("q", [abs(random.choice(any_number)) for _ in base.slot_bytes]),
        slot_storage=array("i", [random.randrange(-1, 9) for _ in base.slot_storage]),
        storages=storages,
    )


def test_leaves_and_owners_carry_paths() -> None:
    m = decode(wire.encode(Drawing(reused_product())))
    node, paths, kind, has_grad, size = m["leaves"][0]
    assert (node, [m["s"][p] for p in paths], m["s"][kind], has_grad, size) == (3, ["t"], "float32[3,4]", 1, 48)
    assert [[o[0], o[1], m["s"][o[2]], m["s"][o[3]]] for o in m["owners"]] == [
        [0, 0, "loss", "variable"],
        [2, 0, "y", "variable"],
    ]


def test_roots_carry_the_ids_that_were_offered() -> None:
    graph = reused_product()
    offered = [wire.OfferedRoot(id=77, ref=graph.roots[0], order=3, cells=(1, 2))]
    m = decode(wire.encode(Drawing(graph), 0, offered))
    root = m["roots"][0]
    assert (root["id"], root["order"], root["cells"], root["node"], root["scalar"]) == (77, 3, [1, 2], 0, True)
    assert m["s"][root["path"]] == "loss" and root["alive"] is True


def test_a_root_whose_node_has_died_or_that_nobody_can_name_is_not_alive() -> None:
    graph = reused_product()
    gone = replace(graph.roots[0], node=5)
    unnamed = replace(graph.roots[0], paths=())
    m = json.loads(wire.encode(Drawing(replace(graph, roots=(gone, unnamed)))))
    assert [root["alive"] for root in m["roots"]] == [False, False]
    assert m["strings"][m["roots"][1]["path"]] == ""


def test_a_call_is_written_as_python_and_by_what_it_did() -> None:
    def told(**more: object) -> tuple[str, str]:
        m = json.loads(wire.encode(Drawing(reused_product(), (replace(call(0), **more),))))
        (found,) = m["calls"]
        return m["strings"][found["text"]], m["strings"][found["did"]]

    raised = {"result": "raised", "error": "x", "freed_slots": 0}
    assert told(freed_slots=1)[1] == "freed 1 saved tensor"
    assert told(freed_slots=0)[1] == "ran, freed nothing"
    assert told(freed_slots=0, retain_graph=True)[1] == "ran, retain_graph=True"
    assert told(freed_slots=0, retain_graph=True, create_graph=True)[1] == "ran, create_graph=True"
    assert told(**raised)[1] == "raised"
    assert told(**raised, failed_uid=4, executed_count=10)[1] == "raised at its 11th node"
    assert told(**raised, failed_uid=4, executed_count=1)[1] == "raised at its 2nd node"
    assert told(retain_graph=True)[0].endswith(".backward(retain_graph=True)")
    assert told(api="autograd.grad")[0].startswith("torch.autograd.grad(")


def test_a_call_in_a_file_and_its_event_name_the_file_the_line_and_the_function() -> None:
    place = Place(None, 26, "loss.backward()", file="proj/train.py", function="fit", outer_cell=3, outer_line=1)
    event = Event(0, "call", 3, call=0, label="loss.backward()")
    m = json.loads(wire.encode(Drawing(reused_product(), (replace(call(0), place=place),), (event,))))
    assert m["strings"][m["calls"][0]["fn"]] == "fit"
    assert m["strings"][m["events"][0]["where"]] == "proj/train.py:26 in fit"
    m = json.loads(wire.encode(Drawing(reused_product(), (call(0),), (event,))))
    assert m["calls"][0]["fn"] is None or m["calls"][0]["fn"] == -1
    assert m["strings"][m["events"][0]["where"]] == ""


def test_calls_events_and_findings_are_all_there() -> None:
    graph = reused_product()
    finding = Finding(
        "second_backward", "error", "text", "headline", call=1, node="MvBackward0", node_uid=4, carriers=("y",),
        freed_by=0, path=("loss", "y"), uids=(4,), bytes=64,
        fixes=(Fix("recompute_in_loop", "move it", True, (2, 7), "none", ("+ y = t @ a",)),),
    )  # fmt: skip
    calls = (
        replace(call(0), graph=graph),
        replace(
            call(1), result="raised", error="Trying to ...", failed_uid=4, freed_by=0, boundary=(4,), carriers=("y",)
        ),
    )
    events = (Event(0, "call", 2, 0, 0, "loss.backward()", True, 12, 5, graph), Event(1, "cell", 2, ok=False))
    m = decode(wire.encode(Drawing(graph, calls, events, (finding,), current_event=1)))
    s = m["s"]
    assert [c["n"] for c in m["calls"]] == [0, 1]
    assert m["calls"][0]["rootUids"] == [10] and m["calls"][0]["executed"] == [6, 5, 4]
    assert m["calls"][1]["rootUids"] == []
    assert m["boundary"] == [[4, 9, s.index("y")]]
    assert [e["kept"] for e in m["events"]] == [True, False] and m["event"] == 1
    f = m["findings"][0]
    assert [s[p] for p in f["path"]] == ["loss", "y"] and f["uid"] == 4
    assert s[f["kicker"]] == "Second backward · In[2]:5 · iteration 1"
    fix = f["fixes"][0]
    assert (s[fix["note"]], fix["verified"], s[fix["tried"]], fix["passed"]) == ("In[2]:7: none", True, "", None)
    assert fix["key"] == 0, "it has no edits, so nobody can try it"
    assert m["status"]["state"] == "raised" and s[m["status"]["text"]] == "after In[2], which raised"


def test_the_carrier_need_not_have_been_run_itself_and_an_error_that_is_over_has_no_border() -> None:
    """`out, h = rnn(x, h)` with a loss of `out`: the call runs the cell (uid 1), not what made `h` of it (uid 2)."""
    graph = snapshot(
        [
            N("MulBackward0", (1,), uid=4, seq=20),  # of the next iteration
            N("StackBackward0", (2,), uid=2, seq=5),  # h
            N("TanhBackward0", (), (("result", (4,), FREED),), freed_by=0, uid=1, seq=3),
        ],
        roots={"loss": 0},
    )
    raised = replace(
        call(1), result="raised", error="Trying to ...", failed_uid=1, freed_by=0, boundary=(1,), carriers=("h",)
    )
    earlier = call(0, newest_seq=10)
    m = decode(wire.encode(Drawing(graph, (earlier, raised))))
    assert m["boundary"] == [[2, 4, m["s"].index("h")]]
    assert decode(wire.encode(Drawing(graph, (earlier, raised, call(2)))))["boundary"] == []


def test_what_has_been_assigned_anew_has_the_name_that_it_had_when_it_was_freed() -> None:
    """`out, (h, c) = rnn(x, (h, c))`: at the error both names hold tensors of the next pass."""
    old = [N("StackBackward0", (2,), uid=2, seq=5), N("StackBackward0", (2,), uid=3, seq=6)]
    cell = N("RnnBackward0", (), (("y", (4,), FREED),), freed_by=0, uid=1, seq=3)
    before = replace(snapshot([*old, cell], roots={"loss": 0}), owners=(Owner("h", 0), Owner("c", 1)))
    graph = snapshot([N("RnnBackward0", (1, 2), uid=9, seq=20), *(replace(n, to=(3,)) for n in old), cell])
    raised = replace(call(1), result="raised", failed_uid=1, freed_by=0, boundary=(1,), carriers=("out",))
    m = decode(wire.encode(Drawing(graph, (call(0, newest_seq=10, graph=before), raised))))
    assert {old: m["s"][name] for old, _, name in m["boundary"]} == {2: "h", 3: "c"}


def test_the_cell_of_an_error_is_reported_and_a_warning_has_none() -> None:
    error = Finding("second_backward", "error", "text", call=1)
    warning = Finding("inplace", "warning", "text", made_at=Place(3, 1))
    m = decode(wire.encode(Drawing(reused_product(), (call(0), call(1)), findings=(error, warning))))
    assert [(f["call"], f["cell"]) for f in m["findings"]] == [(1, 2), (None, None)]


def test_the_border_names_the_output_that_is_used() -> None:
    """`s, u = svd(w)`: both hang on the same node (uid 1), and what was built since uses `u`."""
    graph = snapshot(
        [
            N("MulBackward0", ((1, 1),), uid=4, seq=20),
            N("LinalgSvdBackward0", (), (("S", (4,), FREED),), freed_by=0, uid=1, seq=3),
        ],
        roots={"loss": 0},
    )
    graph = replace(graph, owners=(Owner("s", 1), Owner("u", 1, 1)))
    raised = replace(call(1), result="raised", failed_uid=1, freed_by=0, boundary=(1,), carriers=("s", "u"))
    m = decode(wire.encode(Drawing(graph, (call(0, newest_seq=10), raised))))
    assert m["boundary"] == [[1, 4, m["s"].index("u")]]


def test_the_event_of_a_call_tells_what_it_let_go_of() -> None:
    graph = reused_product()
    events = (Event(0, "call", 2, 0, 0, "loss.backward()", True, 12, 5, graph), Event(1, "cell", 2))
    m = decode(wire.encode(Drawing(graph, (call(0, freed_bytes=76),), events)))
    assert [(e["held"], e["freed"]) for e in m["events"]] == [(12, 76), (None, 0)]


def test_an_error_is_called_earlier_once_another_call_has_succeeded() -> None:
    graph = reused_product()
    finding = Finding("second_backward", "error", "text", "headline", call=1)
    calls = (call(0), replace(call(1), result="raised"), call(2))

    def kicker(*events: Event) -> str:
        m = decode(wire.encode(Drawing(graph, calls, events, (finding,))))
        return str(m["s"][m["findings"][0]["kicker"]])

    first, failed = Event(0, "call", 2, 0, ok=True), Event(1, "call", 2, 1, ok=False)
    assert kicker(first, failed, Event(2, "cell", 3)).startswith("Second backward")
    assert kicker(first, failed, Event(2, "call", 3, 2)).startswith("Earlier: second backward")


def test_the_status_says_off_busy_and_idle() -> None:
    graph = reused_product()

    def state(drawing: Drawing, **more: bool) -> str:
        return json.loads(wire.Base.of(drawing, 0, **more).text)["status"]["state"]

    assert state(Drawing(graph)) == "idle"
    assert state(Drawing(graph, busy="In[3] is running")) == "busy"
    assert state(Drawing(graph), off=True) == "off"


def test_a_failed_call_stops_being_the_status_once_another_cell_has_run() -> None:
    failed = (replace(call(0), result="raised", error="x"),)
    events = (Event(0, "call", 2, 0, ok=False), Event(1, "cell", 2, ok=False), Event(2, "cell", 3))
    graph = reused_product()
    assert json.loads(wire.encode(Drawing(graph, failed, events[:2])))["status"]["state"] == "raised"
    later = json.loads(wire.encode(Drawing(graph, failed, events)))
    assert later["status"]["state"] == "idle" and later["strings"][later["status"]["text"]] == "after In[3]"


def test_a_thousand_calls_send_the_newest_and_those_that_slots_name() -> None:
    calls = tuple(call(n) for n in range(1000))
    m = json.loads(wire.encode(Drawing(reused_product(), calls)))
    numbers = [c["n"] for c in m["calls"]]
    assert numbers == [0, *range(1000 - wire.MAX_CALLS, 1000)]


def test_engine_order_is_sent_for_the_newest_calls_within_a_budget() -> None:
    long = tuple(replace(call(n), executed=array("q", range(900)), executed_count=900) for n in range(4))
    m = json.loads(wire.encode(Drawing(reused_product(), long)))
    assert [c["executed"] is not None for c in m["calls"]] == [False, False, True, True]
    assert [c["executedCount"] for c in m["calls"]] == [900] * 4


def test_every_text_survives_even_half_a_surrogate_pair() -> None:
    odd = "é </script> \ud83d \u2028 \"'\\"
    graph = snapshot([N("A", place=Place(1, 1, odd))])
    text = wire.encode(Drawing(graph))
    text.encode("utf-8")
    assert odd in json.loads(text)["strings"]


def test_an_empty_graph_is_a_message_too() -> None:
    m = decode(wire.encode(Drawing(snapshot([]))))
    assert (m["n"], m["uid"], m["slotState"], m["roots"]) == (0, [], "", [])


def test_held_and_freed_are_the_digits_of_the_model() -> None:
    states = list(SlotState)
    graph = snapshot([N("A", slots=tuple((f"s{i}", (1,), state) for i, state in enumerate(states)))])
    assert decode(wire.encode(Drawing(graph)))["slotState"] == "012345"
    assert (HELD, FREED) == (0, 1)


def test_the_page_knows_the_same_states() -> None:
    page = (Path(__file__).parents[2] / "js" / "src" / "picture" / "slot.ts").read_text(encoding="utf-8")
    found = re.findall(r"export const (\w+) = (\d+);", page)
    assert {name: int(number) for name, number in found} == {state.word: int(state) for state in SlotState}


def test_a_leaf_alone_is_a_graph() -> None:
    m = decode(wire.encode(Drawing(snapshot([leaf("w", shape=(4,))]))))
    assert m["kind"] == "1" and m["seq"] == [-1]


def test_an_error_that_no_call_raised_says_where_it_was() -> None:
    finding = Finding("refused", "error", "text", "headline", made_at=Place(4, 2))
    m = decode(wire.encode(Drawing(reused_product(), (), (), (finding,))))
    assert m["s"][m["findings"][0]["kicker"]] == "Refused by PyTorch · In[4]:2"
