"""Two moments compared: what was added, freed and died, by node and by variable."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from random_graphs import graphs

import graphwidget as gw
from graphwidget.model import Snapshot, VariableChange


def plain(variables: tuple[VariableChange, ...]) -> list[VariableChange]:
    """The changes, with the names of local variables as they stand in the test."""
    return [replace(one, name=one.name.rpartition(":")[2]) for one in variables]


def test_a_loop_that_goes_on_adds_frees_and_lets_die() -> None:
    w = torch.ones(3, requires_grad=True)
    with gw.track():
        loss = (w * 2).exp().sum()
        kept = w.sin().sum()
        before = gw.snapshot()
        kept.backward()
        loss = w.cos().sum()
        found = before.compare(gw.snapshot())
    assert sorted(node.name for node in found.added) == ["CosBackward0", "SumBackward0"]
    assert sorted(node.name for node in found.died) == ["ExpBackward0", "MulBackward0", "SumBackward0"]
    assert [(saved.name, saved.state.word) for saved in found.freed] == [("self", "freed")]
    assert plain(found.variables) == [
        VariableChange("loss", "other", added=2, died=3),
        VariableChange("kept", "same", freed=1),
    ]
    # `w` was saved by sin (freed), then by cos.
    assert (found.held_before, found.held_after) == (32, 12)
    del loss


def test_the_text_says_it_all() -> None:
    w = torch.ones(3, requires_grad=True)
    with gw.track():
        loss = w.exp().sum()
        before = gw.snapshot()
        loss.backward()
        text = before.compare(gw.snapshot()).explain()
        nothing = gw.snapshot()
        assert nothing.compare(gw.snapshot()).explain().startswith("no saved tensor was freed, no node was added")
    assert text.splitlines()[:2] == [
        "1 saved tensor freed; no node was added, no node died.",
        "Held by saved tensors: 12 B, then 0 B.",
    ]
    assert text.splitlines()[2].endswith("loss: 1 saved tensor freed")


def test_each_change_belongs_to_the_nearest_name() -> None:
    w = torch.ones(3, requires_grad=True)
    with gw.track():
        before = gw.snapshot()
        hidden = w.exp()
        loss = hidden.sin().sum()
        found = before.compare(gw.snapshot())
    assert plain(found.variables) == [
        VariableChange("loss", "new", added=2),
        VariableChange("hidden", "new", added=1),
    ]
    del loss


def test_snapshots_of_different_trackers_are_refused() -> None:
    w = torch.ones(3, requires_grad=True)
    first = gw.snapshot(w.exp().sum())
    second = gw.snapshot(w.sin().sum())
    with pytest.raises(ValueError, match="not taken by one tracker: take both"):
        first.compare(second)


@given(graphs())
def test_nothing_changes_between_a_snapshot_and_itself(graph: Snapshot) -> None:
    found = graph.compare(graph)
    assert (found.added, found.died, found.freed, found.variables) == ((), (), (), ())
