"""Shared parts, boundaries and ways through a graph, against plain recomputation."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import graphs, snapshot

from graphwidget.analysis import sharing
from graphwidget.model import Kind


def below(shot, start):
    """Everything reachable from a node, itself included."""
    found, work = {start}, [start]
    while work:
        for node in shot.next(work.pop()):
            if node not in found:
                found.add(node)
                work.append(node)
    return found


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_reach_and_shared_agree_with_a_walk_from_every_root(shot):
    roots = sharing.root_nodes(shot)
    reached = [below(shot, root) for root in roots]
    bits = sharing.reach(shot)
    for node in range(len(shot)):
        assert bits[node] == sum(1 << i for i, nodes in enumerate(reached) if node in nodes)
    assert sharing.shared(shot) == [n for n in range(len(shot)) if sum(n in nodes for nodes in reached) >= 2]


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_topological_order_puts_every_node_before_its_successors(shot):
    order = sharing.topological(shot, range(len(shot)))
    place = {node: i for i, node in enumerate(order)}
    assert sorted(order) == list(range(len(shot)))
    assert all(place[node] < place[following] for node in order for following in shot.next(node))


@settings(max_examples=100, deadline=None)
@given(graphs(), st.data())
def test_the_border_is_where_an_edge_enters_the_part(shot, data):
    part = data.draw(st.sets(st.integers(0, len(shot) - 1)))
    entered = {t for n in range(len(shot)) if n not in part for t in shot.next(n) if t in part}
    assert sharing.border(shot, part) == sorted(entered)


@settings(max_examples=200, deadline=None)
@given(graphs(), st.data())
def test_a_boundary_joins_new_nodes_above_to_old_nodes_below(shot, data):
    root = data.draw(st.integers(0, len(shot) - 1))
    old = data.draw(st.sets(st.sampled_from(list(shot.uid))))
    found = sharing.boundary(shot, [root], old)
    if shot.uid[root] in old:
        assert found == [(root, 0, -1)]
        return
    new, work = {root}, [root]
    expected = set()
    while work:
        node = work.pop()
        for following in shot.next(node):
            if shot.uid[following] in old:
                expected.add((following, 0, node))
            elif following not in new:
                new.add(following)
                work.append(following)
    assert set(found) == expected and len(found) == len(expected)


def test_a_leaf_is_no_boundary_and_an_old_root_names_its_output():
    shot = snapshot([[1, 2], [], []], roots=[0])
    shot.kind[2] = Kind.ACCUMULATE
    assert sharing.boundary(shot, [0], {101, 102}) == [(1, 0, 0)]
    assert sharing.boundary(shot, [0], {100}) == [(0, 0, -1)]


@settings(max_examples=100, deadline=None)
@given(graphs(), st.data())
def test_a_path_is_a_way_and_none_is_shorter(shot, data):
    root, target = data.draw(st.integers(0, len(shot) - 1)), data.draw(st.integers(0, len(shot) - 1))
    way = sharing.path(shot, root, target)
    layers, seen = [{root}], {root}
    while layers[-1]:
        layers.append({t for n in layers[-1] for t in shot.next(n)} - seen)
        seen |= layers[-1]
    distance = next((i for i, layer in enumerate(layers) if target in layer), None)
    if distance is None:
        assert way == []
    else:
        assert (way[0], way[-1], len(way)) == (root, target, distance + 1)
        assert all(b in shot.next(a) for a, b in zip(way, way[1:], strict=False))


def test_labels_on_the_way_and_the_node_at_its_end():
    shot = snapshot([[1], [2], [3], []], owners=[("loss", 0), ("y", 2), ("second", 2)])
    assert sharing.path_labels(shot, 0, 3) == ["loss", "y", "Node3"]


def test_a_chain_of_a_hundred_thousand_nodes_with_thirty_roots_takes_no_recursion_and_little_time():
    n = 100_000
    shot = snapshot([[i + 1] for i in range(n - 1)] + [[]], roots=range(30))
    start = time.perf_counter()
    assert len(sharing.shared(shot)) == n - 1
    assert time.perf_counter() - start < 3
