#!/usr/bin/env python3
"""Scores `graphwidget explain` against scenarios whose truth was measured in plain torch.

usage: python score.py [--dir DIR] [--python EXE] [--json OUT] [-v] [NN ...]

Each scenario NN_slug.py (cells split by `# %%`, the percent format) is run by
    EXE -m graphwidget explain NN_slug.py --format json [--order 1,2,3,2]
and the JSON document on standard output is compared with NN_slug.json. What is compared:

  errors    cell, line, type and first 60 characters of each error: observing changes nothing
  calls     every backward-type call in order: cell, line, api, retain_graph, create_graph, result
  forecast  what was predicted just before each call: "ok" exactly where the call succeeded
  node      the name of the node at which a failing call failed
  freed_by  index, cell and line of the earlier call that freed what the failing call needed
  carriers  the Python paths that carried the old part over (truth: keeps_alive); one extra allowed
  inplace   name of the tensor and (cell, line) of its modification
  leak      the variable in which the graph piles up
  fix       the first fix offered is one that a corrected program uses
  quiet     no finding of severity "warning" or "error" where nothing is wrong

Exit status: 0 if every comparison holds, 1 otherwise.
"""

import argparse, json, os, re, subprocess, sys, time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

CHECKS = ["errors", "calls", "forecast", "node", "freed_by", "carriers", "inplace", "leak", "fix", "quiet"]


def order_of(path):
    with open(path) as fh:
        for line in fh:
            if not line.startswith("#") or line.startswith("# %%"):
                return None
            m = re.match(r"#\s*run_order:\s*([\d ]+)", line)
            if m:
                return ",".join(m.group(1).split())


