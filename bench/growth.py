"""Measure the growth of costs with the graphs alive, the cost for code without a graph, and the time to load.

python bench/growth.py [--cells 200] [--repeat 3] [--json]

* Cells of 20 training steps that each keep one graph: time of the last ten over the first ten, after a warm-up of ten.
  As text: CPU time in a shell. With the live view open: time from request to reply, in a kernel that gets one cell
  after the other. Graphs are kept under separate names, or in one list.
* Gradients written by hand under `no_grad`, row by row: CPU time with the extension over CPU time without it.
* `%load_ext graphwidget` after torch is imported: seconds.

Each figure is the median of fresh processes, alternately with and without the extension.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

START = """
import torch
from torch import nn
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y, kept = torch.randn(16, 16), torch.randn(16, 1), []
"""
STEPS = """
for step in range(20):
    loss = ((net(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KEEP = {"names": "h{i} = torch.tanh(net(x)); k{i} = h{i}.sum()", "list": "kept.append(torch.tanh(net(x)).sum())"}
ROWS = """
with torch.no_grad():
    for step in range(200):
        table_grad = torch.zeros_like(table)
        for k in range(32):
            for j in range(3):
                table_grad[rows[k, j]] += g[k, j]
        table.data += -0.1 * table_grad
"""
TABLE = """
import torch
torch.set_num_threads(1)
table, g = torch.randn(27, 10, requires_grad=True), torch.randn(32, 3, 10)
rows = torch.randint(0, 27, (32, 3))
"""
WARM_UP = 10


def shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    return InteractiveShell.instance(config=config)


def run(shell: Any, source: str) -> float:
    """Return the CPU time of a cell."""
    began = time.process_time()
    shell.run_cell(source, store_history=True).raise_error()
    return time.process_time() - began


@contextmanager
def kernel() -> Iterator[Callable[[str], float]]:
    """Yield a function that runs a cell as a page does, and returns the seconds until its reply."""
    from jupyter_client.manager import start_new_kernel

    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ, "PYTHONPATH": path})

    def answer(source: str) -> float:
        began = time.perf_counter()
        reply = client.execute_interactive(source, allow_stdin=True, output_hook=lambda message: None)
        assert reply["content"]["status"] == "ok", reply["content"]
        return time.perf_counter() - began

    try:
        yield answer
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def growth(how: str, keep: str, cells: int) -> float:
    with kernel() if how == "view" else nullcontext(partial(run, shell())) as answer:
        for source in ("%load_ext graphwidget", START, *(["%graphwidget"] if how == "view" else [])):
            answer(source)
        times = [answer(STEPS + KEEP[keep].format(i=i)) for i in range(WARM_UP + cells)][WARM_UP:]
    return statistics.median(times[-10:]) / statistics.median(times[:10])


def by_hand(how: str) -> float:
    cell = shell()
    run(cell, TABLE)
    if how == "on":
        run(cell, "%load_ext graphwidget")
    return run(cell, ROWS)


def load() -> float:
    cell = shell()
    run(cell, "import torch")
    began = time.perf_counter()
    run(cell, "%load_ext graphwidget")
    return time.perf_counter() - began


def fresh(*argv: object) -> float:
    """Return one figure, measured in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", *map(str, argv)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.strip().splitlines()[-1])


def measure(cells: int, repeat: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for how in ("text", "view"):
        for keep in KEEP:
            found[f"{how}, {keep}"] = statistics.median(fresh("growth", how, keep, cells) for _ in range(repeat))
    pairs = [(fresh("by_hand", "on"), fresh("by_hand", "off")) for _ in range(repeat)]
    found["by hand"] = statistics.median(on / off for on, off in pairs)
    fresh("load")  # writes the bytecode
    found["load"] = statistics.median(fresh("load") for _ in range(repeat))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, *rest = options.one
        values = [int(value) if value.isdecimal() else value for value in rest]
        print({"growth": growth, "by_hand": by_hand, "load": load}[name](*values))  # type: ignore[operator]
        return
    found = measure(options.cells, options.repeat)
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:14} {value:6.2f}{' s' if name == 'load' else ' times'}")


if __name__ == "__main__":
    main()
