"""Statements that detach in vain: their result is thrown away, or only a variable that nobody reads again gets it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from graphwidget.diagnosis.source import syntax

__all__ = ["LostDetach", "detached_path", "lost_detaches"]

_HARMLESS = frozenset({"detach", "clone", "requires_grad_", "cpu"})  # methods that change no other tensor
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While


@dataclass(frozen=True)
class LostDetach:
    """A statement that detaches in vain.

    Attributes
    ----------
    of
        What keeps its graph, as it is written there: ``state``, of whose elements a loop has the names; ``self.h``.
    how
        Its result is thrown away, or given to the names of a loop, or to a variable of the function.
    new
        The statement that does it; empty where there is no plain one.
    needs
        The type of container for which the new statement is right; empty: it does not matter.
    """

    statement: ast.stmt
    of: str
    how: Literal["thrown", "loop", "variable"]
    new: str = ""
    needs: str = ""


def lost_detaches(texts: Mapping[int, str], cell: int) -> Iterator[LostDetach]:
    """The statements of a cell that detach in vain, in no particular order."""
    tree = syntax.parse(texts[cell])
    if tree is None or ".detach(" not in "".join(texts.values()):
        return
    functions = [node for node in syntax.nodes_of(texts[cell]) if isinstance(node, _FUNCTIONS)]
    for function in (None, *functions):
        yield from _Scope(function, tree.body if function is None else function.body, texts).found()


@dataclass(frozen=True)
class _Scope:
    """A function, or the code around all functions (None)."""

    function: _Function | None
    body: list[ast.stmt]
    texts: Mapping[int, str]

    def found(self) -> Iterator[LostDetach]:
        own = list(syntax.own_statements(self.body))
        loops = [one for one in own if isinstance(one, (ast.For, ast.While))]
        for statement in own:
            around = [loop for loop in loops if loop.lineno <= statement.lineno <= (loop.end_lineno or 0)]
            around = [loop for loop in around if loop is not statement]
            if isinstance(statement, ast.Expr) and (self.function is not None or around):
                yield from self._thrown(statement, around)
            elif isinstance(statement, ast.Assign):
                detached = _detached_names(statement)
                if not detached or any(self._read_after(name, statement, around) for name in detached):
                    continue
                inner = max(around, key=lambda loop: loop.lineno, default=None)
                if isinstance(inner, ast.For) and set(detached) <= syntax.names_in(inner.target):
                    yield from _of_loop(inner, statement, detached)
                elif self.function is not None and not _declared(self.body) & set(detached):
                    yield from self._of_variable(statement, detached)

    def _read_after(self, name: str, statement: ast.stmt, around: Sequence[Loop]) -> bool:
        """Whether a name is read behind a statement, or in the next pass of a loop that does not give it anew."""
        giver = max(_giving(around, name), key=lambda loop: loop.lineno, default=None)
        own = {id(node) for node in ast.walk(giver or statement)}
        fresh = {id(node) for one in self._with_own(name, giver) for node in ast.walk(one)}
        later = {id(node) for one in self._functions for node in ast.walk(one)}
        first = min((loop.lineno for loop in around), default=statement.lineno)
        inner = any(giver is None or loop.lineno > giver.lineno for loop in around)
        for node in (node for one in self.body for node in ast.walk(one)):
            if not isinstance(node, ast.Name) or node.id != name or isinstance(node.ctx, ast.Store):
                continue
            if id(node) in own:
                if inner or node.lineno > (statement.end_lineno or 0):
                    return True
            elif id(node) not in fresh and (node.lineno >= first or id(node) in later):
                return True
        return False

    @property
    def _functions(self) -> Iterator[_Function | ast.Lambda]:
        """The functions that are made here: they may run at any time."""
        nodes = (node for one in self.body for node in ast.walk(one))
        return (node for node in nodes if isinstance(node, (*_FUNCTIONS, ast.Lambda)))

    def _with_own(self, name: str, giver: ast.For | None) -> Iterator[ast.AST]:
        """Other loops, comprehensions and functions that have a name of their own of this spelling."""
        for node in (node for one in self.body for node in ast.walk(one)):
            if isinstance(node, ast.For) and node is not giver and name in syntax.names_in(node.target):
                yield from node.body
            elif isinstance(node, _COMPREHENSIONS):
                if any(name in syntax.names_in(one.target) for one in node.generators):
                    yield node
        for function in self._functions:
            body = function.body if isinstance(function.body, list) else []
            if name in _bound(function) - _declared(body):
                yield function

    def _thrown(self, statement: ast.Expr, around: Sequence[Loop]) -> Iterator[LostDetach]:
        """``h.detach()``, ``[h.detach() for h in state]`` and ``repackage(state)`` as statements."""
        value = statement.value
        given = [*value.args, *(keyword.value for keyword in value.keywords)] if isinstance(value, ast.Call) else []
        path = detached_path(value)
        if not path and len(given) == 1 and _is_path(given[0]) and self._returns_detached(value):
            path = ast.unparse(given[0])
        if path:
            loop = next(iter(_giving(around, _root(path))), None)
            if loop is not None:
                for one in _of_loop(loop, statement, {path: ast.unparse(value)}):
                    yield replace(one, how="thrown")
                return
            new = "" if self._has_parameter(path) else f"{path} = {ast.unparse(value)}"
            yield LostDetach(statement, path, "thrown", new)
        elif isinstance(value, (ast.ListComp, ast.SetComp)) and len(value.generators) == 1:
            (each,) = value.generators
            over = _iterated(each.iter)
            if over is not None and any(map(detached_path, _parts(value.elt))):
                plain = isinstance(value, ast.ListComp) and ast.unparse(each.iter) == over and not each.ifs
                new = f"{over}[:] = {ast.unparse(value)}" if plain else ""
                yield LostDetach(statement, over, "thrown", new, "list")

    def _has_parameter(self, name: str) -> bool:
        return self.function is not None and name in {
            one.arg for one in ast.walk(self.function.args) if isinstance(one, ast.arg)
        }

    def _returns_detached(self, value: ast.expr) -> bool:
        """Whether all that a function of the program does is to return what it was given, detached."""
        if not isinstance(value, ast.Call):
            return False
        name = syntax.last_name(ast.unparse(value.func))
        known = [one for text in self.texts.values() for one in syntax.functions_of(text, name)]
        if len(known) != 1:
            return False
        own = list(syntax.own_statements(known[0].body))
        returned = [one.value for one in own if isinstance(one, ast.Return)]
        texts = [ast.unparse(one) if one is not None else "" for one in returned]
        quiet = all(isinstance(one, (ast.Return, ast.If)) or _is_docstring(one) for one in own)
        again = all(".detach()" in text or f"{name}(" in text for text in texts)
        return quiet and again and any(".detach()" in text for text in texts)

    def _of_variable(self, statement: ast.Assign, detached: Mapping[str, str]) -> Iterator[LostDetach]:
        """``h = h.detach()`` of a parameter, or of what was read of an attribute, at the end of a function."""
        (first, *others) = detached
        if self._has_parameter(first) and not others:
            yield LostDetach(statement, first, "variable")
        before = [one for one in syntax.own_statements(self.body) if one.lineno < statement.lineno]
        made = [one for one in before if isinstance(one, ast.Assign) and set(detached) & set(syntax.targets(one))]
        if len(made) == 1 and _is_path(made[0].value) and not isinstance(made[0].value, ast.Name):
            path, target = ast.unparse(made[0].value), made[0].targets[0]
            whole = isinstance(target, (ast.Name, ast.Tuple)) and len(made[0].targets) == 1
            new = f"{path} = {_with(target, detached)}" if whole else ""
            yield LostDetach(statement, path, "variable", new)


def _of_loop(loop: ast.For, statement: ast.stmt, detached: Mapping[str, str]) -> Iterator[LostDetach]:
    """``h = h.detach()`` in ``for h in state:``, and its form that puts it back."""
    over = _iterated(loop.iter)
    if over is None:
        return
    new, needs = "", ""
    method = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    name = ast.unparse(method).rpartition(".")[2] if method is not None else ""
    target = loop.target
    pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else []
    if name in ("items", "enumerate") and pair and isinstance(pair[0], ast.Name):
        new, needs = f"{over}[{pair[0].id}] = {_with(pair[1], detached)}", "dict" if name == "items" else "list"
    yield LostDetach(statement, over, "loop", new, needs)


def _with(target: ast.expr, values: Mapping[str, str]) -> str:
    """The names of a target as a value, some of them replaced: ``(h.detach(), c)`` for ``h, c``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return f"({', '.join(_with(one, values) for one in target.elts)}{',' if len(target.elts) == 1 else ''})"
    text = ast.unparse(target)
    return values.get(text, text)


