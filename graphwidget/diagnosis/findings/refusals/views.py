"""Views that may not be modified in place: of a full backward hook, of a custom Function, of code without grad mode."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import calls
from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, defined
from graphwidget.diagnosis.wording import names, no_gradient, place_of, short, where
from graphwidget.model import CellRun, Finding, Place

__all__ = ["not_in_place", "of_custom_function", "of_hooked_module", "of_view_of_another_mode", "written_by"]

_REGISTERING = ("register_full_backward_hook", "register_full_backward_pre_hook")


def of_hooked_module(failure: Failure) -> Finding:
    """An in-place operation on the input or output of a module with a full backward hook."""
    scene = failure.run.scene
    writer = next((one for one in scene.running if one.inplace), None)
    # If a module was running, its `forward` wrote; else the line itself did.
    inside = bool(scene.running)
    name = None if inside else written_by(failure)
    if writer is not None:
        shown = f"`{writer.path}`" if writer.path else f"A `{writer.class_name}`"
        what = f"{shown} (a `{writer.class_name}` with `inplace=True`)" if writer.path else f"{shown} (`inplace=True`)"
        edits = not_in_place(failure, writer.class_name)
        out = f"Write `inplace=False` for the `{writer.class_name}`: it makes a new tensor."
    else:
        what = short(failure.text)
        new = inplace.out_of_place(failure.line) if name else ""
        edits = failure.rewritten(new) if new else ()
        out = "Make a new tensor instead."
    hooked = names(scene.hooked)
    have = "has" if len(scene.hooked) == 1 else "have"
    by = f"{hooked} {have} a full backward hook" if hooked else "A module has a full backward hook"
    place = _registered(failure)
    line = f" ({where(place)})" if place is not None else ""
    return failure.finding(
        f"{what} modifies what a module with a backward hook {'returned' if not inside else 'handles'}.",
        f"{by}{line}. PyTorch passes what goes into and out of such a module through a Function of its own, as a view, "
        f"so that the hook gets its gradients. {what} modifies such a view in place: the gradient would no longer go "
        "through the hook, so it is refused.",
        failure.fix("out_of_place", out, edits, price="Memory for one more tensor."),
        failure.fix(
            "hook_on_the_tensor",
            "Or hook the tensor: `out.register_hook(...)` on a result, in a forward hook if need be, has no such view.",
        ),
        tensor=name,
        cause=place,
    )


def written_by(failure: Failure) -> str | None:
    """The name of what the line itself modifies in place; None: it does not, or has no name."""
    if failure.statement is None or not inplace.written(failure.statement):
        return None
    return inplace.modified(failure.text)


def not_in_place(failure: Failure, name: str) -> Edits:
    """Edits of all calls that make such a module with ``inplace=True``; none if other code makes it."""
    found: Edits = ()
    for run, call in calls(failure.record, name):
        for keyword in call.keywords:
            if keyword.arg == "inplace" and ast.unparse(keyword.value) == "True":
                found += text_edit.replace_node(run.cell, run.source, keyword.value, "False")
        if len(call.args) == 1 and ast.unparse(call.args[0]) == "True":  # nn.ReLU(True)
            found += text_edit.replace_node(run.cell, run.source, call.args[0], "False")
    return found


def _registered(failure: Failure) -> Place | None:
    """The only line that registers such a hook."""
    found = calls(failure.record, *_REGISTERING)
    if len(found) != 1:
        return None
    run, call = found[0]
    return place_of(run, call.lineno)


def of_custom_function(failure: Failure) -> Finding:
    """A view that a custom Function returned."""
    name = written_by(failure)
    shown = f"`{name}`" if name else "A view"
    made = _function_behind(failure, name)
    by = f"`{made.name}`" if made is not None else "a custom Function"
    new = inplace.out_of_place(failure.line) if name else ""
    returned = made.results if made is not None else []
    line = f" ({where(place_of(made.run, returned[0].lineno))})" if made is not None and len(returned) == 1 else ""
    fixes = [
        failure.fix(
            "out_of_place",
            "Make a new tensor instead.",
            failure.rewritten(new) if new else (),
            price="Memory for one more tensor.",
        ),
        failure.fix(
            "clone_before_inplace",
            f"Or return a copy from the `forward` of {by}{line}: `.clone()` behind the view.",
            _copied(made, returned) if made is not None else (),
            price="Memory for one more tensor.",
        ),
    ]
    return failure.finding(
        f"{shown} is a view that {by} returned, and is modified in place.",
        f"The `forward` of {by}{line} returns a view, of its input or of what it computes. {short(failure.text)} "
        "modifies it in place. PyTorch would have to replace the Function's own `backward` by that of a view, so it "
        "refuses the write.",
        *fixes,
        tensor=name,
        cause=failure.place,
    )


def _function_behind(failure: Failure, name: str | None) -> FunctionText | None:
    """The custom Function that PyTorch names, or of which the lines before assign a result to that name."""
    told = re.search(r"Output \d+ of (\w+?)(?:Backward)? is a view", failure.run.error or "")
    if told:
        return defined(failure.record, told[1])
    line = failure.place.line or 0
    before = [one for one in syntax.assignments(failure.cell, name or "") if one.lineno < line]
    for call in ast.walk(before[-1]) if before else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "apply":
            return defined(failure.record, syntax.last_name(ast.unparse(call.func.value)))
    return None


def _copied(made: FunctionText, returned: list[ast.Return]) -> Edits:
    """A copy of what `forward` returns, if it returns one value."""
    value = returned[0].value if len(returned) == 1 else None
    if value is None or isinstance(value, (ast.Tuple, ast.List)):
        return ()
    return text_edit.replace_node(made.run.cell, made.run.source, value, f"{syntax.in_brackets(value)}.clone()")


def of_view_of_another_mode(failure: Failure) -> Finding:
    """A view that was made under `no_grad`, and is modified where the graph is recorded."""
    mode = "inference" if "inference mode" in (failure.run.error or "") else "no_grad"
    off = "torch.inference_mode()" if mode == "inference" else "torch.no_grad()"
    name = written_by(failure)
    shown = f"`{name}`" if name else "A view"
    edits = failure.under_no_grad(failure.line) if name and failure.line else ()
    made = _made_without_grad(failure, name)
    where_made = f" {short(made.place.source)} ({where(made.place)}) made it, under `{made.switch}`." if made else ""
    trained = _trained_by(failure, name)
    meant = "The write is part of the graph:" if trained else "If the write is to be part of the graph,"
    outside = failure.fix(
        "remove_no_grad" if made is not None else "out_of_place",
        f"{meant} make the view outside of `{off}`, too.",
        made.edits if made is not None else (),
    )
    under = failure.fix(
        "under_no_grad",
        "If it is not to be part of the graph, write under `torch.no_grad()`.",
        edits,
        price=no_gradient(trained, "by this write") if trained else "",
    )
    return failure.finding(
        f"{shown} is a view that was made under `{off}`.",
        f"{short(failure.text)} ({where(failure.place)}) modifies it where operations are recorded.{where_made} "
        "Whether the write is to be part of the graph is not clear then, so PyTorch refuses it.",
        *((outside, replace(under, choice=True)) if trained else (under, outside)),
        tensor=name,
        cause=made.place if made is not None else None,
    )


class _Made(NamedTuple):
    """The line that made a view, what switches grad mode off around it, and the edits that take that away."""

    place: Place
    switch: str
    edits: Edits


def _made_without_grad(failure: Failure, name: str | None) -> _Made | None:
    """Where a view was made: in the line that gives the name its value, or in the function that this calls."""
    line = failure.place.line or 0
    bound = [s for s in syntax.bindings(failure.cell, name, line) if not hasattr(s, "body")] if name else []
    run = next((one for one in failure.cells.latest if one.cell == failure.place.cell), None)
    if not bound or run is None:
        return None
    found = [(run, bound[-1])]
    for called in syntax.calls_in(bound[-1]):
        functions = [
            (one, node)
            for one in failure.cells.latest
            for node in syntax.nodes_of(one.source)
            if isinstance(node, ast.FunctionDef) and node.name == syntax.last_name(called)
        ]
        if len(functions) == 1:
            inside, function = functions[0]
            found += [(inside, s) for s in syntax.own_statements(function.body) if isinstance(s, ast.Return)]
    for one, statement in found:
        switch = grad_modes.around(one.source, statement)
        if switch is not None and switch.off:
            return _Made(place_of(one, statement.lineno), switch.text, _recorded(one, switch))
    return None


def _recorded(run: CellRun, switch: grad_modes.Switch) -> Edits:
    """A function without its decorator; a block is left as it is, as others of its lines may need it."""
    if not isinstance(switch.outer, ast.FunctionDef):
        return ()
    if any(inplace.written(one) for one in ast.walk(switch.outer) if isinstance(one, ast.stmt)):
        return ()
    found = restore_graph.without_decorator(run.cell, run.source, switch.outer, switch.text)
    return found[1] if found is not None else ()


def _trained_by(failure: Failure, name: str | None) -> tuple[str, ...]:
    """What the line reads that requires grad, other than what it writes to: the write is meant to train it."""
    read = sorted(syntax.paths_read(failure.statement)) if failure.statement is not None else ()
    values = ((one, failure.value(one)) for one in read if one != name)
    return tuple(one for one, value in values if value is not None and value.kind == "tensor" and value.requires_grad)
