"""A snapshot that builds on an earlier one is the same as a snapshot without `previous`."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import Any

import pytest
import torch
from graphs import Held, leaf, states

from graphwidget import torch_internals as ti
from graphwidget.capture.graph import slots as slots_module
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.model import SlotState, Snapshot


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, twice = ctx.saved_tensors
        return g * twice


class Program:
    """A random program, one step at a time. Steps that raise may still change the graph."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.leaves = [leaf(4) for _ in range(3)]
        self.tensors: list[torch.Tensor] = list(self.leaves)

    def step(self) -> None:
        pick = self.random.choice
        a, b = pick(self.tensors), pick(self.tensors)
        steps = [*[self.build] * 6, self.backward, self.backward, self.partial, self.write, self.detach, self.drop]
        try:
            pick(steps)(a, b)
        except RuntimeError as error:
            assert not str(error).startswith("INTERNAL"), error

    def build(self, a: torch.Tensor, b: torch.Tensor) -> None:
        index = torch.tensor([3, 2, 1, 0])
        made = [
            lambda: a * b,
            lambda: a + b,
            lambda: a.sin() * 1.5,
            lambda: a[index],
            lambda: torch.cat([a[:2], b[:2]]),
            lambda: torch.where(a > 0, a, b),
            lambda: Square.apply(a),
            lambda: a.view(2, 2).t().reshape(4),
            lambda: a.softmax(0),
            lambda: a.exp().max() * b,
        ]
        self.tensors.append(self.random.choice(made)())

    def backward(self, a: torch.Tensor, b: torch.Tensor) -> None:
        a.sum().backward(retain_graph=self.random.random() < 0.3)

    def partial(self, a: torch.Tensor, b: torch.Tensor) -> None:
        a.sum().backward(inputs=[self.random.choice(self.leaves)])

    def write(self, a: torch.Tensor, b: torch.Tensor) -> None:
        with torch.set_grad_enabled(self.random.random() < 0.3):
            a.mul_(0.5)

    def detach(self, a: torch.Tensor, b: torch.Tensor) -> None:
        a.detach_()
        self.tensors = [t for t in self.tensors if t is not a] + [leaf(4)]

    def drop(self, a: torch.Tensor, b: torch.Tensor) -> None:
        if len(self.tensors) > 4:
            self.tensors.pop(3)


class Meddler(Program):
    """Also makes changes that no version counter shows. Another thread makes a part of the graph."""

    def step(self) -> None:
        for _ in range(self.random.choice([0, 1, 1, 8])):
            super().step()
        a = self.random.choice(self.tensors)
        meddle = [self.nothing, self.nothing, self.swap, self.resize, self.pack_later, self.pack, self.elsewhere]
        try:
            self.random.choice(meddle)(a)
        except RuntimeError as error:
            assert not str(error).startswith("INTERNAL"), error

    def nothing(self, a: torch.Tensor) -> None:
        pass

    def swap(self, a: torch.Tensor) -> None:
        a.data = torch.rand(4, dtype=self.random.choice([torch.float32, torch.float64]))

    def resize(self, a: torch.Tensor) -> None:
        a.untyped_storage().resize_(self.random.choice([64, 128, 256]))

    def pack_later(self, a: torch.Tensor) -> None:
        raw = [name for name in dir(a.grad_fn) if name.startswith("_raw_saved_")] if a.grad_fn is not None else []
        for slot in [getattr(a.grad_fn, name) for name in raw]:
            if isinstance(slot, torch._C._autograd.SavedTensor) and slot.data is not None:
                slot.register_hooks(lambda t: t, lambda t: t)

    def pack(self, a: torch.Tensor) -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, 1), lambda packed: packed[0]):
            self.tensors.append(a.exp() * a)

    def elsewhere(self, a: torch.Tensor) -> None:
        if self.random.random() < 0.2:
            thread = threading.Thread(target=lambda: self.tensors.append(leaf(4).sin().cos()))
            thread.start()
            thread.join()


def node_columns(snapshot: Snapshot) -> dict[int, Any]:
    """uid -> everything that the snapshot says about the node."""
    found = {}
    for node in snapshot.nodes:
        inputs = snapshot.edge_nr[snapshot.edge_start[node.index] : snapshot.edge_start[node.index + 1]]
        edges = [(after.uid, nr) for after, nr in zip(node.next, inputs, strict=True)]
        leaf, facts = node.leaf, snapshot.facts.get(node.index)
        if leaf is not None and leaf.grad_storage >= 0:
            leaf = replace(leaf, grad_storage=snapshot.storages.key[leaf.grad_storage])
        if facts is not None:
            facts = replace(facts, operands=tuple(sorted(snapshot.storages.key[at] for at in facts.operands)))
        found[node.uid] = (node.name, node.sequence_nr, node.kind, edges, leaf, facts)
    assert len(found) == len(snapshot)
    return found


