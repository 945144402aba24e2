"""The picture as PNG: the front end's own code draws it, letters included, so that no font or package is needed."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Literal

from graphwidget.model import Drawing, Snapshot
from graphwidget.render import wire
from graphwidget.render.picture import drawing_of, run_engine, title_of

__all__ = ["Raster", "to_png", "to_raster"]

_INDEXED = 3  # PNG's colour type: each pixel is a place in the palette
_DEPTH = 8


@dataclass(frozen=True)
class Raster:
    """A PNG file and the size, in px, in which it is to be shown."""

    png: bytes
    width: int
    height: int


def to_raster(
    graph: Drawing | Snapshot,
    *,
    theme: Literal["light", "dark"] = "light",
    title: str | None = None,
    scale: float = 2.0,
) -> Raster:
    """The picture as PNG.

    Parameters
    ----------
    graph
        A snapshot, or a snapshot with its calls, events and findings.
    theme
        A bitmap cannot follow the viewer's setting.
    title
        Title of the picture. Default: the moment that it shows.
    scale
        Pixels for one px; fewer in very large pictures.

    Raises
    ------
    ImportError
        If quickjs-ng is not installed.
    ValueError
        If `theme` is none of the two.
    """
    drawing = drawing_of(graph)
    if theme not in ("light", "dark"):
        raise ValueError(f"theme is 'light' or 'dark', not {theme!r}")
    options = {"theme": theme, "title": title or title_of(drawing), "scale": scale}
    drawn = run_engine("raster", wire.encode(drawing), options)
    head, _, pixels = drawn.partition("\n")
    about = json.loads(head)
    width, height, scale = about["width"], about["height"], about["scale"]
    png = _png(width, height, bytes(about["palette"]), pixels.encode("latin-1"))
    return Raster(png, round(width / scale), round(height / scale))


def to_png(graph: Drawing | Snapshot) -> bytes:
    """The picture as a PNG file, light, with two pixels for one px."""
    return to_raster(graph).png


def _png(width: int, height: int, palette: bytes, pixels: bytes) -> bytes:
    # Each row begins with its filter; 0: none, the best for few colours.
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, width * height, width))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, _DEPTH, _INDEXED, 0, 0, 0)),
            _chunk(b"PLTE", palette),
            _chunk(b"IDAT", zlib.compress(rows, 6)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
