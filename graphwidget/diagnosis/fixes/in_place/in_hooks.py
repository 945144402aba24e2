"""A forward hook that modifies what a module returns, or is given: it returns a new tensor, which is used in its place.

``output.mul_(keep)`` becomes ``return output * keep``. Without the ``return``, a new tensor would be lost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.remedies import Remedy, scoped, written_as
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace_statements
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Record, Write

__all__ = ["in_hook"]

_AFTER = ("register_forward_hook", "register_module_forward_hook")
_BEFORE = ("register_forward_pre_hook", "register_module_forward_pre_hook")
_WITHOUT_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled")


@dataclass(frozen=True)
class _Hook:
    """A function that is registered as a forward hook, and the parameter that it can return anew."""

    function: ast.FunctionDef
    parameter: str
    before: bool
    with_kwargs: bool


def in_hook(record: Record, write: Write, written: tuple[str, ...]) -> Remedy | None:
    """Return a new tensor from the hook that writes; None: the writing function is no hook, or returns something."""
    cells, spot = Cells.of(record), at(write.place)
    found = source.function_at(cells.text(spot[0]), spot[1]) if spot is not None else None
    if spot is None or found is None or len(written) != 1:
        return None
    owner, function = found
    hook = _hook(tuple(cells.texts.values()), owner, function)
    returns = [one for one in source.own_statements(function.body) if isinstance(one, ast.Return)]
    if hook is None or any(one.value is not None for one in returns):
        return None
    text, by = cells.text(spot[0]), f"{short(write.by)} ({where(write.place)})"
    what = _is_written(text, hook, write, written[0], spot[1])
    names = (scoped(text, spot[1], written[0]), scoped(text, spot[1], hook.parameter))
    edits: Edits = ()
    sentence = f"Return a new tensor from `{function.name}` instead of {by}, which modifies what it is given."
    if what is not None and not _is_without_graph(function) and not (hook.before and hook.with_kwargs):
        if not any(one.lineno >= spot[1] for one in returns):
            new, edits = _returned(record, write, hook, what)
            gets = "the module is given" if hook.before else "the callers of the module get"
            sentence = f"{new} What the hook `{function.name}` returns is what {gets}."
    return Remedy("out_of_place", sentence, spot, edits, write, names)


def _returned(record: Record, write: Write, hook: _Hook, inside: str) -> tuple[str, Edits]:
    """The sentence and the edits. `inside`: where in the parameter the tensor is that the hook modifies."""
    cells, name, body = Cells.of(record), hook.parameter, hook.function.body
    cell, line = write.place.cell or 0, write.place.line or 0
    text = cells.text(cell)
    new = inplace_statements.out_of_place(write.by)
    alone = sum(1 for one in source.own_statements(body) if _writes(one)) == 1 and body[-1].lineno == line
    if new.startswith(f"{name} = ") and not inside and not hook.before and alone:
        value = new.removeprefix(f"{name} = ")
        by = f"{short(write.by)} ({where(write.place)})"
        return f"Write {short(f'return {value}')} instead of {by}.", written_as(record, write, f"return {value}")
    copy = f"{name} = {_copy(name, inside)}"
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    first = body[1] if documented else body[0]
    edits = (
        *text_edit.insert_before(cell, text, first, [copy]),
        *_at_the_end(cell, text, body[-1], f"return {name}"),
    )
    return f"Modify a copy, and return it: `{copy}` before In[{cell}], line {first.lineno}, and `return {name}`.", edits


def _at_the_end(cell: int, text: str, last: ast.stmt, new: str) -> Edits:
    """A statement behind the last one of a function, which may be a block."""
    if hasattr(last, "body"):
        return text_edit.insert_behind_block(cell, text, last, [new])
    return text_edit.insert_after(cell, text, last, [new])


def _copy(name: str, inside: str) -> str:
    if not inside:
        return f"{name}.clone()"
    key = inside[1:-1]
    if not key.isdigit():
        return f"{{**{name}, {key}: {name}{inside}.clone()}}"
    front = f"*{name}[:{key}], " if int(key) else ""
    return f"({front}{name}{inside}.clone(), *{name}[{int(key) + 1}:])"


def _writes(statement: ast.stmt) -> bool:
    return not source.blocks_of(statement) and bool(inplace_statements.written(statement))


def _is_written(text: str, hook: _Hook, write: Write, written: str, line: int) -> str | None:
    """Where in the parameter the tensor is that a line modifies: empty: the parameter is one; None: not known."""
    paths = {*map(local, (*write.paths, *write.others)), written}
    inside = {path[len(hook.parameter) :] for path in paths if path.startswith(f"{hook.parameter}[")}
    inside = {one for one in inside if one.count("[") == 1}
    if hook.parameter in paths and not hook.before:
        return ""
    if len(inside) == 1:
        return inside.pop()
    made = [one for one in source.bindings(text, written, line) if isinstance(one, ast.Assign)]
    if not made or made[-1].lineno <= hook.function.lineno or len(made[-1].targets) != 1:
        return None
    value, target = made[-1].value, made[-1].targets[0]
    if isinstance(target, (ast.Tuple, ast.List)) and ast.unparse(value) == hook.parameter:
        at_ = [number for number, one in enumerate(target.elts) if ast.unparse(one) == written]
        starred = any(isinstance(one, ast.Starred) for one in target.elts[: at_[0] + 1]) if at_ else True
        return None if starred else f"[{at_[0]}]"
    while isinstance(value, (ast.Subscript, ast.Attribute, ast.Call)):
        whole = value.value if not isinstance(value, ast.Call) else value.func
        fixed = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
        if fixed and ast.unparse(whole) == hook.parameter and hook.before:
            return ast.unparse(value)[len(hook.parameter) :]
        value = whole
    # A part of what a module returns: of a tensor, or of a tuple of them.
    is_view = not hook.before and isinstance(value, ast.Name) and value.id == hook.parameter
    return "" if is_view and any(path == written for path in paths) and not _takes_an_element(made[-1].value) else None


def _takes_an_element(value: ast.expr) -> bool:
    """Whether a value may be an element of a tuple: ``output[0]``, and not ``output[:, 0]``."""
    return any(isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) for one in ast.walk(value))


def _is_without_graph(function: ast.FunctionDef) -> bool:
    """Whether a function computes without a graph: what it made anew would have none, and cut the module off."""
    return any(one in ast.unparse(decorator) for decorator in function.decorator_list for one in _WITHOUT_GRAPH)


def _hook(texts: tuple[str, ...], owner: ast.ClassDef | None, function: ast.FunctionDef) -> _Hook | None:
    """How a function is registered as a forward hook; None: it is not, or it is called in another way, too."""
    ways = set[tuple[str, bool, bool]]()
    for order, register, keywords in _registered(texts, owner, function):
        before = register in _BEFORE
        kwargs = any(one.arg == "with_kwargs" and ast.unparse(one.value) != "False" for one in keywords)
        position = 1 if before else 3 if kwargs else 2
        if position >= len(order) or not order[position]:
            return None
        ways.add((order[position], before, kwargs))
    if len(ways) != 1 or _is_called(texts, function):
        return None
    parameter, before, kwargs = ways.pop()
    return _Hook(function, parameter, before, kwargs)


def _registered(
    texts: tuple[str, ...], owner: ast.ClassDef | None, function: ast.FunctionDef
) -> Iterator[tuple[list[str], str, list[ast.keyword]]]:
    """The calls that register a function: its parameters in the order of a hook's, what is called, and how."""
    for one in function.decorator_list:
        if _name(one) in (*_AFTER, *_BEFORE):
            yield _parameters(owner, function), _name(one), []
    for text in texts:
        for register in (*_AFTER, *_BEFORE):
            for call in source.calls_by_name(text).get(register, ()):
                for given in (*call.args[:1], *(one.value for one in call.keywords if one.arg == "hook")):
                    for order in _orders(texts, text, given, owner, function):
                        yield order, register, call.keywords


