"""What a hook returns, where that is refused: a hook that only looks at a gradient returns nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.makers import CallText
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import at, place_of, where
from graphwidget.model import CellRun, Fix, Place, Record

__all__ = ["Hook", "hook_of", "like_the_argument", "return_nothing", "without_return"]

_PURE = ("torch", "F", "float", "int", "len", "list", "tuple")
_NOTHING = ("append", "extend", "insert", "update", "print", "add", "write", "writelines")  # what these return is None
_REDUCING, _RESHAPING = ("mean", "sum"), ("squeeze", "unsqueeze", "flatten", "ravel", "view", "reshape")


class Hook(NamedTuple):
    """The code of a hook, in the cell that has it."""

    run: CellRun
    made: ast.FunctionDef | ast.Lambda

    @property
    def arguments(self) -> list[str]:
        """The names that it gives what it is called with."""
        given = [one.arg for one in (*self.made.args.posonlyargs, *self.made.args.args)]
        return given[1:] if given[:1] == ["self"] else given

    @property
    def body(self) -> list[ast.stmt]:
        """Its own statements, also those in blocks; a lambda has none."""
        return list(syntax.own_statements(self.made.body)) if isinstance(self.made, ast.FunctionDef) else []

    @property
    def returns(self) -> list[ast.Return]:
        """The statements that return something."""
        found = [one for one in self.body if isinstance(one, ast.Return) and one.value is not None]
        return [one for one in found if not (isinstance(one.value, ast.Constant) and one.value.value is None)]

    @property
    def values(self) -> list[ast.expr]:
        """What it may return."""
        if isinstance(self.made, ast.Lambda):
            return [self.made.body]
        return [one.value for one in self.returns if one.value is not None]

    @property
    def place(self) -> Place:
        """The line of what it returns, if there is only one."""
        return place_of(self.run, self.values[0].lineno if len(self.values) == 1 else self.made.lineno)


def hook_of(record: Record, registered: CallText | None, name: str | None) -> Hook | None:
    """The code of a hook, by the call that registers it, or by its name; None: it is not there, or not the only one.

    A function that makes hooks (``register_hook(watch("h"))``) has it inside; a class has it as ``__call__``.
    """
    given = registered.call.args[0] if registered is not None and registered.call.args else None
    if registered is not None and isinstance(given, ast.Lambda):
        return Hook(registered.run, given)
    called = given.func if isinstance(given, ast.Call) else given
    if isinstance(given, ast.Call) and syntax.last_name(ast.unparse(given.func)) == "partial" and given.args:
        called = given.args[0]
    last = syntax.last_name(ast.unparse(called)) if isinstance(called, (ast.Name, ast.Attribute)) else name
    found = [Hook(run, one) for run in Cells.of(record).latest for one in _named(run, last or "")]
    return found[0] if len(found) == 1 else None


def _named(run: CellRun, name: str) -> Iterator[ast.FunctionDef]:
    """The functions of a cell that are called by a name, or are made or held by what has that name."""
    for one in syntax.defined(run.source, name):
        if isinstance(one, ast.ClassDef):
            yield from (each for each in one.body if isinstance(each, ast.FunctionDef) and each.name == "__call__")
            continue
        inner = {each.name: each for each in one.body if isinstance(each, ast.FunctionDef)}
        returned = [each.value for each in one.body if isinstance(each, ast.Return)]
        made = [inner[each.id] for each in returned if isinstance(each, ast.Name) and each.id in inner]
        yield from made or [one]


# ------------------------------------------------------------------ a hook that looks


def return_nothing(hook: Hook) -> Fix | None:
    """Drop what a hook returns, where it does something besides; None: then it would do nothing at all.

    What is returned may be meant as the new gradient. It surely is not where the hook has kept or shown just that, or
    where it is not made of the gradient. Else it is a choice.
    """
    kept = list(_kept(hook))
    itself = any(not _is_pure(one, hook) for one in hook.values)
    if not hook.values or not (kept or itself):
        return None
    looks = all(_only_looked_at(value, hook, kept) for value in hook.values)
    writes = any(_writes_to_argument(one, hook) for one in hook.body)
    place, choice = hook.place, writes or not looks
    begin = "If it is to look at the gradient only, return nothing" if choice else "Return nothing"
    words = f"{begin} ({where(place)}): then the gradient stays as it is."
    return Fix("return_nothing", words, False, at(place), choice=choice, edits=without_return(hook))


def without_return(hook: Hook) -> Edits:
    """The same hook, which returns None. What a returned expression does besides is still done."""
    cell, text, made = hook.run.cell, hook.run.source, hook.made
    if isinstance(made, ast.Lambda):
        return text_edit.replace_node(cell, text, made.body, _nothing(made.body, hook))
    edits: Edits = ()
    for one in hook.returns:
        last = one is made.body[-1]
        kept = "" if one.value is None or _is_pure(one.value, hook) else ast.unparse(one.value)
        if last and not kept and len(made.body) > 1:
            edits += text_edit.remove(cell, text, one)
            continue
        own_line = text_edit.with_ends(text)[one.lineno - 1].lstrip().startswith("return")
        parts = [part for part in (kept, "" if last and kept else "return") if part]
        edits += text_edit.replace_node(cell, text, one, ("\n" if own_line else "; ").join(parts))
    return edits


def _nothing(body: ast.expr, hook: Hook) -> str:
    """What a lambda's expression does, as one that is None: ``log.append(g)`` for ``log.append(g) or g.norm()``."""
    if _is_pure(body, hook):
        return "None"
    first = body.values[0] if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.Or) else body
    rest = body.values[1:] if isinstance(body, ast.BoolOp) and first is not body else []
    if isinstance(first, ast.Call) and syntax.last_name(ast.unparse(first.func)) in _NOTHING:
        if all(_is_pure(one, hook) for one in rest):
            return ast.unparse(first)
    return f"({ast.unparse(body)}, None)[1]"


