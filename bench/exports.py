"""Size and time of what people take along, and of the first view, for the graphs of the lectures.

    python bench/exports.py [--json]

For each notebook in notebooks/: the size of the interactive page (bytes), the time for the PNG beside the widget, and
the time from a message's arrival in the page to the frame after the drawing (both ms, the best of some).
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent)]

from page import Browser, open_view

from graphwidget.render.picture import run_engine

TIMES = 5
DRAWN = """wire => new Promise((done) => {
  const old = document.querySelector("[role=tree] [role=treeitem]")?.closest(".graphwidget");
  const began = performance.now();
  const look = () => old.dataset.serial === window.wanted && document.querySelector("[role=treeitem]")
    ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
  const message = JSON.parse(wire);
  message.serial = Number(old.dataset.serial) + 1;
  window.wanted = String(message.serial);
  window.model.set("wire", JSON.stringify(message));
  look();
})"""


def wire_in(html: str) -> str:
    """The picture in a page."""
    (text,) = re.findall(r'id="recording">([^<]*)<', html)
    return str(json.loads(gzip.decompress(base64.b64decode(text)))["wire"])


def measure(notebook: Path) -> dict[str, float]:
    explain = [sys.executable, "-m", "graphwidget", "explain", "--no-try", "--format", "html", str(notebook)]
    html = subprocess.run(explain, capture_output=True, text=True, cwd=notebook.parent).stdout
    wire = wire_in(html)
    pngs = []
    for _ in range(TIMES):
        began = time.perf_counter()
        run_engine("raster", wire, {"scale": 1.5})
        pngs.append(1000 * (time.perf_counter() - began))
    with Browser() as browser:
        page = open_view(browser, wire)
        views = [page.evaluate(DRAWN, wire) for _ in range(TIMES)]
    return {"html bytes": len(html.encode()), "png ms": min(pngs), "first view ms": min(views)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = {path.stem: measure(path) for path in sorted((BENCH.parent / "notebooks").glob("*.ipynb"))}
    if options.json:
        print(json.dumps(rows))
    else:
        for name, row in rows.items():
            print(f"{name:32}" + "".join(f"{what}: {value:,.0f}   " for what, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
