"""Grad mode that a line switches on inside a block which has switched it off: the rest of that block records graphs.

``set_grad_enabled(True)`` at the end of a helper puts back what it takes for the usual mode, and not what was there. A
block ``with torch.enable_grad():`` ends, and so it is meant; as is what a function switches on and puts back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.grad_mode.left_early import as_block
from graphwidget.diagnosis.no_graph.measured import statement_of
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.grad_modes import Switch
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Fix, Place, Record

__all__ = ["SwitchedOn", "switched_on"]


class SwitchedOn(NamedTuple):
    """A statement that switches grad mode on, and the block or decorated function in which it ran."""

    run: CellRun
    on: ast.Expr
    around: CellRun
    switch: Switch

    @property
    def place(self) -> Place:
        return place_of(self.run, self.on.lineno)

    @property
    def text(self) -> str:
        """What happened, as a sentence."""
        block = where(place_of(self.around, self.switch.outer.lineno))
        return (
            f"They were computed inside `{self.switch.text}` ({block}), but {short(ast.unparse(self.on))} "
            f"({where(self.place)}) switches grad mode on there, whatever it was before."
        )

    @property
    def fix(self) -> Fix:
        """A block in place of the line and of the one above it that switched grad mode off."""
        above = [one for one in source.block_of(self.run.source, self.on) if one.lineno < self.on.lineno]
        off = next((one for one in reversed(above) if _sets(one) is True), None)
        if isinstance(off, ast.Expr):
            between = [one for one in above if one.lineno > off.lineno]
            words, edits = as_block(self.run, off, self.on, between)
            text = f"{words}: grad mode is then as it was before."
            return Fix("restore_the_mode", text, False, at(place_of(self.run, off.lineno)), edits=edits)
        text = (
            f"Put what needs grad mode under `with torch.enable_grad():` in place of {short(ast.unparse(self.on))} "
            f"({where(self.place)}): behind that block it is as it was before."
        )
        return Fix("restore_the_mode", text, False, at(self.place))


def switched_on(record: Record, place: Place) -> SwitchedOn | None:
    """What has switched grad mode on where a graph was recorded, inside a block that had switched it off.

    None: nothing is known to have, or there is no such block.
    """
    inside: list[tuple[CellRun, ast.stmt]] = []
    for frame in (place, *reversed(place.stack)):
        found = statement_of(record, frame)
        if found is None or found in inside:
            continue
        inside.append(found)
        switch = grad_modes.deciding(found[0].source, found[1])
        if switch is not None:
            cause = next(_lines(record, inside, switch), None) if switch.off else None
            return SwitchedOn(*cause, found[0], switch) if cause is not None else None
    return None


def _lines(
    record: Record, inside: list[tuple[CellRun, ast.stmt]], switch: Switch
) -> Iterator[tuple[CellRun, ast.Expr]]:
    """The lines that have switched it on: above a line that was running, or in a function that the block calls."""
    for run, statement in inside[:-1]:
        function = source.function_at(run.source, statement.lineno)
        on = _last_on(function[1]) if function is not None else None
        if on is not None and on.lineno < statement.lineno:
            yield run, on
    run = inside[-1][0]
    own = _last_on(switch.outer)
    if own is not None:
        yield run, own
    called = {source.last_name(one) for one in source.calls_in(switch.outer)}
    for other in Cells.of(record).latest:
        for node in source.nodes_of(other.source):
            if isinstance(node, ast.FunctionDef) and node.name in called and (on := _last_on(node)) is not None:
                yield other, on


def _last_on(outer: ast.stmt) -> ast.Expr | None:
    """The last statement of a block or function that sets grad mode, if it switches it on."""
    body = getattr(outer, "body", [])
    sets = [one for one in source.own_statements(body) if isinstance(one, ast.Expr) and _is_set(one)]
    last = max(sets, key=lambda one: one.lineno, default=None)
    return last if last is not None and _sets(last) is False else None


def _is_set(one: ast.Expr) -> bool:
    return isinstance(one.value, ast.Call) and source.last_name(ast.unparse(one.value.func)) == "set_grad_enabled"


def _sets(one: ast.stmt) -> bool | None:
    """Whether a statement switches grad mode off (True) or on (False); None: that is not known, or it does neither."""
    return grad_modes.switches_off(one.value) if isinstance(one, ast.Expr) and _is_set(one) else None
