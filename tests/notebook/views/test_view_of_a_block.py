"""A view after a `track()` block: it tells the block's story, and runs nothing that nobody would record."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

import graphwidget as gw
from graphwidget.notebook import session
from graphwidget.notebook.views.widget import AutogradView

PROGRAM = """
w = torch.ones(3, requires_grad=True)
with gw.track() as tracker:
    loss = w.exp().sum()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError:
        pass
"""


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables of a program that has ended its block, as a script's or marimo's."""
    monkeypatch.setattr(session, "_ended", [])
    variables: dict[str, Any] = {"torch": torch, "gw": gw, "__name__": "__main__"}
    exec(compile(PROGRAM, "block.py", "exec"), variables)
    return variables


def view_in(block: dict[str, Any], arguments: str) -> AutogradView:
    exec(f"view = gw.view({arguments})", block)
    view: AutogradView = block["view"]
    return view


def ask(view: AutogradView, **message: Any) -> dict[str, Any]:
    sent: list[dict[str, Any]] = []
    view.send = lambda content, buffers=None: sent.append(content)  # type: ignore[method-assign]
    view._handle_custom_msg({"id": 1, **message}, [])
    (answer,) = sent
    return answer


@pytest.mark.parametrize("arguments", ["", "loss", "tracker"])
def test_the_story_of_the_block_is_there(block: dict[str, Any], arguments: str) -> None:
    wire = json.loads(view_in(block, arguments).wire)
    assert [call["result"] for call in wire["calls"]] == ["ok", "raised"]
    (finding,) = wire["findings"]
    assert finding["kind"] == "second_backward"
    assert [event["kind"] for event in wire["events"]] == ["call", "call", "cell"]
    assert wire["strings"][wire["roots"][0]["path"]] == "loss"


def test_the_block_can_be_travelled(block: dict[str, Any]) -> None:
    view = view_in(block, "tracker")
    event = json.loads(view.wire)["events"][0]["id"]
    past = json.loads(ask(view, verb="snapshot", event=event)["result"]["wire"])
    assert [call["result"] for call in past["calls"]] == ["ok"]


def test_nothing_can_be_run_where_nobody_records(block: dict[str, Any]) -> None:
    block["loss"] = None
    view = view_in(block, "tracker")
    wire = json.loads(view.wire)
    assert wire["status"]["state"] == "off" and all(root["id"] < 0 for root in wire["roots"])
    for root in range(-3, 4):
        assert ask(view, verb="backward", root=root)["ok"] is False


def test_a_tensor_made_after_the_block_has_no_part_in_its_story(block: dict[str, Any]) -> None:
    exec("other = (w * 2).sum()", block)
    wire = json.loads(view_in(block, "other").wire)
    assert wire["calls"] == [] and wire["events"] == [] and wire["findings"] == []


def test_a_block_that_runs_is_shown_rather_than_one_that_has_ended(block: dict[str, Any]) -> None:
    exec("with gw.track():\n    fresh = (w * 3).sum()\n    view = gw.view()", block)
    roots = {ref.path for ref in block["view"]._offers.drawing.snapshot.roots}
    assert "fresh" in roots and block["view"]._source.tracker is not block["tracker"]


def test_an_ended_tracker_and_a_tensor_are_not_shown_together(block: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="takes tensors, not Tracker"):
        view_in(block, "tracker, loss")
