"""Snapshots of small graphs: columns, roots, leaves, owners."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from graphs import Held, leaf, node, states

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take

pytestmark = pytest.mark.filterwarnings("error")


# ---------------------------------------------------------------- columns


def test_a_snapshot_names_nodes_edges_and_slots():
    x = leaf(3, 4)
    loss = (x.sin() * x).sum()
    snapshot = take([loss])
    assert [n.name for n in snapshot.nodes] == ["SumBackward0", "MulBackward0", "SinBackward0", "AccumulateGrad"]
    product = node(snapshot, "MulBackward0")
    assert {slot.name: (slot.dtype, slot.shape, slot.bytes) for slot in product.saved} == {
        "self": ("float32", (3, 4), 48),
        "other": ("float32", (3, 4), 48),
    }
    assert sorted(n.name for n in product.next) == ["AccumulateGrad", "SinBackward0"]
    assert product.sequence_nr == loss.grad_fn.next_functions[0][0]._sequence_nr()
    assert node(snapshot, "AccumulateGrad").leaf.shape == (3, 4)
    assert snapshot.roots[0].node == 0 and snapshot.roots[0].shape == ()


def test_slots_of_one_storage_count_once():
    x = leaf(10)
    snapshot = take([(x.sin() * x.cos() * x.exp()).sum()])
    of_x = [
        slot
        for n in snapshot.nodes
        for slot in n.saved
        if slot.storage and slot.storage.key == x.untyped_storage()._cdata
    ]
    assert len(of_x) == 2
    assert snapshot.held_bytes() == sum(s.bytes for s in snapshot.storages)


def test_slots_come_in_the_order_in_which_the_node_unpacks_them():
    loss = F.layer_norm(leaf(2, 3), (3,), leaf(3), leaf(3)).sum()
    norm = loss.grad_fn.next_functions[0][0]
    raw = [k.removeprefix("_raw_saved_") for k in type(norm).__dict__ if k.startswith("_raw_saved_")]
    assert [slot.name for slot in node(take([loss]), type(norm).__name__).saved] == raw


def test_backward_frees_and_the_call_is_named():
    x = leaf(3)
    loss = (x * x).sum()
    identity = Identity()
    before = take([loss], identity=identity)
    loss.backward()
    product = node(before, "MulBackward0")
    after = take([loss], identity=identity, freed_by={product.uid: 7}, previous=before)
    assert states(after, "MulBackward0") == {"self": "freed", "other": "freed"}
    assert [slot.freed_by for slot in node(after, "MulBackward0").saved] == [7, 7]
    assert [slot.bytes for slot in node(after, "MulBackward0").saved] == [12, 12]  # remembered from before
    assert after.held_bytes() == 0
    assert node(after, "AccumulateGrad").leaf.has_grad


def test_without_an_earlier_snapshot_freed_and_unsaved_are_distinguished():
    x, y = leaf(3), torch.randn(3)
    loss = (x * y).sum()
    assert states(take([loss]), "MulBackward0") == {"self": "unsaved", "other": "held"}
    loss.backward()
    assert states(take([loss]), "MulBackward0") == {"self": "unsaved", "other": "freed"}


def test_list_slots_are_held_then_freed():
    x = leaf(5, 5)
    index = torch.tensor([0, 2])
    loss = x[index, index].sum() + torch.cat([x, x * 2]).sum()
    identity = Identity()
    before = take([loss], identity=identity)
    assert states(before, "IndexBackward0") == {"indices[0]": "held", "indices[1]": "held"}
    loss.backward()
    after = take([loss], identity=identity, previous=before)
    assert states(after, "IndexBackward0") == {"indices[0]": "freed", "indices[1]": "freed"}
    assert states(take([loss]), "IndexBackward0") == {"indices": "freed"}


@pytest.mark.parametrize("first", [True, False], ids=["seen before", "first sight"])
def test_a_write_after_saving_makes_a_slot_stale(first: bool):
    x = leaf(3)
    h = x * 2
    loss = (h * h).sum()
    identity = Identity()
    previous = take([loss], identity=identity) if first else None
    with torch.no_grad():
        h.add_(1)
    snapshot = take([loss], identity=identity, previous=previous)
    square = next(n for n in snapshot.nodes if n.name == "MulBackward0" and len(n.next) == 2)
    assert [slot.state.word for slot in square.saved] == ["stale", "stale"]
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_a_write_before_saving_is_no_harm():
    weight = leaf(3, 3)
    with torch.no_grad():
        weight.mul_(2)
    loss = F.linear(leaf(2, 3), weight).sum()
    name = loss.grad_fn.next_functions[0][0].name()
    before = ti.sequence_nr()
    assert set(states(take([loss]), name).values()) <= {"held", "unsaved"}
    assert ti.sequence_nr() == before


def test_a_hidden_view_of_a_weight_that_was_stepped_is_stale_and_looking_takes_no_number():
    weight = leaf(3, 3)
    loss = torch.mm(leaf(2, 3), weight.t()).sum()
    with torch.no_grad():
        weight.mul_(2)
    before = ti.sequence_nr()
    assert states(take([loss]), "MmBackward0") == {"self": "held", "mat2": "stale"}
    assert ti.sequence_nr() == before


def test_a_view_that_the_user_holds_is_reported_stale_and_left_alone():
    base = leaf(4)
    view = base[0:2]
    loss = (view * view).sum()
    with torch.no_grad():
        base.mul_(2)
    before = ti.sequence_nr()
    snapshot = take([loss], owners=[Held("view", view), Held("loss", loss)])
    assert ti.sequence_nr() == before
    assert states(snapshot, "MulBackward0") == {"self": "stale", "other": "stale"}
    assert [owner.path for owner in snapshot.owners] == ["loss"]
    assert any("view" in note for note in snapshot.notes)
    settled = take([loss], settle=True)
    assert any(slot.state.word == "stale" for n in settled.nodes for slot in n.saved)


def test_what_was_seen_held_proves_a_users_view_stale():
    base = leaf(4)
    view = base[0:2]
    loss = (view * view).sum()
    identity = Identity()
    before = take([loss], identity=identity)
    with torch.no_grad():
        base.mul_(2)
    number = ti.sequence_nr()
    after = take([loss], identity=identity, previous=before)
    assert states(after, "MulBackward0") == {"self": "stale", "other": "stale"}
    assert ti.sequence_nr() == number


def test_a_saved_input_that_was_detached_is_named():
    x = leaf(3)
    h = x * 1.5
    loss = h.sin().sum()
    h.detach_()
    snapshot = take([loss])
    assert states(snapshot, "SinBackward0") == {"self": "stale"}
    assert snapshot.facts[node(snapshot, "SinBackward0").index].detached_slot == "self"
    with pytest.raises(RuntimeError, match="detached in-place"):
        loss.backward()


# ---------------------------------------------------------------- roots, leaves, owners


def test_a_leaf_root_gets_a_node_of_its_own_without_taking_a_number():
    x = leaf(3)
    before = ti.sequence_nr()
    identity = Identity()
    alone = take([x], identity=identity)
    assert ti.sequence_nr() == before
    assert [n.name for n in alone.nodes] == ["AccumulateGrad"]
    assert alone.roots[0].is_leaf and alone.roots[0].node == 0
    assert take([(x * 2).sum()], identity=identity).uid[-1] == alone.uid[0]


def test_a_view_made_under_no_grad_is_a_root_with_a_problem():
    x = leaf(4)
    with torch.no_grad():
        view = x[0:2]
    before = ti.sequence_nr()
    reference = take([view]).roots[0]
    assert (reference.problem, reference.node, reference.requires_grad) == ("no_grad_view", -1, True)
    assert ti.sequence_nr() == before


def test_tensors_without_grad_and_gradient_edges_are_roots_too():
    assert take([torch.ones(2)]).roots[0].requires_grad is False
    y = leaf(2) * 2
    snapshot = take([torch.autograd.graph.get_gradient_edge(y)])
    assert snapshot.roots[0].node == 0 and snapshot.name_of(0) == "MulBackward0"


def test_what_is_no_tensor_is_a_root_that_cannot_be_read():
    assert take(["loss"]).roots[0].problem == "unreadable"


def test_owners_label_nodes_leaves_and_storages():
    w, x = leaf(3), leaf(3)
    h = w * x
    loss = h.sin().sum()
    snapshot = take([loss], owners=[Held("loss", loss), Held("h", h), Held("w", w), Held("model.w", w), Held("x", x)])
    assert snapshot.labels[node(snapshot, "MulBackward0").index] == ("h",)
    assert snapshot.roots[0].path == "loss"
    assert {n.leaf.paths for n in snapshot.nodes if n.leaf} == {("w", "model.w"), ("x",)}
    owners_of = {slot.name: slot.storage.owners for slot in node(snapshot, "MulBackward0").saved}
    assert owners_of == {"self": ("w", "model.w"), "other": ("x",)}


def test_hooks_on_tensors_are_counted():
    x = leaf(3)
    h = x * 2
    h.register_hook(lambda g: g)
    x.register_post_accumulate_grad_hook(lambda p: None)
    loss = h.sum()
    snapshot = take([loss], owners=[Held("h", h)])
    assert snapshot.facts[node(snapshot, "MulBackward0").index].hooks == 1
    assert snapshot.facts[node(snapshot, "AccumulateGrad").index].hooks == 1


def test_places_are_asked_for_by_number_and_name():
    from graphwidget.model import Place

    class Places:
        def place_of(self, seq, name):
            return Place(1, 2) if name == "SinBackward0" else None

        def module_of(self, seq, name):
            return None

    snapshot = take([leaf(2).sin().sum()], places=Places())
    assert [n.place for n in snapshot.nodes] == [None, Place(1, 2), None]
