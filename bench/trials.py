"""Fixes that are run: does the first fix of a failing program run, and does what should train still train?

    python bench/trials.py [--every N] [--timeout SECONDS] [--json FILE] [--traps] [NAME ...]

Runs ``graphwidget explain --try`` on the programs of `tests/scenarios` whose measured truth is a second backward, a
write in place or a missing graph, and on those named. For each it prints what came of the trials of the first finding.
A program counts as mended if the first fix passed its trial. It takes long: each trial is a process of its own.

With ``--traps``, on the programs in which a fix looks right and is not: it prints which fixes a trial verified that the
header of the program does not name, and which of those that it names failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "scenarios"))
import score
import truths
from runs import plain

TRAPS = Path(score.__file__).parent / "traps"
KINDS = {"second_backward": "second_backward", "inplace": "inplace", "element0": "no_grad"}


def explained(path: Path, timeout: float) -> tuple[dict[str, Any] | None, float]:
    """The document with trials, and how many seconds it took."""
    order = plain.order_of(str(path))
    command = [sys.executable, "-m", "graphwidget", "explain", "--try", "--format", "json"]
    command += [*(["--order", order] if order else []), str(path)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - began
    return (json.loads(done.stdout) if done.stdout else None), time.monotonic() - began


def fixes_of(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The fixes of the first finding of a kind."""
    found = [one for one in document["findings"] if one["kind"] == kind and one["severity"] == "error"]
    return found[0]["fixes"] if found else []


def verdict(fixes: list[dict[str, Any]]) -> str:
    """What is known of the first fix, in a word."""
    if not fixes:
        return "no fix"
    tried = fixes[0]["tried"]
    if tried is None:
        return "advice" if not fixes[0]["edits"] else "not tried"
    return {True: "passed", False: "failed", None: "undecided"}[tried["ok"]]


def traps(names: list[str], every: int, timeout: float) -> None:
    """Compare what is verified after trials with the headers of the traps."""
    paths = {path.stem: path for path in sorted(TRAPS.glob("*.py"))}
    differ = total = 0
    for name in names or list(paths)[::every]:
        total += 1
        (line,) = [one for one in paths[name].read_text().splitlines() if one.startswith("# verified:")]
        wanted = line.removeprefix("# verified:").split()
        document, seconds = explained(paths[name], timeout)
        found = [fix for finding in (document or {"findings": []})["findings"] for fix in finding["fixes"]]
        more = [fix for fix in found if fix["verified"] and fix["id"] not in wanted]
        less = [fix for fix in found if not fix["verified"] and fix["id"] in wanted]
        gone = sorted(set(wanted) - {fix["id"] for fix in found})
        differ += bool(more or less or gone)
        print(f"{'as named' if not (more or less or gone) else 'differs':10}{seconds:6.1f} s  {name}", flush=True)
        for sign, fixes in (("+", more), ("-", less)):
            for fix in fixes:
                print(f"{'':19}{sign} {fix['id']}: {(fix['tried'] or {}).get('why')}", flush=True)
        if gone:
            print(f"{'':19}not offered: {', '.join(gone)}", flush=True)
    print(f"{differ} of {total} differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="take every Nth program")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--traps", action="store_true")
    given = parser.parse_args()
    if given.traps:
        return traps(given.names, given.every, given.timeout)
    every = truths.scenarios()
    named = given.names or [name for name, one in every.items() if one.truth["kind"] in KINDS][:: given.every]
    rows: dict[str, dict[str, Any]] = {}
    for name in named:
        document, seconds = explained(every[name].path, given.timeout)
        fixes = fixes_of(document, KINDS[every[name].truth["kind"]]) if document else []
        said = verdict(fixes) if document else "no answer"
        rows[name] = {"verdict": said, "seconds": seconds, "fixes": fixes}
        print(f"{said:10}{seconds:6.1f} s  {name}", flush=True)
        for fix in fixes:
            if fix["tried"] and not fix["tried"]["ok"]:
                print(f"{'':19}{fix['id']}: {fix['tried']['why']}", flush=True)
    counts: dict[str, int] = {}
    for row in rows.values():
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    print(", ".join(f"{number} {word}" for word, number in sorted(counts.items(), key=lambda one: -one[1])))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
