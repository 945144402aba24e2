"""What a record cannot give is said, and what came of trials stays with its fixes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import run
from test_hostile import whole, written

import graphwidget
from graphwidget.cli import main
from graphwidget.model import Finding, Trial
from graphwidget.record import frames
from graphwidget.record.codec import Codec


def test_a_record_of_a_newer_schema_is_refused_on_the_command_line_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "newer.gwz", [("H", {"schema": 2, "graphwidget": "9.9"})])
    assert main(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "schema 2, written by graphwidget 9.9" in said.err and "pip install --upgrade graphwidget" in said.err


@pytest.mark.parametrize(
    "tried, verified",
    [(Trial(True, "ran 3 further passes in 2.1 s", 2.1, 3), True), (Trial(False, "raised NameError: h"), False)],
)
def test_what_came_of_a_trial_is_shown_again(tmp_path: Path, tried: Trial, verified: bool) -> None:
    run(tmp_path / "run.gwz", passes=1)
    first, *others = graphwidget.load(tmp_path / "run.gwz").findings()
    fix = replace(first.fixes[0], tried=tried, verified=verified)
    found = (replace(first, fixes=(fix, *first.fixes[1:])), *others)
    data = Codec().write(tuple[Finding, ...], found)
    kept = [(kind, data if kind == "F" else one) for kind, one in whole(tmp_path / "run.gwz")]
    record = graphwidget.load(written(tmp_path / "tried.gwz", kept))
    assert record.findings() == found and record.findings()[0].fixes[0].tried == tried
    assert tried.why in " ".join(record.explain().split())
    shown = json.loads(record.explain("json"))["findings"][0]["fixes"][0]
    assert shown["tried"]["why"] == tried.why and shown["verified"] is verified


def test_graphs_that_are_too_large_are_missing_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_graphs = graphwidget.load(_ran(tmp_path / "all.gwz"))
    assert not [note for note in whole_graphs.notes if "larger than" in note]
    largest = max(len(json.dumps(one)) for kind, one in whole(tmp_path / "all.gwz") if kind == "G")
    others = max(len(json.dumps(one)) for kind, one in whole(tmp_path / "all.gwz") if kind != "G")
    monkeypatch.setattr(frames, "MOST_INFLATED", max(others + 200, largest // 2))
    path = _ran(tmp_path / "some.gwz")
    record = graphwidget.load(path)
    (note,) = [note for note in record.notes if "larger than a record can hold" in note]
    missing = [call for call in record.calls if call.graph is None]
    assert missing and note.startswith("Not in it: ") and note in " ".join(record.explain().split())
    assert record.findings() and record.complete


def _ran(path: Path) -> Path:
    run(path, passes=1)
    return path
