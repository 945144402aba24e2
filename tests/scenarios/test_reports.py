"""Programs after public bug reports: no finding is false, no fix is harmful, and correct programs cause no alarm.

`score_reports.py` explains the fields of a truth; it also compares the names in a finding, and its first fix.
"""

import json
import sys
from pathlib import Path

import pytest
import score_reports
from runs.warm import forked

REPORTS = Path(__file__).parent / "reports"
NAMES = sorted(path.stem for path in REPORTS.glob("*.json"))
CHECKED = ("error", "exit", "not", "quiet")


def not_tried(*_):
    """Skip running fixes. `score_reports.py` does it: each needs a process that imports torch."""
    return False, "not tried"


def explained(path):
    document, why_not = forked(str(path))
    assert document is not None, why_not
    return document


def test_there_are_reports():
    assert len(NAMES) >= 36


@pytest.mark.parametrize("name", NAMES)
def test_nothing_false_or_harmful_is_said(name):
    program, fixed = REPORTS / f"{name}.py", REPORTS / f"{name}.fixed.py"
    truth = json.loads((REPORTS / f"{name}.json").read_text())
    corrected = explained(fixed) if fixed.exists() and truth.get("quiet_when_fixed", True) else None
    compared = score_reports.compare(
        truth, explained(program), corrected, None, str(program), sys.executable, not_tried
    )
    held = {check: compared[check] for check in CHECKED if check in compared}
    assert {"error", "exit"} <= held.keys()
    assert {check: note for check, (right, note) in held.items() if not right} == {}
