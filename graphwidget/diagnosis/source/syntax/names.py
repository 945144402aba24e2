"""Names in program text: which a statement reads, assigns or fills."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source.syntax.statements import blocks_of, captured, head_of

_INDEX = re.compile(r"""\[(?:'[^']*'|"[^"]*"|[^\]])*\]""")


def names_in(node: ast.AST) -> set[str]:
    """Names anywhere in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def words_in(node: ast.AST) -> set[str]:
    """Names and the names of attributes anywhere in a node."""
    return names_in(node) | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def names_read(statement: ast.stmt) -> set[str]:
    """Names whose values a statement uses: not those that it only assigns."""
    read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read | set(targets(statement)) if isinstance(statement, ast.AugAssign) else read


def paths_read(statement: ast.stmt) -> set[str]:
    """Names and dotted names whose values a statement uses."""
    nodes = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
    return names_read(statement) | set(map(ast.unparse, nodes))


GROWING = ("append", "appendleft", "add", "insert", "extend", "update")


def grown(node: ast.AST) -> set[str]:
    """Names of containers that a node puts something into."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    holders = [func.value for func in calls if func.attr in GROWING]
    holders += [n.value for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}


def bound(node: ast.AST) -> set[str]:
    """Names that a node assigns; the variable of a comprehension is its own."""
    own = {id(n) for c in ast.walk(node) if isinstance(c, ast.comprehension) for n in ast.walk(c.target)}
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in stored if id(n) not in own} | captured(node)


def changed(node: ast.AST) -> set[str]:
    """Names that a node assigns, or puts something into."""
    return bound(node) | grown(node)


def carried(statement: ast.stmt) -> set[str]:
    """Names that a statement changes, starting from what they were: ``h`` in ``h = f(h)``, ``a`` in ``a.append(h)``."""
    return _read_first(statement, set()) & changed(statement)


def _read_first(statement: ast.stmt, known: set[str]) -> set[str]:
    """Names that a statement reads before it changes them, but for those `known`; adds those that it changes to them.

    Of the branches of a test one runs: what the first changes, the second reads as it was.
    """
    found: set[str] = set()
    for step in head_of(statement):
        found |= names_read(step) - known
        known |= changed(step)
    before = set(known)
    for block in blocks_of(statement):
        own = set(before) if isinstance(statement, (ast.If, ast.Match)) else known
        for inner in block:
            found |= _read_first(inner, own)
        known |= own
    return found


def last_name(path: str) -> str:
    """``mean`` of ``net.norms[0].mean``, ``avg`` of ``avg[0]`` and of ``avg['net.weight']``."""
    return _INDEX.sub("", path).rsplit(".", 1)[-1]


def in_brackets(node: ast.expr) -> str:
    """The text of an expression where a dot may follow it: ``(a + b)``, and `a` or ``f(a)`` as they are."""
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return ast.unparse(node) if plain else f"({ast.unparse(node)})"


def calls_in(node: ast.AST) -> Iterator[str]:
    """Dotted names of what a node calls: ``opt.step``, ``torch.no_grad``."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func)


def targets(statement: ast.stmt) -> Iterator[str]:
    """Names and dotted names that a statement assigns."""
    if isinstance(statement, ast.Assign):
        wholes = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        wholes = [statement.target]
    else:
        return
    for whole in wholes:
        parts = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else [whole]
        for part in parts:
            yield ast.unparse(part.value if isinstance(part, ast.Starred) else part)


def given(statement: ast.stmt) -> ast.AST:
    """What an assignment assigns, or a `for` goes over; else the statement."""
    return getattr(statement, "value", None) or getattr(statement, "iter", None) or statement


def given_to(statement: ast.Assign, name: str) -> tuple[ast.expr, int | None]:
    """What an assignment gives to one of its targets, and which element of that; None: all of it.

    ``a, b = f(), g()`` gives ``g()`` to `b`, ``a, b = f()`` element 1 of ``f()``.
    """
    for whole in statement.targets:
        parts = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else []
        at = next((i for i, part in enumerate(parts) if ast.unparse(part) == name), None)
        if at is None or any(isinstance(part, ast.Starred) for part in parts[: at + 1]):
            continue
        value = statement.value
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
            return value.elts[at], None
        return value, at
    return statement.value, None
