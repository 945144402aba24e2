"""Trained leaves that backward reaches only through operations whose derivative is zero everywhere.

They get a gradient, of zeros. Nothing is said where a hook may change a gradient on the way, or where another call
reaches the leaf in another way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, lasting_name, names, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, Kind, Leaf, NodeFacts, Place, Record, Snapshot

__all__ = ["find", "is_flat", "only_zeros"]

MOST_NAMED = 4

# Operations of which torch's formula for the derivative is zero, whatever the values are.
_STEPWISE = ("Sign", "Sgn", "Round", "Floor", "Ceil", "Trunc")
_DRAWN = ("Bernoulli", "Poisson", "Normal")
_FLAT = re.compile(rf"({'|'.join((*_STEPWISE, *_DRAWN))})Backward\d+$")


class _Flat(NamedTuple):
    """A leaf of a call, and the node with a derivative of zero on its way."""

    call: BackwardCall
    graph: Snapshot
    leaf: int
    node: int


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line with such an operation."""
    if not any(write.optimizer for write in record.writes) or not any(
        _FLAT.match(name) for call in record.calls if call.graph for name in call.graph.names
    ):
        return
    reached: set[str | int] = set()  # by a way on which a gradient may be something else than zero
    flat: dict[str, _Flat] = {}
    known = {call.n for call in record.calls if call.graph is not None}
    for call in record.calls:
        if call.graph is None:
            if call.same_as not in known:
                reached.update(call.reached)
        elif call.result == "ok":
            _look(call, call.graph, reached, flat)
    by_line: dict[object, list[_Flat]] = {}
    for path, one in flat.items():
        leaf = one.graph.leaves[one.leaf]
        if path not in reached and record.is_stepped(leaf) and not reached.intersection(_known_as(leaf)):
            place = one.graph.place_of(one.node)
            by_line.setdefault((where(place), one.graph.name_of(one.node)), []).append(one)
    for found in by_line.values():
        yield _of(record, found)


def _known_as(leaf: Leaf) -> tuple[str | int, ...]:
    """What a leaf is known by in other calls: its memory, and its best name.

    Not further names: the first parameter of `optimizer` is another one when the next model has its optimizer.
    """
    return (*leaf.paths[:1], *([leaf.memory] if leaf.memory >= 0 else []))


def _look(call: BackwardCall, graph: Snapshot, reached: set[str | int], flat: dict[str, _Flat]) -> None:
    """Divide the leaves of a call: those that it reaches in a usual way, and those behind a flat operation alone."""
    if not any(map(_FLAT.match, graph.names)):
        reached.update(name for leaf in graph.leaves.values() for name in _known_as(leaf))
        return
    ran = set(call.executed)
    starts = [root.node for root in call.roots if root.node >= 0]
    usual, borders = _below(graph, starts, stop=True)
    for border in borders:
        inside, _ = _below(graph, list(graph.next(border)), stop=False)
        hooked = any(graph.facts.get(node, NodeFacts()).hooks for node in (border, *inside))
        for node in inside - usual:
            leaf = graph.leaves.get(node)
            if leaf is not None and leaf.paths and graph.uid[node] in ran:
                if hooked:
                    reached.update(_known_as(leaf))
                else:
                    flat.setdefault(leaf.paths[0], _Flat(call, graph, node, border))
    reached.update(name for node in usual if node in graph.leaves for name in _known_as(graph.leaves[node]))


def _below(graph: Snapshot, starts: list[int], *, stop: bool) -> tuple[set[int], list[int]]:
    """The nodes below some nodes, and the flat ones at which the search stopped, which are not among them."""
    seen, borders, stack = set[int](), dict[int, None](), list(starts)
    while stack:
        node = stack.pop()
        if node in seen or node in borders:
            continue
        if stop and graph.kind[node] == Kind.FUNCTION and is_flat(graph, node):
            borders[node] = None
            continue
        seen.add(node)
        stack.extend(graph.next(node))
    return seen, list(borders)


def is_flat(graph: Snapshot, node: int) -> bool:
    """Whether the derivative is zero. That of `sgn` of complex numbers is not."""
    if not _FLAT.match(graph.name_of(node)):
        return False
    outputs = graph.outputs_of(node)
    return not graph.name_of(node).startswith("Sgn") or bool(outputs and "complex" not in outputs[0].dtype)


