"""Walks of a graph that changes: nodes keep their uids, new nodes get new uids, dead nodes are left out."""

from __future__ import annotations

import gc
import threading

import pytest
import torch
from graphs import Held, leaf, node, states
from torch import nn

from graphwidget import torch_internals as ti
from graphwidget.capture.graph import walk
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.model import Snapshot

NODE_COLUMNS = "uid name seq kind edge_start edge_to edge_nr".split()
SLOT_COLUMNS = "slot_start slot_name slot_state slot_dtype slot_shape slot_bytes slot_storage slot_version".split()


class Session:
    """Takes snapshots of named tensors, each with the last one as `previous`."""

    def __init__(self) -> None:
        self.identity = Identity()
        self.last: Snapshot | None = None

    def snapshot_of(self, **tensors: torch.Tensor) -> Snapshot:
        held = [Held(name, tensor) for name, tensor in tensors.items()]
        self.last = take([], owners=held, identity=self.identity, previous=self.last)
        return self.last


@pytest.fixture(autouse=True, params=[1, 3, walk.PIECE], ids="in pieces of {}".format)
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "PIECE", request.param)


def test_an_unchanged_graph_has_the_same_columns():
    session = Session()
    loss = (leaf(3).sin() * leaf(3)).sum()
    first = session.snapshot_of(loss=loss)
    second = session.snapshot_of(loss=loss)
    assert all(getattr(second, name) == getattr(first, name) for name in NODE_COLUMNS + SLOT_COLUMNS)


def test_nodes_that_were_there_before_keep_their_uids():
    session = Session()
    h = leaf(3).sin()
    first = session.snapshot_of(h=h)
    h = h.exp() * h  # the old tensor has no name any more
    second = session.snapshot_of(h=h)
    assert [n.name for n in second.nodes] == ["MulBackward0", "ExpBackward0", "SinBackward0", "AccumulateGrad"]
    assert list(second.uid[2:]) == list(first.uid)
    sine = node(second, "SinBackward0")
    assert [n.uid for n in node(second, "MulBackward0").next] == [node(second, "ExpBackward0").uid, sine.uid]
    assert [n.name for n in sine.next] == ["AccumulateGrad"]


def test_nodes_that_died_are_left_out():
    session = Session()
    h = leaf(3).sin()
    session.snapshot_of(h=h, loss=h.exp().sum())
    now = session.snapshot_of(h=h, other=h.cos())
    assert sorted(n.name for n in now.nodes) == ["AccumulateGrad", "CosBackward0", "SinBackward0"]
    assert [n.name for n in node(now, "CosBackward0").next] == ["SinBackward0"]
    assert states(now, "SinBackward0") == {"self": "held"}


def test_a_second_output_keeps_its_number_in_the_part_that_is_known():
    session = Session()
    low, high = leaf(4).chunk(2)
    loss = low.sum() * 2 + high.exp().sum()
    session.snapshot_of(loss=loss)
    now = session.snapshot_of(more=loss + 1)
    assert sorted(now.edge_nr) == [0] * (len(now.edge_nr) - 1) + [1]
    at = now.edge_start[node(now, "ExpBackward0").index]
    assert now.edge_nr[at] == 1


def test_a_node_of_another_thread_with_number_and_name_of_a_known_one_is_not_taken_for_it():
    session = Session()

    def make() -> None:
        before = ti.next_number()
        made.append(leaf(3).sin())
        numbers.append(before)

    made: list[torch.Tensor] = []
    numbers: list[int] = []
    make_in = lambda: (t := threading.Thread(target=make), t.start(), t.join())  # noqa: E731
    make_in()
    session.snapshot_of(a=made[0])
    make_in()
    assert numbers[0] == numbers[1]  # each thread counts from 0
    both = session.snapshot_of(a=made[0], b=made[1])
    assert len(both) == len(set(both.uid)) == 4
    uids = {owner.path: both.uid[owner.node] for owner in both.owners}
    alone = session.snapshot_of(b=made[1])
    assert {owner.path: alone.uid[owner.node] for owner in alone.owners} == {"b": uids["b"]}


