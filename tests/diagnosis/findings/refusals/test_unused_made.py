"""An input that was not used, as it was told too late to require grad, or as it was computed anew."""

from dataclasses import replace

from told import findings_of, record_of

from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Lineage, MeasuredLate, TextLine

FIELD = """field = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
def slope(out, where):
    where.requires_grad_()
    return torch.autograd.grad(out.sum(), where)[0]"""
ASKS = "spots = torch.rand(5, 2)\nheight = field(spots * 2)\nsteep = slope(height, spots)"
LATE = MeasuredLate(0, (TextLine(2, None, 2),), (TextLine(1, None, 3), TextLine(2, None, 3)))


def test_an_input_that_is_told_too_late_is_told_before_its_first_use() -> None:
    record = record_of(FIELD, ASKS)
    (found,) = diagnose(replace(record, lineage=Lineage(record.calls[-1].n, late=(LATE,))))
    assert "`where.requires_grad_()` (In[1], line 3) comes too late" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 3)
    fixed = text_edit.apply(ASKS, found.fixes[0].edits)
    assert fixed.splitlines()[1] == "spots.requires_grad_()"
    assert not findings_of(FIELD, fixed)


def test_the_line_that_tells_it_moves_where_it_stands_behind_the_use() -> None:
    asks = "spots = torch.rand(5, 2)\nheight = field(spots)\nspots.requires_grad_()\nout = torch.autograd.grad(height.sum(), spots)"
    record = record_of(FIELD, asks)
    late = MeasuredLate(0, (TextLine(2, None, 2),), (TextLine(2, None, 3),))
    (found,) = diagnose(replace(record, lineage=Lineage(record.calls[-1].n, late=(late,))))
    fixed = text_edit.apply(asks, found.fixes[0].edits)
    assert fixed.splitlines()[1:3] == ["spots.requires_grad_()", "height = field(spots)"]
    assert fixed.count("requires_grad_") == 1 and not findings_of(FIELD, fixed)


def test_what_a_root_was_computed_from_before_is_measured() -> None:
    import torch

    line = [0]
    mode = LineageMode(lambda: (TextLine(1, None, line[0]),), lambda one: "")
    w = torch.ones(2, requires_grad=True)
    with mode:
        x, other = torch.rand(2), torch.rand(2)
        line[0] = 1
        early = x * 3
        line[0] = 2
        x.requires_grad_()
        other.requires_grad_()
        line[0] = 3
        root, apart = (early * w).sum(), (other * w).sum()
    assert mode.measured(1, root, (), [x, other]).late == (
        MeasuredLate(0, (TextLine(1, None, 1),), (TextLine(1, None, 2),)),
    )
    assert mode.measured(1, apart, (), [x, other]).late == ()


def test_a_line_that_has_not_run_yet_is_no_cut() -> None:
    asks = ASKS + "\nshown = spots.detach() + 1"
    (found,) = findings_of(FIELD, asks)
    assert "detach" not in found.text


CODES = """body = nn.Linear(3, 3)
def code(z):
    return body(z).tanh()
class Maker:
    def both(self, z):
        image = (code(z) * 2).exp()
        return image, code(z)"""


def test_an_input_that_is_computed_anew_is_another_tensor() -> None:
    asks = "image, again = Maker().both(torch.rand(2, 3))\nout = torch.autograd.grad(image.sum(), again)"
    (found,) = findings_of(CODES, asks)
    assert "`return image, code(z)` (In[1], line 7" in found.text and "computes it anew" in found.text
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    once = CODES.replace("image = (code(z) * 2).exp()", "kept = code(z)").replace(
        "image, code(z)", "(kept * 2).exp(), kept"
    )
    assert not findings_of(once, asks)


def test_a_copy_that_is_told_was_not_used_where_the_original_was() -> None:
    import torch

    line = [0]
    mode = LineageMode(lambda: (TextLine(1, None, line[0]),), lambda one: "")
    w = torch.ones(2, requires_grad=True)
    with mode:
        x = torch.rand(2, dtype=torch.float64)
        line[0] = 1
        apart = x * 3
        line[0] = 2
        given, apart = x.float(), apart.float()
        line[0] = 3
        given.requires_grad_()
        root = (apart * w).sum()
    assert mode.measured(1, root, (), [given]).late == (
        MeasuredLate(0, (TextLine(1, None, 1),), (TextLine(1, None, 3),)),
    )
