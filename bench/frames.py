"""Measure frames per second while a large graph is panned and zoomed, in headless Chromium without a GPU.

python bench/frames.py [--seconds S] [--only NAME ...] [--json]

All nodes of a graph are shown ("Every node"), then dragged with the mouse and zoomed with ctrl and the wheel while the
page records the time of each frame. Prints the median frames per second, the 95th percentile of the frame times, the
time until every node was drawn, and the longest task that blocked the page during it. Goals: 55 frames per second, 95 %
of the frames within 25 ms, no task over 50 ms.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from page import Browser, open_view
from wire import CASES, drawings

from graphwidget.render import wire

GOAL_FPS, GOAL_MS, GOAL_TASK_MS = 55.0, 25.0, 50.0
GRAPHS = ("lstm10k", "dag100k")


def expand(page: Any) -> tuple[float, float]:
    """Show every node; return the seconds until the bitmap is drawn, and the longest task during it in ms."""
    page.evaluate("() => { window.longest = 0; }")
    start = time.perf_counter()
    page.get_by_label("What to show").select_option("all")
    page.wait_for_function("() => document.querySelector('[data-drawn-as=bitmap]')", timeout=60_000)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    return time.perf_counter() - start, page.evaluate("() => window.longest")


def frames(page: Any, seconds: float, move: Callable[[float], None]) -> dict[str, float]:
    """Return statistics of the frame times while `move(t)` is called repeatedly."""
    page.evaluate("() => window.record()")
    start = time.perf_counter()
    while (now := time.perf_counter() - start) < seconds:
        move(now)
    times = sorted(page.evaluate("() => window.recorded()"))
    return {"fps": 1000 / statistics.median(times), "ms95": times[math.ceil(0.95 * len(times)) - 1]}


def measure(browser: Browser, name: str, seconds: float) -> dict[str, Any]:
    drawing, _ = drawings(*CASES[name])
    page = open_view(browser, wire.encode(drawing, 1))
    expanded, longest = expand(page)
    box = page.locator(".gw-canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    pan = frames(
        page, seconds, lambda t: page.mouse.move(x + 180 * math.sin(2 * t), y + 150 * math.sin(3 * t) + 20 * t)
    )
    page.mouse.up()
    page.keyboard.down("Control")
    zoom = frames(page, seconds, lambda t: page.mouse.wheel(0, 12 * math.copysign(1, math.sin(1.5 * t))))
    page.keyboard.up("Control")
    page.close()
    return {"nodes": len(drawing.snapshot), "expand_s": expanded, "longest_ms": longest, "pan": pan, "zoom": zoom}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(GRAPHS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    with Browser(size=(1000, 800)) as browser:
        for name in options.only:
            row = rows[name] = measure(browser, name, options.seconds)
            if not options.json:
                for how in ("pan", "zoom"):
                    fps, late = row[how]["fps"], row[how]["ms95"]
                    print(f"{name:9} {row['nodes']:7} nodes  {how:4} {fps:5.1f} fps, 95 % within {late:5.1f} ms")
                print(
                    f"{'':9} every node after {row['expand_s']:.1f} s, longest task {row['longest_ms']:.0f} ms",
                    flush=True,
                )
    missed = [name for name, row in rows.items() if not held(row)]
    if options.json:
        print(json.dumps(rows))
    else:
        print(f"goals {GOAL_FPS:g} fps, 95 % within {GOAL_MS:g} ms, no task over {GOAL_TASK_MS:g} ms:", end=" ")
        print(f"missed by {', '.join(missed)}" if missed else "met")
    return bool(missed)


def held(row: dict[str, Any]) -> bool:
    smooth = all(row[how]["fps"] >= GOAL_FPS and row[how]["ms95"] <= GOAL_MS for how in ("pan", "zoom"))
    return smooth and row["longest_ms"] <= GOAL_TASK_MS


if __name__ == "__main__":
    sys.exit(main())
