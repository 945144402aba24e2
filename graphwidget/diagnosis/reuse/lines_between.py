"""Whether a line runs between two calls: an edit at a line that the failing pass does not run has no effect.

A place has its innermost frame in a cell, the outermost one, and the pass of a loop. Frames between these, and code
without recorded lines, are not considered: for their lines the answer is no.
"""

from __future__ import annotations

import ast
import builtins
import re

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import at, lines_of
from graphwidget.model import BackwardCall, Place

__all__ = ["nothing_between", "runs_backward", "runs_between"]

# What makes a second run of the same backward another one: `.grad` was used, or cleared, or a hook was registered.
_USES = re.compile(r"\.grad\b|['\"]grad['\"]|zero_grad|clip_grad|\bgrads\b|register_|\bstep\(|\b(exec|eval)\(")

CellLine = tuple[int, int]  # cell, line
_LIBRARIES = ("math", "np", "numpy", "os", "plt", "random", "sys", "time", "torch")
_READING = {
    "item",
    "tolist",
    "numpy",
    "detach",
    "cpu",
    "size",
    "append",
    "format",
    "join",
    "mean",
    "sum",
    "float",
    "round",
}


def runs_between(setting: Setting, at: CellLine, since: Place | None = None) -> bool:
    """Whether the line `at` runs after `since` (the earlier call) and before the later call, as far as known."""
    a, b = since or setting.reuse.earlier.place, setting.reuse.later.place
    if a.run != b.run or a.run is None:
        return not _stands_after(setting, at, b)
    cell, line = at
    text = setting.text_of_cell(cell)
    here = _scope(text, line)
    if cell == b.outer_cell and b.outer_line is not None and here == _scope(text, b.outer_line):
        return _in_outermost_frame(text, line, a, b)
    if cell == b.cell and b.line is not None and here == _scope(text, b.line):
        return _in_calling_function(setting, text, line, a, b)
    return _made_something(setting, text, cell, here)


def nothing_between(setting: Setting) -> bool:
    """Whether it is known that nothing between the two calls used, cleared or changed what the earlier one computed.

    Both calls are statements of their own, of one block or of the top of cells.
    """
    a, b = (_statement_of(setting, call) for call in (setting.reuse.earlier, setting.reuse.later))
    if a is None or b is None or setting.reuse.writes_between:
        return False
    texts = [run.source for run in setting.reuse.record.runs.values()]
    between = _between(setting, a, b)
    return between is not None and not any(_uses_gradients(one, texts) for one in between)


def _statement_of(setting: Setting, call: BackwardCall) -> ast.stmt | None:
    """The statement that is only this call, with nothing but its root."""
    place = call.place
    text, line = setting.text_of_cell(place.cell), place.line or 0
    simple = source.beginning_at(text, line) or source.statements_at(text, line)[-1:]
    own = [one for one in simple if source.backward_root(ast.unparse(one)) is not None]
    return own[0] if len(simple) == len(own) == 1 and not call.create_graph and not _is_given(own[0]) else None


def _is_given(statement: ast.stmt) -> bool:
    """Whether a call passes a gradient: another one gives another result."""
    return any(isinstance(n, ast.keyword) and n.arg in ("gradient", "inputs", None) for n in ast.walk(statement))


def _between(setting: Setting, first: ast.stmt, second: ast.stmt) -> list[ast.stmt] | None:
    """The statements that ran between two: of their block, or of the cells from one to the other; None: unknown."""
    a, b = setting.reuse.earlier.place, setting.reuse.later.place
    texts = setting.text_of_cell(a.cell), setting.text_of_cell(b.cell)
    if a.run == b.run:
        same = a.cell == b.cell and a.iteration == b.iteration and [*map(at, a.stack)] == [*map(at, b.stack)]
        behind = source.behind(texts[0], first) if same else []
        ends = [i for i, one in enumerate(behind) if one.lineno == second.lineno]
        return behind[: ends[0]] if ends else None
    if a.run is None or b.run is None or any(_is_inside(text, one) for text, one in zip(texts, (first, second))):
        return None
    cells = setting.reuse.record.runs
    numbers = [n for n in cells if a.run < n < b.run]
    if len(numbers) != b.run - a.run - 1 or (a.cell, b.cell) != (a.outer_cell, b.outer_cell):
        return None
    trees = [source.parse(cells[n].source) for n in sorted(numbers)]
    last = source.parse(texts[1])
    if None in trees or last is None:
        return None
    begin = [one for one in last.body if one.lineno < second.lineno]
    return [*source.behind(texts[0], first), *(one for tree in trees if tree for one in tree.body), *begin]


