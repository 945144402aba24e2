"""Views that may not be modified in place: views from a full backward hook, and views made without grad mode."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import calls
from graphwidget.diagnosis.source import inplace_statements as inplace
from graphwidget.diagnosis.source import text_edit
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import names, place_of, short, where
from graphwidget.model import Finding, Place

__all__ = ["of_hooked_module", "of_view_of_another_mode", "written_by"]

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
        edits = _of_modules(failure, writer.class_name)
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


def _of_modules(failure: Failure, name: str) -> Edits:
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


def of_view_of_another_mode(failure: Failure) -> Finding:
    """A view that was made under `no_grad`, and is modified where the graph is recorded."""
    mode = "inference" if "inference mode" in (failure.run.error or "") else "no_grad"
    off = "torch.inference_mode()" if mode == "inference" else "torch.no_grad()"
    name = written_by(failure)
    shown = f"`{name}`" if name else "A view"
    edits = failure.under_no_grad(failure.line) if name and failure.line else ()
    return failure.finding(
        f"{shown} is a view that was made under `{off}`.",
        f"{short(failure.text)} modifies it where operations are recorded. Whether the write is to be part of the "
        "graph is not clear then, so PyTorch refuses it.",
        failure.fix(
            "out_of_place",
            f"If it is to be part of the graph, make the view outside of `{off}`, too.",
        ),
        failure.fix("under_no_grad", "If it is not, write under `torch.no_grad()`.", edits),
        tensor=name,
    )
