"""A part of a table that a name stands for, where the next row of the table is written."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

X = "x = torch.rand(5, 3, requires_grad=True)"
TABLE = """
table = torch.zeros(5, 3)
table[0] = x[0]
for t in range(1, 5):
    {take}
    table[t, 1:] = x[t, 1:] + torch.logaddexp({read}[1:], torch.zeros(2))
table.sum().backward()
"""


@pytest.mark.parametrize("take", ["prev = table[t - 1]", "prev = table[t - 1, :]"])
def test_the_part_is_copied_where_it_is_taken(take: str) -> None:
    cell = TABLE.format(take=take, read="prev")
    (found,) = findings_of(X, cell)
    assert found.kind == "inplace" and found.fixes[0].verified
    fixed = text_edit.apply(cell, found.fixes[0].edits)
    assert f"    {take}.clone()\n" in fixed and not findings_of(X, fixed)


def test_what_another_line_has_saved_before_is_no_matter_of_that_copy() -> None:
    cell = TABLE.format(take="prev = table[t - 1]\n    table = table * prev.sum()", read="prev")
    findings = findings_of(X, cell)
    assert not any("Take a copy" in fix.text for one in findings for fix in one.fixes if fix.verified)
