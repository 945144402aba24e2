"""A record that is cut, damaged or made by somebody hostile is read as far as it is whole, or refused with a sentence."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from recorded import run
from test_codec import leaves_of, plain, planted

import graphwidget
from graphwidget.cli import main
from graphwidget.record.frames import MAGIC, MOST_INFLATED, body, frames, packed, small
from graphwidget.record.run_record import RunRecord, load

HEAD = struct.Struct("<cBII")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("record") / "run.gwz"
    run(path, passes=2)
    return path


def whole(path: Path) -> list[tuple[str, Any]]:
    """The kind and the data of each frame."""
    with path.open("rb") as file:
        return [(frame.kind, body(frame)) for frame in frames(file, path.stat().st_size)]


def written(path: Path, found: list[tuple[str, Any]]) -> Path:
    """A file of these frames, with right checksums."""
    path.write_bytes(MAGIC + b"".join(packed(kind, data) for kind, data in found))
    return path


def used(record: RunRecord) -> int:
    """Ask for everything that there is; returns the number of calls."""
    for format in ("text", "json", "dot"):
        record.explain(format)
    assert len(record.drawing().events) == len(record.events)
    return len(record.calls)


def read_or_refused(path: Path) -> int:
    """Number of calls; -1: it was refused with a sentence that names the file."""
    try:
        return used(load(path))
    except graphwidget.UnreadableRecord as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return -1


def test_a_record_cut_anywhere_is_shorter_or_refused(record: Path, tmp_path: Path) -> None:
    content = record.read_bytes()
    with record.open("rb") as file:
        ends = [frame.end for frame in frames(file, len(content))]
    cut = tmp_path / "cut.gwz"
    lengths = {*range(ends[0] + 2), *(end + d for end in ends for d in (-1, 0, 1)), *range(0, len(content), 997)}
    known = -1
    for length in sorted(lengths):
        cut.write_bytes(content[:length])
        calls = read_or_refused(cut)
        assert calls >= known, length
        assert (calls >= 0) == (length >= ends[0]), length
        known = calls
    assert known == len(load(record).calls)


def test_a_cut_record_says_so(record: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gwz"
    cut.write_bytes(record.read_bytes()[:-5])
    found = load(cut)
    assert not found.complete and found.exit is None
    assert "cut or damaged at byte" in found.explain() and "end is not in it" in found.explain()
    # What no longer says it is found again: a diagnosis needs plain data only.
    assert [finding.kind for finding in found.findings()] == ["second_backward"]


def test_a_flipped_byte_anywhere_gives_a_shorter_record_or_a_refusal(record: Path, tmp_path: Path) -> None:
    content = record.read_bytes()
    calls, flipped = len(load(record).calls), tmp_path / "flipped.gwz"
    good = [frame.start for frame in frames(io.BytesIO(content), len(content))]
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        if at >= len(MAGIC):
            # What stands before the frame with that byte is read, and nothing else.
            found = [frame.start for frame in frames(io.BytesIO(damaged), len(content))]
            assert found == [start for start in good if start <= at][:-1]
        if not at % 151:
            flipped.write_bytes(damaged)
            assert read_or_refused(flipped) <= calls


ODD = [None, -1, 2**62, 2**80, "x", "\x1b[2J", [], {}, [[]], 1e308, True, [1] * 1000, {"calls": [{}]}]


@pytest.mark.parametrize("seed", range(60))
def test_wrong_values_behind_right_checksums_are_refused_or_harmless(record: Path, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    found = whole(record)
    data = [data for _, data in found]
    for _ in range(choose.randint(1, 3)):
        data = planted(data, choose.choice(leaves_of(data)[1:]), choose.choice(ODD))
    read_or_refused(written(tmp_path / "odd.gwz", [(kind, one) for (kind, _), one in zip(found, data, strict=True)]))


def test_frames_in_another_order_or_left_out_are_refused_or_harmless(record: Path, tmp_path: Path) -> None:
    found = whole(record)
    choose = random.Random(0)
    for _ in range(60):
        some = [one for one in found[1:] if choose.random() < 0.8]
        choose.shuffle(some)
        read_or_refused(written(tmp_path / "shuffled.gwz", [found[0], *some]))
        read_or_refused(written(tmp_path / "shuffled.gwz", [found[0], *some, *some]))


def framed(kind: bytes, encoding: int, stored: bytes, size: int, length: int | None = None) -> bytes:
    head = HEAD.pack(kind, encoding, len(stored) if length is None else length, size)
    return head + struct.pack("<I", zlib.crc32(stored, zlib.crc32(head))) + stored


MANY = 200 * 2**20
BOMBS = {
    "more than it says": lambda: framed(b"C", 1, zlib.compress(b" " * MANY), 100),
    "much, and says so": lambda: framed(b"C", 1, zlib.compress(b" " * MANY), MANY),
    "as much as is allowed": lambda: framed(b"C", 1, zlib.compress(b" " * MOST_INFLATED), MOST_INFLATED),
    "a huge length": lambda: framed(b"C", 0, b"{}", 2, 2**32 - 1),
    "lists in lists": lambda: framed(b"C", 1, zlib.compress(b"[" * 500_000), 500_000),
    "many lists": lambda: framed(b"C", 1, zlib.compress(b"[" + b"[]," * 5_000_000 + b"1]"), 15_000_003),
    "a long number": lambda: framed(b"C", 1, zlib.compress(b"9" * 1_000_000), 1_000_000),
    "not a number": lambda: framed(b"C", 0, b"NaN", 3),
    "no zlib": lambda: framed(b"C", 1, b"\0" * 50, 50),
    "two streams": lambda: framed(b"C", 1, zlib.compress(b"{}") + zlib.compress(b"{}"), 2),
    "no JSON": lambda: framed(b"C", 0, b"import os", 9),
    "a graph without a number": lambda: framed(b"G", 0, b"{}", 2),
    "no letter": lambda: framed(b"\x1b", 0, b"{}", 2),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_ends_the_record_without_much_memory(record: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "bomb.gwz"
    path.write_bytes(MAGIC + packed("H", whole(record)[0][1]) + BOMBS[name]() * 3)
    tracemalloc.start()
    read_or_refused(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 150 * 2**20


def test_many_frames_at_their_limit_are_refused_before_they_are_inflated(record: Path, tmp_path: Path) -> None:
    blank = framed(b"C", 1, zlib.compress(b" " * MOST_INFLATED), MOST_INFLATED)
    path = tmp_path / "bomb.gwz"
    path.write_bytes(MAGIC + packed("H", whole(record)[0][1]) + blank * 50)
    with pytest.raises(graphwidget.UnreadableRecord, match="more than a record"):
        load(path)


@pytest.mark.parametrize(
    "head, says",
    [
        ({"schema": 2, "graphwidget": "9.9"}, "schema 2, written by graphwidget 9.9; .* pip install --upgrade"),
        ({"schema": 2, "graphwidget": "\x1b[2J"}, "written by a newer graphwidget"),
        ({"schema": 99}, "pip install --upgrade graphwidget"),
        ({"schema": "1"}, "names no schema"),
        ({}, "names no schema"),
        ([], "names no schema"),
        ({"schema": 1, "rank": "zero"}, "no int"),
    ],
)
def test_a_header_of_a_newer_schema_or_of_none_is_refused_with_the_next_step(
    tmp_path: Path, head: object, says: str
) -> None:
    with pytest.raises(graphwidget.UnreadableRecord, match=says):
        load(written(tmp_path / "newer.gwz", [("H", head)]))


def test_a_kind_and_a_field_of_later_versions_are_left_out(record: Path, tmp_path: Path) -> None:
    found = whole(record)
    later = [
        found[0],
        ("Q", {"new": 1}),
        *((kind, data | {"new": 1} if kind == "C" else data) for kind, data in found[1:]),
    ]
    assert plain(load(written(tmp_path / "later.gwz", later)).calls) == plain(load(record).calls)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"import os\n", MAGIC, MAGIC + small("C", "{}")])
def test_what_is_no_record_is_refused_on_the_command_line_with_status_2(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no.gwz"
    path.write_bytes(content)
    assert main(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"graphwidget: {path}: ") and said.err.count("\n") == 1


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(graphwidget.UnreadableRecord, match="no such file"):
        graphwidget.load(tmp_path / "missing.gwz")
    with pytest.raises(graphwidget.UnreadableRecord, match="is a directory"):
        graphwidget.load(tmp_path)
