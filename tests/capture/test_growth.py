"""The work for a call, a cell or a line depends on its own graph, not on everything alive. Tests count the work."""

from __future__ import annotations

import pytest
from cells import Notebook

from graphwidget import torch_internals as ti
from graphwidget.capture.owners import search as owners
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.capture.tracker import OLDER
from graphwidget.capture.writes.statements import HARMLESS_WRITER

START = """
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(2, 4)
kept = []
"""
STEPS = """
for step in range(6):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KEEP = "kept.extend(torch.tanh(net(x)) for _ in range(100))\nlast = kept[-1].sum()"


@pytest.fixture
def notebook():
    made = Notebook()
    yield made
    made.close()


def graphs(notebook: Notebook, since: int = 0) -> list[int]:
    """Return the sizes of the graphs of the calls that were read in full."""
    return [len(call.graph) for call in notebook.tracker.calls[since:] if call.graph is not None]


def test_a_call_is_looked_at_with_its_own_graph_however_many_others_are_alive(notebook):
    notebook.run(START + STEPS)
    alone = graphs(notebook)
    notebook.run(KEEP)
    before = len(notebook.tracker.calls)
    notebook.run(STEPS)
    assert len(notebook.tracker.snapshot()) > 600
    assert set(graphs(notebook, before)) == set(alone) and len(set(alone)) == 1


def test_calls_of_a_loop_are_like_each_other_however_many_other_graphs_are_alive(notebook):
    notebook.run(START + KEEP + STEPS)
    assert [call.same_as for call in notebook.tracker.calls][-1] is not None
    assert [call.executed_count for call in notebook.tracker.calls] == [notebook.tracker.calls[0].executed_count] * 6


def test_what_shares_a_part_with_the_graph_of_a_call_is_looked_at_with_it(notebook):
    notebook.run("x = torch.ones(3, requires_grad=True)\nother = (x * 7).exp()\nh = (x * 2).exp()\nb = h.sum()")
    notebook.run("a = h.prod()\na.backward()")
    (call,) = notebook.tracker.calls
    assert {owner.path for owner in call.graph.owners} >= {"a", "b", "h"}
    assert "other" not in {owner.path for owner in call.graph.owners}


def test_a_call_without_a_forecast_ran_what_its_root_leads_to_and_nothing_else():
    notebook = Notebook(forecaster=None)
    notebook.run("x = torch.ones(3, requires_grad=True)\nh = (x * 2).exp()\nb = h.sum()\na = h.prod()\na.backward()")
    (call,) = notebook.tracker.calls
    assert call.executed_count == 4  # Prod, Exp, Mul, AccumulateGrad


def test_a_search_passes_over_what_is_older_than_asked_for_and_leads_to_nothing():
    import torch

    x = torch.ones(3, requires_grad=True)
    old, holder, retained = x * 2, x * 3, x * 4
    now = ti.sequence_nr()
    new = x * 5
    holder.note = new  # an attribute of an old tensor
    retained.retain_grad()
    namespace = {"x": x, "old": old, "holder": holder, "retained": retained, "new": new, "inside": [old, new]}
    found = {holding.path for holding in owners.find(namespace, last_error=False, since=now).holdings}
    assert found == {"x", "holder", "retained", "new", "holder.note", "inside[1]"}
    assert "old" in {holding.path for holding in owners.find(namespace, last_error=False).holdings}


def test_a_cell_that_follows_another_at_once_searches_no_names_when_it_begins(notebook, monkeypatch):
    searches = []
    find = owners.find
    monkeypatch.setattr(owners, "find", lambda *args, **options: searches.append(1) or find(*args, **options))
    notebook.run("x = torch.ones(3, requires_grad=True)")
    del searches[:]
    notebook.run("y = x * 2")
    assert len(searches) == 1  # when it has ended
    notebook.run("z = y + 1\ny.data += 1")
    assert [write.by for write in notebook.tracker.record().hidden] == ["y.data += 1"]


# ---------------------------------------------------------------- reading everything on request


# As if reading had already taken too large a share of the time.
NO_TIME_TO_READ = TrackerPolicy(free_seconds=0.0, share=0.0)


@pytest.fixture
def busy():
    made = Notebook(policy=NO_TIME_TO_READ)
    yield made
    made.close()


def test_everything_is_read_when_somebody_asks_if_reading_took_too_much(busy):
    notebook = busy
    notebook.run("x = torch.ones(3, requires_grad=True)\na = x * 2")
    notebook.run("b = a.exp()")
    assert [event.snapshot is not None for event in notebook.tracker.events] == [True, False]
    assert {owner.path for owner in notebook.tracker.snapshot().owners} >= {"a", "b"}
    notebook.run("a += 1\nc = b.sum()")
    notebook.run("c.backward()")
    assert [(call.result, call.executed_count) for call in notebook.tracker.calls] == [("ok", 4)]
    assert [write.by for write in notebook.tracker.writes] == ["a += 1"]
    assert notebook.tracker.calls[0].roots[0].path == "c"


def test_who_listens_gets_everything_at_each_end_of_a_cell(busy):
    notebook = busy
    told = []
    notebook.tracker.subscribe(told.append)
    for i in range(3):
        notebook.run(f"y{i} = torch.ones(3, requires_grad=True) * 2")
    assert [len(event.snapshot) for event in told] == [2, 4, 6]


def test_of_cells_that_follow_at_once_who_listens_hears_of_the_last_once_nobody_waits():
    waiting, told = [], []
    notebook = Notebook(idle=lambda: lambda _seconds, call: waiting.append(call), policy=NO_TIME_TO_READ)
    notebook.tracker.subscribe(lambda event: told.append((event.cell, len(notebook.tracker.snapshot()))))
    try:
        for i in range(4):
            notebook.run(f"y{i} = torch.ones(3, requires_grad=True) * 2")
        assert told == [(1, 2)]
        for call in waiting:
            call()
        assert told == [(1, 2), (4, 8)]
        notebook.run("1 / 0")
        assert told[2:] == [(5, 8)]  # after an error the graph is read
    finally:
        notebook.tracker.stop()


# ---------------------------------------------------------------- writes without an effect on any graph

ROWS = """
with torch.no_grad():
    table = torch.zeros(9, 2)
    for step in range(40):
        for row in range(9):
            table[row] += 1
