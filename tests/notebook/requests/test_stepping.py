"""What the page is told of a call, node by node; and the magic that prints it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from IPython.core.error import UsageError
from read_wire import small
from stage import FORWARD, Stage

from graphwidget.model import SlotState
from graphwidget.replies import steps


def test_a_call_that_has_not_been_made_is_described_node_by_node_and_runs_nothing(stage: Stage) -> None:
    told = stage.result("steps_ahead", root=stage.root("loss"))
    assert told["call"] == "loss.backward()" and told["known"] and not told["past"] and told["n"] is None
    assert [row["node"] for row in told["rows"]] == ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert told["frees"] == [[], [0], [0], []] and told["sets"] == [3] and told["stops"] == "" and told["wire"] is None
    drawn = stage.offers.drawing.snapshot
    assert [drawn.name_of(drawn.index_of[uid]) for uid in told["nodes"]][1] == "ExpBackward0", (
        "the page has these nodes"
    )
    assert told["rows"][2]["source"] == "loss = (w * torch.arange(3.)).exp().sum()"
    assert stage.names["w"].grad is None and stage.states() == {"held"}
    kept = stage.result("steps_ahead", root=stage.root("loss"), retain_graph=True)
    assert kept["frees"] == [[]] * 4 and kept["call"] == "loss.backward(retain_graph=True)"


def test_a_recorded_call_comes_with_the_picture_before_it(stage: Stage) -> None:
    stage.cell("loss.backward()")
    stage.cell("total = (loss * 2)\ntry: total.backward()\nexcept RuntimeError: pass")
    told = stage.result("steps_of", call=1)
    assert (told["call"], told["past"], told["n"]) == ("② total.backward()", True, 1)
    assert told["stops"] == "raises" and told["rows"][-1]["text"].startswith("A gradient float32[3] arrived.")
    assert "It raised: its saved tensor result was freed by ①." in told["rows"][-1]["text"]
    wire = json.loads(told["wire"])
    assert [call["result"] for call in wire["calls"]] == ["ok", "running"] and wire["findings"] == []
    first = stage.result("steps_of", call=0)
    states = small(json.loads(first["wire"])["slotState"])
    assert str(int(SlotState.HELD)) in states and str(int(SlotState.FREED)) not in states, "what it frees is still held"


def test_what_cannot_be_stepped_through_says_why(stage: Stage) -> None:
    assert "not remembered" in stage.refusal("steps_of", call=7)
    stage.cell("for _ in range(40): (w * w).sum().backward()")
    counted = next(call for call in stage.offers.drawing.calls if call.same_as is not None)
    told = stage.result("steps_of", call=counted.n)
    assert not told["known"] and told["nodes"] == [] and told["wire"] is None and "only counted" in told["ending"]


def test_the_sentences_of_a_long_call_come_in_parts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SENTENCES", 2)
    told = stage.result("steps_ahead", root=stage.root("loss"))
    assert len(told["nodes"]) == 4 and [row["node"] for row in told["rows"]] == ["SumBackward0", "ExpBackward0"]
    more = stage.result("more_steps", walk=told["walk"], at=3)
    assert more["first"] == 2 and [row["node"] for row in more["rows"]] == ["MulBackward0", "AccumulateGrad"]
    assert "another one" in stage.refusal("more_steps", walk=told["walk"] + 1, at=0)
    assert "another one" in stage.refusal("more_steps", walk=told["walk"], at=4)


# -- the magic -----------------------------------------------------------------------------------------


def test_the_magic_prints_a_call_ahead_or_one_that_was_made(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%load_ext graphwidget", store_history=True)
    shell.run_cell(FORWARD, store_history=True)
    capsys.readouterr()
    shell.run_line_magic("graphwidget", "steps loss --retain-graph")
    out = capsys.readouterr().out
    assert out.startswith(
        "loss.backward(retain_graph=True), node by node. Nothing has run.\n1. SumBackward0 of loss, In["
    )
    shell.run_cell("loss.backward()", store_history=True)
    capsys.readouterr()
    shell.run_line_magic("graphwidget", "steps 1")
    out = capsys.readouterr().out
    assert out.startswith("① loss.backward(), node by node.\n") and "The .grad of w was set." in out


@pytest.mark.parametrize(
    "line, why", [("steps", "Of which call"), ("steps 3", "Calls that are: none"), ("steps l", "There is")]
)
def test_the_magic_says_what_there_is(shell: Any, line: str, why: str) -> None:
    shell.run_cell("%load_ext graphwidget", store_history=True)
    shell.run_cell(FORWARD, store_history=True)
    with pytest.raises(UsageError, match=why):
        shell.run_line_magic("graphwidget", line)
