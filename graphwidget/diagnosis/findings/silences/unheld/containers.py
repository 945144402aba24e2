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
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = ["container_lines", "in_container"]

_LISTS = (ast.List, ast.ListComp, ast.Tuple)
_DICTS = (ast.Dict, ast.DictComp)


def container_lines(record: Record, leaf: UnheldLeaf) -> list[Line] | None:
    """The statements that give a leaf's container to its module: ``self.layers = [...]``; empty: they are not known.

    None: it is in none, or in one that hides on purpose what the module was given, or what is not to be trained.
    """
    if leaf.container is None or leaf.container.resting:
        return None
    name, cls = leaf.container.name, leaf.container.class_name
    found = [
        (each.name, Line(run, one))
        for run in Cells.of(record).latest
        for each in classes_in(run)
        for one in ast.walk(each)
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and f"self.{name}" in syntax.targets(one)
    ]
    of_it = [line for owner, line in found if owner == cls] or [line for _, line in found]
    lines = [line for line in of_it if not isinstance(_kept(line), (ast.Constant, type(None)))]
    return None if any(map(_is_handed_in, lines)) else lines


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


def in_container(record: Record, lines: list[Line], leaves: list[UnheldLeaf]) -> Finding:
    """The finding about leaves of one module; `lines` give it their containers."""
    kinds = {leaf.container.kind for leaf in leaves if leaf.container is not None}
    of_parameters = all(parts_of(leaf.path)[-1].startswith("[") for leaf in leaves)
    deep = any(part.startswith("[") and after.startswith("[") for leaf in leaves for part, after in _pairs(leaf))
    kind = ("Parameter" if of_parameters else "Module") + ("Dict" if kinds == {"dict"} else "List")
    own_nn = torch_nn(record, lines[0].run if lines else None)
    new = f"{own_nn}.{kind}"
    inner = f"{own_nn}.{'ParameterList' if of_parameters else 'ModuleList'}" if deep else ""
    edits = [_registered(line, new, inner) for line in lines] if len(kinds) == 1 else []
    what = f"a {next(iter(kinds))}" if len(kinds) == 1 else "containers"
    if lines:
        more = {1: " puts", 2: " and another line put"}.get(len(lines), f" and {len(lines) - 1} more lines put")
        why = f"{lines[0].shown}{more} them into {what} of Python's."
    else:
        owners = {f"{one.class_name}.{one.name}" for leaf in leaves if (one := leaf.container) is not None}
        why = f"In {names(tuple(sorted(owners)))} they are in {what} of Python's."
    cause = lines[0].place if lines else None
    an = "an" if new.startswith("nn") else "a"
    return finding_of(
        named(leaves),
        cause or leaves[0].place,
        f"{why} A module registers only modules and parameters, so `parameters()` does not list these.",
        leaves,
        Fix(
            "register_modules",
            f"Put them into {an} `{new}`: then `parameters()` has them, and `.to(device)` and `state_dict()` too.",
            False,
            at(cause) if cause is not None else None,
            edits=tuple(edit for each in edits for edit in each) if all(edits) else (),
        ),
    )


def _registered(line: Line, new: str, inner: str) -> Edits:
    """The edits that make a module register what a line gives it; empty: a list that is filled behind that line.

    `inner`: what registers the containers in the container; empty if there are none.
    """
    value, held = _kept(line), syntax.given(line.statement)
    if _used_behind(line):
        return ()
    cell, text = line.run.cell, line.run.source
    if inner and not isinstance(value, (*_LISTS, *_DICTS)):
        whole = f"{new}(map({inner}, "
        return (*text_edit.wrapped(cell, text, held, whole), *text_edit.insert_behind(cell, text, held, ")"))
    edits = text_edit.wrapped(cell, text, held, f"{new}(")
    for each in _inside(value) if inner else ():
        edits += text_edit.wrapped(cell, text, each, f"{inner}(")
    for run, put in _put_in(line) if inner else ():
        edits += text_edit.wrapped(run.cell, run.source, put, f"{inner}(")
    return edits


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
