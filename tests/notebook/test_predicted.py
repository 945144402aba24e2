"""A prediction that is made in the page: the call runs as the button's does, and is compared with what it did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_actions import FORWARD, Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.cell(FORWARD)
    yield stage
    stage.tracker.stop()


def place(stage: Stage, node: str, slot: str) -> list[int]:
    """A slot as the page names it."""
    graph = stage.offers.drawing.snapshot
    index = next(i for i in range(len(graph)) if graph.name_of(i) == node)
    position = next(p for p, s in enumerate(graph.node(index).saved) if s.name == slot)
    return [graph.uid[index], position]


def test_marks_are_compared_with_the_call_that_is_then_made(stage: Stage) -> None:
    result, other = place(stage, "ExpBackward0", "result"), place(stage, "MulBackward0", "other")
    found = stage.result("predict", root=stage.root("loss"), fails="no", frees=[result])
    assert found["fact"] and found["fails"] is True and found["call"] == 0 and found["freed"] == 2
    assert sorted(found["marks"]) == sorted([[*result, "right"], [*other, "missed"]])
    assert found["score"] == 2 / 3 and found["said"]["text"].startswith("loss.backward() ran and freed 2 saved tensors")
    assert [right for right, _ in found["answers"]] == [True, True, False]
    assert found["answers"][2][1].startswith("Missed: MulBackward0.other was freed, too: ①")
    assert stage.names["w"].grad is not None and stage.states() == {"freed"}


def test_a_mark_too_many_and_a_graph_that_is_retained(stage: Stage) -> None:
    other = place(stage, "MulBackward0", "other")
    found = stage.result(
        "predict", root=stage.root("loss"), fails="no", frees=[other], retain_graph=True, keep_grad=True
    )
    assert found["marks"] == [[*other, "extra"]] and found["freed"] == 0
    assert found["answers"][1][1] == "Wrong: MulBackward0.other was not freed: ① with retain_graph=True keeps it."
    assert stage.names["w"].grad is None and stage.states() == {"held"}


def test_a_call_that_raises_runs_without_a_question_and_the_node_counts(stage: Stage) -> None:
    stage.cell("h = w.exp()\nh.sum().backward()\nbad = (h * 2).sum()")
    graph = stage.offers.drawing.snapshot
    freed = next(graph.uid[o.node] for o in graph.owners if o.path == "h")
    found = stage.result("predict", root=stage.root("bad"), fails="yes", fails_at=freed)
    assert found["fails"] is True and found["failsAt"] is True and found["score"] == 1
    assert found["raised"]["uid"] == freed and found["marks"] == []


@pytest.mark.parametrize(
    "wrong, why",
    [
        ({"frees": [[999, 0]]}, "a node that was named is gone"),
        ({"frees": [["w", 0]]}, "frees must be a list of pairs of whole numbers"),
        ({"frees": [[1, 2, 3]]}, "frees must be a list of pairs of whole numbers"),
        ({"frees": "all"}, "frees must be a list of pairs of whole numbers"),
        ({"fails": "maybe"}, "fails must be one of yes, no"),
        ({"fails": "yes", "fails_at": 999}, "a node that was named is gone"),
    ],
)
def test_what_the_page_says_is_checked_before_anything_runs(stage: Stage, wrong: dict, why: str) -> None:
    said = {"root": stage.root("loss"), "fails": "no", "frees": [], **wrong}
    assert why in stage.refusal("predict", **said)
    assert stage.names["w"].grad is None and not stage.tracker.calls


def test_a_slot_that_the_node_does_not_have_is_refused(stage: Stage) -> None:
    uid, _ = place(stage, "ExpBackward0", "result")
    for position in (-1, 7):
        assert "is gone" in stage.refusal("predict", root=stage.root("loss"), fails="no", frees=[[uid, position]])
