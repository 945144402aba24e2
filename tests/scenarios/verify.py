#!/usr/bin/env python3
"""Runs every scenario NN_slug.py (cells split by `# %%`) and its NN_slug.fixed.py in plain
torch, cell by cell in one namespace, and compares what happens with the sidecar NN_slug.json.

usage: python verify.py [NN ...] [--no-instrument] [--json]      (torch 2.13, CPU)

Two runs per scenario, each in a forked child:
  plain        : no instrumentation; gives errors (type, text, cell, line) and checks of `expect`
  instrumented : wraps torch.autograd._engine_run_backward, puts pre/post hooks on the graph
                 nodes of each call; gives the ordered list of backward calls, the node that
                 failed, which earlier call freed it, which Python variables carried it over.
"""

import ast, gc, io, json, linecache, os, pickle, re, sys, time, traceback, types, warnings, contextlib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


# ----------------------------------------------------------------------------- cells
def parse(path):
    """-> (header lines, [(first_file_line, source)])"""
    header, cells, cur, start = [], [], None, 0
    with open(path) as fh:
        for n, line in enumerate(fh.read().split("\n"), 1):
            if line.startswith("# %%"):
                if cur is not None:
                    cells.append((start, "\n".join(cur).rstrip() + "\n"))
                cur, start = [], n + 1
            elif cur is None:
                header.append(line)
            else:
                cur.append(line)
    if cur is not None:
        cells.append((start, "\n".join(cur).rstrip() + "\n"))
    return header, cells


def run_order(header, n):
    for h in header:
        m = re.match(r"#\s*run_order:\s*([\d ]+)", h)
        if m:
            return [int(x) for x in m.group(1).split()]
    return list(range(1, n + 1))


def cell_name(sid, i):
    return f"<scenario {sid} cell {i}>"


def cell_of(fn):
    m = re.match(r"<scenario (\S+) cell (\d+)>$", fn)
    return int(m.group(2)) if m else None


class Runner:
    """exec cell by cell like a notebook: `_`, `Out[n]`, sys.last_value, linecache-able names"""

    def __init__(self, sid, path):
        self.sid = sid
        self.header, self.cells = parse(path)
        self.ns = {"__name__": "__main__", "Out": {}}
        self.errors = []
        self.codes = {}
        for i, (_, src) in enumerate(self.cells, 1):
            fn = cell_name(sid, i)
            linecache.cache[fn] = (len(src), None, src.splitlines(True), fn)
            tree = ast.parse(src, fn)
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)
            self.codes[i] = (compile(tree, fn, "exec"), compile(last, fn, "eval") if last is not None else None)

    def run(self):
        for step, i in enumerate(run_order(self.header, len(self.cells)), 1):
            body, last = self.codes[i]
            try:
                exec(body, self.ns)
                if last is not None:
                    v = eval(last, self.ns)
                    if v is not None:
                        self.ns["Out"][step] = v
                        self.ns["_"] = v
            except Exception as e:
                self.errors.append(self.describe(e, i, step))
                sys.last_type, sys.last_value, sys.last_traceback = type(e), e, e.__traceback__
                e = None
        return self

    def describe(self, e, i, step):
        frames = [(cell_of(f.filename), f.lineno) for f in traceback.extract_tb(e.__traceback__)]
        frames = [f for f in frames if f[0] is not None]
        outer, inner = frames[0], frames[-1]
        return {
            "step": step,
            "cell": outer[0],
            "line": outer[1],
            "file_line": self.cells[outer[0] - 1][0] + outer[1] - 1,
            "inner_cell": inner[0],
            "inner_line": inner[1],
            "type": type(e).__name__,
            "message60": str(e)[:60],
        }


