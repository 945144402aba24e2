"""Statements of a text: which stand at a line, which blocks they are in, what follows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from graphwidget.diagnosis.source.syntax.main_function import Main, main_of, opened


def lines_of(source: str) -> list[str]:
    """The lines of a text without their ends, as Python counts them: a form feed ends none."""
    return re.split(r"\r\n|\r|\n", source.removesuffix("\n")) if source else []


@lru_cache(maxsize=256)
def parse(source: str) -> ast.Module | None:
    """The tree of a cell, or None. What a main function does stands there as what the program does."""
    tree, main = _tree(source), main_function(source)
    return opened(tree, main) if tree is not None and main is not None else tree


@lru_cache(maxsize=256)
def main_function(source: str) -> Main | None:
    """The function that is all of a program, and is called by one line of it; None: there is none."""
    tree = _tree(source)
    return main_of(tree) if tree is not None else None


@lru_cache(maxsize=256)
def _tree(source: str) -> ast.Module | None:
    """The tree of a text as it is. Magic lines are left out; a line may begin with `%` and be no magic."""
    lines = lines_of(source)
    magics = {at for at, line in enumerate(lines, 1) if line.lstrip().startswith(("%", "!"))}
    while True:
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            if not magics:
                return None
            gone = {error.lineno} & magics or magics
            lines = ["" if at in gone else line for at, line in enumerate(lines, 1)]
            magics -= gone
        except (ValueError, RecursionError):
            return None


@lru_cache(maxsize=256)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of the tree of a cell, as `ast.walk` finds them; a text is walked once."""
    tree = parse(source)
    return tuple(ast.walk(tree)) if tree is not None else ()


def statement_of(text: str) -> ast.stmt | None:
    """The one statement that a text is, or None."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def expression_of(text: str) -> ast.expr | None:
    """The expression that a text is, or None."""
    statement = statement_of(text)
    return statement.value if isinstance(statement, ast.Expr) else None


def line_text(source: str, line: int | None) -> str:
    """The text of line `line` (from 1), stripped; empty when there is none."""
    lines = lines_of(source)
    return lines[line - 1].strip() if line and 0 < line <= len(lines) else ""


Statement = ast.stmt


def _spans(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", None)
    last = getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def statements_at(source: str, line: int) -> list[Statement]:
    """The statements that contain the line, outermost first."""
    return list(_around_lines(source).get(line, ()))


@lru_cache(maxsize=256)
def _around_lines(source: str) -> dict[int, tuple[Statement, ...]]:
    """The statements around each line of a text; where two of a block stand on one line, the first is taken."""
    tree = parse(source)
    found: dict[int, tuple[Statement, ...]] = {}
    waiting: list[tuple[tuple[Statement, ...], list[ast.stmt]]] = [((), tree.body if tree else [])]
    while waiting:
        around, body = waiting.pop()
        for statement in body:
            inside = (*around, statement)
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                if found.get(line, ()) is around:
                    found[line] = inside
            waiting.append((inside, [s for block in blocks_of(statement) for s in block]))
    return found


def blocks_of(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a statement, in the order of the text: what it runs, its handlers, its cases, its `else`."""
    parts = (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))
    inside = [part.body for part in parts]
    first, *last = (getattr(statement, field, []) for field in ("body", "orelse", "finalbody"))
    return [block for block in (first, *inside, *last) if isinstance(block, list) and block]


def leading_to(source: str, line: int) -> list[Statement]:
    """The statements that begin up to a line in the blocks around it, in the order of the text."""
    tree = parse(source)
    found: list[Statement] = []
    body: list[ast.stmt] = tree.body if tree else []
    for around in (*statements_at(source, line), None):
        found += [s for s in body if s.lineno <= line and s is not around]
        blocks = blocks_of(around) if around is not None else []
        body = next((block for block in blocks if any(_spans(s, line) for s in block)), [])
    return sorted(found, key=lambda s: (s.lineno, s.col_offset))


def between(source: str, first: int, last: int) -> list[ast.stmt]:
    """Simple statements that begin after line `first` and not after `last`."""
    found = [s for s in nodes_of(source) if isinstance(s, ast.stmt) and not blocks_of(s)]
    return [s for s in found if first < s.lineno <= last]


def block_of(source: str, statement: ast.stmt) -> list[ast.stmt]:
    """The block that has a statement in it; empty: it is not of this text."""
    spot = (statement.lineno, statement.col_offset)
    around = _blocks_around(source, statement.lineno)
    return next((block for block in around if any((s.lineno, s.col_offset) == spot for s in block)), [])


def behind(source: str, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that follow one in its block."""
    spot = (statement.lineno, statement.col_offset)
    return [s for s in block_of(source, statement) if (s.lineno, s.col_offset) > spot]


def _blocks_around(source: str, line: int) -> list[list[ast.stmt]]:
    """The blocks around a line, the outermost first."""
    tree = parse(source)
    found = [tree.body] if tree is not None else []
    for one in statements_at(source, line):
        found += blocks_of(one)
    return found


def own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at any depth of a body, in the order of the text, without those of functions and classes in it."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield statement
        for block in blocks_of(statement):
            yield from own_statements(block)


def beginning_at(source: str, line: int) -> list[ast.stmt]:
    """The simple statements that begin at a line: several, where ``;`` is between them."""
    return list(_simple_by_line(source).get(line, ()))


@lru_cache(maxsize=256)
def _simple_by_line(source: str) -> dict[int, list[ast.stmt]]:
    found: dict[int, list[ast.stmt]] = {}
    simple = [s for s in nodes_of(source) if isinstance(s, ast.stmt) and not blocks_of(s)]
    for statement in sorted(simple, key=lambda s: s.col_offset):
        found.setdefault(statement.lineno, []).append(statement)
    return found


def steps_of(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The simple statements in a statement, and the heads of the others as statements, in the order of the text."""
    yield from head_of(statement)
    for block in blocks_of(statement):
        for inner in block:
            yield from steps_of(inner)


def head_of(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A simple statement itself; the head of another as statements: what it assigns, and what it reads."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        yield ast.Assign(targets=[statement.target], value=statement.iter, lineno=statement.lineno)
    elif isinstance(statement, (ast.While, ast.If)):
        yield ast.Expr(statement.test, lineno=statement.lineno)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            named = [item.optional_vars] if item.optional_vars else []
            yield ast.Assign(targets=named, value=item.context_expr, lineno=statement.lineno)
    elif isinstance(statement, ast.Match):
        names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in captured(statement)]
        yield ast.Assign(targets=names, value=statement.subject, lineno=statement.lineno)
    elif not hasattr(statement, "body"):
        yield statement


def captured(node: ast.AST) -> set[str]:
    """The names that the patterns of a `match` assign: `h` in ``case (h, _)``."""
    found = set[str]()
    for part in ast.walk(node):
        if isinstance(part, (ast.MatchAs, ast.MatchStar)):
            found |= {part.name} if part.name is not None else set()
        elif isinstance(part, ast.MatchMapping):
            found |= {part.rest} if part.rest is not None else set()
    return found


def steps_of_all(tree: ast.Module) -> Iterator[ast.stmt]:
    """`steps_of` of everything in a cell, functions and classes included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for statement in node.body:
                yield from steps_of(statement)
