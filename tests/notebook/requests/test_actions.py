"""Requests of the page: each is answered, and a click runs the real call."""

from __future__ import annotations

import json
import sys
import threading
from inspect import signature

import pytest
import torch
from read_wire import small
from stage import FORWARD, Stage

from graphwidget.engine import forecast as engine
from graphwidget.exports.formats import FORMATS
from graphwidget.notebook.requests.verbs import VERBS


def test_ping_is_answered(stage: Stage) -> None:
    assert stage.result("ping") == {"busy": None}


def test_backward_runs_the_real_call_and_says_what_it_freed(stage: Stage) -> None:
    result = stage.result("backward", root=stage.root("loss"))
    assert result["raised"] is None and result["call"] == 0 and result["freedSlots"] == 2 and result["freedBytes"] > 0
    assert result["said"] == {
        "kind": "status",
        "text": "loss.backward() ran and freed 2 saved tensors, 24 B.",
        "next": "",
    }
    assert torch.equal(stage.names["w"].grad, torch.arange(3.0) * torch.exp(torch.arange(3.0)))
    assert stage.states() == {"freed"}


def test_a_call_of_a_button_is_called_that(stage: Stage) -> None:
    stage.result("backward", root=stage.root("loss"))
    stage.run_anyway("loss")
    (finding,) = (one for one in stage.tracker.findings() if one.severity == "error")
    assert "(the backward button) ran backward on" in finding.text
    assert not stage.tracker.log.elsewhere.button


def test_retain_graph_leaves_the_slots_held(stage: Stage) -> None:
    for _ in range(2):
        result = stage.result("backward", root=stage.root("loss"), retain_graph=True)
        assert result["raised"] is None
        assert result["said"]["text"] == "loss.backward(retain_graph=True) ran and freed nothing."
    assert stage.states() == {"held"}


def test_an_error_of_the_call_is_a_result_with_the_failing_node(stage: Stage) -> None:
    stage.result("backward", root=stage.root("loss"))
    before = {name: getattr(sys, name, None) for name in ("last_type", "last_value", "last_traceback")}
    result = stage.run_anyway("loss")
    raised, said = result["raised"], result["said"]
    assert said["kind"] == "alert" and said["text"].startswith(
        "loss.backward() raised RuntimeError: Trying to backward"
    )
    assert said["text"].endswith("(or directly access saved tensors after they have already been freed).")
    assert raised["type"] == "RuntimeError" and "second time" in raised["message"]
    node = stage.tracker.snapshot()
    assert node.name_of(node.index_of[raised["uid"]]) == "ExpBackward0"
    assert {name: getattr(sys, name, None) for name in before} == before


def test_the_fixes_for_a_second_click_quote_no_line_that_there_is_not(stage: Stage) -> None:
    stage.result("backward", root=stage.root("loss"))
    stage.run_anyway("loss")
    (finding,) = stage.tracker.findings()
    assert any(fix.text == "Leave out ②: ① has run this backward." for fix in finding.fixes)
    assert not any("``" in fix.text for fix in finding.fixes)


def test_even_an_interrupt_in_a_hook_is_a_result(stage: Stage) -> None:
    def hook(grad: object) -> None:
        raise KeyboardInterrupt("stop")

    stage.names["w"].register_hook(hook)
    stage.cell("loss = (w * 2).sum()")
    assert stage.result("backward", root=stage.root("loss"))["raised"]["type"] == "KeyboardInterrupt"


def test_a_root_that_is_no_scalar_gets_ones(stage: Stage) -> None:
    stage.cell("out = w * 3")
    assert stage.result("backward", root=stage.root("out"))["raised"] is None
    assert torch.equal(stage.names["w"].grad, torch.full((3,), 3.0))


def test_keep_grad_leaves_the_same_grad_objects_untouched(stage: Stage) -> None:
    stage.cell("v = torch.ones(3, requires_grad=True); loss = (w * v * 2).sum(); w.grad = torch.full((3,), 7.)")
    grad = stage.names["w"].grad
    version = grad._version
    result = stage.result("backward", root=stage.root("loss"), keep_grad=True)
    assert result["raised"] is None and result["said"]["next"] == ".grad is as it was."
    assert stage.names["w"].grad is grad and grad._version == version and grad.tolist() == [7.0] * 3
    assert stage.names["v"].grad is None
    assert stage.states() == {"freed"}


def test_keep_grad_restores_a_tensor_that_retains_its_grad_and_after_an_error_too(stage: Stage) -> None:
    stage.cell("h = w * 2; h.retain_grad(); loss = h.exp().sum()")
    stage.result("backward", root=stage.root("loss"), keep_grad=True)
    assert stage.names["h"].grad is None and stage.names["w"].grad is None
    assert stage.run_anyway("loss", keep_grad=True)["raised"] is not None
    assert stage.names["w"].grad is None


