"""Leaves that a program trains by hand and replaces by new tensors, ``w = w - lr * w.grad``: the same in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import CellRun, Fix, Record, TextEdit

__all__ = ["in_one_block", "replaced", "rewritten", "updated_in_place", "updates_beside", "updates_in_place"]

_MOST_SHOWN = 3  # updates that one sentence quotes
_COMPREHENSIONS = (ast.ListComp, ast.DictComp)


def updated_in_place(text: str, statement: ast.stmt) -> str:
    r"""``w = w - 0.1 * w.grad`` as ``w -= 0.1 * w.grad``: the first makes a new tensor, which is no leaf to train.

    Only for a tensor whose `.grad` the cell reads, which is a leaf that is trained by hand. Else empty. Of a tuple,
    and of a comprehension (``ws = [w - 0.1 * w.grad for w in ws]``), several lines.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    if isinstance(value, _COMPREHENSIONS):
        return _over_all(text, target, value)
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        return _one_by_one(text, target.elts, value.elts)
    return _update(text, statement, target, value)


def updates_beside(text: str, statement: ast.stmt) -> dict[ast.stmt, str]:
    """A statement that replaces a leaf, and the others of its block and of blocks in it: as they should be.

    The others, too: they replace their leaves just as well. The block is the outermost one that is about the same grad
    mode: all of a ``with torch.no_grad():``.
    """
    if not updated_in_place(text, statement):
        return {}
    switch = grad_modes.around(text, statement)
    block = getattr(switch.outer, "body", []) if switch is not None else syntax.block_of(text, statement)
    found = ((one, updated_in_place(text, one)) for one in syntax.own_statements(block) if isinstance(one, ast.Assign))
    return {one: new for one, new in found if new}


def replaced(
    record: Record, run: CellRun, statement: ast.stmt, how: str = "cuts off what it reads", *, sure: bool
) -> Cause | None:
    """Return the cause for a leaf that is replaced by what a step by hand computes, and the edit of all such leaves."""
    updates = updates_beside(run.source, statement)
    if not updates:
        return None
    place = place_of(run, statement.lineno)
    lines = [(where(place_of(run, one.lineno)), new) for one, new in updates.items()]
    shown = [f"{short(new.replace(chr(10), ' ' if new.startswith('for ') else '; '))} ({at})" for at, new in lines]
    more = f", and {len(shown) - _MOST_SHOWN} more so" if len(shown) > _MOST_SHOWN else ""
    one = "it changes the tensor, and makes no new one"
    several = "they change the tensors, and make no new ones"
    sentence = f"Write {', '.join(shown[:_MOST_SHOWN])}{more}: {one if len(shown) == 1 else several}"
    id_, edits = "remove_no_grad", rewritten(run.cell, run.source, updates)
    if not in_one_block(run.source, updates):
        id_, edits = "under_no_grad", updates_in_place(run.cell, run.source, statement)
        sentence += ". Under `with torch.no_grad():`, so that the step is not recorded"
    works = sure and restore_graph.trains(record.runs.values(), syntax.names_in(statement))
    works = works and not any(".copy_(" in new for new in updates.values())  # what is computed may have another shape
    fix = Fix(id_, f"{sentence}.", works, line_of(place), edits=edits)
    text = f"{short(ast.unparse(statement))} {how} ({where(place)}): it made a new tensor without a graph."
    return Cause(text, fix, place)


def rewritten(cell: int | None, text: str, updates: dict[ast.stmt, str]) -> Edits:
    """Edits that write updates in place of statements, which grad mode is off for."""
    lines = [(one, new if _alone(text, one) else "; ".join(new.split("\n"))) for one, new in updates.items()]
    if any("for " in new and not _alone(text, one) for one, new in lines):
        return ()
    return tuple(edit for one, new in lines for edit in text_edit.replace_node(cell, text, one, new))


def updates_in_place(cell: int | None, text: str, statement: ast.stmt) -> Edits:
    """An update of a leaf by hand, and those of its block, in place under `no_grad`: ``w = w - 0.1 * w.grad``.

    None where one of them shares its line.
    """
    updates = updates_beside(text, statement)
    if not updates or not all(_alone(text, one) for one in updates):
        return ()
    ordered = sorted(updates, key=lambda one: one.lineno)
    edits: list[TextEdit] = []
    for group in _together(text, ordered):
        lines = (line for one in group for line in updates[one].split("\n"))
        block = ["with torch.no_grad():", *(f"    {line}" for line in lines)]
        edits += text_edit.replace_lines(cell, text, group[0].lineno, group[-1].end_lineno or group[-1].lineno, block)
    return tuple(edits)


def in_one_block(text: str, updates: dict[ast.stmt, str]) -> bool:
    """Whether grad mode is off for all of some updates."""
    return all(grad_modes.around(text, one) is not None for one in updates)


