"""What a `GradScaler` refuses: its methods in another order than `scale`, `backward`, `unscale_`, `step`, `update`."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings import no_grad
from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.optimizers import half_weights
from graphwidget.diagnosis.no_graph.leaves import forced_leaf
from graphwidget.diagnosis.no_graph.values import Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, place_of, root_name, short, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Place, torch_messages

__all__ = ["of_line"]

_ONCE = (
    "A scaler divides the gradients of an optimizer by the scale once for each step: `unscale_` or `step` does it, and "
    "only `update` lets it do so again."
)


def of_line(failure: Failure) -> Finding | None:
    """A call of a method of a scaler that was refused; None: the error is no scaler's."""
    message = failure.run.error or ""
    if torch_messages.says(message, torch_messages.NOTHING_UNSCALED):
        return _nothing(failure)
    if torch_messages.says(message, (*torch_messages.UNSCALED_TWICE, *torch_messages.STEPPED_TWICE)):
        return _twice(failure)
    if torch_messages.says(message, torch_messages.UNSCALED_LATE):
        return failure.finding(
            f"{short(failure.text)} comes after the scaler's step.",
            f"{_ONCE} This line asks for it when the step has been taken.",
            failure.fix("zero_grad_or_step_order", "Call `unscale_`, and what reads the gradients, before `step`."),
        )
    if torch_messages.says(message, torch_messages.HALF_GRADIENTS):
        return half_weights.of_line(failure)
    if torch_messages.says(message, torch_messages.NO_SCALE):
        return failure.finding(
            f"{short(failure.text)} uses a scaler that has scaled nothing.",
            "A scaler makes its scale when it first scales a loss.",
            failure.fix("run_backward", "Call `scaler.scale(loss).backward()` before."),
        )
    return None


def _called(failure: Failure, *methods: str) -> ast.Call | None:
    """The call in the line of one of a scaler's methods."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    found = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
    ]
    return found[0] if len(found) == 1 else None


def _nothing(failure: Failure) -> Finding:
    """``scaler.step(opt)`` where no parameter of `opt` has a `.grad`."""
    call = _called(failure, "step", "update")
    given = call.args[0] if call is not None and call.args else None
    optimizer = f"`{ast.unparse(given)}`" if given is not None else "the optimizer"
    ran = [one for one in failure.record.calls if one.result == "ok"]
    named = _only_named(failure)
    if named is not None:
        place = place_of(named[0], named[1].lineno)
        why = f"{short(place.source)} ({where(place)}) only names `backward` and does not call it."
        new = f"{ast.unparse(named[1].value)}()"
        edits = text_edit.replace_node(named[0].cell, named[0].source, named[1].value, new)
        fix = Fix("call_it", f"Call it, on the scaled loss: `scaler.scale({_root(named[1])}).backward()`.", False)
        fixes = [replace(fix, at=at(place), edits=edits if "scale(" in new else ())]
    elif not ran:
        place = None
        why = "no backward has run."
        fixes = [failure.fix("run_backward", "Call `scaler.scale(loss).backward()` before.")]
    else:
        lost = _lost(failure, ran[-1], ast.unparse(given) if given is not None else "")
        place = lost.place
        line = f"{short(ran[-1].place.source)} ({where(ran[-1].place)})"
        why = f"{line}, the last backward, wrote no `.grad` into them, or it was cleared since. {lost.why}"
        fixes = [replace(one, at=one.at or at(place) or at(failure.place)) for one in lost.fixes]
    found = failure.finding(
        f"No parameter of {optimizer} has a gradient.",
        f"Before a step, a scaler looks for infinite values in the gradients of {optimizer}. There are none: {why}",
        *fixes,
        kind="no_grad",
        tensor=ast.unparse(given) if given is not None else None,
        cause=place,
    )
    return replace(found, names=(ast.unparse(given),) if given is not None else ())


class _Lost(NamedTuple):
    """The line that keeps an optimizer's parameters from their gradients, a sentence about it, and what to do."""

    place: Place | None
    why: str
    fixes: list[Fix]


