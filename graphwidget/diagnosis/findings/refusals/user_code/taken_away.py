"""What the `backward` of a Function takes away from `ctx`, so that a second one through a kept graph misses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.refusals.user_code.operands import Misfit
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, Kind, Record

__all__ = ["may_have_run_before", "taken_away"]

_EMPTYING = ("clear", "pop", "popitem", "popleft", "remove")


def may_have_run_before(record: Record, call: BackwardCall, function: str) -> bool:
    """Whether an earlier call came by a node of this Function that the failed one reaches, and kept the graph."""
    graph = call.graph
    if graph is None:
        return False
    seqs = [
        graph.seq[i]
        for i in range(len(graph))
        if graph.kind[i] == Kind.CUSTOM and graph.name_of(i) == f"{function}Backward"
    ]
    earlier = [one for one in record.calls if one.n < call.n and one.result == "ok" and one.retain_graph]
    return any(seq < one.newest_seq for one in earlier for seq in seqs)


def taken_away(function: FunctionText, statement: ast.stmt) -> Misfit | None:
    """Which line of `backward` took away what a statement there reads of `ctx`; None: none does."""
    backward = function.backward
    if backward is None or not backward.args.args:
        return None
    ctx = backward.args.args[0].arg
    read = {
        node.attr
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ctx
    }
    takes = [one for one in syntax.own_statements(backward.body) if read.intersection(_taken(one, ctx))]
    if not takes:
        return None
    attribute = f"{ctx}.{next(name for name in _taken(takes[0], ctx) if name in read)}"
    first = place_of(function.run, takes[0].lineno)
    spot = at(first)
    alone = all(isinstance(one, ast.Delete | ast.Expr) or _is_constant(one) for one in takes)
    return Misfit(
        f"{short(first.source)} ({where(first)}) takes `{attribute}` away once it has run. The graph was kept for "
        "another backward, which runs the same `backward` with the same `ctx`.",
        f"Leave `{attribute}` as it is ({where(first)}): each backward through the kept graph reads it again. It is "
        "freed with the graph.",
        text_edit.remove(spot[0], function.run.source, *takes) if alone and spot is not None else (),
    )


def _taken(statement: ast.stmt, ctx: str) -> Iterator[str]:
    """The attributes of `ctx` that a statement deletes, empties or overwrites by a constant."""
    gone: list[ast.expr] = []
    if isinstance(statement, ast.Delete):
        gone = statement.targets
    elif isinstance(statement, ast.Assign) and _is_constant(statement):
        gone = statement.targets
    elif isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.Return):
        gone = [
            node.func.value
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTYING
        ]
    for one in gone:
        while isinstance(one, ast.Subscript):
            one = one.value
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == ctx:
            yield one.attr


def _is_constant(statement: ast.stmt) -> bool:
    """``ctx.cache = None``, ``ctx.parts = []``: what is given is made of nothing."""
    return isinstance(statement, ast.Assign) and not syntax.names_in(statement.value)