def _detached_names(statement: ast.Assign) -> dict[str, str]:
    """The names that an assignment gives only their own tensors, detached, each with the value; empty: it does more."""
    if len(statement.targets) != 1:
        return {}
    targets, values = _parts(statement.targets[0]), _parts(statement.value)
    if len(targets) != len(values) or not all(isinstance(one, ast.Name) for one in targets):
        return {}
    pairs = [(ast.unparse(target), value) for target, value in zip(targets, values)]
    return {name: ast.unparse(value) for name, value in pairs} if all(detached_path(v) == n for n, v in pairs) else {}


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]


def detached_path(node: ast.expr) -> str:
    """``h`` of ``h.detach()`` and ``h.clone().detach()``; empty of anything else."""
    found = False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _HARMLESS:
        found = found or node.func.attr == "detach"
        node = node.func.value
    return ast.unparse(node) if found and _is_path(node) else ""


def _iterated(node: ast.expr) -> str | None:
    """The container whose elements a loop gets: ``state`` of ``state.items()`` and ``enumerate(state)``."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values") and not node.args:
            node = node.func.value
        elif ast.unparse(node.func) in ("enumerate", "list", "reversed") and len(node.args) == 1:
            return _iterated(node.args[0])
    return ast.unparse(node) if _is_path(node) else None


def _is_path(node: ast.expr) -> bool:
    """Whether an expression is a name, an attribute or an element, without a call."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)


def _giving(loops: Sequence[Loop], name: str) -> list[ast.For]:
    """The loops that give a name its value in each pass."""
    return [one for one in loops if isinstance(one, ast.For) and name in syntax.names_in(one.target)]


def _bound(function: _Function | ast.Lambda) -> set[str]:
    """The parameters of a function, and the names that it assigns."""
    nodes = list(ast.walk(function))
    stored = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored | {one.arg for one in nodes if isinstance(one, ast.arg)}


def _root(path: str) -> str:
    """The variable that a path begins with."""
    return re.split(r"\W", path, maxsplit=1)[0]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _declared(body: list[ast.stmt]) -> set[str]:
    """The variables that a function has from outside."""
    outside = (one for one in syntax.own_statements(body) if isinstance(one, (ast.Global, ast.Nonlocal)))
    return {name for one in outside for name in one.names}
