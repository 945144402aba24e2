"""Places in which a program computes something only once: there it is to be computed each time.

The `__init__` of a class, the function around a closure, a generator before its loop, the body of a test such as
``if key not in cache:``, and a function with a decorator such as ``@lru_cache``.
"""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.rerun.rerun import (
    AT_START,
    IN_ITS_LOOP,
    Rerun,
    Statement,
    begins_on_head_line,
    first_step,
    quoted,
)
from graphwidget.diagnosis.fixes.rerun.statements import places_to_rerun
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source import text_edit
from graphwidget.model import CellRun, Place, TextEdit

__all__ = ["in_special_place"]


def in_special_place(setting: Setting) -> Rerun | None:
    """The rerun in one of these places, if the carrier was made in one."""
    for special in (_in_init, _in_closure, _in_generator, _under_a_test, _under_a_decorator):
        plan = special(setting)
        if plan is not None:
            return plan
    return None


def _in_init(setting: Setting) -> Rerun | None:
    """`self.table = ...` in `__init__`: compute it in `forward`."""
    maker = _maker(setting)
    if maker is None:
        return None
    made, text, around = maker
    function = source.function_at(text, made.line or 0)
    if function is None or function[0] is None or function[1].name != "__init__":
        return None
    methods = {s.name: s for s in function[0].body if isinstance(s, ast.FunctionDef)}
    forward = methods.get("forward") or methods.get("__call__")
    body = _made_in(setting, function[1], made.cell)
    if forward is None or not body or made.cell is None or begins_on_head_line(forward):
        return None
    return _put_before(made.cell, text, body, first_step(forward), AT_START, forward.name)


def _in_closure(setting: Setting) -> Rerun | None:
    """A function closes over what the function around it has made: compute it in the inner one."""
    maker = _maker(setting)
    used = next(iter(setting.reuse.uses_by(setting.reuse.later)), None)
    if maker is None or used is None or used.line is None or used.cell != maker[0].cell or used.cell is None:
        return None
    made, text, around = maker
    inner = [s for s in source.statements_at(text, used.line) if isinstance(s, ast.FunctionDef)]
    outer = [s for s in around if isinstance(s, ast.FunctionDef)]
    if not outer or len(inner) < 2 or outer[-1] not in inner[:-1] or begins_on_head_line(inner[-1]):
        return None
    body = [s for s in _made_in(setting, outer[-1], made.cell) if s not in inner]
    return _put_before(used.cell, text, body, first_step(inner[-1]), AT_START, inner[-1].name) if body else None


def _in_generator(setting: Setting) -> Rerun | None:
    """A generator makes once what all its items use: make it in its loop."""
    maker = _maker(setting)
    function = source.function_at(maker[1], maker[0].line or 0) if maker is not None else None
    if maker is None or function is None or maker[0].cell is None:
        return None
    loops = [s for s in function[1].body if isinstance(s, (ast.For, ast.While)) and _yields(s)]
    made = _made_in(setting, function[1], maker[0].cell)
    body = [s for s in made if loops and s.lineno < loops[0].lineno]
    if not body or begins_on_head_line(loops[0]):
        return None
    return _put_before(maker[0].cell, maker[1], body, loops[0].body[0], IN_ITS_LOOP, function[1].name)


def _under_a_test(setting: Setting) -> Rerun | None:
    """``if key not in cache:`` or ``if self.x is None:`` around what made the carrier: it is computed only once."""
    maker = _maker(setting)
    if maker is None:
        return None
    made, text, around = maker
    tests = [s for s in around if isinstance(s, ast.If) and _tests_whether_there(s.test)]
    if not tests or made.cell is None:
        return None
    line = source.line_text(text, tests[-1].lineno)
    test = ast.unparse(tests[-1].test)
    return Rerun(
        f"Compute it in each pass: drop the test `{test}` (In[{made.cell}], line {tests[-1].lineno}).",
        (made.cell, tests[-1].lineno),
        text_edit.replace_node(made.cell, text, tests[-1].test, "True") if line.startswith("if ") else (),
    )


def _under_a_decorator(setting: Setting) -> Rerun | None:
    """``@lru_cache`` on the function, or ``@cached_property`` on the method, that made the carrier: run only once."""
    maker = _maker(setting)
    functions = [s for s in maker[2] if isinstance(s, ast.FunctionDef)] if maker is not None else []
    kept = [d for d in functions[-1].decorator_list if "cache" in ast.unparse(d)] if functions else []
    if maker is None or maker[0].cell is None or not kept or kept[0].lineno != kept[0].end_lineno:
        return None
    cell, text, decorator = maker[0].cell, maker[1], kept[0]
    line = source.line_text(text, decorator.lineno)
    if "cached_property" in line:
        what = f"write `@property` instead of `{line}`"
        edits = text_edit.replace_node(cell, text, decorator, "property")
    else:
        what = f"drop `{line}`"
        edits = (TextEdit((decorator.lineno, 0), (decorator.lineno + 1, 0), "", cell),)
    here = f"In[{cell}], line {decorator.lineno}"
    return Rerun(f"Compute it in each pass: {what} ({here}).", (cell, decorator.lineno), edits)


def _maker(setting: Setting) -> tuple[Place, str, list[ast.stmt]] | None:
    """Where the carrier was made, the text of that cell, and the statements around the place."""
    made = setting.reuse.carrier_place
    if made is None or made.cell is None or made.line is None:
        return None
    text = setting.text_of_cell(made.cell)
    around = source.statements_at(text, made.line)
    return (made, text, around) if around else None


def _made_in(setting: Setting, function: ast.FunctionDef, cell: int | None) -> list[ast.stmt]:
    """The statements of a function's body that made what has to be fresh."""
    lines = {p.line or 0 for p in places_to_rerun(setting, False) if p is not None and p.cell == cell}
    return [s for s in function.body if any(s.lineno <= line <= (s.end_lineno or 0) for line in lines)]


def _put_before(cell: int, text: str, body: list[ast.stmt], first: ast.stmt, sentence: str, function: str) -> Rerun:
    """The statements are written again in front of another one of their cell."""
    new = [line for statement in body for line in text_edit.statement_lines(text, statement)]
    what = quoted([Statement(CellRun(0, cell, text), statement) for statement in body])
    return Rerun(
        sentence.format(what=what, function=function),
        (cell, first.lineno),
        text_edit.insert_before(cell, text, first, new),
        tuple(new),
    )


def _yields(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(statement))


def _tests_whether_there(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare):
        kind = type(test.ops[0])
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return kind is ast.NotIn or (kind is ast.Is and none)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
