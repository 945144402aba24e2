"""A prediction that is made in the page: the call runs as the button's does, and is compared with what it did."""

from __future__ import annotations

import pytest
from stage import Stage


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


def test_what_the_call_does_not_reach_can_be_marked_and_is_too_many(stage: Stage) -> None:
    """Offering only what the call reaches would give a part of the answer away."""
    stage.cell("y = w.exp()\na = (y * 2).sum()\nb = (y * 3).sum()")
    graph = stage.offers.drawing.snapshot
    of = {
        path: [graph.uid[n] for n in range(len(graph)) if n in graph.next(root)][0]
        for path in "ab"
        for root in [next(o.node for o in graph.owners if o.path == path)]
    }
    mul = graph.node(graph.index_of[of["b"]])
    position = next(p for p, slot in enumerate(mul.saved) if slot.state.keeps_memory)
    here, there = [of["a"], position], [of["b"], position]
    found = stage.result("predict", root=stage.root("a"), fails="no", frees=[here, there])
    assert [*here, "right"] in found["marks"] and [*there, "extra"] in found["marks"]
    told = [text for right, text in found["answers"] if right is False]
    assert any(
        text.startswith("Wrong: MulBackward0.") and text.endswith("a.backward() does not reach it.") for text in told
    )
    assert not any("[" in text.replace("In[", "") for _, text in found["answers"]), (
        "no numbers that the page has not shown"
    )
    assert found["score"] == 2 / 4


def test_a_node_that_the_call_does_not_reach_is_no_place_at_which_it_raises(stage: Stage) -> None:
    stage.cell("y = w.exp()\ny.sum().backward()\nbad = (y * 2).sum()\nother = w.sin().sum()")
    graph = stage.offers.drawing.snapshot
    other = next(graph.uid[o.node] for o in graph.owners if o.path == "other")
    found = stage.result("predict", root=stage.root("bad"), fails="yes", fails_at=other)
    assert found["fails"] is True and found["failsAt"] is False and found["score"] == 0.5
    assert found["answers"][1][1] == "Wrong: bad.backward() does not reach the node that was named."


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
