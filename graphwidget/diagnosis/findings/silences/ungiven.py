"""A backward that runs, and after which no leaf of an optimizer has a gradient: a Function returned None on the way."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, functions
from graphwidget.diagnosis.wording import at, lasting_name, names, opening, place_of, short, source_line, where
from graphwidget.engine.what_if import cut, reachable
from graphwidget.model import BackwardCall, Finding, Fix, Kind, Place, Record, Snapshot

__all__ = ["find"]

MOST_NAMED = 4
# What may take gradients away before anybody sees them, where it stands at a node.
_AT_NODES = re.compile(r"\bnext_functions\b|\bregister_prehook\b|\bget_gradient_edge\b")


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line whose calls all gave nothing to what optimizers hold."""
    steps = (*(write for write in record.writes if write.optimizer), *record.idle)
    trained = {path for step in steps for path in step.paths}
    if not trained or not any(call.ungiven for call in record.calls):
        return
    if any(_AT_NODES.search(run.source) for run in record.runs.values()):
        return
    lines: dict[object, list[BackwardCall]] = {}
    for call in record.calls:
        if call.api == "backward" and call.result == "ok" and call.inputs is None:
            lines.setdefault(source_line(call.place), []).append(call)
    for calls in lines.values():
        known = [(call, call.graph, _without(call, call.graph, trained)) for call in calls if call.graph is not None]
        if known and all(without for _, _, without in known):
            yield _of(record, *known[0])


def _without(call: BackwardCall, graph: Snapshot, trained: set[str]) -> tuple[int, ...]:
    """The trained leaves that a call ran to and that got nothing; none if one of them got a gradient."""
    ran = (graph.index_of.get(uid) for uid in call.reached_uids)
    leaves = [(i, graph.leaves[i]) for i in ran if i is not None and i in graph.leaves]
    own = [i for i, leaf in leaves if not trained.isdisjoint(leaf.paths)]
    return tuple(own) if own and all(graph.uid[i] in call.ungiven for i in own) else ()


def _of(record: Record, call: BackwardCall, graph: Snapshot, without: tuple[int, ...]) -> Finding:
    shown = tuple(lasting_name(record, graph.leaves[i].paths) for i in without)
    many = f"none of {names(shown, MOST_NAMED)} has" if len(shown) > 1 else f"{names(shown)} has not got"
    text = (
        f"{short(call.place.source)} ({where(call.place)}) ran {call.executed_count} nodes, also those of leaves that "
    )
    text += f"an optimizer steps, but afterwards {many} a gradient."
    function = _returned_none(call, graph, record, without)
    place: Place | None = None
    fix = Fix("find_the_cut", "Look for the operation whose backward returns no gradient.", False, at(call.place))
    if function is not None:
        line = function.returns[0].lineno if len(function.returns) == 1 else function.made.lineno
        place = place_of(function.run, line)
        text += f" All ways there go through `{function.name}`, and its `backward` ({where(place)}) returned None."
        fix = Fix(
            "return_all_gradients",
            f"Let the `backward` of `{function.name}` return the gradient of what `forward` got, computed with "
            "operations that autograd records. If there is none, leave this loss out.",
            False,
            at(place),
        )
    return Finding(
        "silent",
        "warning",
        text,
        f"{opening(call.n)} gave no gradient to anything that an optimizer holds.",
        call.n,
        tensor=shown[0],
        made_at=place or call.place,
        cause=place or call.place,
        names=(*shown, *([function.name] if function is not None else [])),
        fixes=(fix,),
    )


def _returned_none(
    call: BackwardCall, graph: Snapshot, record: Record, without: Collection[int]
) -> FunctionText | None:
    """The custom Function that returns None, and without which the call leads to none of some leaves.

    One that returns nothing else comes first: others return None for what needs no gradient.
    """
    roots = [root.node for root in call.roots if root.node >= 0]
    found = []
    for function in functions(record):
        nones = [_is_none(value) for one in function.returns for value in _values(one)]
        name = f"{function.name}Backward"
        own = {i for i in range(len(graph)) if graph.kind[i] == Kind.CUSTOM and graph.name_of(i) == name}
        if own and any(nones):
            into = [edge for edge, to in enumerate(graph.edge_to) if to in own]
            starts = [root for root in roots if root not in own]
            if not reachable(cut(graph, into), starts).intersection(without):
                found.append((not all(nones), function))
    return min(found, key=lambda one: one[0])[1] if found else None


def _values(statement: ast.Return) -> list[ast.expr | None]:
    value = statement.value
    return list(value.elts) if isinstance(value, ast.Tuple) else [value]


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
