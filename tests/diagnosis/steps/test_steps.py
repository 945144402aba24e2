"""A call node by node. That order, shapes and `.grad`s are those of the engine is tested on many graphs in tests/fuzz."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
import torch

import graphwidget as gw
from graphwidget.diagnosis.steps.calls import ahead, past
from graphwidget.diagnosis.written import Written
from graphwidget.model import Output
from tests.fuzz.watching import reachable


@pytest.fixture
def w():
    return torch.ones(3, requires_grad=True)


def hooked(root: torch.Tensor, names: list[str]) -> None:
    """Let each node below a tensor write its name when its turn comes."""
    for node in reachable([root]):
        name = node.name().split("::")[-1]
        node.register_prehook(lambda _, name=name: names.append(name))


def texts(steps: gw.Steps) -> list[str]:
    return [step.text for step in steps]


def test_the_steps_ahead_are_in_the_order_in_which_the_hooks_of_the_nodes_then_run(w):
    b = torch.ones(3, requires_grad=True)
    left, right = (w * 2).exp(), (b + 1).tanh()
    loss = (left * right).sum() + (left.sin() * w).sum()
    steps, ran = gw.steps(loss), []
    hooked(loss, ran)
    assert w.grad is None
    loss.backward()
    assert [step.node.name for step in steps] == ran and len(ran) == 12


def test_a_recorded_call_says_what_it_did_and_in_which_order(w):
    ran: list[str] = []
    with gw.track() as tracker:
        y = w.exp()
        loss = (y * y).sum()
        hooked(loss, ran)
        loss.backward()
        order = ran[:]
        w2 = (w * 3).sum()
        w2.backward(retain_graph=True)
    first, second = map(gw.steps, tracker.calls)
    assert [step.node.name for step in first] == order
    assert first.past and first.known and first.call == "① loss.backward()"
    assert texts(first)[1:] == [
        "A gradient float32[3] arrived. It saved other float32[3] and self float32[3]. It freed other and self, 12 B. "
        "It handed a gradient to ExpBackward0 (float32[3] ×2).",
        "2 gradients float32[3] arrived and were added up. It saved result float32[3]. It freed result, 12 B. "
        "It handed a gradient to the leaf w (float32[3]).",
        "A gradient float32[3] arrived. The .grad of w was None and was set.",
    ]
    assert second[-1].text == "A gradient float32[3] arrived. It was added to the .grad of w, which was there already."
    assert "It freed nothing: retain_graph=True." in second[1].text
    assert [step.grad for step in (first[-1], second[-1])] == ["set", "added"]


def test_the_step_at_which_a_call_raises_is_the_last(w):
    with gw.track() as tracker:
        y = w.exp()
        y.sum().backward()
        loss = (y * 2).sum()
        ahead_ = gw.steps(loss)
        with pytest.raises(RuntimeError):
            loss.backward()
    did = gw.steps(tracker.calls[-1])
    for steps in (ahead_, did):
        assert [step.result for step in steps] == ["runs", "runs", "raises"] and not steps[-1].frees
    assert (
        "It raised: its saved tensor result was freed by ①. It freed nothing, and no node ran after it." in did[-1].text
    )
    assert did.ending == "2 nodes ran and freed 1 saved tensor, 8 B; ExpBackward0 raised."
    assert ahead_.ending == "2 nodes would run and free 1 saved tensor, 8 B; ExpBackward0 would raise."


def test_what_autograd_grad_returns_and_what_create_graph_does(w):
    h = w.exp()
    loss = (h * h).sum()
    steps = gw.steps(loss, inputs=[h], api="grad")
    assert [(step.node.name, step.result) for step in steps][-1] == ("ExpBackward0", "captures")
    assert "autograd.grad would return it for h. The node itself would not run." in steps[-1].text
    w.grad = torch.ones(3)
    steps = gw.steps(loss, create_graph=True)
    assert steps[-1].grad == "replaced" and "It would free nothing: create_graph=True." in steps[1].text


def test_a_node_that_is_handed_no_gradient_says_so(w):
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g, None

    b = torch.ones(3, requires_grad=True)
    steps = gw.steps(Half.apply(w, b).sum())
    by_name = {step.node.labels[0] if step.node.leaf else step.node.name: step for step in steps}
    assert "the leaf b would get none from it." in by_name["HalfBackward"].text
    assert (
        by_name["b"].text == "No gradient would arrive. The .grad of b would stay as it is." and not by_name["b"].grad
    )
    assert by_name["w"].grad == "set"


def test_what_runs_inside_a_node_is_said_to_be_no_step(w):
    from torch.utils.checkpoint import checkpoint

    def inside(x: torch.Tensor) -> torch.Tensor:
        return x.sin().exp()

    def sentences(loss: torch.Tensor) -> list[str]:
        return [text for step in gw.steps(loss) for topic, text in step.facts if topic == "inside"]

    assert sentences(checkpoint(inside, w.exp(), use_reentrant=True).sum()) == [
        "It would run its function again, and a backward of its own: the nodes inside are no steps of this call."
    ]
    again = "Its checkpoint would run its function again, at the first node that needs it."
    assert set(sentences(checkpoint(inside, w.exp(), use_reentrant=False).sum())) == {again}
    y = w.exp()
    y[0] = w.sum()
    assert sentences(y.sum()) == ["It is an in-place write into a view: the node inside it is not shown."]
    assert sentences(w.exp().sum()) == []


def test_where_the_rest_cannot_be_known_the_steps_end_and_say_why(w):
    class Calls(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                w.exp().sum().backward()
            return g * 2

    steps = gw.steps(Calls.apply(w.sin()).sum())
    assert [step.result for step in steps] == ["runs", "unknown"]
    assert steps.ending.startswith("What happens from CallsBackward on is not known: ")


@pytest.mark.parametrize("devices, known", [(("cpu", "meta"), True), (("cuda:0",), True), (("cuda:0", "cpu"), False)])
def test_with_several_devices_the_order_is_unknown(w, devices, known):
    """The calling thread runs the nodes of cpu and meta; each other device has a thread of its own."""
    graph = gw.snapshot(w.exp().sum())
    table = tuple((Output("float32", (3,), device),) for device in devices)
    graph = replace(graph, output=array("i", [i % len(devices) for i in range(len(graph))]), outputs=table)
    steps = ahead(graph, Written())
    assert steps.known is known and len(steps) == (3 if known else 0)
    if not known:
        assert steps.ending == (
            "In which order it runs its nodes is not known: cpu and cuda:0 have a thread each, and which of them is "
            "faster is not known."
        )


def test_the_order_of_a_recorded_call_is_unknown_where_nothing_proves_it(w):
    with gw.track() as tracker:
        for _ in range(40):
            (w * w).sum().backward()
        w.exp().sum().backward()
    counted = next(call for call in tracker.calls if call.same_as is not None)
    assert gw.steps(counted).ending.endswith("because its graph is like that of ③. Look at ③.")
    last = tracker.calls[-1]
    assert gw.steps(last).known
    doubtful = {
        "dropped to bound memory": replace(last, graph=None),
        "still running": replace(last, result="running"),
        "not what the simulation says": replace(last, executed=last.executed[::-1]),
    }
    for doubt, call in doubtful.items():
        steps = past(call)
        assert not steps.known and len(steps) == 0 and doubt in steps.ending


def test_a_call_that_is_refused_has_no_steps_and_a_reason():
    steps = gw.steps(torch.ones(3, requires_grad=True) * 2, gradient=False)
    assert len(steps) == 0 and steps.known
    assert steps.ending.startswith("It would raise before any node runs: ")


def test_a_long_call_is_listed_from_both_ends(w):
    y = w
    for _ in range(100):
        y = y.sin()
    steps = gw.steps(y.sum())
    lines = steps.text(most=10).splitlines()
    assert len(steps) == 102 and lines.count("… 92 more steps") == 1 and len(lines) == 23
    assert lines[-3].startswith("102. AccumulateGrad of w") and repr(steps) == "<Steps of tensor.backward(): 102 steps>"
