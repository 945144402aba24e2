"""Measure `graphwidget run` and records: the start, the cost of writing, opening, and the size.

    python bench/run.py [--repeat 5] [--json]

`start`: CPU time of `graphwidget run` on a script that imports torch and ends, beyond Python alone on it; with and
without a record. `writing`: CPU time of a tracked loop with a record beyond that without one, in alternating turns of
which all steps but the first third count, as the state is written only now and then. `opening`: wall time until a
record of 1,000 calls is read and drawn; `alike`: one loop, `varied`: each graph has a shape of its own. `size`: of the
record of a program that would fill twice its bound.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from overhead import CASES, keep_memory

import graphwidget
from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.engine.forecast import forecast
from graphwidget.record.parts import Header
from graphwidget.record.run_record import load
from graphwidget.record.writer import Writer


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(repeat: int, folder: Path) -> dict[str, float]:
    """CPU seconds of a start beyond `import torch`."""
    (folder / "empty.py").write_text("import torch\n")
    commands = {
        "plain": [],
        "run": ["-m", "graphwidget", "run"],
        "run -o": ["-m", "graphwidget", "run", "-o", "start.gwz"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeat + 1):
        for name, command in commands.items():
            began = cpu_of_children()
            subprocess.run(
                [sys.executable, *command, "empty.py"],
                cwd=folder,
                env={"PYTHONPATH": str(ROOT), "PATH": ""},
                stderr=subprocess.DEVNULL,
                check=True,
            )
            seconds[name].append(cpu_of_children() - began)
    median = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    return {name: median[name] - median["plain"] for name in ("run", "run -o")}


def writing(name: str, repeat: int, folder: Path) -> dict[str, float]:
    """Time of a step with a record, as a multiple of that of a tracked step without one; and bytes a step."""
    torch.manual_seed(0)
    source, namespace, steps = CASES[name]()
    model = namespace["model"]
    assert isinstance(model, torch.nn.Module)
    namespace.update(torch=torch, clock=time.process_time, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3))
    exec(compile(source, "<cell 1>", "exec"), namespace)
    call = compile(f"times = train({steps})", "<cell 2>", "exec")
    exec(call, namespace)  # warm up
    results: dict[bool, list[float]] = {False: [], True: []}
    sizes = []
    for turn in range(2 * repeat):
        recorded = bool(turn % 2)
        tracker = Tracker(lambda: namespace, forecaster=forecast, diagnose=diagnose)
        path = folder / f"{name}{turn}.gwz"
        writer = Writer(tracker, lambda: str(path), Header.of_this_process) if recorded else None  # noqa: B023
        tracker.start()
        tracker.provenance.book.open("<cell 1>", 1, None, source, 0)
        tracker.begin_cell(2, "times = train(steps)", filename="<cell 2>")
        exec(call, namespace)
        tracker.end_cell()
        tracker.stop()
        assert not tracker.problems, list(tracker.problems)
        if writer is not None:
            writer.close()
            assert len(load(path).calls) == steps
            sizes.append(path.stat().st_size / steps)
        results[recorded].append(sum(namespace["times"][steps // 3 :]))
    ratios = [with_ / without for without, with_ in zip(results[False], results[True], strict=True)]
    return {"ratio": statistics.median(ratios), "bytes a step": statistics.median(sizes)}


def record_of(path: Path, calls: int, *, varied: bool, max_mb: float = 64.0) -> None:
    cell = torch.nn.GRUCell(8, 8)
    with graphwidget.track(record=path, max_mb=max_mb):
        for number in range(calls):
            hidden = torch.zeros(2, 8)
            for _ in range(2 + (number % 50 if varied else 0)):
                hidden = cell(torch.ones(2, 8), hidden)
            hidden.sum().backward()


def opening(repeat: int, folder: Path) -> dict[str, float]:
    """Seconds until a record of 1,000 calls is read and drawn."""
    found = {}
    for name in ("alike", "varied"):
        path = folder / f"{name}.gwz"
        record_of(path, 1000, varied=name == "varied")
        seconds = []
        for _ in range(repeat):
            began = time.perf_counter()
            record = load(path)
            record.drawing()
            seconds.append(time.perf_counter() - began)
        assert record.about.calls_before == 0 and record.calls[-1].n == 999
        found[name] = statistics.median(seconds)
        found[f"{name}, MB"] = path.stat().st_size / 1e6
    return found


def size(folder: Path) -> dict[str, float]:
    """Megabytes of a record whose bound is 1 MB, and how many of its 600 calls are in it."""
    path = folder / "bound.gwz"
    record_of(path, 600, varied=True, max_mb=1.0)
    return {"bound": 1.0, "size": path.stat().st_size / 1e6, "calls": len(load(path).calls)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "start, s beyond import torch": start(arguments.repeat, folder),
            "writing, gpt2-like": writing("gpt2-like", arguments.repeat, folder),
            "writing, mlp": writing("mlp", arguments.repeat, folder),
            "opening 1,000 calls, s": opening(arguments.repeat, folder),
            "size, MB": size(folder),
        }
    if arguments.json:
        print(json.dumps(found))
    else:
        for what, figures in found.items():
            print(f"{what:32}", ", ".join(f"{name} {figure:.3g}" for name, figure in figures.items()))
    held = [
        max(found["start, s beyond import torch"].values()) <= 0.5,
        found["writing, gpt2-like"]["ratio"] <= 1.03,
        max(found["opening 1,000 calls, s"][name] for name in ("alike", "varied")) <= 1,
        found["size, MB"]["size"] <= 1,
    ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