def _together(text: str, ordered: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements that follow each other in one block, without a line between them."""
    starts: list[int] = []
    for at, one in enumerate(ordered):
        before = ordered[at - 1] if at else None
        next_to = before is not None and (before.end_lineno or 0) + 1 == one.lineno
        same = before is not None and one in syntax.block_of(text, before)
        starts.append(starts[-1] if next_to and same else at)
    for _, group in groupby(zip(starts, ordered), key=lambda pair: pair[0]):
        yield [one for _, one in group]


def _alone(text: str, statement: ast.stmt) -> bool:
    """Whether a statement has its lines for itself."""
    beginning = syntax.beginning_at(text, statement.lineno)
    whole = "\n".join(text_edit.statement_lines(text, statement))
    return len(beginning) == 1 and syntax.statement_of(whole) is not None


def _update(text: str, statement: ast.stmt | None, target: ast.expr, value: ast.expr) -> str:
    """One update in place; empty: it is none of a leaf that is trained by hand."""
    value = _uncut(value)
    if not isinstance(value, ast.BinOp):
        return _copied(text, statement, target, value) if statement is not None else ""
    left, name = ast.unparse(_uncut(value.left)), ast.unparse(target)
    if left != name and not (statement is not None and _same_element(text, statement, target, left)):
        return ""
    if not _is_trained(text, left, value.right):
        return ""
    sign = ast.unparse(ast.BinOp(ast.Name("_"), value.op, ast.Name("_"))).strip("_ ")
    return f"{left} {sign}= {ast.unparse(value.right)}"


def _copied(text: str, statement: ast.stmt, target: ast.expr, value: ast.expr) -> str:
    """``w = torch.clamp(w, 0, 1)`` as ``w.copy_(torch.clamp(w, 0, 1))``, where grad mode is off: no graph is meant."""
    name = ast.unparse(target)
    itself = any(ast.unparse(node) == name for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute)))
    if not isinstance(value, ast.Call) or not itself or grad_modes.around(text, statement) is None:
        return ""
    return f"{name}.copy_({ast.unparse(value)})" if _is_trained(text, name, value) else ""


def _is_trained(text: str, name: str, step: ast.expr) -> bool:
    """Whether a tensor's `.grad` is read, or it is made a leaf and changed by what `torch.autograd.grad` returned."""
    if re.search(rf"(?<![\w.]){re.escape(name)}\.grad\b", text):
        return True
    leaf = any("requires_grad" in ast.unparse(one) for one in syntax.assignments(text, name))
    read = (one for part in syntax.names_in(step) for one in syntax.assignments(text, part))
    return leaf and any("grad" in map(syntax.last_name, syntax.calls_in(syntax.given(one))) for one in read)


def _uncut(node: ast.expr) -> ast.expr:
    """``w`` of ``w.data`` and ``w.detach()``: in place, the leaf itself is meant."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value
    called = isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute)
    if called and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        return node.func.value
    return node


def _same_element(text: str, statement: ast.stmt, target: ast.expr, name: str) -> bool:
    """Whether a loop gives an element that name: ``for i, p in enumerate(ps): ps[i] = p - 0.1 * p.grad``."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Name):
        return False
    held = re.escape(ast.unparse(target.value))
    for loop in syntax.loops_around(text, statement.lineno):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2:
            over = re.fullmatch(rf"enumerate\({held}\)|(list\()?{held}\.items\(\)\)?", ast.unparse(loop.iter))
            if over and [ast.unparse(one) for one in loop.target.elts] == [target.slice.id, name]:
                return True
    return False


def _one_by_one(text: str, targets: list[ast.expr], values: list[ast.expr]) -> str:
    """``w, b = w - gw, b - gb`` as two lines; empty where one reads more of another than there was before."""
    lines = [_update(text, None, target, value) for target, value in zip(targets, values)]
    written = [ast.unparse(one) for one in targets]
    for at, value in enumerate(values):
        others = "|".join(re.escape(one) for one in written[:at])
        if others and re.search(rf"(?<![\w.])({others})\b(?!\.grad)", ast.unparse(value)):
            return ""
    return "\n".join(lines) if all(lines) and len(targets) == len(values) else ""


def _over_all(text: str, target: ast.expr, value: ast.ListComp | ast.DictComp) -> str:
    """``ws = [w - 0.1 * w.grad for w in ws]`` as a loop that changes each; empty where it is over something else."""
    loop = value.generators[0]
    element = value.elt if isinstance(value, ast.ListComp) else value.value
    name = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    over, held = ast.unparse(loop.iter), ast.unparse(target)
    itself = over in (held, f"[{held.strip('()')}]", f"{held}.items()", f"zip({held})")
    itself = itself or re.match(rf"zip\({re.escape(held)}, ", over) is not None
    if isinstance(loop.target, ast.Tuple) and over.startswith("zip("):
        name = loop.target.elts[0]  # of the tensors themselves; the others are their gradients
    if len(value.generators) > 1 or loop.ifs or not itself:
        return ""
    line = _update(text, None, name, element)
    return f"for {ast.unparse(loop.target).strip('()')} in {over}:\n    {line}" if line else ""
