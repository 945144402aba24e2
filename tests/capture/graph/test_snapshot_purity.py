"""Taking a snapshot changes nothing, keeps nothing alive, and works at any depth."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from typing import Any

import pytest
import torch
from graphs import Held, leaf, states
from torch import nn

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take

pytestmark = pytest.mark.filterwarnings("error")


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
from graphwidget.capture.graph.snapshot import take
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
