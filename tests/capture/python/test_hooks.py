"""Events that cannot be read afterwards are recorded: hooks, and tensors that lost their history."""

import gc
import weakref

import pytest
import torch
from graphs import states

from graphwidget import forecast
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.python import hooks


@pytest.fixture
def watching():
    before = dict(vars(torch.Tensor))
    unwatch = hooks.watch()
    yield
    unwatch()
    assert vars(torch.Tensor) == before


def raising(grad):
    raise ValueError("boom")


def test_a_hook_is_known_until_it_is_removed(watching):
    inner = torch.rand(3, requires_grad=True) * 2
    handle = inner.register_hook(lambda g: g * 2)
    assert [reading.plain for reading in hooks.hooks_on_node(inner.grad_fn).values()] == [True]
    handle.remove()
    assert hooks.hooks_on_node(inner.grad_fn) == {}


def test_a_hook_on_a_tensor_that_has_died_is_foreseen(watching):
    def build():
        inner = torch.rand(3, requires_grad=True) * 2
        inner.register_hook(raising)
        return inner.sum()

    loss = build()
    assert forecast(loss).reason == "raises"
    with pytest.raises(ValueError, match="boom"):
        loss.backward()


@pytest.mark.parametrize("seen_before", [False, True])
def test_what_was_detached_in_place_and_needs_a_gradient_again_is_still_reported(watching, seen_before):
    h = torch.rand(3, requires_grad=True) * 2
    loss = h.sin().sum()
    identity = Identity()
    before = take([loss], identity=identity) if seen_before else None
    h.detach_().requires_grad_()
    for _ in range(2):
        before = take([loss], identity=identity, previous=before)
        assert states(before, "SinBackward0") == {"self": "stale"}
    assert forecast(loss).reason == "detached"
    with pytest.raises(RuntimeError, match="detached in-place"):
        loss.backward()


def test_a_leaf_that_was_frozen_and_thawed_is_held(watching):
    x = torch.rand(3, requires_grad=True)
    loss = x.sin().sum()
    x.requires_grad_(False).requires_grad_()
    assert states(take([loss]), "SinBackward0") == {"self": "held"}
    assert forecast(loss).ok
    loss.backward()


def test_a_note_keeps_neither_the_hook_nor_the_tensor_alive(watching):
    class Hook:
        def __call__(self, grad):
            return grad

    hook, inner = Hook(), torch.rand(3, requires_grad=True) * 2
    gone = weakref.ref(hook), weakref.ref(inner)
    inner.register_hook(hook)
    del hook, inner
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_somebody_elses_wrapper_stays():
    original = torch.Tensor.register_hook
    unwatch = hooks.watch()
    ours = torch.Tensor.register_hook

    def theirs(self, hook):
        return ours(self, hook)

    torch.Tensor.register_hook = theirs
    unwatch()
    try:
        assert torch.Tensor.register_hook is theirs
        torch.rand(3, requires_grad=True).mul(2).register_hook(raising)
    finally:
        torch.Tensor.register_hook = original


def test_a_tensor_that_lost_its_history_is_remembered_while_it_lives(watching):
    leaf, inner = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True) * 1
    assert leaf.requires_grad_(False) is leaf and inner.detach_() is inner
    free = torch.rand(3).requires_grad_(False)
    assert hooks.lost_its_gradient(leaf) and hooks.lost_its_gradient(inner) and not hooks.lost_its_gradient(free)
    leaf.requires_grad_()
    assert not hooks.lost_its_gradient(leaf)


def test_errors_of_the_replaced_methods_are_torchs_own(watching):
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.rand(3).register_hook(raising)
