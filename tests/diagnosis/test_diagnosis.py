"""Findings on records written by hand; and on random ones, which must never raise."""

from dataclasses import replace

from build import STALE, N, graph, leaf
from hypothesis import HealthCheck, given, settings
from records import FREED as FREED_TEXT
from records import INPLACE, NO_GRAD, place, placed, records, second_backward

from graphwidget.diagnosis.diagnose import diagnose, reason_of
from graphwidget.diagnosis.wording import number, opening
from graphwidget.model import BackwardCall, CellRun, Record, Snapshot, Storage, TensorRef, Write
from graphwidget.render import report


def test_nothing_wrong_says_nothing():
    assert diagnose(Record(Snapshot())) == ()


def test_a_second_backward_names_who_freed_it_and_what_carried_it_over():
    (finding,) = [f for f in diagnose(second_backward()) if f.kind == "second_backward"]
    assert finding.severity == "error"
    assert finding.freed_by == 0 and finding.carriers == ("y",)
    assert finding.text == (
        "`y` was built once, in In[1], line 1. ① (In[2], line 3, iteration 0) freed what MvBackward0 had saved. "
        "Iteration 1 reaches the same node through `y`."
    )


def test_the_line_outside_the_loop_is_to_be_moved_into_it_as_an_edit():
    (finding,) = [f for f in diagnose(second_backward()) if f.kind == "second_backward"]
    first = finding.fixes[0]
    assert first.id == "recompute_in_loop" and first.verified and first.at == (2, 2)
    text = "Run `y = t @ a` (In[1], line 1) again in the loop, so that each iteration builds its own graph."
    assert first.text == text
    assert first.edit == ("+ y = t @ a", "  loss = (y * w).sum()")


def test_retain_graph_is_not_offered_where_a_step_lies_between():
    record = second_backward()
    step = Write(place(2, 4), "opt.step()", ("t",), (77,), 1, True)
    found = diagnose(replace(record, writes=(step,)))
    ids = [fix.id for finding in found for fix in finding.fixes]
    assert ids and "retain_graph_earlier_call" not in ids


def test_an_unknown_earlier_call_is_said_to_be_unknown():
    record = second_backward()
    (finding,) = diagnose(replace(record, calls=(replace(record.calls[1], freed_by=None),)))
    assert "unknown" in finding.text and not any(fix.edits or fix.verified for fix in finding.fixes)


def test_a_stale_root_is_a_warning_before_any_call():
    shot = graph(N("Mul", "w", (STALE,), storage=(0,)), leaf("w"), storages=(Storage(5, 8, owners=("i", "e")),))
    shot = placed(replace(shot, roots=(TensorRef(0, 0, ("_", "late")),)), [place(1, 1), place(1, 1)])
    write = Write(place(1, 3), "e.mul_(2)", ("e",), (5,), 0)
    runs = {0: CellRun(0, 1, "late = e * w\nfor i in e:\n    e.mul_(2)\n", "c1")}
    (finding,) = diagnose(Record(shot, (), (write,), runs))
    assert (finding.kind, finding.severity, finding.tensor) == ("inplace", "warning", "e")
    assert finding.headline == "`late.backward()` would raise: `e` was modified in place."
    assert finding.fixes[0].edit == ("- e.mul_(2)", "+ e = e.mul(2)")


def test_reasons_come_from_torchs_own_words():
    call = BackwardCall(0, place(), "backward", False, False, (), (), result="raised")
    reasons = [reason_of(replace(call, error=text)) for text in (FREED_TEXT, INPLACE, NO_GRAD, "boom", None)]
    assert reasons == ["freed", "inplace", "no_grad", None, None]


def test_calls_are_counted_from_one():
    assert [number(n) for n in (0, 9, 10)] == ["①", "⑩", "call 11"]
    assert [opening(n) for n in (0, 10)] == ["①", "Call 11"]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(records())
def test_odd_records_never_raise_and_every_finding_fits_its_note(record):
    for finding in diagnose(record):
        lines = report.note(finding).splitlines()
        assert len(lines) <= 14 and all(len(line) <= 100 for line in lines)
        assert finding.text and finding.headline
        assert len(finding.fixes) <= 3
