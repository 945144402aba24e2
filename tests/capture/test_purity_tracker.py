"""Observing changes nothing: each program runs with and without the tracker and must not notice a difference."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast

MODELS = {
    "mlp": "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))\nx = torch.randn(5, 4)",
    "conv": "net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(1))\n"
    "x = torch.randn(2, 1, 6, 6)\nnet(x)",
    "transformer": "net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)\nx = torch.randn(3, 2, 8)",
    "checkpointed": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)\n"
    "    def forward(self, x):\n        return self.b(checkpoint(self.a, x, use_reentrant=False))\nnet = Net()\nx = torch.randn(3, 4, requires_grad=True)",
}
TRAIN = """
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(20):
    opt.zero_grad()
    out = net(x)
    loss = out.pow(2).mean()
    loss.backward(retain_graph=step % 3 == 0)
    opt.step()
"""


def run(cells: list[str], tracked: bool) -> dict[str, object]:
    """Run cells with a fixed seed; if tracked, use everything that the tracker offers between them."""
    torch.manual_seed(0)
    namespace: dict[str, object] = {
        "torch": torch, "nn": nn, "checkpoint": checkpoint, "weakref": weakref, "gc": gc, "copy": copy, "pickle": pickle,
    }  # fmt: skip
    tracker = Tracker(lambda: namespace, forecaster=forecast)
    if tracked:
        tracker.start()
    for number, source in enumerate(cells, 1):
        if tracked:
            tracker.begin_cell(number, source, filename=f"<cell {number}>")
        exec(compile(source, f"<cell {number}>", "exec"), namespace)
        if tracked:
            tracker.end_cell()
            tracker.drawing()
            tracker.record()
    if tracked:
        tracker.stop()
        assert list(tracker.problems) == []
    return namespace


@pytest.mark.parametrize("model", MODELS)
def test_training_is_bit_identical(model: str) -> None:
    results = []
    for tracked in (False, True):
        namespace = run([MODELS[model], TRAIN], tracked)
        net, loss = namespace["net"], namespace["loss"]
        assert isinstance(net, nn.Module) and isinstance(loss, torch.Tensor)
        state = [*net.state_dict().values(), *(p.grad for p in net.parameters()), loss.detach(), torch.get_rng_state()]
        versions = [p._version for p in net.parameters()]
        results.append((state, versions))
    (plain, plain_versions), (watched, watched_versions) = results
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert plain_versions == watched_versions


LIFETIMES = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        global ctx_ref
        ctx_ref = weakref.ref(ctx)
        return t * t
    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
x = torch.ones(3, requires_grad=True)
h = net(x)
loss = Square.apply(h).sum()
refs = {"h": weakref.ref(h), "loss": weakref.ref(loss), "net": weakref.ref(net), "weight": weakref.ref(net[0].weight), "ctx": ctx_ref}
loss.backward()
"""


def test_objects_die_when_they_would_have_died() -> None:
    gc.collect()
    gc.disable()
    try:
        lives = []
        for tracked in (False, True):
            look = "seen.append({name: ref() is not None for name, ref in refs.items()})"
            drops = [f"del {name}\n{look}" for name in ("h", "loss", "net")]
            namespace = run([LIFETIMES, "seen = []", *drops], tracked)
            lives.append(namespace["seen"])
        assert lives[0] == lives[1]
        assert lives[1][-1] == {"h": False, "loss": False, "net": False, "weight": False, "ctx": False}
    finally:
        gc.enable()


def test_locals_of_a_function_die_with_it() -> None:
    body = (
        "refs = []\ndef step():\n    x = torch.ones(3, requires_grad=True)\n    y = x.exp()\n    refs.append(weakref.ref(y))\n"
        "    loss = y.sum()\n    loss.backward()\n    del y, loss\n    refs.append(refs[0]() is None)\n"
        "step()\nafter = refs[0]() is None"
    )
    for tracked in (False, True):
        namespace = run([body], tracked)
        assert namespace["after"] is True and namespace["refs"][1] is True  # type: ignore[index]


def test_hooks_and_recomputation_run_as_often_as_without() -> None:
    source = """
counts = dict(pack=0, unpack=0, forward=0)
def pack(t):
    counts["pack"] += 1
    return t
def unpack(t):
    counts["unpack"] += 1
    return t
def block(t):
    counts["forward"] += 1
    return t.exp().tanh()
x = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = (x * x).sin()
loss = checkpoint(block, y, use_reentrant=False).sum()
loss.backward(retain_graph=True)
loss.backward()
"""
    plain, watched = run([source], False)["counts"], run([source], True)["counts"]
    assert plain == watched and plain["unpack"] > 0  # type: ignore[index]


