"""What PyTorch refuses outside the engine: errors of cells that no call raised, and inputs that a call did not use.

Told from torch's message, the text of the line that raised, and what the notebook's variables refer to now. Where a
fix is called verified, the text alone leaves no doubt that the line then works, or the engine's simulation said so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from graphwidget.analysis import edits, engine, source
from graphwidget.analysis.regaining import updated_in_place
from graphwidget.analysis.story import root_name
from graphwidget.analysis.words import at, names, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, SlotState, TensorRef

_OPTIMIZER = re.compile(r"\b(?:optim\.\w+|SGD|\w*Adam\w*|RMSprop|R?prop|Adagrad|Adadelta|Adafactor|ASGD|LBFGS|Muon)\(")
_OWN = re.compile(r"\.backward\(\s*(?:\)|\w+\s*=)")  # a tensor's own; not ``accelerator.backward(loss)``
_PATH = re.compile(r"[\w.]+")  # a path that can be assigned, whatever it is part of


@dataclass(frozen=True)
class Failure:
    """A cell's error, and the line that raised it."""

    record: Record
    run: CellRun
    place: Place

    @cached_property
    def text(self) -> str:
        """The statement in one line."""
        found = self.statement
        whole = found is not None and found.lineno != found.end_lineno
        return ast.unparse(found) if whole and found is not None else self.place.source

    @cached_property
    def cell(self) -> str:
        """The cell that has the line: that of the function, if a function raised."""
        runs = [run for run in self.record.runs.values() if run.cell == self.place.cell]
        return runs[-1].source if runs else ""

    @cached_property
    def statement(self) -> ast.stmt | None:
        """The simple statement that has the line."""
        found = source.statements_at(self.cell, self.place.line or 0)
        return found[-1] if found and not hasattr(found[-1], "body") else None

    @property
    def line(self) -> str:
        """The text of the statement, if it is all on one line; else nothing, as no edit can be told for it."""
        one = self.statement is not None and self.statement.lineno == self.statement.end_lineno
        return self.place.source if one and edits.statement_of(self.place.source) is not None else ""

    def node(self, name: str) -> int | None:
        """The node whose output a variable is, or was where the error was raised; for a leaf its AccumulateGrad."""
        for owner in self.record.snapshot.owners:
            if owner.path == name or owner.path.endswith(f": {name}"):
                return owner.node
        return None

    def tensor(self, name: str | None) -> TensorRef | None:
        """A variable's tensor; without its shape, where another was computed from it."""
        graph = self.record.snapshot
        known = [TensorRef(owner.node, owner.output_nr) for owner in graph.owners if owner.path == name]
        return next((ref for ref in graph.roots if name in ref.paths), next(iter(known), None))

    def computed(self, name: str) -> int | None:
        """The node, if the variable is no leaf."""
        node = self.node(name)
        return None if node is None or self.record.snapshot.node(node).leaf is not None else node

    def made(self, node: int | None) -> str:
        """Where a node was made, as the end of a sentence; nothing where that is unknown."""
        place = where(self.record.snapshot.place_of(node)) if node is not None else ""
        return f" in {place}" if place else ""

    def finding(
        self,
        headline: str,
        text: str,
        *fixes: Fix,
        kind: Literal["no_grad", "refused"] = "refused",
        tensor: str | None = None,
        nodes: Iterable[int | None] = (),
    ) -> Finding:
        """`nodes`: those to show, by index; by default that of `tensor`."""
        found = nodes or ([self.node(tensor)] if tensor is not None else [])
        uids = tuple(self.record.snapshot.uid[node] for node in found if node is not None)
        return Finding(kind, "error", text, headline, made_at=self.place, tensor=tensor, uids=uids, fixes=fixes)

    def fix(self, id: str, text: str, edit: edits.Edit = (), verified: bool = False, price: str = "") -> Fix:
        return Fix(id, text, verified and bool(edit), at(self.place), price, edit)


