"""Run every benchmark with few repeats and print one table: name, figure, goal, held.

python bench/all.py [--only NAME ...] [--json]

Takes about sixteen minutes on two idle cores. Each benchmark runs in a process of its own. If a figure is near its
goal, run that benchmark alone with more repeats: other programs on the machine affect the result.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent)]
LIMIT_S = 480  # for one benchmark on a busy machine


@dataclass(frozen=True)
class Figure:
    """One line of the table. `most`: the goal is an upper limit, else a lower one."""

    what: str
    value: float
    goal: float
    unit: str = ""
    most: bool = True

    @property
    def held(self) -> bool:
        return self.value <= self.goal if self.most else self.value >= self.goal


def output(*argv: object) -> str:
    """Return the output of a benchmark. Its exit status is ignored: it only says whether the goals were met."""
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, cwd=BENCH.parent, timeout=LIMIT_S)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def script(name: str, *options: object) -> Any:
    """Return the JSON output of a benchmark in Python."""
    return json.loads(output(sys.executable, BENCH / f"{name}.py", *options, "--json").strip().splitlines()[-1])


def snapshot() -> Iterator[Figure]:
    for graph, row in script("snapshot", "--repeat", 2).items():
        yield Figure(f"snapshot of a {graph} of 100,000 nodes / bare walk", row["snapshot / bare walk"], 8, "x")
        above = row["second snapshot above 1.5 walks + 2 us, us a node"]
        yield Figure(f"second snapshot of a {graph} above 1.5 walks + 2 us", above, 0, " us a node")


def cell_end() -> Iterator[Figure]:
    rows = script("cell_end", "--repeat", 3, "--nodes", 1_000, 10_000, 100_000)
    for nodes, goal in (("1000", 15), ("10000", 150)):
        yield Figure(f"end of a cell that made {int(nodes):,} nodes", rows[nodes]["made"]["all"], goal, " ms")
    large = rows["100000"]
    goal = large.pop("bare walk")["goal"]
    for label, row in large.items():
        yield Figure(
            f"kernel blocked after a cell: 100,000 nodes, {label}", max(row["answer"], row["longest"]), goal, " ms"
        )


def overhead() -> Iterator[Figure]:
    text = output(sys.executable, BENCH / "overhead.py", "--repeat", 5)
    mlp = 30 if sys.version_info < (3, 12) else 10
    for name, percent in re.findall(r"^(\S+) .*: ([+-][\d.]+) %", text, re.M):
        yield Figure(f"tracking overhead, {name} step", float(percent), mlp if name == "mlp" else 3, " %")


def workloads() -> Iterator[Figure]:
    goal = 1.3 if sys.version_info < (3, 12) else 1.15
    for name, ratio in script("workloads", "--repeat", 3, "--steps", 200).items():
        yield Figure(f"step of a small loop, tracked: {name}", ratio, goal, "x")


def namespace() -> Iterator[Figure]:
    rows = script("namespace", "--repeat", 5)
    yield Figure(
        "search in a namespace of large data, the worst kind", max(row["median_ms"] for row in rows), 20, " ms"
    )
    yield Figure("searches that missed a tensor", sum(not row["found"] for row in rows), 0)


def findings() -> Iterator[Figure]:
    text = output(sys.executable, BENCH / "findings.py", 10_000)
    for nodes, ms in re.findall(r"^\s*(\d+) nodes\s+([\d.]+) ms", text, re.M):
        yield Figure(f"findings for {int(nodes):,} nodes", float(ms), 200, " ms")


def wire() -> Iterator[Figure]:
    for name, row in script("wire", "--repeat", 5, "--only", "gpt2", "lstm10k", "chain100k", "dag100k").items():
        yield Figure(f"full picture of {name} per node + edge", row["per_node_and_edge"], 32, " bytes")
        yield Figure(f"change after a backward of {name} per freed slot", row["per_freed_slot"], 1, " bytes")
        if row["nodes"] >= 100_000:
            yield Figure(f"decoding {name}, per 100,000 nodes", row["decode_ms"] / row["nodes"] * 1e5, 20, " ms")


def frames() -> Iterator[Figure]:
    for name, row in script("frames", "--seconds", 4).items():
        for how in ("pan", "zoom"):
            yield Figure(f"{how} {name}, every node", row[how]["fps"], 55, " fps", most=False)
            yield Figure(f"{how} {name}, 95 % of frames within", row[how]["ms95"], 25, " ms")
        yield Figure(f"longest task while {name} opens to every node", row["longest_ms"], 50, " ms")


def stepping() -> Iterator[Figure]:
    for name, row in script("stepping", "--nodes", 1000).items():
        yield Figure(f"key to the painted step of a step-through, 95 %, {name}", row["p95"], 50, " ms")


def exports() -> Iterator[Figure]:
    for name, row in script("exports").items():
        yield Figure(f"interactive page of the lecture {name}", row["html bytes"] / 1000, 500, " kB")
        yield Figure(f"from a message to the view, {name}", row["first view ms"], 150, " ms")


def paint() -> Iterator[Figure]:
    found = script("paint", "--repeat", 3)
    beyond = found["100"] - found["empty"]
    yield Figure("cell end to painted, the graph of a lecture", found["lecture"], 150, " ms")
    yield Figure("cell end to painted beyond an empty widget, 100 nodes", beyond, 100, " ms")
    yield Figure("cell end to painted, 10,000 nodes", found["10000"], 300, " ms")
    yield Figure("cell end to painted, 100,000 nodes", found["100000"], 2000, " ms")


def loop() -> Iterator[Figure]:
    row = script("loop", "--iterations", 600)
    yield Figure("loop with the view open: larger steps", 100 * row["overhead"], 3, " %")
    yield Figure(f"loop: messages dropped of {row['sent']}", row["dropped"], 0)
    yield Figure("loop: more memory in the last fifth", row["growth_mb"], 1, " MB")


def growth() -> Iterator[Figure]:
    row = script("growth", "--repeat", 1)
    for how in ("text", "view"):
        for keep in ("names", "list"):
            yield Figure(f"cells that each keep a graph ({keep}), {how}: last / first", row[f"{how}, {keep}"], 1.5, "x")
    by_hand = 1.2 if sys.version_info < (3, 12) else 1.1
    yield Figure("gradients written by hand, with / without", row["by hand"], by_hand, "x")
    yield Figure("%load_ext once torch is imported", row["load"], 0.3, " s")


def files() -> Iterator[Figure]:
    found = script("files")
    some, long = found["imports"], found["long_file"]
    yield Figure("imports of 1,000 modules, more with a tracker", some["on"] - some["off"], 1, " s")
    yield Figure("import of 20,000 lines, more with a tracker", long["on"] - long["off"], 2, " s")
    yield Figure("an error in 20,000 lines, with its note", long["error"], 5, " s")
    yield Figure("findings for 20,000 lines", long["findings"], 2, " s")


def layout() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        gpt2, dag = (graph_file(name, Path(folder)) for name in ("gpt2", "dag10k"))
        ours, dot = engines("--peers=dot", "--repeat", 5, *5 * [gpt2])
        yield Figure("layout of gpt2, dot / ours, cold", dot["cold"] / ours["cold"], 15, "x", most=False)
        yield Figure("layout of gpt2, dot / ours, hot", dot["hot"] / ours["hot"], 100, "x", most=False)
        yield Figure("layout of gpt2, crossings beyond dot's", ours["crossings"] - dot["crossings"], 1)
        yield Figure("layout of gpt2, edge length / dot's", ours["length"] / dot["length"], 1.1, "x")
        yield Figure("layout of gpt2, edges through nodes", ours["through"], 0)
        ours, elk = engines("--peers=elk", "--repeat", 1, dag)
        if "hot" in elk:
            yield Figure("layout of dag10k, ELK / ours, hot", elk["hot"] / ours["hot"], 100, "x", most=False)
        yield Figure("layout of dag10k, edges through nodes", ours["through"], 0)


def engines(*options: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return our row and the peer's. For a graph given several times, they have the medians of alternating runs."""
    rows = [json.loads(line) for line in output("node", BENCH / "layout.mjs", "--json", *options).splitlines()]
    for of in (rows[::2], rows[1::2]):
        of[0] |= {how: statistics.median(row[how] for row in of) for how in ("cold", "hot") if how in of[0]}
    return rows[0], rows[1]


