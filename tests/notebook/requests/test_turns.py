"""Cells and clicks take turns: what waits, what is cancelled, what is dropped."""

from __future__ import annotations

import threading
import time
import weakref

from stage import Stage

from graphwidget.notebook.requests.turns import Turns


def test_a_click_during_a_cell_waits_and_runs_after_it(stage: Stage) -> None:
    token = object()
    stage.turns.cell_begins(token, "In[7]")
    stage.actions.handle({"id": 1, "verb": "backward", "root": stage.root("loss")})
    assert stage.replies == [{"id": 1, "queued": {"behind": "In[7]"}}]
    assert stage.names["w"].grad is None
    assert stage.result("forecast", root=stage.root("loss"))["backward"]["ok"], "asking need not wait"
    stage.turns.cell_ends(token)
    assert stage.replies[-1]["result"]["raised"] is None and stage.names["w"].grad is not None


def test_a_waiting_click_can_be_cancelled(stage: Stage) -> None:
    token = object()
    stage.turns.cell_begins(token, "In[7]")
    stage.actions.handle({"id": 50, "verb": "backward", "root": stage.root("loss")})
    assert stage.result("cancel", request=50) == {"cancelled": 50}
    said = {"kind": "status", "text": "Cancelled. Nothing has run.", "next": ""}
    assert stage.replies[-2] == {"id": 50, "ok": True, "result": {"said": said}}
    stage.turns.cell_ends(token)
    assert stage.names["w"].grad is None
    assert "nothing to cancel" in stage.refusal("cancel", request=50)


def test_a_waiting_click_on_a_root_that_the_cell_replaces_is_out_of_date(stage: Stage) -> None:
    token = object()
    stage.turns.cell_begins(token, "In[2]")
    stage.actions.handle({"id": 1, "verb": "backward", "root": stage.root("loss")})
    stage.cell("loss = (w * 9).sum()")
    stage.turns.cell_ends(token)
    assert "out of date" in stage.replies[-1]["error"]["message"] and stage.names["w"].grad is None


def test_a_second_click_while_the_first_runs_waits_for_it(stage: Stage) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hook(grad: object) -> None:
        inside.set()
        go_on.wait(10)

    stage.names["w"].register_hook(hook)
    stage.cell("loss = (w * 2).sum()")
    root = stage.root("loss")
    first = threading.Thread(target=stage.actions.handle, args=({"id": 1, "verb": "backward", "root": root},))
    first.start()
    assert inside.wait(10)
    stage.actions.handle({"id": 2, "verb": "backward", "root": root})
    assert stage.replies == [{"id": 2, "queued": {"behind": "backward of loss"}}]
    assert "running already" in stage.refusal("cancel", request=1)
    go_on.set()
    first.join(10)
    assert [reply["id"] for reply in stage.replies if reply.get("result")] == [1, 2]


def test_a_cell_that_begins_waits_for_a_running_click() -> None:
    turns, order, inside = Turns(), [], threading.Event()

    def job() -> None:
        inside.set()
        time.sleep(0.1)
        order.append("click")

    from graphwidget.notebook.requests.turns import Job

    click = Job(1, "backward of loss", job, lambda *args: None, lambda why: None)
    thread = threading.Thread(target=turns.submit, args=(click,))
    thread.start()
    assert inside.wait(10)
    turns.cell_begins("token", "In[1]")
    order.append("cell")
    turns.cell_ends("token")
    thread.join(10)
    assert order == ["click", "cell"] and turns.busy is None


def test_an_interrupted_cell_drops_what_waits(stage: Stage) -> None:
    stage.turns.cell_begins("token", "In[7]")
    stage.actions.handle({"id": 1, "verb": "backward", "root": stage.root("loss")})
    stage.turns.cell_ends("token", interrupted=True)
    assert "interrupted" in stage.replies[-1]["result"]["said"]["text"] and stage.names["w"].grad is None


def test_a_cell_whose_end_never_came_is_over_when_an_outer_one_ends(stage: Stage) -> None:
    stage.turns.cell_begins("outer", "In[7]")
    stage.turns.cell_begins("inner", "In[7]")
    stage.turns.cell_ends("outer")
    assert stage.turns.busy is None
    stage.turns.cell_ends("inner")
    assert stage.turns.busy is None


def test_clicks_keep_nothing_alive(stage: Stage) -> None:
    stage.result("backward", root=stage.root("loss"))
    assert stage.run_anyway("loss")["raised"]
    loss = weakref.ref(stage.names["loss"])
    del stage.names["loss"]
    assert loss() is None