def test_without_keep_grad_gradients_add_up(stage: Stage) -> None:
    stage.cell("loss = (w * 2).sum()")
    stage.result("backward", root=stage.root("loss"), retain_graph=True)
    stage.result("backward", root=stage.root("loss"), retain_graph=True)
    assert stage.names["w"].grad.tolist() == [4.0] * 3


def test_a_click_works_from_another_thread_with_grad_mode_off_there(stage: Stage) -> None:
    def click() -> None:
        torch.set_grad_enabled(False)
        stage.ask("backward", root=stage.root("loss"), retain_graph=True)

    thread = threading.Thread(target=click)
    thread.start()
    thread.join()
    assert stage.replies[-1]["result"]["raised"] is None
    assert stage.names["w"].grad is not None and torch.is_grad_enabled()


def test_a_click_in_no_grad_mode_leaves_that_mode_on(stage: Stage) -> None:
    with torch.no_grad():
        assert stage.result("backward", root=stage.root("loss"))["raised"] is None
        assert not torch.is_grad_enabled()


def test_a_root_that_died_is_out_of_date(stage: Stage) -> None:
    old = stage.root("loss")
    del stage.names["loss"]
    assert "out of date" in stage.refusal("backward", root=old)
    assert stage.names["w"].grad is None


def test_a_root_that_was_computed_anew_is_out_of_date(stage: Stage) -> None:
    old = stage.root("loss")
    stage.names["loss"] = (stage.names["w"] * 5).sum()
    assert "computed again" in stage.refusal("backward", root=old)
    assert stage.names["w"].grad is None


def test_an_id_that_was_never_offered_is_refused(stage: Stage) -> None:
    for verb, argument in (("backward", "root"), ("forecast", "root"), ("rebuild", "root")):
        assert "out of date" in stage.refusal(verb, **{argument: 999})
    assert "out of date" in stage.refusal("inspect", uid=999)
    assert "out of date" in stage.refusal("snapshot", event=999)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "backward",
        [],
        {},
        {"id": 1},
        {"id": True, "verb": "ping"},
        {"id": 1.5, "verb": "ping"},
        {"id": 1, "verb": "__init__"},
        {"id": 1, "verb": "handle"},
        {"id": 1, "verb": ["ping"]},
        {"id": 1, "verb": "backward"},
        {"id": 1, "verb": "backward", "root": "loss"},
        {"id": 1, "verb": "backward", "root": True},
        {"id": 1, "verb": "backward", "root": 2**80},
        {"id": 1, "verb": "backward", "root": 1, "retain_graph": "yes"},
        {"id": 1, "verb": "backward", "root": 1, "code": "import os"},
        {"id": 1, "verb": "inspect", "uid": None},
        {"id": 2**90, "verb": "ping"},
        {"id": 1, "verb": "export", "format": "networkx"},
        {"id": 1, "verb": "export", "format": ["svg"]},
    ],
)
def test_a_foreign_message_gets_an_error_and_changes_nothing(stage: Stage, message: object) -> None:
    states = stage.states()
    stage.actions.handle(message)
    (reply,) = stage.replies
    assert reply["ok"] is False and reply["error"]["message"] and reply["error"]["next"]
    assert stage.states() == states and stage.names["w"].grad is None


def test_a_failure_of_our_own_is_an_answer_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "forecast", lambda *args, **kwargs: 1 / 0)
    assert "ZeroDivisionError" in stage.refusal("forecast", root=stage.root("loss"))


def test_a_forecast_runs_nothing_and_says_what_would_happen(stage: Stage) -> None:
    stage.cell("loss2 = loss * 2")
    result = stage.result("forecast", root=stage.root("loss2"))
    plain, retain = result["backward"], result["retain"]
    assert plain["ok"] and plain["outcome"] == "would free 3 saved tensors" and len(plain["frees"]) == 3
    assert plain["facts"] == ["They are in 3 nodes, 32 B, all of which come back."] and plain["held"] == -32
    assert retain["facts"] == ["4 nodes would run. What is held stays held."]
    assert retain["outcome"] == "would free nothing" and retain["held"] == 0
    assert retain["ok"] and retain["frees"] == [] and retain["sentence"] == "frees nothing."
    assert plain["sentence"].startswith("frees 3 saved tensors; afterwards ")
    assert " loss2.backward() would then raise at " in plain["sentence"]
    assert plain["reaches"] == ["w"] and stage.names["w"].grad is None
    assert [row["backward"] for row in plain["afterwards"] if row["root"] == "loss2"] == ["freed"]
    snapshot = stage.tracker.snapshot()
    uid, slot = plain["frees"][0]
    assert slot < len(snapshot.slots_of(snapshot.index_of[uid]))


