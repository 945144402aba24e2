"""By which names a prediction speaks of nodes and slots, and what it says of names that are not there."""

from __future__ import annotations

import pytest
import torch

import graphwidget as gw


@pytest.fixture
def w():
    return torch.ones(3, requires_grad=True)


def refusal(loss, **said) -> str:
    with pytest.raises(ValueError) as caught:
        gw.predict(loss, **said)
    return str(caught.value)


def test_a_question_lists_what_there_is_and_gives_nothing_away(w):
    loss = (w * w).exp().sum()
    before = gw.predict(loss).question()
    loss.backward()
    assert gw.predict(loss).question() == before
    assert gw.predict(loss).nodes == ("MulBackward0", "ExpBackward0", "SumBackward0")
    assert set(gw.predict(loss).slots) == {"MulBackward0.self", "MulBackward0.other", "ExpBackward0.result"}


def test_nodes_of_one_name_are_numbered_in_the_order_in_which_they_were_made(w):
    first = w.exp()
    loss = first.exp().sum()
    found = gw.predict(loss)
    assert found.nodes == ("ExpBackward0[0]", "ExpBackward0[1]", "SumBackward0")
    assert "numbered in the order in which they were made" in found.question()
    assert gw.predict(first, frees="ExpBackward0.result", gradient=True), "in its graph there is one"
    with pytest.raises(ValueError, match=r"2 nodes are called .*: ExpBackward0\[0\] \(`first`\), ExpBackward0\[1\],"):
        gw.predict(loss, frees=["ExpBackward0.result"])
    assert "2 nodes are called ExpBackward0" in refusal(loss, fails="ExpBackward0")


def test_the_numbers_are_the_same_with_a_tracker_and_without(w):
    before = gw.predict((w.exp() * w.exp()).sum()).slots
    with gw.track():
        for _ in range(3):
            loss = (w.exp() * w.exp()).sum()
        assert gw.predict(loss).slots == before


def test_an_unknown_name_lists_those_that_there_are(w):
    loss = (w * w).sum()
    text = refusal(loss, frees=["MulBackward.self"])
    assert "no saved tensor 'MulBackward.self'. Did you mean 'MulBackward0.self'?" in text
    assert "MulBackward0.other, MulBackward0.self" in text
    assert "Those of MulBackward0 are: MulBackward0.other, MulBackward0.self." in refusal(loss, frees="MulBackward0.x")
    assert "Those of MulBackward0 are" in refusal(loss, frees="MulBackward0")
    assert "The nodes are: MulBackward0, SumBackward0." in refusal(loss, fails="AddBackward0")
    assert "no node ''" in refusal(loss, fails="")


def test_what_saves_nothing_says_so(w):
    loss = (w * w).sum()
    assert "SumBackward0 saves no tensor" in refusal(loss, frees=["SumBackward0.self"])
    assert "it adds to the .grad of a leaf" in refusal(loss, frees=["AccumulateGrad.variable"])
    for name in ("w", "w.self"):
        with pytest.raises(ValueError, match="a leaf saves none"):  # here, where `w` is a name
            gw.predict(loss, frees=[name])


def test_a_node_that_hides_what_it_saved_is_not_said_to_save_nothing(w):
    y = torch.zeros(2, 3)
    y[0] = w
    loss = (y * y).sum()
    assert "CopySlices shows no saved tensor" in refusal(loss, frees=["CopySlices.self"])
    assert gw.predict(loss, fails="torch::autograd::CopySlices").score == 0, "torch's own name is understood, too"


@pytest.mark.parametrize(
    "said, why", [({"fails": 1}, "fails is True, False, or the name"), ({"frees": [3]}, "names of saved tensors")]
)
def test_something_else_than_a_name_is_a_type_error(w, said, why):
    with pytest.raises(TypeError, match=why):
        gw.predict(w.sum(), **said)


def test_a_long_list_is_cut(w):
    loss = w
    for _ in range(60):
        loss = loss.exp()
    text = gw.predict(loss.sum()).question()
    assert "ExpBackward0[39].result and 20 more" in text
    assert gw.predict(loss.sum(), frees=[]).explain().endswith("… and 20 more, 20 of them wrong.")
