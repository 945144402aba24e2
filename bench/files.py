"""What code in files costs: a loop in a module beside the same loop in the file that runs, imports, and a long file.

Ratios of times in one process, the least of several runs each; the last column is what is kept of the files' texts.
"""

import importlib
import sys
import tempfile
import time
from pathlib import Path

import torch

import graphwidget
from graphwidget.capture.lines import files

LOOP = """
import torch


def train(net, steps):
    x, y = torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        out = net(x)
        loss = (out - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MODULE = "def f{n}(x):\n    y = x * {n}\n    return y\n\n\nz{n} = f{n}(1)\n"
RUNS, STEPS, MODULES, LINES = 5, 200, 1000, 20_000


def least(call, runs=RUNS):
    def once():
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    return min(once() for _ in range(runs))


def loop_in_a_module(folder):
    (folder / "bench_loop.py").write_text(LOOP)
    module = importlib.import_module("bench_loop")
    here = {}
    exec(compile(LOOP, "<here>", "exec"), here)  # code of no file: nothing of it is recorded but its calls
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    off = least(lambda: module.train(net, STEPS))
    with graphwidget.track():
        on = least(lambda: module.train(net, STEPS))
        unseen = least(lambda: here["train"](net, STEPS))
    return f"{off * 1e3 / STEPS:.2f} ms a step; recorded {on / off:.2f} times, unrecorded code {unseen / off:.2f} times"


def imports(folder):
    for kind in ("off", "on"):
        for n in range(MODULES):
            (folder / f"bench_{kind}_{n}.py").write_text(MODULE.format(n=n))
    importlib.invalidate_caches()

    def load(kind):
        for n in range(MODULES):
            importlib.import_module(f"bench_{kind}_{n}")

    off = least(lambda: load("off"), 1)
    with graphwidget.track() as tracker:
        on = least(lambda: load("on"), 1)
        kept = files._kept[0]
        found = least(tracker.findings, 1)
    return f"{off:.2f} s -> {on:.2f} s, findings {found * 1e3:.0f} ms, {kept / 2**20:.1f} MB of texts kept"


def long_file(folder):
    (folder / "bench_long.py").write_text(MODULE.format(n=1) * (LINES // 6) + LOOP)
    net = torch.nn.Linear(8, 1)
    off = least(lambda: importlib.import_module("bench_long"), 1)
    with graphwidget.track() as tracker:
        module = sys.modules.pop("bench_long") and importlib.import_module("bench_long")
        begin = time.perf_counter()
        module.train(net, 3)
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        tracker.findings()
        found = time.perf_counter() - begin
    return f"import {off:.2f} s, first three steps {first:.2f} s, findings {found:.2f} s"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        for bench in (loop_in_a_module, imports, long_file):
            print(f"{bench.__name__:<18}{bench(Path(folder))}", flush=True)
