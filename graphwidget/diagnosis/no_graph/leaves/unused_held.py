"""Roots without a graph that were computed beside all that optimizers hold: a new head that `forward` does not read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import names, place_of, short, where
from graphwidget.model import CellRun, Fix, IdleModule, MeasuredIdle, Place, Record

__all__ = ["beside_the_optimizer", "with_what_is_held"]


def beside_the_optimizer(
    record: Record, idle: MeasuredIdle, root: str, froze: tuple[CellRun, ast.stmt] | None
) -> Cause:
    """The cause that nothing which trains took part.

    Parameters
    ----------
    root
        The root, as a sentence names it.
    froze
        The statement that froze what the root was computed from.
    """
    text, place = _held(idle, root), None
    if froze is not None:
        place = place_of(froze[0], froze[1].lineno)
    if idle.frozen:
        what = names((idle.frozen[-1], *idle.frozen[:-1]), 2)
        by = f": {short(ast.unparse(froze[1]))} ({where(place)})" if froze is not None else ""
        text += f" What it was computed from, {what}, is frozen{by}."
    return Cause(text, _fix(record, idle, root, place), place)


def with_what_is_held(record: Record, idle: MeasuredIdle, root: str, found: Cause) -> Cause:
    """A cause that names constants, with what the optimizer holds in their place."""
    fix = found.fix if found.fix.edits else replace(_fix(record, idle, root, found.place), at=found.fix.at)
    return Cause(f"{found.text} {_held(idle, root)}", fix, found.place)


def _held(idle: MeasuredIdle, root: str) -> str:
    modules = len(idle.modules)
    several = (modules or idle.count) != 1
    never = f"{'were' if several else 'was'} never {'called' if modules else 'used'}"
    what = f"{'the parameters of ' if modules else ''}{_shown(idle)}"
    return f"The optimizer holds {what}, which {never}: {root} was computed from other tensors."


def _shown(idle: MeasuredIdle) -> str:
    return names(tuple(one.path for one in idle.modules) or idle.paths) or f"{idle.count} parameters"


def _fix(record: Record, idle: MeasuredIdle, root: str, place: Place | None) -> Fix:
    one = idle.modules[0] if len(idle.modules) == 1 else IdleModule("")
    edits, stored = _renamed(record, one) if one.instead else ((), None)
    if stored is not None and edits:
        run, target = stored
        called = f"{ast.unparse(target.value)}.{one.instead}"
        spot = place_of(run, target.lineno)
        words = f"Set it as `{called}`, the name that is called, in place of `{ast.unparse(target)}` ({where(spot)})."
        return Fix("use_the_new_head", words, False, line_of(spot), edits=edits)
    shown = _shown(idle)
    thaw = ", and let these require grad" if idle.frozen else ""
    words = f"Use {shown} where {root} is computed, or give the optimizer what {root} is computed from{thaw}."
    return Fix("use_the_new_head", words, False, line_of(place))


def _renamed(record: Record, module: IdleModule) -> tuple[Edits, tuple[CellRun, ast.Attribute] | None]:
    """The edits that give a module the other name wherever a program writes it, and where it is set.

    None where a class reads it of itself, or a text names it: what else it means there is unknown.
    """
    name = module.path.rpartition(".")[2]
    runs = Cells.of(record).latest
    found = [(run, node) for run in runs for node in _written(run.source, name)]
    set_there = [(run, node) for run, node in found if isinstance(node.ctx, ast.Store)]
    plain = all(not ast.unparse(node.value).startswith("self") for _, node in found)
    if len(set_there) != 1 or not plain or any(_is_named(run.source, name) for run in runs):
        return (), None
    edits = tuple(
        edit
        for run, node in found
        for edit in text_edit.replace_node(run.cell, run.source, node, f"{ast.unparse(node.value)}.{module.instead}")
    )
    return edits, set_there[0]


def _written(text: str, name: str) -> Iterator[ast.Attribute]:
    yield from (node for node in source.nodes_of(text) if isinstance(node, ast.Attribute) and node.attr == name)


def _is_named(text: str, name: str) -> bool:
    values: Sequence[object] = [node.value for node in source.nodes_of(text) if isinstance(node, ast.Constant)]
    return any(isinstance(one, str) and re.search(rf"\b{re.escape(name)}\b", one) for one in values)
