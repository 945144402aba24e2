"""Writes js/src/raster/glyphs.json: the outlines of letters, so that a PNG needs no font of the machine.

    python js/dev/glyphs.py FOLDER    # a folder with the DejaVu fonts; needs fontTools

The picture is laid out for Arial, so the letters of the interface are the condensed ones. All coordinates are in
1/512 em. An outline is a text: the advance, and for each contour its number of points and the points. A number has two
digits of `DIGITS`, with 2048 for zero; a point is its distance from the last one, and x is doubled, plus 1 if the point
lies on the curve, as in TrueType.
"""

import json
import sys
from pathlib import Path

from fontTools.ttLib import TTFont

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-"
EM = 512
FACES = {
    "ui": "DejaVuSansCondensed.ttf",
    "ui-bold": "DejaVuSansCondensed-Bold.ttf",
    "mono": "DejaVuSansMono.ttf",
    "mono-bold": "DejaVuSansMono-Bold.ttf",
}
LATIN = [*range(0x20, 0x7F), *range(0xA1, 0x100)]
GREEK = [*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA)]
SIGNS = "‘’“”–—•…←→↑↓↻−×·≤≥≠≈∞✓✕▸▾①②③④⑤⑥⑦⑧⑨⑩\ufffd"
CHARACTERS = [*map(chr, LATIN + GREEK), *SIGNS]


def number(value):
    high, low = divmod(value + 2048, 64)
    return DIGITS[high] + DIGITS[low]


def outline(font, name):
    scale = EM / font["head"].unitsPerEm
    glyph, table = font["glyf"][name], font["glyf"]
    text = number(round(font["hmtx"][name][0] * scale))
    points, ends, flags = glyph.getCoordinates(table)
    x = y = start = 0
    for end in ends:
        text += number(end + 1 - start)
        for (px, py), flag in list(zip(points, flags))[start : end + 1]:
            nx, ny = round(px * scale), round(py * scale)
            text += number(2 * (nx - x) + (flag & 1)) + number(ny - y)
            x, y = nx, ny
        start = end + 1
    return text


def face(path):
    font = TTFont(path)
    names = font.getBestCmap()
    known = [character for character in dict.fromkeys(CHARACTERS) if ord(character) in names]
    return {"characters": "".join(known), "outlines": " ".join(outline(font, names[ord(one)]) for one in known)}


def main(folder):
    target = Path(__file__).parent.parent / "src" / "raster" / "glyphs.json"
    data = {name: face(Path(folder) / file) for name, file in FACES.items()}
    target.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
