"""The line that keeps a carrier: ``self.cache[key] = value``, ``self.h = h``, ``global h; h = f(x)``, a decorator.

Or that computes it from its previous value in a generator that waits: no variable in sight holds it then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from graphwidget.diagnosis.source import containers, syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, is_hidden, lines_of, place_of, spoken
from graphwidget.model import CellRun, Fix, Place, Record

__all__ = ["leads_to_store", "stored_at", "unseen_carrier"]

_CONSTRUCTORS = ("__init__", "__post_init__")


def stored_at(record: Record, paths: Iterable[str], made: Place | None = None) -> Place | None:
    """The line of the program that gives the first of these paths its value; None: there is none, or several.

    Of several, the one that was running when the tensor was `made`.
    """
    path = next((one for one in map(_written, paths) if is_code(one)), None)
    if path is None:
        return None
    cells = Cells.of(record)
    running = {cells.beginning(spot) for spot in lines_of(made)}
    stores = {(run.run, line): run for run in cells.latest for line in _stores(run, path, cells.texts.values())}
    found = [one for one in stores.items() if (one[1].cell, one[0][1]) in running]
    found = found or [one for one in stores.items() if not _in_constructor(one[1], one[0][1])]
    if not stores:
        found = [((run.run, line), run) for run in cells.latest for line in _decorators(run.source, path)]
    if len(found) != 1:
        return None
    ((_, line), run), *_ = found
    return place_of(run, line)


def _decorators(text: str, path: str) -> list[int]:
    """The lines of what decorates the methods of that name: a value that no line stores is what one of them keeps."""
    name = path.rpartition(".")[2] if "." in path else ""
    defined = (node for node in syntax.nodes_of(text) if isinstance(node, ast.FunctionDef) and node.name == name)
    return [one.decorator_list[0].lineno for one in defined if one.decorator_list]


def _written(path: str) -> str:
    """A path as the lines write it that use it: ``kept[n]`` of a variable that only a closure has.

    An element whose key no text names, ``list(kept.values())[0]``, is one by some key.
    """
    path = spoken(path) if is_hidden(path) else local(path)
    return re.sub(r"^list\(([\w.]+)\.values\(\)\)\[\d+\]", r"\1[_]", path)


def leads_to_store(record: Record, made: Place, stored: Place) -> bool:
    """Whether the code that made a tensor goes on to the line that stores it: there, or in a function that it calls."""
    cells, spot = Cells.of(record), at(stored)
    inside = syntax.function_at(cells.text(spot[0]), spot[1]) if spot is not None else None
    if spot is None:
        return False
    name = inside[1].name if inside is not None else ""
    if inside is not None and inside[0] is not None and name in _CONSTRUCTORS:
        name = inside[0].name
    for cell, line in lines_of(made):
        text = cells.text(cell)
        here = syntax.function_at(text, line)
        if cell == spot[0] and here is not None and spot[1] in {one.lineno for one in here[1].decorator_list}:
            return True
        if cell == spot[0] and here == inside:
            if line <= spot[1]:
                return True
        elif name and _calls(text, line, name):
            return True
    return False


def unseen_carrier(record: Record, made: Place | None, fixes: Sequence[Fix]) -> tuple[str, Place] | None:
    """The variable that a loop computes from its previous value, and its line; None: none, or no fix detaches it.

    Parameters
    ----------
    made
        The line that made the old part, with the lines that were running around it: ``state = step(state)``.
    """
    for place in (made, *reversed(made.stack)) if made is not None else ():
        spot = at(place)
        text = Cells.of(record).text(spot[0]) if spot is not None else ""
        found = syntax.statements_at(text, spot[1])[-1:] if spot is not None else []
        loop = syntax.loop_at(text, spot[1]) if found and spot is not None else None
        carried = syntax.carried(loop) if loop is not None else set()
        for name in syntax.targets(found[0]) if loop is not None else ():
            if name in carried and any(_detaches(fix, name) for fix in fixes):
                return name, place
    return None


def _detaches(fix: Fix, name: str) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\.detach\(", edit.new) for edit in fix.edits)


def _calls(text: str, line: int, name: str) -> bool:
    """Whether the function of a line, or the code around all functions, calls another one there or further down."""
    here = syntax.function_at(text, line)
    last = (here[1].end_lineno or line) if here is not None else len(syntax.lines_of(text))
    calls = (call.lineno for call in syntax.calls_by_name(text).get(name, ()))
    return any(line <= one <= last and syntax.function_at(text, one) == here for one in calls)


def _stores(run: CellRun, path: str, texts: Iterable[str]) -> Iterator[int]:
    """The first lines of the statements of a run that give a path its value."""
    holder, bracket, rest = path.partition("[")
    if bracket:
        yield from containers.put_in(run.source, holder, f"[{rest}", texts)
    for node in _assigning(run.source, holder):
        if node.value is None or _shortens(node):
            continue
        if containers.may_hold(node.value, bracket + rest):
            yield node.lineno


def _shortens(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> bool:
    """``self.ets = self.ets[-3:]``: what it keeps another line has stored."""
    value = node.value
    is_slice = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
    return is_slice and isinstance(value, ast.Subscript) and ast.unparse(value.value) in syntax.targets(node)


def _assigning(text: str, holder: str) -> Iterator[ast.Assign | ast.AnnAssign | ast.AugAssign]:
    """The assignments to an attribute of this name, or in functions to a variable that they have from outside."""
    _, dot, name = holder.rpartition(".")
    within = None if dot else syntax.sharing_in(text, name)
    for node in syntax.nodes_of(text):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            continue
        if within is not None:
            here = syntax.function_at(text, node.lineno)
            if name in syntax.targets(node) and here is not None and here[1] in within:
                yield node
        elif name in {one.rpartition(".")[2] for one in syntax.targets(node) if "." in one}:
            yield node


def _in_constructor(run: CellRun, line: int) -> bool:
    inside = syntax.function_at(run.source, line)
    return inside is not None and inside[1].name in _CONSTRUCTORS
