"""What a custom Function does behind autograd's back: inputs modified without a word, tensors kept on `ctx`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, functions
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, NodeFacts, Record, Snapshot, Write

__all__ = ["find"]


def find(record: Record) -> Iterator[Finding]:
    """Yield findings for the Functions whose backward ran in a call."""
    known = [(call, call.graph) for call in record.calls if call.graph is not None and call.result == "ok"]
    for function in functions(record):
        name = f"{function.name}Backward"
        ran = [(call, graph) for call, graph in known if name in graph.names]
        if ran:
            yield from _not_marked(function, name, *ran[0])
            yield from _kept_and_written(record, function, name, ran)


def _forward(function: FunctionText) -> ast.FunctionDef | None:
    return function.method("forward")


def _says(function: FunctionText, method: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == method for node in ast.walk(function.made))


# ------------------------------------------------------------------ an input that `forward` modifies


def _not_marked(function: FunctionText, name: str, call: BackwardCall, graph: Snapshot) -> Iterator[Finding]:
    """``x.clamp_(min=0)`` in a forward without ``ctx.mark_dirty(x)``, of an input that needs a gradient.

    A write by ``x.data`` is meant to be hidden from autograd.
    """
    forward = _forward(function)
    if forward is None or _says(function, "mark_dirty"):
        return
    nodes = (index for index in range(len(graph)) if graph.name_of(index) == name)
    needed = {position for index in nodes for position in graph.facts.get(index, NodeFacts()).arguments}
    given = {one for position, one in enumerate(function.inputs or ()) if position in needed}
    for statement in syntax.own_statements(forward.body):
        given -= set(syntax.targets(statement)) if isinstance(statement, ast.Assign) else set()
        written = [] if hasattr(statement, "body") else sorted(given & inplace.surely_written(statement))
        if not written:
            continue
        place, run = place_of(function.run, statement.lineno), function.run
        line = f"ctx.mark_dirty({written[0]})"
        has_context = function.method("setup_context") is None
        edits = text_edit.insert_after(run.cell, run.source, statement, [line]) if has_context else ()
        yield Finding(
            "silent",
            "warning",
            f"{short(place.source)} ({where(place)}) modifies the input `{written[0]}` in place. Autograd is not told, "
            "so it counts the tensor as what it was before. Gradients of what is computed from it may be wrong.",
            f"`{function.name}.forward` modifies `{written[0]}` without `mark_dirty`.",
            call.n,
            tensor=written[0],
            made_at=place,
            modified_at=place,
            cause=place,
            names=(function.name, written[0], "mark_dirty"),
            fixes=(Fix("mark_dirty", f"Say so: `{line}`. Or compute a new tensor.", False, at(place), edits=edits),),
        )
        return


# ------------------------------------------------------------------ a tensor that is kept on `ctx`, and written to


def _kept_and_written(
    record: Record, function: FunctionText, name: str, ran: list[tuple[BackwardCall, Snapshot]]
) -> Iterator[Finding]:
    """``ctx.w = w`` in a forward, and a write to `w` before the backward: nothing notices it."""
    kept = _kept(function)
    every = (*record.hidden, *record.writes)
    for call, graph in ran if kept and every else ():
        for index in range(len(graph)):
            if graph.name_of(index) != name:
                continue
            arguments = _arguments(graph, index)
            for parameter, statement in kept.items():
                position = (function.inputs or ()).index(parameter)
                argument = arguments[position] if position < len(arguments) else ""
                write = _written(every, argument, graph.seq[index], call)
                if write is not None:
                    yield _unnoticed(function, parameter, statement, argument, write, call)
                    return


def _kept(function: FunctionText) -> dict[str, ast.stmt]:
    """The inputs that the forward keeps as attributes of `ctx`, with the statement."""
    found: dict[str, ast.stmt] = {}
    for method in ("forward", "setup_context"):
        made = function.method(method)
        for statement in syntax.own_statements(made.body) if made is not None else ():
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                pairs = [(target, statement.value)]
                if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                    pairs = list(zip(target.elts, statement.value.elts))
                for left, right in pairs:
                    own = isinstance(left, ast.Attribute) and ast.unparse(left.value) == "ctx"
                    if own and isinstance(right, ast.Name) and right.id in (function.inputs or ()):
                        found.setdefault(right.id, statement)
    return found


def _arguments(graph: Snapshot, index: int) -> list[str]:
    """What the Function was applied to, as the line writes it."""
    place = graph.place_of(index)
    tree = syntax.statement_of(place.source) if place is not None else None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    applied = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "apply"]
    return [ast.unparse(one) for one in applied[0].args] if len(applied) == 1 else []


def _written(writes: tuple[Write, ...], argument: str, seq: int, call: BackwardCall) -> Write | None:
    """A write to an argument after the Function was applied and before the call."""
    for write in writes:
        later = write.number > seq if write.number >= 0 else False
        if argument and argument in write.paths and later and write.after_calls <= call.n:
            return write
    return None


def _unnoticed(
    function: FunctionText, parameter: str, statement: ast.stmt, argument: str, write: Write, call: BackwardCall
) -> Finding:
    place = place_of(function.run, statement.lineno)
    shown = names((argument,))
    return Finding(
        "silent",
        "warning",
        f"{short(place.source)} ({where(place)}) keeps {shown} as an attribute. {short(write.by)} "
        f"({where(write.place)}) wrote to it before the backward. Autograd checks only what `save_for_backward` has "
        f"saved, so `{function.name}` went by what is there now.",
        f"A gradient may be silently wrong: {shown} was written to, and `{function.name}` keeps it on `ctx`.",
        call.n,
        tensor=argument,
        made_at=place,
        modified_at=write.place,
        cause=place,
        names=(function.name, argument, "save_for_backward"),
        fixes=(
            Fix(
                "save_for_backward",
                f"Save it with `ctx.save_for_backward({parameter})`, and read it from `ctx.saved_tensors`: then such a "
                "write raises. And write after the backward.",
                False,
                at(place),
            ),
        ),
    )
