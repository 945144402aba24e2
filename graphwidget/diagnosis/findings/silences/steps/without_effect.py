"""Lines that compute something for a parameter or its gradient and let it go: ``p = p - lr * p.grad`` in a loop over
parameters, ``p.grad.clamp(-1, 1)``, ``p.data.clamp(-c, c)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import is_assignable
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["find"]

# Operations that return a new tensor, each with a twin that ends in "_" and writes.
_MAKING = (
    *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "addcmul", "addcdiv", "lerp", "copy"),
    *("clamp", "clip", "clamp_min", "clamp_max", "renorm", "nan_to_num", "masked_fill", "neg", "sign", "round"),
)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line of the program that computes a step, and changes nothing."""
    for run in Cells.of(record).latest if record.calls else ():
        if run.error is None and re.search(r"\.grad\b|parameters\(", run.source) and run.cell is not None:
            yield from _of_cell(run)


def _of_cell(run: CellRun) -> Iterator[Finding]:
    tree = syntax.parse(run.source)
    last = tree.body[-1] if tree is not None and tree.body else None
    for statement in syntax.nodes_of(run.source):
        if isinstance(statement, ast.Expr) and statement is not last and _is_dropped(run.source, statement):
            yield _found(run, statement, "computes a new tensor, and nothing takes it")
        elif isinstance(statement, ast.Assign) and _is_rebound(run.source, statement):
            name = ast.unparse(statement.targets[0])
            why = f"gives the name `{name}` to a new tensor; the parameter that it named stays as it is"
            yield _found(run, statement, why)


def _is_dropped(text: str, statement: ast.Expr) -> bool:
    """Whether a line computes ``w - lr * w.grad`` or ``w.grad.clamp(-1, 1)``, and nothing more."""
    value = statement.value
    if not _makes_anew(value):
        return False
    first = value.left if isinstance(value, ast.BinOp) else _changed_by(value)
    owner = ast.unparse(first).removesuffix(".data") if first is not None else ""
    if isinstance(value, ast.Call) and (owner.endswith(".grad") or _is_of_parameters(text, statement, owner)):
        return True
    around = _function(text, statement)
    return f"{owner}.grad" in _grads(around) and _reads_gradient(value, _gradients(around))


def _is_of_parameters(text: str, statement: ast.stmt, name: str) -> bool:
    """Whether a loop around a line gives a name to each of the parameters of a module."""
    giving = (one for one in syntax.loops_around(text, statement.lineno)[::-1] if isinstance(one, ast.For))
    loop = next((one for one in giving if name in syntax.bound(one.target)), None)
    if loop is None or not isinstance(loop.iter, ast.Call) or not isinstance(loop.iter.func, ast.Attribute):
        return False
    if any(name in syntax.targets(one) for one in syntax.own_statements(loop.body)):
        return False
    pair = isinstance(loop.target, ast.Tuple)
    last = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    return ast.unparse(last) == name and loop.iter.func.attr == ("named_parameters" if pair else "parameters")


def _is_rebound(text: str, statement: ast.Assign) -> bool:
    """Whether a line gives a loop's or a function's own name of a tensor to a step from it, which nothing reads."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or not _makes_anew(statement.value):
        return False
    gradients = _gradients(_function(text, statement)) - {target.id}
    if target.id not in _read(statement) or not _reads_gradient(statement.value, gradients):
        return False
    around, named_here = syntax.statements_at(text, statement.lineno)[::-1], False
    for at_, one in enumerate(around):
        inner = around[at_ - 1] if at_ else statement
        if any(target.id in _read(after) for after in syntax.behind(text, inner)):
            return False
        if isinstance(one, ast.For) and target.id in syntax.bound(one.target):
            return not any(target.id in _read(after) for after in syntax.behind(text, one))
        if isinstance(one, ast.FunctionDef):
            return named_here or target.id in _arguments(one)
        if isinstance(one, ast.ClassDef):
            return False
        if isinstance(one, syntax.LOOPS):
            before = one.body[: one.body.index(inner)] if inner in one.body else one.body
            first = next((each for each in before if target.id in syntax.names_in(each)), None)
            if first is not None or not named_here:
                named_here = not named_here and _gives_another_name(first, target.id)
                if not named_here:
                    return False  # the next pass may read it
    return False


def _gives_another_name(statement: ast.stmt | None, name: str) -> bool:
    """Whether a statement gives a name to a tensor that has one: ``w = p.data``."""
    if not isinstance(statement, ast.Assign) or name not in map(ast.unparse, statement.targets):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".detach"):
        value = value.func
    return is_assignable(ast.unparse(value)) and name not in syntax.names_in(value)


def _makes_anew(value: ast.expr) -> bool:
    """Whether a value is a new tensor of arithmetic, and computing it changes nothing."""
    calls = [ast.unparse(one.func) for one in ast.walk(value) if isinstance(one, ast.Call)]
    if any(name.endswith("_") for name in calls):
        return False
    if isinstance(value, ast.Call):
        out = any(one.arg == "out" for one in value.keywords)
        return not out and syntax.last_name(calls[0]).removeprefix("_foreach_") in _MAKING
    return isinstance(value, ast.BinOp) and isinstance(value.op, _OPERATORS)


def _changed_by(value: ast.expr) -> ast.expr | None:
    """What ``w.sub(…)`` and ``torch.sub(w, …)`` begin with."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if ast.unparse(value.func.value) == "torch":
        return value.args[0] if value.args else None
    return value.func.value


# ------------------------------------------------------------------ what is computed from gradients


def _function(text: str, statement: ast.stmt) -> ast.AST | None:
    """The function around a statement; the text, if there is none."""
    inside = syntax.function_at(text, statement.lineno)
    return inside[1] if inside is not None else syntax.parse(text)


