"""Mistakes that raise nothing."""

from array import array
from dataclasses import replace

from handmade import HELD, N, graph, leaf
from records import place, placed

from graphwidget.analysis import silent
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot, Storage, TensorRef

LEAF = TensorRef(0, 0, ("_", "loss"), is_leaf=True)


def ran(text, root=LEAF, **more):
    fields = {"result": "ok", "retain_graph": False, "executed": array("q"), **more}
    call = BackwardCall(0, place(2, 1), "backward", create_graph=False, roots=(root,), root_names=(), **fields)
    return Record(Snapshot(), (call,), (), {0: CellRun(0, 1, text, "c1")})


def test_a_loss_that_was_told_to_require_grad_after_it_was_computed_ran_nothing():
    (finding,) = silent.find(ran("loss = out.mean()\nloss.requires_grad_()\n"))
    assert finding.headline == "`loss.backward()` did nothing: 0 nodes ran."
    assert finding.fixes[0].at == (1, 1)


def test_a_leaf_that_was_created_as_one_is_fine():
    assert not list(silent.find(ran("loss = torch.ones((), requires_grad=True)\n")))


def test_a_retain_graph_that_nothing_used_is_worth_knowing():
    record = ran("", TensorRef(0, 0, ("y",)), retain_graph=True, executed=array("q", [1, 2]))
    (finding,) = silent.find(record)
    assert finding.severity == "info" and finding.kind == "silent"
    used = replace(record, calls=(*record.calls, replace(record.calls[0], n=1, retain_graph=False)))
    assert not list(silent.find(used))


def test_a_write_through_data_between_forward_and_backward_makes_a_gradient_wrong():
    shot = graph(N("Mul", "w", (HELD,), storage=(0,)), leaf("w"), storages=(Storage(0, 8, owners=("w",)),))
    shot = placed(shot, [place(1, 1, run=0), place(1, 1, run=0)])
    call = BackwardCall(
        0, place(3, 1, run=2), "backward", False, False, (TensorRef(0, 0, ("y",)),), (), result="ok", graph=shot
    )
    runs = {
        i: CellRun(i, i + 1, text, f"c{i + 1}")
        for i, text in enumerate(("y = w * w", "w.data.mul_(2)", "y.backward()"))
    }
    (finding,) = silent.find(Record(shot, (call,), (), runs))
    assert finding.severity == "warning" and finding.tensor == "w"
    earlier = {**runs, 1: replace(runs[1], source="w.mul_(2)")}
    assert not list(silent.find(Record(shot, (call,), (), earlier)))
