"""Parameters that an optimizer holds, and that no backward has given a gradient in any of its steps.

Said only where a line is known that cuts off what is computed from them, or a value that no loss is computed from, a
checkpoint that recorded nothing, or a custom Function that returned None: a parameter that is not used may be meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from graphwidget.diagnosis.findings.refusals import checkpoints
from graphwidget.diagnosis.findings.silences import dead_ends, given_none
from graphwidget.diagnosis.findings.silences.dead_ends import DeadEnd, end_of
from graphwidget.diagnosis.findings.silences.inner_gradients import graphs_built, inner_gradients, said_of
from graphwidget.diagnosis.no_graph.applied import APPLY
from graphwidget.diagnosis.no_graph.measured import is_measured
from graphwidget.diagnosis.no_graph.numbers.taken_out import why_number, with_tensors
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.no_graph.way_forward import COMPARING, CONVERTING, cuts_behind, why_cut
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, StarvedParameters

__all__ = ["find"]

MOST_NAMED = 4
_CHECKPOINT = "CheckpointFunctionBackward"
OF_CHOICES = ("argmax", "argmin", "indices", "multinomial")
MOST_FOLLOWED = 40  # parameters whose use is looked for in the text


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each line that keeps parameters of an optimizer from their gradients."""
    given = {path for call in record.calls for path in call.reached}
    written = {path for write in (*record.writes, *record.hidden) if not write.optimizer for path in write.paths}
    replaced = any(leaf.orphans and leaf.parameter and not leaf.waiting for leaf in record.unheld)
    for starved in record.starved:
        by_line: dict[tuple[int, int], tuple[list[Cut], list[str]]] = {}
        left: list[str] = []
        ends: dict[tuple[int, int], tuple[DeadEnd, list[str]]] = {}
        inner: dict[tuple[int, ...], tuple[list[BackwardCall], list[str]]] = {}
        for path, position in list(zip_longest(starved.paths, starved.positions))[:MOST_FOLLOWED]:
            if path in given or path in written or (replaced and ".param_groups[" in path):
                continue
            cuts = cuts_behind(record, path, position)
            end = end_of(record, path, position)
            gradients = [] if _is_known(record, cuts) else _inner_gradients(record, path)
            if gradients:
                inner.setdefault(tuple(one.n for one in gradients), (gradients, []))[1].append(path)
            elif end is not None and (not cuts or end.filtering is not None):
                ends.setdefault((end.run.run, end.statement.lineno), (end, []))[1].append(path)
            elif cuts:
                key = (cuts[0].run.run, cuts[0].statement.lineno)
                by_line.setdefault(key, (cuts, []))[1].append(path)
            else:
                left.append(spoken(path))
        for cuts, paths in by_line.values():
            if len(paths) < starved.held:
                yield _of(record, starved, cuts, tuple(dict.fromkeys(map(spoken, paths))))
        for end, paths in ends.values():
            if len(paths) < starved.held:
                yield dead_ends.finding_of(record, starved, end, tuple(dict.fromkeys(map(spoken, paths))))
        for gradients, paths in inner.values():
            if len(paths) < starved.held:
                yield _of_gradients(record, starved, gradients, tuple(dict.fromkeys(map(spoken, paths))))
        if left:
            yield from _in_checkpoint(record, starved, tuple(dict.fromkeys(left)))
        yield from given_none.find(record, starved)


def _is_known(record: Record, cuts: list[Cut]) -> bool:
    """Whether cuts were measured; where nothing was, the text has to do."""
    return bool(cuts) and (record.lineage is None or is_measured(record, cuts[0]))


def _inner_gradients(record: Record, path: str) -> list[BackwardCall]:
    """The gradients without a graph, before the last backward, of what is computed from a parameter."""
    last = next((one for one in reversed(record.calls) if one.api == "backward" and one.result == "ok"), None)
    return inner_gradients(record, last, lambda leaf: path in leaf.paths) if last is not None else []


def _of_gradients(
    record: Record, starved: StarvedParameters, gradients: list[BackwardCall], paths: tuple[str, ...]
) -> Finding:
    """The parameters take part only in gradients for which no graph was built: inner steps, as in meta-learning."""
    shown = names(paths, MOST_NAMED)
    fix = graphs_built(record, gradients)
    whose = "it" if len(paths) == 1 else "they"
    return Finding(
        "silent",
        "warning",
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. {said_of(gradients, paths)}",
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=gradients[0].place,
        cut_at=gradients[0].place,
        fixes=(replace(fix, text=f"{fix.text.rstrip('.')}, if {whose} should train."),),
    )


