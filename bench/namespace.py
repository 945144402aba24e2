"""Measure the search for tensors at the end of a cell when the namespace holds large ordinary data.

python bench/namespace.py [--repeat N] [--json]

Prints, for each namespace, the median and the worst milliseconds of one search, and its notes about the parts that it
did not search. Every namespace also holds one tensor in a list in a dict, which every search must find. Goal: at most
20 ms for each namespace, and for all together.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from graphwidget.capture.owners import search as owners

GOAL_MS = 20


class Record:
    """An ordinary object."""

    def __init__(self, i: int) -> None:
        self.i, self.name, self.score = i, f"record {i}", i / 7


def namespaces() -> dict[str, dict[str, object]]:
    """Return name -> namespace."""
    data: dict[str, dict[str, object]] = {
        "nothing else": {},
        "list of 10,000,000 numbers": {"numbers": list(range(10_000_000))},
        "dict of 100,000 objects": {"records": {i: Record(i) for i in range(100_000)}},
        "array of a gigabyte": {"array": bytearray(10**9)},
        "module with 1,000 parameters": {"model": nn.Sequential(*[nn.Linear(4, 4) for _ in range(500)])},
        "list of 100,000 lists": {"rows": [[float(i), i] for i in range(100_000)]},
        "list of 100,000 tensors": {"data": list(torch.zeros(100_000, 1).unbind())},
        "1,000 variables": {f"v{i}": [i, str(i)] for i in range(1000)},
    }
    data["all of these"] = {name: value for part in list(data.values()) for name, value in part.items()}
    held = torch.ones(2, requires_grad=True) * 2
    return {name: {**part, "kept": {"deep": [held]}} for name, part in data.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name, namespace in namespaces().items():
        times, found = [], True
        for _ in range(options.repeat):
            start = time.perf_counter()
            search = owners.find(namespace)
            times.append((time.perf_counter() - start) * 1e3)
            found = found and any(h.path == "kept['deep'][0]" for h in search.holdings)
        rows.append(
            {
                "namespace": name,
                "median_ms": round(statistics.median(times), 2),
                "worst_ms": round(max(times), 2),
                "found": found,
                "holdings": len(search.holdings),
                "notes": search.notes,
            }
        )
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['namespace']:32} {row['median_ms']:7.2f} ms  worst {row['worst_ms']:7.2f}", end="")
            print(f"  {row['holdings']:5} paths  {'' if row['found'] else 'TENSOR NOT FOUND'}")
            for note in row["notes"]:
                print(f"    {note}")
    return 0 if all(row["found"] and row["median_ms"] <= GOAL_MS for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
