"""Merged snapshots: dead and living nodes together, each as in its newest snapshot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import torch
from graphs import leaf

from graphwidget.capture.ghosts import merged
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.model import Place, Snapshot


def described(snapshot: Snapshot) -> dict[int, dict[str, Any]]:
    """Return uid -> description of the node, without indices, which have a meaning only in one snapshot."""
    return {
        node.uid: {
            "node": (node.name, node.sequence_nr, node.kind, node.place, node.module),
            "edges": [
                (snapshot.uid[snapshot.edge_to[edge]], snapshot.edge_nr[edge])
                for edge in range(snapshot.edge_start[node.index], snapshot.edge_start[node.index + 1])
            ],
            "slots": [(s.name, s.state, s.dtype, s.shape, s.freed_by) for s in node.saved],
            "leaf": snapshot.leaves.get(node.index),
            "facts": snapshot.facts.get(node.index),
        }
        for node in snapshot.nodes
    }


def expected(live: Snapshot, past: Sequence[Snapshot]) -> dict[int, dict[str, Any]]:
    dead = {uid: node for graph in past for uid, node in described(graph).items() if uid not in live.index_of}
    for node in dead.values():
        if node["leaf"] is not None:
            node["leaf"] = replace(node["leaf"], grad_storage=-1)
    return described(live) | dead


class Places:
    """Returns the place for each sequence number, like `Provenance`."""

    def place_of(self, number: int, name: str) -> Place:
        return Place(number % 3, number % 5, name)

    def module_of(self, number: int, name: str) -> None:
        return None


@pytest.mark.parametrize("seed", range(12))
def test_every_node_is_as_its_newest_snapshot_has_it(seed: int) -> None:
    pick, identity, places = random.Random(seed), Identity(), Places()
    torch.manual_seed(seed)
    leaves = [leaf(3) for _ in range(3)]
    tensors, taken = list(leaves), list[Snapshot]()
    for _ in range(60):
        a, b = pick.choice(tensors), pick.choice(tensors)
        make = [lambda: a * b, lambda: a + b, lambda: a.sin(), lambda: torch.cat([a[:1], b[:2]]), lambda: a.double()]
        tensors.append(pick.choice(make)())
        if pick.random() < 0.2 and tensors[-1].grad_fn is not None:
            with suppress(RuntimeError):  # a second time
                tensors[-1].sum().backward(retain_graph=pick.random() < 0.5)
        if pick.random() < 0.3:
            roots = pick.sample(tensors, min(3, len(tensors)))
            taken.append(take(roots, identity=identity, places=places))
        if pick.random() < 0.3:
            del tensors[3 : 3 + pick.randrange(12)]
        if pick.random() < 0.05:
            tensors[:3] = [leaf(3) for _ in range(3)]
    live = take(tensors[-2:], identity=identity, places=places)
    alive = described(live)
    for past in (taken[-1:], taken[-2:], taken):
        drawn = merged(live, past)
        assert described(drawn) == expected(live, past)
        assert {uid for uid, ghost in zip(drawn.uid, drawn.ghost, strict=True) if not ghost} == alive.keys()
        assert drawn.held_bytes() == live.held_bytes()
        assert drawn.roots[: len(live.roots)] == live.roots
        roots = {graph.uid[root.node] for graph in past for root in graph.roots if root.node >= 0} - alive.keys()
        assert {drawn.uid[root.node] for root in drawn.roots[len(live.roots) :]} == roots
    assert described(live) == alive  # the drawing shares no column with it


def test_without_dead_nodes_the_live_snapshot_itself_is_drawn() -> None:
    identity, x = Identity(), leaf(2)
    loss = (x * x).sum()
    live = take([loss], identity=identity)
    assert merged(live, []) is live
    assert merged(live, [take([loss], identity=identity)]) is live
