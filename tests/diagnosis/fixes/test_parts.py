"""Operators that write into parts of a tensor: ``boxes[:, 0] *= width``."""

import pytest

from graphwidget.diagnosis.source.edits import text_edit
from tests.support.told import findings_of

HEAD = "w = nn.Parameter(torch.randn(3, 4))\ns = nn.Parameter(torch.ones(2))\ny = torch.exp(torch.randn(2, 3) @ w)\n"
TAIL = "y.sum().backward()\n"


@pytest.mark.parametrize(
    ("lines", "new"),
    [
        (["y[:, 0] *= 640", "y[:, 1] /= 2", "y[:, 2] += y[:, 0]"], ["y = y.clone()"]),
        (["y[:, 0] *= s"], ["y = y.clone()"]),
        (["y[:, 0] *= y[:, 1]"], ["y = y.clone()", "y[:, 0] *= y[:, 1].clone()"]),
    ],
)
def test_the_edit_that_is_called_checked_works(lines, new):
    cell = HEAD + "\n".join(lines) + "\n" + TAIL
    (finding,) = findings_of(cell)
    fix = finding.fixes[0]
    assert (fix.id, fix.verified) == ("clone_before_inplace", True)
    assert [step[2:].strip() for step in fix.edit if step.startswith("+")] == new
    assert findings_of(text_edit.apply(cell, fix.edits)) == ()
