"""One more keyword for the earlier call, wherever and however it is written."""

import pytest
from records import place

from graphwidget.diagnosis.fixes.second_backward.earlier_call import named, with_keyword
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import BackwardCall, CellRun, Place, Record, Snapshot, TensorRef


def kept(text, line, root):
    """The cell in which the call of `root` at a line keeps its graph."""
    earlier = BackwardCall(0, place(1, line), "backward", False, False, (TensorRef(0, 0, (root,)),), ())
    record = Record(Snapshot(), (earlier,), runs={0: CellRun(0, 1, text, "c1")})
    setting = Setting(Reuse(record, earlier, earlier, Snapshot()))
    return text_edit.apply(text, with_keyword(setting, "retain_graph=True"))


@pytest.mark.parametrize(
    ("text", "line", "root", "after"),
    [
        ("loss.backward()", 1, "loss", "loss.backward(retain_graph=True)"),
        ("a.backward(); b.backward()", 1, "b", "a.backward(); b.backward(retain_graph=True)"),
        ("for l in ls: l.backward()", 1, "l", "for l in ls: l.backward(retain_graph=True)"),
        ("backward(\n    [one],\n)", 1, "one", "backward(\n    [one], retain_graph=True,\n)"),
        ("backward((one),)", 1, "one", "backward((one),retain_graph=True)"),
        ("backward((one))", 1, "one", "backward((one), retain_graph=True)"),
        ("é = f(x); é.backward(retain_graph=False)", 1, "é", "é = f(x); é.backward(retain_graph=True)"),
        ("fit(net)", 1, "loss", "fit(net)"),
    ],
)
def test_the_keyword_is_written_into_the_call(text, line, root, after):
    assert kept(text, line, root) == after


def test_a_call_goes_by_its_line_or_by_the_button_that_made_it():
    call = BackwardCall(3, place(2, 4), "backward", False, False, (TensorRef(0, 0, ("loss",)),), ())
    assert named(call) == "In[2], line 4"
    pressed = BackwardCall(3, Place(None, None, button=True), "backward", False, False, call.roots, ())
    assert named(pressed) == "`loss.backward()`"
    elsewhere = BackwardCall(3, Place(None, None), "backward", False, False, call.roots, ())
    assert named(elsewhere) == "call 4"
