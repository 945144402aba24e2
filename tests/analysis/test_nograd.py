"""Which line cut the graph, read from the cells' text."""

import pytest
from records import NO_GRAD, place

from graphwidget.analysis import nograd
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot, TensorRef


def explained(*cells):
    runs = {i: CellRun(i, i + 1, text, f"c{i + 1}") for i, text in enumerate(cells)}
    last = place(len(cells), 1, source="loss.backward()")
    root = (TensorRef(-1, 0, ("loss",), requires_grad=False),)
    call = BackwardCall(0, last, "backward", False, False, root, (), result="raised", error=NO_GRAD)
    return nograd.explain(Record(Snapshot(), (call,), (), runs), call)


CASES = {
    "detach": ("y = net(x).detach()\nloss = y.sum()\n", "detach", (1, 1)),
    "item": ("loss = torch.as_tensor(net(x).item())\n", "no_grad_or_item", (1, 1)),
    "argmax": ("loss = net(x).argmax(1).float().mean()\n", "differentiable_op", (1, 1)),
    "with": ("with torch.no_grad():\n    y = net(x)\nloss = y.sum()\n", "remove_no_grad", (1, 1)),
    "decorator": ("@torch.inference_mode()\ndef f(x):\n    return net(x)\nloss = f(x)\n", "remove_no_grad", (1, 2)),
    "switch": ("torch.set_grad_enabled(False)\nloss = net(x)\n", "remove_no_grad", (1, 1)),
    "frozen": ("for p in net.parameters():\n    p.requires_grad = False\nloss = net(x)\n", "unfreeze", (1, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_line_that_cut_the_graph_is_named(case):
    text, fix, at = CASES[case]
    finding = explained(text, "loss.backward()\n")
    assert [f.id for f in finding.fixes] == [fix]
    assert finding.fixes[0].at == at
    assert finding.severity == "error" and finding.tensor == "loss"


def test_a_grad_mode_that_was_switched_on_again_is_not_blamed():
    text = "torch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)\nloss = net(x)\n"
    assert [f.id for f in explained(text, "loss.backward()\n").fixes] == ["unfreeze"]


def test_errors_of_cells_without_a_call_are_explained():
    run = CellRun(
        0, 1, "", "c1", "RuntimeError", "Only Tensors of floating point and complex dtype can require gradients"
    )
    (finding,) = nograd.of_cells(Record(Snapshot(), runs={0: run}))
    assert finding.fixes[0].id == "float_dtype"
