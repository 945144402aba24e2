"""Optimizer steps that change nothing and raise nothing, because no parameter has a gradient."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.no_grad import where_cut, where_made_anew, where_made_numbers
from graphwidget.diagnosis.findings.silences import unheld
from graphwidget.diagnosis.findings.silences.cut_before_root import cut_before_root, cut_elsewhere, uncut
from graphwidget.diagnosis.findings.silences.inner_gradients import graphs_built, inner_gradients, said_of
from graphwidget.diagnosis.findings.silences.steps import cleared_early, made_anew
from graphwidget.diagnosis.findings.silences.steps.clearing import clears, where_cleared
from graphwidget.diagnosis.findings.silences.steps.idle.other_twin import other_twin
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, around
from graphwidget.diagnosis.findings.silences.unheld.replaced import replaced_at
from graphwidget.diagnosis.no_graph.leaves import forced_leaf
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.way_forward import why_cut
from graphwidget.diagnosis.source import paths
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, lasting_name, names, place_of, root_name, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Leaf, Place, Record, Write

_STEP = ".step"


def find(record: Record) -> Iterator[Finding]:
    """Yield findings for idle steps after a backward, in the last run of each cell.

    None if all leaves that the backward reached have a finding already: that one says why no optimizer holds them.
    """
    others = [one for one in unheld.find(record) if one.severity == "warning"] if record.idle else []
    known = {name for finding in others for name in finding.names}
    latest = Cells.of(record).latest
    for step in record.idle:
        ran = any(one.run == step.place.run for one in latest)
        run = next((one for one in latest if ran and one.cell == step.place.cell), None)
        before = [call for call in record.calls if call.n < step.after_calls and call.result == "ok"]
        if run is not None and before:
            call = _meant_for(record, before, step)
            given = _given_gradients(record, call, step)
            if not given or not known.issuperset(given):  # None: unknown, or none of its own
                yield from _of(record, run, step, call, given)


def _meant_for(record: Record, before: list[BackwardCall], step: Write) -> BackwardCall:
    """The backward whose gradients a step is to use: the first behind the line that clears those of its optimizer.

    Else the last one before the step.
    """
    text, owner, line = Cells.of(record).text(step.place.cell), _owner(step), step.place.line or 0
    there = [one for one in before if one.place.cell == step.place.cell and (one.place.line or 0) < line]
    statements = [one for one in source.leading_to(text, line) if f"{owner}.zero_grad" in source.calls_in(one)]
    if owner and statements and source.function_at(text, statements[-1].lineno) == source.function_at(text, line):
        found = [one for one in there if (one.place.line or 0) > statements[-1].lineno]
        if found:
            first = min(one.place.line or 0 for one in found)
            return next(one for one in reversed(found) if one.place.line == first)
    return before[-1]


def _of(
    record: Record, run: CellRun, step: Write, call: BackwardCall, given: tuple[str, ...] | None
) -> Iterator[Finding]:
    owner = _owner(step)
    named = tuple(path for path in map(paths.local, step.paths) if ".param_groups[" not in path)
    cleared = _cleared(record, run, step, call, {owner, *map(paths.root_of, named)}, own=given is None)
    measured = cleared_early.finding_at(record, step.place) if cleared is None else None
    if measured is not None:
        yield measured
        return
    shown = f"`{owner}.step()`" if owner else short(step.by)
    fixes: tuple[Fix, ...] = ()
    cause: Place | None = None
    cutting: tuple[str, ...] = ()
    if cleared is not None:
        line, cause = short(source.line_text(run.source, cleared.statement.lineno)), cleared.place
        inner = "" if at(cause) == at(place_of(run, cleared.statement.lineno)) else f", called by {line},"
        why = f"{short(cause.source)} ({where(cause)}){inner} clears the gradients that the backward before it gave."
        text = f"Clear them before the backward: move {line} in front of {where(call.place)}."
        spot = (run.cell, cleared.statement.lineno) if run.cell is not None else None
        edits = _cleared_before(run, cleared.statement, call)
        fixes = (Fix("zero_grad_or_step_order", text, False, spot, "It costs nothing.", edits=edits),)
    elif given is not None and named:
        reached = f": that reached {names(given)}" if given else ""
        why = f"It has {names(named)}, which took no part in the backward before it{reached}."
        cause = where_cut(record, call, root_name(call))
        leaf = where_made_anew(record, call)
        if leaves := made_anew.written(record, step):
            cause = made_anew.place_of_cut(leaves)
            why += f" {made_anew.said_of(leaves)}"
            fixes = (made_anew.not_in_leaves(record, leaves),)
        elif leaf is not None:
            why += f" {leaf.sentence}"
            undone = forced_leaf.undone(record, call, leaf)
            cut_off = made_anew.numbers_of(record, step)
            cause, fixes = leaf.place, tuple(one.fix for one in undone) or (made_anew.handed_on(leaf, cut_off),)
            numbers = made_anew.place_of_cut(cut_off) or where_made_numbers(record, call, leaf)
            if undone:
                why += f" {undone[0].text}" if at(undone[0].place) != at(leaf.place) else ""
                cause = undone[0].place
            elif numbers is not None:
                why += f" {short(numbers.source)} ({where(numbers)}) had left the graph before."
                cause, fixes = numbers, (replace(fixes[0], at=at(numbers)),)
        elif (copy := _copied(record, given, named)) is not None:
            why += f" {short(copy.source)} ({where(copy)}) copied it, and the loss is computed with the copy."
            cause, fixes = copy, (_of_the_copy(record, owner, given, named),)
        elif (twin := other_twin(record, owner, given, named)) is not None:
            why, cause, fixes = why + twin.sentence, twin.place, (twin.fix,)
        elif (cut := cut_before_root(record, call, step.paths)) is not None:
            cause, said = _said_of_cut(cut)
            why, fixes, cutting = why + said, (uncut(record, call, cut),), (cut.by,)
        elif leaves := made_anew.in_leaves(record, step):
            cause = made_anew.place_of_cut(leaves)
            why += f" {made_anew.said_of(leaves)}"
            fixes, cutting = (
                (made_anew.not_in_leaves(record, leaves),),
                ("Parameter",) if leaves[0].by == "Parameter" else (),
            )
        elif gradients := inner_gradients(record, call, step.is_to):
            why += f" {said_of(gradients, named)}"
            cause, fixes, cutting = gradients[0].place, (graphs_built(record, gradients),), ("create_graph",)
        elif taken := made_anew.numbers_of(record, step):
            cause = made_anew.place_of_cut(taken)
            why += f" {made_anew.said_of_numbers(taken)}"
            fixes, cutting = (made_anew.not_in_numbers(taken),), (taken[0].by,)
        elif (cut := cut_elsewhere(record, call, step.paths)) is not None:
            cause, said = _said_of_cut(cut)
            why, fixes, cutting = why + said, (uncut(record, call, cut),), (cut.by,)
    elif given:
        whose = f"`{owner}`" if owner else "the optimizer"
        why = f"The backward before it gave gradients to {names(given)}, which {whose} does not have."
        made = _optimizer_made(record, owner)
        replacing = replaced_at(record, made, given) if made is not None else None
        if replacing is not None and owner in source.targets(replacing.statement):
            replacing = None  # it makes the optimizer, too
        if made is not None and replacing is not None:
            why += f" {replacing.shown} made them after {made.shown} had made the optimizer."
            cause = replacing.place
        fixes = (_rebuilt(record, owner, given, replacing),)
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
        names=(*(named or given or ()), *cutting),
        fixes=fixes,
    )


def _said_of_cut(cut: Cut) -> tuple[Place, str]:
    """Where a cut is, and the sentence about it."""
    place = place_of(cut.run, cut.statement.lineno)
    line = f"{short(ast.unparse(cut.statement))} ({where(place)})"
    how = f"runs under `{cut.by}`" if cut.around is not None else f"{why_cut(cut.by)}"
    return place, f" {line} uses what is computed from them, and {how}."


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
    return _only_copy(record) if _parts_of(given) == _parts_of(named) else None


def _only_copy(record: Record) -> Place | None:
    """Return the only line of the program that copies with ``deepcopy``."""
    found = {
        place_of(run, node.lineno)
        for run in Cells.of(record).latest
        for node in source.nodes_of(run.source)
        if isinstance(node, ast.Call) and source.last_name(ast.unparse(node.func)) == "deepcopy"
    }
    return found.pop() if len(found) == 1 else None


def _parts_of(leaves: tuple[str, ...]) -> set[str]:
    """Return the names of leaves within the object around them."""
    whole = around(leaves)
    return {path.removeprefix(whole) for path in leaves} if whole else set(leaves)


def _of_the_copy(record: Record, owner: str, given: tuple[str, ...], named: tuple[str, ...]) -> Fix:
    """Return a fix that gives the optimizer the parameters of the copy."""
    new, old = around(given) or paths.root_of(given[0]), around(named) or paths.root_of(named[0])
    text = f"Make the optimizer of the parameters of `{new}`, or compute the loss with `{old}`."
    for run in Cells.of(record).latest:
        for statement in source.assignments(run.source, owner)[-1:]:
            calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            asked = [one for one in calls if ast.unparse(one) == f"{old}.parameters()"]
            if len(asked) == 1 and run.cell is not None:
                edits = text_edit.replace_node(run.cell, run.source, asked[0], f"{new}.parameters()")
                return Fix("new_optimizer", text, False, (run.cell, statement.lineno), edits=edits)
    return Fix("new_optimizer", text, False)


def _optimizer_made(record: Record, owner: str) -> Line | None:
    """Return the one statement that makes an optimizer and gives it the name of the one that steps."""
    found = [
        Line(run, statement)
        for run in Cells.of(record).latest
        for statement, _ in source.assigned_as(run.source, source.last_name(owner))
        if OPTIMIZER.search(ast.unparse(statement))
    ]
    return found[0] if len(found) == 1 else None


def _rebuilt(record: Record, owner: str, given: tuple[str, ...], replacing: Line | None) -> Fix:
    """Return a fix that repeats the line that made the optimizer, if its parameters are leaves of the backward.

    Not a line that makes other things, too: ``model, opt = build()`` would make another model.
    """
    text = "Make the optimizer of the parameters that the backward reaches"
    if replacing is not None:
        return Fix("new_optimizer", f"{text}, after {replacing.shown}.", False, at(replacing.place))
    for _, run in sorted(record.runs.items(), reverse=True):
        made = source.assignments(run.source, owner)[-1:]
        if made and run.cell is not None:
            line = (run.cell, made[0].lineno)
            about = source.names_in(made[0]) & {path.split(".")[0].split("[")[0] for path in given}
            alone = list(source.targets(made[0])) == [owner]
            again = f": run {short(ast.unparse(made[0]))} (In[{line[0]}], line {line[1]}) again"
            return Fix("new_optimizer", f"{text}{again if about and alone else ''}.", False, line)
    return Fix("new_optimizer", f"{text}.", False, None)


class _Cleared(NamedTuple):
    """A statement between a call and a step that clears the gradients, and the line in it or in what it calls."""

    statement: ast.stmt
    place: Place


def _cleared(
    record: Record, run: CellRun, step: Write, call: BackwardCall, whose: Collection[str], own: bool
) -> _Cleared | None:
    """Return what clears gradients between a call and a step of one cell.

    `own`: the step's parameters are those of the call. Then a function that is called in between may clear them, too,
    under whatever name it knows the optimizer.
    """
    if at(step.place) is None or call.place.cell != step.place.cell:
        return None
    lines = (call.place.line or 0, step.place.line or 0)
    own = own and source.function_at(run.source, lines[0]) == source.function_at(run.source, lines[1])
    between = source.between(run.source, lines[0] - 1, lines[1])
    order = sorted(between, key=lambda one: (one.lineno, one.col_offset))
    called = [source.calls_in(one) for one in order]
    first = next((i for i, names in enumerate(called) if any(name.endswith(".backward") for name in names)), len(order))
    clearing = {f"{name}.zero_grad" for name in whose}
    for one in order[first:]:
        if clearing & set(source.calls_in(one)):
            return _Cleared(one, place_of(run, one.lineno))
        found = where_cleared(record, run, one) if own and not clears(one) else []
        if len(found) == 1:
            return _Cleared(one, found[0])
    return None


def _cleared_before(run: CellRun, cleared: ast.stmt, call: BackwardCall) -> text_edit.Edits:
    """Return edits that move a statement in front of the call behind which it stands."""
    lines = (call.place.line or 0, cleared.lineno)
    inside = [source.function_at(run.source, line) for line in lines]
    if run.cell is None or inside[0] != inside[1] or source.blocks_of(cleared):
        return ()
    return (
        *text_edit.insert_before(run.cell, run.source, lines[0], text_edit.statement_lines(run.source, cleared)),
        *text_edit.remove(run.cell, run.source, cleared),
    )


def _given_gradients(record: Record, call: BackwardCall, step: Write) -> tuple[str, ...] | None:
    """Return the names of the leaves of a call; some leaves may have none.

    None: it had no leaves, or they are unknown, or the optimizer has some: then other code removed their gradients.
    """
    known = (one for one in (call, *record.calls) if one.n in (call.n, call.same_as))
    found = next(((one, one.graph) for one in known if one.graph is not None), None)
    leaves: list[Leaf] = []
    if found is not None:  # the graph may have other parts, which the call did not reach
        like, graph = found
        inside = reachable(graph, (root.node for root in like.roots))
        leaves = [leaf for index, leaf in graph.leaves.items() if index in inside]
    if not leaves or any(step.is_to(leaf) for leaf in leaves):
        return None
    return tuple(sorted(lasting_name(record, leaf.paths) for leaf in leaves if leaf.paths))


def _owner(step: Write) -> str:
    """Return the name of the optimizer in the line of the step; empty if unknown."""
    tree = source.parse(step.by)
    called = [name for name in (source.calls_in(tree) if tree else ()) if name.endswith(_STEP)]
    return called[0].removesuffix(_STEP) if len(called) == 1 else ""
