"""Fixes for graphs that pile up in one chain: what each pass computes of the one before is cut where it does so."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphwidget.diagnosis.fixes.piles.joined_passes import joining_line
from graphwidget.diagnosis.fixes.piles.reads import latest_first, needed
from graphwidget.diagnosis.fixes.piles.stored_too import UNLESS
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.containers import EMPTY
from graphwidget.diagnosis.source.detaching import detached
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, outer_at, short
from graphwidget.model import CellRun, Fix, Record

if TYPE_CHECKING:
    from graphwidget.diagnosis.findings.piles import Pile

__all__ = ["NONE", "carried_names", "cut_each_time"]

NONE = "No gradient flows back through it."
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.IfExp, ast.BoolOp)


def _may_assign(pile: Pile, run: CellRun, statement: ast.stmt) -> bool:
    """Whether a statement that assigns a plain name may assign the variable that keeps a pile, by the function."""
    function, _, name = pile.name.partition(":") if pile.owners[0].kind == "frame" else ("", "", pile.name)
    inside = source.statements_at(run.source, statement.lineno)
    around = [one.name for one in inside if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    main = source.main_function(run.source)
    if function:
        return function in around or (not around and main is not None and main.function.name == function)
    return "." not in name or not around


def carried_names(record: Record) -> set[str]:
    """Last names of variables that the cells compute from their previous value: ``total``, ``h``, ``running_mean``."""
    return set().union(*(_carried_in(run.source) for run in latest_first(record)))


@lru_cache(maxsize=8192)  # asked for every cell at every look, and the text of a cell does not change
def _carried_in(text: str) -> frozenset[str]:
    found: set[str] = set()
    tree = source.parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            value = {ast.unparse(n) for n in ast.walk(node.value) if isinstance(n, (ast.Name, ast.Attribute))}
            own = set(source.targets(node))
            found |= own if isinstance(node, ast.AugAssign) else own & value
        elif isinstance(node, (ast.For, ast.While)):
            found |= source.carried(node)
    return frozenset(name.rsplit(".", 1)[-1] for name in found)


def cut_each_time(record: Record, pile: Pile) -> Fix | None:
    """``total += loss.detach()``; or, after the later of call and assignment, ``h = h.detach()``."""
    call, whole = pile.line.calls[-1], local(pile.name)
    last = source.last_name(whole)
    written = _cut_what_is_written(record, pile)
    if written is not None:
        return written
    updated = _cut_the_update(record, pile)
    if updated is not None and not _is_stored_by_a_caller(record, pile):
        return updated
    for run in latest_first(record):
        statements = [
            (statement, target)
            for statement, target in source.assigned_as(run.source, last)
            if "." in target or _may_assign(pile, run, statement)
        ]
        if not statements or run.cell is None or len(pile.paths) > 1:
            continue
        statement, target = _that_made(pile, run, statements)
        given = source.given(statement)
        if ast.unparse(given) in EMPTY:
            continue  # where the container begins: other lines put something in
        if isinstance(given, ast.Call) and source.last_name(ast.unparse(given.func)) == "Parameter":
            continue  # it has no graph there: a line writes one into it
        here = f"In[{run.cell}], line {statement.lineno}"
        if isinstance(statement, ast.AugAssign):
            edits = _without_graph(record, run, statement.value)
            free = not needed(record, last, {(run.cell, statement.lineno)})
            text = f"Write {short(text_edit.new_text(run.source, edits))} ({here}).{'' if free else UNLESS}"
            return Fix("detach", text, free, (run.cell, statement.lineno), NONE, edits=edits)
        line = statement.lineno
        inside = source.function_at(run.source, line)
        place = at(call.place) if inside or call.place.outer_cell != run.cell else outer_at(call.place)
        if place is not None and inside != source.function_at(run.source, place[1]):
            place = None  # the call stands elsewhere
        if place is not None and place[0] == run.cell and place[1] > line:
            line = place[1]
        cut = _cut(record, pile, whole, target)
        if not cut:
            return None
        edits = text_edit.insert_after(run.cell, run.source, line, cut)
        text = f"Cut the graph each time: {short('; '.join(cut), 90)} after In[{run.cell}], line {line}."
        loop = source.loop_at(run.source, line)  # each pass makes it again
        inside_loop = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else range(line + 1)
        free = not needed(record, last, {(run.cell, one) for one in inside_loop})
        stored = (run.cell, statement.lineno)  # the cut comes behind the call that needs the graph
        return Fix("detach", text + ("" if free else UNLESS), free, stored, NONE, edits=edits)
    return None


def _cut_what_is_written(record: Record, pile: Pile) -> Fix | None:
    """What the line that made a tensor writes into it, or puts into its container, detached.

    ``self.mean.mul_(0.9).add_(0.1 * h.mean(0).detach())``, ``shadow[name] = (0.9 * shadow[name] + 0.1 * p).detach()``.
    """
    spot = joining_line(pile.graph, pile.line, pile.inside) or at(pile.graph.place_of(pile.owners[0].node))
    lasts = {source.last_name(local(path)) for path in pile.paths}
    run = next((one for one in latest_first(record) if spot is not None and one.cell == spot[0]), None)
    if run is None or spot is None or len(lasts) != 1:
        return None
    (last,) = lasts
    for statement in source.statements_at(run.source, spot[1])[-1:]:
        written = inplace.values_written(statement, last)
        if not written and _wrote(record, pile):  # it spells it in another way
            written = inplace.values_written(statement)
            written = written or ([statement.value] if isinstance(statement, ast.AugAssign) else [])
        given = _put_into(statement, last) or _added_to(statement, last) or written
        if given is written and len(written) > 1 and run.cell is not None:
            return _written_without_graph(run, statement)  # some of them may be numbers
        edits = tuple(edit for one in given for edit in _without_graph(record, run, one))
        if not edits and last in map(source.last_name, source.targets(statement)):
            inside = {local(owner.path).rpartition(last)[2] for owner in pile.owners}
            edits = containers.detached_parts(run.cell, run.source, source.given(statement), inside - {""})
        if not edits or run.cell is None:
            return None
        free = not needed(record, last, {(run.cell, statement.lineno)})
        shown = short(text_edit.new_text(run.source, edits))
        text = f"Write {shown} (In[{run.cell}], line {statement.lineno}).{'' if free else UNLESS}"
        return Fix("detach", text, free, (run.cell, statement.lineno), NONE, edits=edits)
    return None


def _wrote(record: Record, pile: Pile) -> bool:
    """Whether what is held was seen to be modified in place by the line that made its node."""
    node = pile.graph.seq[pile.owners[0].node]
    return any(node in write.made and set(pile.paths) & {*write.paths, *write.others} for write in record.writes)


def _written_without_graph(run: CellRun, statement: ast.stmt) -> Fix:
    """``with torch.no_grad(): self.var.mul_(1 - m).add_(var * m)``: what computed the values keeps its graph."""
    edits = in_block(run.cell, run.source, "with torch.no_grad():", statement, statement)
    text = f"Write {short(ast.unparse(statement))} (In[{run.cell}], line {statement.lineno}) under "
    text += "`with torch.no_grad():`. What it writes keeps its own graph."
    return Fix("under_no_grad", text, False, (run.cell or 0, statement.lineno), NONE, edits=edits)


def _cut_the_update(record: Record, pile: Pile) -> Fix | None:
    """The line that made a tensor of the one before, detached: ``h[i] = (0.9 * h[i] + v).detach()``.

    The holder may have got it from there under another name: from a function that returned it.
    """
    place = pile.graph.place_of(pile.owners[0].node)
    run = next((one for one in latest_first(record) if place is not None and one.cell == place.cell), None)
    found = source.statements_at(run.source, place.line or 0)[-1:] if run is not None and place is not None else []
    if run is None or run.cell is None or not found or not isinstance(found[0], ast.Assign):
        return None
    (statement, targets), value = (found[0], [*map(ast.unparse, found[0].targets)]), found[0].value
    before = {
        ast.unparse(node) for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    }
    names = {local(path) for path in pile.paths}
    if len(targets) != 1 or targets[0] not in before or targets[0] in names or isinstance(value, _DISPLAYS):
        return None
    edits = _without_graph(record, run, value)
    free = not needed(record, source.last_name(targets[0]), {(run.cell, statement.lineno)})
    shown = short(text_edit.new_text(run.source, edits))
    text = f"Write {shown} (In[{run.cell}], line {statement.lineno}).{'' if free else UNLESS}"
    return Fix("detach", text, free, (run.cell, statement.lineno), NONE, edits=edits)


def _is_stored_by_a_caller(record: Record, pile: Pile) -> bool:
    """Whether a line that was running stores what the function made that it called: ``q, self.h = net(x, self.h)``.

    What others do with that function, as a training that unrolls it, needs the graph.
    """
    place = pile.graph.place_of(pile.owners[0].node)
    last = source.last_name(local(pile.name))
    for frame in place.stack if place is not None else ():
        found = source.statements_at(Cells.of(record).text(frame.cell), frame.line or 0)[-1:]
        if any("." in one and source.last_name(one) == last for made in found for one in source.targets(made)):
            return True
    return False


def _without_graph(record: Record, run: CellRun, value: ast.expr) -> Edits:
    """An expression detached, for all calls of its function."""
    return containers.detached_value(run.cell, run.source, value, Cells.of(record).texts.values())


def _added_to(statement: ast.stmt, last: str) -> list[ast.expr]:
    """What a statement adds to an attribute of that name: `x` in ``self.total = self.total + x``, and in ``+= x``."""
    value, put = getattr(statement, "value", None), list(source.targets(statement))
    if isinstance(statement, ast.AugAssign) and put and "." in put[0] and source.last_name(put[0]) == last:
        return [statement.value] if isinstance(statement.op, (ast.Add, ast.Sub)) else []
    if not isinstance(statement, ast.Assign) or not isinstance(value, ast.BinOp) or len(put) != 1:
        return []
    if "." not in put[0] or source.last_name(put[0]) != last or not isinstance(value.op, (ast.Add, ast.Sub)):
        return []
    terms = [one for one in (value.left, value.right) if ast.unparse(one) != put[0]]
    return terms if len(terms) == 1 else []


def _put_into(statement: ast.stmt, last: str) -> list[ast.expr]:
    """What a statement puts into a container of that name; or into an attribute whose name it computes."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "setattr" and len(call.args) == 3:
        fixed = call.args[1].value if isinstance(call.args[1], ast.Constant) else last
        return [call.args[2]] if fixed == last else []
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return []
    put = list(source.targets(statement))
    fits = len(put) == 1 and put[0].endswith("]") and source.last_name(put[0]) == last
    return [statement.value] if fits else []


