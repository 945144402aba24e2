"""The texts of the files that ran, for patches."""

from pathlib import Path

import pytest

from graphwidget.exports.texts import texts_of
from graphwidget.model import CellRun, Record, Snapshot


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\n    \n", "\r\n\r\n"])
def test_blank_lines_at_the_end_of_a_file_are_no_change_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sac.py").write_bytes(f"x = 1\ny = 2{end}".encode())
    record = Record(Snapshot(), runs={-1: CellRun(run=-1, cell=None, source="x = 1\ny = 2", file="sac.py")})
    assert texts_of(record) == {"sac.py": f"x = 1\ny = 2{end}"}


def test_a_file_that_is_another_one_now_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sac.py").write_text("x = 1\ny = 3\n")
    record = Record(Snapshot(), runs={-1: CellRun(run=-1, cell=None, source="x = 1\ny = 2", file="sac.py")})
    assert texts_of(record) == {}
