"""Snapshots of every kind of graph that torch makes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import leaf, node, states
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from graphwidget.capture.graph.snapshot import take
from graphwidget.model import Kind

pytestmark = pytest.mark.filterwarnings("error")


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
    assert kinds["torch::autograd::CopySlices"] is Kind.COPY_SLICES

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
