"""Parameters that were frozen while an optimizer was made and stepped, and that require grad since: it lacks them."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, around, finding_of, named
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["thawed_later"]

_THAWING = ("requires_grad_(True)", "requires_grad_()", "requires_grad = True")


def thawed_later(record: Record, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves that were measured to require no grad at an earlier step."""
    lines = [Line(run, one) for run in Cells.of(record).latest for one in _thawing(syntax.nodes_of(run.source))]
    line = lines[0] if len(lines) == 1 else None
    shown = named(leaves)
    they, them = ("it", "it") if len(shown) == 1 else ("they", "them")
    by = f" {line.shown} let {them} require grad." if line is not None else ""
    why = (
        f"At earlier steps {they} required no grad.{by} The optimizer was made of what required grad before, and an "
        "optimizer does not look for more."
    )
    whole = around(shown) or "them"
    text = (
        f"Give {them} to the optimizer when {they} {'is' if they == 'it' else 'are'} unfrozen: "
        f'`opt.add_param_group({{"params": {whole}.parameters()}})`; or make it of all parameters from the beginning: '
        "it leaves alone what has no gradient."
    )
    place = line.place if line is not None else leaves[0].place
    return finding_of(shown, place, why, leaves, Fix("new_optimizer", text, False, at(place)))


def _thawing(nodes: tuple[ast.AST, ...]) -> list[ast.stmt]:
    plain = [one for one in nodes if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return [one for one in plain if ast.unparse(one).endswith(_THAWING)]
