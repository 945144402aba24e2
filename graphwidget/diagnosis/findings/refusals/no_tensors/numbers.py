"""A loss that is a Python number or an array: its graph ended where the number was taken, or nothing was added up."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings import no_grad
from graphwidget.diagnosis.findings.refusals.no_tensors.asked import Asked
from graphwidget.diagnosis.fixes.restore_graph import without
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Place, TensorRef

__all__ = ["found", "of_a_number"]

_TAKE = ("item", "float", "numpy", "tolist")


def found(one: Asked) -> Finding:
    """The line that took the number out of the graph; or that there was nothing to add up."""
    return _of_nothing(one) or _taken(one)


def of_a_number(one: Asked) -> Finding:
    """``total.item()`` of a number: it is one already."""
    failure = one.failure
    calls = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call)] if failure.statement is not None else []
    whole = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.value is one.node and not n.args]
    edits = text_edit.replace_node(failure.place.cell, failure.cell, whole[0], one.name) if len(whole) == 1 else ()
    made = f" {_made(one)}" if one.made is not None else ""
    return failure.finding(
        f"`{one.name}` is {one.what}, and has no graph to leave.",
        f"{one.line} asks `{one.name}` for `{one.attribute}()`, which takes a value out of a tensor. It is {one.what} "
        f"already.{made}",
        Fix("mend_the_code", f"Use `{one.name}` itself.", False, at(failure.place), edits=edits),
        tensor=one.name,
        cause=failure.place,
    )


def _of_nothing(one: Asked) -> Finding | None:
    """The number 0 with which a sum begins: ``sum(losses)`` of an empty list, a loop whose body added nothing."""
    made = one.made
    if one.kind not in ("int", "float"):
        return None
    empty = _empty(one, made.given) if made is not None else ""
    start = _start(one)
    if made is not None and empty:
        place, why = (
            made.place,
            f"{made.told} adds up `{empty}`, which is empty, and the sum of nothing is the number 0.",
        )
    elif start is not None:
        place = start
        why = (
            f"{short(place.source)} ({where(place)}) begins with the number 0, and no line has added a tensor to it "
            "since."
        )
    else:
        return None
    return one.failure.finding(
        f"`{one.name}` is {one.what}: {'nothing' if empty else 'no tensor'} was added up.",
        f"{why} {one.line} needs a tensor that has a graph.",
        _skipped(one),
        Fix(
            "keep_a_graph",
            "Or begin with a zero that has a graph, made of the model's output: `out.sum() * 0`.",
            False,
            at(place),
        ),
        tensor=one.name,
        cause=place,
    )


def _empty(one: Asked, given: ast.expr) -> str:
    """The list that is summed up and was measured to be empty; empty text: none is."""
    measured = {name: what for sight in one.failure.run.scene.sights for name, what in sight.others.items()}
    summed = (
        ast.unparse(node.args[0])
        for node in ast.walk(given)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "sum" and node.args
    )
    return next((name for name in summed if measured.get(name, "").endswith(" of 0")), "")


def _start(one: Asked) -> Place | None:
    """The line that gives a sum its 0, here or in the function that returns it, where other lines may add to it."""
    made, run = one.made, one.run
    returning = one.function(made.given) if made is not None else None
    if returning is not None:
        run, function = returning
        body = list(syntax.own_statements(function.body))
        names = {ast.unparse(s.value) for s in body if isinstance(s, ast.Return) and s.value is not None}
        name = names.pop() if len(names) == 1 else ""
    elif run is not None:
        name = one.root
        inside = syntax.function_at(run.source, one.failure.place.line or 0)
        tree = inside[1] if inside is not None else syntax.parse(run.source)
        body = [s for s in syntax.own_statements(tree.body if tree else []) if s.lineno < (one.failure.place.line or 0)]
    if run is None:
        return None
    bound = [s for s in body if name in syntax.targets(s) and not hasattr(s, "body")]
    zeros = [s for s in bound if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and s.value.value == 0]
    added = [s for s in bound if zeros and s.lineno > zeros[-1].lineno]
    grows = all(isinstance(s, ast.AugAssign) or name in syntax.names_read(s) for s in added)
    if not zeros or not added or not grows or any(map(_takes_a_number, added)):
        return None
    return place_of(run, zeros[-1].lineno)


def _takes_a_number(statement: ast.stmt) -> bool:
    return any(syntax.last_name(name) in _TAKE for name in syntax.calls_in(statement))


def _skipped(one: Asked) -> Fix:
    """Leave the call out in passes without anything to train by: a choice, as others may be meant to train there."""
    failure = one.failure
    test = f"if isinstance({one.name}, torch.Tensor):"
    whole = failure.statement is not None and ast.unparse(failure.statement).startswith(f"{one.name}.backward(")
    edits: text_edit.Edits = ()
    if whole and failure.line:
        line = failure.place.line or 0
        edits = text_edit.replace_lines(
            failure.place.cell, failure.cell, line, line, [test, f"    {failure.line.strip()}"]
        )
    text = f"Leave the call out where there is nothing to train by: `{test}` ({where(failure.place)})."
    return Fix("skip_the_call", text, False, at(failure.place), edits=edits, choice=True)


def _taken(one: Asked) -> Finding:
    """The line that took the number out of its tensor, as it is found for a tensor without a graph."""
    failure = one.failure
    root = TensorRef(-1, 0, (one.root,))
    call = BackwardCall(len(failure.record.calls), failure.place, "backward", False, False, (root,), ())
    cause = no_grad.explain(failure.record, call)
    known = cause.fixes and cause.fixes[0].id != "find_the_cut" and cause.made_at is not None
    taking = _taking(one) if not known else None
    if taking is not None and one.run is not None:
        place = place_of(one.run, taking.lineno)
        edits = without(one.run.cell, one.run.source, taking, "item")
        return failure.finding(
            f"`{one.name}` is {one.what}, and no tensor.",
            f"{one.line} asks `{one.name}` for `{one.attribute}`, and only a tensor has one. {short(place.source)} "
            f"({where(place)}) takes a number out of a tensor, and its graph ends there.",
            Fix(
                "no_grad_or_item", f"Compute it with the tensor itself ({where(place)}).", False, at(place), edits=edits
            ),
            tensor=one.name,
            cause=place,
        )
    fixes = tuple(_with_edits(one, fix, cause.made_at) for fix in cause.fixes) if known else ()
    why = cause.text if known else f"Which line took it out of a tensor is not known. {_made(one)}".strip()
    return failure.finding(
        f"`{one.name}` is {one.what}, and no tensor.",
        f"{one.line} asks `{one.name}` for `{one.attribute}`, and only a tensor has one. {why}",
        *(fixes or (Fix("find_the_cut", _advice(one), False, at(failure.place)),)),
        tensor=one.name,
        cause=cause.made_at if known else (one.made.place if one.made is not None else None),
    )


def _taking(one: Asked) -> ast.stmt | None:
    """The last line that gives the variable a number, which it takes out of something."""
    text, line = one.failure.cell, one.failure.place.line or 0
    found = [s for s in syntax.bindings(text, one.root, line) if not hasattr(s, "body") and _takes_a_number(s)]
    return found[-1] if found else None


def _made(one: Asked) -> str:
    return f"{one.made.told} made it." if one.made is not None else ""


def _advice(one: Asked) -> str:
    return f"Compute `{one.name}` with operations of tensors only: `item()`, `float()` and NumPy end the graph."


def _with_edits(one: Asked, fix: Fix, place: Place | None) -> Fix:
    """A fix with the edit that leaves the number out, where that is one word of a line."""
    if fix.edits or place is None or place.cell is None or place.line is None:
        return fix
    cells = one.failure.cells
    statement = cells.statement((place.cell, place.line))
    if statement is None:
        return fix
    edits = without(place.cell, cells.text(place.cell), statement, "item")
    return Fix(fix.id, fix.text, False, fix.at, fix.price, edits=edits) if edits else fix
