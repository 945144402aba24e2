"""Why a tensor has no graph: the line that cut it, and how, from the text of the cells."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph import frozen, measured, own_functions
from graphwidget.diagnosis.no_graph.applied import in_a_forward
from graphwidget.diagnosis.no_graph.cause import Cause, expression
from graphwidget.diagnosis.no_graph.cutting import CUTTING, any_of
from graphwidget.diagnosis.no_graph.grad_mode import inference_mode, switched, unrecorded
from graphwidget.diagnosis.no_graph.gradients import without_graph
from graphwidget.diagnosis.no_graph.gradients.differentiated_again import differentiated_again
from graphwidget.diagnosis.no_graph.gradients.kept_by_forward import SAVE_THE_INPUT
from graphwidget.diagnosis.no_graph.leaves.constants import (
    in_a_branch,
    is_before_all_passes,
    made_of_constants,
    passed_before,
)
from graphwidget.diagnosis.no_graph.leaves.fresh_leaf import FreshLeaf, fresh_leaf, measured_leaf
from graphwidget.diagnosis.no_graph.leaves.unused_held import with_what_is_held
from graphwidget.diagnosis.no_graph.numbers.taken_out import taken_out
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.optimizers import optimized
from graphwidget.diagnosis.wording import UNNAMED, called_at, place_of, root_name, short, where
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, Record, Scene


def explain(record: Record, call: BackwardCall) -> Finding:
    """Return the finding of a call on a tensor that does not require grad, with the responsible line."""
    name = _root(call)
    in_text = _cause(record, call, name)
    found = made_of_constants(record, call, name, in_text)
    if found is None:
        numbers = taken_out(record, call, in_text)
        found = [numbers] if numbers else measured.causes(record, call, in_text, lambda c: cause_of(record, c))
        if in_text.fix.id == "create_graph" and in_text not in found:
            found = [in_text, *found[: measured.MOST - 1]]  # that the call built no graph was recorded
    elif record.lineage is not None and record.lineage.call == call.n and record.lineage.idle is not None:
        found = [with_what_is_held(record, record.lineage.idle, _quoted(name), one) for one in found]
    cause = found[0]
    spot = called_at(call.place)
    return Finding(
        "no_grad",
        "error",
        f"{cause.text} So backward{f' ({spot})' if spot else ''} would reach no leaf.",
        f"{_opening(name)} has no grad_fn.",
        call.n,
        tensor=name,
        names=cause.names if name == UNNAMED else (),
        made_at=cause.place,
        cut_at=_cut_at(record, cause),
        fixes=tuple(differentiated_again(record, call, one.fix) for one in found if one is cause or one.fix.edits),
    )


def _quoted(name: str) -> str:
    return name if name == UNNAMED else f"`{name}`"


def _opening(name: str) -> str:
    """The root where a sentence begins with it."""
    return name.capitalize() if name == UNNAMED else f"`{name}`"


def _cut_at(record: Record, cause: Cause) -> Place | None:
    """The line that cuts the graph: the `with` or the decorator, rather than what runs under it."""
    at = cause.fix.at if cause.fix.id == "remove_no_grad" else None
    run = next((one for one in record.runs.values() if at is not None and one.cell == at[0]), None)
    return place_of(run, at[1]) if run is not None and at is not None else cause.place


def where_cut(record: Record, call: BackwardCall, name: str) -> Place | None:
    """The line that surely cut the graph from which the root of a call was to be computed; None: unknown."""
    origins = _origins(record, call)
    root, spot = expression(name), origins.values.spot_of(call)
    found = next((cut for cut in origins.cuts(root, spot) if cut.sure), None)
    return place_of(found.run, found.statement.lineno) if found is not None else None


def where_made_anew(record: Record, call: BackwardCall) -> FreshLeaf | None:
    """The line that made the one leaf of a call's root from numbers, or the root itself; None: there is none such."""
    graph = next((one.graph for one in (call, *record.calls) if one.graph and one.n in (call.n, call.same_as)), None)
    if len(call.roots) != 1 or (not call.roots[0].is_leaf and (graph is None or len(graph.leaves) > 1)):
        return None
    origins = _origins(record, call)
    found = fresh_leaf(origins.values, expression(root_name(call)), origins.values.spot_of(call))
    return found if found is not None else measured_leaf(record, call)


