"""Who keeps which bytes: the parts add up to the bytes held, and each is kept by exactly the names that it is told of."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from random_graphs import graphs

import graphwidget as gw
from graphwidget.engine.keepers import NOBODY, OTHERS, SEVERAL, bands, keepers
from graphwidget.model import Snapshot


@given(graphs())
def test_the_parts_add_up_to_the_bytes_held(graph: Snapshot) -> None:
    found = keepers(graph)
    assert found is not None and sum(found.values()) == graph.held_bytes()


def test_each_element_of_a_list_keeps_its_own_graph_and_what_they_share_is_counted_once() -> None:
    w = torch.ones(100, requires_grad=True)
    shared = w.exp()  # keeps its result, 400 B, for all three
    history = [(shared * 2).sin().sum(), (shared * 3).sin().sum(), (shared * 4).sin().sum()]
    graph = gw.snapshot(*history)
    # Of its own, each saves what sin was given, and the number that it multiplied by (8 B).
    assert keepers(graph) == {**{f"history[{i}]": 408 for i in range(3)}, SEVERAL: 400}


def test_deleting_the_only_name_releases_what_it_is_said_to_keep() -> None:
    w = torch.ones(100, requires_grad=True)
    first, second = w.exp().sum(), w.sin().exp().sum()
    found = keepers(gw.snapshot(first, second))
    # `w` itself is saved by sin, and only the graph of `second` holds that.
    assert found == {"first": 400, "second": 800}
    del second
    assert gw.snapshot(first).held_bytes() == 400


def test_what_no_name_leads_to_says_so() -> None:
    w = torch.ones(100, requires_grad=True)
    graph = gw.snapshot(w.exp().sum())
    assert keepers(graph) == {NOBODY: 400}


def test_many_names_become_few_and_no_byte_is_lost() -> None:
    moments = [
        {f"history[{i}]": 32 for i in range(n)} | {"loss": 8, "history[0], loss": 4, "a, b": 2} for n in range(1, 30)
    ]
    few, rows = bands(moments[:8])
    assert few[0] == "history[0]" and SEVERAL not in few
    names, rows = bands(moments)
    assert names == ("history[…]", "loss", SEVERAL)
    assert [sum(row) for row in rows] == [sum(moment.values()) for moment in moments]
    names, rows = bands([{f"v{i}": i for i in range(40)}])
    assert len(names) == 12 and names[-1] == OTHERS and sum(rows[0]) == sum(range(40))


@pytest.mark.parametrize("moments", [[], [{}], [{}, {}]])
def test_nothing_is_nothing(moments: list[dict[str, int]]) -> None:
    assert bands(moments) == ((), [[] for _ in moments])