"""


def test_a_line_that_writes_what_nobody_holds_is_compared_a_few_times_only(notebook, monkeypatch):
    compared = []
    watched = notebook.tracker.write_recorder.watched
    changes = watched.changes
    monkeypatch.setattr(watched, "changes", lambda: compared.append(1) or changes())
    notebook.run(ROWS)
    assert len(compared) < 3 * HARMLESS_WRITER  # of 360 iterations


@pytest.mark.parametrize("mode", ["torch.no_grad()", "torch.enable_grad()"])
def test_a_write_is_seen_once_what_it_writes_to_was_saved_although_its_line_was_left_out(notebook, mode):
    notebook.run(
        "w, table = torch.ones(3, requires_grad=True), torch.zeros(3)\n"
        "for step in range(200):\n"
        f"    with {mode}:\n"
        "        table[0] += 1\n"
        "    if step == 150:\n"
        "        y = (w * table).sum()"
    )
    last = [write for write in notebook.tracker.writes if write.place.line == 4][-1]
    assert last.place.iteration > 150
    assert 151 in [write.place.iteration for write in notebook.tracker.writes if write.place.line == 4]


def test_a_view_of_what_a_line_writes_to_makes_it_concern_somebody(notebook):
    notebook.run("table = torch.zeros(3)\nview = table[1:]\nfor step in range(100):\n    table[0] += 1")
    assert len(notebook.tracker.writes) == 100


def test_what_holds_a_tensor_is_known_by_its_counts():
    import torch

    w, plain = torch.ones(3, requires_grad=True), torch.zeros(3)
    assert ti.is_unshared(plain)
    saved = w * plain
    assert not ti.is_unshared(plain)
    del saved
    assert ti.is_unshared(plain)
    view = plain[1:]
    assert not ti.is_unshared(plain) and not ti.is_unshared(view)
    assert not ti.is_unshared(w)


def test_what_nobody_looked_at_is_not_reported_as_nothing(notebook):
    """A call's snapshot leaves out older nodes: then the bytes of all living nodes are unknown, not zero."""
    notebook.run(START + "first = net(x).pow(2).mean()\nfirst.backward()")
    first = notebook.tracker.events[-2]
    assert (first.kind, first.held_bytes, first.snapshot.notes) == ("call", 0, ())
    notebook.run("old = torch.ones(1000, requires_grad=True).exp().exp()")
    notebook.run(STEPS)
    *calls, end = [event for event in notebook.tracker.events if event.id > first.id + 2]
    assert {(event.kind, event.held_bytes, event.nodes) for event in calls} == {("call", None, None)}
    assert end.held_bytes == 8000
    assert calls[0].snapshot.notes == (OLDER,)
    assert {event.snapshot is None for event in calls[3:]} == {True}  # only counted


ADVERSARIES = """
critic, outs = nn.Linear(1, 1), []
for step in range(40):
    fake = net(x)
    critic(fake.detach()).mean().backward()
    for again in range(INNER):
        critic(net(x).detach()).mean().backward()
    score = critic(fake).mean()
    KEEP
    score.backward()
"""


@pytest.mark.parametrize(
    ("inner", "keep", "found"), [(0, "pass", 0), (0, "outs.append(fake)", 2), (9, "outs.append(score)", 2)]
)
def test_two_lines_of_a_loop_share_the_samples_that_find_nothing(notebook, monkeypatch, inner, keep, found):
    notebook.run(START)
    searches, retention = [], notebook.tracker.retention
    original = retention.search
    monkeypatch.setattr(retention, "search", lambda *args: searches.append(1) or original(*args))
    notebook.run(ADVERSARIES.replace("INNER", str(inner)).replace("KEEP", keep))
    assert len({look.call % (2 + inner) for look in retention.all()}) == found
    if not found:
        assert len(searches) == 4
