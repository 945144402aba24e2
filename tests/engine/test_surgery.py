"""Copies of a snapshot with one change; the original is not modified."""

from dataclasses import replace

from build import FREED, HELD, STALE, N, graph, leaf

from graphwidget.engine.what_if import anything_stale, cut, reachable, with_nodes_held, with_nothing_stale
from graphwidget.model import NodeFacts

SHOT = graph(N("a", "b w", (FREED, STALE)), N("b", "v", (FREED,)), leaf("w"), leaf("v"))


def test_only_the_freed_slots_of_the_given_nodes_are_held_again():
    assert list(with_nodes_held(SHOT, [0]).slot_state) == [HELD, STALE, FREED]
    assert list(SHOT.slot_state) == [FREED, STALE, FREED]


def test_nothing_is_stale_any_more():
    assert anything_stale(SHOT)
    assert list(with_nothing_stale(SHOT).slot_state) == [FREED, HELD, FREED]
    fine = graph(N("a", "", (HELD,)))
    assert with_nothing_stale(fine) is fine


def test_an_inner_operand_that_may_be_stale_counts():
    assert anything_stale(replace(graph(N("a", "", (HELD,))), facts={0: NodeFacts(inner_stale=None)}))


def test_a_cut_takes_away_these_edges_and_keeps_the_others():
    shot = cut(SHOT, {0})
    assert reachable(shot, [0]) == {0, 2}
    assert reachable(shot, [1]) == {1, 3}
    assert reachable(SHOT, [0, -1]) == {0, 1, 2, 3}
