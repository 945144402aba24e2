"""Findings about a check of PyTorch's: where it failed, what is checked, why, and what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals import unexplained
from graphwidget.diagnosis.findings.refusals.checks.check import Check
from graphwidget.diagnosis.findings.refusals.checks.edits import Site
from graphwidget.diagnosis.findings.refusals.checks.texts import CHECKS
from graphwidget.diagnosis.findings.refusals.gradients import second_derivatives
from graphwidget.diagnosis.findings.refusals.makers import CallText
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.pytorch.custom_functions import defined
from graphwidget.diagnosis.wording import at, place_of, root_name, short, when, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Scene, Value, torch_messages

__all__ = ["of_call", "of_line"]


def _check_of(message: str) -> Check | None:
    """The check that a message is of."""
    return next((one for one in CHECKS if torch_messages.says(message, one.words)), None)


def of_call(record: Record, call: BackwardCall, *, caught: bool = False) -> Finding | None:
    """A call in which PyTorch's check failed, with the node at which it stopped."""
    check = _check_of(call.error or "")
    found = unexplained.of_call(record, call, caught=caught) if check is not None else None
    if check is None or found is None:
        return None
    line = short(call.place.source or root_name(call))
    place = found.made_at if found.node and where(found.made_at) else None
    applied = f" It stopped at {short(place.source)} ({where(place)})." if place is not None else ""
    node = f"`{found.node.split('Backward', 1)[0]}`" if found.node else line
    first = second_derivatives.first_derivative(record, call) if check.words == torch_messages.COMPILED_TWICE else None
    second = f" {second_derivatives.told(first)}" if first is not None else ""
    text = f"{line} ({when(record, call.place)}) was refused.{' The program has caught it.' * caught}{applied}{second}"
    found = replace(found, text=text, headline=check.headline.format(line=line, node=node))
    scene = record.scenes.get(call.n, Scene())
    begun = first.place if first is not None else place
    return _with(record, check, found, call.error or "", begun, call.place, scene.value)


def of_line(failure: Failure) -> Finding | None:
    """A line that PyTorch's check refused before anything ran."""
    check = _check_of(failure.run.error or "") or _of_no_tensors(failure)
    if check is None:
        return None
    nested = check.words == torch_messages.NO_NESTED_KERNEL  # which has no one shape
    line, given = short(failure.text), "" if nested else failure.given
    found = failure.finding(
        check.headline.format(line=line, node=line),
        f"{line} ({where(failure.place)}) was refused.{' ' * bool(given)}{given}",
    )
    return _with(failure.record, check, found, failure.run.error or "", None, failure.place, failure.value)


def _of_no_tensors(failure: Failure) -> Check | None:
    """A module or a number where tensors are asked for: only Python says so, that it "is not iterable"."""
    if not torch_messages.says(failure.run.error, torch_messages.NOT_ITERABLE):
        return None
    site = Site(failure.record, failure.place, (), failure.value)
    asked = (torch_messages.NO_TENSORS_ASKED, torch_messages.ROOT_NO_TENSOR)
    return next((one for one in CHECKS if one.words in asked and one.edit is not None and one.edit(site)), None)


def _with(
    record: Record,
    check: Check,
    found: Finding,
    message: str,
    place: Place | None,
    failed: Place,
    value: Callable[[str], Value | None],
) -> Finding:
    """The finding with what is checked, and the line that asked for it; `failed` is the line that raised."""
    made = list(_makers(record, check))
    maker = place_of(made[0].run, made[0].call.lineno) if len(made) == 1 else None
    asked = f" {short(maker.source)} ({where(maker)}) asks for that." if maker is not None else ""
    function, returned = _function(record, message)
    if returned is not None:
        maker, asked = returned, f" `{function}` returns it: {short(returned.source)} ({where(returned)})."
    cause = place or maker or found.cause
    spot = at(cause) or at(found.made_at) or at(found.failed_at)
    id_, text = check.fix
    edits = check.edit(Site(record, failed, made, value)) if check.edit is not None else ()
    return replace(
        found,
        kind=check.kind,
        text=f"{found.text} {check.why}{asked}",
        cause=cause,
        unexplained="",
        names=(function,) if function else found.names,
        fixes=(Fix(id_, text, False, spot, edits=edits),),
    )


def _function(record: Record, message: str) -> tuple[str, Place | None]:
    """The custom Function that a message names by its node, and the line where its `forward` returns."""
    named = re.search(r"\bof (\w+?)(?:Backward)? is a view", message)
    one = defined(record, named[1]) if named is not None else None
    forward = one.method("forward") if one is not None else None
    returns = [node for node in ast.walk(forward) if isinstance(node, ast.Return)] if forward is not None else []
    if one is None:
        return "", None
    return one.name, place_of(one.run, returns[0].lineno) if len(returns) == 1 else None


def _makers(record: Record, check: Check) -> Iterator[CallText]:
    for run in Cells.of(record).latest:
        for node in source.nodes_of(run.source):
            if isinstance(node, ast.Call) and check.makers:
                name, keywords = source.last_name(ast.unparse(node.func)), {one.arg for one in node.keywords}
                if name in check.makers or keywords & set(check.makers):
                    yield CallText(run, node)