def _lost(failure: Failure, last: BackwardCall, optimizer: str) -> _Lost:
    """Why the last backward left no gradients to an optimizer."""
    between = source.between(failure.cell, last.place.line or 0, failure.place.line or 0)
    clearing = [one for one in between if any(name.endswith(".zero_grad") for name in source.calls_in(one))]
    if last.place.cell == failure.place.cell and len(clearing) == 1:
        place = Place(failure.place.cell, clearing[0].lineno, source.line_text(failure.cell, clearing[0].lineno))
        why = f"{short(place.source)} ({where(place)}) clears what it has written."
        text = "Clear gradients before the backward, or after `update`."
        return _Lost(place, why, [Fix("zero_grad_or_step_order", text, False)])
    leaf = no_grad.where_made_anew(failure.record, last)
    if leaf is not None:
        numbers = no_grad.where_made_numbers(failure.record, last, leaf)
        before = f" {short(numbers.source)} ({where(numbers)}) had left the graph before." if numbers else ""
        text = (
            "Hand on the computed tensor itself, not a new one with its value, and compute it by operations of torch."
        )
        undone = forced_leaf.undone(failure.record, last, leaf)
        if undone and at(undone[0].place) != at(leaf.place):
            return _Lost(undone[0].place, f"{leaf.sentence} {undone[0].text}", [one.fix for one in undone])
        fixes = [one.fix for one in undone] or [Fix("differentiable_op", text, False)]
        return _Lost(leaf.place, f"{leaf.sentence}{before}", fixes)
    cut = no_grad.where_cut(failure.record, last, root_name(last))
    if cut is not None:
        why = f"{short(cut.source)} ({where(cut)}) cuts the graph."
        text = "Compute the loss without that cut, or step only the optimizers whose parameters it trains."
        return _Lost(cut, why, [Fix("use_input", text, False)])
    runs = [run for _, run in sorted(failure.record.runs.items())]
    made = [one for run in runs for one in source.assignments(run.source, optimizer)]
    held = {name for one in made for name in source.names_in(one)} - {optimizer, "torch"}
    frozen = [(run, one) for run, one, outer in Values(runs).freezing() if held & source.names_in(outer)]
    if len(frozen) == 1:
        place = place_of(frozen[0][0], frozen[0][1].lineno)
        why = f"{short(place.source)} ({where(place)}) has frozen them."
        return _Lost(place, why, [Fix("unfreeze", "Let them require grad, or leave their optimizer out.", False)])
    text = "See that the loss is computed from them. If it is not in each pass, step only where there is a `.grad`."
    return _Lost(None, "The loss may not be computed from them, or without a graph.", [Fix("use_input", text, False)])


def _only_named(failure: Failure) -> tuple[CellRun, ast.Expr] | None:
    """The only statement that names a `backward` without calling it."""
    found = [
        (run, node)
        for run in failure.cells.latest
        for node in source.nodes_of(run.source)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == "backward"
    ]
    return found[0] if len(found) == 1 else None


def _root(statement: ast.Expr) -> str:
    value = statement.value
    return ast.unparse(value.value) if isinstance(value, ast.Attribute) else "loss"


def _twice(failure: Failure) -> Finding:
    """``scaler.unscale_(opt)`` or ``scaler.step(opt)`` twice without ``scaler.update()`` between."""
    call = _called(failure, "unscale_", "step")
    scaler = ast.unparse(call.func.value) if call is not None and isinstance(call.func, ast.Attribute) else "scaler"
    updates = [one for one in calls(failure.record, "update") if _of(one, scaler)]
    lines = ", ".join(where(place_of(one.run, one.call.lineno)) for one in updates)
    when = f"`{scaler}.update()` is called in {lines}, and was not since." if lines else "It is never called here."
    update = [f"{scaler}.update()"]
    if "unscale_" in failure.text:
        text = "Where gradients of several passes add up, unscale and clip only in the pass that also steps. "
        edits: Edits = ()
    else:
        text, statement = "", failure.statement
        edits = text_edit.insert_after(failure.place.cell, failure.cell, statement, update) if statement else ()
    return failure.finding(
        f"{short(failure.text)} runs a second time without `{scaler}.update()` between.",
        f"{_ONCE} {when}",
        failure.fix("zero_grad_or_step_order", f"{text}Call `{scaler}.update()` once after each step.", edits),
    )


def _of(one: CallText, scaler: str) -> bool:
    function = one.call.func
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == scaler
