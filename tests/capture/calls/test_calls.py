"""The log of backward calls: each record must agree with what torch did."""

from __future__ import annotations

import threading

import pytest
from cells import Notebook
from torch.utils.checkpoint import checkpoint


@pytest.fixture
def notebook():
    made = Notebook()
    made.namespace.update(checkpoint=checkpoint, threading=threading)
    yield made
    made.close()


def test_a_second_backward_names_its_node_who_freed_it_and_who_carried_it(notebook: Notebook) -> None:
    notebook.run("a = torch.ones(2, requires_grad=True)\nt = torch.eye(2, requires_grad=True)\ny = t @ a")
    error = notebook.run("for i in range(2):\n    loss = (t @ (1 + y)).sum()\n    loss.backward()")
    assert isinstance(error, RuntimeError)
    first, second = notebook.calls
    assert (first.result, first.forecast, first.place.iteration) == ("ok", "ok", 0)
    assert (second.result, second.forecast, second.place.iteration) == ("raised", "freed", 1)
    assert (second.failed_node, second.freed_by, second.carriers) == ("MvBackward0", 0, ("y",))
    assert second.place.line == 3 and second.failed_place is not None and second.failed_place.cell == 1


def test_a_call_counts_what_it_freed_once_per_storage(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(4, requires_grad=True)\ny = x.exp()\nz = (y * y).sum()\nz.backward()")
    (call,) = notebook.calls
    assert call.executed_count == 4
    assert call.freed_slots == 3  # exp's result, and both factors: all of them y
    assert call.freed_bytes == 16
    assert call.reached == ("x",)


def test_retain_graph_frees_nothing(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(4, requires_grad=True)\ny = x.exp().sum()")
    notebook.run("y.backward(retain_graph=True)\ny.backward()")
    kept, last = notebook.calls
    assert (kept.retain_graph, kept.freed_slots, last.freed_slots) == (True, 0, 1)


def test_a_failing_call_frees_what_it_ran_before_it_failed(notebook: Notebook) -> None:
    notebook.run("a = torch.ones(3, requires_grad=True)\nb = torch.ones(3, requires_grad=True)\nshared = a.exp()")
    notebook.run("shared.sum().backward()\nother = b.exp()\nloss = (shared + other).sum()")
    assert notebook.run("loss.backward()") is not None
    assert notebook.run("other.sum().backward()") is not None
    first, failed, again = notebook.calls
    assert (failed.failed_node, failed.freed_by, failed.freed_slots) == ("ExpBackward0", 0, 1)
    assert (again.failed_node, again.freed_by) == ("ExpBackward0", 1)


def test_grad_with_inputs_frees_only_the_path(notebook: Notebook) -> None:
    notebook.run("a = torch.ones(3, requires_grad=True)\nb = torch.ones(3, requires_grad=True)")
    notebook.run("u, v = a.exp(), b.exp()\nloss = (u + v).sum()\ntorch.autograd.grad(loss, a)")
    (call,) = notebook.calls
    assert (call.api, call.freed_slots) == ("autograd.grad", 1)
    assert notebook.run("v.sum().backward()") is None
    assert notebook.run("u.sum().backward()") is not None
    assert notebook.calls[-1].freed_by == 0


def test_a_tensor_without_graph_is_a_call_that_failed_at_once(notebook: Notebook) -> None:
    assert notebook.run("torch.ones(1).backward()") is not None
    (call,) = notebook.calls
    assert (call.result, call.forecast, call.failed_node, call.executed_count) == ("raised", "no_grad", None, 0)


def test_the_only_write_that_may_hide_what_is_stale_is_where_the_call_failed(notebook):
    notebook.run("y = torch.ones(4, 3, requires_grad=True) * 1\na, b = y[:2], y[2:]\na.mul_(b)\nloss = y.sum()")
    notebook.run("loss.backward()")
    (call,) = notebook.calls
    assert "inplace" in call.error and call.failed_node == "torch::autograd::CopySlices"
    assert (call.failed_place.cell, call.failed_place.line) == (1, 3)


def test_where_two_writes_may_hide_what_is_stale_the_one_that_was_reached_first_is_named(notebook):
    notebook.run(
        "y = torch.ones(4, 3, requires_grad=True) * 1\na, b = y[:2], y[2:]\na.mul_(b)\n"
        "z = torch.ones(4, 3, requires_grad=True) * 1\nc, d = z[:2], z[2:]\nc.mul_(d)\nloss = y.sum() + z.sum()"
    )
    notebook.run("loss.backward()")
    (call,) = notebook.calls
    assert "inplace" in call.error and call.failed_place.line == 6  # the newest node runs first
    assert call.forecast == "ok" and call.assumes  # the forecast from before the call


def test_calls_inside_a_backward_are_not_the_users(notebook: Notebook) -> None:
    notebook.run(
        "x = torch.ones(3, requires_grad=True)\ny = checkpoint(torch.exp, x, use_reentrant=True).sum()\ny.backward()"
    )
    assert len(notebook.calls) == 1


def test_calls_that_torch_makes_while_it_traces_are_not_the_users(notebook: Notebook) -> None:
    notebook.run("torch.func.grad(lambda t: (t * t).sum())(torch.ones(3))")
    assert notebook.calls == ()


def test_a_call_in_a_thread_is_recorded_with_its_line(notebook: Notebook) -> None:
    notebook.run("x = torch.ones(3, requires_grad=True)\ny = x.exp().sum()")
    notebook.run("def work():\n    y.backward()\nt = threading.Thread(target=work)\nt.start()\nt.join()")
    (call,) = notebook.calls
    assert (call.place.cell, call.place.line, call.result) == (2, 2, "ok")
    assert call.thread != threading.get_ident()


def test_an_optimizer_closure_is_placed_in_the_closure_and_at_the_step(notebook: Notebook) -> None:
    notebook.run("w = torch.ones(2, requires_grad=True)\nopt = torch.optim.LBFGS([w], max_iter=1)")
    notebook.run("def closure():\n    loss = (w * w).sum()\n    loss.backward()\n    return loss\nopt.step(closure)")
    assert {(c.place.line, c.place.outer_line) for c in notebook.calls} == {(3, 5)}


def test_calls_in_a_loop_are_counted_and_every_one_knows_its_iteration(notebook: Notebook) -> None:
    notebook.run("w = torch.ones(3, requires_grad=True)")
    notebook.run("for i in range(60):\n    loss = (w * w).exp().sum()\n    loss.backward()")
    assert [call.place.iteration for call in notebook.calls] == list(range(60))
    assert {call.executed_count for call in notebook.calls} == {notebook.calls[0].executed_count}
    assert notebook.calls[-1].same_as is not None and notebook.calls[0].same_as is None


def test_what_a_counted_call_freed_is_known_when_it_is_met_again(notebook: Notebook) -> None:
    notebook.run("w = torch.ones(3, requires_grad=True)\nkept = []")
    notebook.run(
        "for i in range(60):\n    h = (w * w).exp()\n    loss = h.sum()\n    loss.backward()\n    kept.append(h)"
    )
    assert notebook.run("kept[50].sum().backward()") is not None
    call = notebook.calls[-1]
    assert (call.failed_node, call.freed_by) == ("ExpBackward0", 50)
    assert call.carriers == ("kept[50]",)


def test_an_old_part_is_noticed_however_many_calls_went_well(notebook: Notebook) -> None:
    notebook.run("w = torch.ones(3, requires_grad=True)\nold = (w * 2).exp()\n(old + 1).sum().backward()")
    source = "for i in range(60):\n    h = (w * w).exp()\n    if i == 40: h = h * old\n    loss = h.sum()\n    loss.backward()"
    assert notebook.run(source) is not None
    call = notebook.calls[-1]
    assert (call.place.iteration, call.forecast, call.freed_by) == (40, "freed", 0)


def test_a_forecaster_that_fails_spoils_no_call() -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("ours")

    notebook = Notebook(forecaster=broken)
    assert notebook.run("x = torch.ones(3, requires_grad=True)\nx.exp().sum().backward()") is None
    (call,) = notebook.calls
    assert (call.result, call.forecast, call.executed_count, call.freed_slots) == ("ok", "unknown", 3, 1)
    assert "ours" in notebook.tracker.problems[0]
    notebook.tracker.stop()