def _arguments(function: ast.FunctionDef) -> set[str]:
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _grads(tree: ast.AST | None) -> set[str]:
    """The gradients that a text reads: ``p.grad``, also for ``p.grad.data``."""
    nodes = ast.walk(tree) if tree is not None else ()
    return {ast.unparse(one) for one in nodes if isinstance(one, ast.Attribute) and one.attr == "grad"}


def _gradients(tree: ast.AST | None) -> set[str]:
    """The names that a text gives to gradients, and to what it computes from them."""
    pairs = [pair for one in (ast.walk(tree) if tree is not None else ()) for pair in _given_names(one)]
    found = set[str]()
    while True:
        new = {name for name, value in pairs if name not in found and _reads_gradient(value, found)}
        if not new:
            return found
        found |= new


def _given_names(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names and dotted names whose values a node of a text gives or changes, each with what it goes by."""
    if isinstance(node, ast.Assign):
        for name in syntax.bound(node):
            yield name, syntax.given_to(node, name)[0]
        for each in node.targets:
            if isinstance(each, ast.Subscript):
                yield ast.unparse(each.value), node.value
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_"):
        yield _written_to(node), node  # `average.mul_(0.9).add_(grad)`
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.For):
        parts = node.target.elts if isinstance(node.target, ast.Tuple) else []
        zipped = node.iter if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "zip" else None
        if zipped is not None and len(zipped.args) == len(parts):
            for part, each in zip(parts, zipped.args, strict=True):
                yield from ((name, each) for name in syntax.bound(part))
        else:
            yield from ((name, node.iter) for name in syntax.bound(node.target))


def _written_to(call: ast.Call) -> str:
    """``average`` of ``average.mul_(0.9).add_(grad)``, ``state`` of ``state["average"].add_(grad)``."""
    node: ast.expr = call
    while isinstance(node, (ast.Call, ast.Subscript)):
        whole, node = node, node.func if isinstance(node, ast.Call) else node.value
        if isinstance(whole, ast.Call) and isinstance(node, ast.Attribute):
            node = node.value
    return ast.unparse(node)


def _reads_gradient(value: ast.AST, gradients: set[str]) -> bool:
    """Whether a value is computed from a `.grad`, from what `autograd.grad` returned, or from a name for one."""
    for one in ast.walk(value):
        if isinstance(one, ast.Attribute) and (one.attr == "grad" or ast.unparse(one) in gradients):
            return True
        if isinstance(one, ast.Name) and (one.id in gradients or one.id == "grad"):
            return True
    return False


def _read(statement: ast.stmt) -> set[str]:
    """Names that a statement reads, apart from the `.grad` of one: ``p.grad = None`` and ``p.grad.zero_()``."""
    of_grads = {
        id(n.value)
        for n in ast.walk(statement)
        if isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.value, ast.Name)
    }
    nodes = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return {n.id for n in nodes if id(n) not in of_grads}


# ------------------------------------------------------------------ what is said


def _writing(run: CellRun, statement: ast.Expr | ast.Assign) -> tuple[Edits, str]:
    """The edits that let the line write to the parameter, and the line as it is then."""
    value = statement.value
    off = grad_modes.around(run.source, statement)
    no_graph = off is not None and off.off is True
    first = value.left if isinstance(value, ast.BinOp) else _changed_by(value)
    left = ast.unparse(first) if first is not None else ""
    whose = left.removesuffix(".data")
    own = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else whose
    plain = (no_graph or own.endswith(".grad")) and not left.endswith(".data")
    target = own if plain else f"{own}.data"
    new = ""
    if whose == own and is_assignable(own) and isinstance(value, ast.BinOp):
        new = f"{target} {_SIGNS[type(value.op)]}= {ast.unparse(value.right)}"
    elif whose == own and is_assignable(own) and isinstance(value, ast.Call):
        called = ast.unparse(value.func)
        args = value.args[1:] if called.startswith("torch.") else value.args
        if not syntax.last_name(called).startswith("_foreach_"):
            twin = ast.Name(f"{target}.{syntax.last_name(called)}_")
            new = ast.unparse(ast.Call(twin, args, value.keywords))
    elif isinstance(statement, ast.Assign):
        new = f"{own if no_graph else f'{own}.data'}.copy_({ast.unparse(value)})"
    return (text_edit.replace_node(run.cell, run.source, statement, new), new) if new else ((), "")


def _found(run: CellRun, statement: ast.Expr | ast.Assign, why: str) -> Finding:
    place, shown = place_of(run, statement.lineno), short(ast.unparse(statement))
    edits, new = _writing(run, statement)
    inside = syntax.function_at(run.source, statement.lineno)
    changed = _changed_by(statement.value) if isinstance(statement, ast.Expr) else None
    owner = ast.unparse(changed).removesuffix(".data") if changed is not None else ""
    what = "gradient" if owner.endswith(".grad") else "parameter"
    cls = inside[0].name if inside is not None and inside[0] is not None else ""
    step = f"`{cls}.{inside[1].name}`" if cls and inside is not None else ""
    whose = {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "grad"}
    named = [one.removesuffix(".grad") for one in sorted(whose)] or [*filter(None, (owner, *syntax.targets(statement)))]
    return Finding(
        "silent",
        "warning",
        f"{shown} ({where(place)}{f', in {step}' if step else ''}) {why}. So this line changes no {what}.",
        f"{shown} changes no {what}.",
        made_at=place,
        cause=place,
        names=(*named, *((cls,) if cls else ())),
        fixes=(
            Fix(
                "write_in_place",
                f"Write to the {what} itself{f': {short(new)}' if new else ''}.",
                False,
                at(place),
                edits=edits,
            ),
        ),
    )
