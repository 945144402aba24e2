"""What transforms of functions refuse: `vmap`, `grad`, `jvp` of `torch.func`, and of ``torch.autograd.functional``.

One run of the function stands for all elements, or for its derivative. What depends on one value, writes where nothing
is mapped, or calls the engine in between has no such meaning.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Literal, NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.findings.refusals.transformed.by_where import asks, by_where
from graphwidget.diagnosis.findings.refusals.transformed.engine_inside import with_transforms
from graphwidget.diagnosis.findings.refusals.transformed.unmapped import made_of_mapped
from graphwidget.diagnosis.findings.refusals.user_code.setup_context import separated
from graphwidget.diagnosis.findings.refusals.within_module import named
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, defined, of_method
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import Finding, Fix, Place, RunningModule, torch_messages

__all__ = ["of_engine", "of_function", "of_refusal"]

_TRANSFORMS = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize", "jacobian")


class _Reason(NamedTuple):
    """Why something is refused. `{line}` and `{transform}` in its texts are the line and the transform."""

    words: tuple[str, ...]
    headline: str
    why: str
    fix: Fix


_WITHOUT_STATISTICS = Fix(
    "without_running_statistics",
    "Make the batch norms with `track_running_stats=False`: in evaluation, too, they then use the statistics of the "
    "batch. Or use `nn.GroupNorm`, which keeps none.",
    False,
    choice=True,
)

_BY_WHERE = "torch.where(condition, a, b)"

_REASONS = (
    _Reason(
        torch_messages.NO_ONE_VALUE,
        "{line} asks for one value, and under {transform} there are many.",
        "{transform} runs the function once for all elements. In it a tensor stands for all of them, so there is no "
        "one number that Python could test, print or convert.",
        Fix(
            "differentiable_op",
            f"Compute with tensors: `{_BY_WHERE}` for an `if`, indexing by tensors for `.item()`.",
            False,
        ),
    ),
    _Reason(
        torch_messages.NO_ONE_SHAPE,
        "The result of {line} has a shape that depends on values, and under {transform} there are many.",
        "{transform} runs the function once for all elements, so all results have one shape. A boolean mask or "
        "`nonzero` gives each element another one.",
        Fix(
            "differentiable_op",
            "Keep the shape, and weigh instead of selecting: `torch.where(mask, x, 0)`.",
            False,
        ),
    ),
    _Reason(
        torch_messages.WRITE_TO_UNMAPPED,
        "{line} writes mapped values into a tensor that is not mapped.",
        "{transform} runs the function once for all elements. What is written differs between them, and the tensor "
        "that is written to exists once, so it has no room for them.",
        Fix(
            "make_mapped",
            "Make it from what is mapped (`torch.zeros_like(x)`, `x.new_zeros(...)`), or collect results in a list and "
            "`torch.stack` them.",
            False,
        ),
    ),
    _Reason(
        torch_messages.STATISTICS_UNMAPPED,
        "{line} runs a batch norm that keeps running statistics, under {transform}.",
        "{transform} runs the function once for all elements. In training a batch norm writes the statistics of its "
        "input to `running_mean` and `running_var`; those exist once, and each element has others.",
        _WITHOUT_STATISTICS,
    ),
    _Reason(
        torch_messages.RANDOM_IN_VMAP,
        "{line} draws random numbers under {transform}.",
        "{transform} runs the function once for all elements, and has not been told whether each shall get numbers of "
        "its own.",
        Fix(
            "say_randomness",
            "Say it: `randomness='different'` for numbers of its own for each element, `'same'` for the same ones.",
            False,
        ),
    ),
    _Reason(
        torch_messages.ARGUMENTS_OF_VMAP,
        "{line}: the arguments and `in_dims` or `out_dims` do not fit.",
        "{transform} maps over one dimension of each argument that is a tensor; `in_dims` has one entry for each "
        "argument, and None for what is not mapped: a number, a model, or a tensor that all elements share. Only "
        "tensors can be returned.",
        Fix(
            "fitting_dims",
            "Write one entry for each argument, with None for what all elements share: `in_dims=(0, None)`.",
            False,
        ),
    ),
    _Reason(
        torch_messages.TRANSFORMED_OUTPUT,
        "What the function returns has no gradient of the kind that {line} asks for.",
        "A gradient is that of one number. `grad` wants a function that returns one; the derivative of several values "
        "is a Jacobian. What else it returns, pass with `has_aux=True`.",
        Fix(
            "scalar_loss",
            "Let the function return one number (`.sum()`, `.mean()`), or ask for the Jacobian: `torch.func.jacrev`.",
            False,
        ),
    ),
    _Reason(
        torch_messages.ENGINE_IN_TRANSFORM,
        "{line} steers autograd inside a function that is transformed.",
        "{transform} takes the derivative of the function itself. Inside it, `backward` and `requires_grad_` "
        "would bypass it, so they are refused.",
        Fix(
            "transform_instead",
            "Nest transforms: `torch.func.grad` inside of the function.",
            False,
        ),
    ),
    _Reason(
        torch_messages.WRITTEN_IN_TRANSFORM,
        "{line} writes to a tensor of outside, in a function that is transformed.",
        "{transform} takes the derivative of what the function computes from its arguments. A write to a tensor that "
        "is none of them would be no part of that: the running statistics of a batch norm, a counter, a cache.",
        Fix(
            "out_of_place",
            "Return new values in place of writing them. For batch norm: `track_running_stats=False`, `net.eval()`, or "
            "`torch.func.replace_all_batch_norm_modules_(net)` before.",
            False,
        ),
    ),
)


def of_refusal(failure: Failure) -> Finding | None:
    """The finding for a refusal of a transform."""
    message = failure.run.error or ""
    reason = next((one for one in _REASONS if torch_messages.says(message, one.words)), None)
    if reason is None:
        return None
    transform, place = _transform(failure, message)
    known = {"line": short(failure.text), "transform": f"`{transform}`" if transform else "The transform"}
    inside = {**known, "transform": known["transform"] if transform else "the transform"}
    spot = f" {short(place.source)} ({where(place)}) is the call." if place and at(place) != at(failure.place) else ""
    given = failure.given
    making = {
        "make_mapped": made_of_mapped,
        "say_randomness": _with_randomness,
        "without_running_statistics": _without_statistics,
    }
    fix, headline = reason.fix, reason.headline
    within = failure.run.scene.within
    if reason.words == torch_messages.WRITTEN_IN_TRANSFORM and within is not None and within.buffers:
        headline = f"{named(within)} writes to {_buffers(within)}, in a function that is transformed."
        fix = _WITHOUT_STATISTICS if within.tracks else fix
    edits: Edits = making[fix.id](failure) if fix.id in making else ()
    if reason.words == torch_messages.NO_ONE_VALUE and asks(failure):
        new, edits = by_where(failure)
        fix = replace(
            fix, text=f"Let each element take its own branch: {short(new or _BY_WHERE, 120)}. Both are computed."
        )
    if fix.id == "transform_instead":
        edits = with_transforms(failure)[1]
    return failure.finding(
        headline.format(**inside),
        f"{reason.why.format(**known)} {short(failure.text)} is in "
        f"{where(failure.place)}.{spot}{' ' * bool(given)}{given}",
        replace(fix, at=at(failure.place), edits=edits),
    )


def of_engine(failure: Failure) -> Finding | None:
    """``torch.autograd.grad`` in a function that a transform runs: it finds no graph of the tensors there."""
    values = failure.run.scene.sights[0].values.values() if failure.run.scene.sights else ()
    transform, place = _transform(failure, "")
    mapped = any(value.mapped for value in values)
    if not failure.run.through_backward or not (transform or mapped):
        return None
    by = f"`{transform or 'vmap'}`"
    spot = f" {short(place.source)} ({where(place)}) is the call." if place and at(place) != at(failure.place) else ""
    follows = (
        ", which stand for all elements: autograd has no graph of them there"
        if mapped
        else (", and follows what it differentiates by: of others, autograd has no graph there")
    )
    new, edits = with_transforms(failure)
    text = (
        f"Take the derivative of the function itself: {short(new, 120)}."
        if edits
        else "Take it by `torch.func.grad` of the function that computes the value: `torch.func.grad(f)(x)`; of "
        "parameters, let it take them, and call the module by `torch.func.functional_call(net, params, (x,))`. Or "
        f"leave {by} out: compute the batch as a whole, and ask for `torch.autograd.grad(u.sum(), x)`."
    )
    return failure.finding(
        f"{short(failure.text)} asks autograd for a gradient inside a function that {by} runs.",
        f"{by} runs the function on tensors of its own{follows}. Inside a transform, derivatives are taken by "
        f"transforms. {short(failure.text)} is in {where(failure.place)}.{spot}{' ' * bool(failure.given)}"
        f"{failure.given}",
        Fix("transform_instead", text, False, at(failure.place), edits=edits),
    )


def _buffers(module: RunningModule) -> str:
    """``its buffer `running_mean```."""
    return f"its {'buffer' if len(module.buffers) == 1 else 'buffers'} {names(module.buffers)}"


def _transform(failure: Failure, message: str) -> tuple[str, Place | None]:
    """The transform that was running: the message's or the only one that the running lines call, and its line."""
    named = re.match(r"(vmap|vjp|jvp|grad|jacrev|jacfwd|hessian)\b", message)
    found: list[tuple[str, Place]] = []
    for sight in failure.run.scene.sights:
        spot = at(sight.place)
        statement = failure.cells.statement(spot) if spot is not None else None
        for name in source.calls_in(statement) if statement is not None and not hasattr(statement, "body") else ():
            last = source.last_name(name)
            last = last if last in _TRANSFORMS else _made_by_transform(failure, name)
            if last in _TRANSFORMS and not name.endswith("autograd.grad"):
                found.append((last, sight.place))
    if named is not None:
        return named[1], next((place for last, place in found if last == named[1]), None)
    kinds = {last for last, _ in found}
    return (found[0][0] if len(kinds) == 1 else "", found[0][1] if found else None)


