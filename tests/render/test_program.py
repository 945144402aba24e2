"""The JSON document of `explain`: what it says of fixes."""

import json

from graphwidget.model import Drawing, Finding, Fix, Snapshot, TextEdit, Trial, Verdict
from graphwidget.render.patch import patch
from graphwidget.render.program import ProgramRun, json_text
from graphwidget.render.report import finding_lines


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


def test_a_trial_is_reported_with_its_status_and_reason():
    passed, failed = Trial(True, "ran to its end in 0.4 s", 0.4), Trial(False, "raised NameError: h", 0.2)
    meant = Trial(True, "ran to its end in 0.4 s", 0.4, choice=True)
    tried, wrong, choice, not_tried = fixes_of(
        Fix("detach", "Cut.", True, tried=passed),
        Fix("recompute_in_loop", "Compute.", tried=failed),
        Fix("allow_unused", "Allow.", tried=meant),
        Fix("detach", "Cut.", True),
    )
    assert (tried["status"], tried["tried"]["ok"], tried["tried"]["seconds"]) == ("tried", True, 0.4)
    assert (wrong["status"], wrong["tried"]["why"]) == ("tried", "raised NameError: h")
    assert (choice["status"], choice["verified"], choice["tried"]["ok"]) == ("advice", False, True)
    assert (not_tried["status"], not_tried["tried"]) == ("simulated", None)


def test_the_text_of_a_fix_says_what_came_of_its_trial_and_no_longer_what_was_not_simulated():
    text = "\n".join(
        finding_lines(Finding("leak", "warning", "…", fixes=(Fix("detach", "Cut.", tried=Trial(False, "raised E")),)))
    )
    assert "1. Cut. Tried, and it failed: raised E." in text and "simulation" not in text


def test_a_patch_is_that_of_a_fix_that_passed_and_never_of_one_that_failed():
    def fix(new, ok):
        edit = TextEdit((1, 0), (1, 1), new, file="a.py")
        return Fix("detach", "Cut.", edits=(edit,), tried=None if ok == "not tried" else Trial(ok, "…"))

    finding = Finding("leak", "warning", "…", fixes=(fix("1", False), fix("2", "not tried"), fix("3", True)))
    assert "+3\n" in patch([finding], {"a.py": "x\n"})
    assert patch([Finding("leak", "warning", "…", fixes=(fix("1", False),))], {"a.py": "x\n"}) == ""
