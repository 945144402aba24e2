"""Optimizer steps that change nothing and raise nothing, because no parameter has a gradient."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings.no_grad import where_cut, where_made_anew, where_made_numbers
from graphwidget.diagnosis.findings.silences import unheld
from graphwidget.diagnosis.no_graph.fresh_leaf import FreshLeaf
from graphwidget.diagnosis.source import paths, text_edit
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import at, lasting_name, names, place_of, root_name, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, Write

_STEP = ".step"


def find(record: Record) -> Iterator[Finding]:
    """Yield findings for idle steps after a backward, in the last run of each cell.

    None if all leaves that the backward reached have a finding already: that one says why no optimizer holds them.
    """
    known = {name for finding in unheld.find(record) for name in finding.names} if record.idle else set[str]()
    latest = Cells.of(record).latest
    for step in record.idle:
        ran = any(one.run == step.place.run for one in latest)
        run = next((one for one in latest if ran and one.cell == step.place.cell), None)
        before = [call for call in record.calls if call.n < step.after_calls and call.result == "ok"]
        if run is not None and before:
            given = _given_gradients(record, before[-1], step)
            if not given or not known.issuperset(given):
                yield from _of(record, run, step, before[-1], given)


def _of(record: Record, run: CellRun, step: Write, call: BackwardCall, given: tuple[str, ...]) -> Iterator[Finding]:
    owner = _owner(step)
    named = tuple(path for path in map(paths.local, step.paths) if ".param_groups[" not in path)
    cleared = _cleared(run, step, call, {owner, *map(paths.root_of, named)})
    shown = f"`{owner}.step()`" if owner else short(step.by)
    fixes: tuple[Fix, ...] = ()
    cause: Place | None = None
    if cleared is not None:
        line = short(source.line_text(run.source, cleared.lineno))
        why = f"{line} (In[{run.cell}], line {cleared.lineno}) clears the gradients that the backward before it gave."
        text = f"Clear them before the backward: move {line} in front of {where(call.place)}."
        spot = (run.cell, cleared.lineno) if run.cell is not None else None
        fixes = (Fix("zero_grad_or_step_order", text, False, spot, "It costs nothing."),)
    elif given and named:
        why = f"It has {names(named)}, which took no part in the backward before it: that reached {names(given)}."
        cause = where_cut(record, call, root_name(call))
        leaf = where_made_anew(record, call)
        if leaf is not None:
            line = f"{short(ast.unparse(leaf.call))} ({where(place_of(leaf.run, leaf.statement.lineno))})"
            why += f" {line} makes a new leaf: no graph leads from it to what its value was computed from."
            cause, fixes = place_of(leaf.run, leaf.statement.lineno), (_handed_on(leaf),)
            numbers = where_made_numbers(record, call, leaf)
            if numbers is not None:
                why += f" {short(numbers.source)} ({where(numbers)}) had left the graph before."
                cause, fixes = numbers, (replace(fixes[0], at=at(numbers)),)
        elif (copy := _copied(record, given, named)) is not None:
            why += f" {short(copy.source)} ({where(copy)}) copied it, and the loss is computed with the copy."
            cause, fixes = copy, (_of_the_copy(record, owner, given, named),)
    elif given:
        whose = f"`{owner}`" if owner else "the optimizer"
        why = f"The backward before it gave gradients to {names(given)}, which {whose} does not have."
        fixes = (_rebuilt(record, owner, given),)
    else:
        return
    yield Finding(
        "silent",
        "warning",
        f"{shown} ({where(step.place)}) went by no gradient: none of its parameters has one. {why}",
        f"{shown} changed nothing.",
        call.n,
        made_at=step.place,
        cause=cause,
        names=named or given,
        fixes=fixes,
    )


def _copied(record: Record, given: tuple[str, ...], named: tuple[str, ...]) -> Place | None:
    """Return the line that made what the backward reached as a copy of what the optimizer has."""
    copies, originals = {paths.root_of(path) for path in given}, {paths.root_of(path) for path in named}
    for run in Cells.of(record).latest:
        for name in sorted(copies):
            for statement in source.assignments(run.source, name):
                value = source.given(statement)
                made = any(called.rsplit(".", 1)[-1] == "deepcopy" for called in source.calls_in(value))
                if made and source.names_in(value) & originals:
                    return place_of(run, statement.lineno)
    return None


def _of_the_copy(record: Record, owner: str, given: tuple[str, ...], named: tuple[str, ...]) -> Fix:
    """Return a fix that gives the optimizer the parameters of the copy."""
    new, old = paths.root_of(given[0]), paths.root_of(named[0])
    text = f"Make the optimizer of the parameters of `{new}`, or compute the loss with `{old}`."
    for run in Cells.of(record).latest:
        for statement in source.assignments(run.source, owner)[-1:]:
            calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            asked = [one for one in calls if ast.unparse(one) == f"{old}.parameters()"]
            if len(asked) == 1 and run.cell is not None:
                edits = text_edit.replace_node(run.cell, run.source, asked[0], f"{new}.parameters()")
                return Fix("new_optimizer", text, False, (run.cell, statement.lineno), edits=edits)
    return Fix("new_optimizer", text, False)


def _handed_on(leaf: FreshLeaf) -> Fix:
    """Return the advice to hand on a tensor itself, not a new one with its value."""
    text = (
        f"Hand on the computed tensor itself instead of {short(ast.unparse(leaf.call))} "
        f"(In[{leaf.run.cell}], line {leaf.statement.lineno}), and compute it without `.item()` and the like."
    )
    spot = (leaf.run.cell, leaf.statement.lineno) if leaf.run.cell is not None else None
    return Fix("differentiable_op", text, False, spot)


def _rebuilt(record: Record, owner: str, given: tuple[str, ...]) -> Fix:
    """Return a fix that repeats the line that made the optimizer, if its parameters are leaves of the backward."""
    text = "Make the optimizer of the parameters that the backward reaches"
    for _, run in sorted(record.runs.items(), reverse=True):
        made = source.assignments(run.source, owner)[-1:]
        if made and run.cell is not None:
            line = (run.cell, made[0].lineno)
            about = source.names_in(made[0]) & {path.split(".")[0].split("[")[0] for path in given}
            again = f": run {short(ast.unparse(made[0]))} (In[{line[0]}], line {line[1]}) again" if about else ""
            return Fix("new_optimizer", f"{text}{again}.", False, line)
    return Fix("new_optimizer", f"{text}.", False, None)


def _cleared(run: CellRun, step: Write, call: BackwardCall, whose: Collection[str]) -> ast.stmt | None:
    """Return the statement between a call and a step of one cell that clears gradients of an optimizer or module."""
    if at(step.place) is None or call.place.cell != step.place.cell:
        return None
    between = source.between(run.source, (call.place.line or 0) - 1, step.place.line or 0)
    order = sorted(between, key=lambda one: (one.lineno, one.col_offset))
    called = [source.calls_in(one) for one in order]
    first = next((i for i, names in enumerate(called) if any(name.endswith(".backward") for name in names)), len(order))
    clearing = {f"{name}.zero_grad" for name in whose}
    return next((one for one, names in zip(order[first:], called[first:]) if clearing & set(names)), None)


def _given_gradients(record: Record, call: BackwardCall, step: Write) -> tuple[str, ...]:
    """Return the leaves of a call; none if the optimizer has some of them: then other code removed their gradients."""
    known = (one.graph for one in (call, *record.calls) if one.n in (call.n, call.same_as))
    graph = next((graph for graph in known if graph is not None), None)
    leaves = [leaf for leaf in graph.leaves.values() if leaf.paths] if graph is not None else []
    if any(set(leaf.paths) & set(step.paths) for leaf in leaves):
        return ()
    return tuple(sorted(lasting_name(record, leaf.paths) for leaf in leaves))


def _owner(step: Write) -> str:
    """Return the name of the optimizer in the line of the step; empty if unknown."""
    tree = source.parse(step.by)
    called = [name for name in (source.calls_in(tree) if tree else ()) if name.endswith(_STEP)]
    return called[0].removesuffix(_STEP) if len(called) == 1 else ""
