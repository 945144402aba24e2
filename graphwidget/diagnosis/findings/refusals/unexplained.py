"""Errors of calls whose reason is not known: where each came from, and the whole message.

Nothing here guesses a reason. A call whose error the program has caught is told, too, and not as an error.
"""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import nodes_stopped_at, recorded_at
from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.wording import root_name, short, when, where
from graphwidget.model import (
    FROM_OUTSIDE,
    BackwardCall,
    CellRun,
    Finding,
    Place,
    Record,
    Scene,
    Snapshot,
    torch_messages,
)

__all__ = ["is_caught", "of_call", "of_refused"]

_OF_TORCH = ("RuntimeError", "NotImplementedError", "ValueError", "TypeError")
_MOST_NODES = 3  # that a sentence names


def is_caught(record: Record, call: BackwardCall, *, leaving: bool = False) -> bool:
    """Return whether the program has caught the error of a call.

    `leaving`: the error is just leaving the call, so it is not known whether the program will catch it.
    """
    run = record.runs.get(call.place.run) if call.place.run is not None else None
    return not leaving and run is not None and run.error != call.error


def of_call(record: Record, call: BackwardCall, *, caught: bool) -> Finding | None:
    """Return what is known of a call that raised: its line, the node where it stopped, the message."""
    if call.result != "raised" or call.error_type in FROM_OUTSIDE:
        return None
    run = record.runs.get(call.place.run) if call.place.run is not None else None
    scene = record.scenes.get(call.n, Scene())
    nodes = nodes_stopped_at(call)
    graph = call.graph
    stopped = _stopped(graph, nodes) if graph is not None else ""
    one = nodes[0] if graph is not None and len(nodes) == 1 else None
    uid, place = (graph.uid[one], graph.place_of(one)) if graph is not None and one is not None else (None, None)
    text = f"{short(call.place.source or root_name(call))} ({when(record, call.place)}) {_raised(run, call, scene)}"
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{text}{' The program has caught it.' * caught}{stopped}",
        _headline(call.place, call.error_type, root_name(call)),
        call.n,
        node=graph.name_of(nodes[0]) if graph is not None and len(nodes) == 1 else "",
        node_uid=uid,
        made_at=place or recorded_at(call, uid),
        failed_at=call.place,
        cause=_line_of_the_error(run, call, scene),
        uids=tuple(graph.uid[node] for node in nodes) if graph is not None else (),
        unexplained=call.error or "",
    )


def of_refused(record: Record, run: CellRun) -> Finding | None:
    """Return what is known of a call that was refused before it ran, or of a line whose error speaks of gradients.

    None for the error of a call that ran, and for an error that the program's own text says.
    """
    if any(call.error == run.error for call in record.calls if call.result == "raised"):
        return None
    place = run.error_place or Place(run.cell, None)
    if run.error_type in FROM_OUTSIDE or not (run.through_backward or _is_of_autograd(record, run)):
        return None
    before = " before any node ran" if run.through_backward else ""
    given = Failure(record, run, place).given
    return Finding(
        "refused",
        "error",
        f"{short(place.source)} ({where(place)}) was refused{before}.{' ' * bool(given)}{given}",
        _headline(place, run.error_type, short(place.source).strip("`")),
        made_at=place,
        failed_at=place,
        unexplained=run.error or "",
    )


def _is_of_autograd(record: Record, run: CellRun) -> bool:
    """Whether the message of an error speaks of gradients, and is not written by the program itself."""
    message = run.error or ""
    if run.error_type not in _OF_TORCH or torch_messages.OF_AUTOGRAD.search(message) is None:
        return False
    words = re.findall(r"\w+ \w+ \w+", message)
    return not any(one in other.source for other in record.runs.values() for one in words)


def _headline(place: Place, error: str | None, root: str) -> str:
    shown = f"`{root}.backward()`" if ".backward(" in place.source and "(" not in root else short(place.source or root)
    return f"{shown} raised {error or 'an error'}, which is not explained yet."


def _raised(run: CellRun | None, call: BackwardCall, scene: Scene) -> str:
    """Whose code has raised."""
    if scene.raised_in == "call":
        return "ran Python code that called the engine again, and that call raised."
    if scene.raised_in == "engine":
        return "ran into an error of PyTorch's own."
    place = _line_of_the_error(run, call, scene)
    line = f": {short(place.source)} ({where(place)})" if place is not None and place.source else ""
    return f"ran Python code, which raised{line}."


def _line_of_the_error(run: CellRun | None, call: BackwardCall, scene: Scene) -> Place | None:
    """The user's own line that raised inside the call, if there is one."""
    place = run.error_place if run is not None and run.error == call.error else None
    return place if scene.raised_in == "python" and place is not None and where(place) != where(call.place) else None


# ------------------------------------------------------------------ the node


def _stopped(graph: Snapshot, nodes: list[int]) -> str:
    if not nodes:
        return " At which node is not known."
    shown = [_shown(graph, node) for node in nodes[:_MOST_NODES]]
    if len(nodes) == 1:
        return f" It stopped at {shown[0]}."
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return f" It stopped at one of these: {', '.join(shown)}{more}."


def _shown(graph: Snapshot, node: int) -> str:
    """``MulBackward0 (In[2], line 3; `net.fc`)``."""
    module, leaf = graph.module_of(node), graph.leaves.get(node)
    parts = [where(graph.place_of(node)), f"in `{module.path}`" if module is not None else ""]
    if leaf is not None and leaf.paths:
        parts.append(f"the leaf `{leaf.paths[0]}`")
    inside = "; ".join(part for part in parts if part)
    return f"`{graph.name_of(node)}`" + (f" ({inside})" if inside else "")
