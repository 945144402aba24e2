"""Leaves of modules in a list, tuple or dict of Python's, which no module registers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.unheld.leaves import (
    Line,
    classes_in,
    finding_of,
    named,
    parts_of,
    torch_nn,
)
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = ["container", "in_container"]

_LISTS = (ast.List, ast.ListComp, ast.Tuple)
_DICTS = (ast.Dict, ast.DictComp)


def container(record: Record, leaf: UnheldLeaf) -> Line | None:
    """The one statement that puts a leaf into a list, tuple or dict of a module: ``self.layers = [...]``."""
    parts = parts_of(leaf.path)
    for name, index in zip(parts, parts[1:]):
        if not index.startswith("["):
            continue
        found = [
            Line(run, one)
            for run in Cells.of(record).latest
            for cls in classes_in(run)
            for one in ast.walk(cls)
            if isinstance(one, (ast.Assign, ast.AnnAssign)) and f"self.{name}" in syntax.targets(one)
        ]
        plain = [line for line in found if isinstance(_kept(line), (*_LISTS, *_DICTS))]
        others = [line for line in found if line not in plain]
        if len(plain) == 1 and not any(_class(line) is _class(plain[0]) for line in others):
            return None if _is_handed_in(plain[0]) else plain[0]
    return _handed_over(record, parts) if parts[1:] and parts[1].startswith("[") else None


def _handed_over(record: Record, parts: list[str]) -> Line | None:
    """``self.nets = nets`` in the constructor of a module that is given a variable of the program, which is a list."""
    latest = Cells.of(record).latest
    made = [(run, one) for run in latest for one in syntax.assignments(run.source, parts[0])]
    if len(made) != 1 or not isinstance(syntax.given(made[0][1]), (*_LISTS, *_DICTS)):
        return None
    calls = [one for run in latest for one in syntax.nodes_of(run.source) if isinstance(one, ast.Call)]
    found = [
        Line(run, kept)
        for run in latest
        for cls in classes_in(run)
        for function in (cls.body if cls.bases else ())  # a class without bases is no module
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
        for call in calls
        if syntax.last_name(ast.unparse(call.func)) == cls.name
        and (argument := _argument(function, call, parts[0])) is not None
        for kept in function.body
        if isinstance(kept, ast.Assign) and ast.unparse(kept.value) == argument and _of_self(kept)
    ]
    return found[0] if len({(line.run.run, line.statement.lineno) for line in found}) == 1 else None


def _of_self(statement: ast.stmt) -> bool:
    return all(target.startswith("self.") for target in syntax.targets(statement))


def _argument(function: ast.FunctionDef, call: ast.Call, name: str) -> str | None:
    """The argument of a method as which a call hands it a variable."""
    keywords = [one.arg for one in call.keywords if ast.unparse(one.value) == name]
    places = [at for at, one in enumerate(call.args) if ast.unparse(one) == name]
    arguments = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][1:]
    return keywords[0] if keywords else arguments[places[0]] if places and places[0] < len(arguments) else None


def _class(line: Line) -> ast.ClassDef | None:
    inside = syntax.function_at(line.run.source, line.statement.lineno)
    return inside[0] if inside is not None else None


def _kept(line: Line) -> ast.AST:
    """What a statement gives to an attribute; of a variable of its function, what the one assignment gave to that."""
    value, inside = syntax.given(line.statement), syntax.function_at(line.run.source, line.statement.lineno)
    if not isinstance(value, ast.Name) or inside is None:
        return value
    body = list(syntax.own_statements(inside[1].body))
    made = [one for one in body if value.id in syntax.targets(one)]
    return syntax.given(made[0]) if len(made) == 1 and made[0].lineno < line.statement.lineno else value


def _used_behind(line: Line) -> bool:
    """Whether a function goes on with the variable that it has given to an attribute: it may fill the list then."""
    value, inside = syntax.given(line.statement), syntax.function_at(line.run.source, line.statement.lineno)
    if not isinstance(value, ast.Name) or inside is None:
        return False
    names_ = (node for node in ast.walk(inside[1]) if isinstance(node, ast.Name) and node.id == value.id)
    return any(node.lineno > line.statement.lineno for node in names_)


def _is_handed_in(line: Line) -> bool:
    """Whether a list holds only arguments of its function: ``self.teacher = [teacher]`` hides a module on purpose."""
    inside, value = syntax.function_at(line.run.source, line.statement.lineno), _kept(line)
    if inside is None or not isinstance(value, (ast.List, ast.Tuple)):
        return False
    arguments = {one.arg for one in (*inside[1].args.posonlyargs, *inside[1].args.args, *inside[1].args.kwonlyargs)}
    return bool(value.elts) and all(isinstance(one, ast.Name) and one.id in arguments for one in value.elts)


def in_container(record: Record, line: Line, leaves: list[UnheldLeaf]) -> Finding:
    shown = named(leaves)
    value, held = _kept(line), syntax.given(line.statement)
    of_parameters = all(parts_of(leaf.path)[-1].startswith("[") for leaf in leaves)
    kind = ("Parameter" if of_parameters else "Module") + ("Dict" if isinstance(value, _DICTS) else "List")
    what = "dict" if isinstance(value, _DICTS) else "tuple" if isinstance(value, ast.Tuple) else "list"
    new = f"{torch_nn(record)}.{kind}"
    deep = any(part.startswith("[") and after.startswith("[") for leaf in leaves for part, after in _pairs(leaf))
    inner = f"{torch_nn(record)}.{'ParameterList' if of_parameters else 'ModuleList'}" if deep else ""
    edits = text_edit.wrapped(line.run.cell, line.run.source, held, f"{new}(") if not _used_behind(line) else ()
    for each in _inside(value) if inner and edits else ():
        edits += text_edit.wrapped(line.run.cell, line.run.source, each, f"{inner}(")
    for run, put in _put_in(line) if inner and edits else ():
        edits += text_edit.wrapped(run.cell, run.source, put, f"{inner}(")
    return finding_of(
        shown,
        line.place,
        f"{line.shown} puts them into a {what} of Python's. A module registers only modules and parameters, so "
        "`parameters()` does not list these.",
        leaves,
        Fix(
            "register_modules",
            f"Put them into an `{new}`: then `parameters()` has them, and `.to(device)` and `state_dict()` too.",
            False,
            at(line.place),
            edits=edits,
        ),
    )


def _pairs(leaf: UnheldLeaf) -> Iterator[tuple[str, str]]:
    parts = parts_of(leaf.path)
    return zip(parts, parts[1:])


def _inside(value: ast.AST) -> list[ast.expr]:
    """The containers that a container's text has for elements."""
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    elements = [value.elt] if isinstance(value, ast.ListComp) else elements
    return [one for one in elements if isinstance(one, _LISTS)]


def _put_in(line: Line) -> Iterator[tuple[CellRun, ast.expr]]:
    """What the class puts into the container later: ``self.layers.append([...])``, ``self.layers[k] = ...``."""
    targets = list(syntax.targets(line.statement))
    for cls in classes_in(line.run):
        statements = [one for one in ast.walk(cls) if isinstance(one, ast.stmt)]
        if not any((one.lineno, one.col_offset) == _spot(line.statement) for one in statements):
            continue
        for one in statements:
            call = one.value if isinstance(one, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) in {f"{target}.append" for target in targets}:
                yield from ((line.run, given) for given in call.args[:1])
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
                if ast.unparse(one.targets[0].value) in targets:
                    yield line.run, one.value


def _spot(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset
