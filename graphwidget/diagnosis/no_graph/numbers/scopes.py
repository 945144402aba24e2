"""Functions of a program, with the names in them that hold what was taken out of tensors; and what reaches a loss."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from graphwidget.diagnosis.source import syntax
from graphwidget.model import CellRun

__all__ = ["Scope", "arguments", "paths_of", "reach_a_backward", "scopes_of", "value_of"]

_MOST_ROUNDS = 8
_PROPERTIES = ("property", "cached_property")


@dataclass
class Scope:
    """A function, or the text outside of functions, and its names that hold what was taken out."""

    run: CellRun
    within: ast.ClassDef | None
    function: ast.FunctionDef | None
    statements: list[ast.stmt]
    names: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)  # of the names, those that a tensor is made of
    returns: bool = False  # an array that is to be a tensor
    given: bool = False  # whether it is given one
    wanted: bool = False  # whether a tensor is made of what it returns

    @property
    def is_property(self) -> bool:
        """Whether it is read as an attribute of an object, and runs then."""
        decorators = self.function.decorator_list if self.function is not None and self.within is not None else ()
        return any(syntax.last_name(ast.unparse(one)) in _PROPERTIES for one in decorators)

    @property
    def name(self) -> str:
        """How it is called; empty: it is no function."""
        own = self.function.name if self.function is not None else ""
        return f"self.{own}" if own and self.within is not None else own


def scopes_of(run: CellRun) -> Iterator[Scope]:
    """The text outside of functions, and the functions, of a cell."""
    tree = syntax.parse(run.source)
    if tree is None:
        return
    yield Scope(run, None, None, list(syntax.own_statements(tree.body)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found = syntax.function_at(run.source, node.body[0].lineno)
            if found is not None and found[1] is node:
                yield Scope(run, found[0], node, list(syntax.own_statements(node.body)))


def value_of(one: ast.stmt) -> ast.expr | None:
    """The expression that a statement computes; None: it is of another kind."""
    if isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
        return one.value
    return one.iter if isinstance(one, ast.For) else None


def arguments(scope: Scope) -> list[str]:
    """The names of what a function is given, without its object."""
    if scope.function is None:
        return []
    names = [one.arg for one in (*scope.function.args.posonlyargs, *scope.function.args.args)]
    static = any(ast.unparse(one) == "staticmethod" for one in scope.function.decorator_list)
    return names[1:] if scope.within is not None and not static else names


def paths_of(one: ast.stmt) -> set[str]:
    """The names and paths that a statement reads."""
    return syntax.paths_read(one) | syntax.names_read(one)


def reach_a_backward(scopes: Sequence[Scope], those: Collection[ast.stmt]) -> bool:
    """Whether what one of some statements computes goes on to a backward, by the names in the text."""
    flowing: list[set[str]] = [set() for _ in scopes]
    called = set[str]()
    for _ in range(_MOST_ROUNDS):
        before = sum(map(len, flowing)) + len(called)
        for names, scope in zip(flowing, scopes):
            for one in scope.statements:
                calls = {syntax.last_name(name) for name in syntax.calls_in(one)} | _properties_in(scopes, scope, one)
                if not (one in those or paths_of(one) & names or calls & called):
                    continue
                if calls & {"backward", "grad"}:
                    return True
                names |= set(syntax.targets(one)) | syntax.grown(one)
                if isinstance(one, ast.Return) and scope.function is not None:
                    if scope.function.name in ("forward", "__call__"):
                        return True
                    called.add(scope.function.name)
                for other, inside in zip(scopes, flowing):
                    if other.function is not None and other.function.name in calls:
                        inside |= set(arguments(other))
        if before == sum(map(len, flowing)) + len(called):
            break
    return False


def _properties_in(scopes: Sequence[Scope], scope: Scope, one: ast.stmt) -> set[str]:
    """The names of the properties of the object itself that a statement reads."""
    own = [other for other in scopes if other.within is not None and other.within is scope.within and other.is_property]
    read = paths_of(one) if own else set()
    return {other.function.name for other in own if other.function is not None and other.name in read}
