"""An input that only the code of a custom Function uses: a re-entrant checkpoint, or a Function of the program's own.

Such a Function is one node. The graph leads from it to the tensors that it was applied to, and to nothing else that its
code reads. So autograd does not see that the root depends on those.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.refusals import checkpoints
from graphwidget.diagnosis.findings.refusals.makers import CallText
from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below
from graphwidget.diagnosis.no_graph.applied import applied_at
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.pytorch.custom_functions import defined
from graphwidget.diagnosis.wording import at, lines_of, place_of, short, where
from graphwidget.model import BackwardCall, Fix, Place, Record, Scene, Snapshot

__all__ = ["in_checkpoint", "in_own_function"]

_Found = tuple[str, Place | None, tuple[Fix, ...]]
_CHECKPOINT = "CheckpointFunctionBackward"


def in_own_function(record: Record, call: BackwardCall, index: int, root: str, shown: str) -> _Found | None:
    """Why no path leads to an input that a Function of the program's own uses by itself; None: none is known to."""
    graph = call.graph
    if graph is None:
        return None
    nodes = (*_measured(record, call, graph, index), *_handed_in(record, call, graph, index))
    node = next((one for one in nodes if graph.name_of(one) != _CHECKPOINT), None)
    return _of_function(record, graph, node, root, shown) if node is not None else None


def in_checkpoint(record: Record, call: BackwardCall, index: int, root: str, shown: str) -> _Found | None:
    """The same for a re-entrant checkpoint, in which other lines may cut the input off."""
    graph = call.graph
    nodes = _measured(record, call, graph, index) if graph is not None else ()
    node = next((one for one in nodes if graph is not None and graph.name_of(one) == _CHECKPOINT), None)
    return _of_checkpoint(record, graph, node, root, shown) if graph is not None and node is not None else None


def _measured(record: Record, call: BackwardCall, graph: Snapshot, index: int) -> Iterator[int]:
    """Nodes of Functions whose code was measured to lead to the input."""
    used = {one.seq for one in record.scenes.get(call.n, Scene()).inside_functions if index in one.inputs}
    yield from (node for node in sorted(below(graph, call)) if graph.seq[node] in used)


def _handed_in(record: Record, call: BackwardCall, graph: Snapshot, index: int) -> Iterator[int]:
    """Nodes of Functions that were applied to an object, as a module or a list, with the input in it."""
    paths = call.inputs[index].paths if call.inputs and 0 <= index < len(call.inputs) else ()
    inner = [local(path) for path in paths]
    for node in sorted(below(graph, call)):
        name = graph.name_of(node).removesuffix("Backward")
        place = graph.place_of(node) if defined(record, name) is not None else None
        statement = Cells.of(record).statement(spot) if (spot := at(place)) is not None else None
        for part in ast.walk(statement) if statement is not None and not hasattr(statement, "body") else ():
            if isinstance(part, ast.Call) and ast.unparse(part.func) == f"{name}.apply":
                if any(_holds(ast.unparse(given), path) for given in part.args for path in inner):
                    yield node


def _holds(owner: str, path: str) -> bool:
    """``net`` holds ``net.fc.weight`` and ``ws`` holds ``ws[0]``; ``self.net`` may hold ``model.net.fc.weight``."""
    if path.startswith((f"{owner}.", f"{owner}[")):
        return True
    inside = owner.removeprefix("self.")
    return inside != owner and (f".{inside}." in path or f".{inside}[" in path)


def _of_checkpoint(record: Record, graph: Snapshot, node: int, root: str, shown: str) -> _Found:
    made = graph.place_of(node)
    found = checkpoints.reentrant(record)
    found = [one for one in found if made is not None and _runs(one, made)] or found
    place = place_of(found[0].run, found[0].call.lineno) if len(found) == 1 else made
    line = f"{short(place.source)} ({where(place)})" if place is not None and where(place) else "a checkpoint"
    text = (
        f"`{root}` is computed from {shown} inside of a re-entrant checkpoint (`use_reentrant=True`): {line}. It runs "
        "its function without grad mode, and with it only when a backward comes there. So the graph leads to the "
        f"tensors that the checkpoint was given, and not to {shown}. A plain `backward()` would give it its `.grad`; "
        "`torch.autograd.grad` sees no path."
    )
    return text, place, (checkpoints.not_reentrant(record, found),)


def _runs(one: CallText, place: Place) -> bool:
    """Whether a call is on one of the lines that were running at a place."""
    lines = range(one.call.lineno, (one.call.end_lineno or one.call.lineno) + 1)
    return any(cell == one.run.cell and line in lines for cell, line in lines_of(place))


def _of_function(record: Record, graph: Snapshot, node: int, root: str, shown: str) -> _Found:
    name, made = graph.name_of(node).removesuffix("Backward"), graph.place_of(node)
    statement = Cells.of(record).statement(spot) if (spot := at(made)) is not None else None
    run = next((one for one in Cells.of(record).latest if spot is not None and one.cell == spot[0]), None)
    applied = applied_at(record, run, statement) if run is not None and statement is not None else None
    if applied is not None and applied.function.name == name:
        return f"No path leads from `{root}` to {shown}. {applied.text}", applied.place, (applied.fix,)
    by = f" {short(made.source)} ({where(made)}) applies it." if made is not None and where(made) else ""
    text = (
        f"`{root}` is computed from {shown} inside of `{name}`, a custom Function.{by} It is one node of the graph, "
        "which leads to the tensors that it was applied to, each as an argument of its own. "
        f"{shown[:1].upper()}{shown[1:]} is none of them: it comes from outside, or is part of an object or list."
    )
    advice = (
        f"Hand it in: `{name}.apply(..., {shown.strip('`')})`, and let `backward` return its gradient in that place."
    )
    return text, made, (Fix("pass_parameters", advice, False, at(made)),)