def _made_by_transform(failure: Failure, name: str) -> str:
    """The transform that made a function: ``batched = vmap(f)``, or a decorator of it; empty: none, or several."""
    found = set[str]()
    for text in failure.cells.texts.values():
        values: list[ast.AST] = [*map(source.given, source.assignments(text, name))]
        if name.isidentifier():
            functions = (one for one in source.defined(text, name) if isinstance(one, ast.FunctionDef))
            values += [one for function in functions for one in function.decorator_list]
        for one in values:
            func = one.func if isinstance(one, ast.Call) else one
            if isinstance(func, (ast.Name, ast.Attribute)):
                found.add(source.last_name(ast.unparse(func)))
    return found.pop() if len(found) == 1 else ""


def _without_statistics(failure: Failure) -> Edits:
    within = failure.run.scene.within
    known = {within.class_name} if within is not None and within.tracks else set[str]()
    found = calls(failure.record, *(f"BatchNorm{size}d" for size in (1, 2, 3)), *known)
    keyword = "track_running_stats=False"
    return tuple(
        edit for one in found for edit in text_edit.with_argument(one.run.cell, one.run.source, one.call, keyword)
    )


def _with_randomness(failure: Failure) -> Edits:
    found = [one for one in calls(failure.record, "vmap") if one.argument("randomness") is None]
    if len(found) != 1:
        return ()
    one: CallText = found[0]
    return text_edit.with_argument(one.run.cell, one.run.source, one.call, "randomness='different'")