def _in_checkpoint(record: Record, starved: StarvedParameters, paths: tuple[str, ...]) -> Iterator[Finding]:
    """Where the only re-entrant checkpoint recorded nothing in any call: none of its inputs required grad."""
    found = checkpoints.reentrant(record)
    graphs = [call.graph for call in record.calls if call.graph is not None]
    if len(found) != 1 or not graphs or any(_CHECKPOINT in map(graph.name_of, range(len(graph))) for graph in graphs):
        return
    place = place_of(found[0].run, found[0].call.lineno)
    shown = names(paths, MOST_NAMED)
    yield Finding(
        "silent",
        "warning",
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. {short(ast.unparse(found[0].call))} ({where(place)}) is re-entrant, and was in the graph "
        "of no call: it records only if a tensor that it is given requires grad. Parameters inside it get no gradient.",
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=place,
        fixes=(checkpoints.not_reentrant(record, found),),
    )


def _of(record: Record, starved: StarvedParameters, cuts: list[Cut], paths: tuple[str, ...]) -> Finding:
    cut, numbers = cuts[0], with_tensors(record, cuts)
    if cut.kept is not None or cut.by == APPLY:
        return _told_whole(record, starved, cut, paths)
    place = place_of(cut.run, cut.statement.lineno)
    shown, line = names(paths, MOST_NAMED), f"{short(_text(cut.statement))} ({where(place)})"
    why = f"it runs under `{cut.by}`" if cut.around is not None else why_cut(cut.by)
    if numbers is not None:
        why = f"{why_number(cut.statement)} out of it"
    whose, are = ("it", "it is") if len(paths) == 1 else ("them", "they are")
    return Finding(
        "silent",
        "warning",
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. {line} uses what is computed from {whose}, and {why}.{_others(cuts)} So no backward "
        f"leads from there to {whose}, and the optimizer leaves {whose} as {are}.",
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=place,
        cut_at=place,
        fixes=(numbers or _fix(record, cut, paths, place),),
    )


def _others(cuts: list[Cut]) -> str:
    """The sentence about another line that cuts the same values off."""
    first = cuts[0].statement
    other = next((cut for cut in cuts[1:] if cut.statement is not first and cut.around is None), None)
    if other is None:
        return ""
    place = place_of(other.run, other.statement.lineno)
    return f" So does {short(_text(other.statement))} ({where(place)}): {why_cut(other.by)}."


def _told_whole(record: Record, starved: StarvedParameters, cut: Cut, paths: tuple[str, ...]) -> Finding:
    """What is computed from parameters is kept from when grad mode was off; or a Function computes it on its own."""
    cause, shown = cause_of(record, cut), names(paths, MOST_NAMED)
    return Finding(
        "silent",
        "warning",
        f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
        f"gradient was there. {cause.text}",
        f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
        tensor=paths[0],
        made_at=cause.place,
        cut_at=cause.place,
        fixes=(cause.fix,),
    )


def _text(statement: ast.stmt) -> str:
    return ast.unparse(statement).split("\n", 1)[0]


def _fix(record: Record, cut: Cut, paths: tuple[str, ...], place: Place) -> Fix:
    shown = names(paths, MOST_NAMED)
    whose = "it" if len(paths) == 1 else "they"
    spot = at(place)
    if _is_straight_through(cut.statement):
        text = (
            f"A value passed straight through gives {shown} no gradient, by its nature. Add a loss that is computed "
            f"from {shown} itself, before this line, or leave {'it' if whose == 'it' else 'them'} out of the optimizer."
        )
        return Fix("use_input", text, False, spot)
    if cut.by in OF_CHOICES:
        text = (
            f"`{cut.by}` chooses, and a choice has no derivative ({where(place)}). If {whose} should train, pass the "
            "gradient straight through: `out = x + (out - x).detach()`, with `x` the value before the choice and `out` "
            "the chosen one; or weigh all choices by a `softmax`."
        )
        return Fix("straight_through", text.replace("`indices`", "A line that takes indices"), False, spot)
    if cut.by in COMPARING:
        text = (
            f"If {whose} should train, let a gradient pass the comparison ({where(place)}): use a smooth one, "
            "`soft = torch.sigmoid(k * (x - limit))`, or its gradient alone, `hard.float() + soft - soft.detach()`."
        )
        return Fix("straight_through", text, False, spot)
    if cut.by in CONVERTING:
        text = (
            f"Whole numbers have no derivative ({where(place)}). If {whose} should train, weigh the cells around by "
            "how near they are (`F.grid_sample`, linear interpolation): the weights have one."
        )
        return Fix("differentiable_op", text, False, spot)
    fix = cause_of(record, cut).fix
    text = f"{fix.text.rstrip('.')}, if {whose} should train."
    id_ = "remove_no_grad" if cut.around is not None else "differentiable_op"
    return replace(fix, id=id_, text=text, verified=False, at=spot)


def _is_straight_through(statement: ast.stmt) -> bool:
    """``x + (z - x).detach()``: values of one tensor, gradients of another."""
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            for side in (node.left, node.right):
                cut = isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "detach"
                inner = side.func.value if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) else side
                data = isinstance(side, ast.Attribute) and side.attr == "data"
                inner = side.value if isinstance(side, ast.Attribute) and data else inner
                if (cut or data) and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
                    return True
    return False
