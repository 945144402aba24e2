"""A walk follows the snapshot before it: what is known is picked up, what is new is described, what died is left out."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from graphwidget.capture import torch_internals as ti
from graphwidget.capture.identity import Identity
from graphwidget.capture.memo import KEPT, Memo
from graphwidget.capture.snapshot import take
from graphwidget.model import Snapshot
from tests.capture.graphs import Held, leaf, node, states

NODE_COLUMNS = "uid name seq kind edge_start edge_to edge_nr".split()
SLOT_COLUMNS = "slot_start slot_name slot_state slot_dtype slot_shape slot_bytes slot_storage slot_version".split()


class Session:
    """Snapshots of some named tensors, each with the one before as `previous`."""

    def __init__(self) -> None:
        self.identity = Identity()
        self.last: Snapshot | None = None

    def look(self, **tensors: torch.Tensor) -> Snapshot:
        held = [Held(name, tensor) for name, tensor in tensors.items()]
        self.last = take([], owners=held, identity=self.identity, previous=self.last)
        return self.last


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the nodes that are asked for their number to be described."""
    asked: list[str] = []
    numbers = ti.sequence_numbers
    monkeypatch.setattr(
        ti, "sequence_numbers", lambda nodes, types: asked.extend(t.__name__ for t in types) or numbers(nodes, types)
    )
    return asked


def test_an_unchanged_graph_is_not_described_again_and_shares_its_columns(described: list[str]):
    session = Session()
    loss = (leaf(3).sin() * leaf(3)).sum()
    first = session.look(loss=loss)
    described.clear()
    second = session.look(loss=loss)
    assert described == []
    assert all(getattr(second, name) is getattr(first, name) for name in NODE_COLUMNS + SLOT_COLUMNS)


def test_what_is_new_stands_first_and_alone_is_described(described: list[str]):
    session = Session()
    h = leaf(3).sin()
    first = session.look(h=h)
    described.clear()
    h = h.exp() * h  # the old tensor has no name any more
    second = session.look(h=h)
    assert described == ["MulBackward0", "ExpBackward0"]
    assert list(second.uid[2:]) == list(first.uid)
    sine = node(second, "SinBackward0")
    assert [n.uid for n in node(second, "MulBackward0").next] == [node(second, "ExpBackward0").uid, sine.uid]
    assert [n.name for n in sine.next] == ["AccumulateGrad"]


def test_nodes_that_died_are_left_out(described: list[str]):
    session = Session()
    h = leaf(3).sin()
    session.look(h=h, loss=h.exp().sum())
    described.clear()
    now = session.look(h=h, other=h.cos())
    assert described == ["CosBackward0"]
    assert sorted(n.name for n in now.nodes) == ["AccumulateGrad", "CosBackward0", "SinBackward0"]
    assert [n.name for n in node(now, "CosBackward0").next] == ["SinBackward0"]
    assert states(now, "SinBackward0") == {"self": "held"}


def test_a_second_output_keeps_its_number_in_the_part_that_is_known():
    session = Session()
    low, high = leaf(4).chunk(2)
    loss = low.sum() * 2 + high.exp().sum()
    session.look(loss=loss)
    now = session.look(more=loss + 1)
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
    session.look(a=made[0])
    make_in()
    assert numbers[0] == numbers[1]  # each thread counts from 0
    both = session.look(a=made[0], b=made[1])
    assert len(both) == len(set(both.uid)) == 4
    assert len(session.look(a=made[0], b=made[1])) == 4


def test_a_leaf_whose_data_was_replaced_is_another_one_for_the_old_part_and_the_new():
    session = Session()
    x = leaf(3)
    y = x.sin()
    before = node(session.look(y=y), "AccumulateGrad").uid
    x.data = torch.ones(3)
    z = x.cos()
    now = session.look(y=y, z=z)
    assert node(now, "AccumulateGrad").uid != before
    assert [n.uid for n in node(now, "SinBackward0").next] == [n.uid for n in node(now, "CosBackward0").next]


def test_a_model_that_changed_its_type_while_a_graph_lives():
    session = Session()
    model = nn.Linear(2, 1)
    old = model(torch.ones(1, 2))
    session.look(old=old)
    model.double()
    new = model(torch.ones(1, 2, dtype=torch.float64))
    for _ in range(2):
        both = session.look(old=old, new=new)
        assert len(set(both.uid)) == len(both)
    assert [n.name for n in both.nodes].count("AccumulateGrad") == 4
    uids = {n.uid for n in both.nodes if n.name == "AccumulateGrad"}
    del old
    alive = session.look(new=new)
    assert {n.uid for n in alive.nodes if n.name == "AccumulateGrad"} < uids


def test_only_the_latest_memos_are_kept_and_an_older_snapshot_does_as_well():
    identity = Identity()
    x = leaf(3)
    y = x.sin() * x
    taken = [take([y], identity=identity) for _ in range(KEPT + 2)]
    assert [len(s.memo.look) > 0 for s in taken] == [False, False] + [True] * KEPT
    with torch.no_grad():
        x.mul_(2)
    now = take([y], identity=identity, previous=taken[0])
    assert states(now, "SinBackward0") == {"self": "stale"}
    assert isinstance(identity.memos.of(taken[0]), Memo)


def test_following_keeps_nothing_alive():
    session = Session()
    x = leaf(3)
    h = x.sin()
    memory = ti.weak_memory(h)
    y = h.exp() * h
    for _ in range(3):
        session.look(y=y)
    del h, y
    gc.collect()
    assert memory.expired()


def test_gradients_are_the_same_whether_the_graph_was_followed_or_not():
    def gradient(watched: bool) -> list[float]:
        torch.manual_seed(0)
        session, x = Session(), leaf(5)
        h = x
        for _ in range(4):
            h = (h * x).tanh()
            if watched:
                session.look(h=h, x=x)
        h.sum().backward()
        return x.grad.tolist()

    assert gradient(True) == gradient(False)


GROWS = """
import torch
from graphwidget.capture.identity import Identity
from graphwidget.capture.snapshot import take
identity, last = Identity(), None
h = torch.ones(1, requires_grad=True)
for _ in range(30):  # no part is deep enough to overflow the stack alone
    for _ in range(3_000):
        h = h + 1
    last = take([h], identity=identity, previous=last)
assert len(last) == 90_001, len(last)
del h
print("dropped")
"""


def test_a_deep_graph_that_grew_from_snapshot_to_snapshot_is_safe_to_drop():
    done = subprocess.run([sys.executable, "-c", GROWS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "dropped\n"), done.stderr
