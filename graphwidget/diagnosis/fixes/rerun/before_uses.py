"""What a method made once, as ``self.dist = self.build()`` in `__init__`, is made anew by whoever reads it.

Where one function reads it, just before that; where several do, by a property, so that none of them gets an old one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from graphwidget.diagnosis.fixes.harm import held_by
from graphwidget.diagnosis.fixes.rerun.made_once import ONCE
from graphwidget.diagnosis.fixes.rerun.rerun import Rerun, Statement, quoted
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import lines_of, names
from graphwidget.model import CellRun

__all__ = ["before_uses", "with_dependents"]


def before_uses(setting: Setting, cell: int, text: str, method: ast.FunctionDef, body: list[ast.stmt]) -> Rerun | None:
    """Make what some statements of a method make wherever it is read; arguments of that method become attributes."""
    owner = (source.function_at(text, body[0].lineno) or (None,))[0]
    fields = [target for one in body for target in source.targets(one) if target.startswith("self.")]
    made = {target for one in body for target in source.targets(one)} - {*fields}
    new = [_outside_method(statement, method, made) for statement in body]
    if owner is None or not fields or not all(new) or not all(map(str.isidentifier, made)):
        return None
    lines = [line for one in new for line in (one or "").splitlines()]
    uses, outside = _uses(setting, cell, text, owner)
    what = quoted([Statement(CellRun(0, cell, text), statement) for statement in body])
    if outside or len(uses) > 1:
        edits = _as_property(setting, cell, text, (owner, method), body, lines)
        if edits:
            kind = "a property" if len(fields) == 1 else "properties"
            sentence = f"Make {what} {kind}: whoever reads {names(tuple(fields))} gets it with a new graph."
            return Rerun(sentence, (cell, body[0].lineno), edits)
    return _in_each(setting, cell, text, uses, what, lines, made) if uses and not outside else None


def _in_each(
    setting: Setting,
    cell: int,
    text: str,
    uses: Sequence[ast.stmt],
    what: str,
    lines: list[str],
    made: Collection[str],
) -> Rerun | None:
    """The lines before each of some statements, which must have none of their variables."""
    functions = [found[1] for one in uses if (found := source.function_at(text, one.lineno)) is not None]
    own = {name for one in functions for name in source.bound(one)}
    own |= {node.arg for one in functions for node in ast.walk(one) if isinstance(node, ast.arg)}
    if own.intersection(made) or not all(runs_between(setting, (cell, one.lineno)) for one in uses):
        return None
    places = " and ".join(f"In[{cell}], line {one.lineno}" for one in uses)
    sentence = f"Compute {what} before each use ({places}): each pass has its own graph then."
    edits = tuple(edit for one in uses for edit in text_edit.insert_before(cell, text, one, lines))
    return Rerun(sentence, (cell, uses[0].lineno), edits)


def _uses(setting: Setting, cell: int, text: str, owner: ast.ClassDef) -> tuple[list[ast.stmt], bool]:
    """The first statement of each method of a class that uses the old part, and whether code outside of it does."""
    first: dict[str, ast.stmt] = {}
    outside = False
    for place in setting.reuse.uses_by(setting.reuse.later):
        spots = [line for at, line in reversed(lines_of(place)) if at == cell]
        found = next(((f[1], line) for line in spots if (f := source.function_at(text, line)) and f[0] is owner), None)
        outside = outside or found is None
        statement = source.statements_at(text, found[1])[-1] if found is not None else None
        if found is None or statement is None:
            continue
        name = found[0].name
        first[name] = min(first.get(name, statement), statement, key=lambda one: one.lineno)
    return sorted(first.values(), key=lambda one: one.lineno), outside


def _as_property(
    setting: Setting,
    cell: int,
    text: str,
    within: tuple[ast.ClassDef, ast.FunctionDef],
    body: list[ast.stmt],
    lines: list[str],
) -> Edits:
    """Properties in place of statements of `__init__`: each for one attribute, or all for that of the last."""
    owner, method = within
    following = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.lineno > method.lineno), None)
    targets = [list(source.targets(one)) for one in body]
    if (
        method.name != "__init__"
        or following is None
        or len(lines) != len(body)
        or any(len(one) != 1 for one in targets)
    ):
        return ()
    made = [one for (one,) in targets]
    locals_ = [name for name in made if name.isidentifier()]
    fields = [name for name in made if not name.isidentifier()]
    if (locals_ and made[-1:] != fields) or not all(_is_given_once(setting, field) for field in fields):
        return ()
    groups = [lines] if locals_ else [[line] for line in lines]
    new = [line for field, group in zip(fields, groups) for line in _property(field, group)]
    put = text_edit.insert_before(cell, text, following, new)
    put = tuple(replace(edit, new=re.sub(r"[ \t]+\n", "\n", edit.new)) for edit in put)
    rest = [one for one in source.own_statements(method.body) if one not in body]
    kept = {name for name in locals_ if any(name in source.names_read(other) for other in rest)}
    return (*text_edit.remove(cell, text, *(one for one, name in zip(body, made) if name not in kept)), *put)


def _property(field: str, lines: list[str]) -> list[str]:
    """The lines of a property that does what some lines do, the last of which assigns it."""
    name, value = field.removeprefix("self."), lines[-1].removeprefix(f"{field} = ")
    return ["@property", f"def {name}(self):", *(f"    {one}" for one in lines[:-1]), f"    return {value}", ""]


def _is_given_once(setting: Setting, field: str) -> bool:
    """Whether only one line assigns an attribute, of whatever object."""
    name, runs = field.removeprefix("self."), setting.reuse.record.runs.values()
    given = [target for run in runs for _, target in source.assigned_as(run.source, name) if "." in target]
    return name.isidentifier() and len(given) == 1


def with_dependents(setting: Setting, method: ast.FunctionDef, body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of a method, and later ones that compute from what these make: no module, parameter or the like."""
    found, reuse = list(body), setting.reuse
    graphs = [graph for graph in (reuse.graph, reuse.earlier.graph) if graph is not None]
    for one in method.body:
        made = {target for each in found for target in source.targets(each)}
        after = one not in found and one.lineno > body[0].lineno and isinstance(one, ast.Assign)
        if (
            after
            and made & source.paths_read(one)
            and not any(held_by(reuse.record, t, graphs) in ONCE for t in source.targets(one))
        ):
            found.append(one)
    return sorted(found, key=lambda one: one.lineno)


def _outside_method(statement: ast.stmt, method: ast.FunctionDef, made: Collection[str]) -> str | None:
    """The text of a statement of one method for another; None if it reads another variable of the first than `made`."""
    pairs = (pair for s in method.body if isinstance(s, ast.Assign) for pair in _assigned(s.targets[0], s.value))
    held = {
        value.id: ast.unparse(target)
        for target, value in pairs
        if isinstance(value, ast.Name) and ast.unparse(target).startswith("self.")
    }
    arguments = {one.arg for one in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)} - {"self"}
    own = {name for s in source.own_statements(method.body) for name in source.targets(s) if name.isidentifier()}
    text = ast.unparse(statement)
    for name in sorted(((arguments | own) - {*made}) & source.names_in(statement)):
        if name not in held:
            return None
        text = re.sub(rf"(?<![\w.]){name}(?!\w|\s*=(?!=))", held[name], text)
    return text


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of an assignment: ``self.net, self.opt = net, opt`` has two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts)
    else:
        yield target, value
