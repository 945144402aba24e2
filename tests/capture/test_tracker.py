"""The tracker: events in, snapshots and drawings out, bounded memory, callable from anywhere."""

from __future__ import annotations

import threading

import pytest
import torch
from cells import Notebook

from graphwidget import torch_internals as ti
from graphwidget.capture.calls.history import History
from graphwidget.capture.scripts import track
from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast
from graphwidget.model import Event, SlotState, Snapshot


@pytest.fixture
def notebook():
    made = Notebook()
    yield made
    made.close()


REUSED = [
    "a = torch.ones(2, requires_grad=True)\nt = torch.eye(2, requires_grad=True)\ny = t @ a",
    "for i in range(2):\n    loss = (t @ (1 + y)).sum()\n    loss.backward()",
]


def test_a_drawing_shows_the_dead_iteration_beside_the_living_one(notebook: Notebook) -> None:
    for cell in REUSED:
        notebook.run(cell)
    drawing = notebook.tracker.drawing()
    snapshot = drawing.snapshot
    ghosts = {(n.name, n.place.iteration) for n in snapshot.nodes if n.is_ghost and n.place is not None}
    assert ("SumBackward0", 0) in ghosts and ("MvBackward0", 0) in ghosts
    shared = [n for n in snapshot.nodes if "y" in n.labels]
    assert [n.name for n in shared] == ["MvBackward0"] and not shared[0].is_ghost
    assert {slot.freed_by for slot in shared[0].saved if slot.state is SlotState.FREED} == {0}
    old = next(n for n in snapshot.nodes if n.is_ghost and n.name == "AddBackward0")
    assert shared[0].uid in {n.uid for n in old.next}


