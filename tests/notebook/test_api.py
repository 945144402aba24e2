from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from contextlib import nullcontext

import numpy
import pytest
import torch

import graphwidget as gw
from graphwidget.notebook import session

w = torch.ones(3, requires_grad=True)


def test_a_snapshot_of_given_tensors_has_their_graphs_and_names_only() -> None:
    h = w.exp()
    loss = h.sum()
    other = (w * 2).sum()
    found = gw.snapshot(loss)
    assert [node.name for node in found.nodes] == ["SumBackward0", "ExpBackward0", "AccumulateGrad"]
    assert found.roots[0].path == "loss" and found.node(1).labels == ("h",) and found.node(2).labels[0] == "w"
    assert other is not None


def test_a_snapshot_without_tensors_finds_what_the_caller_can_name() -> None:
    h = w.exp()
    loss = h.sum()
    found = gw.snapshot()
    assert "loss" in [ref.path for ref in found.roots] and loss is not None


def test_a_snapshot_outlives_its_tensors_and_holds_none() -> None:
    loss = w.exp().sum()
    found, ref = gw.snapshot(loss), weakref.ref(loss)
    del loss
    assert ref() is None and len(found) == 3


def test_the_ways_out_of_a_snapshot(tmp_path: object) -> None:
    loss = w.exp().sum()
    found = gw.snapshot(loss)
    assert "ExpBackward0" in found.to_text() and "ExpBackward0" in found.to_dot()
    assert json.loads(found.to_json())["roots"][0]["path"] == "loss"
    assert found.to_networkx().number_of_nodes() == 3


def test_a_forecast_runs_nothing() -> None:
    loss = w.exp().sum()
    answer = gw.forecast(loss)
    assert answer.ok and [node.name for node in answer.executes][:2] == ["SumBackward0", "ExpBackward0"]
    assert w.grad is None
    loss.backward()
    w.grad = None
    again = gw.forecast([loss], retain_graph=True)
    assert again.ok is False and again.reason == "freed" and again.fails_at.name == "ExpBackward0"


def test_a_forecast_takes_inputs_and_gradient_edges() -> None:
    h = w.exp()
    loss = h.sum()
    assert [n.name for n in gw.forecast(loss, inputs=h, api="grad").executes] == ["SumBackward0"]
    assert gw.forecast(torch.autograd.graph.get_gradient_edge(loss)).ok is not False


def test_a_forecast_of_a_tensor_without_grad_says_what_to_do() -> None:
    plain = torch.ones(())
    answer = gw.forecast(plain)
    assert answer.ok is False and answer.reason == "no_grad" and "requires_grad_()" in answer.why
    assert "x.float()" in gw.forecast(torch.ones((), dtype=torch.int64)).why


def test_tracking_a_script_records_its_calls() -> None:
    with gw.track() as tracker:
        h = w.exp()
        (h * 2).sum().backward()
        with pytest.raises(RuntimeError) as caught:
            (h * 3).sum().backward()
        (finding,) = gw.explain(caught.value)
        assert finding.kind == "second_backward" and finding.carriers[0].endswith(":h")
        assert gw.explain(h)[0].kind == "second_backward" and gw.explain()
    assert [call.result for call in tracker.calls] == ["ok", "raised"]
    assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward
    w.grad = None


def test_findings_are_read_as_text_also_after_the_block() -> None:
    error = None
    with gw.track():
        loss = w.exp().sum()
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as raised:
            error = raised
    assert error is not None
    told = gw.explain()
    text = str(told)
    assert text == repr(told) == str(told[0]) and text.splitlines()[0] == "✕ ② needs saved tensors that ① freed."
    assert "  1. " in text and repr(told[0]) == "<Finding second_backward: ② needs saved tensors that ① freed.>"
    assert gw.explain(error) == told and str(gw.explain(ValueError())) == "No finding."
    with pytest.raises(RuntimeError, match="nothing is"):
        gw.explain(loss)  # of a tensor only what happened in a block is known, not what came after


def test_explaining_without_tracking_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_ended", [])
    with pytest.raises(RuntimeError, match="load_ext graphwidget"):
        gw.explain()


def test_a_view_of_tensors_works_without_a_tracker() -> None:
    loss = w.exp().sum()
    view = gw.view(loss, height=300)
    assert view.height == 300 and json.loads(view.wire)["n"] == 3 and "◆ SumBackward0  loss" in view.as_text()