def graph_file(name: str, folder: Path) -> Path:
    """Write a graph in the format of bench/layout.mjs and return the path."""
    from wire import CASES, drawings

    graph = drawings(*CASES[name])[0].snapshot
    labels = [graph.name_of(i) for i in range(len(graph))]
    nodes = [
        {"id": i, "label": label, "w": int(6.5 * len(label) + 20), "h": 28, "seq": graph.seq[i]}
        | {"kind": "leaf" if i in graph.leaves else "fn"}
        for i, label in enumerate(labels)
    ]
    edges = [[i, target] for i in range(len(graph)) for target in graph.next(i)]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    return path


def run() -> Iterator[Figure]:
    found = script("run", "--repeat", 3)
    for name, seconds in found["start, s beyond import torch"].items():
        yield Figure(f"start of `graphwidget {name}` beyond import torch", seconds, 0.5, " s")
    ratio = found["writing, gpt2-like"]["ratio"]
    yield Figure("writing a record, gpt2-like step", 100 * (ratio - 1), 3, " %")
    for name in ("alike", "varied"):
        yield Figure(f"opening a record of 1,000 calls, {name}", found["opening 1,000 calls, s"][name], 1, " s")
    yield Figure("size of a record whose bound is 1 MB", found["size, MB"]["size"], 1, " MB")


BENCHES: tuple[Callable[[], Iterator[Figure]], ...] = (
    snapshot, cell_end, overhead, workloads, namespace, findings, growth, wire, layout, frames, paint,
    stepping, exports, loop, run, files,
)  # fmt: skip


def main() -> int:
    names = [bench.__name__ for bench in BENCHES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    began = time.monotonic()
    for bench in BENCHES:
        if bench.__name__ not in options.only:
            continue
        try:
            for figure in bench():
                found.append({"bench": bench.__name__, **vars(figure), "held": figure.held})
                if not options.json:
                    print(line(bench.__name__, figure), flush=True)
        except Exception as error:  # the other benchmarks still run
            found.append({"bench": bench.__name__, "what": f"did not run: {error}", "held": False})
            if not options.json:
                print(f"{bench.__name__:10} did not run: {error}", flush=True)
    missed = sum(not row["held"] for row in found)
    if options.json:
        print(json.dumps(found))
    else:
        print(f"{len(found) - missed} of {len(found)} goals held, {time.monotonic() - began:.0f} s")
    return bool(missed)


def line(name: str, figure: Figure) -> str:
    sign = "<=" if figure.most else ">="
    value, goal = f"{figure.value:.4g}{figure.unit}", f"{sign} {figure.goal:g}{figure.unit}"
    return f"{name:10} {figure.what:58} {value:>16}   goal {goal:16} {'held' if figure.held else 'MISSED'}"


if __name__ == "__main__":
    sys.exit(main())