def _that_made(pile: Pile, run: CellRun, statements: list[tuple[ast.stmt, str]]) -> tuple[ast.stmt, str]:
    """Of the statements that assign what the holder has, the one that joins the passes.

    A mean behind them, ``total /= steps``, joins nothing. Else the one that made it as it is now, or the last one.
    """
    place = pile.graph.place_of(pile.owners[0].node)
    frames = (place, *reversed(place.stack)) if place is not None else ()
    for spot in (joining_line(pile.graph, pile.line, pile.inside), *map(at, frames)):
        for statement, target in statements:
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            if spot is not None and spot[0] == run.cell and spot[1] in lines:
                return statement, target
    return statements[-1]


def _cut(record: Record, pile: Pile, whole: str, target: str) -> list[str]:
    """Statements that detach what the holder has, spelled as where it is assigned: ``self.mean`` for ``net.mean``."""
    paths = [local(owner.path) for owner in pile.owners]
    if whole.endswith("]") and not target.endswith("]"):
        whole = whole[: whole.rindex(source.last_name(whole))] + source.last_name(whole)  # the container is assigned
    if paths == [whole]:
        return [f"{target} = {target}.detach()"]
    cells = [run.source for run in latest_first(record)]
    lines = detached(paths, cells, pile.owners)
    if whole != target and not all(line.startswith(whole) for line in lines):
        return []
    return [line.replace(whole, target) for line in lines] if all(path.startswith(whole) for path in paths) else []
