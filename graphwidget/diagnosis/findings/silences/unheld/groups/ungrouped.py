"""Leaves that fall into no group where a loop sorts the parameters of a module into groups.

It tests their names, or the classes of the modules that they are in, and what it puts into a group is the parameter or
an attribute of the module: ``decay.append(module.weight)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.groups.collected import filled, module_of
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, spoken, where
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["Sorting", "fits_no_test", "in_no_group", "sortings"]

_ON_NAMES = ("endswith", "startswith")
_MODULES = ("modules", "named_modules", "children", "named_children")


class _Put(NamedTuple):
    """A statement that puts something into a group, and the tests around it, each with what it has to give."""

    statement: ast.stmt
    attribute: str  # of a module; empty: the parameter that the loop has come to
    tests: tuple[tuple[ast.expr, bool], ...]


class Sorting(NamedTuple):
    """A loop that puts parameters into groups: all lines that do. `last`: the last `if` around one of them."""

    loop: Line
    name: str  # the variable for the names of parameters; empty: it has none
    parameter: str  # that for parameters; empty: it is a loop over modules
    puts: tuple[_Put, ...]
    last: Line


def sortings(record: Record) -> list[Sorting]:
    """The loops that sort parameters into groups by two tests or more."""
    return [
        found
        for run in Cells.of(record).latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.For) and (module_of(node.iter) or _is_over_modules(node.iter))
        for found in _of(Line(run, node), node)
    ]


def _is_over_modules(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MODULES


def _of(loop: Line, node: ast.For) -> Iterator[Sorting]:
    names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    variables = [one.id for one in names if isinstance(one, ast.Name)]
    if not variables:
        return
    puts = tuple(_puts(node.body, variables[-1], ()))
    tested = {ast.unparse(test) for one in puts for test, _ in one.tests}
    around = [one for one in ast.walk(node) if isinstance(one, ast.If) and any(map(filled, one.body))]
    if len(tested) > 1 and around:
        last = max(around, key=lambda one: one.lineno)
        name, last_one = variables[0] if len(variables) > 1 else "", variables[-1]
        if _is_over_modules(node.iter):
            name = last_one = ""  # what has a name there is a module
        yield Sorting(loop, name, last_one, puts, Line(loop.run, last))


def _puts(body: list[ast.stmt], variable: str, tests: tuple[tuple[ast.expr, bool], ...]) -> Iterator[_Put]:
    for statement in body:
        into = filled(statement)
        if into is not None:
            of_it = [one for one in ast.walk(into[1]) if isinstance(one, ast.Attribute) and _is(one.value, variable)]
            yield _Put(statement, of_it[0].attr if of_it else "", tests)
        elif isinstance(statement, ast.If):
            yield from _puts(statement.body, variable, (*tests, (statement.test, True)))
            yield from _puts(statement.orelse, variable, (*tests, (statement.test, False)))
        elif isinstance(statement, (ast.With, ast.Try)):
            yield from _puts(statement.body, variable, tests)


def fits_no_test(sorting: Sorting, leaf: UnheldLeaf) -> bool:
    """Whether no line puts a leaf into a group, whatever part of its path is its name in the module."""
    parts = spoken(leaf.path).replace("[", ".").replace("]", "").split(".")[1:]
    own = [".".join(parts[start:]) for start in range(len(parts))]
    asked = _Asked(sorting, leaf.within)
    return bool(own) and all(asked.is_left_out(put, name) for put in sorting.puts for name in own)


class _Asked(NamedTuple):
    """What is asked of a leaf in modules of these classes: which of them a variable stands for is not known."""

    sorting: Sorting
    classes: frozenset[str]

    def is_left_out(self, put: _Put, name: str) -> bool:
        """Whether a line puts no parameter of that name into its group."""
        other = bool(put.attribute) and put.attribute != name.rpartition(".")[2]
        return other or any(self._holds(test, name) is (not wanted) for test, wanted in put.tests)

    def _holds(self, test: ast.expr, name: str) -> bool | None:
        """Whether a test holds; None: it asks for something else."""
        if isinstance(test, ast.BoolOp):
            parts = [self._holds(one, name) for one in test.values]
            decisive = isinstance(test.op, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._holds(test.operand, name)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compares(test.left, test.ops[0], test.comparators[0], name)
        if not isinstance(test, ast.Call):
            return None
        if isinstance(test.func, ast.Attribute) and _is(test.func.value, self.sorting.name):
            texts = _texts(test.args[0]) if len(test.args) == 1 else ()
            if test.func.attr in _ON_NAMES and texts:
                return bool(getattr(name, test.func.attr)(texts))
        if ast.unparse(test.func) == "isinstance" and len(test.args) == 2:
            of_module = isinstance(test.args[0], ast.Name) and not _is(test.args[0], self.sorting.parameter)
            wanted = self._class_names(test.args[1]) if of_module else frozenset()
            return bool(wanted & self.classes) if wanted and self.classes else None
        return None

    def _compares(self, left: ast.expr, how: ast.cmpop, right: ast.expr, name: str) -> bool | None:
        """``"bias" in name``, ``name == "bias"``, ``name in ("weight", "bias")``."""
        if isinstance(how, (ast.In, ast.NotIn)) and _is(right, self.sorting.name) and len(part := _texts(left)) == 1:
            return (part[0] in name) is isinstance(how, ast.In)
        if _is(left, self.sorting.name) and (texts := _texts(right)):
            alike = isinstance(how, (ast.In, ast.Eq))
            return (name in texts) is alike if alike or isinstance(how, (ast.NotIn, ast.NotEq)) else None
        return None

    def _class_names(self, node: ast.expr) -> frozenset[str]:
        """The last names of the classes that `isinstance` asks for; empty: they are not known."""
        if isinstance(node, ast.Name):
            made = syntax.assignments(self.sorting.loop.run.source, node.id)
            value = syntax.given(made[0]) if len(made) == 1 else None
            if isinstance(value, (ast.Tuple, ast.List)):
                node = value
            elif made:
                return frozenset()
        elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        known = all(isinstance(one, (ast.Name, ast.Attribute)) for one in elements)
        return frozenset(syntax.last_name(ast.unparse(one)) for one in elements) if known else frozenset()


def _texts(node: ast.expr) -> tuple[str, ...]:
    """The texts that an expression is, or lists; empty: it is something else."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    texts = tuple(one.value for one in elements if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return texts if len(texts) == len(elements) else ()


def _is(node: ast.expr, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable


def in_no_group(sorting: Sorting, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves for which no test holds."""
    shown, text = named(leaves), sorting.loop.run.source
    last = sorting.last.statement
    body = [line for one in getattr(last, "body", ()) for line in text_edit.statement_lines(text, one)]
    them = "it" if len(shown) == 1 else "them"
    why = (
        f"{short(sorting.loop.place.source)} ({where(sorting.loop.place)}) puts parameters into groups by tests"
        f"{f' of `{sorting.name}`' if sorting.name else ''}. None of them holds for {them}, and there is no `else`."
    )
    fix = Fix(
        "new_optimizer",
        f"Put the rest into a group, too: `else:` behind the last test ({where(sorting.last.place)}), with "
        f"{short(body[0]) if body else 'a group'} or another group.",
        False,
        at(sorting.last.place),
        "They are trained then.",
    )
    return finding_of(shown, sorting.last.place, why, leaves, fix)
