"""A penalty on parameters that is a constant: computed over `parameters()`, and no graph leads from it to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.constants.gradients import operands
from graphwidget.diagnosis.findings.silences.constants.sums import lacking
from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.cutting import cuts_in
from graphwidget.diagnosis.no_graph.way_forward import why_cut
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, opening, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record

__all__ = ["find"]

_LISTING = ("parameters", "named_parameters")
_MOST = 3  # functions inside functions that are looked into


class _Loop(NamedTuple):
    """A loop over the parameters of a module, in the text of a run: its variables, and the statements inside."""

    run: CellRun
    node: ast.For | ast.comprehension
    inside: list[ast.AST]
    line: int

    @property
    def names(self) -> set[str]:
        """The variables that stand for a parameter: not its name, nor what is gone through beside it."""
        return _standing_for(self.node.target, self.node.iter)


class _Cut(NamedTuple):
    """Where a loop leaves its parameters: the line, why, and what does without."""

    place: Place
    why: str
    fix: Fix


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that adds such a penalty, if it never had a graph there."""
    if not any(write.optimizer for write in record.writes):
        return
    for call, place, _ in lacking(record):
        spot, cells = at(place), Cells.of(record)
        if spot is None:
            continue
        statement, run = cells.statement(spot), next((one for one in cells.latest if one.cell == spot[0]), None)
        if statement is None or run is None or hasattr(statement, "body"):
            continue
        own = set(syntax.targets(statement))  # ``loss = loss + penalty``
        for operand in (one for one in operands(statement) if ast.unparse(one) not in own):
            found = next((cut for loop in _loops(cells, run, operand, _MOST) if (cut := _cut(loop)) is not None), None)
            if found is not None:
                yield _of(call, place, operand, found)
                break


def _loops(cells: Cells, run: CellRun, node: ast.AST, deep: int) -> Iterator[_Loop]:
    """The loops over parameters that compute an expression: in it, behind its name, in functions that it calls."""
    for one in ast.walk(node):
        if isinstance(one, (ast.ListComp, ast.GeneratorExp)) and _lists(one.generators[0].iter):
            yield _Loop(run, one.generators[0], [one.elt], one.lineno)
        elif isinstance(one, ast.Name) and deep:
            yield from _behind(cells, run, one, deep)
        elif isinstance(one, ast.Call) and deep:
            last = syntax.last_name(ast.unparse(one.func))
            found = [(other, made) for other in cells.latest for made in syntax.functions_of(other.source, last)]
            for other, made in found if len(found) == 1 else ():
                yield from _of_body(cells, other, made.body, deep)


def _behind(cells: Cells, run: CellRun, name: ast.Name, deep: int) -> Iterator[_Loop]:
    inside, tree = syntax.function_at(run.source, name.lineno), syntax.parse(run.source)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    for one in syntax.own_statements(body):
        if name.id in syntax.targets(one):
            around = [loop for loop in syntax.loops_around(run.source, one.lineno) if isinstance(loop, ast.For)]
            lists = [loop for loop in around if _lists(loop.iter)]
            yield from (_Loop(run, loop, list(loop.body), loop.lineno) for loop in lists)
            if not lists:
                yield from _loops(cells, run, syntax.given(one), deep - 1)


def _of_body(cells: Cells, run: CellRun, body: list[ast.stmt], deep: int) -> Iterator[_Loop]:
    for one in syntax.own_statements(body):
        if isinstance(one, ast.For) and _lists(one.iter):
            yield _Loop(run, one, list(one.body), one.lineno)
        elif not hasattr(one, "body"):
            yield from _loops(cells, run, syntax.given(one), deep - 1)


def _standing_for(target: ast.expr, over: ast.expr) -> set[str]:
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(over, ast.Call):
        return syntax.names_in(target)
    called = ast.unparse(over.func)
    if called == "zip":
        parts = [_standing_for(one, given) for one, given in zip(target.elts, over.args) if _lists(given)]
        return set().union(*parts)
    if called == "enumerate" and over.args:
        return _standing_for(target.elts[-1], over.args[0])
    return syntax.names_in(target.elts[-1])  # behind its name


def _lists(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Call) and syntax.last_name(ast.unparse(one.func)) in _LISTING for one in ast.walk(node)
    )


def _cut(loop: _Loop) -> _Cut | None:
    """The line of a loop that leaves the parameter: a cut, a block without grad mode, another value for its name."""
    text, cell = loop.run.source, loop.run.cell
    statements = [one for node in loop.inside for one in ast.walk(node) if isinstance(one, ast.stmt)]
    nodes: list[ast.stmt | ast.expr] = [one for one in statements if not hasattr(one, "body")]
    for node in (*nodes, *(one for one in loop.inside if isinstance(one, ast.expr))):
        for by, parts in cuts_in(node):
            if by in restore_graph.LEFT_OUT and any(loop.names & syntax.names_in(part) for part in parts):
                place = place_of(loop.run, node.lineno)
                edits = restore_graph.without(cell, text, node, by)
                do = f"Write it without `{by}` ({where(place)})."
                return _Cut(place, why_cut(by), Fix("differentiable_op", do, False, at(place), edits=edits))
    for one in statements:
        rebound = loop.names & set(syntax.targets(one)) if isinstance(one, ast.Assign) else set[str]()
        if rebound and not loop.names & syntax.names_read(one):
            place, name = place_of(loop.run, one.lineno), sorted(rebound)[0]
            why = f"gives `{name}` a value that is not computed from the parameter"
            fix = Fix("use_input", f"Compute `{name}` from the parameter itself ({where(place)}).", False, at(place))
            return _Cut(place, why, fix)
    inside = syntax.statements_at(text, loop.line)[-1:]
    off = grad_modes.around(text, inside[0]) if inside else None
    if off is not None and off.off:
        place = place_of(loop.run, off.outer.lineno)
        edits = restore_graph.out_of_with(cell, text, off.outer, inside[0]) if isinstance(off.outer, ast.With) else ()
        do = f"Compute the penalty outside of `{off.text}` ({where(place)})."
        return _Cut(place, f"it runs under `{off.text}`", Fix("remove_no_grad", do, False, at(place), edits=edits))
    return None


def _of(call: BackwardCall, place: Place, operand: ast.expr, cut: _Cut) -> Finding:
    shown = short(ast.unparse(operand))
    names = sorted({name for name in syntax.words_in(operand) if name not in ("self", "torch", "nn")})
    return Finding(
        "silent",
        "warning",
        f"{short(place.source)} ({where(place)}) adds {shown} to the loss, and it has never had a graph there. It is "
        f"computed over the parameters of a module, and leaves them in {short(cut.place.source)} ({where(cut.place)}): "
        f"{cut.why}. "
        f"{opening(call.n)} gives no parameter a gradient from it.",
        f"{shown} is a constant: no step goes by it.",
        call.n,
        made_at=cut.place,
        cause=cut.place,
        names=tuple(names),
        fixes=(cut.fix,),
    )
