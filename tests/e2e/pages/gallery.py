"""Draws the pictures of many programs, wide and narrow, light and dark, and says what is wrong in them.

    python tests/e2e/pages/gallery.py [NAME ...] [--width W ...] [--theme light dark] [--last] [--sheet]

The pictures are those of `js/test/programs`; they go to `.make/shots/gallery`. What covers what, what is cut without a
tooltip and what is too small (`flaws.js`) is printed, and `--sheet` puts all pictures of a program on one sheet.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Browser, open_view, rest, show

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[2] / "js" / "test" / "programs"
SHOTS = HERE.parents[2] / ".make" / "shots" / "gallery"
FLAWS = (HERE / "flaws.js").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))
# Widths of a view in JupyterLab at 1440 and 900 px, and of a compact one.
WIDTHS = (1300, 780)


def moments(name: str) -> list[tuple[str, str]]:
    """The pictures of a program: moment and message."""
    pictures = json.loads((PROGRAMS / f"{name}.json").read_text(encoding="utf-8"))
    return [(moment, json.dumps({**wire, "serial": k + 1})) for k, (moment, wire) in enumerate(pictures)]


def views(
    browser: Browser, name: str, width: int, theme: str = "light", height: int = 0
) -> Iterator[tuple[str, object]]:
    """Show the pictures of a program one after the other, as a lecture does: moment and page, drawn and at rest."""
    page = open_view(browser, "", width, height, theme)
    for moment, wire in moments(name):
        show(page, wire)
        serial = json.loads(wire)["serial"]
        page.locator(f'.graphwidget[data-serial="{serial}"]').wait_for()
        rest(page)
        yield moment, page
    page.close()


def draw(names: Sequence[str], widths: Sequence[int], themes: Sequence[str], last: bool) -> list[Path]:
    """Write the pictures, and print their flaws."""
    drawn = []
    with Browser(size=(1400, 1000)) as browser:
        for name in names:
            count = len(moments(name))
            for width in widths:
                for theme in themes:
                    for k, (moment, page) in enumerate(views(browser, name, width, theme)):
                        if last and k + 1 < count:
                            continue
                        path = SHOTS / f"{name}-{width}-{theme}-{k:02}.png"
                        path.parent.mkdir(parents=True, exist_ok=True)
                        view = page.locator(".graphwidget")
                        view.screenshot(path=str(path))
                        drawn.append(path)
                        for flaw in view.evaluate(FLAWS):
                            print(f"{path.stem} {moment}: {flaw}", flush=True)
    return drawn


def sheet(paths: Sequence[Path], to: Path) -> None:
    """Put pictures on one sheet, two in a row."""
    from PIL import Image

    images = [Image.open(path) for path in paths]
    w, rows = max(each.width for each in images), []
    for i in range(0, len(images), 2):
        rows.append((images[i : i + 2], max(each.height for each in images[i : i + 2])))
    whole = Image.new("RGB", (2 * w + 8, sum(h + 8 for _, h in rows)), "#c8c")
    y = 0
    for row, h in rows:
        for k, image in enumerate(row):
            whole.paste(image, (k * (w + 8), y))
        y += h + 8
    whole.save(to)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a program; default: all")
    parser.add_argument("--width", type=int, nargs="*", default=WIDTHS)
    parser.add_argument("--theme", nargs="*", default=["light"], choices=["light", "dark"])
    parser.add_argument("--last", action="store_true", help="only the last picture of each program")
    parser.add_argument("--sheet", action="store_true", help="also one sheet of the pictures of a program")
    options = parser.parse_args()
    for name in options.names or NAMES:
        drawn = draw([name], options.width, options.theme, options.last)
        if options.sheet:
            sheet(drawn, SHOTS / f"{name}.png")


if __name__ == "__main__":
    main()