def _kept(hook: Hook) -> Iterator[ast.expr]:
    """What a hook hands to something outside of it: arguments of calls, and values of attributes and elements."""
    for one in hook.body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and not _is_pure(one.value, hook):
            yield from (one.value.func, *one.value.args, *(keyword.value for keyword in one.value.keywords))
        elif isinstance(one, (ast.Assign, ast.AugAssign)):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            outside = [
                each for each in targets if isinstance(each, (ast.Attribute, ast.Subscript)) or _is_shared(each, hook)
            ]
            if outside and not _writes_to_argument(one, hook):
                yield from (*outside, one.value)


def _is_shared(target: ast.expr, hook: Hook) -> bool:
    """Whether a target is a name from outside: ``nonlocal last``."""
    shared = {name for one in hook.body if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    return isinstance(target, ast.Name) and target.id in shared


def _only_looked_at(value: ast.expr, hook: Hook, kept: list[ast.expr]) -> bool:
    """Whether a returned value is surely no new gradient: it is what was kept or shown, or not made of the gradient."""
    if not _is_pure(value, hook):
        return True
    shown = ast.unparse(value)
    if shown in hook.arguments:  # handed back as it came
        return not any(shown in syntax.targets(one) for one in hook.body)
    parts = {ast.unparse(part) for one in kept for part in ast.walk(one) if isinstance(part, ast.expr)}
    if shown in parts:
        return True
    read = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
    return not read & (set(hook.arguments) | _made_of_arguments(hook))


def _made_of_arguments(hook: Hook) -> set[str]:
    """The names that a hook gives values which are computed from its arguments."""
    found = set(hook.arguments)
    for one in hook.body:
        if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and found & syntax.names_read(one):
            found |= {root_of(target) for target in syntax.targets(one) if target.isidentifier()}
    return found


def _is_pure(value: ast.expr, hook: Hook) -> bool:
    """Whether an expression does nothing but compute: its calls are of torch's, or of methods of the arguments."""
    for one in ast.walk(value):
        if isinstance(one, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if isinstance(one, ast.Call):
            method = one.func.attr if isinstance(one.func, ast.Attribute) else ""
            if method.endswith("_") or _first_name(one.func) not in (*_PURE, *_made_of_arguments(hook)):
                return False
    return True


def _first_name(value: ast.expr) -> str:
    """The name that an expression begins with: ``g`` of ``g.abs().max()``, also of ``(g * 2).max()``."""
    while True:
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        elif isinstance(value, ast.Call):
            value = value.func
        elif isinstance(value, ast.BinOp):
            value = value.left
        else:
            return value.id if isinstance(value, ast.Name) else ""


def _writes_to_argument(statement: ast.stmt, hook: Hook) -> bool:
    """Whether a statement modifies the gradient itself: ``grad.mul_(2)``, ``grad[0] = 0``."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Attribute) and called.attr.endswith("_") and _first_name(called) in hook.arguments
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        written = [one for one in targets if isinstance(one, ast.Subscript) or isinstance(statement, ast.AugAssign)]
        return any(_first_name(one) in hook.arguments for one in written)
    return False


# ------------------------------------------------------------------ a hook that returns a new gradient


def like_the_argument(hook: Hook, message: str, *, of_module: bool) -> Edits:
    """The returned value in the form of the gradient that it replaces, where the text shows how to bring it there."""
    if len(hook.values) != 1 or not hook.arguments:
        return ()
    cell, text, value = hook.run.cell, hook.run.source, hook.values[0]
    gradient = hook.arguments[0]
    if of_module:
        return _of_the_input(hook, value)
    if isinstance(value, ast.Tuple) and len(value.elts) == 1:
        return text_edit.replace_node(cell, text, value, ast.unparse(value.elts[0]))
    shown = ast.unparse(value)
    plain = isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    if "changed the type" in message:
        return text_edit.replace_node(cell, text, value, f"{shown if plain else f'({shown})'}.to({gradient})")
    method = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    if not isinstance(value, ast.Call) or "changed the size" not in message:
        return ()
    if method in _RESHAPING:
        return text_edit.insert_behind(cell, text, value, f".reshape_as({gradient})")
    if method in _REDUCING:
        keeps = any(one.arg == "keepdim" for one in value.keywords)
        whole = not value.args and not value.keywords
        new = shown if keeps or whole else f"{shown[:-1]}, keepdim=True)"
        return text_edit.replace_node(cell, text, value, f"{new}.expand_as({gradient})")
    return ()


def _of_the_input(hook: Hook, value: ast.expr) -> Edits:
    """``grad_input`` in place of ``grad_output`` in what a hook of a module returns."""
    if len(hook.arguments) != 3:
        return ()
    _, wanted, given = hook.arguments
    names = [one for one in ast.walk(value) if isinstance(one, ast.Name)]
    if any(one.id == wanted for one in names) or len(hook.body) > 1:
        return ()
    cell, text = hook.run.cell, hook.run.source
    return tuple(edit for one in names if one.id == given for edit in text_edit.replace_node(cell, text, one, wanted))
