"""Measure the kernel time of `diagnose` after a cell, in milliseconds, by the size of the graph.

usage: python bench/findings.py [NODES ...]

In the record, a chain is run twice and fails, a list keeps graphs, and a tensor is modified in place.
"""

import statistics
import sys
import time

import torch

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis import diagnose as diagnosis
from graphwidget.engine import forecast as engine


def record_of(nodes: int):
    """Return a tracker's record of a second backward, a pile of graphs and a stale root, with about `nodes` nodes."""
    space: dict = {"torch": torch, "n": max(1, nodes // 16)}
    tracker = Tracker(lambda: space, forecaster=engine.forecast, diagnose=diagnosis.diagnose)
    tracker.start()
    cells = [
        "w = torch.ones(3, requires_grad=True)\nshared, kept = w, []\nfor _ in range(4 * n):\n    shared = shared.sin() * w",
        "for i in range(4):\n    h = shared if i == 3 else w\n    for _ in range(n):\n        h = h.cos() * 2\n"
        "    kept.append(h)\n    h.sum().backward(retain_graph=i == 3)",
        "one = shared.sum()\none.backward()\ntwo = shared.exp().sum()",
        "two.backward()",
        "stale = w.exp()\nlate = (stale * w).sum()\nstale.mul_(2)",
    ]
    for number, cell in enumerate(cells, 1):
        name = f"<cell {number}>"
        tracker.begin_cell(number, cell, cell_id=f"c{number}", filename=name)
        error = None
        try:
            exec(compile(cell, name, "exec"), space)
        except RuntimeError as raised:
            error = raised
        tracker.end_cell(error)
    record = tracker.record()
    tracker.stop()
    return record


def main() -> None:
    torch.set_num_threads(1)
    for nodes in [int(a) for a in sys.argv[1:]] or [100, 1_000, 10_000]:
        record = record_of(nodes)
        times = []
        for _ in range(7):
            begun = time.perf_counter()
            found = diagnosis.diagnose(record)
            times.append(time.perf_counter() - begun)
        kinds = ", ".join(f"{f.severity} {f.kind}" for f in found)
        print(f"{len(record.snapshot):>7} nodes  {statistics.median(times) * 1e3:8.1f} ms  ({kinds})")


if __name__ == "__main__":
    main()
