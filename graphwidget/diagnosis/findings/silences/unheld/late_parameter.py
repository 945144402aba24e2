"""Parameters that a module makes while it runs, after an optimizer was made of all the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = ["find"]

MOST_NAMED = 4


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line of a `forward` that makes parameters which no optimizer holds."""
    candidates = [leaf for leaf in record.unheld if leaf.parameter and not leaf.orphans]
    late = [(leaf, made) for leaf in candidates if (made := _made_in_forward(record, leaf)) is not None]
    paths = {local(leaf.path) for leaf, _ in late}
    by_line: dict[tuple[int, int], tuple[CellRun, ast.stmt, list[UnheldLeaf]]] = {}
    for leaf, (run, statement) in late:
        if _all_others_are_held(record, root_of(local(leaf.path)), paths):
            by_line.setdefault((run.run, statement.lineno), (run, statement, []))[2].append(leaf)
    for run, statement, leaves in by_line.values():
        shown = tuple(dict.fromkeys(spoken(leaf.path) for leaf in leaves))
        place, step = place_of(run, statement.lineno), where(leaves[0].place)
        them, is_ = ("it", "is") if len(shown) == 1 else ("them", "are")
        yield Finding(
            "silent",
            "warning",
            f"Backward gives {names(shown, MOST_NAMED)} {'a gradient' if them == 'it' else 'gradients'}, and no "
            f"optimizer that makes a step{f' ({step})' if step else ''} holds {them}. "
            f"{short(ast.unparse(statement))} ({where(place)}) makes {them} when the module runs, and the optimizer "
            "has all others: it was made before.",
            f"{names(shown, MOST_NAMED)} {is_} never trained: no optimizer holds {them}.",
            tensor=shown[0],
            made_at=place,
            names=shown,
            fixes=(
                Fix(
                    "new_optimizer",
                    f"Make the optimizer after the module has run once, or make {them} in `__init__` and only set the "
                    "value in `forward`.",
                    False,
                    at(place),
                ),
            ),
        )


def _made_in_forward(record: Record, leaf: UnheldLeaf) -> tuple[CellRun, ast.stmt] | None:
    """``self.s = Parameter(a)``: the only statement that makes a leaf's attribute a parameter, if in a `forward`."""
    name = re.sub(r"(\[[^]]*\])+$", "", spoken(leaf.path)).rpartition(".")[2]
    making = [
        (run, node)
        for run in Cells.of(record).latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and f"self.{name}" in syntax.targets(node)
        if "Parameter(" in ast.unparse(node)
    ]
    inside = syntax.function_at(making[0][0].source, making[0][1].lineno) if len(making) == 1 else None
    return making[0] if inside is not None and inside[0] is not None and inside[1].name == "forward" else None


def _all_others_are_held(record: Record, variable: str, late: set[str]) -> bool:
    """Whether optimizers have written to all parts of a variable that calls reach, but for those that came late."""
    reached = {local(path) for call in record.calls for path in call.reached}
    others = {path for path in reached if root_of(path) == variable} - late
    held = {local(path) for write in record.writes if write.optimizer for path in write.paths}
    return bool(others) and others <= held
