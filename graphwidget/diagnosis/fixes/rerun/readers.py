"""Whether statements that run again change what the later call reads: it has to read it by a name that they assign.

A tensor in a container, or with a second name, stays the same however often its first name is assigned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.reuse.named_edges import NamedEdges
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import lines_of
from graphwidget.model import Place

__all__ = ["are_read"]


def are_read(setting: Setting, again: Collection[Statement], spot: Spot, also: Collection[str] = ()) -> bool:
    """Whether each tensor that statements made, and that has to be fresh, is read by a name that they assign.

    Parameters
    ----------
    spot
        The line before which they are inserted.
    also
        Names of the call's root that are assigned beside them, from theirs.
    """
    assigned = {name for one in again for name in _stored(one.node)}
    lines = {(one.run.run, line) for one in again for line in _lines(one.node)}
    graph, needed = setting.reuse.graph, setting.reuse.needed
    for edge in NamedEdges(setting, graph, setting.reuse.reached).all:
        user, tensor = graph.place_of(edge.user), graph.place_of(edge.tensor)
        if edge.tensor not in needed or user is None or tensor is None:
            continue
        made = (tensor.run, tensor.outer_line)
        if made not in lines or made == (user.run, user.outer_line):
            continue
        if not any(assigned & _parts(name) for name in edge.names) or not _reads(setting, user, spot, assigned):
            return False
    return not setting.reuse.same_root or _reads(setting, setting.reuse.later.place, spot, {*assigned, *also})


def _reads(setting: Setting, place: Place, spot: Spot, names: Collection[str]) -> bool:
    """Whether a line at a place reads one of some names, or one that called it, in the function of `spot` or inside it.

    What calls that function has read them before.
    """
    spots, home = lines_of(place), setting.function_of(spot)
    inside = next((at for at, one in enumerate(spots) if setting.function_of(one) == home), 0)
    texts = [(one, setting.text_of_cell(one[0])) for one in spots[inside:]]
    found = [(one, s) for one, text in texts for s in source.statements_at(text, one[1])[-1:]]
    read = {part for at, s in found for path in source.paths_read(s) for part in _from_outside(setting, home, at, path)}
    return not found or not read.isdisjoint(names)


def _from_outside(setting: Setting, home: Spot, spot: Spot, path: str) -> set[str]:
    """The parts of a path that a line reads, without a variable of its own function, if that is not `home`."""
    name = root_of(path)
    inner = setting.function_of(spot) != home
    own = inner and not source.is_from_outside(setting.text_of_cell(spot[0]), spot[1], name)
    return _parts(path) - {name} if own else _parts(path)


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _parts(path: str) -> set[str]:
    """The variable and the attributes of a path; of what a call returns, the attributes."""
    path = path[path.rfind(")") + 1 :]
    first, *rest = re.findall(r"\.?\w+", re.sub(r"\[[^]]*\]", "", path)) or [path]
    return {first, *rest}


def _stored(statement: ast.stmt) -> set[str]:
    """Names that a statement assigns or fills, and attributes: ``.h``."""
    attributes = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return source.changed(statement) | {f".{node.attr}" for node in attributes}