def test_tensors_get_no_attribute_and_can_be_copied_and_pickled() -> None:
    namespace = run(
        ["x = torch.ones(3, requires_grad=True)\ny = x.exp()\ny.sum().backward()", "z = copy.deepcopy(x)"], True
    )
    x, y = namespace["x"], namespace["y"]
    assert vars(x) == {} and vars(y) == {}
    assert torch.equal(pickle.loads(pickle.dumps(x)), namespace["z"])  # type: ignore[arg-type]


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(["x = torch.ones(3, requires_grad=True)\ny = x.exp()\nloss = y.sum()\nloss.backward()", "y.detach()"], True)


def test_the_users_error_is_the_users_error() -> None:
    source = "x = torch.ones(3, requires_grad=True)\ny = x.exp().sum()\ny.backward()\ntry:\n    y.backward()\nexcept RuntimeError as e:\n    text, cause = str(e), e.__cause__ or e.__context__"
    plain, watched = run([source], False), run([source], True)
    assert (plain["text"], plain["cause"]) == (watched["text"], watched["cause"])


def test_sequence_numbers_are_those_of_a_run_without_us() -> None:
    source = "numbers = []\nfor i in range(30):\n    x = torch.ones(3, requires_grad=True)\n    y = (x * x).exp()\n    numbers.append(y.grad_fn._sequence_nr())\n    y.sum().backward()"
    gaps = []
    for tracked in (False, True):
        numbers = run([source], tracked)["numbers"]
        assert isinstance(numbers, list)
        gaps.append([b - a for a, b in zip(numbers, numbers[1:])])
    assert gaps[0] == gaps[1]


def test_compiled_code_is_left_alone() -> None:
    source = """
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
x = torch.ones(2, 3)
loss = compiled(x).sum()
loss.backward()
"""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*global hooks.*")
        results = [run([source], tracked)["net"] for tracked in (False, True)]
    grads = [[p.grad for p in net.parameters()] for net in results]  # type: ignore[attr-defined]
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))


LOGGED = """
from torch.overrides import TorchFunctionMode
heard = []
def name(function):
    return getattr(function, "__name__", str(function))
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        heard.append(name(function))
        return super().__torch_function__(function, types, args, kwargs or {})
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        heard.append(name(function))
        return function(*args, **(kwargs or {}))
"""
LOGGED_STEPS = [
    "w = torch.ones(3, requires_grad=True).as_subclass(Logged)\nbase = torch.ones(3, requires_grad=True)\nkept = [w, base * w]",
    "for _ in range(40):\n    h = (base * w).exp()\n    h.register_hook(print)\n    h.sum().backward(retain_graph=True)",
    "h.add_(1)\nh[0] = 2\nk = (base * 2).sin()\nk.detach_()",
    "p = nn.Parameter(torch.ones(3).as_subclass(Logged))\nopt = torch.optim.SGD([p, base], lr=.1)\n"
    "for _ in range(40):\n    (p * p).sum().backward()\n    opt.step()\n    opt.zero_grad()",
    "with Mode():\n    v = (base * 2).exp()\n    v.mul_(2)\n    v = base * 3\n    for _ in range(40):\n        v.sum().backward(retain_graph=True)",
    "with Mode():\n    for _ in range(200):\n        (base * 2).exp().sum().backward()",
    "def inner(t):\n    u = t * 2\n    u.sum().backward()\n    return u\nu = inner(w)",
]


def test_code_of_subclasses_and_of_modes_runs_as_without() -> None:
    plain, watched = (run([LOGGED, *LOGGED_STEPS], tracked)["heard"] for tracked in (False, True))
    assert watched == plain and "mul" in str(plain)


SWAPS = [
    "torch.utils.swap_tensors(a, b)",
    "def f():\n    t = torch.ones(2)\n    t.add_(1); torch.utils.swap_tensors(t, a)\nf()",
    "frozen = torch.ones(2, requires_grad=True)\nfrozen.requires_grad_(False)\ntorch.utils.swap_tensors(a, frozen)",
    "net.double()",
    "net.load_state_dict({name: value + 1 for name, value in net.state_dict().items()})",
    "opt.step()\nnet.half()\nopt.step()",
    "other = nn.Linear(2, 2)\nboth = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=.1)\n"
    "both.step()\nboth.step()\nother.half()\nnet.half()\nboth.step()",
]


@pytest.mark.parametrize("cell", SWAPS)
def test_tensors_can_be_swapped(cell: str) -> None:
    made = "a, b = torch.zeros(2), torch.ones(2)\nnet = nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=.1)"
    torch.__future__.set_swap_module_params_on_conversion(True)
    before = torch.utils.swap_tensors
    try:
        results = [run([made, "net(a).sum().backward()\na + b", cell, "1"], tracked) for tracked in (False, True)]
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    for name in ("a", "b"):
        assert torch.equal(*[result[name] for result in results])  # type: ignore[arg-type]
    assert torch.utils.swap_tensors is before