def test_a_view_of_tensors_keeps_none_of_them_and_keeps_its_last_picture() -> None:
    loss = w.exp().sum()
    view, ref = gw.view(loss), weakref.ref(loss)
    del loss
    gc.collect()
    assert ref() is None
    view.refresh()
    assert json.loads(view.wire)["n"] == 3


def test_the_button_of_a_view_of_tensors_runs_backward_without_a_tracker() -> None:
    v = torch.ones(3, requires_grad=True)
    loss = v.exp().sum()
    view = gw.view(loss)
    sent: list[dict] = []
    view.send = sent.append
    id = json.loads(view.wire)["roots"][0]["id"]
    view._handle_custom_msg({"id": 1, "verb": "backward", "root": id}, [])
    assert sent[-1]["result"]["raised"] is None and v.grad is not None
    assert json.loads(view.delta)["slotState"] == [[0, 1, "A"]], "freed, all of it"


def test_a_view_of_a_leaf_leaves_no_weak_reference() -> None:
    """torch swaps no tensor that has one: `module.to()` would fail."""
    leaf = torch.ones(3, requires_grad=True)
    gw.view(leaf)
    assert weakref.getweakrefcount(leaf) == 0


def test_a_view_of_everything_needs_a_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_ended", [])
    with pytest.raises(RuntimeError, match=r"graphwidget.view\(loss\)"):
        gw.view()
    with gw.track():
        assert "wire" in gw.view().keys


BAD: list[tuple[object, type[Exception], str]] = [
    (torch.nn.Linear(2, 2), TypeError, "Pass what it returns"),
    ("loss", TypeError, "pass the tensor itself"),
    (numpy.ones(2), TypeError, "torch.from_numpy"),
    (3.5, TypeError, "before .item"),
    (None, TypeError, "requires_grad=True"),
    ({"a": 1}, TypeError, "one by one"),
    (torch.ones(2), ValueError, "requires_grad_()"),
    (torch.ones(2, dtype=torch.int32), ValueError, r"x.float\(\)"),
]


# A forecast of a tensor without grad is an answer, and explain(None) asks about everything.
MISUSE = [
    (function, *bad)
    for function in (gw.snapshot, gw.view, gw.forecast, gw.explain)
    for bad in BAD
    if not (function is gw.forecast and isinstance(bad[0], torch.Tensor))
    and not (function is gw.explain and bad[0] is None)
]


@pytest.mark.parametrize(
    "function, bad, error, step", MISUSE, ids=[f"{case[0].__name__}-{type(case[1]).__name__}" for case in MISUSE]
)
def test_misuse_is_an_error_that_names_the_next_step(
    function: Callable, bad: object, error: type[Exception], step: str
) -> None:
    with pytest.raises(error, match=step):
        function(bad)


@pytest.mark.parametrize(
    "call, near",
    [
        (lambda x: gw.forecast(x, retain=True), "'retain_graph'"),
        (lambda x: gw.view(x, hight=3), "'height'"),
        (lambda x: gw.snapshot(x, slots=False), "takes none"),
        (lambda x: gw.explain(x, verbose=True), "takes none"),
        (lambda x: gw.forecast(x, api="jvp"), '"backward" or "grad"'),
        (lambda x: gw.forecast([]), "at least one tensor"),
        (lambda x: gw.forecast(x, api="grad"), "needs inputs="),
    ],
)
def test_unknown_options_are_refused(call: Callable, near: str) -> None:
    with pytest.raises((TypeError, ValueError), match=near):
        call(w.exp().sum())


def test_a_forecast_knows_the_hooks_of_tensors_that_a_caller_holds() -> None:
    def raising(grad):
        raise ValueError("boom")

    def asks(loss):
        return gw.forecast(loss)

    inner = torch.rand(3, requires_grad=True) * 2
    inner.register_hook(raising)
    assert asks(inner.sum()).reason == "raises"