def of_cells(record: Record) -> Iterator[Finding]:
    """What there is to say of cells that raised when they were last run."""
    for run in _latest(record):
        if run.error is None:
            continue
        failure = Failure(record, run, run.error_place or Place(run.cell, None))
        tell = next((tell for words, tell in _TELLERS if words in run.error), None)
        found = tell(failure) if tell is not None else None
        if found is not None:
            yield found


def _latest(record: Record) -> Iterator[CellRun]:
    """The last run of each cell."""
    yield from {run.cell_id or run.run: run for run in record.runs.values()}.values()


# ------------------------------------------------------------------ what a backward starts from


def _no_scalar(failure: Failure) -> Finding:
    """``out.backward()`` where `out` is no single number."""
    called, name = _start(failure)
    shown = f"`{name}`" if name else "The root"
    ref = failure.tensor(name)
    size = f"{ref.numel} values, of shape {list(ref.shape)}" if ref is not None and ref.numel != 1 else "several values"
    simple = name is not None and not isinstance(edits.expression(name), (ast.BinOp, ast.UnaryOp))
    one = f"{name}.sum()" if simple else f"({name}).sum()" if name else "sum()"
    weights = f"{'grad_outputs' if name and not called else 'gradient'}=torch.ones_like({name or 'root'})"
    runs = _would_run(failure, ref, called)
    return failure.finding(
        f"{shown} is not one number.",
        f"{shown} has {size}. A gradient is that of one number, such as a loss.",
        failure.fix(
            "scalar_loss",
            f"Make one number of it: `{one}`, or `mean()`, which divides by how many there are.",
            _reduced(failure.line, called),
            runs,
        ),
        failure.fix(
            "pass_gradient",
            f"Or say how much each value counts: `{weights}`.",
            edits.with_keyword(failure.line, weights) if name else (),
            runs,
        ),
        tensor=name,
    )


def _start(failure: Failure) -> tuple[bool, str | None]:
    """Whether the line calls `backward` (else `grad`), and on what."""
    called = source.receivers(failure.text) if _OWN.search(failure.text) else []
    roots = called or source.asked(failure.text, "outputs")
    return bool(called), roots[0] if len(roots) == 1 else None


