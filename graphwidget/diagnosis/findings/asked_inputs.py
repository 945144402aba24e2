"""`autograd.grad` was asked for the gradient of a tensor that does not require grad."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphwidget.diagnosis.fixes.trainable_only import of_trainable
from graphwidget.diagnosis.no_graph.values import Values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, names, own_path, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Record

__all__ = ["explain"]


def explain(record: Record, call: BackwardCall) -> Finding:
    """Return the finding of a call for the gradient of a tensor that does not require grad."""
    spot = at(call.place)
    statement = Cells.of(record).statement(spot) if spot is not None else None
    text = ast.unparse(statement) if statement is not None and not hasattr(statement, "body") else call.place.source
    asked, written = call.inputs or (), source.asked(text, "inputs")
    known = written if len(asked) == len(written) else [own_path(ref) for ref in asked]
    if len(written) == 1 and all(ref.node < 0 for ref in asked):
        known = written  # one expression for all of them
    without = tuple(name for ref, name in zip(asked, known) if ref.node < 0 and name)
    some = any(ref.requires_grad for ref in asked) and len(asked) != len(written)
    if (some or not without) and len(asked) > 1:
        return _some_of_many(record, call)
    do = "does not" if len(without) < 2 else "do not"
    shown = names(without)
    return Finding(
        "no_grad",
        "error",
        f"{short(call.place.source)} asks for the gradient of {shown or 'a tensor'}, and no graph leads there.",
        f"{shown or 'A tensor whose gradient was asked for'} {do} require grad.",
        call.n,
        tensor=without[0] if without else None,
        made_at=call.place,
        fixes=(_let_it(record, spot, statement, without, source.asked(text, "outputs")),),
    )


def _some_of_many(record: Record, call: BackwardCall) -> Finding:
    """The finding where several are asked for at once, and no variable leads to those without a graph."""
    asked = call.inputs or ()
    frozen = [ref for ref in asked if not ref.requires_grad]
    shapes = " and ".join(dict.fromkeys(str(tuple(ref.shape)) for ref in frozen[:3]))
    text = f"{short(call.place.source)} asks for the gradients of {len(asked)} tensors. {len(frozen)} of them "
    text += f"{'does' if len(frozen) == 1 else 'do'} not require grad, of shape {shapes}"
    known = names(tuple(path for ref in frozen if (path := own_path(ref)) is not None))
    text += f": {known}." if known else "."
    runs = [run for _, run in sorted(record.runs.items())]
    lines = {at(place): place for run, one, _ in Values(runs).freezing() for place in [place_of(run, one.lineno)]}
    if len(lines) == 1:
        (place,) = lines.values()
        text += f" {short(place.source)} ({where(place)}) freezes parameters."
    ways = of_trainable(record, at(call.place), [spot for spot in lines if spot is not None])
    advice = "Ask only for the gradients of those that require grad (`x.requires_grad`), and take None for the others."
    return Finding(
        "no_grad",
        "error",
        text,
        f"{len(frozen)} of {len(asked)} tensors whose gradients were asked for {'does' if len(frozen) == 1 else 'do'} "
        "not require grad.",
        call.n,
        made_at=call.place,
        tensor=own_path(frozen[0]),
        fixes=tuple(
            Fix("differentiate_some", said if edits else advice, False, at(call.place), edits=edits)
            for said, edits in ways or [("", ())]
        ),
    )


def _let_it(
    record: Record, spot: Spot | None, statement: ast.stmt | None, without: Iterable[str], outputs: Iterable[str]
) -> Fix:
    """Return a fix that lets the tensors require grad before something is computed from them.

    In the function that asks, and only if it computes there what it derives: else the tensors have been used before.
    """
    if spot is not None and statement is not None:
        text = Cells.of(record).text(spot[0])
        inside = source.function_at(text, statement.lineno)
        start = inside[1].lineno if inside is not None else 0
        before = [
            one
            for one in source.leading_to(text, statement.lineno)
            if one.lineno > start and one is not statement and not isinstance(one, (ast.FunctionDef, ast.ClassDef))
        ]
        made = {name for one in before for name in source.targets(one)}
        inputs = [*dict.fromkeys((*without, *_asked_later(text, statement)))]
        derived = set[str]().union(*(source.names_in(ast.parse(one)) for one in outputs))
        here = not derived.isdisjoint(inputs)  # the line itself computes what it derives: ``grad(f(q).sum(), q)``
        if inputs and (made & derived or here) and all(name.isidentifier() for name in inputs):
            given = [at for at, one in enumerate(before) if set(source.targets(one)) & set(inputs)]
            last = given[-1] if given else -1
            reading = (one for one in before[last + 1 :] if source.names_read(one) & set(inputs))
            use = next(reading, statement if here else None)
            if use is not None:
                lines = [f"{name}.requires_grad_()" for name in inputs]
                edits = text_edit.insert_before(spot[0], text, use, lines)
                shown = " and ".join(map(short, lines))
                sentence = f"Let {names(tuple(inputs))} require grad: {shown} before In[{spot[0]}], line {use.lineno}."
                return Fix("unfreeze", sentence, False, (spot[0], use.lineno), edits=edits)
    return Fix("unfreeze", "Let it require grad before anything is computed from it.", False)


def _asked_later(text: str, statement: ast.stmt) -> list[str]:
    """Return what later lines of the same function ask gradients of, if it is an argument: they would fail next."""
    inside = source.function_at(text, statement.lineno)
    if inside is None:
        return []
    arguments = {one.arg for one in inside[1].args.args}
    later = [one for one in ast.walk(inside[1]) if isinstance(one, ast.stmt) and one.lineno > statement.lineno]
    asked = [name for one in later for name in source.asked(ast.unparse(one), "inputs")]
    return [name for name in asked if name in arguments]
