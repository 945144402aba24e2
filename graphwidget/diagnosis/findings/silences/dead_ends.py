"""A single value that is computed from parameters, and that no loss is computed from: a term that was not added."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.measured import place_at, statement_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import at, names, place_of, root_name, short, where
from graphwidget.model import CellRun, Finding, Fix, Place, Record, StarvedParameters

__all__ = ["DeadEnd", "end_of", "finding_of"]

MOST_NAMED = 4


class DeadEnd(NamedTuple):
    """The statement that computes the value; and the one behind it that goes through others of its kind, or None."""

    run: CellRun
    statement: ast.stmt
    filtering: ast.stmt | None

    @property
    def place(self) -> Place:
        """The line that leaves the value out, if one is known; else the line that computes it."""
        return place_of(self.run, (self.filtering or self.statement).lineno)


def end_of(record: Record, path: str, position: tuple[int, int] | None) -> DeadEnd | None:
    """Where what is computed from a parameter ends, as a second run has measured; None: nowhere, or it is not known."""
    ends = record.lineage.ends if record.lineage is not None else ()
    for one in reversed(ends):
        if path in one.leaves or position in one.positions:
            found = statement_of(record, place_at(record, one.lines))
            if found is not None and not isinstance(found[1], ast.Return):
                return DeadEnd(*found, _filtering(*found))
    return None


def _filtering(run: CellRun, statement: ast.stmt) -> ast.stmt | None:
    """``loss = sum(v for k, v in terms.items() if "loss" in k)`` behind ``terms[name] = value``."""
    put_in = {root_of(one) for one in syntax.targets(statement) if not one.isidentifier()}
    inside = syntax.function_at(run.source, statement.lineno)
    for one in syntax.own_statements(inside[1].body) if inside is not None and put_in else ():
        chosen = [node for node in ast.walk(one) if isinstance(node, ast.comprehension) and node.ifs]
        if one.lineno > statement.lineno and any(put_in & syntax.names_in(node.iter) for node in chosen):
            return one
    return None


def finding_of(record: Record, starved: StarvedParameters, end: DeadEnd, paths: tuple[str, ...]) -> Finding:
    """The finding for parameters whose only value goes nowhere."""
    shown, whose = names(paths, MOST_NAMED), "it" if len(paths) == 1 else "them"
    made = place_of(end.run, end.statement.lineno)
    value = next(iter(syntax.targets(end.statement)), "")
    text = (
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. {short(ast.unparse(end.statement))} ({where(made)}) computes a single value from "
        f"{whose}, and no loss is computed from that."
    )
    if end.filtering is not None:
        text += f" {short(ast.unparse(end.filtering))} ({where(end.place)}) takes only others by its condition."
    advice = f"If {whose if whose == 'it' else 'they'} should train, add {f'`{value}`' if value else 'it'} to the loss."
    return Finding(
        "silent",
        "warning",
        text,
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=end.place,
        cut_at=end.place,
        names=(value,) if value else (),
        fixes=(Fix("use_input", advice, False, at(end.place), edits=_added(record, end, value), choice=True),),
    )


def _added(record: Record, end: DeadEnd, value: str) -> text_edit.Edits:
    """``loss = loss + value`` before the only backward of the function that computes it."""
    inside = syntax.function_at(end.run.source, end.statement.lineno)
    calls = {
        (call.place.line or 0, root_name(call))
        for call in record.calls
        if call.result == "ok" and call.place.cell == end.run.cell and (call.place.line or 0) > end.statement.lineno
    }
    here = [one for one in calls if syntax.function_at(end.run.source, one[0]) == inside]
    if end.filtering is not None or not value.isidentifier() or len(here) != 1 or not here[0][1].isidentifier():
        return ()
    line, root = here[0]
    if syntax.loop_at(end.run.source, line) is not syntax.loop_at(end.run.source, end.statement.lineno):
        return ()
    return text_edit.insert_before(end.run.cell, end.run.source, line, [f"{root} = {root} + {value}"])
