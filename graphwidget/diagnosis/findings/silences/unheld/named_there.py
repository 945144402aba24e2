"""How the line that made an optimizer can name something that another part of the program keeps."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import spoken
from graphwidget.model import Record

__all__ = ["named_there"]


def named_there(record: Record, maker: Line, path: str) -> str:
    """The name of a path of the program at a line, if something there is known to be it; else empty."""
    name = spoken(path)
    inside = syntax.function_at(maker.run.source, maker.statement.lineno)
    if inside is None:
        return name if _is_bound(record, root_of(name), maker) else ""
    cls, function = inside
    if cls is not None and function.name != "__init__":
        return _of_the_object(record, maker, cls, function, name)
    called = cls.name if cls is not None and function.name == "__init__" else function.name if cls is None else ""
    calls = [
        Line(run, statement)
        for run in Cells.of(record).latest
        for statement in syntax.nodes_of(run.source)
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)) and _call_of(statement, called)
    ]
    if not called or len(calls) != 1:
        return ""
    call = _call_of(calls[0].statement, called)
    outside = syntax.function_at(calls[0].run.source, calls[0].statement.lineno) is None
    if call is None or not outside:
        return ""
    for parameter, given in _given(call, function, is_method=cls is not None).items():
        if name == given or name.startswith(f"{given}."):
            return _kept_as(function, maker, parameter) + name[len(given) :]
    made = next(iter(syntax.targets(calls[0].statement)), "")
    if cls is not None and made and name.startswith(f"{made}."):
        own = f"self.{name[len(made) + 1 :]}"
        first = own.split(".")[1]
        return own if any(f"self.{first}" in syntax.targets(one) for one in _before(function, maker)) else ""
    local = syntax.bound(function) | {one.arg for one in function.args.args}
    return name if root_of(name) not in local and _is_bound(record, root_of(name), calls[0]) else ""


def _of_the_object(record: Record, maker: Line, cls: ast.ClassDef, method: ast.FunctionDef, name: str) -> str:
    """How a method that the constructor calls can name what that was given, and has kept in the object before."""
    constructor = next((one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if constructor is None:
        return ""
    calling = [s for s in syntax.own_statements(constructor.body) if _call_of(s, f"self.{method.name}") is not None]
    made = [call for run in Cells.of(record).latest for call in _made_in(run.source, _constructed_by(record, cls))]
    if len(calling) != 1 or len(made) != 1:
        return ""
    for parameter, given in _given(made[0], constructor, is_method=True).items():
        if name == given or name.startswith(f"{given}."):
            before = _before(constructor, Line(maker.run, calling[0]))
            pairs = (pair for one in before for pair in _pairs(one))
            kept = next((own for own, value in pairs if value == parameter and own.startswith("self.")), "")
            return kept + name[len(given) :] if kept else ""
    return ""


def _constructed_by(record: Record, cls: ast.ClassDef) -> set[str]:
    """The name of a class, and those of the classes below it that have no constructor of their own."""
    every = [
        one for run in Cells.of(record).latest for one in syntax.nodes_of(run.source) if isinstance(one, ast.ClassDef)
    ]
    found = {cls.name}
    for _ in every:
        found |= {one.name for one in every if found.intersection(map(_last, one.bases)) and not _constructs(one)}
    return found


def _constructs(cls: ast.ClassDef) -> bool:
    return any(isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in cls.body)


def _last(node: ast.expr) -> str:
    return syntax.last_name(ast.unparse(node))


def _made_in(text: str, classes: set[str]) -> list[ast.Call]:
    """The calls outside of functions that make an object of one of these classes."""
    calls = [one for one in syntax.nodes_of(text) if isinstance(one, ast.Call) and _last(one.func) in classes]
    return [one for one in calls if syntax.function_at(text, one.lineno) is None]


def _is_bound(record: Record, root: str, line: Line) -> bool:
    """Whether a variable of the program is set before a line, in its text or in an earlier one."""
    cells = [run for run in Cells.of(record).latest if run.run <= line.run.run]
    return any(
        syntax.function_at(run.source, one.lineno) is None
        and (run is not line.run or one.lineno < line.statement.lineno)
        for run in cells
        for one in syntax.assignments(run.source, root)
    )


def _call_of(statement: ast.stmt, name: str) -> ast.Call | None:
    """The one call of a function or class of that name in a statement."""
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call) and ast.unparse(one.func) == name]
    return calls[0] if len(calls) == 1 else None


def _given(call: ast.Call, function: ast.FunctionDef, *, is_method: bool) -> dict[str, str]:
    """The parameters of a function, each with what a call gives it, as it is written there."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return {}
    own = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][is_method:]
    found = dict(zip(own, map(ast.unparse, call.args)))
    return found | {one.arg: ast.unparse(one.value) for one in call.keywords if one.arg}


def _before(function: ast.FunctionDef, maker: Line) -> list[ast.stmt]:
    return [one for one in function.body if (one.end_lineno or one.lineno) < maker.statement.lineno]


def _kept_as(function: ast.FunctionDef, maker: Line, parameter: str) -> str:
    """``self.criterion`` where the function has kept its parameter so before; else the parameter."""
    for one in _before(function, maker):
        if isinstance(one, ast.Assign) and ast.unparse(one.value) == parameter:
            kept = next((name for name in syntax.targets(one) if name.startswith("self.")), "")
            if kept:
                return kept
    return parameter


def _pairs(statement: ast.stmt) -> list[tuple[str, str]]:
    """The targets of an assignment, each with its value: of ``self.a, self.b = a, b``, too."""
    if not isinstance(statement, ast.Assign):
        return []
    value = statement.value
    found = []
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            found += [(ast.unparse(a), ast.unparse(b)) for a, b in zip(target.elts, value.elts)]
        else:
            found.append((ast.unparse(target), ast.unparse(value)))
    return found
