"""Empty the container that keeps the old part, once its elements have been used.

A simulation on the graph cannot show whether that helps: a loop over an emptied list ends early, without an error. Nor
can a trial, where a pass asks the list for its best element before it adds one: it runs, and has forgotten the others.
So a container is emptied only if the program surely fills it again before it reads it. This is read from the text; in
doubt there is no such fix.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.cuts.between_passes import after_call
from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.containers import EMPTY
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import lines_of
from graphwidget.model import Fix

_FILLING = ("append", "appendleft", "extend", "insert")
_DEPTH = 4  # nested function calls that are followed


def makes_sense(case: Case) -> bool:
    """Whether the carriers are elements of one container that each pass fills again, before it reads it."""
    container = case.reuse.container
    return container is not None and _is_refilled(case.setting, local(container))


def propose(case: Case) -> Fix | None:
    """``memory.clear()`` after the earlier call."""
    container, reuse = local(case.reuse.container or Carrier(case.setting).name), case.reuse
    clear, at = f"{container}.clear()", after_call(case.setting, reuse.earlier, reuse.later.carriers[:1])
    edits: Edits = ()
    if at is not None:
        edits = text_edit.insert_after(at[0], case.setting.text_of_cell(at[0]), at[1], [clear])
    text = f"Empty `{container}` after {earlier_call.named(reuse.earlier)}: `{clear}`."
    price = "What it holds is used once."
    return Fix(id="clear_buffer", text=text, verified=case.works_if_fresh, at=at, price=price, edits=edits)


def _is_refilled(setting: Setting, container: str) -> bool:
    """Whether a container can be emptied after the earlier call.

    The code that runs again is the loop around the call, or the cell that was run again. It has to put something in
    before it reads the container; a loop over the container, or one that runs while it has something, would end early.
    """
    texts = [run.source for run in setting.reuse.record.runs.values()]
    if not _begins_empty(texts, container):
        return False
    uses = _Uses(texts, container.rsplit(".", 1)[-1])
    loops = list(_loops(setting))
    if any(uses.mentions(_head(loop)) for loop in loops):
        return False
    again = loops[-1].body if loops else _cell_again(setting)
    return uses.first(again) == "fill"


def _begins_empty(texts: Collection[str], container: str) -> bool:
    """Whether all that the cells assign to such a name is an empty list, dict or queue."""
    last = container.rsplit(".", 1)[-1]
    given = [pair for text in texts for pair in syntax.assigned_as(text, last)]
    values = [syntax.given_to(s, t)[0] if isinstance(s, ast.Assign) else getattr(s, "value", None) for s, t in given]
    shown = [ast.unparse(value) for value in values if value is not None]
    return bool(shown) and all(one in EMPTY or one.split("(", 1)[0].endswith("deque") for one in shown)


def _loops(setting: Setting) -> Iterator[ast.For | ast.While]:
    """The loops around both calls: the innermost one of each function that was running, that of the call first."""
    if not setting.in_loop:
        return
    place = setting.reuse.later.place
    run = setting.run_of(place)
    lines = [(setting.text_of_cell(cell), line) for cell, line in reversed(lines_of(place))]
    for cell, line in dict.fromkeys((*lines, (run.source if run else "", place.outer_line))):
        around = syntax.statements_at(cell, line)[:-1] if line is not None else []
        yield from (s for s in around if isinstance(s, (ast.For, ast.While)))


def _head(loop: ast.For | ast.While) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.test


def _cell_again(setting: Setting) -> list[ast.stmt]:
    run = setting.run_of(setting.reuse.later.place)
    tree = syntax.parse(run.source) if run is not None and setting.same_cell_again else None
    return tree.body if tree is not None else []


class _Uses:
    """The order in which statements fill and read a container, through the functions that they call."""

    def __init__(self, texts: Collection[str], name: str) -> None:
        self.texts, self.name = texts, name

    def mentions(self, node: ast.AST) -> bool:
        """Whether a node names the container, as a variable or an attribute."""
        return any(self.name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in ast.walk(node))

    def first(self, body: Collection[ast.stmt]) -> str | None:
        """What comes first in some statements, ``fill`` or ``read``; None: neither."""
        return next(self._in_order(body), None)

    def _in_order(self, body: Collection[ast.stmt], depth: int = 0) -> Iterator[str]:
        for statement in body:
            for step in syntax.steps_of(statement):
                yield from self._of_step(step, depth)

    def _of_step(self, step: ast.stmt, depth: int) -> Iterator[str]:
        for called in syntax.calls_in(step) if depth < _DEPTH else ():
            for function in self._functions(called.rsplit(".", 1)[-1]):
                yield from self._in_order(function.body, depth + 1)
        if self.mentions(step):
            yield "fill" if self._fills(step) else "read"

    def _functions(self, name: str) -> list[ast.FunctionDef]:
        return [function for text in self.texts for function in syntax.functions_of(text, name)]

    def _fills(self, step: ast.stmt) -> bool:
        """Whether all that a step does to the container is to put something in."""
        named = [n for n in ast.walk(step) if self.name in (getattr(n, "id", None), getattr(n, "attr", None))]
        calls = [n.func for n in ast.walk(step) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        filled = [f.value for f in calls if f.attr in _FILLING]
        if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add):
            filled.append(step.target)
        return len(named) == 1 and named[0] in filled