def test_roots_are_tensors_on_which_no_named_one_builds(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(2, requires_grad=True)\nh = x * 2\nloss = h.sum()\nother = (h * 3).sum()")
    assert {root.path for root in notebook.tracker.snapshot().roots} == {"loss", "other"}


def test_a_tensor_that_was_passed_to_a_call_is_a_root_too(notebook: Notebook) -> None:
    notebook.run(
        "x = torch.ones(2, requires_grad=True)\nh = (x * 2).sum()\nloss = h * 3\nh.backward(retain_graph=True)"
    )
    assert {root.path for root in notebook.tracker.snapshot().roots} == {"loss", "h"}


def test_a_root_keeps_its_hue_while_it_lives(notebook: Notebook) -> None:
    def looks() -> dict[str | None, int]:
        graph = notebook.tracker.snapshot()
        orders = notebook.tracker.hues.look(graph, graph.roots)
        return {root.path: order for root, order in zip(graph.roots, orders)}

    notebook.run("x = torch.ones(2, requires_grad=True)\na, b = x.sum(), (x * 2).sum()")
    first = looks()
    assert sorted(first.values()) == [0, 1]
    notebook.run("del a\nc = (x * 3).sum()")
    then = looks()
    assert then["b"] == first["b"] and then["c"] == first["a"]


def test_the_cells_that_made_a_root_are_known(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(2, requires_grad=True)")
    notebook.run("h = x * 2")
    notebook.run("pass")
    notebook.run("loss = h.sum()")
    snapshot = notebook.tracker.snapshot()
    runs = notebook.tracker.cells_of(snapshot, snapshot.roots[0])
    assert runs == (1, 3)
    assert [notebook.tracker.runs[run].source for run in runs] == ["h = x * 2", "loss = h.sum()"]


def test_a_root_made_outside_cells_cannot_be_rebuilt(notebook: Notebook) -> None:
    x = torch.ones(2, requires_grad=True)
    notebook.namespace["loss"] = (x * 2).sum()
    snapshot = notebook.tracker.snapshot()
    assert notebook.tracker.cells_of(snapshot, snapshot.roots[0]) is None


def test_every_cell_and_every_call_is_an_event(notebook: Notebook) -> None:
    seen: list[Event] = []
    stop = notebook.tracker.subscribe(seen.append)
    for cell in REUSED:
        notebook.run(cell)
    stop()
    notebook.run("pass")
    assert [(e.kind, e.cell, e.ok) for e in seen] == [
        ("cell", 1, True), ("call", 2, True), ("call", 2, False), ("cell", 2, False),
    ]  # fmt: skip
    assert [e.iteration for e in seen] == [None, 0, 1, None]


def test_a_subscriber_that_raises_hurts_nobody(notebook: Notebook) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError("theirs")

    seen: list[Event] = []
    notebook.tracker.subscribe(broken)
    notebook.tracker.subscribe(seen.append)
    notebook.run("x = 1")
    assert len(seen) == 1
    assert "theirs" in notebook.tracker.problems[0]
    notebook.tracker.problems.clear()


def test_the_error_of_a_cell_is_noted_with_its_line(notebook: Notebook) -> None:
    notebook.tracker.begin_cell(1, "x = 1\n1 / 0", filename="<cell 1>")
    try:
        exec(compile("x = 1\n1 / 0", "<cell 1>", "exec"), {})
    except ZeroDivisionError as error:
        notebook.tracker.end_cell(error)
    run = notebook.tracker.runs[0]
    assert (run.error_type, run.error) == ("ZeroDivisionError", "division by zero")
    assert run.error_place is not None and run.error_place.line == 2


def test_grad_mode_is_noted_before_and_after_a_cell_and_at_an_error() -> None:
    seen: list[bool] = []
    notebook = Notebook(explain=lambda record, call: seen.append(record.runs[call.place.run].grad_after) or "")
    try:
        notebook.run("x = torch.ones(2)")
        notebook.run("torch.set_grad_enabled(False)\nx.sum().backward()")
        notebook.run("pass")
        notebook.run("torch.set_grad_enabled(True)")
    finally:
        torch.set_grad_enabled(True)
    modes = [(run.grad_before, run.grad_after) for run in notebook.tracker.runs.values()]
    assert modes == [(True, True), (True, False), (False, False), (False, True)]
    assert seen == [False]


def test_cells_may_nest(notebook: Notebook) -> None:
    tracker = notebook.tracker
    notebook.namespace["x"] = torch.ones(2, requires_grad=True)

    def nested() -> None:
        tracker.begin_cell(2, "inner = x * 2", filename="<inner>")
        exec(compile("inner = x * 2", "<inner>", "exec"), notebook.namespace)
        tracker.end_cell()

    notebook.namespace["nested"] = nested
    notebook.run("before = x * 2\nnested()\nafter = x * 3")
    places = {n.labels[0]: n.place for n in tracker.snapshot().nodes if n.place is not None}
    assert (places["before"].line, places["after"].line) == (1, 3)
    assert (places["inner"].cell, places["inner"].outer_cell, places["inner"].outer_line) == (2, 1, 2)


def test_a_snapshot_can_be_taken_from_another_thread_and_under_inference_mode(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(2, requires_grad=True)\nloss = x.exp().sum()")
    notebook.namespace["y"] = 1
    notebook.tracker.begin_cell(2, "", filename="<cell 2>")  # the graph is read again
    found: list[int] = []

    def take() -> None:
        with torch.inference_mode():
            found.append(len(notebook.tracker.snapshot()))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert found == [3]


def test_memory_is_bounded_over_a_thousand_iterations() -> None:
    notebook = Notebook(history_bytes=300_000)
    notebook.run("w = torch.ones(3, requires_grad=True)")
    notebook.run("for i in range(1000):\n    loss = (w * w).exp().sum()\n    loss.backward()")
    tracker = notebook.tracker
    tracker.stop()
    assert list(tracker.problems) == []
    assert tracker.history.size <= 300_000
    assert tracker.calls[-1].n == 999
    assert len(tracker.log.freed.by_uid) < 100
    assert sum(len(state.ranges) for state in tracker.provenance.lines.threads) <= 100_000


def test_history_drops_the_oldest_detail_first() -> None:
    notebook = Notebook(history_bytes=20_000)
    for _ in range(40):
        notebook.run("w = torch.ones(3, requires_grad=True)\nloss = (w * w).exp().sum()\nloss.backward()")
    history: History = notebook.tracker.history
    notebook.tracker.stop()
    assert history.size <= 20_000
    assert history.events[-1].snapshot is not None
    assert history.events[0].snapshot is None
    last = next(reversed(history.calls.values()))
    assert last.graph is not None


def test_stopping_restores_everything_and_starting_twice_does_nothing() -> None:
    before = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    tracker = Tracker(dict)
    tracker.start()
    tracker.start()
    assert torch.autograd._engine_run_backward is not before  # type: ignore[attr-defined]
    tracker.stop()
    tracker.stop()
    assert torch.autograd._engine_run_backward is before  # type: ignore[attr-defined]
    assert not ti.engine_wrapper_installed()


def test_a_stretch_of_a_script_can_be_tracked() -> None:
    w = torch.ones(3, requires_grad=True)
    with track(forecaster=forecast) as tracker:
        for _ in range(2):
            loss = (w * w).sum()
            loss.backward()
    assert list(tracker.problems) == []
    assert [call.result for call in tracker.calls] == ["ok", "ok"]
    assert tracker.calls[0].place.source == "loss.backward()"


def test_a_block_in_a_tracked_block_has_its_own_record_and_both_are_whole() -> None:
    with track(forecaster=forecast) as outer:
        w = torch.ones(2, requires_grad=True)
        w.exp().sum().backward()
        with track(forecaster=forecast) as inner:
            loss = w.exp().sum()
            loss.backward()
        w.exp().sum().backward()
    assert [len(outer.calls), len(inner.calls)] == [3, 1]
    assert inner.calls[0].place.line == outer.calls[1].place.line


def test_a_snapshot_in_a_running_cell_sees_the_variables_of_its_functions(notebook: Notebook) -> None:
    notebook.namespace["look"] = lambda: notebook.tracker.snapshot()
    notebook.run("w = torch.ones(2, requires_grad=True)\ndef f():\n    inner = w * w\n    return look()\nseen = f()")
    snapshot = notebook.namespace["seen"]
    assert isinstance(snapshot, Snapshot)
    assert [(n.name, n.labels) for n in snapshot.nodes if n.name == "MulBackward0"] == [("MulBackward0", ("f:inner",))]
    assert len(notebook.tracker.snapshot()) == 0
