"""Parameters that an optimizer was made to train, and that a line has frozen on the way to something else.

To freeze may be meant. So nothing is said where the program says so: where the line that freezes stands beside the
steps themselves, in one function; where the statement there that leads to it speaks of freezing, of training or of
grad, or calls a function that does nothing else; and where the same call of it has let them require grad before, or
freezes under an `if` what had trained: a schedule.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.measured import run_of, statements
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, MeasuredFrozen, Record, TextLine

__all__ = ["find"]

_MOST_NAMED = 4
# Words of a program that freezes on purpose. `Trainer` and `training_step` are none.
_SAYS_SO = re.compile(r"freez|frozen|train(?!er|ing)|(?<!auto)grad(?!io|e|ual)", re.IGNORECASE)
_ANYWHERE = re.compile(r"freez|frozen", re.IGNORECASE)


class _Line(NamedTuple):
    run: CellRun
    statement: ast.stmt

    @property
    def shown(self) -> str:
        return f"{short(_head(self.statement))} ({where(place_of(self.run, self.statement.lineno))})"


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that froze parameters of an optimizer."""
    for one in record.lineage.held_frozen if record.lineage is not None else ():
        lead = _leading(record, one)
        if lead is not None and one.paths:
            yield _of(record, one, *lead)


def _of(record: Record, one: MeasuredFrozen, lead: _Line, froze: _Line, stepped: _Line) -> Finding:
    paths = tuple(dict.fromkeys(map(spoken, one.paths)))
    shown, single = names(paths, _MOST_NAMED), len(paths) == 1
    they, them, do, are, their = ("it", "it", "does", "is", "its") if single else ("they", "them", "do", "are", "their")
    place, step = (place_of(line.run, line.statement.lineno) for line in (froze, stepped))
    before = f"{one.trained} steps found a gradient before. " if one.trained > 1 else ""
    edits, owner = _restored(lead, stepped) if one.alone else ((), "")
    spot = place_of(lead.run, lead.statement.lineno)
    whose = f"`{owner}`" if owner else "the optimizer"
    return Finding(
        "silent",
        "warning",
        f"The optimizer was made of what required grad, and {they} did. {before}{lead.shown} led to {froze.shown}, "
        f"which froze {them}, and nothing has put that back. {they.capitalize()} {are} computed with all the same, and "
        f"had no gradient at {one.steps} steps since ({where(step)}).",
        f"{shown} {do} not train any more: {their} `requires_grad` is False.",
        tensor=paths[0],
        made_at=place,
        cause=place,
        names=(*paths, "requires_grad"),
        fixes=(
            Fix(
                "restore_requires_grad",
                f"Let what {whose} holds require grad again behind {lead.shown}"
                f"{'' if owner else f': remember `requires_grad` of {shown} before it'}. Or do what it does with a "
                "copy, or let it not freeze what is trained.",
                False,
                at(spot),
                edits=edits,
            ),
        ),
    )


def _leading(record: Record, one: MeasuredFrozen) -> tuple[_Line, _Line, _Line] | None:
    """The statement beside the steps that led to the one that froze, that one, and the step. None: it may be meant.

    They are beside each other in the innermost function that was running both times.
    """
    froze, stepped = _functions(record, one.lines), _functions(record, one.stepped)
    lead: tuple[_Line, _Line] | None = None
    for (first, function), (second, other) in zip(froze, stepped):
        if function != other:
            break
        lead = (first, second)
    if lead is None or lead[0] is froze[-1][0]:
        return None
    inner = froze[[line for line, _ in froze].index(lead[0]) :]
    named = " ".join(text for line, function in inner for text in (_head(line.statement), str(function[-1])))
    if _SAYS_SO.search(_head(lead[0].statement)) or _ANYWHERE.search(named):
        return None
    called = [line for line, _ in inner[1:]]
    if (len(called) == 1 and _only_freezes(called[0])) or (one.trained and any(map(_is_under_if, called))):
        return None
    return lead[0], froze[-1][0], lead[1]


def _functions(record: Record, lines: Sequence[TextLine]) -> list[tuple[_Line, tuple[object, ...]]]:
    """The statements at some lines, the outermost first, with the function of each: its file or cell, and its name."""
    found: list[tuple[_Line, tuple[object, ...]]] = []
    for line in reversed(lines):
        run = run_of(record, line)
        here = next(statements(record, (line,)), None)
        if run is None or here is None:
            return found  # what is further inside cannot be told
        inside = syntax.function_at(run.source, line.line)
        name = inside[1].name if inside is not None else ""
        spot = (line.file, line.cell, inside[1].lineno) if inside is not None else (line.file, None, 0)
        found.append((_Line(*here), (*spot, name)))
    return found


def _only_freezes(line: _Line) -> bool:
    """Whether a function does nothing but set `requires_grad` to False, and modes."""
    inside = syntax.function_at(line.run.source, line.statement.lineno)
    if inside is None or not re.search(r"requires_grad(_\(| = )False", ast.unparse(line.statement)):
        return False
    own = (one for one in syntax.own_statements(inside[1].body) if not hasattr(one, "body"))
    return all(
        (isinstance(one, (ast.Return, ast.Pass)) and not syntax.calls_in(one))
        or "requires_grad" in (text := ast.unparse(one))
        or text.endswith(".eval()")
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in own
    )


def _is_under_if(line: _Line) -> bool:
    """Whether a statement runs under a condition of its function."""
    return any(isinstance(one, ast.If) for one in syntax.statements_at(line.run.source, line.statement.lineno))


def _head(statement: ast.stmt) -> str:
    """The text of a statement, of one with a block its head."""
    return ast.unparse(statement).split("\n", 1)[0]


def _restored(lead: _Line, stepped: _Line) -> tuple[Edits, str]:
    """Let all that the optimizer of a step holds require grad behind a statement, and the optimizer's name."""
    calls = [node for node in ast.walk(stepped.statement) if isinstance(node, ast.Call)]
    steps = [node.func for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "step"]
    if len(steps) != 1 or hasattr(lead.statement, "body"):
        return (), ""
    owner = ast.unparse(steps[0].value)
    used = {node.id for node in syntax.nodes_of(lead.run.source) if isinstance(node, ast.Name)}
    name = "held" if "held" not in used else "held_by_optimizer"
    lines = [
        f'for {name} in [one for group in {owner}.param_groups for one in group["params"]]:',
        f"    {name}.requires_grad_(True)",
    ]
    edits = text_edit.insert_after(lead.run.cell, lead.run.source, lead.statement, lines)
    return edits, owner if edits else ""