def where_made_numbers(record: Record, call: BackwardCall, leaf: FreshLeaf) -> Place | None:
    """The line that had left the graph before a leaf was made anew from its values; None: the same line, or unknown."""
    origins = _origins(record, call)
    at = next((i for i, run in enumerate(origins.values.runs) if run is leaf.run), -1)
    own = leaf.statement.lineno
    for given in leaf.made.args if isinstance(leaf.made, ast.Call) else ():
        for cut in origins.cuts(given, Spot(at, own)):
            if (cut.run is not leaf.run or cut.statement.lineno != own) and cut.around is None:
                return place_of(cut.run, cut.statement.lineno)
    return None


def _root(call: BackwardCall) -> str:
    """Return the root that has no graph: of several, torch's message gives its number."""
    number = re.match(r"element (\d+) of tensors", call.error or "")
    if number is None or len(call.roots) < 2:
        return root_name(call)
    at, statement = int(number[1]), source.statement_of(call.place.source)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.args] if statement is not None else []
    found = [n.args[0].elts for n in calls if isinstance(n.args[0], (ast.List, ast.Tuple))]
    whole = [elements for elements in found if len(elements) == len(call.roots)]
    return ast.unparse(whole[0][at]) if len(whole) == 1 and at < len(call.roots) else UNNAMED


def _cause(record: Record, call: BackwardCall, name: str) -> Cause:
    origins = _origins(record, call)
    runs = list(origins.values.runs)
    root, spot = expression(name), origins.values.spot_of(call)
    made_of = _made_of(runs, name, root)
    cut = _cut(record, origins, root, spot)
    of_backward = cut is not None and cut.fix.id == SAVE_THE_INPUT
    if cut is not None and cut.place is not None and in_a_forward(record, cut.place) and not of_backward:
        cut = None  # a `forward` is never recorded: what it is applied to decides
    if cut is None or cut.fix.id in CUTTING.values():
        cut = in_a_branch(record, call, name, origins, spot) or cut
    unsure = cut is not None and not any(one.sure for one in origins.cuts(root, spot))
    if cut is not None and unsure and is_before_all_passes(record, call, cut):
        cut = None
    around = unrecorded.around_the_call(origins, call, root, spot)
    if around is None and (cut is None or unsure) and (left_off := switched.only_switch(origins, made_of)) is not None:
        return left_off  # that grad mode was off was measured, and what a cut was given was not
    waiting = switched.by_a_generator(origins, made_of) if around is None else None
    inference = waiting or inference_mode.around_the_call(origins, call, name)
    if inference is not None:
        return inference
    off = switched.in_force(origins, root, spot, made_of)
    if off is not None and cut is not None:
        return Cause(off.text, replace(off.fix, verified=False), off.place)
    return (
        off
        or around
        or _of_grad(name)
        or cut
        or unrecorded.not_recorded(record, origins, root, spot)
        or _too_late(origins, root, spot, name)
        or switched.switched_off(origins, root, spot, made_of)
        or frozen.frozen(origins, root, spot, made_of)
        or unrecorded.from_a_library(origins, root, spot)
        or _compared(record, origins, root, spot)
        or own_functions.without_history(record, origins, root, spot)
        or _unknown(record, origins, call, root, spot, made_of)
    )


def _origins(record: Record, call: BackwardCall) -> Origins:
    """Where the values of the program come from, up to a call."""
    last = call.place.run if call.place.run is not None else None
    runs = [run for _, run in sorted(record.runs.items()) if last is None or run.run <= max(last, -1)]
    scene = record.scenes.get(call.n, Scene())
    return Origins(Values(runs, dict(runs[-1].modules) if runs else {}, scene))


