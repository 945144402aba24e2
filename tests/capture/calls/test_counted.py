"""Calls of a tight loop that are only counted, and the steps of optimizers between them."""

from array import array

import pytest
from cells import NO_TIME, Notebook

from graphwidget.capture.calls.counting.policy import CallPolicy
from graphwidget.capture.graph.freed import Freed
from graphwidget.engine.forecast import forecast

LOOP = """
w = torch.ones(3, requires_grad=True)
kept = []
def step(i):
    h = (w * w).exp()
    loss = h.sum()
    kept.append(h)
    (
        loss
        .backward()
    )
for i in range(100):
    step(i)
"""


@pytest.fixture
def notebook():
    made = Notebook(calls=NO_TIME)
    yield made
    made.close()


def not_walked(notebook: Notebook) -> int:
    """Return the number of calls that counted as like another one without a walk over their graphs."""
    return sum(any("not walked" in words for words in call.assumes) for call in notebook.calls)


def test_calls_of_a_loop_are_counted_and_keep_their_places_and_order(notebook):
    assert notebook.run(LOOP) is None
    assert not_walked(notebook) > 50
    found = notebook.tracker.calls
    assert [call.n for call in found] == list(range(100))
    assert [call.place.iteration for call in found] == list(range(100))
    assert {(call.place.line, call.place.outer_line, call.executed_count) for call in found} == {(10, 13, 4)}
    assert all(a.newest_seq < b.newest_seq for a, b in zip(found, found[1:], strict=False))
    events = notebook.tracker.events
    assert [event.call for event in events] == [*range(100), None]
    assert [event.id for event in events] == list(range(101))
    assert "not walked" in found[60].assumes[-1]


def test_a_line_that_calls_on_several_graphs_in_turn_walks_none_of_them(notebook):
    source = LOOP.replace("(w * w).exp()", "(w * w).exp() if i % 2 else (w * w).sin().exp()")
    assert notebook.run(source) is None
    assert not_walked(notebook) > 50
    assert [call.executed_count for call in notebook.tracker.calls] == [5, 4] * 50


def test_what_a_counted_call_freed_is_known_when_a_later_call_needs_it(notebook):
    notebook.run(LOOP)
    assert notebook.run("kept[70].sum().backward()") is not None
    call = notebook.tracker.calls[-1]
    assert (call.failed_node, call.freed_by) == ("ExpBackward0", 70)


def test_a_counted_call_that_raises_after_all_is_recorded_as_such(notebook):
    hook = "w.register_hook(lambda g: 1 / (len(kept) - 80) and None)\n"
    source = LOOP.replace("for i in", hook + "for i in")
    assert isinstance(notebook.run(source), ZeroDivisionError)
    assert not_walked(notebook) > 30
    found = notebook.tracker.calls
    assert [call.result for call in found] == ["ok"] * 79 + ["raised"]
    assert (found[-1].error_type, found[-1].place.iteration, found[-1].n) == ("ZeroDivisionError", 79, 79)
    assert notebook.tracker.log.running == {}


def test_another_kind_of_call_at_the_same_line_is_looked_at(notebook):
    source = LOOP.replace("    loss = h.sum()", "    loss = h.sum() if i != 60 else kept[0].sum()")
    assert isinstance(notebook.run(source), RuntimeError)
    call = notebook.tracker.calls[-1]
    assert (call.n, call.result, call.freed_by, call.place.iteration) == (60, "raised", 0, 60)


def test_a_recursive_call_from_another_frame_has_its_own_outer_line(notebook):
    assert notebook.run(LOOP + "def other():\n    step(0)\nother()\n") is None
    assert notebook.tracker.calls[-1].place.outer_line == 16


def test_listeners_hear_of_counted_calls_now_and_then(notebook):
    heard = []
    notebook.tracker.subscribe(heard.append)
    notebook.run("import time\n" + LOOP.replace("    step(i)", "    step(i)\n    time.sleep(0.004)"))
    told = [event for event in heard if event.kind == "call"]
    assert len(told) < 60
    assert told[-1].call > 60
    assert heard[-1].kind == "cell"
    assert len(notebook.tracker.events) == 101


