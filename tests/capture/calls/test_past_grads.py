"""The picture of a past moment shows the `.grad` of every leaf as it was then."""

from __future__ import annotations

import pytest
from cells import Notebook

TWO = """\
t, a = torch.eye(2, requires_grad=True), torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
h = t @ a
loss = (h * b).exp().sum()"""
REACHED = {"t": True, "a": True, "b": True}
NONE = {"t": False, "a": False, "b": False}

CALLS = {
    "loss.backward()": REACHED,
    "loss.backward(retain_graph=True)": REACHED,
    "loss.backward(create_graph=True)": REACHED,
    "loss.backward(inputs=[a])": {"t": False, "a": True, "b": False},
    "h.backward(torch.ones(2))": {"t": True, "a": True, "b": False},
    "torch.autograd.grad(loss, [t, a])": NONE,
    "torch.autograd.grad(loss, [h])": NONE,
    "torch.autograd.backward([h.sum(), b.sum()])": REACHED,
    # It frees exp and mul before it raises in the matrix product, which an earlier call ran: b has been added to.
    "h.sum().backward(); t.grad = a.grad = None\ntry: loss.backward()\nexcept RuntimeError: pass": {**NONE, "b": True},
    # A hook takes the gradient away as soon as it is there, as an optimizer inside the backward does.
    "a.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None))\nloss.backward()": {
        **REACHED,
        "a": False,
    },
    "a.grad = torch.ones(2)\na.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None))\n"
    "loss.backward(inputs=[a])": NONE,
    # A Function may send no gradient where autograd expects one.
    """\
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, one, other): return one + other
    @staticmethod
    def backward(ctx, g): return g, None
Half.apply(t, b).sum().backward()""": {"t": True, "b": False},
}


def grads(snapshot):
    return {leaf.paths[0]: leaf.has_grad for leaf in snapshot.leaves.values() if leaf.paths}


@pytest.mark.parametrize("source", CALLS, ids=lambda source: source[-40:])
def test_after_a_call(source):
    notebook = Notebook()
    try:
        notebook.run(TWO)
        notebook.run(source)
        assert grads(notebook.tracker.events[0].snapshot) == NONE
        after = grads(next(e for e in reversed(notebook.tracker.events) if e.kind == "call").snapshot)
        live = {name: notebook.namespace[name].grad is not None for name in "tab"}
        assert after == {name: live[name] for name in after}  # unchanged since the call
        assert {name: after[name] for name in CALLS[source] if name in after} == {
            name: CALLS[source][name] for name in CALLS[source] if name in after
        }
        assert grads(notebook.tracker.events[-1].snapshot) == live
    finally:
        notebook.tracker.stop()


def test_each_moment_has_its_own():
    notebook = Notebook()
    try:
        notebook.run(TWO)
        notebook.run("loss.backward(retain_graph=True)")
        notebook.run("a.grad = None\nt.grad = None")
        notebook.run("loss.backward(inputs=[t])")
        told = [(event.kind, grads(event.snapshot)) for event in notebook.tracker.events]
        only_b = {"t": False, "a": False, "b": True}
        assert told == [
            ("cell", NONE),
            ("call", REACHED),
            ("cell", REACHED),
            ("cell", only_b),
            ("call", {**only_b, "t": True}),
            ("cell", {**only_b, "t": True}),
        ]
    finally:
        notebook.tracker.stop()


def test_a_leaf_on_which_backward_is_called():
    notebook = Notebook()
    try:
        notebook.run("x = torch.ones((), requires_grad=True)")
        notebook.run("x.backward()")
        call = next(event for event in notebook.tracker.events if event.kind == "call")
        assert grads(call.snapshot) == {"x": True}
    finally:
        notebook.tracker.stop()