def _cut(record: Record, origins: Origins, root: ast.expr, spot: Spot) -> Cause | None:
    """Return the line nearest to the root that cuts the graph, or the freezing of a module whose output is not cut."""
    if (found := without_graph.only(record, origins, root, spot)) is not None:
        return found
    cuts = list(origins.cuts(root, spot))
    surely = [cut for cut in cuts if cut.sure]
    meant = [cut for cut in surely if restore_graph.only_optimized(record.runs.values(), cut.statement)]
    sure = next(iter(meant or surely), None)
    modules = dict(origins.frozen_modules(root, spot))
    if sure is None or not sure.calls.intersection(modules.values()):
        found = frozen.frozen_modules(origins, sorted(modules)) if modules else None
        if found is not None:
            return found if sure is None else Cause(found.text, replace(found.fix, verified=False), found.place)
    trained = optimized(list(record.runs.values()))
    of_trained = any(trained & source.names_in(cut.statement) for cut in meant)
    if trained and not of_trained and not (sure and without_graph.is_cut_behind(record, origins, root, spot)):
        # The cuts may be of targets. A gradient without a graph is one that was measured.
        found = without_graph.behind(record, origins, root, spot)
        if found is not None:
            return found
    if sure is not None:
        alone = len({id(cut.statement) for cut in meant}) == 1
        # If there are several, and no optimizer shows which is wrong, each may be intended.
        clear = alone or (bool(meant) and bool(trained))
        return cause_of(record, sure if clear else sure._replace(alone=False))
    found = without_graph.behind(record, origins, root, spot)
    return found or (cause_of(record, cuts[0]) if cuts else None)


def _of_grad(name: str) -> Cause | None:
    """Return the cause if the root is itself a gradient: ``x.grad.backward()``."""
    if not name.endswith(".grad"):
        return None
    sentence = f"Compute `{name}` with `create_graph=True`."
    return Cause(
        f"`{name}` has no graph: the call that computed it did so without `create_graph=True`, or it is constant.",
        Fix("create_graph", sentence, False),
        None,
    )


def _too_late(origins: Origins, root: ast.expr, spot: Spot, name: str) -> Cause | None:
    """Return the cause if a leaf was made to require grad only after the root had been computed from it."""
    for spot_made, node, _ in origins.back(root, spot):
        run = origins.values.runs[spot_made.at] if 0 <= spot_made.at < len(origins.values.runs) else None
        if run is None or not isinstance(node, ast.stmt) or source.loop_at(run.source, node.lineno) is not None:
            continue
        inside = source.function_at(run.source, node.lineno)
        for read in sorted(source.names_in(source.given(node))):
            for later in origins.values.runs[spot_made.at : spot_made.at + 1 if inside else None]:
                for asking in _asking(later, read, inside[1] if inside else None):
                    if later is run and asking.lineno <= node.lineno:
                        continue
                    place, made = place_of(later, asking.lineno), place_of(run, node.lineno)
                    sentence = f"Ask for it before `{name}` is computed ({where(made)})."
                    edits = _moved_up(run, node, later, asking)
                    return Cause(
                        f"{short(ast.unparse(asking))} ({where(place)}) came too late: {short(ast.unparse(node))} "
                        f"({where(made)}) had been computed without a graph.",
                        Fix("unfreeze", sentence, False, line_of(place), edits=edits),
                        place,
                    )
    return None


def _asking(run: CellRun, name: str, function: ast.FunctionDef | None) -> list[ast.stmt]:
    """Return the statements that make a tensor require grad: of a function, or of a cell outside of functions."""
    tree = source.parse(run.source)
    body = function.body if function is not None else tree.body if tree is not None else []
    asking = (f"{name}.requires_grad_()", f"{name}.requires_grad_(True)", f"{name}.requires_grad = True")
    return [s for s in source.own_statements(body) if ast.unparse(s) in asking]


def _moved_up(run: CellRun, made: ast.stmt, later: CellRun, asking: ast.stmt) -> text_edit.Edits:
    """The statement that asks, in front of the one that computes, if both stand in one block.

    In another cell it stays where it is, too: it does no harm there.
    """
    new = text_edit.statement_lines(later.source, asking)
    if later is not run:
        return text_edit.insert_before(run.cell, run.source, made, new)
    if asking not in source.behind(run.source, made):
        return ()
    return (*text_edit.insert_before(run.cell, run.source, made, new), *text_edit.remove(run.cell, run.source, asking))