def _is_inside(text: str, statement: ast.stmt) -> bool:
    """Whether a statement stands in a block, of a function or of anything else."""
    return len(source.statements_at(text, statement.lineno)) != 1


def _uses_gradients(statement: ast.stmt, texts: list[str]) -> bool:
    """Whether a statement, or what it calls, may use or change gradients: yes of a function that is not known."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return False
    known = [one for text in texts for one in source.nodes_of(text) if isinstance(one, ast.FunctionDef)]
    todo: list[ast.stmt] = [statement]
    seen: list[ast.stmt] = []
    while todo:
        one = todo.pop()
        seen.append(one)
        if _USES.search(ast.unparse(one)):
            return True
        for name in source.calls_in(one):
            own = [each for each in known if each.name == source.last_name(name)]
            if not own and not _looks_on(name):
                return True
            todo += [each for each in own if each not in seen and each not in todo]
    return False


def _looks_on(name: str) -> bool:
    """Whether what is called is Python's own, of a library that knows no gradients, or a method that reads values."""
    of_library = name.split(".", 1)[0] in _LIBRARIES and "." in name
    return hasattr(builtins, name) or of_library or source.last_name(name) in _READING


def _stands_after(setting: Setting, at: CellLine, later: Place) -> bool:
    """Whether a line at the top of the cell that made the later call stands behind it, and in no loop around it."""
    cell, line = at
    text = setting.text_of_cell(cell)
    if cell != later.outer_cell or later.outer_line is None or cell == setting.reuse.earlier.place.outer_cell:
        return False
    same_scope = _scope(text, line) == _scope(text, later.outer_line)
    return same_scope and line > later.outer_line and not _shared_loop(text, line, later.outer_line)


def _in_outermost_frame(text: str, line: int, a: Place, b: Place) -> bool:
    """`runs_between` for a line in the outermost frame, in which each call stands in one statement."""
    first, last = a.outer_line or 0, b.outer_line or 0
    if _next_pass(text, a, b):
        loop = source.loop_at(text, last)
        inside = loop is not None and loop.lineno <= first <= (loop.end_lineno or 0)
        return _shared_loop(text, line, last) or (not inside and first <= line <= last)
    return first != last and first <= line <= last


def _next_pass(text: str, a: Place, b: Place) -> bool:
    """Whether a loop of the outermost frame has gone on between two places."""
    loop = source.loop_at(text, b.outer_line or 0)
    if loop is None:
        return False
    direct = (b.cell, b.line) == (b.outer_cell, b.outer_line) and a.outer_line == b.outer_line
    return a.iteration != b.iteration or (direct and runs_backward(text, b.line))


def _in_calling_function(setting: Setting, text: str, line: int, a: Place, b: Place) -> bool:
    """`runs_between` for a line of the function that makes the later call."""
    outer = setting.text_of_cell(b.outer_cell)
    if _next_pass(outer, a, b) or a.outer_line != b.outer_line:
        return True  # the function has been called again, as a whole
    last = b.line or 0
    looped = _shared_loop(text, line, last)
    if (a.cell, _scope(text, a.line or 0)) != (b.cell, _scope(text, last)):
        return line <= last or looped
    if a.line != b.line and (a.line or 0) <= line <= last:
        return True
    # What calls backward itself has run twice; for another line, a loop of its function must have gone on.
    again = a.line == b.line and runs_backward(text, b.line)
    if source.loop_at(text, last) is None:
        return again
    return looped and (again or a.iteration != b.iteration)


def _made_something(setting: Setting, text: str, cell: int, scope: ast.stmt | None) -> bool:
    """Whether a line of the same function made a node, after the earlier call, that the later one reaches."""
    graph, since = setting.reuse.graph, setting.reuse.earlier.newest_seq
    for index in setting.reuse.reached:
        place = graph.place_of(index) if graph.seq[index] >= since else None
        if any(at == cell and _scope(text, line) == scope for at, line in lines_of(place)):
            return True
    return False


def runs_backward(text: str, line: int | None) -> bool:
    """Whether the statement at a line calls backward itself: ``loss.backward()``, ``self.manual_backward(loss)``."""
    if line is None:
        return False
    found = [*source.statements_at(text, line)[-1:], *source.beginning_at(text, line)]
    called = (name for s in found if not hasattr(s, "body") for name in source.calls_in(s))
    return any(name.endswith("backward") or name.rsplit(".", 1)[-1] == "grad" for name in called)


def _shared_loop(text: str, line: int, other: int) -> bool:
    """Whether a loop has both lines in its body."""
    around = source.loops_around(text, other)
    return any(loop.lineno < line <= (loop.end_lineno or 0) for loop in around)


def _scope(text: str, line: int) -> ast.stmt | None:
    found = source.function_at(text, line)
    return found[1] if found is not None else None