def owners_of(snapshot: Snapshot) -> list[Any]:
    return [(owner.path, snapshot.uid[owner.node], owner.output_nr, owner.kind) for owner in snapshot.owners]


def slots(snapshot: Snapshot) -> dict[tuple[int, str], Any]:
    """(uid, slot) -> everything about the slot. The length of a freed list is left out: only `previous` knows it."""
    found: dict[tuple[int, str], Any] = {}
    for node in snapshot.nodes:
        for slot in node.saved:
            if slot.state is SlotState.FREED:
                found[node.uid, slot.name.partition("[")[0]] = (slot.state, snapshot.slot_freed_by[slot.slot])
            else:
                key = None if slot.storage is None else (slot.storage.key, slot.storage.bytes, slot.storage.owners)
                version = snapshot.slot_version[slot.slot]
                assert version < 0 or slot.state in (SlotState.HELD, SlotState.UNKNOWN)
                found[node.uid, slot.name] = (slot.state, slot.dtype, slot.shape, slot.bytes, key, version)
    return found


def remember(seen: dict[tuple[int, str], Any], snapshot: Snapshot) -> None:
    """Check that a freed slot still shows the type, shape and bytes that it had; remember those of others."""
    for node in snapshot.nodes:
        for slot in node.saved:
            what = (slot.dtype, slot.shape, slot.bytes)
            if slot.state is not SlotState.FREED:
                seen[node.uid, slot.name] = what
            elif (node.uid, slot.name) in seen:
                assert seen[node.uid, slot.name] == what


@pytest.mark.parametrize("piece", [3, 2048])
@pytest.mark.parametrize("kind", [Program, Meddler])
@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_a_fresh_one_says_whatever_happened_in_between(
    seed: int, kind: type[Program], piece: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slots_module, "PIECE", piece)
    program, identity = kind(seed), Identity()
    previous, met, seen = None, set(), {}
    for _ in range(25):
        program.step()
        owners = [Held(f"t[{i}]", tensor) for i, tensor in enumerate(program.tensors)]
        freed_by = dict.fromkeys(range(0, 10000, 2), 3)
        built = take([], owners=owners, identity=identity, previous=previous, freed_by=freed_by)
        fresh = take([], owners=owners, identity=identity, freed_by=freed_by)
        del owners
        assert node_columns(built) == node_columns(fresh)
        assert owners_of(built) == owners_of(fresh)
        one, two = slots(built), slots(fresh)
        assert one.keys() == two.keys()
        for key, value in two.items():  # of a view that may be stale, an earlier snapshot may have proved more
            assert one[key] == value or value[0] is SlotState.UNKNOWN, (key, one[key], value)
        met.update(value[0] for value in one.values())
        remember(seen, built)
        previous = built
    assert SlotState.HELD in met


def test_random_programs_meet_every_state_that_they_can():
    met = set()
    for seed in range(40):
        program = Program(seed)
        for _ in range(25):
            program.step()
        snapshot = take([], owners=[Held(str(i), t) for i, t in enumerate(program.tensors)])
        met.update(slot.state.word for node in snapshot.nodes for slot in node.saved)
    assert {"held", "freed", "stale", "unsaved"} <= met


def test_what_was_freed_is_copied_and_not_read_again(monkeypatch: pytest.MonkeyPatch):
    x = leaf(3)
    loss = (x.sin() * x).sum()
    identity = Identity()
    before = take([loss], identity=identity)
    loss.backward()
    freed = take([loss], identity=identity, previous=before)
    newer = loss * x.cos().sum()
    read = []
    data_of = ti.data_of_slot
    monkeypatch.setattr(ti, "data_of_slot", lambda slot: read.append(slot) or data_of(slot))
    after = take([newer], identity=identity, previous=freed)
    assert states(after, "SinBackward0") == {"self": "freed"}
    assert len(read) == sum(slot.state is SlotState.HELD for node in after.nodes for slot in node.saved) == 3


def test_who_freed_it_may_be_learnt_later():
    x = leaf(3)
    loss = x.sin().sum()
    identity = Identity()
    loss.backward()
    unknown = take([loss], identity=identity)
    sine = next(node for node in unknown.nodes if node.name == "SinBackward0")
    assert sine.saved[0].freed_by is None
    known = take([loss], identity=identity, previous=unknown, freed_by={sine.uid: 4})
    assert known.node(sine.index).saved[0].freed_by == 4