def _parameters(owner: ast.ClassDef | None, function: ast.FunctionDef) -> list[str]:
    """The parameters of a function as one calls it: a method without `self`."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[owner is not None and "staticmethod" not in map(ast.unparse, function.decorator_list) :]


def _orders(
    texts: tuple[str, ...], text: str, given: ast.expr, owner: ast.ClassDef | None, function: ast.FunctionDef
) -> Iterator[list[str]]:
    """The parameters of a function in the order in which an expression hands on its own, if it is, or calls, this one.

    Empty texts: it hands on no such argument.
    """
    name, own = _name(given), _parameters(owner, function)
    if isinstance(given, ast.Call) and name == "partial" and given.args:
        for order in _orders(texts, text, given.args[0], owner, function):
            yield order[len(given.args) - 1 :]
    elif isinstance(given, ast.Call):
        for made in (one for other in texts for one in source.defined(other, name)):
            if made is owner and function.name == "__call__":
                yield own
            elif isinstance(made, ast.FunctionDef) and any(one is function for one in ast.walk(made)):
                for one in source.own_statements(made.body):  # it makes the hook and returns it
                    if isinstance(one, ast.Return) and one.value is not None:
                        yield from _orders(texts, text, one.value, owner, function)
    elif isinstance(given, ast.Lambda):
        call = given.body
        if isinstance(call, ast.Call) and _name(call.func) == function.name:
            handed = dict(zip(map(_name, call.args), own))
            handed |= {_name(one.value): one.arg for one in call.keywords if one.arg is not None}
            yield [handed.get(one.arg, "") for one in given.args.args]
    elif name == function.name:
        yield own
    elif isinstance(given, ast.Name):
        bound = source.bindings(text, name, given.lineno)[-1:]
        if bound and isinstance(bound[0], ast.Assign) and not isinstance(bound[0].value, ast.Name):
            yield from _orders(texts, text, bound[0].value, owner, function)


def _is_called(texts: tuple[str, ...], function: ast.FunctionDef) -> bool:
    """Whether a line calls a function by its name, other than a lambda that is registered: it may go on with it."""
    for text in texts:
        inside = {
            id(node)
            for call in source.nodes_of(text)
            if isinstance(call, ast.Call) and _name(call.func) in (*_AFTER, *_BEFORE)
            for node in ast.walk(call)
        }
        if any(id(call) not in inside for call in source.calls_by_name(text).get(function.name, ())):
            return True
    return False


def _name(node: ast.expr) -> str:
    """The last name of an expression, or of what it calls; empty: it has none."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