@pytest.mark.parametrize("modified", [False, True])
def test_a_forecast_is_definite_about_a_write_that_takes_a_view_and_rebuilds_no_view(modified: bool) -> None:
    with gw.track():
        base, other = torch.rand(4, 4, requires_grad=True) * 1, torch.rand(4, 4, requires_grad=True) * 1
        row = other[1]
        base[0].mul_(row)
        if modified:
            other.add_(1)
        loss, number = base.sum(), torch._C._autograd._get_sequence_nr()
        told = gw.forecast(loss)
        assert told.word == ("inplace" if modified else "ok") and not told.assumes
        assert torch._C._autograd._get_sequence_nr() == number
    assert (row.grad_fn.name() == "AsStridedBackward0") == modified  # rebuilt now, by this line
    assert (torch._C._autograd._get_sequence_nr() > number) == modified


@pytest.mark.parametrize("converted", ["net.half()", "net.double()", "net.double(); net.float()", "net.weight.add_(1)"])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_leaf_is_an_input_of_the_graphs_that_were_made_with_its_type(converted: str, tracked: bool) -> None:
    """Torch gives a leaf another AccumulateGrad node when its type changes; an old graph leads to the old one."""
    with gw.track() if tracked else nullcontext():
        net = torch.nn.Linear(3, 2)
        loss = net(torch.ones(4, 3)).sum()
        with torch.no_grad():
            exec(converted, {"net": net})
        number = torch._C._autograd._get_sequence_nr()
        grad = gw.forecast(loss, inputs=[net.weight], api="grad", allow_unused=False, retain_graph=True)
        backward = gw.forecast(loss, inputs=[net.weight], retain_graph=True)
        assert torch._C._autograd._get_sequence_nr() == number
        try:
            torch.autograd.grad(loss, [net.weight], retain_graph=True)
            raised = False
        except RuntimeError:
            raised = True
        loss.backward(inputs=[net.weight], retain_graph=True)
    assert grad.ok is not raised and raised is ("add_" not in converted)
    assert len(backward.reaches) == (net.weight.grad is not None)


def test_a_new_graph_after_a_conversion_has_the_new_leaf() -> None:
    net = torch.nn.Linear(3, 2)
    old = net(torch.ones(4, 3)).sum()
    net.double()
    new = net(torch.ones(4, 3, dtype=torch.float64)).sum()
    both = old + new
    found = gw.forecast(both, inputs=[net.weight])
    both.backward(inputs=[net.weight])
    assert len(found.reaches) == 1 and net.weight.grad is not None
    assert [node.name for node in found.executes].count("AddmmBackward0") == 1


def test_views_that_torch_refuses_are_refused_not_raised() -> None:
    h = w.tanh()
    a, b = h.chunk(2)
    with torch.no_grad():
        h[0] = 0
    for found in (gw.forecast(a), gw.forecast(w.exp().sum(), inputs=[b]), gw.forecast([w.exp().sum(), a])):
        assert (found.ok, found.reason) == (False, "inplace") and "one of several views" in found.why
    with pytest.raises(RuntimeError, match="Output 0 of Split"):
        a.backward(torch.ones(2))
    assert len(gw.snapshot(a)) == 0
    assert [node.name for node in gw.snapshot(a, w.exp()).nodes][:1] == ["ExpBackward0"]


def test_a_leaf_may_be_root_and_input_and_a_leaf_that_torch_refuses_is_no_error() -> None:
    assert gw.forecast([w.exp().sum(), w], inputs=[w]).ok
    base = torch.ones(3)
    with torch.no_grad():
        view = base[:2]
    view.requires_grad_()
    loss = view.exp().sum()
    with torch.no_grad():
        base.mul_(2)
    found = gw.forecast(loss, inputs=[view], retain_graph=True)
    try:
        loss.backward(inputs=[view], retain_graph=True)
    except RuntimeError:
        assert found.ok is not True
    else:
        assert found.ok is not False


def test_a_forecast_takes_the_parameters_of_a_module_as_they_come() -> None:
    net = torch.nn.Linear(2, 1)
    told = gw.forecast(net(torch.ones(1, 2)).sum(), inputs=net.parameters())
    assert told.ok and len(told.reaches) == 2


def test_the_live_view_keeps_its_height_unless_one_is_asked_for(shell):
    shell.run_line_magic("load_ext", "graphwidget")
    view = gw.view()
    view.height = 700  # as somebody dragged it
    assert gw.view() is view and view.height == 700
    assert gw.view(height=300) is view and view.height == 300