# ----------------------------------------------------------------------------- instrument
class Tracker:
    """Ground truth by pre/post hooks on graph nodes. Holds node wrappers (fine in a harness)."""

    MAX = 20000

    def __init__(self, runner):
        import torch

        self.torch, self.r = torch, runner
        self.calls, self.keep = [], {}
        self.freed = {}  # node id -> call index
        self.executed = []  # per call: set(node id) when it freed (retain False)
        self.snap = []  # per call: {path: (id(tensor), id(grad_fn))}
        self.depth = 0
        import torch.autograd as ta

        self.orig = ta._engine_run_backward
        ta._engine_run_backward = ta.graph._engine_run_backward = self.wrapped

    def where(self):
        f = sys._getframe(2)
        inner = outer = None
        frames = []
        while f is not None:
            c = cell_of(f.f_code.co_filename)
            if c is not None:
                frames.append(f)
                if inner is None:
                    inner = (c, f.f_lineno)
                outer = (c, f.f_lineno)
            f = f.f_back
        return inner, outer, frames

    def walk(self, roots):
        seen, order, stack = {}, [], list(roots)
        while stack:
            n = stack.pop()
            if n is None or id(n) in seen:
                continue
            seen[id(n)] = n
            self.keep[id(n)] = n
            order.append(n)
            if len(order) > self.MAX:
                return order, False
            stack.extend(m for m, _ in n.next_functions)
        return order, True

    def holders(self, frames):
        torch, out, seen = self.torch, {}, set()
        mods = torch.nn.Module

        def visit(path, v, d):
            if isinstance(v, torch.Tensor):
                try:
                    fn = v.grad_fn
                except Exception:
                    fn = None
                if fn is not None:
                    self.keep[id(fn)] = fn
                    out[path] = (id(v), id(fn))
                return
            if isinstance(v, types.FunctionType) and v.__closure__ and d <= 4:
                for nm, c in zip(v.__code__.co_freevars, v.__closure__):
                    try:
                        visit(f"{path}.__closure__[{nm}]", c.cell_contents, d + 1)
                    except ValueError:
                        pass
                return
            if isinstance(v, types.GeneratorType) and v.gi_frame is not None and d <= 4:
                for k, x in v.gi_frame.f_locals.items():
                    visit(f"{path}.gi_frame[{k}]", x, d + 1)
                return
            if d > 4 or isinstance(v, (str, bytes, int, float, types.ModuleType, type, types.FunctionType)):
                return
            if isinstance(v, (list, tuple)):
                for k, x in enumerate(v[:50]):
                    visit(f"{path}[{k}]", x, d + 1)
            elif isinstance(v, dict):
                for k, x in list(v.items())[:50]:
                    visit(f"{path}[{k!r}]", x, d + 1)
            elif isinstance(v, mods):
                if id(v) in seen:
                    return
                seen.add(id(v))
                for k, x in v.__dict__.items():
                    if k in ("_parameters", "_buffers", "_modules"):
                        for kk, xx in x.items():
                            visit(f"{path}.{kk}", xx, d + 1)
                    elif not k.startswith("__"):
                        visit(f"{path}.{k}", x, d + 1)
            elif hasattr(v, "__dict__") and type(v).__module__ in (
                "__main__",
                "torch.distributions.bernoulli",
                "torch.distributions.normal",
                "torch.distributions.categorical",
            ):
                if id(v) in seen:
                    return
                seen.add(id(v))
                for k, x in vars(v).items():
                    visit(f"{path}.{k}", x, d + 1)

        for k, v in list(self.r.ns.items()):
            if not k.startswith("__") and k != "Out":
                visit(k, v, 0)
        for f in frames:
            if f.f_locals is not self.r.ns and f.f_code.co_name != "<module>":
                for k, v in f.f_locals.items():
                    visit(f"{f.f_code.co_name}:{k}", v, 0)
        return out

    def wrapped(self, outputs, *args, **kw):
        if self.depth:  # re-entrant (checkpoint, custom backward): not a user call line
            return self.orig(outputs, *args, **kw)
        inner, outer, frames = self.where()
        if inner is None:
            return self.orig(outputs, *args, **kw)
        fw = self.torch._C._functorch.is_functorch_wrapped_tensor
        if any(
            type(o).__name__ in ("FakeTensor", "FunctionalTensor") or (isinstance(o, self.torch.Tensor) and fw(o))
            for o in outputs
        ):
            return self.orig(outputs, *args, **kw)  # torch.compile's own tracing, torch.func
        GE = self.torch.autograd.graph.GradientEdge
        roots = [o.node if isinstance(o, GE) else o.grad_fn for o in outputs]
        names = []
        hol0 = self.holders(frames)
        allt = {}
        for p, (tid, fid) in hol0.items():
            allt.setdefault(tid, []).append(p)
        for o in outputs:
            c = allt.get(id(o), [])
            names.append(min(c, key=len) if c else None)
        retain = bool(args[1]) if len(args) > 1 else bool(kw.get("keep_graph"))
        create = bool(args[2]) if len(args) > 2 else False
        nodes, full = self.walk([r for r in roots if r is not None])
        started, finished, hs = [], [], []
        if full:
            for n in nodes:
                hs.append(n.register_prehook(lambda g, n=n: started.append(n)))
                hs.append(n.register_hook(lambda a, b, n=n: finished.append(n)))
        idx = len(self.calls)
        rec = {
            "n": idx,
            "cell": inner[0],
            "line": inner[1],
            "outer_cell": outer[0],
            "outer_line": outer[1],
            "api": "autograd.grad" if self.is_grad() else "backward",
            "retain_graph": retain,
            "create_graph": create,
            "roots": [r.name() if r is not None else None for r in roots],
            "root_vars": names,
            "graph_nodes": len(nodes) if full else f">{self.MAX}",
            "result": "ok",
        }
        self.calls.append(rec)
        self.executed.append(set())
        self.snap.append({})
        self.depth += 1
        try:
            return self.orig(outputs, *args, **kw)
        except Exception as e:
            rec["result"] = "raised"
            done = {id(n) for n in finished}
            bad = [n for n in started if id(n) not in done]
            if bad:
                rec["failed_node"] = bad[-1].name()
                k = self.freed.get(id(bad[-1]))
                if "second time" in str(e) or "extra time" in str(e) or "already been freed" in str(e):
                    if k is not None:
                        c = self.calls[k]
                        rec["freed_by"] = {"n": k, "cell": c["cell"], "line": c["line"]}
                        rec["carriers"] = self.carriers(roots, k, frames)
            raise
        finally:
            self.depth -= 1
            for h in hs:
                h.remove()
            rec["nodes_executed"] = len(finished)
            if not retain:
                for n in finished:
                    self.freed.setdefault(id(n), idx)
                    self.executed[idx].add(id(n))
            self.snap[idx] = self.holders(frames)

    def is_grad(self):
        f = sys._getframe(2)
        return f.f_code.co_name == "grad"

    def carriers(self, roots, k, frames):
        old = self.executed[k]
        bound, seen, stack = set(), set(), []
        for r in roots:
            if r is not None:
                (bound.add(id(r)) if id(r) in old else stack.append(r))
        while stack:
            n = stack.pop()
            if id(n) in seen:
                continue
            seen.add(id(n))
            for m, _ in n.next_functions:
                if m is None or m.name() == "torch::autograd::AccumulateGrad":
                    continue
                if id(m) in old:
                    bound.add(id(m))
                else:
                    stack.append(m)
        then = {p: t for p, t in self.snap[k].items() if t[1] in bound}
        now = {p: t for p, t in self.holders(frames).items() if t[1] in bound}
        still = sorted(p for p in now if p in then and now[p] == then[p])
        fresh = sorted(p for p in now if p not in then)
        gone = sorted(p for p in then if p not in still)
        if not (still or gone or fresh):
            # a tensor made before the freeing call but not visited by it (LSTM state, 2nd output)
            inside, _ = self.walk([r for r in roots if r is not None])
            inside = {id(n) for n in inside}
            root_ids = {id(r) for r in roots}
            cand = {p: t for p, t in self.snap[k].items() if t[1] in inside and t[1] not in root_ids}
            still = sorted(p for p, t in cand.items() if self.holders(frames).get(p) == t)
            gone = sorted(cand)
        if not still and gone and all(":" in p for p in gone) and fresh:
            gone = fresh
        return {
            "boundary_nodes": sorted({self.keep[b].name() for b in bound}),
            "still_held": still,
            "held_when_freed": gone if not still else [],
            "held_only_now": fresh,
        }


