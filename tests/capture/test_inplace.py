"""What is noted when it happens: in-place writes into views, hooks, releases."""

import gc
import weakref

import pytest
import torch

from graphwidget.capture import inplace
from graphwidget.capture.inplace import Watch, releasing, write_of


@pytest.fixture
def base():
    return torch.rand(4, 4, requires_grad=True) * 2


def written(base, write):
    with Watch():
        write(base)
    return write_of(base.grad_fn)


def test_a_write_that_keeps_no_operand_is_never_stale(base):
    other = torch.rand(4, requires_grad=True) * 1
    note = written(base, lambda t: t[0].add_(other))
    other.add_(1)
    assert note.stale is False and not note.released and not note.overlap


def test_a_product_is_stale_once_its_operand_was_modified(base):
    other = torch.rand(4)
    note = written(base, lambda t: t[0].mul_(other))
    assert note.stale is False
    other.add_(1)
    assert note.stale is True


def test_augmented_assignment_into_a_slice_is_noted_as_well(base):
    other = torch.rand(4)

    def write(t):
        t[0] *= other

    written(base, write)
    product = base.grad_fn.next_functions[0][0]  # `t[0] *= other` multiplies, then assigns the slice to itself
    other.add_(1)
    assert write_of(base.grad_fn).stale is False and write_of(product).stale is True


def test_a_write_can_make_its_own_operand_stale(base):
    assert written(base, lambda t: t[0].mul_(t[1])).stale is True


def test_a_write_that_keeps_its_result_is_stale_once_the_base_was_modified(base):
    note = written(base, lambda t: t[:2].exp_())
    assert note.stale is False
    base.add_(1)
    assert note.stale is True


def test_an_operation_that_is_not_listed_is_certain_only_while_nothing_changed(base):
    other = torch.rand(4)
    note = written(base, lambda t: t[0].atan2_(other))
    assert note.stale is False
    other.add_(1)
    assert note.stale is None


def test_a_write_that_nobody_watched_is_unknown(base):
    base[0].mul_(torch.rand(4))
    assert write_of(base.grad_fn) is None


def test_a_note_keeps_no_memory_alive(base):
    other = torch.rand(1000)
    memory = weakref.ref(other.untyped_storage())
    tensor = weakref.ref(other)
    with Watch():
        base[0].mul_(other[:4])
    assert write_of(base.grad_fn).operands
    with releasing([base.grad_fn], False):
        base.sum().backward()  # the hidden node lets go; the note must not hold on
    del other
    gc.collect()
    assert tensor() is None and memory() is None


def test_watching_changes_no_result_and_no_version(base):
    twin = base.detach().clone().requires_grad_() * 1
    write_plain = twin[0].mul_(torch.ones(4) * 2)
    with Watch():
        watched = base[0].mul_(torch.ones(4) * 2)
    assert torch.equal(watched, write_plain) and base._version == twin._version


def test_a_call_that_does_not_retain_releases_the_writes_it_ran_over(base):
    note = written(base, lambda t: t[0].zero_())
    with releasing([base.grad_fn], True):
        base.sum().backward(retain_graph=True)
    assert note.released is False
    with releasing([base.grad_fn], False):
        base.sum().backward()
    assert note.released is True


def test_a_call_that_fails_releases_what_it_ran_before(base):
    first = base * 1
    first[0].zero_()
    early = (first * 1).exp()
    early.sum().backward(retain_graph=True)
    broken = torch.rand(4, 4, requires_grad=True).exp()
    loss = (broken * 1).sum()
    loss.backward()  # frees `broken`
    total = (first * broken.detach()).sum() + broken.sum()
    write = first.grad_fn
    with pytest.raises(RuntimeError), releasing([write], False):
        total.backward()
    ran = write_of(write)
    assert (ran is not None and ran.released) == _fails_again(first)


def _fails_again(tensor):
    try:
        torch.autograd.grad(tensor.sum(), tensor.grad_fn and [tensor], retain_graph=True)
        tensor.sum().backward(retain_graph=True)
    except RuntimeError:
        return True
    return False


def test_no_hook_of_ours_stays_on_a_node(base):
    base[0].zero_()
    node = base.grad_fn
    with releasing([node], True):
        pass
    calls = []
    node.register_hook(lambda *_: calls.append(1))
    base.sum().backward()
    assert calls == [1] and write_of(node) is None


def test_a_hook_is_known_until_it_is_removed(base):
    with Watch():
        handle = base.register_hook(lambda g: g * 2)
    assert [reading.plain for reading in inplace.hooks_on_node(base.grad_fn).values()] == [True]
    handle.remove()
    assert inplace.hooks_on_node(base.grad_fn) == {}


def test_a_tensor_that_lost_its_history_is_remembered_while_it_lives():
    leaf = torch.rand(3, requires_grad=True)
    with Watch():
        leaf.requires_grad_(False)
        free = torch.rand(3).add_(1)
    assert inplace.was_frozen(leaf) and not inplace.was_frozen(free)
    leaf.requires_grad_()
    assert not inplace.was_frozen(leaf)


def test_writing_into_memory_that_overlaps_itself_is_noted():
    base = torch.rand(4, 1, requires_grad=True) * 2
    assert written(base, lambda t: t.expand(4, 4).zero_()).overlap
    with pytest.raises(RuntimeError, match="single memory location"):
        base.sum().backward()
