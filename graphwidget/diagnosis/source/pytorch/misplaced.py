"""A method that PyTorch looks for in a class, and that the class has not: it is indented too far, or misspelt."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import CellRun, Record, TextEdit

__all__ = ["Misplaced", "classes", "misplaced"]

_KNOWN = ("forward", "backward", "vjp", "jvp", "vmap", "setup_context")
_NEAR = 0.8  # of the letters are the same


@dataclass(frozen=True)
class Misplaced:
    """A method that its class has not.

    Attributes
    ----------
    wanted
        The name under which PyTorch looks for it.
    method
        The function that is meant.
    inside
        The method in which it stands as a function of its own; None: it is a method under another name.
    """

    run: CellRun
    wanted: str
    method: ast.FunctionDef
    inside: ast.FunctionDef | None

    @property
    def behind_return(self) -> bool:
        """Whether it stands behind a `return`, so that it is not even defined."""
        body = self.inside.body if self.inside is not None else []
        before = body[: body.index(self.method)] if self.method in body else []
        return any(isinstance(one, (ast.Return, ast.Raise)) for one in before)

    @property
    def edits(self) -> Edits:
        """It becomes a method of the class, under the name that is looked for. Empty: the text shows no plain way."""
        return self._renamed if self.inside is None else self._taken_out(self.inside)

    @property
    def _renamed(self) -> Edits:
        line, name = self.method.lineno, self.method.name
        found = re.search(rf"\bdef\s+({name})\b", text_edit.with_ends(self.run.source)[line - 1])
        if found is None:
            return ()
        return (TextEdit((line, found.start(1)), (line, found.end(1)), self.wanted, self.run.cell),)

    def _taken_out(self, inside: ast.FunctionDef) -> Edits:
        cell, text = self.run.cell, self.run.source
        at = inside.body.index(self.method) if self.method in inside.body else 0
        depth = self.method.col_offset - inside.col_offset
        first, last = syntax.first_line(self.method), self.method.end_lineno or self.method.lineno
        if at == 0 or depth <= 0 or _has_long_texts(self.method):
            return ()
        if all(isinstance(one, ast.FunctionDef) for one in inside.body[at:]):
            lines = text_edit.with_ends(text)[first - 1 : inside.end_lineno]
            numbers = [n for n, line in enumerate(lines, first) if line.strip() and line[:depth].isspace()]
            return tuple(TextEdit((n, 0), (n, depth), "", cell) for n in numbers)
        lines = syntax.lines_of(text)[first - 1 : last]
        moved = ["", *(line[self.method.col_offset :] if line.strip() else "" for line in lines)]
        put = text_edit.insert_behind_block(cell, text, inside, moved)
        return (*text_edit.remove(cell, text, self.method), *put) if put else ()


def classes(record: Record, name: str) -> Iterator[tuple[CellRun, ast.ClassDef]]:
    """The class of a name as it was last defined, and those that it is derived from, as far as the texts show."""
    wanted, seen = [name], set[str]()
    while wanted:
        one = wanted.pop(0)
        found = [(run, made) for run in Cells.of(record).latest for made in syntax.defined(run.source, one)]
        run, made = found[-1] if found and one not in seen else (None, None)
        seen.add(one)
        if run is not None and isinstance(made, ast.ClassDef):
            yield run, made
            wanted += [syntax.last_name(ast.unparse(base)) for base in made.bases]


def misplaced(record: Record, run: CellRun, owner: ast.ClassDef, *wanted: str) -> Misplaced | None:
    """The one function in a class that was to be one of some methods, none of which it has; None: there is none."""
    methods = [one for one in owner.body if isinstance(one, ast.FunctionDef)]
    if any(one.name in wanted for one in methods):
        return None
    nested = [(one, outer) for outer in methods for one in _nested(outer) if one.name in wanted]
    if nested:
        one, outer = nested[0]
        return Misplaced(run, one.name, one, outer) if len(nested) == 1 else None
    names = [one.name for one in methods if one.name not in _KNOWN and not one.name.startswith("__")]
    near = {(name, found) for name in wanted for found in get_close_matches(name, names, 2, _NEAR)}
    if len(near) != 1:
        return None
    name, other = near.pop()
    if _is_read(record, other):
        return None
    return Misplaced(run, name, next(one for one in methods if one.name == other), None)


def _nested(outer: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """The functions with arguments in a method that it does not use."""
    inside = [node for one in outer.body for node in ast.walk(one) if isinstance(node, ast.FunctionDef)]
    for one in inside:
        own = set(ast.walk(one))
        reads = (n for n in ast.walk(outer) if isinstance(n, ast.Name) and n.id == one.name and n not in own)
        if one.args.args and not any(reads):
            yield one


def _is_read(record: Record, name: str) -> bool:
    """Whether a program reads an attribute of that name."""
    nodes = (node for run in record.runs.values() for node in syntax.nodes_of(run.source))
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in nodes)


def _has_long_texts(method: ast.FunctionDef) -> bool:
    """Whether a text of several lines in it, but for its documentation, would change with the indentation."""
    documented = method.body[0].value if isinstance(method.body[0], ast.Expr) else None
    texts: Collection[ast.AST] = [n for n in ast.walk(method) if isinstance(n, (ast.Constant, ast.JoinedStr))]
    return any(n is not documented and n.lineno != n.end_lineno for n in texts if isinstance(n, ast.expr))
