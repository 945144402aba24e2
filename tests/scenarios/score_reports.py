#!/usr/bin/env python3
"""Score `graphwidget explain` on programs written after public bug reports, each with its truth.

usage: python score_reports.py [--dir DIR] [--python EXE] [--jobs N] [--timeout S] [--json OUT] [-v] [ID ...]

Each program NNN_slug.py (cells split by `# %%`) is run by
    EXE -m graphwidget explain --format json NNN_slug.py
and the JSON document on standard output, schema 1 or 2, is compared with NNN_slug.json. What is compared:

  error   cell, line, type and first 60 characters of the first error, or that there is none: observing changes nothing
  exit    status 1 exactly where the program raised or its fault has severity error, else 0
  found   a finding of the truth's kind (refused, silent and no_grad count as one) and of at least its severity
  cause   the place that the best matching finding points at (`cause`, `places`, made_at, modified_at) is one that an expert would accept
  names   every name that an expert would give stands in that finding's text, names, carriers or tensor
  not     no false sentence and no harmful edit in any finding (must_not: texts, fixes, edits; must_not_edit: fixes as they change the program)
  fix     that finding's first fix: its edits, applied literally to a copy, run in plain torch, raise nothing, and what should train still trains.
          Where only advice is reasonable (must_run false) an advice will do, if it advises nothing of must_not and must_not_edit; edits, if there are any, must hold.
          Schema 1 has no edits: not held where they must run
  quiet   no warning and no error, neither of the program nor of a finding, on NNN_slug.fixed.py (kind ok: no finding on the program itself either)

A program is wholly right if all its checks hold. One without an answer holds none.
Exit status: 0 if every comparison holds, 1 otherwise, 2 if there is nothing to compare.
"""
import argparse, collections, json, os, re, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor

CHECKS = ["error", "exit", "found", "cause", "names", "not", "fix", "quiet"]
LEVEL = {"info": 0, "warning": 1, "error": 2}
ALIKE = {"refused", "silent", "no_grad"}

# Runs the cells of argv[1] one after another in one namespace, then the check that stands on standard input; writes what came of it to argv[2].
PLAIN = r'''
import ast, json, linecache, sys, traceback, types, warnings
path, out = sys.argv[1], sys.argv[2]
check = sys.stdin.read()
warnings.simplefilter("ignore")
main = types.ModuleType("__main__")
main.__file__ = path
sys.modules["__main__"], sys.argv = main, [path]
space, cells, result = main.__dict__, [], {"error": None, "check": None, "why": None}
for line in open(path, encoding="utf-8").read().splitlines(keepends=True):
    if line.startswith("# %%"):
        cells.append("")
    elif cells:
        cells[-1] += line


def run(text, name):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec", dont_inherit=True), space)


for n, text in enumerate(cells, 1):
    try:
        run(text, f"<cell {n}>")
    except BaseException as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename.startswith("<cell ")]
        line = frames[0].lineno if frames else getattr(e, "lineno", None)
        result["error"] = {"cell": n, "line": line, "type": type(e).__name__, "message60": str(e)[:60]}
        break
if result["error"] is None and check.strip():
    try:
        body = ast.parse(check)
        last = body.body.pop()
        exec(compile(body, "<check>", "exec"), space)
        result["check"] = bool(eval(compile(ast.Expression(last.value), "<check>", "eval"), space))
    except BaseException as e:
        result["check"], result["why"] = False, f"{type(e).__name__}: {e}"[:200]
with open(out, "w") as fh:
    json.dump(result, fh)
'''


def plain(python, path, check, timeout=60):
    """-> {"error": ..., "check": bool or None, "why": text or None} of a program run without graphwidget."""
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "out.json")
        try:
            p = subprocess.run([python, "-c", PLAIN, path, out], input=check or "", capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"error": {"cell": None, "line": None, "type": "Timeout", "message60": f"{timeout} s"}, "check": None, "why": None}
        if not os.path.exists(out):
            return {"error": {"cell": None, "line": None, "type": "Died", "message60": p.stderr[-60:]}, "check": None, "why": None}
        with open(out) as fh:
            return json.load(fh)


