"""Functions and classes in program text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from graphwidget.diagnosis.source.syntax.statements import main_function, nodes_of, own_statements, parse, statements_at


def function_at(source: str, line: int) -> tuple[ast.ClassDef | None, ast.FunctionDef] | None:
    """The innermost function whose body has the line, with the class that it is a method of."""
    found: tuple[ast.ClassDef | None, ast.FunctionDef] | None = None
    around: ast.ClassDef | None = None
    for statement in statements_at(source, line):
        if isinstance(statement, ast.ClassDef):
            around = statement
        elif isinstance(statement, ast.FunctionDef):
            found, around = (around, statement), None
    return found


def bodies_around(source: str, line: int) -> list[list[ast.stmt]]:
    """The bodies in which a name at a line may be bound, the nearest first: of functions, then of the text itself."""
    tree = parse(source)
    functions = [one.body for one in statements_at(source, line) if isinstance(one, ast.FunctionDef)]
    return [*functions[::-1], tree.body if tree is not None else []]


def sharing(body: list[ast.stmt], name: str) -> Iterator[ast.FunctionDef]:
    """The functions in a body, at any depth, that declare a name ``nonlocal`` or ``global``: they bind it outside."""
    functions = (node for one in body for node in ast.walk(one) if isinstance(node, ast.FunctionDef))
    return (function for function in functions if name in _declared_outside(function))


def sharing_in(source: str, name: str) -> Sequence[ast.FunctionDef]:
    """The same for a whole text."""
    return _sharing_in(source).get(name, ())


@lru_cache(maxsize=256)
def _sharing_in(source: str) -> Mapping[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for function in (node for node in nodes_of(source) if isinstance(node, ast.FunctionDef)):
        for name in _declared_outside(function):
            found.setdefault(name, []).append(function)
    return found


def _declared_outside(function: ast.FunctionDef) -> set[str]:
    declared = (one for one in own_statements(function.body) if isinstance(one, (ast.Global, ast.Nonlocal)))
    return {name for one in declared for name in one.names}


def qualified_name_at(source: str, line: int) -> str | None:
    """The innermost function around a line as ``Encoder.forward``; None: it is in none."""
    main = main_function(source)
    names = [main.function.name] if main is not None and main.holds(line) else []
    known = len(names)
    for statement in statements_at(source, line):
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.append(statement.name)
            if not isinstance(statement, ast.ClassDef) and statement.body[0].lineno <= line:
                known = len(names)
    return ".".join(names[:known]) or None


def method_at(source: str, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line, if its first argument is `self`."""
    found = function_at(source, line)
    return found[1] if found is not None and [a.arg for a in found[1].args.args][:1] == ["self"] else None


@lru_cache(maxsize=256)
def _defined_in(source: str) -> Mapping[str, list[ast.FunctionDef | ast.ClassDef]]:
    found: dict[str, list[ast.FunctionDef | ast.ClassDef]] = {}
    for node in nodes_of(source):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
    return found


def defined(source: str, name: str) -> Sequence[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a text that are called `name`, at any depth."""
    return _defined_in(source).get(name, ())


@lru_cache(maxsize=256)
def calls_by_name(source: str) -> Mapping[str, list[ast.Call]]:
    """The calls of a text by the last name of what is called: ``loss.backward()`` under ``backward``."""
    found: dict[str, list[ast.Call]] = {}
    for node in nodes_of(source):
        if isinstance(node, ast.Call):
            found.setdefault(ast.unparse(node.func).rsplit(".", 1)[-1], []).append(node)
    return found


def function_called(source: str, name: str) -> ast.FunctionDef | None:
    """The last function of a cell that is called `name`."""
    found = [s for s in nodes_of(source) if isinstance(s, ast.FunctionDef) and s.name == name]
    return found[-1] if found else None


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """The first line of a definition: that of its first decorator, if it has one."""
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def functions_of(source: str, name: str) -> list[ast.FunctionDef]:
    """The function of a cell that is called `name`, or what an object of the class `name` does when it is called."""
    function = function_called(source, name)
    classes = [s for s in nodes_of(source) if isinstance(s, ast.ClassDef) and s.name == name]
    inside = [s for found in classes for s in found.body if isinstance(s, ast.FunctionDef)]
    return [*([function] if function else []), *(s for s in inside if s.name in ("forward", "__call__"))]


def fixed_fields(source: str) -> tuple[set[str], set[str]]:
    """Fields of named tuples, and of frozen dataclasses, that a cell defines: nothing can be assigned to them."""
    tuples, frozen = set[str](), set[str]()
    for node in nodes_of(source):
        if isinstance(node, ast.ClassDef):
            fields = {ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)}
            if any(ast.unparse(base).endswith("NamedTuple") for base in node.bases):
                tuples |= fields
            elif any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list):
                frozen |= fields
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple") and len(node.args) > 1:
            given = node.args[1]
            texts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
            for one in (part.value for part in texts if isinstance(part, ast.Constant)):
                tuples.update(str(one).replace(",", " ").split())
    return tuples, frozen


def fields_of(source: str, name: str) -> tuple[str, ...]:
    """The fields of a dataclass or named tuple that a text defines, in the order of its arguments; empty: none."""
    for node in defined(source, name):
        if isinstance(node, ast.ClassDef) and (_is_named_tuple(node) or is_dataclass(node)):
            return tuple(ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign))
    for call in calls_by_name(source).get("namedtuple", ()):
        if len(call.args) > 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == name:
            given = call.args[1]
            texts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
            words = [str(one.value).replace(",", " ").split() for one in texts if isinstance(one, ast.Constant)]
            return tuple(word for some in words for word in some)
    return ()


def _is_named_tuple(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("NamedTuple") for base in node.bases)


def is_dataclass(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass."""
    return any(re.search(r"\bdataclass\b", ast.unparse(one)) for one in node.decorator_list)
