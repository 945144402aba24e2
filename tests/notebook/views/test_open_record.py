"""A record in the view: its picture, its past and its text are there at once, and nothing can be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from read_wire import decode
from recorded import run

import graphwidget
from graphwidget.capture.calls.hues import Hues
from graphwidget.notebook.views.widget import AutogradView


@pytest.fixture
def record(tmp_path: Path) -> graphwidget.RunRecord:
    run(tmp_path / "run.gwz")
    return graphwidget.load(tmp_path / "run.gwz")


@pytest.fixture
def view(record: graphwidget.RunRecord, monkeypatch: pytest.MonkeyPatch) -> AutogradView:
    view = record.view(height=300)
    view.replies = []
    monkeypatch.setattr(view, "send", view.replies.append)
    yield view
    view.close()


def ask(view: Any, verb: str, **arguments: object) -> dict[str, Any]:
    view._on_message(view, {"id": 1, "verb": verb, **arguments}, [])
    return view.replies[-1]


def test_it_says_at_once_that_it_is_read_only_and_offers_no_root(record: Any, view: AutogradView) -> None:
    wire = decode(view.wire)
    status = wire["status"]
    text, why = wire["s"][status["text"]], wire["s"][status["why"]]
    assert status["state"] == "off" and text.startswith("record of ") and text.endswith(": read-only")
    assert why == "This is the record of a run: nothing runs here."
    assert wire["roots"] and all(root["id"] < 0 for root in wire["roots"])
    assert any("read-only" in wire["s"][note] for note in wire["notes"])
    assert [call["n"] for call in wire["calls"]] == [call.n for call in record.calls]
    assert view.height == 300


@pytest.mark.parametrize("root", [1, 0, -1])
def test_nothing_can_be_run_in_it(view: AutogradView, root: int) -> None:
    answer = ask(view, "backward", root=root, retain_graph=False, keep_grad=False, confirmed=0)
    assert answer["ok"] is False and answer["error"]["message"]


def test_its_past_its_nodes_and_its_exports_are_there(record: Any, view: AutogradView) -> None:
    stored = [event.id for event in record.events if event.snapshot is not None]
    assert len(stored) > 2
    past = ask(view, "snapshot", event=stored[0])
    assert decode(past["result"]["wire"])["event"] == stored[0]
    uid = json.loads(view.wire)["uid"]
    assert ask(view, "inspect", uid=record.drawing().snapshot.uid[0])["ok"] and uid
    assert ask(view, "steps_of", call=0)["ok"]
    assert "Autograd graph" in ask(view, "export", format="text")["result"]["text"]
    assert "<html" in ask(view, "export", format="html")["result"]["text"]
    assert view.as_text().startswith("Autograd graph")


def test_the_looks_of_roots_are_those_that_they_had(tmp_path: Path) -> None:
    tracker = run(tmp_path / "run.gwz")
    calls = graphwidget.load(tmp_path / "run.gwz").calls
    looks = [(call.graph, call.roots, call.order) for call in calls if call.graph is not None]
    assert len({order for _, _, order in looks}) > 1
    for graph, roots, order in looks:
        assert Hues.of_calls(calls).look(graph, roots) == tracker.hues.look(graph, roots) == [order]


def test_the_magic_opens_it(record: Any, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%load_ext graphwidget")
    shell.run_line_magic("graphwidget", f"open {record.path}")
    assert "read-only: nothing runs" in capsys.readouterr().out  # where no widget can be shown, it is text
    for line, says in (("open", "open FILE.gwz"), ("open missing.gwz", "missing.gwz: no such file")):
        with pytest.raises(UsageError, match=says):
            shell.run_line_magic("graphwidget", line)


def test_a_shell_whose_environment_asks_for_a_record_writes_one(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHWIDGET_RECORD", str(tmp_path / "records"))
    shell.run_cell("%load_ext graphwidget")
    shell.run_cell("import torch\nw = torch.ones(3, requires_grad=True)\nw.sum().backward()", store_history=True)
    (path,) = (tmp_path / "records").iterdir()
    calls = graphwidget.load(path).calls
    assert [call.place.cell for call in calls] == [1]
