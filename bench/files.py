"""Measure what files of the user's own cost: imports, and a long file.

    python bench/files.py [--json]

For a loop in a module beside the same loop in a cell, see `workloads.py`. `imports`: 1,000 modules. `long file`:
20,000 lines, with a loop in them that runs backward twice through one graph, so that the error is explained.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import graphwidget
from graphwidget.capture.lines import files

LOOP = """
import torch


def again(net):
    hidden = torch.zeros(1, 8)
    for _ in range(3):
        out = net(torch.ones(16, 8) + hidden)
        hidden = out.mean(0, keepdim=True).expand(1, 8)
        out.mean().backward()
"""
MODULE = "def f{n}(x):\n    y = x * {n}\n    return y\n\n\nz{n} = f{n}(1)\n"
MODULES, LINES = 1000, 20_000


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def imports(folder: Path) -> dict[str, float]:
    """Seconds of 1,000 imports, without and with a tracker, of the findings then, and megabytes of texts kept."""
    for kind in ("off", "on"):
        for n in range(MODULES):
            (folder / f"bench_{kind}_{n}.py").write_text(MODULE.format(n=n))
    importlib.invalidate_caches()

    def load(kind: str) -> None:
        for n in range(MODULES):
            importlib.import_module(f"bench_{kind}_{n}")

    off = seconds(lambda: load("off"))
    with graphwidget.track() as tracker:
        on = seconds(lambda: load("on"))
        kept = files._kept[0] / 2**20
        found = seconds(tracker.findings)
    return {"off": off, "on": on, "findings": found, "MB": kept}


def long_file(folder: Path) -> dict[str, float]:
    """Seconds of the import of a long file, of an error in it with its note, and of the findings then."""
    for kind in ("off", "on"):
        text = "".join(MODULE.format(n=n) for n in range(LINES // 6))
        (folder / f"bench_long_{kind}.py").write_text(text + LOOP)
    importlib.invalidate_caches()
    off = seconds(lambda: importlib.import_module("bench_long_off"))
    with graphwidget.track() as tracker:
        on = seconds(lambda: importlib.import_module("bench_long_on"))
        module = sys.modules["bench_long_on"]

        def fail() -> None:
            with contextlib.suppress(RuntimeError):
                module.again(torch.nn.Linear(8, 1))

        error = seconds(fail)
        found = seconds(tracker.findings)
        assert any(one.kind == "second_backward" for one in tracker.findings())
    return {"off": off, "on": on, "error": error, "findings": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        found = {bench.__name__: bench(Path(folder)) for bench in (imports, long_file)}
    if arguments.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        print(f"{name:12}", ", ".join(f"{what} {figure:.2f}" for what, figure in figures.items()))


if __name__ == "__main__":
    main()