# ----------------------------------------------------------------------------- child runs
def child(fn, *a):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        try:
            out = fn(*a)
        except BaseException as e:
            out = {"harness_error": "".join(traceback.format_exception(e))}
        with os.fdopen(w, "wb") as fh:
            fh.write(pickle.dumps(out))
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as fh:
        data = fh.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else {"harness_error": "child died"}


def preload():
    """what torch.optim, checkpoint and torch.func import lazily at first use (2-3 s once)"""
    import torch
    import torch._dynamo, torch.utils.checkpoint, torch.func, torch.nn.utils.parametrize, torch.distributions
    import torch.nested._internal.nested_tensor

    p = torch.nn.Parameter(torch.zeros(2))
    for o in (torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad, torch.optim.LBFGS):
        o([p])
    torch.func.vmap(torch.sin)(torch.zeros(2))


def run_plain(sid, path, checks=()):
    import torch

    torch.manual_seed(0)
    t = time.perf_counter()
    buf = io.StringIO()
    with warnings.catch_warnings(record=True) as ws:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(buf):
            r = Runner(sid, path).run()
        dt = time.perf_counter() - t
        res = {}
        r.ns.setdefault("gc", gc)
        r.ns.setdefault("torch", torch)
        r.ns["graph_size"] = graph_size
        for c in checks:
            try:
                res[c] = bool(eval(c, r.ns))
            except Exception as e:
                res[c] = f"{type(e).__name__}: {e}"
    return {
        "errors": r.errors,
        "seconds": round(dt, 3),
        "checks": res,
        "stdout": buf.getvalue()[-600:],
        "warnings": sorted({str(w.message)[:90] for w in ws}),
    }