def explain(python, path, timeout):
    t0 = time.perf_counter()
    try:
        p = subprocess.run([python, "-m", "graphwidget", "explain", "--format", "json", path], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {timeout:g} s"
    if p.returncode not in (0, 1):
        return None, f"exit {p.returncode}: {p.stderr.strip().splitlines()[-1:]}"
    try:
        doc = json.loads(p.stdout)
    except json.JSONDecodeError as e:
        return None, f"not JSON on standard output: {e}"
    doc["_status"], doc["_seconds"] = p.returncode, time.perf_counter() - t0
    return doc, None


def cell_starts(text):
    """Return the numbers of the lines `# %%`: line k of cell n is line starts[n - 1] + k of the file."""
    return [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]


def place(p, text, path):
    """Return a place of either schema as (cell, line), or None."""
    if not p:
        return None
    if isinstance(p, (list, tuple)):
        return tuple(p[:2])
    if p.get("cell") is not None:
        return (p["cell"], p["line"])
    if p.get("file") and os.path.basename(p["file"]) == os.path.basename(path):
        before = [s for s in cell_starts(text) if s < p["line"]]
        return (len(before), p["line"] - before[-1]) if before else None
    return None


def places(f, text, path):
    found = [f.get("cause"), f.get("made_at"), f.get("modified_at"), *(f.get("places") or {}).values()]
    return {q for q in (place(p, text, path) for p in found) if q}


def words(f):
    """Return the texts of a finding, without its fixes."""
    return "\n".join(str(w) for w in [f.get("title"), f.get("text"), f.get("tensor"), *(f.get("names") or []), *(f.get("carriers") or [])] if w)


def applied(text, edits):
    """Return the program after the edits, applied literally from the last to the first."""
    lines, starts = text.splitlines(keepends=True), cell_starts(text)
    ends = [s - 1 for s in starts[1:]] + [len(lines)]

    def at(edit, key):
        line, column = edit[key]
        first, last = (starts[edit["cell"] - 1], ends[edit["cell"] - 1]) if edit.get("cell") is not None else (0, len(lines))
        number = first + line
        if number > last:
            return sum(map(len, lines[:last]))
        if line < 1:
            raise ValueError(f"line {line}")
        body = lines[number - 1].rstrip("\n")
        return sum(map(len, lines[:number - 1])) + min(column, len(body))

    spans = sorted(((at(e, "start"), at(e, "end"), i, e["new"]) for i, e in enumerate(edits)), reverse=True)
    behind = len(text) + 1
    for start, end, _, new in spans:
        if not start <= end <= behind:
            raise ValueError("edits overlap")
        if new and start == len(text) and text and not text.endswith("\n"):
            new = "\n" + new
        text, behind = text[:start] + new + text[end:], start
    return text


def new_lines(old, new):
    left = collections.Counter(old.splitlines())
    out = []
    for line in new.splitlines():
        if left[line] > 0:
            left[line] -= 1
        else:
            out.append(line)
    return out


def edited(fix, text):
    """Return the lines that a fix adds to the program; under schema 1, which has no edits, its text."""
    if "edits" not in fix:
        return fix.get("text", "")
    try:
        return "\n".join(new_lines(text, applied(text, fix["edits"]))) if fix["edits"] else ""
    except (ValueError, KeyError, IndexError, TypeError):
        return "\n".join(str(e.get("new")) for e in fix["edits"])


def try_fix(fix, text, truth, python, path):
    """-> (held, note)"""
    edits, must = fix.get("edits"), truth["fix"]["must_run"]
    if not edits:
        harm = [p for p in truth.get("must_not", []) + truth.get("must_not_edit", []) if re.search(p, fix.get("text", ""), re.M)]
        return not must and not harm, f"no edits: {fix.get('id')}" + (f", and it advises {harm}" if harm else "")
    try:
        program = applied(text, edits)
    except (ValueError, KeyError, IndexError, TypeError) as e:
        return False, f"edits of {fix.get('id')} cannot be applied: {e!r}"
    if program == text:
        return False, f"edits of {fix.get('id')} change nothing"
    with tempfile.TemporaryDirectory() as tmp:
        copy = os.path.join(tmp, os.path.basename(path))
        with open(copy, "w", encoding="utf-8") as fh:
            fh.write(program)
        res = plain(python, copy, truth["fix"]["check"])
    if res["error"]:
        return False, f"{fix.get('id')} applied: {res['error']}"
    return res["check"] is not False, f"{fix.get('id')} applied: check {res['check']} {res['why'] or ''}"


def applicable(truth, has_fixed):
    ok = truth["kind"] == "ok"
    guarded = bool(truth.get("must_not") or truth.get("must_not_edit"))
    return [c for c in CHECKS if (c in ("error", "exit") or (c == "not" and guarded) or (c == "quiet" and (ok or has_fixed))
                                  or (not ok and c in ("found", "cause", "names", "fix")))]


def loud(doc):
    return ([("raised", e["cell"], e["line"], e["type"]) for e in doc.get("errors", [])]
            + [(f.get("kind"), f.get("severity"), f.get("text", "")[:90]) for f in doc.get("findings", []) if f.get("severity") in ("warning", "error")])


def compare(truth, doc, fixed_doc, fixed_why, path, python, judge=try_fix):
    """-> {check: (held, note)} of the checks that apply. `judge` returns whether a fix holds."""
    with open(path, encoding="utf-8") as fh:
        text = fh.read()
    findings, errors, out = doc.get("findings", []), doc.get("errors", []), {}

    want = truth["error"] and [truth["error"][k] for k in ("cell", "line", "type", "message60")]
    got = [errors[0].get("cell"), errors[0].get("line"), errors[0]["type"], errors[0]["message"][:60]] if errors else None
    out["error"] = (want == got, f"want {want} got {got}")
    status = int(bool(truth["error"]) or (truth["kind"] != "ok" and truth["min_severity"] == "error"))
    out["exit"] = (doc["_status"] == status, f"want {status} got {doc['_status']}")

    if truth["kind"] != "ok":
        kinds = {truth["kind"], *truth.get("kinds_ok", [])}
        kinds |= ALIKE if truth["kind"] in ALIKE else set()
        fit = [f for f in findings if f.get("kind") in kinds and LEVEL.get(f.get("severity"), -1) >= LEVEL[truth["min_severity"]]]
        accepted = {tuple(c) for c in truth["cause"]}
        points = lambda f: bool(places(f, text, path) & accepted)
        missing = lambda f: [n for n in truth["names"] if not re.search(n, words(f))]
        best = max(fit, key=lambda f: (points(f) + (not missing(f)), points(f), LEVEL[f["severity"]]), default=None)
        seen = [(f.get("kind"), f.get("severity")) for f in findings]
        out["found"] = (best is not None, f"want {truth['kind']}, {truth['min_severity']} or worse; got {seen}")
        out["cause"] = (best is not None and points(best), f"want one of {sorted(accepted)} got {sorted(places(best, text, path)) if best else None}")
        out["names"] = (best is not None and not missing(best), f"not named: {missing(best) if best else truth['names']}")
        if best is None:
            out["fix"] = (False, "no finding")
        elif not best.get("fixes"):
            out["fix"] = (False, "no fix")
        else:
            out["fix"] = judge(best["fixes"][0], text, truth, python, path)

    if truth.get("must_not") or truth.get("must_not_edit"):
        fixes = [x for f in findings for x in f.get("fixes", [])]
        said = "\n".join([words(f) for f in findings] + [x.get("text", "") for x in fixes] + [edited(x, text) for x in fixes])
        done = "\n".join(edited(x, text) for x in fixes)
        bad = [p for p in truth.get("must_not", []) if re.search(p, said, re.M)] + [p for p in truth.get("must_not_edit", []) if re.search(p, done, re.M)]
        out["not"] = (not bad, f"{bad}")

    noise = []
    if truth["kind"] == "ok":
        noise += [n for n in loud(doc) if n[0] != "raised"]
    if fixed_doc or fixed_why:
        noise += [fixed_why] if fixed_why else loud(fixed_doc)
    if truth["kind"] == "ok" or fixed_doc or fixed_why:
        out["quiet"] = (not noise, str(noise[:2]))
    return out


def main():
    ap = argparse.ArgumentParser(description="Scores `graphwidget explain` against programs with their truth.")
    ap.add_argument("--dir", default=os.path.dirname(os.path.abspath(__file__)))
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("--json")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--timeout", type=float, default=120)
    ap.add_argument("-v", action="store_true", help="say what was wanted and what came")
    ap.add_argument("which", nargs="*", metavar="ID", help="numbers or whole ids")
    a = ap.parse_args()
    ids = sorted((f[:-5] for f in os.listdir(a.dir) if re.match(r"\d+_.*\.json$", f)), key=lambda s: int(s.split("_")[0]))
    if a.which:
        ids = [i for i in ids if i in a.which or i.split("_")[0] in a.which]
    if not ids:
        print(f"no programs in {a.dir}")
        sys.exit(2)

    def one(i):
        path, fixed = (os.path.join(a.dir, i + end) for end in (".py", ".fixed.py"))
        with open(os.path.join(a.dir, i + ".json"), encoding="utf-8") as fh:
            truth = json.load(fh)
        has_fixed = os.path.exists(fixed) and truth.get("quiet_when_fixed", True)
        checks = applicable(truth, has_fixed)
        doc, why = explain(a.python, path, a.timeout)
        if doc is None:
            return i, truth, {c: (False, why) for c in checks}, why
        fixed_doc, fixed_why = explain(a.python, fixed, a.timeout) if has_fixed else (None, None)
        res = compare(truth, doc, fixed_doc, fixed_why, path, a.python)
        return i, truth, {c: res[c] for c in checks}, None

    held, tried, fell, rows, dead = collections.Counter(), collections.Counter(), collections.defaultdict(list), {}, []
    with ThreadPoolExecutor(max(1, a.jobs)) as pool:
        for i, truth, res, why in pool.map(one, ids):
            rows[i] = {"kind": truth["kind"], "faults": truth.get("faults"), "held": {k: v[0] for k, v in res.items()},
                       "notes": {k: v[1] for k, v in res.items() if not v[0]}}
            if why:
                dead.append(i)
            for k, (ok, note) in res.items():
                tried[k] += 1
                held[k] += ok
                if not ok:
                    fell[k].append(i.split("_")[0])
            bad = {k: note for k, (ok, note) in res.items() if not ok}
            if bad and a.v:
                print(i)
                for k, note in bad.items():
                    print(f"    {k}: {note[:400]}")
            elif bad:
                print(f"{i}: {why or ', '.join(bad)}")
            sys.stdout.flush()
    print()
    for k in CHECKS:
        if tried[k]:
            print(f"{k:6} {held[k]:4} of {tried[k]:<4}" + (f" short: {' '.join(fell[k])}" if fell[k] else ""))
    whole = [i for i in ids if all(rows[i]["held"].values())]
    total, good = sum(tried.values()), sum(held.values())
    print(f"wholly right {len(whole)} of {len(ids)}" + (f": {' '.join(i.split('_')[0] for i in whole)}" if whole else "")
          + (f"; without an answer: {' '.join(i.split('_')[0] for i in dead)}" if dead else ""))
    print(f"score {good} of {total} comparisons")
    if a.json:
        with open(a.json, "w") as fh:
            json.dump(rows, fh, indent=1)
    sys.exit(0 if good == total else 1)


if __name__ == "__main__":
    main()
