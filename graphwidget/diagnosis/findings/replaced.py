"""Parameters that get gradients and that no optimizer steps: it was made before a layer was replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import Finding, Fix, Place, Record, ReplacedParameters

__all__ = ["find"]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each optimizer that holds parameters of a layer that was replaced."""
    for replaced in record.replaced:
        yield _of(record, replaced)


def _of(record: Record, replaced: ReplacedParameters) -> Finding:
    paths = tuple(dict.fromkeys(map(spoken, replaced.paths)))
    one, old = len(paths) == 1, "a parameter" if replaced.old == 1 else f"{replaced.old} parameters"
    line = _that_replaced(record, paths)
    as_in = f": {short(line.source)} ({where(line)})" if line is not None else ""
    return Finding(
        "silent",
        "warning",
        f"{names(paths)} {'gets a gradient' if one else 'get gradients'}, and no optimizer holds {'it' if one else 'them'}: "
        f"{'it stays' if one else 'they stay'} as {'it is' if one else 'they are'}. The optimizer that steps in "
        f"{where(replaced.place) or 'the loop'} holds {old} that nothing else refers to any more and that no gradient "
        f"reaches. So it was made before a layer was replaced{as_in}.",
        f"No optimizer steps {names(paths)}.",
        made_at=line or replaced.place,
        names=paths,
        fixes=(
            Fix(
                "new_optimizer",
                "Make the optimizer after the layer has been replaced, or hand it the new parameters with "
                "`add_param_group`.",
                False,
                at(line or replaced.place),
            ),
        ),
    )


def _that_replaced(record: Record, paths: tuple[str, ...]) -> Place | None:
    """The one line, outside of `__init__`, that gives a module of these paths its value; None if it is not clear."""
    modules = {re.sub(r"\[[^]]*\]", "", path).rsplit(".", 1)[0] for path in paths if "." in path}
    for depth in range(1, 4):
        attributes = {part[-depth] for module in modules if len(part := module.split(".")) > depth}
        found = [place for attribute in sorted(attributes) for place in _setting(record, attribute)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _setting(record: Record, attribute: str) -> Iterator[Place]:
    for run in Cells.of(record).latest:
        tree = source.parse(run.source)
        for statement in ast.walk(tree) if tree is not None else ():
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                continue
            inside = source.function_at(run.source, statement.lineno)
            if inside is not None and inside[1].name == "__init__":
                continue
            if any(target.endswith(f".{attribute}") for target in source.targets(statement)):
                yield place_of(run, statement.lineno)