def _reduced(line: str, called: bool) -> edits.Edit:
    """The line with ``.sum()`` behind what its one call starts from."""
    tree = source.parse(line)
    wanted = "backward" if called else "grad"
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    ends = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == wanted and not (called and call.args):
            root = call.func.value if called else next(iter(call.args), None)
            inside = isinstance(root, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
            behind = (call.func.end_col_offset or 0) - len(".backward")  # behind the bracket of ``(a * b).backward``
            ends.append(behind if called else root.end_col_offset if root is not None and inside else None)
    if len(ends) != 1 or ends[0] is None:
        return ()
    raw = line.encode()
    return edits.replaced(line, (raw[: ends[0]] + b".sum()" + raw[ends[0] :]).decode())


def _would_run(failure: Failure, ref: TensorRef | None, called: bool) -> bool:
    """Whether a backward from a root would run, given a gradient. Of `grad`, with its inputs: unknown."""
    if ref is None or not called:
        return False
    return engine.forecast(failure.record.snapshot, [ref], grad_given=True).ok is True


def _complex(failure: Failure) -> Finding:
    name = _start(failure)[1]
    shown = f"`{name}`" if name else "The root"
    return failure.finding(
        f"{shown} is complex.",
        f"{shown} is a complex number, and a gradient is that of a real one.",
        failure.fix("scalar_loss", "Make it real: `.real`, `.imag`, or `.abs()`."),
        tensor=name,
    )


# ------------------------------------------------------------------ leaves, and what is none


def _leaf_written(failure: Failure) -> Finding:
    """``w -= 0.1 * w.grad``: a leaf is changed while the graph is recorded."""
    view = (failure.run.error or "").startswith("a view")
    name = _written(failure, element=not view)
    return failure.finding(
        f"{short(failure.text)} writes to {f'`{name}`' if name else 'a leaf'} while a graph is recorded.",
        f"{f'`{name}`' if name else 'It'} is a leaf that requires grad: what `.grad` belongs to. A write to it"
        f"{' through a view' if view else ''} would be recorded, and it would be a leaf no longer.",
        failure.fix(
            "under_no_grad",
            "Write to it under `with torch.no_grad():`. Then nothing is recorded, and it stays a leaf.",
            _under_no_grad(failure.line, failure.line) if name else (),
            name is not None and not _is_saved(failure, name),
        ),
        tensor=name,
    )


def _written(failure: Failure, *, element: bool = True) -> str | None:
    """What the line itself modifies, if it does: a function that it calls may be what has raised."""
    if failure.statement is None or not edits.written(failure.statement):
        return None
    return (edits.element(failure.text) if element else None) or edits.modified(failure.text)


def _is_saved(failure: Failure, name: str) -> bool:
    """Whether a graph still needs a tensor as it is: then no write to it should be called right."""
    graph = failure.record.snapshot
    keys = {at for at, owners in graph.storages.owners.items() if name in owners}
    held = (at for slot, at in enumerate(graph.slot_storage) if graph.slot_state[slot] == SlotState.HELD)
    return not keys.isdisjoint(held)


def _under_no_grad(old: str, new: str) -> edits.Edit:
    return (f"- {old.strip()}", "+ with torch.no_grad():", f"+     {new.strip()}") if old and new else ()


def _view_written(failure: Failure) -> Finding:
    name = _written(failure)
    shown = f"`{name}`" if name else "A view"
    return failure.finding(
        f"{shown} is one of several views that one call made.",
        f"{short(failure.text)} modifies {shown if name else 'it'} in place. Autograd cannot record that for views "
        "from `unbind`, `split`, `chunk` and the like.",
        failure.fix("out_of_place", "Make a new tensor instead.", edits.out_of_place(failure.line) if name else ()),
        tensor=name,
    )


def _flag_of_no_leaf(failure: Failure) -> Finding | None:
    """``y.requires_grad_(False)`` on what was computed."""
    found = re.match(r"([\w.\[\]'\"]+?)\.requires_grad(?:_\(False\)| *= *False)", failure.text)
    name = found[1] if found else None
    if name is None:
        return None
    cut, made = f"{name} = {name}.detach()", failure.made(failure.computed(name))
    return failure.finding(
        f"`{name}` is no leaf.",
        f"`{name}` was computed{made}, from what requires grad. So it does, too. Only a leaf can be told.",
        failure.fix("detach", f"Cut it off: `{cut}`.", edits.replaced(failure.line, cut)),
        tensor=name,
    )


def _optimized(failure: Failure) -> Finding:
    """``SGD([w2])`` where `w2` was computed."""
    there = failure.statement is not None and _OPTIMIZER.search(failure.text)
    read = source.names_read(failure.statement) if failure.statement is not None and there else set()
    found = sorted(name for name in read if failure.computed(name) is not None)
    name = found[0] if len(found) == 1 else None
    shown = names(tuple(found)) or "A tensor that it was given"
    made = failure.made(failure.computed(name)) if name else ""
    return failure.finding(
        f"{shown} {'are no leaves' if len(found) > 1 else 'is no leaf'}.",
        f"{shown} {'were' if len(found) > 1 else 'was'} computed{made}. An optimizer changes leaves: backward writes "
        "`.grad` into them only.",
        failure.fix(
            "leaf",
            f"Make a leaf of it first: `{name or 'w'} = {name or 'w'}.detach().requires_grad_()`.",
            edits.before(failure.cell, failure.place.line or 0, [f"{name} = {name}.detach().requires_grad_()"])
            if name and failure.line
            else (),
            verified=True,
            price="What it was computed from gets no gradient.",
        ),
        tensor=name,
    )


def _no_parameter(failure: Failure) -> Finding:
    """``net.weight = net.weight - 0.1 * net.weight.grad``."""
    statement = failure.statement
    name = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    update = updated_in_place(failure.cell, statement) if statement is not None and failure.line else ()
    new = update[1].removeprefix("+ ") if update else ""
    fix = (
        failure.fix(
            "under_no_grad", "Change its values in place, and record nothing.", _under_no_grad(failure.line, new)
        )
        if update
        else failure.fix(
            "under_no_grad",
            "To change its values, use `.copy_(...)` under `with torch.no_grad():`. To compute with other weights, and "
            "get their gradient, use `torch.func.functional_call`.",
        )
    )
    return failure.finding(
        f"`{name}` must stay a Parameter." if name else "A parameter must stay a Parameter.",
        f"{short(failure.text)} would replace it by a computed tensor. That is no leaf: it gets no `.grad`, and no "
        "optimizer knows it. So the module refuses.",
        fix,
        tensor=name,
    )


# ------------------------------------------------------------------ leaving the graph


def _to_numpy(failure: Failure) -> Finding:
    """``out.numpy()``."""
    tree = source.parse(failure.line) if failure.line else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and not n.args] if tree else []
    there = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "numpy"]
    raw = failure.line.encode()
    for call in sorted(there, key=lambda n: -(n.end_col_offset or 0)):
        if isinstance(call.func, ast.Attribute) and ".detach()" not in ast.unparse(call.func):
            dot = (call.func.end_col_offset or 0) - len(".numpy")
            raw = raw[:dot] + b".detach()" + raw[dot:]
    asked = [ast.unparse(call.func.value) for call in there if isinstance(call.func, ast.Attribute)]
    shown = f"`{asked[0]}`" if len(asked) == 1 else "A tensor"
    return failure.finding(
        f"{shown} has a graph, and an array has none.",
        f"{short(failure.text)} asks for the values as an array. No gradient comes back from there, so torch wants it "
        "said that you leave the graph.",
        failure.fix(
            "detach",
            "Leave it: `.detach()` before the values are taken.",
            edits.replaced(failure.line, raw.decode()),
            verified=True,
        ),
        tensor=asked[0] if len(asked) == 1 else None,
    )