def test_a_node_of_another_thread_is_not_taken_for_a_dead_one_below_which_there_was_something_else():
    session, made = Session(), []

    def make(*steps: str) -> None:
        h = leaf(3)
        for step in steps:
            h = getattr(h, step)()
        made.append(h)

    for steps in (["sin", "exp"], ["cos", "exp"], ["cos", "sin", "exp"], ["exp"]):
        made.clear()
        gc.collect()
        thread = threading.Thread(target=make, args=steps)
        thread.start()
        thread.join()
        names = [n.name for n in session.snapshot_of(h=made[0]).nodes]
        assert sorted(names) == sorted([f"{step.capitalize()}Backward0" for step in steps] + ["AccumulateGrad"])


@pytest.mark.parametrize("counts", [(2, 3), (3, 2)])
def test_a_node_of_another_thread_is_not_taken_for_a_dead_one_with_more_inputs_or_fewer(counts: tuple[int, int]):
    session, made = Session(), []
    for count in counts:
        made.clear()
        gc.collect()
        thread = threading.Thread(target=lambda n=count: made.append(torch.cat([leaf(3) for _ in range(n)])))
        thread.start()
        thread.join()
        now = session.snapshot_of(h=made[0])
        assert len(node(now, "CatBackward0").next) == count
        assert len(now) == 1 + count


def test_a_leaf_whose_data_was_replaced_is_another_one_for_the_old_part_and_the_new():
    session = Session()
    x = leaf(3)
    y = x.sin()
    before = node(session.snapshot_of(y=y), "AccumulateGrad").uid
    x.data = torch.ones(3)
    z = x.cos()
    now = session.snapshot_of(y=y, z=z)
    assert node(now, "AccumulateGrad").uid != before
    assert [n.uid for n in node(now, "SinBackward0").next] == [n.uid for n in node(now, "CosBackward0").next]


def test_a_model_that_changed_its_type_while_a_graph_lives():
    session = Session()
    model = nn.Linear(2, 1)
    old = model(torch.ones(1, 2))
    session.snapshot_of(old=old)
    model.double()
    new = model(torch.ones(1, 2, dtype=torch.float64))

    def leaves(snapshot: Snapshot, path: str) -> set[int]:
        top = next(owner.node for owner in snapshot.owners if owner.path == path)
        below = snapshot.node(top).next
        return {n.uid for n in (*below, *(m for n in below for m in n.next)) if n.name == "AccumulateGrad"}

    both = session.snapshot_of(old=old, new=new)
    assert len(set(both.uid)) == len(both)
    one, two = leaves(both, "old"), leaves(both, "new")
    assert len(one) == len(two) == 2 and not one & two
    assert set(session.snapshot_of(old=old, new=new).uid) == set(both.uid)
    turned = take([], owners=[Held("new", new), Held("old", old)], identity=session.identity)
    assert (leaves(turned, "old"), leaves(turned, "new")) == (one, two)
    del old
    assert leaves(session.snapshot_of(new=new), "new") == two
    again = session.snapshot_of(new=new, more=model(torch.ones(1, 2, dtype=torch.float64)))
    assert leaves(again, "more") == two


def test_nothing_left():
    session = Session()
    session.snapshot_of(y=leaf(3).sin())
    now = session.snapshot_of()
    assert (len(now), len(now.slot_state), list(now.slot_start), len(now.storages)) == (0, 0, [0], 0)


def test_a_tensor_outside_the_graph_has_no_node_in_it_though_it_had_one_before():
    session = Session()
    h, z = leaf(3).sin(), leaf(3).cos()
    session.snapshot_of(h=h, z=z)
    now = take([z.sum()], inputs=[h], identity=session.identity, previous=session.last)
    assert [ref.node for ref in now.inputs] == [-1]
    known = take([h.sum()], inputs=[h], identity=session.identity, previous=session.last)
    assert [known.name_of(ref.node) for ref in known.inputs] == ["SinBackward0"]


def test_earlier_snapshots_keep_nothing_alive():
    session = Session()
    x = leaf(3)
    h = x.sin()
    memory = ti.weak_memory(h)
    y = h.exp() * h
    for _ in range(3):
        session.snapshot_of(y=y)
    del h, y
    gc.collect()
    assert memory.expired()


def test_gradients_are_the_same_whether_snapshots_were_taken_or_not():
    def gradient(watched: bool) -> list[float]:
        torch.manual_seed(0)
        session, x = Session(), leaf(5)
        h = x
        for _ in range(4):
            h = (h * x).tanh()
            if watched:
                session.snapshot_of(h=h, x=x)
        h.sum().backward()
        return x.grad.tolist()

    assert gradient(True) == gradient(False)