def explain(python, path, timeout):
    cmd = [python, "-m", "graphwidget", "explain", path, "--format", "json"]
    order = order_of(path)
    if order:
        cmd += ["--order", order]
    t0 = time.perf_counter()
    try:
        p = subprocess.run(cmd, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {timeout} s"
    took = time.perf_counter() - t0
    if p.returncode not in (0, 1):
        return None, f"exit {p.returncode}: {p.stderr.strip().splitlines()[-1:]}"
    try:
        doc = json.loads(p.stdout)
    except json.JSONDecodeError as e:
        return None, f"not JSON on standard output: {e}"
    doc["_seconds"] = took
    return doc, None


def root_name(path):
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def compare(truth, doc):
    """-> {check: (held: bool, note: str)}; checks that do not apply are left out."""
    out = {}
    calls, tcalls = doc.get("calls", []), truth["backward_calls"]
    findings = doc.get("findings", [])
    loud = [f for f in findings if f.get("severity") in ("warning", "error")]

    want = [(e["cell"], e["line"], e["type"], e["message60"]) for e in truth["errors"]]
    got = [(e["cell"], e["line"], e["type"], e["message"][:60]) for e in doc.get("errors", [])]
    out["errors"] = (want == got, f"want {want} got {got}")

    if truth.get("instrument", True):
        key = lambda c: (c["cell"], c["line"], c["api"], c["retain_graph"], c["create_graph"], c["result"])
        want, got = [key(c) for c in tcalls], [key(c) for c in calls]
        first = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
        out["calls"] = (
            want == got,
            f"{len(want)} wanted, {len(got)} got; first difference at {first}: "
            f"{want[first : first + 1]} / {got[first : first + 1]}",
        )
        if want == got and want:
            bad = [
                (i, c.get("forecast"), t["result"])
                for i, (c, t) in enumerate(zip(calls, tcalls))
                if (c.get("forecast") == "ok") != (t["result"] == "ok")
            ]
            out["forecast"] = (not bad, f"(call, forecast, result): {bad[:3]}")
            named = [(c.get("failed_node"), t["failed_node"]) for c, t in zip(calls, tcalls) if t.get("failed_node")]
            if named:
                out["node"] = (all(a == b for a, b in named), str(named[:3]))
            # The truth counts calls from 0, the answer from 1.
            fb = lambda x, off=0: x and (x["n"] - off, x["cell"], x["line"])
            freed = [(fb(c.get("freed_by"), 1), fb(t["freed_by"])) for c, t in zip(calls, tcalls) if t.get("freed_by")]
            if freed:
                out["freed_by"] = (all(a == b for a, b in freed), str(freed[:3]))

    wanted = {p for p in truth["keeps_alive"] if not p.startswith("<")}
    if truth["kind"] == "second_backward" and wanted:
        got = {p for f in findings if f.get("kind") == "second_backward" for p in f.get("carriers", [])}
        out["carriers"] = (wanted <= got and len(got) <= len(wanted) + 1, f"want {sorted(wanted)} got {sorted(got)}")

    if truth.get("inplace"):
        t = truth["inplace"]
        got = [
            (f.get("tensor"), tuple(f["modified_at"]) if f.get("modified_at") else None)
            for f in findings
            if f.get("kind") == "inplace"
        ]
        want = [(tensor, tuple(t["changed_at"])) for tensor in t["tensor"].split("|")]  # any of these names
        out["inplace"] = (any(w in got for w in want), f"want {want} got {got}")

    if truth.get("leak"):
        holder = root_name(truth["leak"]["holder"])
        got = {root_name(p) for f in findings if f.get("kind") == "leak" for p in f.get("carriers", [])}
        out["leak"] = (holder in got, f"want {holder} got {sorted(got)}")

    if truth["fixes"] and truth["kind"] in ("second_backward", "inplace", "leak", "element0", "dtype_error", "silent"):
        first = [f["fixes"][0]["id"] for f in loud if f.get("fixes")]
        out["fix"] = (bool(first) and first[0] in truth["fixes"], f"want one of {truth['fixes']} got {first}")

    if truth["false_alarm_trap"] or truth["kind"] == "ok":
        out["quiet"] = (not loud, str([(f.get("kind"), f.get("severity")) for f in loud]))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dir", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("--json")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--timeout", type=float, default=120)
    ap.add_argument("-v", action="store_true")
    ap.add_argument("which", nargs="*")
    a = ap.parse_args()
    ids = sorted(
        (f[:-5] for f in os.listdir(a.dir) if re.match(r"\d+_.*\.json$", f)), key=lambda s: int(s.split("_")[0])
    )
    if a.which:
        ids = [i for i in ids if i.split("_")[0] in a.which]

    def one(i):
        truth = json.load(open(os.path.join(a.dir, i + ".json")))
        doc, why = explain(a.python, os.path.join(a.dir, i + ".py"), a.timeout)
        return i, (compare(truth, doc) if doc else None), why

    held, tried, rows, dead = Counter(), Counter(), {}, []
    with ThreadPoolExecutor(a.jobs) as pool:
        for i, res, why in pool.map(one, ids):
            rows[i] = why or {k: v[0] for k, v in res.items()}
            if res is None:
                dead.append(i)
                print(f"{i}: {why}")
                continue
            for k, (ok, note) in res.items():
                tried[k] += 1
                held[k] += ok
            bad = {k: note for k, (ok, note) in res.items() if not ok}
            if bad and a.v:
                print(i)
                for k, note in bad.items():
                    print(f"    {k}: {note[:300]}")
            elif bad:
                print(f"{i}: {', '.join(bad)}")
    print()
    for k in CHECKS:
        if tried[k]:
            print(f"{k:10} {held[k]:4} of {tried[k]}")
    total, good = sum(tried.values()), sum(held.values())
    whole = sum(1 for r in rows.values() if isinstance(r, dict) and all(r.values()))
    print(f"scenarios  {whole:4} of {len(ids)} wholly right; {len(dead)} without an answer")
    print(f"score {good} of {total} comparisons" + (f", {len(dead)} scenarios dead" if dead else ""))
    if a.json:
        json.dump(rows, open(a.json, "w"), indent=1)
    sys.exit(0 if good == total and not dead else 1)


if __name__ == "__main__":
    main()
