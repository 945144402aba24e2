"""Retained sizes against brute force: delete the owner, walk again, count what is gone."""

from __future__ import annotations

import random

import networkx
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import graphs, snapshot

from graphwidget.engine import memory
from graphwidget.model import SlotState, Storage

HELD, FREED, STALE = SlotState.HELD, SlotState.FREED, SlotState.STALE
KEPT = (HELD, STALE, SlotState.PACKED)


def alive(shot, gone=()):
    """(nodes, bytes) that remain when the paths `gone` are deleted, found by a walk from all other owners."""
    held = {owner.node for owner in shot.owners}
    entered = {t for n in range(len(shot)) for t in shot.next(n)}
    unknown = [n for n in range(len(shot)) if n not in held and n not in entered]
    found = {owner.node for owner in shot.owners if owner.path not in gone} | set(unknown)
    work = list(found)
    while work:
        for node in shot.next(work.pop()):
            if node not in found:
                found.add(node)
                work.append(node)
    storages = {at for at, s in enumerate(shot.storages) if any(path not in gone for path in s.owners)}
    loose = 0
    for node in found:
        for slot in shot.slots_of(node):
            if shot.slot_state[slot] in KEPT:
                if shot.slot_storage[slot] >= 0:
                    storages.add(shot.slot_storage[slot])
                else:
                    loose += shot.slot_bytes[slot]
    return len(found), loose + sum(shot.storages[at].bytes for at in storages)


@settings(max_examples=400)
@given(graphs())
def test_what_a_path_retains_is_what_its_deletion_releases(shot):
    before = alive(shot)
    paths = {owner.path for owner in shot.owners} | {path for s in shot.storages for path in s.owners}
    variables = {}
    for path in paths:
        variables.setdefault(path if path == "x.grad" else memory.variable_of(path), set()).add(path)
    figures = memory.retained(shot)
    assert set(figures) == paths | set(variables)
    for name, gone in [*((p, {p}) for p in paths if p not in variables), *variables.items()]:
        after = alive(shot, gone)
        assert (figures[name].nodes, figures[name].bytes) == (before[0] - after[0], before[1] - after[1]), name


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.integers(2, 40))
def test_dominators_agree_with_networkx(seed, size):
    rng = random.Random(seed)
    oracle = networkx.DiGraph()
    tree = memory.Dominators(size)
    for vertex in range(1, size):
        for source in {rng.randrange(vertex) for _ in range(rng.randint(1, 4))}:
            oracle.add_edge(source, vertex)
            tree.reach(source, vertex)
        tree.settle(vertex)
    expected = networkx.immediate_dominators(oracle, 0)
    assert all(tree.idom[vertex] == expected[vertex] for vertex in range(1, size))


def test_two_names_of_one_tensor_retain_nothing_each_and_say_so():
    shot = snapshot(
        [[1], []],
        owners=[("y", 0), ("z", 0)],
        slots=[[(HELD, 0)], []],
        storages=[Storage(0, 64)],
    )
    figures = memory.retained(shot)
    assert (figures["y"].nodes, figures["y"].bytes, figures["y"].also) == (0, 0, ("z",))


def test_a_list_retains_what_its_elements_share():
    shot = snapshot(
        [[2], [2], []],
        owners=[("temp[0]", 0), ("temp[1]", 1)],
        slots=[[], [], [(HELD, 0)]],
        storages=[Storage(0, 64)],
    )
    figures = memory.retained(shot)
    assert (figures["temp[0]"].nodes, figures["temp[0]"].bytes) == (1, 0)
    assert (figures["temp"].kind, figures["temp"].nodes, figures["temp"].bytes) == ("container", 3, 64)


def test_a_parameter_keeps_the_memory_that_a_slot_refers_to():
    shot = snapshot([[]], owners=[("y", 0)], slots=[[(HELD, 0)]], storages=[Storage(0, 64, owners=("fc.weight",))])
    assert memory.retained(shot)["y"].bytes == 0


def test_deleting_a_leaf_does_not_release_the_graph_of_its_gradient():
    shot = snapshot([[1], []], owners=[("x.grad", 0), ("x", 1)])
    figures = memory.retained(shot)
    assert figures["x.grad"].nodes == 1
    assert figures["x"].nodes == 0


def test_ghosts_keep_nothing_and_unknown_holders_keep_theirs():
    shot = snapshot([[2], [2], []], owners=[("y", 1)], ghosts={0})
    assert memory.retained(shot)["y"].nodes == 2
    unknown = snapshot([[2], [2], []], owners=[("y", 1)])
    assert memory.retained(unknown)["y"].nodes == 1


def test_kept_by_lists_every_path_above_a_node_the_weightiest_first():
    shot = snapshot([[2], [2], []], owners=[("loss", 0), ("other", 1), ("y", 2), ("x", 0)])
    assert {r.path for r in memory.kept_by(shot, 2)} == {"loss", "other", "y", "x"}
    assert {r.path for r in memory.kept_by(shot, 0)} == {"loss", "x"}
    assert memory.kept_by(shot, 2)[0].path == "other"


def test_variables_of_paths():
    for path, variable in {
        "y": "y",
        "temp[0].h": "temp",
        "model.hidden[0]": "model",
        "list(d.values())[2]": "d",
        "vars(list(s)[0])['a']": "s",
        "Out[3][0]": "Out[3]",
        "step:act[1]": "step:act",
        "sys.last_traceback: act": "sys.last_traceback",
        "loss_of.__closure__[h]": "loss_of",
        "get_ipython().last_execution_result.result": "get_ipython().last_execution_result.result",
    }.items():
        assert memory.variable_of(path) == variable


def test_a_hundred_thousand_nodes_in_a_chain_share_one_leaf():
    n = 100_000
    shot = snapshot(
        [[i + 1, n - 1] for i in range(n - 2)] + [[n - 1], []],
        owners=[("loss", 0), ("h", n // 2)],
        slots=[[(HELD, i % 1000)] for i in range(n)],
        storages=[Storage(i, 8) for i in range(1000)],
    )
    figures = memory.retained(shot)
    assert figures["loss"].nodes == n // 2
    assert len(memory.kept_by(shot, n - 1)) == 2
