"""Attributes of a module that are computed from a parameter of no name: ``self.w = nn.Parameter(a).to(dtype)``.

The module keeps a computed tensor, which it does not list. The backward gives its gradients to the leaf behind that,
which no optimizer can be given.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.made_parameters import as_parameter, computed_from
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["find"]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that keeps what was computed from a parameter in its place."""
    if not any(write.optimizer for write in record.writes) or not _has_nameless_leaf(record):
        return
    owned = {owner.path for owner in record.snapshot.owners}
    owned |= {owner.path for call in record.calls if call.graph is not None for owner in call.graph.owners}
    for run in Cells.of(record).latest:
        for cls in (node for node in syntax.nodes_of(run.source) if isinstance(node, ast.ClassDef)):
            if not any("Module" in ast.unparse(base) for base in cls.bases):
                continue
            for statement in (node for node in ast.walk(cls) if isinstance(node, (ast.Assign, ast.AnnAssign))):
                target = next(iter(syntax.targets(statement)), "")
                made = computed_from(statement.value) if target.startswith("self.") else None
                paths = [path for path in owned if path.endswith(target.removeprefix("self"))]
                if made is not None and paths:
                    yield _of(record, run, statement, min(paths, key=len), made)


def _has_nameless_leaf(record: Record) -> bool:
    """Whether calls have given gradients again and again to a leaf that no variable leads to."""
    found = Counter[int]()
    graphs = {call.n: call.graph for call in record.calls}
    for call in record.calls:
        graph = graphs.get(call.same_as, call.graph) if call.same_as is not None else call.graph
        reached = set(call.reached_uids)
        for index, leaf in graph.leaves.items() if graph is not None and call.result == "ok" else ():
            if not leaf.paths and (not reached or graph.uid[index] in reached):  # type: ignore[union-attr]
                found[graph.uid[index]] += 1  # type: ignore[union-attr]
    return any(times > 1 for times in found.values())


def _of(record: Record, run: CellRun, statement: ast.Assign | ast.AnnAssign, path: str, made: ast.Call) -> Finding:
    place, value = place_of(run, statement.lineno), statement.value
    shown = f"{short(ast.unparse(statement))} ({where(place)})"
    new = as_parameter(value, made) if value is not None else ""
    edits = text_edit.replace_node(run.cell, run.source, value, new) if value is not None and new else ()
    return Finding(
        "silent",
        "warning",
        f"{shown} computes `{path}` from {short(ast.unparse(made))}, and keeps only what was computed. A module lists "
        "what is a parameter itself, so no optimizer has it; backward gives its gradient to the leaf behind it, which "
        f"nothing leads to. So `{path}` stays as it is.",
        f"`{path}` is never trained: it is computed from a parameter, and is none.",
        tensor=path,
        made_at=place,
        cause=place,
        names=(path,),
        fixes=(
            Fix(
                "register_modules",
                f"Compute first, and make a parameter of the result{f': {short(new, 80)}' if new else ''}.",
                False,
                at(place),
                edits=edits,
            ),
        ),
    )
