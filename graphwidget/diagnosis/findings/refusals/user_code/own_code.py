"""Errors of the user's own Python code that PyTorch ran: a Function's methods, a hook, an unpack hook."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.user_code.context import REGISTERING, calls_of, miscalled, of_context
from graphwidget.diagnosis.findings.refusals.user_code.operands import Operands, misfit
from graphwidget.diagnosis.findings.refusals.user_code.taken_away import may_have_run_before, taken_away
from graphwidget.diagnosis.fixes.kept_on_context import kept_on_context
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.pytorch.custom_functions import defined, functions
from graphwidget.diagnosis.wording import at, described, place_of, root_name, short, where
from graphwidget.model import FROM_OUTSIDE, BackwardCall, Finding, Fix, Kind, Record, Scene, Sight

__all__ = ["handed_to", "of_call", "of_function", "of_saved"]

_RUNNING = ("forward", "setup_context", "jvp", "vmap")  # methods of a Function that run outside of a backward


def of_call(record: Record, call: BackwardCall, *, caught: bool) -> Finding | None:
    """A call in which code of the user's own raised; None: it was PyTorch's, or is not known."""
    scene = record.scenes.get(call.n, Scene())
    if call.error_type in FROM_OUTSIDE or scene.raised_in == "call":
        return None
    if not scene.inside:
        return _miscalled(record, call, caught) if call.error_type == "TypeError" else None
    if scene.raised_in != "python":
        return None
    inner, outer = scene.inside[0], scene.inside[-1]
    function = outer.place.function or "code of its own"
    lambda_ = _lambda(record, outer)
    what = _registered("A lambda", lambda_) if lambda_ is not None else _what(record, function)
    applied, node = _applied(call, function)
    told = _told(
        record,
        inner,
        call.error or "",
        call.error_type,
        itself=lambda_ is not None and inner == outer,
        again=may_have_run_before(record, call, function.rpartition(".")[0].rsplit(".", 1)[-1]),
    )
    made = tuple(dict.fromkeys(part for part in function.split(".") if part.isidentifier() and part != "backward"))
    shown = "A lambda" if lambda_ is not None else f"`{function}`"
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{short(call.place.source or root_name(call))} ({where(call.place)}) ran {_inside(what)}, and "
        f"{told.text}{' The program has caught it.' * caught}{applied}",
        f"{shown} raised {call.error_type} while the gradients were computed.",
        call.n,
        node=call.graph.name_of(node) if call.graph is not None and node is not None else "",
        node_uid=call.graph.uid[node] if call.graph is not None and node is not None else None,
        made_at=inner.place,
        failed_at=call.place,
        cause=inner.place,
        names=tuple(dict.fromkeys((*made, *told.names))),
        uids=(call.graph.uid[node],) if call.graph is not None and node is not None else (),
        fixes=(told.fix,),
    )


def of_function(failure: Failure) -> Finding | None:
    """A line in which the `forward` of a custom Function raised; None: no such method was running."""
    made = {one.name: one for one in functions(failure.record)}
    sights = failure.run.scene.sights
    methods = [(sight.place.function or "").split(".")[-2:] for sight in sights]
    running = [at for at, one in enumerate(methods) if len(one) == 2 and one[0] in made and one[1] in _RUNNING]
    if not running:
        return None
    owner, function = methods[running[0]][0], ".".join(methods[running[0]])
    outside = sights[running[0] + 1 :]
    told = _told(failure.record, sights[0], failure.run.error or "", failure.run.error_type)
    by = f"{short(outside[0].place.source)} ({where(outside[0].place)}) ran" if outside else "The program ran"
    return Finding(
        "refused",
        "error",
        f"{by} `{function}`, a method of a custom Function, and {told.text}",
        f"`{function}` raised {failure.run.error_type}.",
        made_at=failure.place,
        failed_at=failure.place,
        cause=failure.place,
        names=tuple(dict.fromkeys((owner, *told.names))),
        fixes=(told.fix,),
    )


def of_saved(failure: Failure) -> Finding | None:
    """``ctx.save_for_backward(x, lo)`` where `lo` is a number; None: which Function did it is not known."""
    applied = set(source.calls_in(failure.statement)) if failure.statement is not None else set[str]()
    for one in functions(failure.record):
        saving = list(calls_of(one, "save_for_backward"))
        if f"{one.name}.apply" not in applied or len(saving) != 1:
            continue
        number = re.search(r"argument (\d+) is of type (\w+)", failure.run.error or "")
        at_ = int(number[1]) if number is not None else -1
        given = saving[0].args
        name = ast.unparse(given[at_]) if 0 <= at_ < len(given) else None
        kind = f", {'an' if number[2][0] in 'aeiou' else 'a'} {number[2]}" if number is not None else ""
        shown = f"`{name}`" if name else "what is no tensor"
        place = place_of(one.run, saving[0].lineno)
        found = failure.finding(
            f"`{one.name}.forward` saves {shown}{kind}, as if it were a tensor.",
            f"{short(place.source)} ({where(place)}) saves {shown}{kind}. `save_for_backward` takes tensors only: "
            f"PyTorch frees them after the backward, and sees if they are modified. "
            f"{short(failure.text)} ({where(failure.place)}) applied the Function.",
            Fix(
                "save_for_backward",
                f"Keep it as an attribute: `ctx.{name} = {name}`, and read `ctx.{name}` in `backward`."
                if name and name.isidentifier()
                else "Keep it as an attribute of `ctx`.",
                False,
                at(place),
                edits=kept_on_context(one, saving[0], at_) if name else (),
            ),
            tensor=name,
            cause=place,
        )
        return replace(found, names=tuple(filter(None, (one.name, name))))
    return None


class _Told(NamedTuple):
    """What there is to say of a line that raised: the end of a sentence and further ones, names, and what to change."""

    text: str
    names: tuple[str, ...]
    fix: Fix


def _told(
    record: Record, sight: Sight, message: str, error: str | None, *, itself: bool = False, again: bool = False
) -> _Told:
    """What a running line of the user's own raised, what it was given, and why that does not fit.

    `itself`: the line is quoted already. `again`: it is a backward that may have run before, in a graph that was kept.
    """
    line = f"{short(sight.place.source)} ({where(sight.place)})"
    operands = Operands.of(record, sight)
    owner = defined(record, (sight.place.function or "").rpartition(".")[0].rsplit(".", 1)[-1])
    why = None
    if operands is not None:
        if owner is not None:
            why = taken_away(owner, operands.statement) if again else None
            why = why or of_context(owner, operands.statement, message)
        why = why or misfit(operands, message)
    first = message.strip().split("\n", 1)[0]
    said = f": {first.rstrip('.')}" if first else ""
    given = described(operands.tensors) if operands is not None else ""
    parts = [
        f"{'it' if itself else line} raised {error or 'an error'}{said}.",
        given,
        why.why if why is not None else "",
    ]
    fix = Fix(
        "mend_the_code",
        why.advice if why is not None and why.advice else f"Mend that line: {line}.",
        False,
        at(sight.place),
        edits=why.edits if why is not None else (),
    )
    return _Told(" ".join(filter(None, parts)), tuple(operands.tensors)[:4] if operands is not None else (), fix)


def _miscalled(record: Record, call: BackwardCall, caught: bool) -> Finding | None:
    """Code of the user's own that takes another number of arguments than the engine passes."""
    one = miscalled(record, call.error or "", functions(record))
    if one is None:
        return None
    shown = f"`{one.name}`" if one.name != "<lambda>" else "a lambda"
    line = f" {short(one.registered.source)} ({where(one.registered)}) registered it." if one.registered else ""
    spot = f" ({where(one.place)})" if one.place is not None and not line else ""
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{short(call.place.source or root_name(call))} ({where(call.place)}) could not call {shown}{spot}: "
        f"{(call.error or '').strip().rstrip('.')}.{line} PyTorch calls it with {one.wants}."
        f"{' The program has caught it.' * caught}",
        f"{shown[0].upper()}{shown[1:]} takes another number of arguments than it is called with.",
        call.n,
        made_at=one.place,
        failed_at=call.place,
        cause=one.place,
        names=(one.name.split(".")[0].strip("<>"),),
        fixes=(Fix("mend_the_code", f"Let it take that: {one.wants}.", False, at(one.place), edits=one.edits),),
    )