# ------------------------------------------------------------------ custom Functions under transforms


def of_function(failure: Failure) -> Finding:
    """A custom Function that has no rule for a transform. Where its `forward` is to change, that is the place."""
    message = failure.run.error or ""
    lacks: Literal["setup", "vmap", "jvp"] = (
        "setup" if "setup_context" in message else "vmap" if "vmap support" in message else "jvp"
    )
    name, text = _applied(failure, message)
    shown = f"`{name}`" if name else "a custom Function"
    forward = text.method("forward") if text is not None and lacks == "setup" else None
    place = made = place_of(text.run, text.made.lineno) if text is not None else None
    spot = ""
    if text is not None and forward is not None:
        place = replace(place_of(text.run, forward.lineno), function=None)
        spot = f" ({where(place)}{f', of `{text.name}`' if text.name != name else ''})"
    line = f" ({where(made)})" if made is not None and text is not None and text.name == name else ""
    why = {
        "setup": f"Its `forward`{spot} takes `ctx`. A transform runs `forward` on values of its own and saves them "
        "apart, in `setup_context`, so it needs the two separate.",
        "vmap": "It has no rule for many elements at once (a method `vmap`, or `generate_vmap_rule`).",
        "jvp": "It has a `backward`, and no formula to push a tangent forwards (a method `jvp`).",
    }[lacks]
    what = {
        "setup": "Write `forward(x)` without `ctx`, and a static method `setup_context(ctx, inputs, output)` that "
        "saves.",
        "vmap": "Set `generate_vmap_rule = True` in the class, if its methods use operations of PyTorch only; else "
        "write a static method `vmap`.",
        "jvp": "Write a static method `jvp(ctx, *tangents)`, or take the derivative backwards (`vjp`, `jacrev`).",
    }[lacks]
    edits: Edits = separated(text) if lacks == "setup" and text is not None else ()
    if lacks == "vmap" and text is not None:
        edits = text_edit.insert_before(
            text.run.cell, text.run.source, _behind_its_text(text.made), ["generate_vmap_rule = True"]
        )
    return failure.finding(
        f"{shown[0].upper()}{shown[1:]} has no rule for this transform.",
        f"{short(failure.text)} ({where(failure.place)}) applies {shown}{line} inside a transform of `torch.func` or "
        f"forward-mode differentiation. {why}",
        Fix("rule_of_the_function", what, False, at(place or failure.place), edits=edits),
        tensor=name,
        cause=place,
    )


def _behind_its_text(made: ast.ClassDef) -> ast.stmt:
    """The first statement of a class behind its docstring."""
    first, *rest = made.body
    return rest[0] if rest and ast.get_docstring(made, clean=False) is not None else first


def _applied(failure: Failure, message: str) -> tuple[str | None, FunctionText | None]:
    """The class that was being applied, and its text: the class with its `forward`, if that is not to be found.

    It is measured, as a line need not name it: ``square(x)`` for ``square = Square.apply``. Else the message names it,
    or the line.
    """
    record, applied = failure.record, failure.run.scene.applied
    named = re.search(r"tried to vmap over (\w+)", message)
    name = named[1] if named is not None else applied.name if applied is not None else _named(failure)
    written = of_method(record, applied.forward) if applied is not None and applied.forward is not None else None
    if written is not None and (written.name == name or "setup_context" in message):
        return name, written  # what is to change in `forward` changes where that is written
    return name, (defined(record, name) if name else None) or written


def _named(failure: Failure) -> str | None:
    """The class that the line applies by its name."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    found = {
        source.last_name(ast.unparse(node.value))
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "apply"
    }
    return found.pop() if len(found) == 1 else None
