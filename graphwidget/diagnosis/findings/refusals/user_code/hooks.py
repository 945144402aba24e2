"""Hooks on tensors: registered where there is no gradient, or returning one that is not like what they were given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.user_code.context import REGISTERING
from graphwidget.diagnosis.findings.refusals.user_code.hook_returns import (
    Hook,
    hook_of,
    like_the_argument,
    return_nothing,
)
from graphwidget.diagnosis.findings.refusals.user_code.own_code import handed_to
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record

__all__ = ["of_changed", "of_no_leaf", "without_grad"]

_ASKING = ("register_hook", "retain_grad", "register_post_accumulate_grad_hook")
_OLD = (
    "`register_backward_hook` is of an old kind: it hooks the last operation that the module, or one before it, ran, "
    "and what the hook returns has to fit the inputs of that operation, not of the module."
)
_NAMED = re.compile(r"hook '([^']+)'")


def without_grad(failure: Failure) -> Finding | None:
    """``x.register_hook(f)`` or ``x.retain_grad()`` where `x` does not require grad; None: it is neither."""
    call = _asking(failure)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    name = ast.unparse(call.func.value)
    shown = f"`{name}`"
    verb = "keeps a gradient" if "retain_grad" in (failure.run.error or "") else "calls a hook with a gradient"
    off = _off(failure)
    why = f"{shown} was computed from nothing that requires grad, or while gradients were off."
    if _is_frozen(failure, name):
        why = f"{shown} is a parameter that is frozen."
    elif off is not None:
        why = f"{why} Gradients were off there: `{off.text}` ({where(off.place)})."
    return failure.finding(
        f"{shown} does not require grad, so no gradient comes to it.",
        f"{short(failure.text)} {verb} of {shown}, and there will be none: {why}",
        *_fixes(failure, name, off),
        kind="no_grad",
        tensor=name,
    )


def _is_frozen(failure: Failure, name: str) -> bool:
    """Whether a name was measured to be a parameter: these require grad unless they are told not to."""
    value = failure.value(name)
    return value is not None and value.type_name == "Parameter" and value.requires_grad is False


def _asking(failure: Failure) -> ast.Call | None:
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    found = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASKING
    ]
    return found[0] if len(found) == 1 else None


class _Off(NamedTuple):
    """What switched gradients off, where, and the edits that leave them on."""

    text: str
    place: Place
    edits: Edits


def _off(failure: Failure) -> _Off | None:
    """What switched gradients off around one of the running lines, if the text shows it."""
    for sight in failure.run.scene.sights:
        spot = at(sight.place)
        statement = failure.cells.statement(spot) if spot is not None else None
        if spot is None or statement is None:
            continue
        text = failure.cells.text(spot[0])
        found = grad_modes.around(text, statement) or grad_modes.decorated_by(text, statement, sight.decorators)
        if found is not None and found.off:
            run = next((one for one in failure.record.runs.values() if one.cell == spot[0]), None)
            if run is None:
                return None
            switches = [one for one in grad_modes.expressions(found.outer) if ast.unparse(one) == found.text]
            on = text_edit.replace_node(run.cell, text, switches[0], "torch.enable_grad()") if switches else ()
            return _Off(found.text, place_of(run, found.outer.lineno), on)
    return None


def _fixes(failure: Failure, name: str | None, off: _Off | None) -> tuple[Fix, ...]:
    value = failure.value(name)
    whole = value is not None and not re.match("float|bfloat|complex", value.dtype)
    guard = failure.fix(
        "skip_none",
        f"Do it only where there is a gradient: `if {name or 'x'}.requires_grad:`.",
        text_edit.replace_lines(
            failure.place.cell,
            failure.cell,
            failure.place.line or 0,
            failure.place.line or 0,
            [f"if {name}.requires_grad:", f"    {failure.line.strip()}"],
        )
        if name and failure.line
        else (),
    )
    if name and _is_frozen(failure, name):
        return (guard, failure.fix("unfreeze", "Or let it train, if it is not meant to be frozen."))
    if off is not None:
        on = f"Leave gradients on there: `torch.enable_grad()` in place of `{off.text}` ({where(off.place)})."
        return guard, failure.fix("remove_no_grad", on, off.edits)
    if whole:
        return (
            failure.fix("float_dtype", "Only tensors of floating point have gradients: ask for one of those."),
            guard,
        )
    edits: Edits = failure.preceded_by([f"{name}.requires_grad_()"]) if name and failure.line else ()
    let = failure.fix(
        "unfreeze",
        f"Let it require grad before: `{name or 'x'}.requires_grad_()`. What is computed from it then has a graph.",
        edits,
    )
    return (let, guard)


def of_no_leaf(failure: Failure) -> Finding:
    """``y.register_post_accumulate_grad_hook(f)`` where `y` was computed."""
    call = _asking(failure)
    function = call.func if call is not None else None
    name = ast.unparse(function.value) if isinstance(function, ast.Attribute) else None
    shown = f"`{name}`" if name else "A tensor"
    made = failure.made(failure.computed(name)) if name else ""
    edits: Edits = ()
    if isinstance(function, ast.Attribute) and failure.line:
        new = failure.line.replace(".register_post_accumulate_grad_hook(", ".register_hook(")
        edits = failure.rewritten(new)
    return failure.finding(
        f"{shown} is no leaf, and only leaves accumulate gradients.",
        f"{shown} was computed{made}. Such a hook is called when `.grad` has been written, and backward writes `.grad` "
        "into leaves only.",
        failure.fix("hook_on_the_tensor", "Hook the gradient itself, as it passes: `.register_hook(...)`.", edits),
        tensor=name,
    )


# ------------------------------------------------------------------ what a hook returns


def of_changed(record: Record, call: BackwardCall) -> Finding:
    """A hook returned a gradient of another shape, type or number than it was given."""
    message = (call.error or "").strip()
    named = _NAMED.search(message)
    module = "Backward hook" in message or "pre hook" in message
    found = handed_to(record, named[1]) if named is not None else None
    registered = [
        one for one in calls(record, *REGISTERING) if module == ("full_backward" in ast.unparse(one.call.func))
    ]
    if found is None and named is not None and named[1] == "hook":  # PyTorch's own, around a module's hook
        full = [one for one in calls(record, *REGISTERING) if "full_backward" in ast.unparse(one.call.func)]
        registered = full or registered
    one = found or (registered[0] if len(registered) == 1 else None)
    place = place_of(one.run, one.call.lineno) if one is not None else None
    name = _function(one.call) if one is not None else named[1] if named is not None else None
    hook = hook_of(record, one, name)
    one_value = hook is not None and len(hook.values) == 1 and not isinstance(hook.made, ast.Lambda)
    returned = hook.place if hook is not None and one_value else None
    shown = f"`{name}`" if name else "A hook"
    line = f" {short(place.source)} ({where(place)}) registered it." if place is not None else ""
    what = f" {short(returned.source)} ({where(returned)}) returns the new one." if returned is not None else ""
    of_module = one is not None and "full_backward" in ast.unparse(one.call.func)
    old = one is not None and source.last_name(ast.unparse(one.call.func)) == "register_backward_hook"
    wants = (
        "What a module's backward hook returns takes the place of `grad_input`: a tuple with one gradient for each "
        "input of the module, each like its input, or None where that needs none."
        if of_module
        else "What a hook returns takes the place of the gradient that it was given, so it has the same shape, type "
        "and device. None leaves it as it is."
    )
    return Finding(
        "refused",
        "error",
        f"{shown} was called with a gradient, and returned one that PyTorch refuses: "
        f"{message.rstrip('.')}.{line}{what} {_OLD if old else wants}",
        f"{shown} returns a gradient that is not like the one it replaces.",
        call.n,
        made_at=returned or place or call.place,
        failed_at=call.place,
        cause=returned or place,
        names=(name,) if name else (),
        fixes=(_full(one),)
        if old and one is not None
        else tuple(_for_returned(hook, returned or place, message, of_module)),
    )


def _for_returned(hook: Hook | None, place: Place | None, message: str, of_module: bool) -> Iterator[Fix]:
    """Return nothing, if the hook does something besides; else return what is like the gradient."""
    nothing = return_nothing(hook) if hook is not None else None
    if nothing is not None:
        yield nothing
    if nothing is None or nothing.choice:
        advice = (
            "Return a changed `grad_input`, not `grad_output`, or None."
            if of_module
            else "Return one like the argument, or None."
        )
        edits = like_the_argument(hook, message, of_module=of_module) if hook is not None else ()
        yield Fix("matching_gradient", advice, False, at(place), edits=edits)


def _full(one: CallText) -> Fix:
    """``register_full_backward_hook`` in place of the old kind."""
    place, function = place_of(one.run, one.call.lineno), one.call.func
    edits: Edits = ()
    if isinstance(function, ast.Attribute):
        new = f"{ast.unparse(function.value)}.register_full_backward_hook"
        edits = text_edit.replace_node(one.run.cell, one.run.source, function, new)
    text = f"Write `register_full_backward_hook` ({where(place)}): it gets the gradients of the module itself."
    return Fix("full_backward_hook", text, False, at(place), edits=edits)


def _function(call: ast.Call) -> str | None:
    given = call.args[0] if call.args else None
    given = given.func if isinstance(given, ast.Call) else given
    return source.last_name(ast.unparse(given)) if isinstance(given, (ast.Name, ast.Attribute)) else None
