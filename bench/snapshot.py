"""Measure the cost of a snapshot, as a multiple of a bare walk over the same graph.

python bench/snapshot.py [--nodes N] [--repeat R] [--million] [--json]

Each repetition builds equal graphs. One gets a bare walk (`next_functions`, a set, a stack), another a snapshot: both
for the first time, so that both create the Python wrappers of the nodes. More snapshots follow: a second one of the
unchanged graph, with the first as `previous`; one with two new nodes on top; one in which those two have died and
others took their place; one after a backward has freed everything; and one more, in which nothing can change any more.
Prints medians of CPU microseconds a node (of this thread, so that other programs on the machine count little) and of
the ratio within a repetition. Goal: the first snapshot takes at most 8 times the walk. It also prints by how much a
snapshot exceeds one and a half walks and 2 us a node (below 0: it does not). The last line is the memory of one
snapshot.

An ordinary bare walk runs with Python's garbage collector on. It creates one wrapper a node, and sometimes the
collector then visits all objects. If such a collection falls into a walk, the walk takes two to three times as long,
and at 100,000 nodes that is a matter of chance. A snapshot keeps the collector off. So a third graph is walked with the
collector off. This is the hardest possible comparison, and it has no goal, because torch's own objects alone (the walk,
then SavedTensor, tensor, version, storage) take about five such walks for the chain and four for the DAG.

The second snapshot of an unchanged graph is not free for two reasons. Its nodes must be found along their edges again,
because they must not be held between snapshots. And a slot that was held may be empty or stale now, which only torch's
own objects show (SavedTensor, tensor, version, storage). Nothing else is done for the unchanged parts.

When a deep graph is dropped after a bare walk, torch 2.13 would overflow the stack (see
`graphwidget/capture/graph/deep.py`), so a snapshot afterwards makes walked graphs safe.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take

GOAL = 8.0


def chain(nodes: int) -> torch.Tensor:
    """Return one long chain of small operations."""
    steps: list[Callable[[torch.Tensor], torch.Tensor]] = [
        torch.sin,
        lambda t: t * 1.5,
        torch.relu,
        lambda t: t + 1,
        torch.tanh,
    ]
    tensor = torch.ones(4, requires_grad=True)
    for i in range(nodes - 2):
        tensor = steps[i % 5](tensor)
    return tensor.sum()


def dag(nodes: int) -> torch.Tensor:
    """Return one sum over random operations on the last two hundred results."""
    choose = random.Random(0)
    tensors = [torch.ones(4, requires_grad=True) for _ in range(50)]
    for i in range(int(nodes * 1.4)):
        a, b = choose.choice(tensors[-200:]), choose.choice(tensors[-200:])
        tensors.append((a * b, a + b, a.sin(), torch.where(a > 0, a, b))[i % 4])
    return torch.stack(tensors[-200:]).sum()


def walk(root: torch.Tensor) -> int:
    """Do a bare walk and return the number of nodes."""
    seen = {root.grad_fn}
    stack = [root.grad_fn]
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                stack.append(node)
    return len(seen)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    gc.collect()
    start = time.thread_time()
    result = work()
    return time.thread_time() - start, result


def memory(work: Callable[[], object]) -> int:
    """Return the bytes of Python memory that the result of `work` takes."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if result is not None else 0
    finally:
        tracemalloc.stop()


def measure(make: Callable[[int], torch.Tensor], nodes: int, repeat: int) -> dict[str, float]:
    rows: dict[str, list[float]] = {}
    for _ in range(repeat):
        bare, still, taken = make(nodes), make(nodes), make(nodes)
        passes = gc.get_stats()[2]["collections"] + 1  # one is before the clock starts
        walked, count = timed(lambda root=bare: walk(root))
        passes = gc.get_stats()[2]["collections"] - passes
        gc.disable()
        alone, _ = timed(lambda root=still: walk(root))
        gc.enable()
        again, _ = timed(lambda root=bare: walk(root))
        identity = Identity()
        first, one = timed(lambda root=taken, i=identity: take([root], identity=i))
        second, two = timed(lambda root=taken, i=identity, s=one: take([root], identity=i, previous=s))
        more = taken.sin() * 2
        grown, three = timed(lambda root=more, i=identity, s=two: take([root], identity=i, previous=s))
        more = taken.cos() * 3
        other, four = timed(lambda root=more, i=identity, s=three: take([root], identity=i, previous=s))
        del more
        taken.backward()
        freed, five = timed(lambda root=taken, i=identity, s=four: take([root], identity=i, previous=s))
        ended, _ = timed(lambda root=taken, i=identity, s=five: take([root], identity=i, previous=s))
        assert len(one) == count
        take([bare, still])
        for name, seconds in {
            "bare walk": walked,
            "bare walk, collector off": alone,
            "bare walk again": again,
            "snapshot": first,
            "second snapshot": second,
            "two nodes more": grown,
            "two others": other,
            "after backward": freed,
            "once more": ended,
        }.items():
            rows.setdefault(name + ", us a node", []).append(seconds / len(one) * 1e6)
        rows.setdefault("snapshot / bare walk", []).append(first / walked)
        rows.setdefault("snapshot / bare walk, collector off", []).append(first / alone)
        rows.setdefault("full passes of the collector in a bare walk", []).append(passes)
        rows.setdefault("second snapshot / bare walk again", []).append(second / again)
        for name, seconds, floor in (("snapshot", first, walked), ("second snapshot", second, again)):
            above = (seconds - 1.5 * floor) / len(one) * 1e6 - 2
            rows.setdefault(name + " above 1.5 walks + 2 us, us a node", []).append(above)
    rows["memory of a snapshot, bytes a node"] = [memory(lambda: take([bare], identity=identity)) / len(one)]
    return {"nodes": len(one), **{name: round(statistics.median(values), 2) for name, values in rows.items()}}


def million() -> dict[str, float]:
    tensor = torch.ones(2, requires_grad=True)
    for _ in range(1_000_000):
        tensor = tensor + 1
    seconds, snapshot = timed(lambda: take([tensor]))
    return {"nodes": len(snapshot), "snapshot, s": round(seconds, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--million", action="store_true", help="also a chain of 1,000,000 nodes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {make.__name__: measure(make, options.nodes, options.repeat) for make in (chain, dag)}
    missed = [name for name, row in found.items() if row["snapshot / bare walk"] > GOAL]
    if options.million:
        found["chain of a million"] = million()
    if options.json:
        print(json.dumps(found))
    else:
        print(f"python {' '.join(sys.argv)}   (torch {torch.__version__})")
        for name, row in found.items():
            print(name, *(f"  {key:44}{value:>12,}" for key, value in row.items()), sep="\n")
        print(f"goal, snapshot / bare walk <= {GOAL}: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