def graph_size(t):
    """number of autograd nodes reachable from a tensor (iterative)"""
    if t is None or t.grad_fn is None:
        return 0
    seen, stack = {}, [t.grad_fn]
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen[id(n)] = n
        stack.extend(m for m, _ in n.next_functions if m is not None)
    return len(seen)


def run_instrumented(sid, path):
    import torch

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        r = Runner(sid, path)
        t = Tracker(r)
        r.run()
    return {"errors": r.errors, "calls": t.calls}


def run_inplace(sid, path, exprs):
    """line trace: after which cell line did tensor._version last change before the error?"""
    import torch

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        r = Runner(sid, path)
        last = {x: None for x in exprs}
        cur, changes = [None], {}

        def check():
            for x in exprs:
                try:
                    v = eval(x, r.ns)
                    now = (id(v), v._version)
                except Exception:
                    continue
                old = last[x]
                if old and old[0] == now[0] and old[1] != now[1] and not r.errors:
                    changes[x] = cur[0]
                last[x] = now

        def tr(frame, event, arg):
            c = cell_of(frame.f_code.co_filename)
            if c is None:
                return None
            if frame.f_code.co_name == "<module>" and event in ("line", "exception", "return"):
                check()
                if event == "line":
                    cur[0] = [c, frame.f_lineno]
            return tr

        sys.settrace(tr)
        try:
            r.run()
        finally:
            sys.settrace(None)
    return {"changes": changes}


CALL_KEYS = [
    "cell",
    "line",
    "api",
    "retain_graph",
    "create_graph",
    "roots",
    "root_vars",
    "result",
    "failed_node",
    "freed_by",
]


