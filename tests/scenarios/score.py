"""Compare `graphwidget explain` with the facts measured for the scenarios in plain torch.

    python tests/scenarios/score.py [--python EXE] [--jobs N] [--timeout SECONDS] [--device DEVICE] [-v] [NAME ...]

Each program is run by ``EXE -m graphwidget explain --no-try --format json PROGRAM``. With `--device cuda` its tensors are
made on that device; the truth was measured on the CPU, so programs that ask for arrays, or whose nodes have other names
there, differ. What is compared:

  errors    cell, line, type and first 60 characters of each error: observing changes nothing
  calls     every backward call in order: cell, line, api, retain_graph, create_graph, result
  forecast  the prediction just before each call: "ok" exactly if the call succeeded
  node      the name of the node at which a failing call failed
  freed_by  number, cell and line of the earlier call that freed tensors that the failing call needed
  carriers  the Python paths that carried the old part over (truth: keeps_alive); one extra allowed
  inplace   name of the tensor and (cell, line) of its modification
  leak      the variable in which graphs pile up
  fix       the first fix offered is one that a corrected program uses
  quiet     no finding of severity "warning" or "error" where nothing is wrong

Exit status: 0 if every comparison holds, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import truths
from runs import plain

WITH_A_FIX = ("second_backward", "inplace", "leak", "element0", "dtype_error", "silent")
CALL = ("cell", "line", "api", "retain_graph", "create_graph", "result")


class Compared(NamedTuple):
    check: str
    held: bool
    note: str


ON_DEVICE = (
    "import sys, torch; from graphwidget.cli import main; torch.set_default_device(sys.argv.pop(1)); "
    "sys.exit(main(sys.argv[1:]))"
)


def explain(python: str, path: str, timeout: float, device: str = "") -> tuple[dict[str, Any] | None, str]:
    """Return the document of ``graphwidget explain``, or the reason why there is none."""
    order = plain.order_of(path)
    command = [
        python,
        *(["-c", ON_DEVICE, device] if device else ["-m", "graphwidget"]),
        "explain",
        "--no-try",
        "--format",
        "json",
        *(["--order", order] if order else []),
        path,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {timeout} s"
    if done.returncode not in (0, 1):
        return None, f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    try:
        return json.loads(done.stdout), ""
    except json.JSONDecodeError as error:
        return None, f"not JSON on standard output: {error}"


def root_name(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def compare(truth: dict[str, Any], document: dict[str, Any]) -> Iterator[Compared]:
    """Yield every comparison that applies to a program."""
    findings = document["findings"]
    loud = [finding for finding in findings if finding["severity"] in ("warning", "error")]

    wanted = [(e["cell"], e["line"], e["type"], e["message60"]) for e in truth["errors"]]
    got = [(e["cell"], e["line"], e["type"], e["message"][:60]) for e in document["errors"]]
    yield Compared("errors", wanted == got, f"want {wanted} got {got}")

    if truth["instrument"]:
        yield from compare_calls(truth["backward_calls"], document["calls"])

    wanted_paths = {path for path in truth["keeps_alive"] if not path.startswith("<")}
    if truth["kind"] == "second_backward" and wanted_paths:
        paths = carriers(findings, "second_backward")
        few = len(paths) <= len(wanted_paths) + 1
        yield Compared("carriers", wanted_paths <= paths and few, f"want {sorted(wanted_paths)} got {sorted(paths)}")

    if inplace := truth.get("inplace"):
        writes = [(f["tensor"], f["modified_at"]) for f in findings if f["kind"] == "inplace"]
        any_of = [(tensor, inplace["changed_at"]) for tensor in inplace["tensor"].split("|")]
        yield Compared("inplace", any(one in writes for one in any_of), f"want {any_of} got {writes}")

    if leak := truth.get("leak"):
        holder, holders = root_name(leak["holder"]), {root_name(path) for path in carriers(findings, "leak")}
        yield Compared("leak", holder in holders, f"want {holder} got {sorted(holders)}")

    if truth["fixes"] and truth["kind"] in WITH_A_FIX:
        first = [finding["fixes"][0]["id"] for finding in loud if finding["fixes"]]
        yield Compared("fix", first[:1] != [] and first[0] in truth["fixes"], f"want {truth['fixes']} got {first}")

    if truth["false_alarm_trap"] or truth["kind"] == "ok":
        yield Compared("quiet", not loud, str([(finding["kind"], finding["severity"]) for finding in loud]))


def compare_calls(wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> Iterator[Compared]:
    def essence(calls: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [tuple(call[key] for key in CALL) for call in calls]

    same = essence(wanted) == essence(got)
    yield Compared("calls", same, f"want {essence(wanted)[:9]} got {essence(got)[:9]}")
    if not same or not wanted:
        return
    pairs = list(zip(wanted, got))
    wrong = [(t["n"], c["forecast"]) for t, c in pairs if (c["forecast"] == "ok") != (t["result"] == "ok")]
    yield Compared("forecast", not wrong, f"(call, forecast): {wrong}")
    named = [(t["failed_node"], c["failed_node"]) for t, c in pairs if t.get("failed_node")]
    if named:
        yield Compared("node", all(a == b for a, b in named), str(named))
    freed = [(call_before(t, 0), call_before(c, 1)) for t, c in pairs if t.get("freed_by")]
    if freed:
        yield Compared("freed_by", all(a == b for a, b in freed), str(freed))


def call_before(call: dict[str, Any], first: int) -> tuple[int, int, int] | None:
    """Return number, cell and line of the freeing call, counted from the call `first` on."""
    freed_by = call["freed_by"]
    return freed_by and (freed_by["n"] - first, freed_by["cell"], freed_by["line"])


def carriers(findings: list[dict[str, Any]], kind: str) -> set[str]:
    return {path for finding in findings if finding["kind"] == kind for path in finding["carriers"]}


def scored(
    explain_one: Callable[[str], tuple[dict[str, Any] | None, str]], scenario: truths.Scenario
) -> list[Compared]:
    document, why_not = explain_one(str(scenario.path))
    return [Compared("answer", False, why_not)] if document is None else list(compare(scenario.truth, document))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--device", default="", help="where tensors are made by default: cuda, cuda:1, ...")
    parser.add_argument("-v", action="store_true", help="say what differs")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    scenarios = truths.scenarios()
    chosen = [scenarios[name] for name in given.names or scenarios]
    tried: Counter[str] = Counter()
    held: Counter[str] = Counter()
    whole = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        one = partial(scored, lambda path: explain(given.python, path, given.timeout, given.device))
        for scenario, results in zip(chosen, pool.map(one, chosen)):
            tried.update(result.check for result in results)
            held.update(result.check for result in results if result.held)
            whole += all(result.held for result in results)
            for result in results:
                if not result.held:
                    print(
                        f"{scenario.theme}/{scenario.name}: {result.check}{': ' + result.note[:300] if given.v else ''}"
                    )
    for check, count in tried.items():
        print(f"{check:10} {held[check]:4} of {count}")
    print(f"{whole} of {len(chosen)} scenarios wholly right; {held.total()} of {tried.total()} comparisons hold")
    return 0 if held == tried else 1


if __name__ == "__main__":
    sys.exit(main())