def _copied(failure: Failure) -> Finding:
    """``copy.deepcopy(net)`` where `net` holds what was computed."""
    calls = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call)] if failure.statement is not None else []
    copies = [call for call in calls if ast.unparse(call.func).endswith("deepcopy") and call.args]
    whole = ast.unparse(copies[0].args[0]) if len(copies) == 1 else None
    paths = [owner.path for owner in failure.record.snapshot.owners if whole and _is_in(owner.path, whole)]
    found = tuple(dict.fromkeys(path for path in paths if failure.computed(path) is not None))
    shown = names(found) or "A tensor in it"
    made = failure.made(failure.computed(found[0])) if len(found) == 1 else ""
    simple = bool(failure.line) and 0 < len(found) <= 3 and all(_PATH.fullmatch(path) for path in found)
    cut = [f"{path} = {path}.detach()" for path in found]
    return failure.finding(
        f"{shown} {'have' if len(found) > 1 else 'has'} a graph, and graphs are not copied.",
        f"{shown} {'were' if len(found) > 1 else 'was'} computed{made}. Only leaves can be copied by `deepcopy`.",
        failure.fix(
            "detach",
            f"Cut {'them' if len(found) > 1 else 'it'} off first: "
            + (", ".join(f"`{one}`" for one in cut) if simple else "`.detach()` where it is kept")
            + ".",
            edits.before(failure.cell, failure.place.line or 0, cut) if simple else (),
            verified=True,
        ),
        tensor=found[0] if len(found) == 1 else None,
        nodes=[failure.node(path) for path in found],
    )


