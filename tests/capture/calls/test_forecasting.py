"""The forecast of a call on live tensors."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from graphwidget import forecast, track
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
from graphwidget.capture.python import hooks


def test_it_says_what_the_call_then_does():
    w = torch.rand(3, requires_grad=True)
    y = w.exp()
    a, b = y.sum(), (y * 2).sum()
    told = forecast(a)
    assert told.ok and [n.name for n in told.executes] == ["SumBackward0", "ExpBackward0", "AccumulateGrad"]
    a.backward()
    told = forecast(b)
    assert told.reason == "freed" and told.fails_at.name == "ExpBackward0" and told.fails_slot.name == "result"
    with pytest.raises(RuntimeError, match="second time"):
        b.backward()


def test_it_runs_nothing_and_changes_nothing():
    w = torch.rand(3, requires_grad=True)
    loss = w.exp().sum()
    before = torch._C._autograd._get_sequence_nr()
    forecast(loss)
    assert torch._C._autograd._get_sequence_nr() == before
    assert w.grad is None and w._version == 0
    loss.backward()


def test_the_parameters_of_a_network_are_what_it_reaches():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    told = forecast(net(torch.rand(5, 3)).mean())
    assert told.ok and not told.assumes and len(told.reaches) == 4


def test_create_graph_retains_by_default():
    loss = torch.rand(3, requires_grad=True).exp().sum()
    assert not forecast(loss, create_graph=True).frees
    assert forecast(loss, create_graph=True, retain_graph=False).frees


def test_grad_stops_in_front_of_an_input():
    w = torch.rand(3, requires_grad=True)
    h = w.exp()
    loss = h.sin().sum()
    assert "ExpBackward0" not in [n.name for n in forecast(loss, inputs=h, api="grad").executes]
    assert "ExpBackward0" in [n.name for n in forecast(loss, inputs=[h]).executes]
    told = forecast(loss, inputs=torch.rand(3, requires_grad=True), api="autograd.grad", allow_unused=False)
    assert told.reason == "unused"


def test_a_write_into_a_view_is_foreseen_where_somebody_watched_and_assumed_elsewhere():
    def written():
        base = torch.rand(3, requires_grad=True) * 1
        base[0] = 0
        return base.sum()

    loss = written()
    assert forecast(loss).ok and forecast(loss).assumes
    with track():
        loss = written()
        told = forecast(loss)
        assert told.ok and not told.assumes
        loss.backward()
        assert forecast(loss).reason == "freed" and forecast(loss).fails_at.name == "torch::autograd::CopySlices"


@pytest.mark.parametrize("tracked", [True, False])
def test_an_unpack_hook_that_is_no_python_function_is_not_run(tracked, monkeypatch):
    monkeypatch.setattr(hooks, "_unstoppable", False)
    packed = {}

    def pack(tensor):
        packed[len(packed)] = tensor.detach()
        return len(packed) - 1

    def write():
        w = torch.rand(4, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, packed.pop):
            y = w + 0
            y[:2].mul_(y[2:].detach() + 1)
        return y.sum()

    with track() if tracked else contextlib.nullcontext():
        loss = write()
        held = len(packed)
        assert held and forecast(loss).assumes and len(packed) == held
        loss.backward()
    assert not packed


def test_a_grad_that_only_a_write_into_a_view_has_saved_is_an_assumption():
    with track():
        w = torch.rand(3, requires_grad=True)
        w.grad = torch.zeros(3)
        base = torch.rand(3, requires_grad=True) * 1
        base[:2].mul_(w.grad[:2])
        loss = base.sum() + w.exp().sum()  # adding to w.grad comes first
        assert forecast(loss).assumes
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            loss.backward()


def test_a_module_call_inside_a_checkpoint_is_an_assumption():
    layer = torch.nn.Linear(3, 3)
    from torch.utils.checkpoint import checkpoint

    x = torch.rand(2, 3, requires_grad=True)
    told = forecast(checkpoint(lambda a: layer(a).exp(), x, use_reentrant=False).sum())
    assert told.ok is True and "checkpointed function" in told.assumes[0]


def test_a_tensor_without_grad_is_no_error_but_an_answer():
    told = forecast(torch.rand(()))
    assert told.reason == "no_grad" and "does not require grad" in told.why
    assert forecast(torch.tensor(3)).reason == "no_grad"


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError):
        forecast(torch.rand(()), retain=True)
    with pytest.raises(ValueError, match="api"):
        forecast(torch.rand(()), api="forward")


def test_two_nodes_of_one_number_are_distinguished_beside_a_node_that_always_raises():
    import threading

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    w = torch.rand(3, requires_grad=True)
    (g,) = torch.autograd.grad((Once.apply(w * w) * w).sum(), w, create_graph=True)
    made = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: made.append(w.exp()))
        thread.start()
        thread.join()
    assert made[0].grad_fn._sequence_nr() == made[1].grad_fn._sequence_nr()
    shot = take([(made[0] + made[1] + g).sum()], identity=Identity())
    assert len(set(shot.uid)) == len(shot)


def _a_grad_that_is_a_zero_tensor(w):
    (slope,) = torch.autograd.grad(w.abs().sum(), w, create_graph=True)
    slope.sum().backward()  # the second derivative of abs


def _an_expanded_grad(w):
    w.grad = torch.zeros(1).expand(3)


def _a_grad_made_in_inference_mode(w):
    with torch.inference_mode():
        grad = torch.zeros(3)
    w.grad = grad


@pytest.mark.parametrize("prepare", [_a_grad_that_is_a_zero_tensor, _an_expanded_grad, _a_grad_made_in_inference_mode])
def test_a_grad_to_which_nothing_can_be_added_makes_the_call_raise(prepare):
    """Reduced from seed 15000104 of the fuzz: nodes that ran before are freed, later ones are not."""
    w = torch.rand(3, requires_grad=True)
    prepare(w)
    before = torch.rand(3, requires_grad=True)
    late = before.exp()
    loss = (w * late).sum()
    told = forecast(loss)
    assert told.reason == "raises" and told.fails_at.name == "AccumulateGrad"
    assert [node.name for node in told.frees] == ["MulBackward0"]
    with pytest.raises(RuntimeError):
        loss.backward()
    late.sum().backward()


@pytest.mark.parametrize("busy", [False, True])
def test_an_idle_worker_of_a_pool_keeps_no_forecast_from_being_definite(busy):
    release = threading.Event()
    with ThreadPoolExecutor(1) as pool, track():
        pool.submit(release.wait if busy else int)
        base, other = torch.rand(4, 4, requires_grad=True) * 1, torch.rand(4, 4, requires_grad=True) * 1
        row = other[1]
        base[0].mul_(row)
        time.sleep(0.1)  # by now the worker has taken its task, perhaps finished it
        told = forecast(base.sum())
        release.set()
    assert told.ok and bool(told.assumes) == busy
