"""Why a tensor has no graph: which line cut it, and how. Read from the text of the cells."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from graphwidget.analysis import edits, regaining, source
from graphwidget.analysis.story import root_name
from graphwidget.analysis.words import short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record

_GRADLESS = ("no_grad", "inference_mode", "set_grad_enabled")
_CUTTING = {
    "detach": "detach",
    "detach_": "detach",
    "data": "detach",
    "item": "no_grad_or_item",
    "numpy": "differentiable_op",
    "tolist": "differentiable_op",
    "argmax": "differentiable_op",
    "argmin": "differentiable_op",
    "argsort": "differentiable_op",
    "long": "differentiable_op",
    "int": "differentiable_op",
    "bool": "differentiable_op",
    "multinomial": "differentiable_op",
    "sample": "differentiable_op",
    "tensor": "differentiable_op",
}

_ONCE = "once_differentiable"

_WITHOUT = ("detach", "detach_", "data", "item")  # after which, left out, the same values are there with their graph

_WHY = {
    "detach": "`detach` cuts it",
    "detach_": "`detach_` cuts it",
    "data": "`.data` cuts it",
    "item": "`item` makes a Python number",
    "tolist": "`tolist` makes Python numbers",
    "numpy": "`numpy` makes an array",
    "tensor": "`torch.tensor` makes a new leaf",
}


_ON = re.compile(r"set_grad_enabled\((?!False)")


class Cause:
    """What cut the graph: a sentence, a fix and the line."""

    def __init__(self, text: str, fix: Fix, place: Place | None) -> None:
        self.text, self.fix, self.place = text, fix, place


def explain(record: Record, call: BackwardCall) -> Finding:
    """A call on a tensor that does not require grad: which line is to blame."""
    name = root_name(call)
    cause = _cause(record, call, name)
    return Finding(
        "no_grad",
        "error",
        f"{cause.text} So backward would reach no leaf.",
        f"`{name}` has no grad_fn.",
        call.n,
        tensor=name,
        made_at=cause.place,
        fixes=(cause.fix,),
    )


def _cause(record: Record, call: BackwardCall, name: str) -> Cause:
    runs = [run for _, run in sorted(record.runs.items()) if call.place.run is None or run.run <= call.place.run]
    made_of = _made_of(runs, name)
    cut = _cut(record, runs, made_of)
    off = _in_force(runs, name, made_of)
    if off is not None and cut is not None:
        return Cause(off.text, replace(off.fix, verified=False), off.place)
    return (
        off
        or cut
        or _switched_off(runs, name, made_of)
        or _frozen(runs, name, made_of)
        or _compared(runs, made_of)
        or _unknown(runs, name, made_of)
    )


def _cut(record: Record, runs: list[CellRun], made_of: list[str]) -> Cause | None:
    """The line nearest to the name that leaves the graph."""
    for one in made_of:
        for run in reversed(runs):
            for defined in source.functions_of(run.source, one):
                if found := _cut_in(record, run, defined):
                    return found
            assigned = source.assignments(run.source, one)
            if assigned and (found := _cut_by(record, run, assigned[-1])):
                return found
            if assigned:
                break
    return None


def _made_of(runs: list[CellRun], name: str) -> list[str]:
    """The name, and all that its value was made from, by the last assignment of each."""
    names = [name]
    for one in names:
        made = next((found for run in reversed(runs) if (found := source.assignments(run.source, one))), None)
        if made:
            names += sorted(source.names_in(made[-1]).difference(names))
    return names


def _cut_in(record: Record, run: CellRun, function: ast.FunctionDef) -> Cause | None:
    """What in a function cut the graph of what it returns."""
    returns = [s for s in ast.walk(function) if isinstance(s, ast.Return) and s.value is not None]
    wanted = {name for s in returns for name in source.names_in(s)}
    made = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and wanted.intersection(source.targets(s))]
    return next((cause for s in (*returns, *made) if (cause := _cut_by(record, run, s))), None)


def _in_force(runs: list[CellRun], name: str, made_of: list[str]) -> Cause | None:
    """Grad mode was off when the cell began that made it: so it was measured. Nothing made there can have a graph."""
    at = max((i for i, run in enumerate(runs) if source.assignments(run.source, name)), default=len(runs) - 1)
    if at < 0 or runs[at].grad_before or _ON.search(runs[at].source) or any("enable_grad" in r.source for r in runs):
        return None
    assigned = source.assignments(runs[at].source, name)
    made = assigned[-1] if assigned else None
    switched = next((run for run in reversed(runs[:at]) if run.grad_before and not run.grad_after), None)
    found = _switch(runs, switched) if switched is not None else None
    if found is not None:
        return _off(runs, *found, made_of)
    since = f"since In[{switched.cell}]" if switched is not None else "from the first cell on"
    place = _place(runs[at], made.lineno) if made is not None else None
    line = "torch.set_grad_enabled(True)"
    fix = Fix(
        "remove_no_grad",
        f"Switch it on again before `{name}` is computed: `{line}`.",
        made is not None and regaining.trains(runs, made_of),
        _at(place) if place is not None else None,
        edit=edits.before(runs[at].source, made.lineno, [line]) if made is not None else (),
    )
    return Cause(f"Grad mode is off {since}: `{name}` was computed without a graph.", fix, place)


def _switched_off(runs: list[CellRun], name: str, made_of: list[str]) -> Cause | None:
    """The cell that made it, or the last one, switched grad mode off and left it so."""
    made = next((run for run in reversed(runs) if source.assignments(run.source, name)), runs[-1] if runs else None)
    if made is None:
        return None
    until = max((s.lineno for s in source.assignments(made.source, name)), default=len(made.source) + 1)
    found = _switch(runs, made, until)
    return _off(runs, *found, made_of) if found is not None else None


def _off(runs: list[CellRun], run: CellRun, statement: ast.Expr, made_of: list[str]) -> Cause:
    place, text = _place(run, statement.lineno), ast.unparse(statement)
    line = source.line_text(run.source, statement.lineno)
    fix = Fix(
        "remove_no_grad",
        f"Remove `{text}` ({where(place)}), or use it in a `with`.",
        regaining.trains(runs, made_of),
        _at(place),
        edit=edits.replaced(line, line.replace("False", "True")),
    )
    return Cause(f"`{text}` ({where(place)}) is in force: `{made_of[0]}` was computed without a graph.", fix, place)


def _switch(runs: list[CellRun], run: CellRun, until: int = sys.maxsize) -> tuple[CellRun, ast.Expr] | None:
    """The statement that switched grad mode off while a cell ran: its own last one before a line, or that of a
    function which it names, and which leaves it off."""
    own = _switches(source.parse(run.source), until)
    if own:
        return (run, own[-1]) if _is_off(own[-1]) else None
    if run.grad_after:
        return None
    for other in reversed(runs):
        tree = source.parse(other.source)
        for made in (s for s in ast.walk(tree) if isinstance(s, ast.FunctionDef)) if tree else ():
            inside = _switches(made)
            if inside and _is_off(inside[-1]) and re.search(rf"\b{made.name}\b", run.source):
                return other, inside[-1]
    return None


def _switches(tree: ast.AST | None, until: int = sys.maxsize) -> list[ast.Expr]:
    """Statements that are a call of `set_grad_enabled`, in the order of the text; not those of functions inside."""
    found: list[ast.Expr] = []
    below = list(ast.iter_child_nodes(tree)) if tree is not None else []
    for node in below:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Expr) and "set_grad_enabled(" in ast.unparse(node) and node.lineno < until:
            found.append(node)
        found += _switches(node, until)
    return found


def _is_off(statement: ast.Expr) -> bool:
    return "False" in ast.unparse(statement)


def _cut_by(record: Record, run: CellRun, statement: ast.stmt) -> Cause | None:
    """What in or around an assignment cut the graph."""
    around = source.statements_at(run.source, statement.lineno)
    for outer in around[:-1]:
        items = outer.items if isinstance(outer, ast.With) else []
        names = [ast.unparse(item.context_expr) for item in items]
        if isinstance(outer, ast.FunctionDef):
            names = [ast.unparse(decorator) for decorator in outer.decorator_list]
        for name in names:
            if any(gradless in name for gradless in _GRADLESS) and "True" not in name:
                return _gradless(record, run, outer, statement, name)
    gradient = _gradient_without_graph(record, run, statement)
    if gradient is not None:
        return gradient
    attributes = (n.attr for n in ast.walk(_value(statement)) if isinstance(n, ast.Attribute) and n.attr == "data")
    for last in (*(called.rsplit(".", 1)[-1] for called in source.calls_in(statement)), *attributes):
        if last in _CUTTING:
            place = _place(run, statement.lineno)
            why = _WHY.get(last, f"`{last}` has no derivative")
            text = f"{short(ast.unparse(statement))} ({where(place)}) leaves the graph: {why}."
            edit = regaining.without(run.source, statement, last) if last in _WITHOUT else ()
            works = bool(edit) and regaining.trains(record.runs.values(), source.names_in(statement))
            shown = ".data" if last == "data" else last
            sentence = f"Compute the loss without `{shown}` ({where(place)})."
            fix = Fix(_CUTTING[last], sentence, works, _at(place), edit=edit)
            return Cause(text, fix, place)
    return None


def _gradient_without_graph(record: Record, run: CellRun, statement: ast.stmt) -> Cause | None:
    """A gradient that the statement computes, or takes from `.grad`, although no graph was built for it."""
    place, text = _place(run, statement.lineno), short(ast.unparse(statement))
    lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    for call in record.calls:
        here = call.place.line in lines and call.place.cell_id == run.cell_id and call.place.cell == run.cell
        if not here or call.api != "autograd.grad" or call.result != "ok":
            continue
        if call.create_graph:
            return _differentiated_once(record, call, text) or _constant(text, place)
        fix = Fix(
            "create_graph",
            f"Pass `create_graph=True` in {text} ({where(place)}).",
            False,
            _at(place),
            "It keeps the graph, and builds one for the gradient.",
            edits.with_keyword(ast.unparse(statement), "create_graph=True"),
        )
        return Cause(f"The gradient from {text} ({where(place)}) has no graph.", fix, place)
    nodes = list(ast.walk(_value(statement)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    if any(isinstance(node, ast.Attribute) and node.attr == "grad" and id(node) not in called for node in nodes):
        words = "Use the result of `torch.autograd.grad(..., create_graph=True)` instead of `.grad`."
        fix = Fix("autograd_grad_instead", words, False, _at(place))
        return Cause(f"{text} ({where(place)}) reads `.grad`, for which no graph was built.", fix, place)
    return None


def _differentiated_once(record: Record, call: BackwardCall, text: str) -> Cause | None:
    """A Function of a cell, which the call ran, whose backward is ``@once_differentiable``: it builds no graph."""
    ran = set(call.graph.names) if call.graph is not None else None
    for run in record.runs.values():
        tree = source.parse(run.source)
        for made in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)) if tree else ():
            if ran is not None and f"{made.name}Backward" not in ran:
                continue
            for function in (s for s in made.body if isinstance(s, ast.FunctionDef) and s.name == "backward"):
                found = next((d for d in map(ast.unparse, function.decorator_list) if d.endswith(_ONCE)), None)
                without = regaining.without_decorator(run.source, function, found) if found else None
                if without is None:
                    continue
                line, edit = without
                place = _place(run, line)
                sentence = f"Drop `@{found}` ({where(place)}), if all in that backward has a derivative."
                return Cause(
                    f"`{made.name}.backward` is `@{found}` ({where(place)}): it builds no graph for its gradients. "
                    f"{text} got one of them, in spite of `create_graph=True`.",
                    Fix("differentiable_op", sentence, False, _at(place), edit=edit),
                    place,
                )
    return None


def _constant(text: str, place: Place) -> Cause:
    """A gradient that has no graph although one was asked for."""
    return Cause(
        f"The gradient from {text} ({where(place)}) has no graph, although `create_graph=True` asks for one. It is "
        "constant, or went through a backward that has no derivative itself.",
        Fix("differentiable_op", "Compute the loss from a gradient that depends on what requires grad.", False),
        place,
    )


def _value(statement: ast.stmt) -> ast.AST:
    """What an assignment assigns, else the statement."""
    return getattr(statement, "value", None) or statement


def _gradless(record: Record, run: CellRun, outer: ast.stmt, statement: ast.stmt, name: str) -> Cause:
    place, what = _place(run, statement.lineno), short(ast.unparse(statement))
    update = regaining.updated_in_place(run.source, statement)
    if update:
        sentence = f"Write {short(update[1][2:])} ({where(place)}): it changes the tensor, and makes no new one."
        works = regaining.trains(record.runs.values(), source.names_in(statement))
        fix = Fix("remove_no_grad", sentence, works, _at(place), edit=update)
        return Cause(f"{what} ran under `{name}` ({where(place)}): it made a new tensor without a graph.", fix, place)
    first, names = regaining.feeding(outer, statement)
    line = outer.lineno
    edit: edits.Edit = ()
    if isinstance(outer, ast.With):
        edit = regaining.out_of_with(run.source, outer, first)
    elif isinstance(outer, ast.FunctionDef):
        line, edit = regaining.without_decorator(run.source, outer, name) or (line, edit)
    fix = Fix(
        "remove_no_grad",
        f"Take {what} out of `{name}` (In[{run.cell}], line {line}).",
        regaining.trains(record.runs.values(), names),
        (run.cell, line) if run.cell is not None else None,
        edit=edit,
    )
    return Cause(f"{what} ran under `{name}` ({where(place)}): no graph was built.", fix, place)


def _frozen(runs: list[CellRun], name: str, made_of: list[str]) -> Cause | None:
    """No line cut it: nothing that it was made from requires grad."""
    for run in reversed(runs):
        tree = source.parse(run.source)
        for node in ast.walk(tree) if tree else ():
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.Assign)) else ""
            if text.endswith(("requires_grad_(False)", "requires_grad = False")):
                place = _place(run, getattr(node, "lineno", 1))
                line = source.line_text(run.source, place.line)
                around = source.statements_at(run.source, place.line or 0)
                works = bool(around) and bool(source.names_in(around[0]).intersection(made_of))
                sentence = f"Let what should train require grad: change `{text}`."
                edit = edits.replaced(line, line.replace("False", "True"))
                fix = Fix("unfreeze", sentence, works, _at(place), edit=edit)
                return Cause(
                    f"`{text}` ({where(place)}): nothing that `{name}` was made from requires grad.", fix, place
                )
    return None


def _compared(runs: list[CellRun], made_of: list[str]) -> Cause | None:
    """A comparison among what it was made from: ``(pred > 0).float()``."""
    for run in reversed(runs):
        for name in made_of:
            for statement in source.assignments(run.source, name)[-1:]:
                value = _value(statement)
                tests = {id(n.test) for n in ast.walk(value) if isinstance(n, ast.IfExp)}
                found = (n for n in ast.walk(value) if isinstance(n, ast.Compare) and id(n) not in tests)
                if any(isinstance(n.ops[0], (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for n in found):
                    place = _place(run, statement.lineno)
                    text = f"{short(ast.unparse(statement))} ({where(place)}) leaves the graph: it compares."
                    sentence = f"Compute the loss from numbers instead of a comparison ({where(place)})."
                    return Cause(text, Fix("differentiable_op", sentence, False, _at(place)), place)
    return None


def _unknown(runs: list[CellRun], name: str, made_of: list[str]) -> Cause:
    """No line is to blame: nothing requires grad, unless something that does is in sight."""
    if regaining.trains(runs, made_of):
        fix = Fix("unfreeze", f"Look for what `{name}` is made from: some of it must require grad.", False)
        return Cause(f"`{name}` was made without a graph. Which line cut it is unknown.", fix, None)
    fix = Fix("unfreeze", "Make a parameter or an input with `requires_grad=True`.", False)
    return Cause(f"Nothing that `{name}` was made from requires grad.", fix, None)


def _place(run: CellRun, line: int) -> Place:
    return Place(run.cell, line, source.line_text(run.source, line), run.cell, line, run=run.run, cell_id=run.cell_id)


def _at(place: Place) -> tuple[int, int] | None:
    return (place.cell, place.line) if place.cell is not None and place.line is not None else None


_ERRORS = (
    (
        "Only Tensors of floating point",
        "A gradient needs real numbers: an integer tensor cannot require grad.",
        Fix("float_dtype", "Write `1.` instead of `1`, or pass `dtype=torch.float32`.", True),
    ),
    (
        "Inference tensors cannot be saved for backward",
        "A tensor made under `torch.inference_mode()` can never take part in a graph.",
        Fix("no_grad_or_item", "Use `torch.no_grad()` instead, or `.clone()` the tensor outside.", True),
    ),
)


def of_cells(record: Record) -> Iterator[Finding]:
    """Errors raised before any backward call that mean the same: this tensor cannot have a graph."""
    for run in record.runs.values():
        for words, text, fix in _ERRORS:
            if words in (run.error or ""):
                yield Finding(
                    "no_grad",
                    "error",
                    text,
                    f"{run.error_type} in In[{run.cell}].",
                    made_at=run.error_place,
                    fixes=(fix,),
                )