def _is_in(path: str, whole: str) -> bool:
    return path == whole or path.startswith((f"{whole}.", f"{whole}["))


# ------------------------------------------------------------------ gradients that are None


def _none(failure: Failure) -> Finding | None:
    """``w - 0.1 * w.grad`` where that is None, as was measured: the error says only that something was."""
    without = failure.run.without_grad
    name = next(iter(without), None)
    if name is None:
        return None
    if without[name] == "computed":
        return _of_no_leaf(failure, name, failure.computed(name))
    ran = [call for call in failure.record.calls if call.result == "ok" and call.api == "backward"]
    if without[name] == "plain":
        text = "It does not require grad, so no backward writes to it."
        fix = failure.fix("unfreeze", f"Let `{name}` require grad before the loss is computed from it.")
    elif any(_reached(call, name) for call in ran):
        text = f"A backward wrote to it. `zero_grad()` has set it to None since, or `{name}` is a new tensor."
        fix = failure.fix("zero_grad_or_step_order", "Read it after backward, and before `zero_grad()`.")
    elif not ran:
        text = "No backward is known to have run."
        fix = failure.fix("run_backward", f"Run backward first, on something computed from `{name}`.")
    else:
        text = "No backward has written to it: none that ran is known to have reached it."
        fix = failure.fix("run_backward", f"See that the loss is computed from `{name}`, and that nothing cuts it off.")
    return failure.finding(f"`{name}.grad` is None.", text, fix, kind="no_grad", tensor=name)


def _reached(call: BackwardCall, name: str) -> bool:
    """Whether a call ran the node that adds to the `.grad` of a leaf of that name."""
    graph = call.graph
    if graph is None:
        return False
    nodes = [index for index, leaf in graph.leaves.items() if name in leaf.paths]
    return any(graph.uid[index] in call.executed for index in nodes)


def _grads_read(statement: ast.stmt) -> list[str]:
    """What a statement reads the `.grad` of: `w` in ``w - w.grad``, nothing in ``torch.autograd.grad(y, x)``."""
    read = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    found = [ast.unparse(node.value) for node in read if isinstance(node.ctx, ast.Load)]
    return [name for name in dict.fromkeys(found) if name not in ("torch.autograd", "autograd")]


def _of_no_leaf(failure: Failure, name: str, node: int | None) -> Finding:
    graph, statement = failure.record.snapshot, failure.statement
    place = graph.place_of(node) if node is not None else None
    again = place is not None and at(place) == at(failure.place)
    update = updated_in_place(failure.cell, statement) if again and statement is not None and failure.line else ()
    if update:
        # It was a leaf in the pass before. The fix is sure where nothing needs the leaf's values any more.
        how = f"{short(failure.text)} made a new tensor in the pass before: it is no leaf."
        fix = failure.fix(
            "under_no_grad",
            "Change the leaf in place, and record nothing.",
            _under_no_grad(failure.line, update[1].removeprefix("+ ")),
            SlotState.HELD not in graph.slot_state,
            "`.grad` adds up from call to call: set it to None after use.",
        )
    else:
        how = f"`{name}` was computed{failure.made(node)}: it is no leaf."
        cell = next((r.source for r in failure.record.runs.values() if place and r.cell == place.cell), "")
        keep = edits.after(cell, place.line or 0, [f"{name}.retain_grad()"]) if place is not None and cell else ()
        uid = graph.uid[node] if node is not None else None
        ran = any(uid in call.executed for call in failure.record.calls if call.result == "ok")
        fix = Fix(
            "retain_grad",
            f"Ask for it before backward: `{name}.retain_grad()`.",
            ran and bool(keep),
            at(place),
            "",
            keep,
        )
    text = f"{how} Backward writes `.grad` into leaves only."
    return failure.finding(f"`{name}.grad` is None.", text, fix, kind="no_grad", tensor=name)


