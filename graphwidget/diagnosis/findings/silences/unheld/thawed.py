"""Parameters that were frozen while an optimizer was made and stepped, and that require grad since: it lacks them."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, unheld_wholes
from graphwidget.diagnosis.findings.silences.unheld.replaced import given_of, takes_all
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, where
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["thawed_later"]

_THAWING = ("requires_grad_(True)", "requires_grad_()", "requires_grad = True")


def thawed_later(record: Record, makers: list[Line], leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves that were measured to require no grad at an earlier step.

    Parameters
    ----------
    makers
        The lines that make optimizers.
    """
    lines = [Line(run, one) for run in Cells.of(record).latest for one in _thawing(syntax.nodes_of(run.source))]
    line = lines[0] if len(lines) == 1 else None
    shown = named(leaves)
    they, them = ("it", "it") if len(shown) == 1 else ("they", "them")
    by = f" {line.shown} let {them} require grad." if line is not None else ""
    maker = makers[0] if len(makers) == 1 else None
    made = f" ({where(maker.place)})" if maker is not None else ""
    why = (
        f"At earlier steps {they} required no grad.{by} The optimizer{made} was made of what required grad before, and "
        "an optimizer does not look for more."
    )
    wholes = unheld_wholes(leaves)  # of a larger one the optimizer has parameters, and would refuse them
    whole = wholes[0] if len(wholes) == 1 and wholes[0] not in shown else "them"
    given = (
        f"give {them} to the optimizer when {they} {'is' if they == 'it' else 'are'} unfrozen: "
        f'`opt.add_param_group({{"params": {whole}.parameters()}})`'
    )
    edits = _of_all(maker) if maker is not None else ()
    everything = "make the optimizer of all parameters from the beginning: it leaves alone what has no gradient"
    text = f"{everything}. Or {given}." if edits else f"{given}; or {everything}."
    place = line.place if line is not None else leaves[0].place
    fix = Fix("new_optimizer", text[0].upper() + text[1:], False, at(place), edits=edits)
    return finding_of(shown, place, why, leaves, fix)


def _of_all(maker: Line) -> Edits:
    """The optimizer of a line made of all parameters: without the test by which those that require grad are chosen."""
    edits: Edits = ()
    for given in given_of(maker) if takes_all(maker) else ():
        for node in ast.walk(given):
            if isinstance(node, ast.Call) and len(node.args) == 2 and isinstance(node.args[0], ast.Lambda):
                new = ast.unparse(node.args[1])  # ``filter(lambda p: p.requires_grad, net.parameters())``
            elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and any(one.ifs for one in node.generators):
                every = [ast.comprehension(one.target, one.iter, [], one.is_async) for one in node.generators]
                new = ast.unparse(type(node)(node.elt, every))
            else:
                continue
            edits += text_edit.replace_node(maker.run.cell, maker.run.source, node, new)
    return edits


def _thawing(nodes: tuple[ast.AST, ...]) -> list[ast.stmt]:
    plain = [one for one in nodes if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return [one for one in plain if ast.unparse(one).endswith(_THAWING)]