def _inside(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def _lambda(record: Record, sight: Sight) -> CallText | None:
    """The call that registers a lambda as a hook, if the line of the code that the engine called holds one."""
    spot = at(sight.place)
    for one in calls(record, *REGISTERING) if spot is not None else ():
        given = [*one.call.args, *(keyword.value for keyword in one.call.keywords)]
        if spot is not None and one.run.cell == spot[0] and any(isinstance(value, ast.Lambda) for value in given):
            if one.call.lineno <= spot[1] <= (one.call.end_lineno or 0):
                return one
    return None


def _what(record: Record, function: str) -> str:
    """The function that the engine called, and what it is for."""
    owner, _, method = function.rpartition(".")
    if method in ("backward", "vjp") and defined(record, owner.rsplit(".", 1)[-1]) is not None:
        return f"`{function}`, the derivative of a custom Function"
    found = handed_to(record, function)
    return _registered(f"`{function}`", found) if found is not None else f"`{function}`"


def _registered(shown: str, one: CallText) -> str:
    """What was registered, for what, and by which line."""
    place, last = place_of(one.run, one.call.lineno), source.last_name(ast.unparse(one.call.func))
    kind = "which unpacks saved tensors" if last == "saved_tensors_hooks" else "a hook"
    return f"{shown}, {kind}: {short(place.source)} ({where(place)}) registered it"


def handed_to(record: Record, function: str) -> CallText | None:
    """The only call that registers a function, or what the function around it returns, as a hook."""
    parts = [part for part in function.split(".") if part.isidentifier()]
    found = [
        one
        for one in calls(record, *REGISTERING)
        for given in (*one.call.args, *(keyword.value for keyword in one.call.keywords))
        if _mentions(given, parts)
    ]
    if not found and parts and parts[-1] == "<lambda>":
        return None
    return found[0] if len(found) == 1 else None


def _mentions(given: ast.expr, parts: list[str]) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in parts) or (isinstance(node, ast.Attribute) and node.attr in parts)
        for node in ast.walk(given)
    )


def _applied(call: BackwardCall, function: str) -> tuple[str, int | None]:
    """Where the Function was applied whose backward it was, and its node."""
    graph, owner = call.graph, function.rpartition(".")[0].rsplit(".", 1)[-1]
    if graph is None or not owner:
        return "", None
    nodes = [
        index
        for index in range(len(graph))
        if graph.kind[index] == Kind.CUSTOM and graph.name_of(index) == f"{owner}Backward"
    ]
    places = {graph.place_of(index) for index in nodes}
    place = places.pop() if len(places) == 1 else None
    node = nodes[0] if len(nodes) == 1 else None
    return (f" `{owner}` was applied in {where(place)}." if place is not None and where(place) else "", node)
