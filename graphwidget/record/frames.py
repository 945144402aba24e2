"""The frames of a record: bytes with a kind, a length and a checksum. The form is in FORMAT.md.

Nothing is inflated before its size is known and allowed, and nothing is read as JSON that could take much more memory
than the file has bytes.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, BinaryIO

from graphwidget.record.problems import UnreadableRecord

__all__ = ["MAGIC", "MOST_INFLATED", "Frame", "TooLarge", "body", "first_number", "frames", "packed", "small"]

MAGIC = b"\x89gwz\r\n\x1a\n"  # a transfer that changes ends of lines or drops the eighth bit is seen, as in PNG
MOST_INFLATED = 24 * 2**20  # bytes of JSON in one frame
MOST_NESTED = 1_000_000  # lists and objects in one frame
_LEVEL = 1  # of compression: a higher one costs three times the time for a fifth of the bytes
_PLAIN, _ZLIB = 0, 1
_HEAD = Struct("<cBII")  # kind, encoding, bytes of the body as stored, bytes of it as JSON
_CHECK = Struct("<I")  # CRC-32 of the head and the stored body
_BEFORE = _HEAD.size + _CHECK.size
_FIRST = re.compile(rb'\{"id":(\d{1,15}),')
_dump = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


class TooLarge(ValueError):
    """Data that do not fit into one frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame in a file whose checksum is right. `start` is the first byte of it, `end` the first behind it."""

    kind: str
    start: int
    end: int
    size: int  # bytes of its JSON
    encoding: int
    stored: bytes


def packed(kind: str, data: Any) -> bytes:
    """A frame with data in it.

    Raises
    ------
    TooLarge
        If no reader would take it.
    """
    text = _dump(data).encode("ascii")
    if len(text) > MOST_INFLATED:
        raise TooLarge(f"{len(text):,} bytes")
    return _framed(kind, _ZLIB, zlib.compress(text, _LEVEL), len(text))


def small(kind: str, text: str) -> bytes:
    """A frame with a few bytes of JSON in it, which are not worth compressing."""
    stored = text.encode("ascii")
    return _framed(kind, _PLAIN, stored, len(stored))


def _framed(kind: str, encoding: int, stored: bytes, size: int) -> bytes:
    head = _HEAD.pack(kind.encode("ascii"), encoding, len(stored), size)
    return head + _CHECK.pack(zlib.crc32(stored, zlib.crc32(head))) + stored


def frames(file: BinaryIO, size: int) -> Iterator[Frame]:
    """The whole frames of a file of `size` bytes, up to the first one that is cut or damaged.

    Raises
    ------
    UnreadableRecord
        If the file does not begin as a record does.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise UnreadableRecord("no record of graphwidget: it does not begin as one does")
    start = len(MAGIC)
    while True:
        first = file.read(_BEFORE)
        if len(first) < _BEFORE:
            return
        kind, encoding, stored, inflated = _HEAD.unpack_from(first)
        end = start + _BEFORE + stored
        if end > size or inflated > MOST_INFLATED or encoding not in (_PLAIN, _ZLIB) or not kind.isalpha():
            return
        content = file.read(stored)
        if len(content) < stored or _CHECK.unpack_from(first, _HEAD.size)[0] != zlib.crc32(
            content, zlib.crc32(first[: _HEAD.size])
        ):
            return
        yield Frame(kind.decode("ascii"), start, end, inflated, encoding, content)
        start = end


def body(frame: Frame) -> Any:
    """The data in a frame.

    Raises
    ------
    UnreadableRecord
        If it is not what its head says, no JSON, or JSON that would need too much memory.
    """
    text = frame.stored if frame.encoding == _PLAIN else _inflated(frame)
    if len(text) != frame.size:
        raise UnreadableRecord(f"the frame at byte {frame.start} has not the size that it names")
    if text.count(b"[") + text.count(b"{") > MOST_NESTED:
        raise UnreadableRecord(f"the frame at byte {frame.start} has more lists than a record has")
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"the frame at byte {frame.start} is no JSON ({type(error).__name__})") from None


def first_number(frame: Frame) -> int:
    """The first value in a frame's object, which is its number, without reading the rest.

    Raises
    ------
    UnreadableRecord
        If it does not begin with one.
    """
    try:
        text = frame.stored if frame.encoding == _PLAIN else zlib.decompressobj().decompress(frame.stored, 40)
    except zlib.error:
        text = b""
    found = _FIRST.match(text)
    if found is None:
        raise UnreadableRecord(f"the frame at byte {frame.start} does not begin with a number")
    return int(found[1])


def _inflated(frame: Frame) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(frame.stored, frame.size + 1)
    except zlib.error:
        raise UnreadableRecord(f"the frame at byte {frame.start} cannot be decompressed") from None
    if not inflater.eof or inflater.unused_data:
        raise UnreadableRecord(f"the frame at byte {frame.start} has not the size that it names")
    return text


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number")
