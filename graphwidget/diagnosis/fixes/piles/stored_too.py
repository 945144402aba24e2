"""What a function stores beside the line that is detached, of the same value: a meter's last loss beside their sum.

Each of them keeps a graph. Where the function does nothing else with the value, it is detached where it comes in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.number_arguments import detached_where_tensor
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import names, short, spoken
from graphwidget.model import Fix, Record, Snapshot, TextEdit

UNLESS = " Only if no backward needs what it keeps."

__all__ = ["UNLESS", "with_what_else_is_stored"]


class _Stored(NamedTuple):
    """A statement that stores a value in an attribute or in an element of a container."""

    statement: ast.stmt
    target: ast.expr
    value: ast.expr

    @property
    def name(self) -> str:
        """The attribute, or the variable of the container."""
        return source.last_name(ast.unparse(self.target))


def with_what_else_is_stored(record: Record, fix: Fix, graph: Snapshot) -> Fix:
    """The fix, which detaches what one line stores, with what else keeps the graph of the same value.

    Parameters
    ----------
    graph
        Shows what keeps a graph: a number that is stored beside it has none to cut.
    """
    if fix.id != "detach" or fix.at is None or not fix.edits or {one.cell for one in fix.edits} != {fix.at[0]}:
        return fix
    cell, text = fix.at[0], Cells.of(record).text(fix.at[0])
    inside, made = source.function_at(text, fix.at[1]), source.statements_at(text, fix.at[1])[-1:]
    own = next((one for statement in made for one in _stored(statement)), None)
    if inside is None or own is None:
        return fix
    keeping = {source.last_name(spoken(local(owner.path))) for owner in graph.owners}
    stored = [one for node in ast.walk(inside[1]) for one in _stored(node)]
    for name, block in _given(inside[1], own):
        beside = [one for one in stored if _is_beside(one, own, name)]
        beside = [one for one in beside if one.name in keeping and not _is_needed(record, one, inside[1])]
        # ``self.avg = val`` at first, then ``self.avg = 0.9 * self.avg + 0.1 * val``: it has its graph from there.
        same = [one for one in stored if _is_same(one, own, name)]
        left = len(same) > 1 and any("hasattr(" in edit.new for edit in fix.edits)
        of_a_part = not beside and len(same) > 1 and _is_of_a_part(fix, text, own)
        # What is there before goes on with the graph that it has.
        more = [one for one in same if one.statement is not own.statement] if of_a_part else beside
        if not (more or left) or any(_is_in(edit, one) for edit in fix.edits for one in more):
            continue
        if _brings_all(own, name, keeping) and _is_only_stored(inside[1], name, (own, *same, *beside)):
            return _where_it_comes_in(record, fix, name, block, _shown(beside) or f"`{ast.unparse(own.target)}`")
        if not more:
            continue
        texts = Cells.of(record).texts.values()
        edits = [edit for one in more for edit in containers.detached_value(cell, text, one.value, texts)]
        unless = UNLESS if fix.text.endswith(UNLESS) else ""
        others = "the other lines that store it" if of_a_part else _shown(beside)
        said = f"{fix.text.removesuffix(UNLESS)} And the same for {others}.{unless}"
        return replace(fix, text=said, edits=tuple(text_edit.in_order([*fix.edits, *edits])))
    return fix


def _shown(beside: list[_Stored]) -> str:
    """What else keeps the graph; empty: nothing does."""
    shown = names(tuple(dict.fromkeys(ast.unparse(one.target) for one in beside)))
    return f"{shown}, which {'keeps' if len(beside) == 1 else 'keep'} its graph, too" if beside else ""


def _where_it_comes_in(record: Record, fix: Fix, name: str, block: list[ast.stmt], keep: str) -> Fix:
    """``val = val.detach()`` before all that is done with it."""
    cell = fix.at[0] if fix.at is not None else 0
    text, texts = Cells.of(record).text(cell), Cells.of(record).texts.values()
    documented = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
    first = block[1] if documented and len(block) > 1 else block[0]
    function = source.function_at(text, first.lineno)
    read = (node for one in block for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == name)
    asked = detached_where_tensor(texts, text, next(read))
    in_loop = function is not None and name in _loop_names(function[1])  # of several kinds, perhaps
    form = f"{name}.detach() if hasattr({name}, 'detach') else {name}" if asked or in_loop else f"{name}.detach()"
    new = f"{name} = {form}"
    said = f"Detach `{name}` where it comes in: {short(new)} before In[{cell}], line {first.lineno}. "
    said += f"It is stored in {keep}.{UNLESS if fix.text.endswith(UNLESS) else ''}"
    return replace(fix, text=said, edits=text_edit.insert_before(cell, text, first, [new]))  # `at`: what it is about


def _stored(node: ast.AST) -> Iterator[_Stored]:
    """What a statement stores beyond its function."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and isinstance(targets[0], (ast.Attribute, ast.Subscript)):
            yield _Stored(node, targets[0], node.value)
    elif isinstance(node, ast.Expr) and (put := containers.put_at(node.value)) is not None:
        yield _Stored(node, put[0], put[1])


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _loop_names(function: ast.FunctionDef) -> set[str]:
    loops = (node for node in ast.walk(function) if isinstance(node, ast.For))
    return set().union(*(source.names_in(one.target) for one in loops))


