"""Leaves of a copy, where the optimizer holds the parameters of what was copied."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, around, finding_of, named, parts_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import at, spoken
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["are_copies", "is_copied"]


def are_copies(leaves: list[UnheldLeaf]) -> bool:
    """Whether all were measured to be copies, and one has values that are no coincidence."""
    return bool(leaves) and all(leaf.copy_of for leaf in leaves) and not all(leaf.uniform for leaf in leaves)


def is_copied(record: Record, maker: Line | None, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves of a copy. `maker`: the line that made the optimizer."""
    shown, copied = named(leaves), _copying(record, leaves)
    new, old = _wholes(leaves)
    by = f" {copied.shown} makes it." if copied is not None else ""
    why = (
        f"`{new}` is a copy of `{old}`: names, shapes and values are the same.{by} The optimizer holds the parameters "
        f"of `{old}`, which no backward reaches."
    )
    anew = f"Make the optimizer of the parameters of `{new}`"
    edits = _uncopied(copied) if copied is not None else ()
    fix = Fix(
        "new_optimizer",
        f"{anew}, or do not copy{': then both are one' if edits else ''}.",
        False,
        at(copied.place) if copied is not None else at(maker.place) if maker is not None else None,
        edits=edits,
        choice=bool(edits),
    )
    cause = copied or maker
    return finding_of(shown, cause.place if cause is not None else leaves[0].place, why, leaves, fix)


def _wholes(leaves: list[UnheldLeaf]) -> tuple[str, str]:
    """The copy and the original: the outermost objects around all leaves, in which these are called the same."""
    new, old = (around(paths) or root_of(spoken(paths[0])) for paths in zip(*((x.path, x.copy_of) for x in leaves)))
    while (part := syntax.last_name(new)) == syntax.last_name(old) and new != part != old:
        new, old = new.removesuffix(f".{part}"), old.removesuffix(f".{part}")
    return new, old


def _copying(record: Record, leaves: list[UnheldLeaf]) -> Line | None:
    """The only statement that gives a part of the paths what `deepcopy` makes."""
    parts = set(parts_of(leaves[0].path)).intersection(*(parts_of(leaf.path) for leaf in leaves))
    found = [
        Line(run, one)
        for run in Cells.of(record).latest
        for one in syntax.nodes_of(run.source)
        if isinstance(one, (ast.Assign, ast.AnnAssign))
        and _copies_in(one)
        and parts.intersection(map(syntax.last_name, syntax.targets(one)))
    ]
    return found[0] if len(found) == 1 else None


def _copies_in(statement: ast.stmt) -> list[ast.Call]:
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call) and len(node.args) == 1)
    return [one for one in calls if syntax.last_name(ast.unparse(one.func)) == "deepcopy"]


def _uncopied(line: Line) -> text_edit.Edits:
    """What was copied, in place of the copy."""
    calls = _copies_in(line.statement)
    new = ast.unparse(calls[0].args[0])
    return text_edit.replace_node(line.run.cell, line.run.source, calls[0], new) if len(calls) == 1 else ()
