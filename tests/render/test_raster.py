"""The PNG: a valid file of the right size, with the colours and the letters of the picture."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from build import chain, leaf, snapshot
from stories import story

from graphwidget.exports.formats import export
from graphwidget.model import Snapshot
from graphwidget.render import raster

LIGHT, DARK, FAILS, INK = (255, 255, 255), (0x13, 0x16, 0x1A), (0xFD, 0xEE, 0xF0), (0x1B, 0x20, 0x27)
Pixels = list[list[tuple[int, int, int]]]


def decoded(png: bytes) -> Pixels:
    """The pixels of a PNG with a palette, after a check of every chunk."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + length
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours) == (8, 3)
    palette = list(zip(*[iter(chunks[b"PLTE"])] * 3))
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == height * (width + 1)
    return [[palette[i] for i in rows[y * (width + 1) + 1 : (y + 1) * (width + 1)]] for y in range(height)]


def test_it_has_the_size_that_it_says_and_the_colours_of_the_marks() -> None:
    made = raster.to_raster(story(), scale=1.5)
    pixels = decoded(made.png)
    assert (len(pixels[0]), len(pixels)) == pytest.approx((1.5 * made.width, 1.5 * made.height), abs=2)
    everything = [pixel for row in pixels for pixel in row]
    assert pixels[0][0] == LIGHT and everything.count(LIGHT) > 0.6 * len(everything)
    assert FAILS in everything and INK in everything


def test_the_title_is_written_in_letters() -> None:
    def ink(title: str) -> int:
        top = decoded(raster.to_raster(story(), title=title, scale=2).png)[:56]
        return sum(pixel != LIGHT for row in top for pixel in row)

    assert ink("i") < ink("iii") < ink("MMM")
    assert ink("漢漢") > 2 * ink("i"), "a letter without an outline has a sign of its own"


def test_dark_is_dark() -> None:
    assert decoded(raster.to_raster(story(), theme="dark").png)[0][0] == DARK
    with pytest.raises(ValueError, match="theme is 'light' or 'dark', not 'auto'"):
        raster.to_raster(story(), theme="auto")  # type: ignore[arg-type]


def test_it_is_the_same_every_time_and_needs_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.png"
    assert export(story(), "png", path) is None
    assert path.read_bytes() == export(story(), "png")
    assert decoded(raster.to_png(Snapshot()))


def test_large_pictures_and_strange_names_are_drawn() -> None:
    assert len(decoded(raster.to_png(chain(3000)))) > 100
    evil = "<b>'&\ud800\0\n"
    assert decoded(raster.to_png(snapshot([leaf(evil)], roots={evil: 0})))