def of_reads(record: Record) -> Iterator[Finding]:
    """``print(y.grad)`` where `y` is no leaf: it raises nothing, and is None.

    Only of lines that run once and come after that which made the variable. Where anything asks for `retain_grad`,
    nothing is said.
    """
    if any("retain_grad" in run.source for run in record.runs.values()):
        return
    runs = [run for run in _latest(record) if run.error is None and ".grad" in run.source]
    read = {
        name: (run, statement)
        for run in runs
        for statement in getattr(source.parse(run.source), "body", ())
        if not hasattr(statement, "body")
        for name in _grads_read(statement)
    }
    graph = record.snapshot
    for owner in graph.owners if read else ():
        run, statement = read.pop(owner.path, (None, None))
        place = graph.place_of(owner.node) if owner.node not in graph.leaves else None
        if run is None or statement is None or place is None or place.run is None or place.outer_line is None:
            continue
        if (place.run, place.outer_line) < (run.run, statement.lineno):
            failure = Failure(record, run, place_of(run, statement.lineno))
            yield replace(_of_no_leaf(failure, owner.path, owner.node), kind="silent", severity="info")


def of_unused(call: BackwardCall) -> Finding:
    """``torch.autograd.grad(loss, [w, b])`` where `loss` was not computed from `b`."""
    written = source.asked(call.place.source, "inputs")
    index = re.search(r"at index (\d+)", call.error or "")
    known = index is not None and len(written) == len(call.inputs or ())
    name = written[int(index[1])] if known and index is not None and int(index[1]) < len(written) else None
    shown = f"`{name}`" if name else "An input"
    return Finding(
        "no_grad",
        "error",
        f"No path leads from `{root_name(call)}` to {shown if name else 'it'}. It was not computed from that, or a "
        "line between them cut the graph.",
        f"{shown} is not part of the graph of `{root_name(call)}`.",
        call.n,
        tensor=name,
        fixes=(
            Fix(
                "allow_unused",
                "If that is meant, pass `allow_unused=True`: its gradient is then None.",
                False,
                at(call.place),
                "",
                edits.with_keyword(call.place.source, "allow_unused=True"),
            ),
        ),
    )


# ------------------------------------------------------------------ tensors that cannot have a graph


def _no_real_numbers(failure: Failure) -> Finding:
    text = "A gradient needs real numbers: an integer tensor cannot require grad."
    fix = Fix("float_dtype", "Write `1.` instead of `1`, or pass `dtype=torch.float32`.", True)
    return failure.finding(f"{failure.run.error_type} in In[{failure.run.cell}].", text, fix, kind="no_grad")


def _inference(failure: Failure) -> Finding:
    text = "A tensor made under `torch.inference_mode()` can never take part in a graph."
    fix = Fix("no_grad_or_item", "Use `torch.no_grad()` instead, or `.clone()` the tensor outside.", True)
    return failure.finding(f"{failure.run.error_type} in In[{failure.run.cell}].", text, fix, kind="no_grad")


# The beginnings of torch 2.10 to 2.13's messages, and what tells of them. The first that fits is taken.
_TELLERS: tuple[tuple[str, Callable[[Failure], Finding | None]], ...] = (
    ("grad can be implicitly created only for scalar", _no_scalar),
    ("grad can be implicitly created only for real", _complex),
    ("leaf Variable that requires grad is being used in an in-place operation", _leaf_written),
    (
        "is a view and is being modified inplace. This view is the output of a function that returns multiple",
        _view_written,
    ),
    ("you can only change requires_grad flags of leaf variables", _flag_of_no_leaf),
    ("can't optimize a non-leaf Tensor", _optimized),
    ("(torch.nn.Parameter or None expected)", _no_parameter),
    ("Can't call numpy() on Tensor that requires grad", _to_numpy),
    ("support the deepcopy protocol", _copied),
    ("nly Tensors of floating point", _no_real_numbers),
    ("Inference tensors cannot be saved for backward", _inference),
    ("NoneType", _none),
)
