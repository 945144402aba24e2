"""Leaves that fall into no group where a loop sorts the parameters of a module into groups by their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.collected import filled, module_of
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, spoken, where
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["Sorting", "fits_no_test", "in_no_group", "sortings"]

_ON_NAMES = ("endswith", "startswith")


class Sorting(NamedTuple):
    """A loop over named parameters: the name's variable, the tests that put one into a group, and the last of them."""

    loop: Line
    name: str
    tests: tuple[ast.expr, ...]
    last: Line


def sortings(record: Record) -> list[Sorting]:
    """The loops that sort parameters into two groups or more by tests of their names, and have no `else`."""
    return [
        found
        for run in Cells.of(record).latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and module_of(node.iter)
        for found in _of(Line(run, node), node)
    ]


def _of(loop: Line, node: ast.For) -> Iterator[Sorting]:
    first = node.target.elts[0] if isinstance(node.target, ast.Tuple) else None
    name = first.id if isinstance(first, ast.Name) else ""
    chains = [one for one in node.body if isinstance(one, ast.If)]
    tests: list[ast.expr] = []
    last: ast.If | None = None
    for chain in chains:
        branch: ast.stmt | None = chain
        while isinstance(branch, ast.If):
            if any(filled(one) for one in branch.body):
                tests.append(branch.test)
                last = branch
            rest = branch.orelse
            branch = rest[0] if len(rest) == 1 else None
            if rest and not isinstance(branch, ast.If):
                return  # an `else` takes the rest
    if name and last is not None and len(tests) > 1:
        yield Sorting(loop, name, tuple(tests), Line(loop.run, last))


def fits_no_test(sorting: Sorting, leaf: UnheldLeaf) -> bool:
    """Whether no test holds for a leaf, whatever part of its path is its name in the module."""
    parts = spoken(leaf.path).replace("[", ".").replace("]", "").split(".")[1:]
    own = [".".join(parts[start:]) for start in range(len(parts))]
    return bool(own) and all(_holds(test, sorting.name, one) is False for test in sorting.tests for one in own)


def _holds(test: ast.expr, variable: str, name: str) -> bool | None:
    """Whether a test of a name holds; None: it asks for something else."""
    if isinstance(test, ast.BoolOp):
        parts = [_holds(one, variable, name) for one in test.values]
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(test.operand, variable, name)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.In, ast.NotIn)):
        part, whole = test.left, test.comparators[0]
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _is(whole, variable):
            return (part.value in name) is isinstance(test.ops[0], ast.In)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and _is(test.func.value, variable):
        ends = test.args[0] if len(test.args) == 1 else None
        texts = [one.value for one in getattr(ends, "elts", [ends]) if isinstance(one, ast.Constant)]
        if test.func.attr in _ON_NAMES and texts and all(isinstance(one, str) for one in texts):
            return bool(getattr(name, test.func.attr)(tuple(texts)))
    return None


def _is(node: ast.expr, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable


def in_no_group(sorting: Sorting, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves for which no test holds."""
    shown, text = named(leaves), sorting.loop.run.source
    last = sorting.last.statement
    body = [line for one in getattr(last, "body", ()) for line in text_edit.statement_lines(text, one)]
    them = "it" if len(shown) == 1 else "them"
    why = (
        f"{short(sorting.loop.place.source)} ({where(sorting.loop.place)}) puts parameters into groups by tests of "
        f"`{sorting.name}`. None of them holds for {them}, and there is no `else`."
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