def _made_of(runs: list[CellRun], name: str, root: ast.expr) -> list[str]:
    """Return the name and the names its value was computed from, by the last assignment of each."""
    names = list(dict.fromkeys([name, *sorted(source.names_in(root))]))
    for one in names:
        made = next((found for run in reversed(runs) if (found := source.assignments(run.source, one))), [])
        for statement in reversed(made):
            names += sorted(source.names_in(statement).difference(names))
            if one not in source.names_in(source.given(statement)):
                break
    return names


def _compared(record: Record, origins: Origins, root: ast.expr, spot: Spot, depth: int = 3) -> Cause | None:
    """Return the cause if the root was computed from a comparison: ``(pred > 0).float()``; also several steps back.

    What is compared may have been cut before.
    """
    signs = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    for at, node, _ in origins.back(root, spot):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.arg)):
            continue
        statement = node if isinstance(node, ast.stmt) else origins.values.statement_of(at, node)
        if statement is None:
            continue
        value = source.given(node) if isinstance(node, ast.stmt) else node
        tests = {id(n.test) for n in ast.walk(value) if isinstance(n, ast.IfExp)}
        found = [n for n in ast.walk(value) if isinstance(n, ast.Compare) and id(n) not in tests]
        of = [part for n in found if isinstance(n.ops[0], signs) for part in (n.left, *n.comparators)]
        had = any_of(origins.has_graph(part, at) for part in of)
        if had is False and depth:
            before = (_compared(record, origins, part, at, depth - 1) or _cut(record, origins, part, at) for part in of)
            if cause := next((one for one in before if one is not None), None):
                return cause
        if had is not False:
            place = place_of(origins.values.runs[at.at], statement.lineno)
            sure = "" if had else ", if what it compares had one"
            text = f"{short(ast.unparse(statement))} ({where(place)}) leaves the graph{sure}: it compares."
            sentence = f"Compute the loss from numbers instead of a comparison ({where(place)})."
            return Cause(text, Fix("differentiable_op", sentence, False, line_of(place)), place)
    return None


def _unknown(
    record: Record, origins: Origins, call: BackwardCall, root: ast.expr, spot: Spot, made_of: list[str]
) -> Cause:
    """Return the cause if no line is responsible. It claims that nothing requires grad only if that is known."""
    name = made_of[0]
    if origins.values.scene.grad_mode is False:
        words = f"Compute `{name}` where grad mode is on, or under `with torch.enable_grad():`."
        text = f"Grad mode is off where {short(call.place.source)} runs: nothing that is computed there gets a graph."
        return Cause(text, Fix("remove_no_grad", words, False), None)
    if name == UNNAMED and (modules := frozen.all_in_sight(origins)):
        return frozen.frozen_modules(origins, modules)
    if origins.goes_back_to_grad(root, spot) is False and not restore_graph.trains(origins.values.runs, made_of):
        fix = Fix("unfreeze", "Make a parameter or an input with `requires_grad=True`.", False)
        return Cause(f"Nothing that `{name}` was made from requires grad.", fix, None)
    shown = name if name == UNNAMED else f"`{name}`"
    if passed_before(record, call):
        words = (
            f"See what is different in this pass: {shown} may be made of a new tensor there, as `torch.zeros(1)` in a "
            "branch or before a loop. Then make it of what the model returned: `out.sum() * 0`."
        )
        text = f"{_opening(name)} was made without a graph, and earlier passes of this line had one."
        return Cause(f"{text} Which line left it, or made it new, is unknown.", Fix("find_the_cut", words, False), None)
    words = (
        f"Look at the `grad_fn` of what {shown} is made from, step by step. The cut comes right after the first that "
        "has one."
    )
    fix = Fix("find_the_cut", words, False)
    return Cause(f"{_opening(name)} was made without a graph. Which line cut it, if one did, is unknown.", fix, None)