def main(argv):
    import torch

    torch.set_num_threads(1)
    preload()
    want = [a for a in argv if not a.startswith("-")]
    instr = "--no-instrument" not in argv
    files = sorted(f for f in os.listdir(HERE) if re.match(r"\d{2,3}_.*\.json$", f))
    files = sorted((f for f in files if not want or f.split("_")[0] in want), key=lambda f: int(f.split("_")[0]))
    rows, bad = [], 0
    for f in files:
        sid = f[:-5]
        truth = json.load(open(os.path.join(HERE, f)))
        p = child(run_plain, sid, os.path.join(HERE, sid + ".py"), truth.get("expect", []))
        notes = []
        if "harness_error" in p:
            notes.append("HARNESS " + p["harness_error"][-200:])
            p = {"errors": [], "seconds": 0, "checks": {}}
        if p["errors"] != truth["errors"]:
            notes.append(f"errors differ: {p['errors']}")
        for c, v in p["checks"].items():
            if v is not True:
                notes.append(f"expect {c!r} -> {v}")
        if instr and truth.get("instrument", True):
            q = child(run_instrumented, sid, os.path.join(HERE, sid + ".py"))
            if "harness_error" in q:
                notes.append("HARNESS " + q["harness_error"][-200:])
            else:
                a = [{k: c.get(k) for k in CALL_KEYS if k in c} for c in q["calls"]]
                b = [{k: c.get(k) for k in CALL_KEYS if k in c} for c in truth["backward_calls"]]
                if a != b:
                    notes.append("calls differ")
                if [(e["cell"], e["line"], e["message60"]) for e in q["errors"]] != [
                    (e["cell"], e["line"], e["message60"]) for e in truth["errors"]
                ]:
                    notes.append("instrumented errors differ")
        if truth.get("inplace"):
            xs = truth["inplace"]["tensor"].split("|")
            z = child(run_inplace, sid, os.path.join(HERE, sid + ".py"), xs)
            got = z.get("changes", {})
            if not got or any(v != truth["inplace"]["changed_at"] for v in got.values()):
                notes.append(f"inplace changed_at declared {truth['inplace']['changed_at']} measured {got or z}")
        fx = "-"
        if truth.get("fixed"):
            g = child(run_plain, sid + ".fixed", os.path.join(HERE, truth["fixed"]), truth.get("expect_fixed", []))
            if "harness_error" in g or g["errors"]:
                fx = "RAISES"
                notes.append(f"fixed raises {g.get('errors')} {g.get('harness_error', '')[-200:]}")
            else:
                fx = "clean"
            for c, v in g.get("checks", {}).items():
                if v is not True:
                    notes.append(f"expect_fixed {c!r} -> {v}")
        e = truth["errors"][0] if truth["errors"] else None
        last = [c for c in truth["backward_calls"] if c["result"] == "raised"]
        node = last[-1].get("failed_node", "") if last else ""
        fb = last[-1].get("freed_by") if last else None
        rows.append(
            (
                sid,
                truth["kind"],
                f"{e['cell']}:{e['line']}" if e else "-",
                (e["message60"][:34] if e else "no error"),
                node,
                f"{fb['cell']}:{fb['line']}#{fb['n']}" if fb else "-",
                ",".join(truth["keeps_alive"]) or "-",
                fx,
                f"{p['seconds']:.2f}",
                "OK" if not notes else "MISMATCH",
            )
        )
        for n in notes:
            print("   !!", sid, n)
        bad += bool(notes)
    head = ("scenario", "kind", "at", "error", "failed node", "freed by", "kept alive by", "fixed", "s", "verdict")
    w = [max(len(str(r[k])) for r in rows + [head]) for k in range(len(head))]
    for r in [head] + rows:
        print("  ".join(str(x).ljust(n) for x, n in zip(r, w)).rstrip())
    print(f"\n{len(rows)} scenarios, {len(rows) - bad} verified, {bad} mismatching; torch {torch.__version__}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