def _given(function: ast.FunctionDef, own: _Stored) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The names by which the value of a statement may have come in, each with the block where it has come."""
    read = source.names_in(own.value) - {"self", "cls"}
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and any(own.statement is node for one in loop.body for node in ast.walk(one)):
            yield from ((name, loop.body) for name in sorted(source.names_in(loop.target) & read))
    yield from ((name, function.body) for name in _parameters(function) if name in read)
    for at, one in enumerate(function.body):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            name, behind = one.targets[0].id, function.body[at + 1 :]
            if name in read and behind and len(_giving(function, name)) == 1:
                yield name, behind


def _giving(function: ast.FunctionDef, name: str) -> list[ast.stmt]:
    """The statements of a function that give a variable its value."""
    return [one for one in source.own_statements(function.body) if name in source.targets(one)]


def _is_beside(one: _Stored, own: _Stored, name: str) -> bool:
    """Whether another statement stores the same value somewhere else."""
    if one.statement is own.statement or one.name == own.name:
        return False
    return name in source.names_in(one.value) and containers.may_have_a_graph(one.value)


def _is_of_a_part(fix: Fix, text: str, own: _Stored) -> bool:
    """Whether a fix detaches a part of what is stored then: ``t + x.detach()``, and not ``(t + x).detach()``."""
    if isinstance(own.statement, ast.AugAssign):
        return True
    end = text_edit.span(text, own.value)[1]
    whole = (").detach()",) if isinstance(own.value, ast.BinOp) else (").detach()", ".detach()")
    return not any(edit.start == end and edit.new in whole for edit in fix.edits)


def _is_same(one: _Stored, own: _Stored, name: str) -> bool:
    """Whether a statement stores the same value in the same place."""
    return one.name == own.name and name in source.names_in(one.value)


def _is_needed(record: Record, one: _Stored, function: ast.FunctionDef) -> bool:
    """Whether a line outside of the function reads what is stored there as more than a number."""
    for text in Cells.of(record).texts.values():
        tree = source.parse(text)
        if tree is None:
            continue
        own = {id(node) for node in ast.walk(function)}
        read = {
            n.lineno for n in source.nodes_of(text) if isinstance(n, ast.expr) and _reads(n, one) and id(n) not in own
        }
        if not read.isdisjoint(source.handed_on(tree, one.name)):
            return True
    return False


def _reads(node: ast.AST, one: _Stored) -> bool:
    """Whether a node reads what is stored: an attribute of that name, or such a variable if it is one."""
    holder = one.target
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    name = node.attr if isinstance(node, ast.Attribute) else None
    name = node.id if isinstance(node, ast.Name) and isinstance(holder, ast.Name) else name
    return name == one.name


def _brings_all(own: _Stored, name: str, keeping: set[str]) -> bool:
    """Whether what a line adds to what it stores has its graph from this value alone: no other part has one."""
    nodes = [*ast.walk(own.value)]
    called = [ast.unparse(node.func).split(".", 1)[0] for node in nodes if isinstance(node, ast.Call)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    return all(one == name for one in called) and not (read - {own.name}) & keeping


def _is_only_stored(function: ast.FunctionDef, name: str, stored: tuple[_Stored, ...]) -> bool:
    """Whether a function does nothing else with a value that needs its graph."""
    lines = {line for one in stored for line in range(one.statement.lineno, (one.statement.end_lineno or 0) + 1)}
    plain = all(name in source.names_in(one.value) for one in stored)
    return plain and lines.issuperset(source.handed_on(function, name))


def _is_in(edit: TextEdit, one: _Stored) -> bool:
    return one.statement.lineno <= edit.start[0] <= (one.statement.end_lineno or one.statement.lineno)
