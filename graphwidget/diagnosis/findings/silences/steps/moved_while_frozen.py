"""Parameters that were frozen during a training, and that their optimizer goes on moving."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.steps.kept_grads import owner_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import Finding, Fix, MovedWhileFrozen, Place, Record

__all__ = ["find"]

_MOST_NAMED = 3


class _Line(NamedTuple):
    """A line to change: where, what it does, and the edit that sets the gradients to None."""

    place: Place
    text: str
    do: str
    edits: text_edit.Edits


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each optimizer that does so."""
    for one in record.moved_while_frozen:
        if where(one.place):
            yield _of(record, one)


def _of(record: Record, one: MovedWhileFrozen) -> Finding:
    paths = tuple(dict.fromkeys(map(spoken, one.paths)))
    shown = names(paths, _MOST_NAMED) or "A parameter"
    single = len(paths) < 2
    does, they, has = ("does", "it", "its") if single else ("do", "them", "their")
    owner = owner_of(one.place.source)
    line = _keeps_zeros(record, owner) or _freezes(record)
    by = (
        "zeros, which are no None: what the optimizer remembers, or a decay of weights,"
        if one.zero
        else "an old one, and"
    )
    what = f" {short(line.place.source)} ({where(line.place)}) {line.text}." if line is not None else ""
    do = line.do if line is not None else "Set `.grad` to None where the parameter is frozen."
    return Finding(
        "silent",
        "warning",
        f"{shown} {does} not require grad, and {short(one.place.source)} ({where(one.place)}) changes {they} all the "
        f"same. An optimizer leaves alone what has None as `.grad`, and does not read `requires_grad`. "
        f"{has.capitalize()} `.grad` is {by} moves {they}.{what}",
        f"{shown} {'is' if single else 'are'} frozen, and still moved by the steps.",
        tensor=paths[0] if paths else None,
        made_at=one.place,
        cause=line.place if line is not None else one.place,
        names=tuple(filter(None, (*paths, owner, "requires_grad"))),
        fixes=(
            Fix(
                "set_grad_none",
                do,
                False,
                at(line.place if line is not None else one.place),
                edits=line.edits if line is not None else (),
            ),
        ),
    )


def _keeps_zeros(record: Record, owner: str) -> _Line | None:
    """The only ``zero_grad(set_to_none=False)`` of the optimizer, or of all."""
    found = []
    for run in Cells.of(record).latest:
        for call in syntax.calls_by_name(run.source).get("zero_grad", ()):
            kept = [k for k in call.keywords if k.arg == "set_to_none" and ast.unparse(k.value) == "False"]
            if kept and not call.args and len(call.keywords) == 1:
                found.append((run, call))
    own = [(run, call) for run, call in found if ast.unparse(call.func) == f"{owner}.zero_grad"] or found
    if len(own) != 1:
        return None
    run, call = own[0]
    better = f"{ast.unparse(call.func)}()"
    return _Line(
        place_of(run, call.lineno),
        "writes zeros in place of None",
        f"Write {short(better)}: it sets each `.grad` to None, and what is frozen gets no new one.",
        text_edit.replace_node(run.cell, run.source, call, better),
    )


def _freezes(record: Record) -> _Line | None:
    """The only line that sets ``requires_grad`` of a variable to something else than True."""
    found = []
    for run in Cells.of(record).latest:
        for node in syntax.nodes_of(run.source):
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and isinstance(node, ast.Assign):
                if ast.unparse(node.value) != "True":
                    found.append((run, node, ast.unparse(target.value)))
    if len(found) != 1:
        return None
    run, node, whose = found[0]
    new = f"{whose}.grad = None"
    return _Line(
        place_of(run, node.lineno),
        "leaves the gradient there",
        f"Write {short(new)} behind it: the optimizer leaves alone what has no gradient.",
        text_edit.insert_after(run.cell, run.source, node, [new]),
    )