# ------------------------------------------------------------------ the words


def _of(record: Record, found: list[_Flat]) -> Finding:
    first = found[0]
    paths = (lasting_name(record, one.graph.leaves[one.leaf].paths) for one in found)
    shown = tuple(dict.fromkeys(map(spoken, paths)))
    shown = tuple(sorted(shown, key=lambda path: (not path.endswith("weight"), path)))
    place = first.graph.place_of(first.node)
    operation = _FLAT.match(first.graph.name_of(first.node))[1].lower()  # type: ignore[index]
    line = f"{short(place.source)} ({where(place)})" if place is not None and where(place) else "The forward"
    one = len(shown) == 1
    drawn = operation.capitalize() in _DRAWN
    why = (
        "for PyTorch the derivative of what is drawn is zero"
        if drawn
        else "a small change of its input changes nothing, so its derivative is zero"
    )
    text = (
        f"{line} computes `{operation}`: {why}. Every path from the loss to {names(shown, MOST_NAMED)} leads through "
        f"it. So {'it gets a gradient' if one else 'they get gradients'} of zeros, and no step changes "
        f"{'it' if one else 'them'} by the loss."
    )
    places = [(each.graph, each.node) for each in found]
    return only_zeros(first.call, places, operation, shown, text, _fix(record, place, operation, drawn))


def only_zeros(
    call: BackwardCall,
    places: Sequence[tuple[Snapshot, int]],
    operation: str,
    leaves: tuple[str, ...],
    text: str,
    fix: Fix,
) -> Finding:
    """The finding for leaves that get zeros through an operation's nodes, each with its graph: the first is shown."""
    graph, node = places[0]
    place = graph.place_of(node)
    return Finding(
        "silent",
        "warning",
        text,
        f"{names(leaves, MOST_NAMED)} {'gets' if len(leaves) == 1 else 'get'} only zeros through `{operation}`.",
        call.n,
        node=graph.name_of(node),
        node_uid=graph.uid[node],
        made_at=place,
        cause=place,
        cut_at=place,
        names=(*leaves, operation),
        tensor=leaves[0],
        uids=tuple(one.uid[at] for one, at in places),
        fixes=(fix,),
    )


def _fix(record: Record, place: Place | None, operation: str, drawn: bool) -> Fix:
    if drawn:
        text = (
            "Draw in a way that has a derivative: `mean + std * torch.randn_like(mean)`, or `rsample()` of a "
            "distribution. Where there is none, use the log of the probability."
        )
        return Fix("reparametrize", text, False, at(place))
    new = f"x + (torch.{operation}(x) - x).detach()"
    text = (
        f"Let the gradient pass straight through, as if `{operation}` were not there: `{new}` in place of "
        f"`torch.{operation}(x)`. Or use a smooth function. If it is there only to count what is right, give the loss "
        "what goes into it."
    )
    return Fix(
        "straight_through",
        text,
        False,
        at(place),
        "The gradient is an approximation.",
        edits=_edits(record, place, operation),
    )


def _edits(record: Record, place: Place | None, operation: str) -> Edits:
    """The call of the operation in the line, if it is the only one and its argument a name."""
    spot = at(place)
    cells = Cells.of(record)
    statement = cells.statement(spot) if spot is not None else None
    if spot is None or statement is None:
        return ()
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and not node.keywords]
    named = [one for one in calls if ast.unparse(one.func).rsplit(".", 1)[-1] == operation]
    if len(named) != 1:
        return ()
    call = named[0]
    plain = ast.unparse(call.func) == f"torch.{operation}" and len(call.args) == 1
    method = isinstance(call.func, ast.Attribute) and not call.args
    value = call.args[0] if plain else call.func.value if isinstance(call.func, ast.Attribute) and method else None
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return ()
    x = ast.unparse(value)
    new = f"{x} + ({ast.unparse(call)} - {x}).detach()"
    alone = call is getattr(statement, "value", None)
    return text_edit.replace_node(spot[0], cells.text(spot[0]), call, new if alone else f"({new})")
