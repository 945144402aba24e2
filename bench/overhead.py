"""Measure the cost of tracking for a training loop: CPU time of steps with and without it, in alternating turns.

    python bench/overhead.py [--repeat 9] [--only mlp]

The loops run as cells: their source is compiled under a cell's name, so that lines, loops, modules and calls
are recorded as in a notebook. `gpt2-like` and `resnet-like` have the structure of GPT-2 small (12 blocks) and
ResNet-50 (16 bottlenecks) at reduced width, so that a step takes tenths of a second on two cores; a real one takes
longer, and the share of tracking falls. `mlp` is the worst case: 24 layers of 8 units, where
autograd itself is mostly overhead.

The figures are medians of ratios. They are about a loop in progress: the first steps of each turn (a third of them, at
least eight) are left out, because in them calls are read in full and lines are found to be harmless. When malloc
returns memory to the system and takes it again, that costs up to 5 % of a step of `resnet-like`, in some turns and not
in others, tracked or not. So malloc is configured to keep its memory.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graphwidget.capture.tracker import Tracker
from graphwidget.engine.forecast import forecast

LOOP = """
def train(steps):
    times = []
    for step in range(steps):
        began = clock()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(clock() - began)
    return times
"""
LAYERS = """
def train(steps):
    times = []
    for step in range(steps):
        began = clock()
        h = x
        for layer in layers:
            h = torch.tanh(layer(h))
        loss = h.pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(clock() - began)
    return times
"""


class Block(nn.Module):
    """A transformer block with GPT-2's order of layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.ln_1(x)).split(w, 2))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.out(nn.functional.gelu(self.fc(self.ln_2(x))))


class Bottleneck(nn.Module):
    """A residual block with ResNet-50's three convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = width // 4
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, padding=1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + x)


def gpt2_like() -> tuple[str, dict[str, object], int]:
    model = nn.Sequential(*[Block(256, 4) for _ in range(12)], nn.LayerNorm(256))
    return LOOP, {"model": model, "x": torch.randn(2, 128, 256)}, 24


def resnet_like() -> tuple[str, dict[str, object], int]:
    model = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), *[Bottleneck(128) for _ in range(16)])
    return LOOP, {"model": model, "x": torch.randn(4, 3, 32, 32)}, 24


def mlp() -> tuple[str, dict[str, object], int]:
    layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(24))
    return LAYERS, {"model": layers, "layers": layers, "x": torch.randn(4, 8)}, 300


def keep_memory() -> None:
    """Configure glibc's malloc to return no memory to the system, and to use mmap only for blocks above 32 MB."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        mallopt(-3, 2**25)  # M_MMAP_THRESHOLD


CASES = {"gpt2-like": gpt2_like, "resnet-like": resnet_like, "mlp": mlp}


def measure(name: str, repeat: int) -> tuple[float, float]:
    """Return the median CPU seconds of a plain step, and the ratio of a tracked step to a plain one.

    The ratio is the median of the ratios of neighbouring turns: a machine that is slower for a while slows both."""
    torch.manual_seed(0)
    source, namespace, steps = CASES[name]()
    model = namespace["model"]
    assert isinstance(model, nn.Module)
    namespace.update(torch=torch, clock=time.process_time, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3))
    exec(compile(source, "<cell 1>", "exec"), namespace)
    call = compile(f"times = train({steps})", "<cell 2>", "exec")
    exec(call, namespace)  # warm up
    results: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * repeat):
        tracked = bool(turn % 2)
        tracker = Tracker(lambda: namespace, forecaster=forecast) if tracked else None
        if tracker is not None:
            tracker.start()
            tracker.provenance.book.open("<cell 1>", 1, None, source, 0)
            tracker.begin_cell(2, "times = train(steps)", filename="<cell 2>")
        exec(call, namespace)
        if tracker is not None:
            tracker.end_cell()
            tracker.stop()
            assert not tracker.problems, list(tracker.problems)
            assert len(tracker.calls) == steps
        times = namespace["times"]
        assert isinstance(times, list)
        results[tracked].append(statistics.median(times[max(8, steps // 3) :]))
    ratios = [tracked / plain for plain, tracked in zip(results[False], results[True], strict=True)]
    return statistics.median(results[False]), statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", choices=CASES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, medians of {arguments.repeat} turns")
    for name in [arguments.only] if arguments.only else CASES:
        plain, ratio = measure(name, arguments.repeat)
        print(f"{name:12} {1000 * plain:8.2f} ms a step, tracked: {100 * (ratio - 1):+.1f} %", flush=True)


if __name__ == "__main__":
    main()