def test_two_optimizers_in_turns_keep_their_own_lines_and_iterations(notebook):
    notebook.run(
        "from torch import nn\n"
        "a, b = nn.Linear(3, 3), nn.Linear(3, 3)\n"
        "first, second = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)\n"
        "x = torch.ones(2, 3)\n"
        "for i in range(40):\n"
        "    a(x).sum().backward()\n"
        "    first.step()\n"
        "    b(x).sum().backward()\n"
        "    second.step()\n"
    )
    writes = notebook.tracker.writes
    found = [(w.place.line, w.place.iteration, w.after_calls, w.by, w.paths) for w in writes if w.optimizer]
    assert found == [
        step
        for i in range(40)
        for step in (
            (7, i, 2 * i + 1, "first.step()", ("a.weight", "a.bias")),
            (9, i, 2 * i + 2, "second.step()", ("b.weight", "b.bias")),
        )
    ]


STEPS = """
from torch import nn
a, b = nn.Linear(3, 1, bias=False), nn.Linear(3, 1, bias=False)
optimizer = torch.optim.SGD([a.weight, b.weight], lr=0.1)
x = torch.ones(2, 3)
def one(i):
    optimizer.zero_grad()
    (a(x) + b(x) if i != ODD else a(x)).sum().backward()
    optimizer.step()
    MORE
for i in range(60):
    one(i)
"""


def steps_of(notebook, odd=-1, more="pass"):
    assert notebook.run(STEPS.replace("ODD", str(odd)).replace("MORE", more)) is None
    return [w for w in notebook.tracker.writes if w.optimizer]


def test_every_step_of_a_loop_is_noted(notebook):
    found = steps_of(notebook)
    assert [w.place.iteration for w in found] == list(range(60))
    assert {w.paths for w in found} == {("a.weight", "b.weight")}


def test_a_step_unlike_the_others_is_noted_with_what_it_wrote(notebook):
    found = {w.place.iteration: w.paths for w in steps_of(notebook, odd=50)}
    assert found == {i: ("a.weight",) if i == 50 else ("a.weight", "b.weight") for i in range(60)}


def test_a_write_between_steps_makes_the_lines_suspect_that_were_left_out(notebook):
    notebook.namespace["peek"] = lambda: notebook.tracker.writes
    more = "(a.weight.detach() if i >= 45 else torch.ones(1)).mul_(1.0)\n    if i in (44, 50): peek()"
    found = steps_of(notebook, more=more)
    line = STEPS.splitlines().index("    MORE") + 1
    others = {w.place.iteration for w in notebook.tracker.writes if not w.optimizer and w.place.line == line}
    assert {w.place.iteration for w in found} == set(range(60))
    assert {w.paths for w in found} == {("a.weight", "b.weight")}
    assert others >= set(range(55, 60)) and min(others) >= 45


ADVERSARIES = """
from torch import nn
g, d = nn.Linear(3, 3), nn.Linear(3, 1)
x = torch.ones(2, 3)
for i in range(60):
    fake = g(x)
    d(fake.detach()).sum().backward()
    d(fake).sum().backward()
"""


def test_a_call_over_nodes_older_than_the_last_call_is_counted_if_that_one_did_not_run_them():
    foreseen = []
    notebook = Notebook(
        calls=NO_TIME, forecaster=lambda *args, **options: foreseen.append(1) or forecast(*args, **options)
    )
    assert notebook.run(ADVERSARIES) is None
    assert len(foreseen) <= 2 * CallPolicy().in_full
    assert [call.executed_count for call in notebook.calls[-2:]] == [5, 9]
    notebook.close()


def test_what_the_last_calls_freed_is_known_by_numbers():
    freed = Freed()
    freed.add_whole(0, 10, 9, array("q", [0, 2]))
    freed.add(1, 20, [(5, 14), (6, 12)])
    assert [freed.none_of([number, 19]) for number in (7, 8, 9, 12, 13, 14, 15, 20)] == [
        False, True, False, False, True, False, True, True,
    ]  # fmt: skip
    freed.unsure(16)
    assert (freed.none_of([15, 19]), freed.none_of([16, 19])) == (False, True)
