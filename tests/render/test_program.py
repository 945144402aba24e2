"""The JSON document of `explain`: what it says of fixes."""

import json

from graphwidget.model import Drawing, Finding, Fix, Snapshot, TextEdit, Verdict
from graphwidget.render.program import ProgramRun, json_text


def fixes_of(*fixes):
    """Fixes as the document has them; the cell that ran as 7 is the second code cell of the file."""
    finding = Finding("leak", "warning", "Graphs pile up.", fixes=fixes)
    drawing = Drawing(Snapshot())
    run = ProgramRun("a.ipynb", "2.13", [], [], [finding], Verdict(), lambda: drawing, {7: 2}.get)
    return json.loads(json_text(run))["findings"][0]["fixes"]


def test_the_edits_of_a_fix_are_in_the_cells_of_the_file():
    edit = TextEdit((3, 4), (3, 4), "h = h.detach()\n    ", 7)
    (fix,) = fixes_of(Fix("detach", "Cut.", True, (7, 3), edit=("+ h = h.detach()",), edits=(edit,)))
    assert fix["at"] == [2, 3] and fix["edit"] == ["+ h = h.detach()"]
    assert fix["edits"] == [{"file": None, "cell": 2, "start": [3, 4], "end": [3, 4], "new": "h = h.detach()\n    "}]


def test_an_advice_has_no_edits_and_code_without_a_cell_has_none_either():
    advice, in_file = fixes_of(
        Fix("unfreeze", "Let it train."), Fix("detach", "Cut.", edits=(TextEdit((1, 0), (1, 0), "x"),))
    )
    assert advice["edits"] == []
    assert in_file["edits"][0]["cell"] is None
