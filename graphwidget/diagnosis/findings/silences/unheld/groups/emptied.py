"""A group of an optimizer that is empty because an earlier optimizer has used up the generator of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.clips.used_up import Made, generates, listed, made_into_a_list
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import EmptyGroup, Finding, Fix, Record

__all__ = ["find"]

MOST_NAMED = 4


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each such group."""
    for one in record.empty_groups:
        if where(one.place):
            yield _of(record, one)


def _of(record: Record, one: EmptyGroup) -> Finding:
    paths = tuple(dict.fromkeys(map(spoken, one.paths)))
    shown = names(paths, MOST_NAMED) or f"{one.before} parameters"
    found = _generator(record)
    text = (
        f"The optimizer of {short(one.place.source)} ({where(one.place)}) has a group without parameters. In an "
        f"earlier optimizer this group had {one.before}: {shown}. No step changes them any more."
    )
    advice = "Give each optimizer a list of its parameters: `list(...)` or `[p for p in ...]`."
    fix = Fix("keep_in_a_list", advice, False, at(one.place))
    cause = one.place
    if found is not None:
        name, made = found
        cause = place_of(made.run, made.node.lineno)
        text += (
            f" `{name}` is a generator, {short(ast.unparse(made.node))} ({where(cause)}), and gives its values once: "
            "the earlier optimizer took them all."
        )
        advice = f"Make a list of it, which can be read again: `{made_into_a_list(made)}` ({where(cause)})."
        fix = Fix("keep_in_a_list", advice, False, at(cause), edits=tuple(listed(made)))
    return Finding(
        "silent",
        "warning",
        text,
        f"{shown} {'is' if len(paths) == 1 else 'are'} in no optimizer any more: the group is empty.",
        tensor=paths[0] if paths else None,
        made_at=cause,
        cause=cause,
        names=(*paths, *((found[0],) if found is not None else ())),
        fixes=(fix,),
    )


def _generator(record: Record) -> tuple[str, Made] | None:
    """The only name of a generator that a line gives to an optimizer, or to a group of one."""
    latest = [run for run in Cells.of(record).latest if run.cell is not None]
    given = {ast.unparse(one) for run in latest for one in _given(syntax.nodes_of(run.source))}
    found = [
        (name, Made(run, node.value))
        for run in latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and generates(latest, node.value)
        if (name := ast.unparse(node.targets[0])) in given
    ]
    return found[0] if len(found) == 1 else None


def _given(nodes: tuple[ast.AST, ...]) -> Iterator[ast.expr]:
    """``{"params": these}``, ``dict(params=these)``, and the first argument of an optimizer."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params")
        elif isinstance(node, ast.Call):
            yield from (one.value for one in node.keywords if one.arg == "params")
            yield from node.args[:1] if OPTIMIZER.search(f"{ast.unparse(node.func)}(") else ()
