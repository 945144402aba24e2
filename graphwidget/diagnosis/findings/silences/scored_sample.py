"""Samples that move with what they are scored by: the gradient of the score and that of the sample cancel.

The density of ``mean + std * noise`` around its own `mean` depends on the noise only. A score needs a sample that is
fixed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.model import Fix, Place, Record, Snapshot

__all__ = ["Drawn", "drawn_between", "fixed"]

_NOISE = frozenset(("randn", "randn_like", "rand", "rand_like", "normal", "normal_", "uniform_", "exponential_"))


class Drawn(NamedTuple):
    """The statement that drew a sample, and its call of `rsample`; None: it is written out, with its noise."""

    place: Place
    statement: ast.stmt
    call: ast.Call | None

    @property
    def shown(self) -> str:
        return f"{short(ast.unparse(self.statement))} ({where(self.place)})"


def drawn_between(record: Record, graph: Snapshot, node: int) -> Drawn | None:
    """The line that drew a sample on one of two ways from a node to one behind it, of which the other has no node."""
    cells = Cells.of(record)
    for between in _detour(graph, node):
        place = graph.place_of(between)
        spot = at(place)
        statement = cells.statement(spot) if spot is not None else None
        if place is None or spot is None or statement is None or spot == at(graph.place_of(node)):
            continue
        calls = _calls(statement, "rsample")
        if len(calls) == 1:
            return Drawn(place, statement, calls[0])
        if not calls and _has_noise(cells.text(spot[0]), statement):
            return Drawn(place, statement, None)
    return None


def _detour(graph: Snapshot, node: int) -> list[int]:
    """The nodes on ways from a node to another one, to which it also leads at once; the nearest first."""
    after = list(dict.fromkeys(graph.next(node)))
    for meeting in after:
        found = [one for one in after if one != meeting]
        known, above = {node, meeting, *found}, dict[int, list[int]]()
        for one in found:
            for to in graph.next(one):
                above.setdefault(to, []).append(one)
                if to not in known:
                    known.add(to)
                    found.append(to)
        leading, work = set[int](), [meeting]
        while work:
            new = [one for one in above.get(work.pop(), ()) if one not in leading]
            leading.update(new)
            work += new
        if leading:
            return [one for one in found if one in leading]
    return []


def _has_noise(text: str, statement: ast.stmt) -> bool:
    """Whether a statement draws random numbers, or reads a name for some."""
    made = [
        one
        for name in source.names_read(statement)
        for one in source.bindings(text, name, statement.lineno)[-1:]
        if source.function_at(text, one.lineno) == source.function_at(text, statement.lineno)
    ]
    called = (name for one in (statement, *made) for name in source.calls_in(one))
    return any(source.last_name(name) in _NOISE for name in called)


def fixed(record: Record, drawn: Drawn, scoring: Place | None) -> Iterator[Fix]:
    """Draw a sample that is fixed; or score one."""
    cells, spot, score = Cells.of(record), at(drawn.place), at(scoring)
    text = cells.text(spot[0]) if spot is not None else ""
    line = f" ({where(drawn.place)})"
    price = "The gradient is that of the score; nothing goes through the sample any more."
    if spot is not None and drawn.call is not None and isinstance(drawn.call.func, ast.Attribute):
        new = f"{ast.unparse(drawn.call.func.value)}.sample"
        edits = text_edit.replace_node(spot[0], text, drawn.call.func, new)
        yield Fix(
            "fixed_sample", f"Draw with `sample()` in place of `rsample()`{line}.", False, spot, price, edits=edits
        )
    elif spot is not None and isinstance(drawn.statement, (ast.Assign, ast.Return)) and drawn.statement.value:
        value = drawn.statement.value
        shown = ast.unparse(value)
        new = f"{shown if isinstance(value, (ast.Name, ast.Call, ast.Attribute)) else f'({shown})'}.detach()"
        edits = text_edit.replace_node(spot[0], text, value, new)
        yield Fix("fixed_sample", f"Detach the sample{line}: {short(new)}.", False, spot, price, edits=edits)
    statement = cells.statement(score) if score is not None else None
    calls = _calls(statement, "log_prob") if statement is not None else []
    if score is not None and len(calls) == 1 and len(calls[0].args) == 1:
        (given,) = calls[0].args
        if isinstance(given, (ast.Name, ast.Attribute)):
            edits = text_edit.insert_behind(score[0], cells.text(score[0]), given, ".detach()")
            said = f"Score a fixed sample: `log_prob({ast.unparse(given)}.detach())` ({where(scoring)})."
            yield Fix("fixed_sample", said, False, score, "Other uses of the sample keep their gradients.", edits=edits)


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    found = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
    return [one for one in found if isinstance(one.func, ast.Attribute) and one.func.attr == name]
