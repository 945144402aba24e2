"""Operations with a first derivative only: the lines that applied them, and another implementation of PyTorch's.

The forward's nodes are in the graphs of the calls that took the first derivative. A gradient's own nodes do not say
which line applied the operation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, opening, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Fix, Place, Record

__all__ = ["applied_by", "chosen_at", "first_derivative", "fix_of", "told"]


class _Switch(NamedTuple):
    """A context manager that makes PyTorch use plain operations, which can be differentiated again.

    `part`: what the names of the operations have that it replaces. `setting`: its arguments.
    """

    part: str
    manager: str
    setting: str
    plain: str


_SWITCHES = (
    _Switch(
        "attention",
        "torch.nn.attention.sdpa_kernel",
        "torch.nn.attention.SDPBackend.MATH",
        "attention that is made of plain operations",
    ),
    _Switch("cudnn", "torch.backends.cudnn.flags", "enabled=False", "PyTorch's own operations in place of cuDNN's"),
    _Switch("mkldnn", "torch.backends.mkldnn.flags", "enabled=False", "PyTorch's own operations in place of oneDNN's"),
)
# Functions with an argument that chooses an implementation whose gradient can be differentiated, of their defaults.
_ARGUMENTS = {"cdist": "compute_mode='use_mm_for_euclid_dist'"}


def first_derivative(record: Record, call: BackwardCall) -> BackwardCall | None:
    """The last call before one that made a graph for gradients: one that made nodes of its graph, if any is seen."""
    return next(iter(_firsts(record, call)), None)


def told(first: BackwardCall) -> str:
    """A sentence about the call that made the gradient which is differentiated."""
    return f"{opening(first.n)} {short(first.place.source)} ({where(first.place)}) took the first derivative."


def _firsts(record: Record, call: BackwardCall) -> list[BackwardCall]:
    """The calls that took the first derivatives, the last of each line; the last one first."""
    last: dict[Spot | None, BackwardCall] = {}
    for one in reversed(record.calls):
        if one.n < call.n and one.create_graph:
            last.setdefault(at(one.place), one)
    graph = call.graph
    reached = reachable(graph, (root.node for root in call.roots)) if graph is not None else set[int]()
    made = {at(graph.place_of(node)) for node in reached} if graph is not None else set[Spot | None]()
    return [one for spot, one in last.items() if spot in made] or list(last.values())


def applied_by(record: Record, call: BackwardCall, operation: str) -> list[Place]:
    """The lines that applied an operation whose gradient a call could not differentiate, the last one first."""
    name = operation.replace("_", "").lower()
    found: dict[Spot | None, Place] = {}
    for one in _firsts(record, call):
        graph = one.graph
        reached = reachable(graph, (root.node for root in one.roots)) if graph is not None else set[int]()
        for node in sorted(reached, reverse=True):
            if graph is not None and graph.name_of(node).lower().rstrip("0123456789") == name:
                place = graph.place_of(node)
                if place is not None and place.line:
                    found.setdefault(at(place), place)
    return list(found.values())


def fix_of(record: Record, forward: str, places: list[Place]) -> Fix:
    """The other implementation there, where PyTorch has one; else what to do without."""
    spot = at(places[0]) if places else None
    switch = next((one for one in _SWITCHES if one.part in forward), None)
    argument = _ARGUMENTS.get(forward.strip("_"))
    if switch is not None:
        head = f"with {switch.manager}({switch.setting}):"
        every = [_switched(record, place, switch, head) for place in places]
        there = "there" if places else "where it is applied"
        return Fix(
            "differentiable_op",
            f"Use {switch.plain} {there}: `{head}`.",
            False,
            spot,
            "They need more memory and time.",
            edits=_all(every),
        )
    name = forward.strip("_")
    edits = _all([_with_argument(record, place, name, argument) for place in places]) if argument is not None else ()
    if edits:
        return Fix("differentiable_op", f"Pass `{argument}` to `{name}`.", False, spot, edits=edits)
    text = (
        f"Compute `{forward}` from operations that have second derivatives, or take no derivative of a gradient "
        "that goes through it."
    )
    return Fix("differentiable_op", text, False, spot)


def chosen_at(record: Record, forward: str, places: list[Place]) -> str:
    """A sentence about the block that chose the implementation; empty: none did, or it is not seen."""
    switch = next((one for one in _SWITCHES if one.part in forward), None)
    for place in places if switch is not None else ():
        for chosen in _choosing(record, place, switch) if switch is not None else ():
            there = Place(chosen.cell, chosen.call.lineno)
            return f" {short(ast.unparse(chosen.call))} ({where(there)}) chose it."
    return ""


# ------------------------------------------------------------------ edits


class _Choice(NamedTuple):
    cell: int | None
    text: str
    call: ast.Call


def _all(every: list[Edits]) -> Edits:
    """The edits of all lines, each once; none where one line has none."""
    return tuple(dict.fromkeys(edit for one in every for edit in one)) if all(every) else ()


def _switched(record: Record, place: Place, switch: _Switch, head: str) -> Edits:
    """The block that chose the implementation with another choice; where there is none, a block around the line."""
    chosen = next(_choosing(record, place, switch), None)
    if chosen is not None:
        setting = _spelled(chosen.call, switch.setting)
        return text_edit.replace_node(
            chosen.cell, chosen.text, chosen.call, f"{ast.unparse(chosen.call.func)}({setting})"
        )
    text = Cells.of(record).text(place.cell)
    found = source.statements_at(text, place.line or 0)
    return in_block(place.cell, text, head, found[-1], found[-1]) if found else ()


def _spelled(call: ast.Call, setting: str) -> str:
    """The setting by the names that the call uses: ``SDPBackend.MATH``."""
    holder, _, last = setting.rpartition(".")
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and holder and f".{holder}".endswith(f".{ast.unparse(node.value)}"):
            return f"{ast.unparse(node.value)}.{last}"
    return setting


def _choosing(record: Record, place: Place, switch: _Switch) -> Iterator[_Choice]:
    """The calls of the context manager around a line and the lines that called its function, the innermost first."""
    wanted = source.last_name(switch.manager)
    for one in (place, *place.stack[::-1]):
        text = Cells.of(record).text(one.cell)
        for outer in reversed(source.statements_at(text, one.line or 0)):
            for call in grad_modes.expressions(outer):
                named = isinstance(call, ast.Call) and source.last_name(ast.unparse(call.func)) == wanted
                if named and isinstance(call, ast.Call):
                    yield _Choice(one.cell, text, call)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break


def _with_argument(record: Record, place: Place, name: str, argument: str) -> Edits:
    """An argument for the one call of a function in a line; none if it is given more than the two tensors."""
    text = Cells.of(record).text(place.cell)
    found = source.statements_at(text, place.line or 0)
    nodes = ast.walk(found[-1]) if found else iter(())
    calls = [n for n in nodes if isinstance(n, ast.Call) and source.last_name(ast.unparse(n.func)) == name]
    if len(calls) != 1 or len(calls[0].args) != 2 or calls[0].keywords:
        return ()
    return text_edit.with_argument(place.cell, text, calls[0], argument)