def test_a_forecast_of_a_freed_graph_names_the_failing_node(stage: Stage) -> None:
    stage.result("backward", root=stage.root("loss"))
    plain = stage.result("forecast", root=stage.root("loss"))["backward"]
    assert plain["ok"] is False and plain["failsAt"] is not None
    assert plain["outcome"] == "would raise at `ExpBackward0`: ① freed its `result`"


def test_inspect_says_what_keeps_a_node(stage: Stage) -> None:
    snapshot = stage.tracker.snapshot()
    exp = next(node for node in snapshot.nodes if node.name == "ExpBackward0")
    result = stage.result("inspect", uid=exp.uid)
    assert [kept["path"] for kept in result["keptBy"]] == ["loss"]
    assert result["keptBy"][0]["releases"].startswith("releases ")
    assert [row["slot"] for row in result["storages"]] == [0]


def test_a_stored_moment_can_be_asked_for(stage: Stage) -> None:
    event = stage.tracker.events[0].id
    stage.result("backward", root=stage.root("loss"))
    wire = stage.result("snapshot", event=event)["wire"]
    past = json.loads(wire)
    assert set(small(past["slotState"])) == {"0", "4"} and past["calls"] == [] and past["event"] == event
    assert past["roots"][0]["id"] < 0, "nothing of the past can be clicked"


def test_rebuild_runs_the_recorded_cells_in_order(stage: Stage) -> None:
    stage.cell("loss2 = loss * 2")
    said = {"kind": "status", "text": "loss2 was built again by running In[1], In[2].", "next": ""}
    assert stage.result("rebuild", root=stage.root("loss2")) == {"cells": [1, 2], "error": None, "said": said}
    assert [run.source for run in stage.rerun] == [FORWARD, "loss2 = loss * 2"]


def test_rebuild_of_a_graph_from_unknown_cells_is_refused(stage: Stage) -> None:
    stage.names["odd"] = (stage.names["w"] * 2).sum()
    stage.tracker.begin_cell(2, "")
    stage.tracker.end_cell()
    stage.refresh()
    assert stage.offers.current[stage.root("odd")].runs is None
    assert "not known" in stage.refusal("rebuild", root=stage.root("odd"))
    assert stage.rerun == []


def test_closing_refuses_everything_with_the_reason(stage: Stage) -> None:
    stage.actions.refuse_all("This view was closed.")
    for verb in VERBS:
        assert stage.refusal(verb) == "This view was closed."


def test_every_verb_has_a_method_that_takes_its_arguments(stage: Stage) -> None:
    for name, verb in VERBS.items():
        takes = signature(getattr(stage.actions, f"_{name}")).parameters
        assert list(takes) == list(verb.arguments)


def test_the_picture_can_be_exported_in_each_format_that_the_menu_offers(stage: Stage) -> None:
    for name, form in FORMATS.items():
        if form.suffix and not form.binary:
            file = stage.result("export", format=name)
            assert file["name"] == f"autograd-graph{form.suffix}" and file["type"] == form.media_type
            assert "ExpBackward" in file["text"]
    assert "format must be one of" in stage.refusal("export", format="png"), "the page makes it"


def test_an_export_that_needs_what_is_not_installed_says_what_to_do(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "_quickjs", None)
    assert "pip install quickjs-ng" in stage.refusal("export", format="svg")


def test_two_moments_are_compared(stage: Stage) -> None:
    first = stage.tracker.events[-1].id
    stage.cell("loss.backward()")
    stage.cell("later = (w * 3).sum()")
    last = stage.tracker.events[-1].id
    found = stage.result("compare", before=last, after=first)  # the order of the two does not matter
    assert found["summary"] == "2 saved tensors freed, 2 nodes added; no node died."
    assert {(row["name"], row["status"], row["added"], row["freed"]) for row in found["variables"]} == {
        ("later", "new", 2, 0),
        ("loss", "same", 0, 2),
    }
    assert len(found["added"]) == 2 and len(found["freed"]) == 2 and found["died"] == []
    stage.cell("del later")
    dead = stage.result("compare", before=last, after=stage.tracker.events[-1].id)
    assert len(dead["died"]) == 2
    message = json.loads(dead["wire"])
    assert small(message["ghost"]).count("1") == 2
    assert "0" not in small(message["slotState"])  # what has died holds nothing


def test_moments_that_are_not_stored_are_not_compared(stage: Stage) -> None:
    assert "not on the timeline" in stage.refusal("compare", before=0, after=9999)
