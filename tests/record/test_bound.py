"""A record stays below its bound, and keeps what matters most."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import graphwidget
from graphwidget.record.output import Output


def put(output: Output, kind: str, number: int, size: int, **more: object) -> None:
    assert output.append((kind, number), os.urandom(size), **more)


def test_what_lasts_and_the_newest_stay_with_all_that_they_use(tmp_path: Path) -> None:
    output = Output(tmp_path / "x.gwz", 100_000)
    put(output, "H", 0, 100, lasts=True)
    put(output, "G", 0, 3_000)
    put(output, "C", 0, 1_000, uses=(("G", 0),), lasts=True)
    for number in range(1, 200):
        put(output, "G", number, 2_000)
        put(output, "C", number, 500, uses=(("G", number),))
        assert output.size <= 100_000 and (tmp_path / "x.gwz").stat().st_size == output.size
    assert all(key in output for key in (("H", 0), ("G", 0), ("C", 0), ("C", 199), ("G", 199), ("C", 198), ("G", 198)))
    assert ("C", 20) not in output and output.left_out["C"] > 100
    assert os.listdir(tmp_path) == ["x.gwz"]
    assert all(("G", number) in output for number in range(200) if ("C", number) in output)


def test_a_newer_entry_takes_the_place_of_the_one_with_its_key(tmp_path: Path) -> None:
    output = Output(tmp_path / "x.gwz", 100_000)
    for _ in range(100):
        put(output, "S", 0, 20_000, lasts=True)
    assert ("S", 0) in output and output.size <= 100_000 and not output.left_out


def test_all_that_lasts_is_bounded_too(tmp_path: Path) -> None:
    output = Output(tmp_path / "x.gwz", 100_000)
    for number in range(100):
        put(output, "C", number, 10_000, lasts=True)
    assert ("C", 99) in output and output.size <= 100_000


def test_a_frame_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    output = Output(tmp_path / "x.gwz", 100_000)
    assert not output.append(("G", 0), os.urandom(30_000)) and output.left_out == {"G": 1}


def test_frames_are_read_back_in_their_order_after_the_file_was_written_anew(tmp_path: Path) -> None:
    output = Output(tmp_path / "x.gwz", 1000)
    for number in range(400):
        put(output, "C", number, 1)
    content = (tmp_path / "x.gwz").read_bytes()
    assert len(content) == output.size <= 1000


def test_a_small_bound_keeps_the_first_and_last_failure_the_last_state_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "run.gwz"
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(4, 4)
    with graphwidget.track(record=path, max_mb=1) as tracker:
        for number in range(150):
            hidden = torch.zeros(2, 4)
            for _ in range(5 + 2 * number):
                hidden = cell(torch.ones(2, 4), hidden)
            hidden.sum().backward()
            if number in (3, 70, 120):
                try:
                    hidden.sum().backward()
                except RuntimeError:
                    pass
            assert path.stat().st_size <= 1_000_000
    record = graphwidget.load(path)
    failed = [call.n for call in tracker.calls if call.result == "raised"]
    kept = [call for call in record.calls if call.result == "raised"]
    assert len(record.calls) < len(tracker.calls) == 153
    assert {failed[0], failed[-1]} <= {call.n for call in kept}
    assert all(call.graph is not None for call in kept if call.n in (failed[0], failed[-1]))
    assert record.calls[-1].n == 152 and record.complete
    assert f"Of 153 calls, {len(record.calls)} are in it" in record.explain()
    assert record.findings() == tracker.findings()
    assert len(record.snapshot()) == len(tracker.snapshot())


@pytest.mark.parametrize("taken", ["run.gwz", "run-2.gwz"])
def test_an_earlier_record_gets_a_free_name(tmp_path: Path, taken: str) -> None:
    for name in dict.fromkeys(("run.gwz", taken)):
        output = Output(tmp_path / name, 10_000)
        put(output, "H", 0, 10)
        output.close()
    before = {path.read_bytes() for path in tmp_path.iterdir()}
    output = Output(tmp_path / "run.gwz", 10_000)
    assert output.path.name == "run.gwz" and output.moved is not None
    put(output, "H", 0, 10)
    assert before < {path.read_bytes() for path in tmp_path.iterdir()}


def test_a_link_leads_to_where_the_record_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    output = Output(tmp_path / "link" / "run.gwz", 10_000)
    assert output.path == (tmp_path / "real" / "run.gwz").resolve()
