"""A term of a loss that is computed from what is trained, and has left the graph: ``.data``, an argmax, a comparison.

It is told only where the text accounts for all of the term, and shows nothing that says that it is meant as a constant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.constants.sums import lacking
from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.terms import Left, Trains, history, term
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.no_graph.way_forward import why_cut
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, opening, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record

__all__ = ["Addend", "addends", "find", "summands"]

_SAID = ("data", "item", "detach", "float")  # a term that is all in one of these is meant as a constant
_OF_A_FUNCTION = re.compile(r"^\w+:")


class Addend(NamedTuple):
    """A term of a sum, as it is multiplied into the loss, and the other terms."""

    node: ast.expr
    whole: ast.expr
    others: tuple[ast.expr, ...]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that adds such a term."""
    if not any(write.optimizer for write in record.writes):
        return
    values, cells = Values([run for _, run in sorted(record.runs.items())]), Cells.of(record)
    for call, place, alone in lacking(record):
        spot = at(place)
        statement = cells.statement(spot) if spot is not None and alone else None
        if statement is None or spot is None or hasattr(statement, "body"):
            continue
        index = max((i for i, run in enumerate(values.runs) if run.cell == spot[0]), default=-1)
        line, leads = Spot(index, statement.lineno), _leads(record, values, call)
        for one in addends(statement):
            cuts = _cuts(values, one, line, leads)
            if cuts:
                yield _of(call, place, one.node, cuts)
                break


def _leads(record: Record, values: Values, call: BackwardCall) -> Trains:
    """What leads to the leaves of a call, and whether these are trained."""
    known: dict[str, bool] = {}
    for leaf in call.graph.leaves.values() if call.graph is not None else ():
        held = record.is_stepped(leaf)
        known |= {_OF_A_FUNCTION.sub("", path): held for path in leaf.paths}

    def leads(path: str, spot: Spot, module: bool) -> bool | None:
        meant = _begins if module else str.__eq__
        rest = path.removeprefix("self.")
        found = [held for one, held in known.items() if path != "self" and meant(one, path)]
        if not found and rest != path and _is_single(values, spot):
            found = [held for one, held in known.items() if any(meant(end, rest) for end in _ends(one))]
        return any(found) if found else None

    return leads


def _begins(path: str, start: str) -> bool:
    return path == start or path.startswith((f"{start}.", f"{start}["))


def _ends(path: str) -> Iterator[str]:
    """What a path is from each of its dots on: ``net.fc.weight``, ``fc.weight``, `weight`."""
    yield path
    for found in re.finditer(r"\.", path):
        yield path[found.end() :]


def _is_single(values: Values, spot: Spot) -> bool:
    """Whether there is one object of the class around a line, as far as the text shows: its `self` has one meaning."""
    inside = syntax.function_at(values.runs[spot.at].source, spot.line)
    if inside is None or inside[0] is None:
        return False
    made = [one for run in values.runs for one in syntax.calls_by_name(run.source).get(inside[0].name, ())]
    copied = any("deepcopy" in run.source for run in values.runs)
    derived = any(f"({inside[0].name})" in run.source.replace(f"super({inside[0].name}", "") for run in values.runs)
    return len({(one.lineno, one.col_offset) for one in made}) == 1 and not copied and not derived


def summands(statement: ast.stmt) -> list[ast.expr]:
    """What an assignment adds up, in the order in which it does so; empty: it is no sum, or it takes something away.

    What is taken away may be a baseline.
    """
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)) else None
    found = list(_terms(value)) if isinstance(value, ast.BinOp) else []
    inside = {id(node) for one in found for node in ast.walk(one)}
    between = [node for node in ast.walk(value) if id(node) not in inside] if value is not None else []
    return found if len(found) > 1 and not any(isinstance(node, ast.Sub) for node in between) else []


def addends(statement: ast.stmt) -> Iterator[Addend]:
    """The terms that a statement adds up, a whole before its parts."""
    value = syntax.given(statement)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "backward":
        value = value.func.value
    if not isinstance(value, ast.expr):
        return
    yield from _parts(value, (statement.target,) if isinstance(statement, ast.AugAssign) else (), None)


