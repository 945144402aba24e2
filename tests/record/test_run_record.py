"""A record tells what the tracker told that it was written by."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import run
from test_codec import plain

import graphwidget
from graphwidget.cli import main
from graphwidget.model import Drawing
from graphwidget.record import writer


@pytest.mark.parametrize("passes", [1, 60])
def test_all_that_was_recorded_is_read_again(tmp_path: Path, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FREE_SECONDS", 60.0)  # on a busy machine graphs of calls would be left out
    tracker = run(tmp_path / "run.gwz", passes)
    record = graphwidget.load(tmp_path / "run.gwz")
    assert plain(record.calls) == plain(tracker.calls)
    assert plain(record.events) == plain(tracker.events)
    assert record.findings() == tracker.findings() and record.findings()
    assert plain(record.record()) == plain(tracker.record())
    assert record.complete and not tracker.problems


def test_its_picture_is_the_same(tmp_path: Path) -> None:
    tracker = run(tmp_path / "run.gwz")
    record, live = graphwidget.load(tmp_path / "run.gwz").drawing(), tracker.drawing()
    assert "A record of process" in record.snapshot.notes[0]
    record = replace(
        record, snapshot=replace(record.snapshot, notes=live.snapshot.notes), torch=live.torch, record_of=""
    )
    assert isinstance(record, Drawing) and plain(record) == plain(live)
    assert sum(record.snapshot.ghost)


def test_the_command_line_answers_from_a_record_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.gwz"
    run(path)
    record = graphwidget.load(path)
    for format in ("text", "json", "dot"):
        assert main(["explain", "--format", format, str(path)]) == 1
        assert capsys.readouterr().out == record.explain(format) + "\n"
    assert main(["explain", str(path), "--format", "html"]) == 1  # behind it, too
    assert "<html" in capsys.readouterr().out
    document = json.loads(record.explain("json"))
    assert document["schema"] == 2 and document["findings"][0]["kind"] == "second_backward"
    assert document["notes"] == list(record.notes)
    assert main(["explain", str(path), "more"]) == 2


def test_a_patch_of_the_first_fix_is_made_from_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import torch, graphwidget\nw = torch.ones(2, requires_grad=True)\nh = torch.zeros(2)\n"
        "with graphwidget.track(record='run.gwz'):\n    for i in range(2):\n        h = torch.tanh(h + w)\n"
        "        try:\n            h.sum().backward()\n        except RuntimeError:\n            pass\n"
    )
    monkeypatch.chdir(tmp_path)
    runpy.run_path("train.py")
    patch = graphwidget.load("run.gwz").explain("diff")
    assert patch.startswith("--- a/train.py\n+++ b/train.py\n") and "+        h = h.detach()" in patch


def test_a_record_goes_on_when_the_program_changes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    with graphwidget.track(record="run.gwz"):
        monkeypatch.chdir(tmp_path / "below")
        torch.ones(2, requires_grad=True).exp().sum().backward()
    assert len(graphwidget.load(tmp_path / "run.gwz").calls) == 1


def test_an_error_of_the_block_is_in_its_record_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), graphwidget.track(record=tmp_path / "run.gwz"):
        1 / 0
    record = graphwidget.load(tmp_path / "run.gwz")
    assert [error.type for error in record.errors] == ["ZeroDivisionError"] and record.complete


@pytest.mark.parametrize("bound", [0, 0.5, -1, float("nan"), float("inf"), 1e9])
def test_a_bound_that_no_record_can_keep_is_refused(tmp_path: Path, bound: float) -> None:
    with (
        pytest.raises(ValueError, match="bounded by 1 to 4000 MB"),
        graphwidget.track(record=tmp_path / "run.gwz", max_mb=bound),
    ):
        pass


def test_an_unknown_format_names_those_that_there_are(tmp_path: Path) -> None:
    run(tmp_path / "run.gwz")
    with pytest.raises(ValueError, match="There are: text, json"):
        graphwidget.load(tmp_path / "run.gwz").explain("jason")
