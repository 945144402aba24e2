"""Mistakes that raise nothing."""

from array import array
from dataclasses import replace

import pytest
from build import HELD, STALE, N, graph, leaf
from records import place

from graphwidget.diagnosis.findings import silent
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot, Storage, TensorRef, Write

LEAF = TensorRef(0, 0, ("_", "loss"), is_leaf=True)


def ran(text, root=LEAF, **more):
    fields = {"result": "ok", "retain_graph": False, "executed": array("q"), **more}
    call = BackwardCall(0, place(2, 1), "backward", create_graph=False, roots=(root,), root_names=(), **fields)
    return Record(Snapshot(), (call,), (), {0: CellRun(0, 1, text, "c1")})


def test_a_loss_that_was_made_to_require_grad_after_it_was_computed_ran_nothing():
    (finding,) = silent.find(ran("loss = out.mean()\nloss.requires_grad_()\n"))
    assert finding.headline == "`loss.backward()` reached no parameter."
    assert finding.fixes[0].at == (1, 1)


def test_a_leaf_that_was_created_as_one_is_fine():
    assert not list(silent.find(ran("loss = torch.ones((), requires_grad=True)\n")))


@pytest.mark.parametrize("text", ["loss = net.bias\n", "loss = make()\n"])
def test_a_leaf_that_no_line_made_require_grad_may_be_meant(text):
    assert not list(silent.find(ran(text)))


def test_a_retain_graph_that_another_pass_of_its_line_needed_is_not_to_be_dropped():
    first = ran("", TensorRef(0, 0, ("y",)), retain_graph=True, executed=array("q", [1, 2])).calls[0]
    later = replace(first, n=1)
    assert not list(silent.find(Record(Snapshot(), (first, later))))


def test_a_retain_graph_that_nothing_used_is_worth_knowing():
    record = ran("", TensorRef(0, 0, ("y",)), retain_graph=True, executed=array("q", [1, 2]))
    (finding,) = silent.find(record)
    assert finding.severity == "info" and finding.kind == "silent"
    used = replace(record, calls=(*record.calls, replace(record.calls[0], n=1, retain_graph=False)))
    assert not list(silent.find(used))


def test_a_write_through_data_between_forward_and_backward_makes_a_gradient_wrong():
    shot = graph(N("Mul", "w", (HELD,), storage=(0,), seq=5), leaf("w"), storages=(Storage(7, 8, owners=("w",)),))
    root = (TensorRef(0, 0, ("y",)),)
    call = BackwardCall(0, place(3, 1, run=2), "backward", False, False, root, (), result="ok", graph=shot)
    call = replace(call, executed=shot.uid)
    write = Write(place(2, 1, run=1), "w.data.mul_(2)", ("w",), (7,), number=6)
    (finding,) = told(call, hidden=write)
    assert finding.severity == "warning" and finding.tensor == "w" and finding.modified_at == write.place
    assert finding.headline == "A gradient may be silently wrong: `w` was written to through `.data`."
    # Through another tensor: its own version counts it.
    assert [f.tensor for f in told(call, seen=replace(write, by="raw.mul_(2)"))] == ["w"]
    assert not told(call, hidden=replace(write, number=5))  # before the node saved it
    assert not told(call, hidden=replace(write, after_calls=1))  # after the call
    assert not told(call, hidden=replace(write, storages=(8,)))
    assert not told(call, seen=replace(write, optimizer=True))
    assert not told(replace(call, executed=shot.uid[1:]), hidden=write)
    stale = replace(shot, slot_state=bytearray([STALE]))
    assert not told(replace(call, graph=stale), hidden=write)  # it would have raised


def told(call, hidden=None, seen=None):
    record = Record(call.graph, (call,), (seen,) if seen else (), hidden=(hidden,) if hidden else ())
    return list(silent.find(record))
