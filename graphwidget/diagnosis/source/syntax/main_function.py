"""The function that is all of a program: ``def main(): ...`` with ``if __name__ == "__main__": main()``."""

from __future__ import annotations

import ast
from typing import NamedTuple

__all__ = ["Main", "main_of", "opened"]


class Main(NamedTuple):
    """The function, and the line that calls it."""

    function: ast.FunctionDef
    called_at: int

    def holds(self, line: int | None) -> bool:
        """Whether a line is one of its body."""
        body = self.function.body
        return line is not None and body[0].lineno <= line <= (body[-1].end_lineno or 0)


def main_of(tree: ast.Module) -> Main | None:
    """The only function that a program calls by a line of its own, without arguments, once, and nowhere else."""
    calls = [call for one in _own_lines(tree) if (call := _plain_call(one)) is not None]
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    found = [(call, functions[name]) for call in calls if (name := ast.unparse(call.func)) in functions]
    if len(found) != 1:
        return None
    call, function = found[0]
    arguments = function.args
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == function.name]
    takes = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    if any(takes) or function.decorator_list or len(named) != 1 or _is_generator(function):
        return None
    return Main(function, call.lineno)


def opened(tree: ast.Module, main: Main) -> ast.Module:
    """The program with the body of that function in place of its definition: its variables are the program's."""
    body = [each for one in tree.body for each in (main.function.body if one is main.function else [one])]
    return ast.Module(body, tree.type_ignores)


def _own_lines(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a program that stand in no block, and those under ``if __name__ == "__main__":``."""
    found: list[ast.stmt] = []
    for one in tree.body:
        guard = isinstance(one, ast.If) and any(
            isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(one.test)
        )
        found += one.body if isinstance(one, ast.If) and guard else [one]
    return found


def _plain_call(statement: ast.stmt) -> ast.Call | None:
    """``main()``, ``result = main()`` or ``sys.exit(main())``: the call without arguments."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("sys.exit", "exit") and len(value.args) == 1:
        value = value.args[0]
    plain = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args and not value.keywords
    return value if plain and isinstance(value, ast.Call) else None


def _is_generator(function: ast.FunctionDef) -> bool:
    """Whether a function yields itself; those inside it may."""
    work: list[ast.AST] = list(function.body)
    while work:
        node = work.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            work.extend(ast.iter_child_nodes(node))
    return False
