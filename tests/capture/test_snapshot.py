"""What a snapshot says about real graphs, and that taking it changes nothing."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from graphwidget.capture import torch_internals as ti
from graphwidget.capture.identity import Identity
from graphwidget.capture.snapshot import take
from graphwidget.model import Kind, Node, Snapshot

pytestmark = pytest.mark.filterwarnings("error")


@dataclass
class Held:
    path: str
    tensor: Any
    kind: str = "variable"


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def node(snapshot: Snapshot, name: str) -> Node:
    found = [n for n in snapshot.nodes if n.name == name]
    assert len(found) == 1, [n.name for n in snapshot.nodes]
    return found[0]


def states(snapshot: Snapshot, name: str) -> dict[str, str]:
    return {slot.name: slot.state.word for slot in node(snapshot, name).saved}


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


def test_without_an_earlier_snapshot_freed_and_unsaved_are_told_apart():
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


def test_a_view_that_the_user_holds_is_left_alone():
    base = leaf(4)
    view = base[0:2]
    loss = (view * view).sum()
    with torch.no_grad():
        base.mul_(2)
    before = ti.sequence_nr()
    snapshot = take([loss], owners=[Held("view", view), Held("loss", loss)])
    assert ti.sequence_nr() == before
    assert states(snapshot, "MulBackward0") == {"self": "unknown", "other": "unknown"}
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


# ---------------------------------------------------------------- kinds of graphs


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.name, ctx.next = "not the node's", "nor this"
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Empty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_custom_function_is_read_through_the_base_class():
    loss = Cube.apply(leaf(3)).sum()
    snapshot = take([loss])
    cube = node(snapshot, "CubeBackward")
    assert cube.kind is Kind.CUSTOM
    assert [(s.name, s.state.word, s.shape) for s in cube.saved] == [("saved_tensors[0]", "held", (3,))]
    loss.backward()
    assert states(take([loss]), "CubeBackward") == {"saved_tensors": "freed"}


def test_a_custom_function_that_saved_nothing_shows_no_slot_and_is_known_to_be_released():
    loss = Empty.apply(leaf(3)).sum()
    assert states(take([loss]), "EmptyBackward") == {}
    loss.backward()
    snapshot = take([loss])
    assert states(snapshot, "EmptyBackward") == {}
    assert snapshot.facts[node(snapshot, "EmptyBackward").index].released is True


def test_a_stale_output_of_a_custom_function_is_found():
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g / (2 * y)

    out = Root.apply(torch.rand(3, requires_grad=True))
    loss = out.sum()
    assert states(take([loss]), "RootBackward") == {"saved_tensors[0]": "held"}
    with torch.no_grad():
        out.add_(1)
    assert states(take([loss]), "RootBackward") == {"saved_tensors[0]": "stale"}


def test_packed_slots_are_never_unpacked():
    calls = []
    x = leaf(3)
    with saved_tensors_hooks(lambda t: ("packed", t.detach()), lambda p: calls.append(p) or p[1]):
        loss = (x.sin() * x).sum()
    snapshot = take([loss])
    assert states(snapshot, "SinBackward0") == {"self": "packed"}
    assert node(snapshot, "SinBackward0").saved[0].bytes == 12
    assert calls == []


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_is_not_recomputed(reentrant: bool):
    runs = []

    def block(x):
        runs.append(1)
        return x.exp().sin()

    loss = checkpoint(block, leaf(3), use_reentrant=reentrant).sum()
    snapshot = take([loss])
    assert runs == [1]
    if reentrant:
        assert snapshot.facts[node(snapshot, "CheckpointFunctionBackward").index].reentrant_checkpoint
    else:
        assert states(snapshot, "SinBackward0") == {"self": "packed"}
        facts = [snapshot.facts[node(snapshot, name).index] for name in ("SinBackward0", "ExpBackward0")]
        assert all(f.non_reentrant_checkpoint for f in facts)
        assert facts[0].checkpoint == facts[1].checkpoint >= 0


def test_copy_slices_double_backward_and_error_nodes_have_their_kinds():
    x = leaf(4)
    base = x * 1
    base[0:2].mul_(3)
    (gradient,) = torch.autograd.grad((base**3).sum(), x, create_graph=True)
    kinds = {n.name: n.kind for n in take([gradient.sum()]).nodes}
    assert kinds["CopySlices"] is Kind.COPY_SLICES

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    seed = leaf(3)
    (gradient,) = torch.autograd.grad(Once.apply(leaf(3)).sum() * 1, [p := leaf(1)], allow_unused=True) or (None,)
    assert gradient is None and p.grad is None
    w = leaf(3)
    (gradient,) = torch.autograd.grad(Once.apply(w), w, seed, create_graph=True)
    snapshot = take([gradient])
    assert [n.kind for n in snapshot.nodes][0] is Kind.ERROR
    assert [n.sequence_nr for n in snapshot.nodes][0] == -1


def modules() -> dict[str, Any]:
    def lstm():
        return nn.LSTM(3, 4, 2)(torch.randn(5, 2, 3))[0].sum()

    def attention():
        q = torch.randn(2, 5, 8)
        return nn.MultiheadAttention(8, 2, batch_first=True)(q, q, q)[0].sum()

    def convolution():
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))(
            torch.randn(1, 1, 8, 8)
        ).sum()

    return {
        "mlp": lambda: F.cross_entropy(
            nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))(torch.randn(2, 4)), torch.tensor([0, 1])
        ),
        "convolution": convolution,
        "lstm": lstm,
        "attention": attention,
        "sdpa": lambda: F.scaled_dot_product_attention(*(leaf(1, 2, 4, 8) for _ in range(3))).sum(),
        "embedding": lambda: nn.Embedding(10, 3)(torch.tensor([1, 2])).sum(),
        "sparse embedding": lambda: nn.Embedding(10, 3, sparse=True)(torch.tensor([1, 2])).sum(),
        "complex": lambda: torch.fft.fft(leaf(8)).abs().sum(),
        "sparse": lambda: torch.sparse.mm(torch.eye(3).to_sparse(), leaf(3, 3)).sum(),
        "sparse leaf": lambda: torch.sparse.mm(torch.eye(3).to_sparse().requires_grad_(), leaf(3, 3)).sum(),
        "unbind": lambda: sum(leaf(3, 2).unbind()).sum(),
        "meta": lambda: (torch.ones(3, device="meta", requires_grad=True) * 2).sin().sum(),
        "double": lambda: torch.autograd.grad((w := leaf(3)).sin().sum(), w, create_graph=True)[0].sum(),
        "empty": lambda: leaf(0).sin().sum(),
        "half": lambda: leaf(3).half().sin().float().sum(),
    }


@pytest.mark.parametrize("kind", modules())
def test_every_slot_of_a_real_graph_is_known_before_and_after_backward(kind: str):
    loss = modules()[kind]()
    before = take([loss])
    assert before.notes == ()
    words = {slot.state.word for n in before.nodes for slot in n.saved}
    assert words <= {"held", "unsaved"}
    if loss.device.type == "meta":
        return
    loss.backward(retain_graph=True)
    assert bytes(take([loss]).slot_state) == bytes(before.slot_state)
    loss.backward()
    after = take([loss])
    assert {slot.state.word for n in after.nodes for slot in n.saved} <= {"freed", "unsaved"}
    assert after.held_bytes() == 0


def test_a_compiled_region_is_one_node():
    @torch.compile(backend="aot_eager")
    def f(x, w):
        return (x @ w).sin().sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [])
        loss = f(torch.randn(2, 3), leaf(3, 3))
    snapshot = take([loss])
    compiled = [n for n in snapshot.nodes if n.kind is Kind.COMPILED]
    assert len(compiled) == 1
    assert {slot.state.word for slot in compiled[0].saved} == {"held"}
    loss.backward()
    assert {slot.state.word for slot in take([loss]).node(compiled[0].index).saved} == {"freed"}


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


# ---------------------------------------------------------------- identity


def test_a_node_keeps_its_uid_and_a_new_one_gets_a_new_one():
    identity = Identity()
    x = leaf(3)
    first = (x * 2).sum()
    one = take([first], identity=identity)
    assert list(take([first], identity=identity).uid) == list(one.uid)
    second = (x * 2).sum()
    two = take([second], identity=identity)
    assert two.uid[-1] == one.uid[-1]  # the leaf
    assert not set(two.uid[:-1]) & set(one.uid[:-1])


def test_a_leaf_that_died_does_not_pass_on_its_uid():
    identity = Identity()
    seen = set()
    for _ in range(20):
        x = leaf(3)
        seen.add(take([(x * 2).sum()], identity=identity).uid[-1])
        del x
    assert len(seen) == 20


def test_nodes_of_two_threads_with_one_number_are_told_apart():
    x = leaf(3)
    made = []

    def make():
        made.append((x * 2).sin())

    for _ in range(2):
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
    a, b = made
    assert (a.grad_fn._sequence_nr(), a.grad_fn.name()) == (b.grad_fn._sequence_nr(), b.grad_fn.name())
    identity = Identity()
    alone = take([b], identity=identity)
    both = take([a, b], identity=identity, previous=alone)
    assert len(set(both.uid)) == len(both.uid)
    uid_of_b = both.uid[both.roots[1].node]
    again = take([b, a], identity=identity, previous=both)
    assert again.uid[again.roots[0].node] == uid_of_b
    del a, made[0]
    assert take([b], identity=identity).uid[0] == uid_of_b


def test_identity_forgets_what_has_died():
    identity = Identity()
    take([leaf(3).sin().sum()], identity=identity)
    kept = take([leaf(3).cos().sum()], identity=identity)
    identity.forget_missing(kept.uid)
    assert len(identity) == len(kept)


# ---------------------------------------------------------------- nothing changes


def test_looking_changes_nothing_that_can_be_seen():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
    loss = model(torch.randn(2, 3)).sum()
    loss.backward(retain_graph=True)
    tensors = [loss, *model.parameters()]
    identity = Identity()

    def look() -> Any:
        return (
            ti.sequence_nr(),
            torch.get_rng_state().tolist(),
            [
                (t._version, vars(t), None if t is loss else t.grad.tolist(), weakref.getweakrefcount(t))
                for t in tensors
            ],
        )

    before = look()
    take([loss], owners=[Held(f"t{i}", t) for i, t in enumerate(tensors)], identity=identity)
    assert look() == before
    copy.deepcopy(model)
    pickle.loads(pickle.dumps(model))
    assert "graphwidget" not in loss.grad_fn.metadata


def test_nothing_live_is_kept():
    x = leaf(1000)
    h = x.sin()
    loss = h.exp().sum()
    refs = [weakref.ref(t) for t in (x, h, loss)]
    identity = Identity()
    snapshot = take([loss], owners=[Held("h", h)], identity=identity)
    del x, h, loss
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3
    assert len(snapshot) == 4


def test_no_finaliser_runs_during_a_look_and_the_collector_is_left_as_it_was():
    x = leaf(3)
    loss = x.sin().sum()
    take([loss])
    assert gc.isenabled()
    gc.disable()
    try:
        take([loss])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_tensors_can_still_be_swapped_after_a_look():
    a, b = leaf(3), leaf(3)
    loss = (a * 2).sum()
    identity = Identity()
    take([loss, b], identity=identity)
    del loss
    gc.collect()
    torch.utils.swap_tensors(a, b)
    assert len(identity) > 0


def test_subclass_code_and_modes_do_not_run():
    ran = []

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            ran.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = leaf(3).as_subclass(Loud)
    loss = (x * x).sum()
    ran.clear()

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            ran.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        snapshot = take([loss], owners=[Held("x", x)])
    assert ran == []
    assert states(snapshot, "MulBackward0") == {"self": "held", "other": "held"}


@pytest.mark.filterwarnings("default")
def test_nested_and_fake_tensors_are_read_without_raising():
    from torch._subclasses.fake_tensor import FakeTensorMode

    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged, requires_grad=True)
    assert len(take([(nested * 2).sin()])) == 3
    with FakeTensorMode():
        loss = (torch.ones(3, requires_grad=True) * 2).sin().sum()
    assert len(take([loss])) == 4


def test_transformed_tensors_are_read_without_raising():
    seen = []

    def f(x):
        y = (x * x).sin()
        seen.append(len(take([y])))
        return y.sum()

    torch.func.grad(f)(torch.randn(3))
    torch.func.vmap(torch.func.grad(f))(torch.randn(2, 3))
    assert all(n >= 3 for n in seen) and len(seen) == 2


# ---------------------------------------------------------------- size

DEEP = """
import torch, weakref, time, sys
from graphwidget.capture.snapshot import take
x = torch.ones(2, requires_grad=True)
t = x
for _ in range({n}):
    t = t + 1
storage = weakref.ref(x)
snapshot = take([t])
assert len(snapshot) == {n} + 1
del t, x
end = time.time() + 60
while storage() is not None and time.time() < end:
    time.sleep(0.01)
assert storage() is None
print("done")
"""


def test_a_chain_far_deeper_than_the_stack_is_read_and_then_dropped():
    done = subprocess.run([sys.executable, "-c", DEEP.format(n=200_000)], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_small_graph_gets_no_breaks():
    x = leaf(2)
    t = x
    for _ in range(500):
        t = t + 1
    take([t])
    walked = t.grad_fn
    while walked is not None:
        assert walked.metadata == {}
        walked = walked.next_functions[0][0] if walked.next_functions else None
