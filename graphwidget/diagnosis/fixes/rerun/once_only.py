"""Code that runs once and keeps what it made: under ``if key not in cache:``, or a decorator such as `lru_cache`."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.fixes.rerun.rerun import Rerun
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import short
from graphwidget.model import Place, TextEdit

__all__ = ["each_time", "has_long_strings", "keeps"]


def each_time(made: Place, text: str, around: list[ast.stmt]) -> Rerun | None:
    """The edit after which such code runs each time; None: no such code is around a line.

    Parameters
    ----------
    made, text, around
        A line, the text of its cell, and the statements around it, outermost first.
    """
    for special in (_under_a_test, _under_an_except, _behind_a_return, _under_a_decorator):
        plan = special(made, text, around)
        if plan is not None:
            return plan
    return None


def keeps(text: str, statement: ast.stmt) -> bool:
    """Whether a statement stores what it makes for later calls: its function asks for it, or has a decorator."""
    found = source.function_at(text, statement.lineno)
    if found is None:
        return False
    if any("cache" in ast.unparse(one) for one in found[1].decorator_list):
        return True
    own = list(source.own_statements(found[1].body))
    passed_on = [one for one in own if set(source.targets(statement)) & source.names_read(one)]  # ``table[n] = made``
    tests = [one.test for one in own if isinstance(one, ast.If)]
    asked = {path for test in tests for path in _read_by(own, test)}
    words = [n.value for test in tests for n in ast.walk(test) if isinstance(n, ast.Constant)]
    asked |= {f"self.{word}" for word in words if isinstance(word, str)}  # ``hasattr(self, "kept")``
    return bool(_lasting(found[1], _stored([statement, *passed_on]), [statement, *passed_on]) & asked)


def _lasting(function: ast.FunctionDef, stored: set[str], statements: list[ast.stmt]) -> set[str]:
    """Of what statements store in, that which is there in the next call: no variable of the function itself."""
    declared = {
        name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    plain = {name for one in statements for name in source.targets(one) if name.isidentifier()}
    return stored - (plain - declared)


def _stored(statements: list[ast.stmt]) -> set[str]:
    """What some statements store in: an attribute, a global, a container, by its path."""
    return {re.split(r"[\[(]", name)[0] for one in statements for name in source.targets(one)} - {""}


def _read_by(own: list[ast.stmt], expression: ast.expr) -> set[str]:
    """The paths that an expression of a function reads, also by variables: ``found = table.get(n)``."""
    names = source.names_in(expression)
    made = [one for one in own if isinstance(one, ast.Assign) and names.intersection(source.targets(one))]
    return {path for one in (ast.Expr(expression), *made) for path in source.paths_read(one)}


def _under_a_test(made: Place, text: str, around: list[ast.stmt]) -> Rerun | None:
    """``if key not in cache:`` or ``if self.x is None:`` around what made the carrier: it is computed only once."""
    tests = [(s, test) for s in around if isinstance(s, ast.If) and (test := _test_whether_there(s.test)) is not None]
    if not tests or made.cell is None:
        return None
    block, test = tests[-1]
    if _asks_for_an_argument(text, block, test):
        return None
    line = source.line_text(text, block.lineno)
    return Rerun(
        f"Compute it in each pass: drop the test `{ast.unparse(test)}` (In[{made.cell}], line {block.lineno}).",
        (made.cell, block.lineno),
        _without_test(made.cell, text, block, test) if line.startswith("if ") else (),
    )


def _asks_for_an_argument(text: str, block: ast.If, test: ast.expr) -> bool:
    """``if past is None:`` of an argument: the caller decides, and nothing is kept from one call to the next."""
    found = source.function_at(text, block.lineno)
    asked = test.left if isinstance(test, ast.Compare) else test.operand if isinstance(test, ast.UnaryOp) else test
    if found is None or not isinstance(asked, ast.Name):
        return False
    arguments = (*found[1].args.posonlyargs, *found[1].args.args, *found[1].args.kwonlyargs)
    kept_in = [one for one in source.own_statements(found[1].body) if asked.id in source.names_read(one)]
    lasts = any(not name.isidentifier() for one in kept_in for name in source.targets(one))
    return asked.id in {one.arg for one in arguments} and not lasts


def _without_test(cell: int, text: str, block: ast.If, test: ast.expr) -> Edits:
    """What an `if` runs, without the test; or the `if` with the rest of its test: ``if ready and x is None:``."""
    whole = next((one for one in ast.walk(block.test) if isinstance(one, ast.BoolOp) and test in one.values), None)
    if test is not block.test:
        rest = [one for one in whole.values if one is not test] if whole is not None else []
        return text_edit.replace_node(
            cell, text, test if whole is None else whole, " and ".join(map(ast.unparse, rest))
        )
    if has_long_strings(block.body):
        return text_edit.replace_node(cell, text, test, "True")  # its further lines must stay as they are
    return text_edit.replace_node(cell, text, block, "\n".join(_body(text, block)))


def _under_an_except(made: Place, text: str, around: list[ast.stmt]) -> Rerun | None:
    """``try: return kept[key]``, and behind its `except` what made the carrier and stores it in `kept`."""
    line = made.line or 0
    for block in (one for one in reversed(around) if isinstance(one, ast.Try) and not one.orelse and not one.finalbody):
        handler = block.handlers[0]
        looks, inside = block.body[0], handler.body[0].lineno <= line <= (handler.end_lineno or 0)
        if len(block.handlers) > 1 or len(block.body) > 1 or not inside or handler.name or made.cell is None:
            continue
        value = looks.value if isinstance(looks, (ast.Return, ast.Assign)) else None
        if not isinstance(value, (ast.Subscript, ast.Attribute)) or has_long_strings(handler.body):
            continue
        held = ast.unparse(value.value if isinstance(value, ast.Subscript) else value)
        if held in _stored(list(source.own_statements(handler.body))):
            here = f"In[{made.cell}], line {block.lineno}"
            sentence = f"Compute it in each pass: drop the `try` ({here}), which takes what an earlier one made."
            edits = text_edit.replace_node(made.cell, text, block, "\n".join(_body(text, handler)))
            return Rerun(sentence, (made.cell, block.lineno), edits)
    return None


def has_long_strings(body: list[ast.stmt]) -> bool:
    """Whether statements have strings of several lines, which must stay as they are."""
    strings = (n for one in body for n in ast.walk(one) if isinstance(n, (ast.Constant, ast.JoinedStr)))
    return any(one.lineno != one.end_lineno for one in strings)


def _body(text: str, block: ast.If | ast.ExceptHandler) -> list[str]:
    """The lines that an `if` or an `except` runs, with the comments between them, as if they stood at its beginning."""
    first, lines = block.body[0], source.lines_of(text)
    if first.lineno == block.lineno:
        return list(map(ast.unparse, block.body))
    depth = len(lines[first.lineno - 1]) - len(lines[first.lineno - 1].lstrip())
    head = next(n for n in range(block.lineno, first.lineno) if lines[n - 1].split("#")[0].rstrip().endswith(":"))
    return [
        line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines[head : block.body[-1].end_lineno]
    ]


def _behind_a_return(made: Place, text: str, around: list[ast.stmt]) -> Rerun | None:
    """``if self.kept is not None: return self.kept`` before the line that made it, of a function that stores it."""
    found = source.function_at(text, made.line or 0)
    if found is None or made.cell is None:
        return None
    own = list(source.own_statements(found[1].body))
    stored = _stored([one for one in own if not all(map(str.isidentifier, source.targets(one)))])
    for block in (one for one in found[1].body if isinstance(one, ast.If) and one.lineno < (made.line or 0)):
        last = block.body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        if not block.orelse and value is not None and stored & _read_by(own, value):
            head = source.line_text(text, block.lineno).rstrip(":")
            here = f"In[{made.cell}], line {block.lineno}"
            sentence = f"Compute it in each pass: drop {short(head)} ({here}), which returns what an earlier one made."
            return Rerun(sentence, (made.cell, block.lineno), text_edit.remove(made.cell, text, block))
    return None


def _under_a_decorator(made: Place, text: str, around: list[ast.stmt]) -> Rerun | None:
    """``@lru_cache`` on the function, or ``@cached_property`` on the method, that made the carrier: run only once."""
    functions = [s for s in around if isinstance(s, ast.FunctionDef)]
    kept = [d for d in functions[-1].decorator_list if "cache" in ast.unparse(d)] if functions else []
    if made.cell is None or not kept or kept[0].lineno != kept[0].end_lineno:
        return None
    cell, text, decorator = made.cell, text, kept[0]
    line = source.line_text(text, decorator.lineno)
    if "cached_property" in line:
        what = f"write `@property` instead of `{line}`"
        edits = text_edit.replace_node(cell, text, decorator, "property")
    else:
        what = f"drop `{line}`"
        edits = (TextEdit((decorator.lineno, 0), (decorator.lineno + 1, 0), "", cell),)
    here = f"In[{cell}], line {decorator.lineno}"
    return Rerun(f"Compute it in each pass: {what} ({here}).", (cell, decorator.lineno), edits)


def _test_whether_there(test: ast.expr) -> ast.expr | None:
    """The part of a test that asks whether something was made before: all of it, beside an ``or``."""
    if isinstance(test, ast.BoolOp):
        parts = [part for one in test.values if (part := _test_whether_there(one)) is not None]
        return None if not parts else test if isinstance(test.op, ast.Or) else parts[0]
    if isinstance(test, ast.Compare):
        kind = type(test.ops[0])
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return test if kind is ast.NotIn or (kind is ast.Is and none) else None
    return test if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
