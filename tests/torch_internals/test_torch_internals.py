"""The private parts of torch that everything stands on."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch

from graphwidget import torch_internals as ti

ENGINE = "_engine_run_backward"


@pytest.fixture
def engine():
    before = [getattr(module, ENGINE) for module in (torch.autograd, torch.autograd.graph)]
    yield before
    while ti.engine._layers:
        ti.unwrap_engine(ti.engine._layers[-1])
    assert [getattr(module, ENGINE) for module in (torch.autograd, torch.autograd.graph)] == before


def recording(log):
    def make(original):
        def ours(*args, **kwargs):
            log.append("ours")
            return original(*args, **kwargs)

        return ours

    return make


def test_a_tensor_is_known_by_its_type_alone():
    class Liar:
        @property
        def __class__(self):
            raise AssertionError("foreign code ran")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ti.is_tensor(torch.nn.Parameter(torch.ones(1)))
        assert not ti.is_tensor(Liar())
        assert not ti.is_tensor(torch.Tensor)


def test_the_sequence_number_is_that_of_the_next_node():
    x = torch.ones(2, requires_grad=True)
    number = ti.sequence_nr()
    assert ti.sequence_nr() == number
    assert (x * 2).grad_fn._sequence_nr() == number


def test_every_way_to_call_the_engine_is_seen(engine):
    log = []
    assert ti.wrap_engine(recording(log))
    x = torch.ones(2, requires_grad=True)
    x.sin().sum().backward()
    torch.autograd.backward([x.sin().sum()])
    torch.autograd.grad(x.sin().sum(), x)
    assert log == ["ours"] * 3


@pytest.mark.parametrize("out_first", [0, 1])
def test_two_wrappers_both_see_a_call_and_each_is_taken_out_alone(engine, out_first):
    logs = [[], []]
    layers = [ti.wrap_engine(recording(log)) for log in logs]
    torch.ones(1, requires_grad=True).sin().backward()
    assert logs == [["ours"], ["ours"]]
    ti.unwrap_engine(layers[out_first])
    torch.ones(1, requires_grad=True).sin().backward()
    assert [len(log) for log in logs] == ([1, 2] if out_first == 0 else [2, 1])
    ti.unwrap_engine(layers[1 - out_first])
    assert not ti.engine_wrapper_installed()


def test_a_wrapper_of_somebody_else_survives_ours_being_taken_out(engine):
    log = []
    layer = ti.wrap_engine(recording(log))
    beneath = torch.autograd._engine_run_backward

    def theirs(*args, **kwargs):
        log.append("theirs")
        return beneath(*args, **kwargs)

    setattr(torch.autograd, ENGINE, theirs)
    try:
        ti.unwrap_engine(layer)
        assert torch.autograd._engine_run_backward is theirs
        torch.ones(1, requires_grad=True).sin().backward()
        assert log == ["theirs"]
    finally:
        setattr(torch.autograd, ENGINE, engine[0])


def test_nested_calls_are_distinguished_from_the_users_own():
    with ti.nested() as inside:
        assert not inside
        with ti.nested() as deeper:
            assert deeper
        with pytest.raises(ValueError), ti.nested():
            raise ValueError
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ti.in_backward()))
        thread.start()
        thread.join()
        assert seen == [False]
    assert not ti.in_backward()


def test_a_hook_knows_that_the_engine_runs():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(ti.in_backward()))
    y.sum().backward()
    assert seen == [True]


def test_tracing_and_transforming_are_no_calls_of_the_users():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2)
    seen = []
    torch.func.grad(lambda t: seen.append(ti.is_fake([t])) or t.sum())(torch.ones(2))
    assert ti.is_fake([torch.ones(1), fake])
    assert seen == [True]
    assert not ti.is_fake([torch.ones(1), torch.autograd.graph.get_gradient_edge(torch.ones(1, requires_grad=True))])


def test_the_grad_mode_is_put_back():
    with torch.no_grad():
        with ti.grad_mode(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        with ti.grad_mode(True):
            assert torch.ones(1, requires_grad=True).sin().requires_grad
        assert torch.is_inference_mode_enabled()


def test_only_a_view_of_something_that_was_modified_may_be_stale():
    base = torch.ones(4, requires_grad=True) * 1
    view = base[0:2]
    assert not ti.maybe_stale_view(base) and not ti.maybe_stale_view(view)
    with torch.no_grad():
        base.mul_(2)
    assert ti.maybe_stale_view(view) and not ti.maybe_stale_view(base)
    plain = torch.ones(4)
    part = plain[0:2]
    plain.mul_(2)
    assert not ti.maybe_stale_view(part)


def test_a_view_is_stale_until_its_history_is_read_and_telling_so_does_not_read_it():
    base = torch.ones(4, requires_grad=True) * 1
    view = base[0:2]
    base.mul_(2)
    number = ti.sequence_nr()
    assert ti.maybe_stale_view(view) and ti.maybe_stale_view(view) and ti.sequence_nr() == number
    assert view.grad_fn is not None and ti.sequence_nr() > number
    number = ti.sequence_nr()
    assert not ti.maybe_stale_view(view) and ti.sequence_nr() == number
    view.add_(1)  # as usual: no mark is left on it


def test_a_view_that_torch_refuses_to_rebuild_counts_as_stale():
    base = torch.ones(4, requires_grad=True) * 1
    one = base.unbind()[0]
    base.mul_(2)
    assert ti.maybe_stale_view(one) and not ti.is_ordinary_view(one)
    with pytest.raises(RuntimeError, match="multiple views"):
        one.grad_fn  # noqa: B018


def test_a_stale_view_is_not_rebuilt_unless_it_was_asked_for():
    base = torch.ones(4, requires_grad=True) * 1
    view = base[0:2]
    base.mul_(2)
    number = ti.sequence_nr()
    assert ti.history(view, asked=False) == (None, 0, "stale_view")
    assert ti.sequence_nr() == number
    assert ti.history(view, asked=True)[0] is not None
    assert ti.sequence_nr() > number


def test_a_view_made_under_no_grad_and_modified_since_cannot_be_read():
    base = torch.ones(4, requires_grad=True) * 1
    with torch.no_grad():
        view = base[0:2]
    base.mul_(2)
    assert ti.history(view, asked=True) == (None, 0, "no_grad_view_modified")


def test_reading_the_grad_of_a_former_leaf_warns_about_nothing():
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ti.leaf_and_grad(x) == (True, None)
        assert ti.leaf_and_grad(x * 2) == (False, None)


def test_bytes_of_tensors_without_storage_are_those_of_their_parts():
    sparse = torch.eye(3).to_sparse()
    assert ti.storage_of(sparse) is None
    assert ti.bytes_of(sparse) == 3 * 4 + 6 * 8
    assert ti.bytes_of(torch.eye(3).to_sparse_csr()) == 3 * 4 + (4 + 3) * 8


def test_the_memory_of_a_tensor_is_recognised_while_it_lives():
    x, y = torch.ones(3), torch.ones(3)
    reference = ti.weak_memory(x)
    assert ti.is_memory_of(reference, x) and not ti.is_memory_of(reference, y)
    del x
    assert reference.expired()


def test_what_is_written_on_a_node_lives_with_the_node():
    x = torch.ones(2, requires_grad=True)
    y = x.sin().cos()
    ti.memory_of_node(y.grad_fn.next_functions[0][0])["seen"] = 1
    assert ti.memory_of_node(y.grad_fn.next_functions[0][0]) == {"seen": 1}
