"""An operation that took tensors of two types, which its backward refuses: a float64 target and a float32 output."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failed_node import nodes_stopped_at
from graphwidget.diagnosis.findings.refusals.user_code.unpacked import gave_back_as_saved
from graphwidget.diagnosis.no_graph.numbers.types import CONVERSIONS, Typed, of_type, part_converted
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import (
    BackwardCall,
    CellRun,
    Finding,
    Fix,
    Place,
    Record,
    Scene,
    SlotState,
    Snapshot,
    torch_messages,
)

__all__ = ["explain"]

_SPELLED = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
_FROM_NUMPY = " NumPy's numbers are float64, and a tensor that is made of them keeps that."


def explain(record: Record, call: BackwardCall) -> Finding | None:
    """``F.huber_loss(net(x), target).backward()`` where `target` is float64 and `net` is not."""
    types, scene = _types(call.error or ""), record.scenes.get(call.n, Scene())
    if types is None or scene.raised_in != "engine":
        return None
    odd, wanted = types
    node, place = _stopped_at(record, call, {odd, wanted})
    runs = [run for _, run in sorted(record.runs.items()) if call.place.run is None or run.run <= call.place.run]
    at_run = max((i for i, run in enumerate(runs) if place is not None and run.cell == place.cell), default=-1)
    if place is None or at_run < 0:
        return None
    values = Values(runs, dict(runs[-1].modules), scene)
    statement = next(reversed(source.statements_at(runs[at_run].source, place.line or 0)), None)
    value = source.given(statement) if statement is not None and not hasattr(statement, "body") else None
    if not isinstance(value, ast.expr):
        return None
    spot = Spot(at_run, place.line or 1)
    read = part_converted(values, value, spot, odd)
    makers = of_type(values, value, spot, odd)
    made = makers[0] if len({(one.run.run, one.node.lineno) for one in makers}) == 1 else None
    cause = place_of(made.run, made.node.lineno) if made is not None else place
    shown = names(tuple(dict.fromkeys(name for name, _ in read)))
    which = f" {shown} {'are' if ' and ' in shown else 'is'} {odd}." if shown else ""
    return Finding(
        "refused",
        "error",
        f"{short(place.source)} ({where(place)}) was given both {odd} and {wanted}.{which} The operation has accepted "
        f"that, and its backward does not: a gradient has the type of what it is for.{_origin(made, odd, cause)}",
        f"{short(place.source)} mixes {odd} and {wanted}.",
        call.n,
        node=call.graph.name_of(node) if call.graph is not None and node is not None else "",
        node_uid=call.graph.uid[node] if call.graph is not None and node is not None else None,
        tensor=read[0][0] if read else None,
        names=tuple(dict.fromkeys((*(name for name, _ in read), *(made.via if made is not None else ())))),
        made_at=place,
        failed_at=call.place,
        cause=cause,
        fixes=(
            *([_at_maker(made, odd, wanted)] if made is not None else ()),
            _at_use(runs[at_run], read, place, odd, wanted),
        ),
    )


def _stopped_at(record: Record, call: BackwardCall, types: set[str]) -> tuple[int | None, Place | None]:
    """The node that refused, and its line: it has saved tensors of both types."""
    graph, nodes = call.graph, nodes_stopped_at(call)
    packed = gave_back_as_saved(record, call)
    if graph is None:
        return None, None
    mixed = [node for node in nodes if types <= _types_saved(graph, node, packed)]
    places = {at(graph.place_of(node)): graph.place_of(node) for node in mixed}
    return (mixed[0], next(iter(places.values()))) if len(places) == 1 else (None, None)


def _types_saved(graph: Snapshot, node: int, packed: bool) -> set[str]:
    """The types of what a node saved. What hooks have made of it may have another; `packed`: it has not."""
    slots = (slot for slot in graph.slots_of(node) if packed or graph.slot_state[slot] != SlotState.PACKED)
    kinds = (graph.slot_dtype[slot] for slot in slots)
    return {graph.dtypes[kind] for kind in kinds if kind >= 0}


def _types(message: str) -> tuple[str, str] | None:
    """The two types of a message: first the one that is out of place, which is not the type of most tensors."""
    found = torch_messages.TWO_TYPES.search(message)
    types = [_SPELLED.get(one.lower()) for one in found.groups() if one] if found is not None else []
    known = [one for one in types if one is not None]
    if len(known) != 2 or known[0] == known[1]:
        return None
    odd = "float64" if "float64" in known else next(one for one in known if one != "float32")
    return odd, next(one for one in known if one != odd)


def _origin(made: Typed | None, odd: str, cause: Place) -> str:
    """A sentence about the line that made something of the type."""
    if made is None:
        return ""
    way = f", by way of {names(made.via)}" if made.via else ""
    numpy = _FROM_NUMPY if odd == "float64" and made.takes_numpy else ""
    comes = f"The {odd} comes" if made.sure else f"The {odd} may come"
    return f" {comes} from {short(cause.source)} ({where(cause)}){way}.{numpy}"


def _at_maker(made: Typed, odd: str, wanted: str) -> Fix:
    """``torch.tensor(rewards).to(device).float()``; ``dtype=torch.float32``; ``.float()`` in place of ``.double()``."""
    cell, text, node = made.run.cell, made.run.source, made.node
    named = [one.value for one in getattr(node, "keywords", ()) if one.arg == "dtype"]
    edits: Edits = ()
    if named:
        edits = text_edit.replace_node(cell, text, named[0], f"torch.{wanted}")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == CONVERSIONS[odd]:
        new = f"{ast.unparse(node.func.value)}.{CONVERSIONS[wanted]}()"
        edits = text_edit.replace_node(cell, text, node, new)
    else:
        edits = text_edit.insert_behind(cell, text, made.whole, f".{CONVERSIONS[wanted]}()")
    spot = (cell, node.lineno) if cell is not None else None
    line, by = where(place_of(made.run, node.lineno)), f"torch.{wanted}" if named else f".{CONVERSIONS[wanted]}()"
    return Fix("float_dtype", f"Make it {wanted} where it is made ({line}): `{by}`.", False, spot, edits=edits)


def _at_use(run: CellRun, read: list[tuple[str, ast.expr]], place: Place, odd: str, wanted: str) -> Fix:
    """``F.huber_loss(q, target.float())``."""
    convert = f".{CONVERSIONS[wanted]}()"
    edits = text_edit.insert_behind(run.cell, run.source, read[0][1], convert) if len(read) == 1 else ()
    which = f"`{ast.unparse(read[0][1])}{convert}`" if len(read) == 1 else f"`{convert}` for what is {odd}"
    return Fix("float_dtype", f"Convert it where it is used ({where(place)}): {which}.", False, at(place), edits=edits)
