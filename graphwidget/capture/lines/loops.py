"""Loops and functions in the text of a cell or of a file, by line."""

from __future__ import annotations

import ast

__all__ = ["Loop", "functions_in", "loops_by_scope"]

_NO_CODE = (ast.Global, ast.Nonlocal)


class Loop:
    """One `for` or `while` of a cell, in line numbers of the compiled source.

    `mark` is the line at which every pass begins: the first statement of the body, or the loop's own
    line if the body is on that line (`inline`). `parents` are the positions of the enclosing loops.
    `repeats`: a `while`, whose first line does the same on entry as before each later pass.
    """

    __slots__ = ("first", "inline", "last", "mark", "parents", "repeats")

    def __init__(self, node: ast.For | ast.AsyncFor | ast.While, parents: tuple[int, ...]) -> None:
        body = next((s for s in node.body if not _makes_no_code(s)), node.body[0])
        self.first = node.lineno
        self.last = node.body[-1].end_lineno or node.body[-1].lineno
        self.mark: int = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", ()))])
        self.inline = self.mark == self.first
        self.repeats = isinstance(node, ast.While)
        self.parents = parents


def functions_in(source: str) -> list[tuple[int, int, str]]:
    """The first and last line of the body of each function, and its qualified name."""
    try:
        waiting: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            around = f"{around}.{node.name}" if around else node.name
            if not isinstance(node, ast.ClassDef):
                found.append((node.body[0].lineno, node.body[-1].end_lineno or 0, around))
        waiting.extend((child, around) for child in ast.iter_child_nodes(node))
    return found


def _makes_no_code(statement: ast.stmt) -> bool:
    return isinstance(statement, _NO_CODE) or (isinstance(statement, ast.AnnAssign) and statement.value is None)


def loops_by_scope(source: str, before: int = 0) -> dict[tuple[str, int], list[Loop]]:
    """Loops of each function of `source`, by its name and first line; ``("", 0)`` is the module level.

    `before`: number of lines of the file before `source`.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    if before:
        ast.increment_lineno(tree, before)
    found: dict[tuple[str, int], list[Loop]] = {}
    work: list[tuple[ast.AST, tuple[str, int], tuple[int, ...]]] = [(tree, ("", 0), ())]
    while work:
        node, scope, parents = work.pop()
        inside = parents
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            scope, inside = (node.name, first), ()
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            loops = found.setdefault(scope, [])
            inside = (*parents, len(loops))
            loops.append(Loop(node, parents))
        work.extend((child, scope, inside) for child in ast.iter_child_nodes(node))
    return found
