"""A cut that the program meant to make: a statement detaches in vain what the passes carry over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.lost_detaches import LostDetach, lost_detaches
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import place_of, short, where
from graphwidget.model import Place

__all__ = ["LostCut", "callers", "lost_cuts", "mended"]

_DEEPEST = 4  # calls between the code that passes a state on and the statement that detaches it


@dataclass(frozen=True)
class LostCut:
    """A statement that detaches a carrier in vain, between two calls.

    `path` is what keeps the graph, as the code writes it that hands it to the function of the statement; `caller` is
    the line there, or that of the statement.
    """

    place: Place
    lost: LostDetach
    path: str
    caller: Spot

    @property
    def sentence(self) -> str:
        """What the statement does, and what it does not do."""
        line = f"{short(self.place.source)} ({where(self.place)})"
        if self.lost.how == "thrown":
            return f"{line} throws its result away: `{self.path}` keeps its graph."
        who = "the names of the loop" if self.lost.how == "loop" else "variables of the function"
        return f"{line} gives only {who} new tensors: `{self.path}` keeps the old ones."


def lost_cuts(setting: Setting, carriers: Iterable[str]) -> Iterator[LostCut]:
    """The statements that run between the two calls and detach one of the carriers in vain."""
    cells, carriers = Cells.of(setting.reuse.record), tuple(carriers)
    homes = {run.cell: run for run in cells.latest}
    for cell in cells.texts:
        for lost in lost_detaches(cells.texts, cell) if cell in homes else ():
            spot = (cell, lost.statement.lineno)
            for caller, path in callers(cells, spot, lost.of):
                known = any(_means(cells, caller, path, name) for name in carriers)
                if known and runs_between(setting, caller):
                    yield LostCut(place_of(homes[cell], spot[1]), lost, path, caller)
                    break


def mended(context: CuttingContext) -> Iterator[Cut]:
    """The statement keeps what it has detached."""
    cells = Cells.of(context.reuse.record)
    for one in lost_cuts(context.setting, context.paths):
        cell, new = one.place.cell, one.lost.new
        known = context.detaching.container(one.path)
        if not new or cell is None or (one.lost.needs and known != one.lost.needs):
            continue
        carried = context.later_edges(context.setting.forgets(one.caller)).carried()
        gone = (e.edge for e in carried if all(_means(cells, one.caller, one.path, name) for name in e.names))
        edits = text_edit.replace_node(cell, context.cells[cell], one.lost.statement, new)
        spot = (cell, one.lost.statement.lineno)
        sentence = f"Keep what is detached: {short(new)} (In[{spot[0]}], line {spot[1]})."
        yield Cut(sentence, spot, edits, frozenset(gone))


def callers(cells: Cells, spot: Spot, path: str) -> Iterator[tuple[Spot, str]]:
    """A path at a line, and at the lines that call its function, as each of them writes it."""
    work, seen = [(spot, path, 0)], {spot}
    while work:
        here, written, depth = work.pop(0)
        yield here, written
        inside = syntax.function_at(cells.text(here[0]), here[1])
        if inside is None or depth == _DEEPEST:
            continue
        for cell, text in cells.texts.items():
            for call in syntax.calls_by_name(text).get(inside[1].name, ()):
                given = _given(call, inside, written)
                if given and (cell, call.lineno) not in seen:
                    seen.add((cell, call.lineno))
                    work.append(((cell, call.lineno), given, depth + 1))


def _given(call: ast.Call, inside: tuple[ast.ClassDef | None, ast.FunctionDef], path: str) -> str:
    """What a call hands in for a path of the function that it calls; empty: unknown."""
    root = re.split(r"\W", path, maxsplit=1)[0]
    names = [one.arg for one in (*inside[1].args.posonlyargs, *inside[1].args.args)]
    if root == "self":
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        return ast.unparse(holder) + path[len(root) :] if holder is not None else ""
    if root not in names or any(isinstance(one, ast.Starred) for one in call.args):
        return ""
    at = names.index(root) - (inside[0] is not None and names[0] in ("self", "cls"))
    named = {one.arg: one.value for one in call.keywords}
    value = call.args[at] if 0 <= at < len(call.args) else named.get(root)
    return ast.unparse(value) + path[len(root) :] if value is not None else ""


def _means(cells: Cells, spot: Spot, path: str, carrier: str) -> bool:
    """Whether a path at a line is that of a carrier, or of what holds it."""
    inside = syntax.function_at(cells.text(spot[0]), spot[1])
    name, function = local(carrier), carrier.partition(":")[0] if ":" in carrier else ""
    if path.startswith("self."):
        return re.search(rf"{re.escape(path[len('self') :])}(?!\w)", name) is not None
    if function and (inside is None or inside[1].name != function):
        return False
    return re.match(rf"{re.escape(path)}(?!\w)", name) is not None
