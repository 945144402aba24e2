"""Parameters of an optimizer to which the graph leads, and for which a custom Function returned None as gradient.

What the Function was given may be computed from them: then nothing behind that input gets a gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, functions
from graphwidget.diagnosis.wording import at, names, place_of, spoken, where
from graphwidget.engine.what_if import cut, reachable
from graphwidget.model import BackwardCall, Finding, Fix, Kind, NodeFacts, Record, Snapshot, StarvedParameters

__all__ = ["find"]

MOST_NAMED = 4


class _Blamed(NamedTuple):
    """A Function, and the one input behind which a parameter lies; empty: it is the input, or there are several."""

    function: str
    behind: str


def find(record: Record, starved: StarvedParameters) -> Iterator[Finding]:
    """Yield one finding for each Function that gave some of these parameters nothing."""
    known = {made.name: made for made in functions(record)}
    written = {path for write in (*record.writes, *record.hidden) if not write.optimizer for path in write.paths}
    wanted = set(starved.paths) - written  # an average may be written to a codebook
    blamed: dict[_Blamed, dict[str, None]] = {}
    told = set[str]()
    for call in record.calls if known and wanted else ():
        for one, path in _left_out(call, wanted, known):
            if path not in told:
                told.add(path)
                blamed.setdefault(one, {})[spoken(path)] = None
    for one, found in blamed.items():
        yield _of(starved, known[one.function], one.behind, tuple(found))


def _of(starved: StarvedParameters, made: FunctionText, behind: str, paths: tuple[str, ...]) -> Finding:
    line = made.returns[0].lineno if len(made.returns) == 1 else made.made.lineno
    place, shown = place_of(made.run, line), names(paths, MOST_NAMED)
    whom = "it" if len(paths) == 1 else "them"
    of = f"its input `{behind}`, which is computed from {whom}" if behind else whom
    return Finding(
        "silent",
        "warning",
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. The graph leads there through `{made.name}` alone, and its `backward` "
        f"({where(place)}) returned None for {of}.",
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=place,
        names=(*paths, made.name, *filter(None, (behind,))),
        fixes=(
            Fix(
                "return_all_gradients",
                f"Let the `backward` of `{made.name}` return a gradient for {f'`{behind}`' if behind else 'it'}. It "
                "returns one for each input of `forward`, in their order, and `ctx.needs_input_grad` counts them in "
                "the same way.",
                False,
                at(place),
            ),
        ),
    )


def _left_out(call: BackwardCall, paths: set[str], known: Mapping[str, FunctionText]) -> Iterator[tuple[_Blamed, str]]:
    """The parameters to which a call ran, but gave nothing, and the one Function whose None explains that."""
    graph = call.graph
    if graph is None or call.result != "ok" or set(call.reached_uids) <= set(call.ungiven):
        return  # of a call that gives nothing at all, `ungiven` tells
    wanted = {
        index: path
        for index, leaf in graph.leaves.items()
        if graph.uid[index] in call.ungiven
        for path in leaf.paths[:1]
        if not paths.isdisjoint(leaf.paths)
    }
    left = dict(wanted)
    for name in _in_order(call, graph, known) if wanted else ():
        nones = _edges_of_none(graph, known[name])
        roots = [root.node for root in call.roots if root.node >= 0]
        reached = reachable(cut(graph, nones), roots) if nones else set(wanted)
        for index in [one for one in left if one not in reached]:
            behind = {nones[edge] for edge in nones if index in reachable(graph, [graph.edge_to[edge]])}
            direct = any(graph.edge_to[edge] == index for edge in nones)
            alone = behind.pop() if len(behind) == 1 and not direct else ""
            yield _Blamed(name, alone), next(path for path in graph.leaves[index].paths if path in paths)
            del left[index]


def _in_order(call: BackwardCall, graph: Snapshot, known: Mapping[str, FunctionText]) -> list[str]:
    """The Functions that ran, in the order in which they did: behind a None others get nothing."""
    ran = (graph.index_of.get(uid) for uid in call.executed)
    custom = (index for index in ran if index is not None and graph.kind[index] == Kind.CUSTOM)
    return [name for name in dict.fromkeys(map(_function, map(graph.name_of, custom))) if name in known]


def _function(node: str) -> str:
    return node.removesuffix("Backward")


def _edges_of_none(graph: Snapshot, made: FunctionText) -> dict[int, str]:
    """The edges of a Function's nodes for which its backward may return None, each with the name of the input."""
    found = {}
    for index in range(len(graph)):
        if graph.kind[index] == Kind.CUSTOM and _function(graph.name_of(index)) == made.name:
            arguments = [at for at in graph.facts.get(index, NodeFacts()).arguments if at >= 0]
            edges = range(graph.edge_start[index], graph.edge_start[index + 1])
            for edge, position in zip(edges, arguments or range(len(edges))):
                if not arguments or any(_may_be_none(made, one, position) for one in made.returns):
                    inputs = made.inputs or ()
                    found[edge] = inputs[position] if arguments and position < len(inputs) else ""
    return found


def _may_be_none(made: FunctionText, returned: ast.Return, position: int) -> bool:
    """Whether a return statement may give None to an input: it says so, or by a name that was given None."""
    value = returned.value
    if isinstance(value, ast.Tuple):
        if any(isinstance(one, ast.Starred) for one in value.elts):
            return True
        value = value.elts[position] if position < len(value.elts) else None
    elif value is not None and not isinstance(value, ast.Constant) and len(made.inputs or ()) != 1:
        return True  # a tuple that is made elsewhere
    if isinstance(value, ast.Name):
        body = made.backward.body if made.backward is not None else []
        statements = (one for one in syntax.own_statements(body) if isinstance(one, ast.Assign))
        return any(_says_none(one.value) or _is_several(one) for one in statements if value.id in syntax.bound(one))
    return value is None or _says_none(value)


def _says_none(value: ast.expr) -> bool:
    """Whether an expression is None, or one of its parts: of a tuple, or of the two that a test chooses from."""
    if isinstance(value, ast.IfExp):
        return _says_none(value.body) or _says_none(value.orelse)
    if isinstance(value, ast.Tuple):
        return any(map(_says_none, value.elts))
    return isinstance(value, ast.Constant) and value.value is None


def _is_several(statement: ast.Assign) -> bool:
    """Whether a statement takes apart what it does not write out: ``a, b = f()``."""
    return isinstance(statement.targets[0], ast.Tuple) and not isinstance(statement.value, ast.Tuple)