def _parts(value: ast.expr, others: tuple[ast.expr, ...], factor: ast.expr | None) -> Iterator[Addend]:
    """The terms of a sum that is multiplied by a factor, and of the sums in these: ``w * (a + b)``."""
    terms = list(_terms(value))
    for number, one in enumerate(terms):
        beside = (*others, *terms[:number], *terms[number + 1 :])
        whole = _times(one, factor)
        if beside:
            yield Addend(one, whole, beside)
        for part, by in ((one.left, one.right), (one.right, one.left)) if isinstance(one, ast.BinOp) else ():
            if len(list(_terms(part))) > 1:
                yield from _parts(part, beside, _times(by, factor))


def _times(value: ast.expr, factor: ast.expr | None) -> ast.expr:
    return value if factor is None else ast.copy_location(ast.BinOp(value, ast.Mult(), factor), value)


def _terms(value: ast.expr) -> Iterator[ast.expr]:
    """What a sum adds up; the value itself, where it is none."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Add, ast.Sub)):
            stack += [one.right, one.left]
        elif isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub):
            stack.append(one.operand)
        elif _is_sum(one) and isinstance(one, ast.Call) and isinstance(one.args[0], (ast.List, ast.Tuple)):
            stack += reversed(one.args[0].elts)
        else:
            yield one


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "sum" and len(node.args) == 1


def _cuts(values: Values, addend: Addend, spot: Spot, leads: Trains) -> list[Left]:
    """Where all of a term has left the graph; nothing where it may have one, or is meant to have none."""
    if _is_said(addend.node):
        return []
    found = term(values, addend.whole, spot, leads)
    if not found.is_cut:
        return []
    beside = history(values, list(addend.others), spot, addend.node)
    if beside is None or any(id(one.node) in beside for one in found.cuts):
        return []  # the same value is in another term, where it may cancel, or be chosen by it
    texts = {ast.unparse(one) for one in addend.others}
    if any(ast.unparse(given) in texts for one in found.cuts for given in one.given):
        return []  # a value that is added again with its graph: a straight-through estimate
    return found.cuts


def _is_said(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, (ast.Name, ast.Attribute)) and syntax.last_name(ast.unparse(called)) in _SAID


def _of(call: BackwardCall, place: Place, node: ast.expr, cuts: list[Left]) -> Finding:
    shown, first = short(ast.unparse(node)), cuts[0]
    cut = place_of(first.run, first.statement.lineno)
    dot = "." if first.by == "data" else ""
    names = syntax.words_in(node) | set(syntax.targets(first.statement)) | {f"{dot}{first.by}"}
    return Finding(
        "silent",
        "warning",
        f"{short(place.source)} ({where(place)}) adds {shown} to the loss, and it has never had a graph there. It is "
        f"computed from what is trained, and all of that leaves the graph, as in {short(cut.source)} ({where(cut)}): "
        f"{_why(first.by)}. {opening(call.n)} gives no parameter a gradient from it.",
        f"{shown} is a constant: no step goes by it.",
        call.n,
        made_at=cut,
        cause=cut,
        cut_at=cut,
        names=tuple(sorted(names - {"self", "torch", "nn", "F"})),
        fixes=(_fix(shown, cut, cuts),),
    )


def _why(by: str) -> str:
    return why_cut("eq" if by == "comparison" else "item" if by in ("float", "int", "round") else by)


def _fix(shown: str, cut: Place, cuts: list[Left]) -> Fix:
    """The lines without what cuts them, where that can be left out; else what a term needs to have a gradient."""
    meant = "If it is meant as a constant, `.detach()` says so."
    if all(one.by in restore_graph.LEFT_OUT for one in cuts):
        edits: text_edit.Edits = ()
        for one in {(one.run.run, one.statement.lineno, one.by): one for one in cuts}.values():
            edits += restore_graph.without(one.run.cell, one.run.source, one.statement, one.by)
        written = "`.data`" if cuts[0].by == "data" else f"`{cuts[0].by}`"
        do = f"If the loss is to train by it, write it without {written} ({where(cut)}). {meant}"
        return Fix("differentiable_op", do, False, at(cut), edits=edits)
    do = (
        f"If the loss is to train by it, compute {shown} with operations that have a derivative, from what the model "
        f"returns, not from {short(cut.source)} ({where(cut)}): probabilities (`softmax`, `sigmoid`) in place of "
        f"chosen classes and of comparisons. {meant}"
    )
    return Fix("differentiable_op", do, False, at(cut))
