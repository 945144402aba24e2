"""Optimizers that were given computed tensors: ``SGD([w2])``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.fixes.unnamed_leaf import with_these_values
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, listed, names, no_gradient, short
from graphwidget.model import Finding, Fix

__all__ = ["of_line"]


def of_line(failure: Failure) -> Finding:
    """The finding for the refusal of an optimizer to change what is no leaf."""
    there = failure.statement is not None and OPTIMIZER.search(failure.text)
    read = source.paths_read(failure.statement) if failure.statement is not None and there else set()
    called = set(source.calls_in(failure.statement)) if failure.statement is not None else set()
    found = sorted(name for name in read - called if failure.is_computed(name))
    held: tuple[tuple[str, int | None], ...] = (
        () if found else tuple(_held(failure, read | {name.rpartition(".")[0] for name in called}))
    )
    held = held or (() if found else tuple(_put_in(failure, read)))
    returned = () if found or held or failure.statement is None else tuple(_returned_in_list(failure.statement))
    if returned:
        return _of_what_is_returned(failure, returned)
    fixes = _of_named(failure, found) if found else [_of_held(failure, held)]
    nodes = {name: failure.computed(name) for name in found} or dict(held)
    name, several = next(iter(nodes)) if len(nodes) == 1 else None, len(nodes) > 1
    shown = listed([failure.named(*one) for one in nodes.items()]) or "A tensor that it was given"
    made = failure.made(nodes[name]) if name else ""
    return failure.finding(
        f"{shown} {'are no leaves' if several else 'is no leaf'}.",
        f"{shown} {'were' if several else 'was'} computed{made}. An optimizer changes leaves: no backward writes a "
        "`.grad` into what is no leaf.",
        *fixes,
        tensor=failure.plain_name(name, nodes[name]) or name if name else None,
    )


def _held(failure: Failure, read: set[str]) -> Iterator[tuple[str, int]]:
    """Computed tensors in the lists and objects that a line reads, and their nodes. What a module keeps is its own."""
    graph = failure.record.snapshot
    objects = {one for one in read if (value := failure.value(one)) is None or value.kind != "module"}
    for owner in graph.owners:
        path = local(owner.path)
        inside = any(path.startswith((f"{one}[", f"{one}.")) for one in objects if one)
        if inside and owner.node is not None and graph.node(owner.node).leaf is None:
            yield path, owner.node


def _put_in(failure: Failure, read: set[str]) -> Iterator[tuple[str, int | None]]:
    """Computed variables of which the line's own function built the lists that the line reads: `params` of a `fit`."""
    for made in (one for name in sorted(read) for one in _assigned(failure, name)):
        again = (name for name in source.names_in(made) for s in _assigned(failure, name) if s.lineno > made.lineno)
        inside = sorted(source.paths_read(made) - set(source.calls_in(made)) - set(again))
        yield from ((one, failure.computed(one)) for one in inside if failure.is_computed(one))


def _assigned(failure: Failure, name: str) -> list[ast.stmt]:
    """The statements of the line's own function that assign a name."""
    cell, line = failure.cell, failure.place.line or 0
    made = source.assignments(cell, name)
    return [one for one in made if source.function_at(cell, one.lineno) == source.function_at(cell, line)]


def _assigned_at(failure: Failure, name: str) -> tuple[int, int] | None:
    made = _assigned(failure, name)
    return (failure.place.cell, made[0].lineno) if len(made) == 1 and failure.place.cell is not None else None


def _of_named(failure: Failure, found: list[str]) -> list[Fix]:
    leaves = tuple(dict.fromkeys(leaf for one in found for leaf in failure.leaves(one)))
    made = _made_as_leaves(failure, [(name, failure.computed(name)) for name in found]) if not leaves else None
    if made is not None:
        return [replace(made, verified=True)]  # nothing that is computed has a graph then
    new = [f"{name} = {name}.detach().requires_grad_()" for name in found]
    one = len(found) == 1
    leaf = failure.fix(
        "leaf",
        f"Make a leaf of it first: `{new[0]}`." if one else "Make leaves of them first: `.detach().requires_grad_()`.",
        failure.preceded_by(new),
        verified=not leaves and one and failure.node(found[0]) is not None,
        price=no_gradient(leaves, "through it") if leaves else "What it was computed from gets no gradient.",
    )
    instead = failure.fix("leaf", f"Give it what that was computed from, if it should train: {names(leaves)}.")
    return [instead, leaf] if leaves else [leaf]


def _of_held(failure: Failure, held: tuple[tuple[str, int | None], ...]) -> Fix:
    """A leaf that is made in the optimizer's line would be used by nothing else: the list keeps the old tensor."""
    made = _made_as_leaves(failure, held)
    one, they = ("a leaf of it", "it is") if len(dict(held)) == 1 else ("leaves of them", "they are")
    return made or failure.fix(
        "leaf",
        f"Make {one} where {they} computed: `.detach().requires_grad_()`.",
        price="What it was computed from gets no gradient.",
    )


def _made_as_leaves(failure: Failure, computed: Sequence[tuple[str, int | None]]) -> Fix | None:
    """The edit of the lines that computed all of them from leaves without a name; None: they were made otherwise."""
    lines: dict[str, Edits] = {}
    for name, node in computed:
        spot = at(failure.record.snapshot.place_of(node)) if node is not None else _assigned_at(failure, name)
        statement = failure.cells.statement(spot) if spot is not None else None
        made = with_these_values(spot[0], failure.cells.text(spot[0]), statement) if spot and statement else None
        if made is None:
            return None
        lines[made[0]] = made[1]
    if not lines:
        return None
    shown = ", ".join(map(short, lines))
    edits = tuple(edit for each in lines.values() for edit in each)
    return failure.fix("leaf", f"Let what is computed be the leaf: {shown}.", edits)


def _returned_in_list(statement: ast.stmt) -> Iterator[str]:
    """``param("a")`` and ``net.scale()`` of ``Adam([param("a"), net.scale()])``."""
    for call in ast.walk(statement):
        is_made = isinstance(call, ast.Call) and call.args and OPTIMIZER.search(ast.unparse(call))
        given = call.args[0] if is_made and isinstance(call, ast.Call) else None
        if isinstance(given, (ast.List, ast.Tuple)):
            yield from (ast.unparse(one) for one in given.elts if isinstance(one, ast.Call))


def _of_what_is_returned(failure: Failure, returned: tuple[str, ...]) -> Finding:
    """What a call returns has no name: a leaf made of it there would be a tensor that nothing else uses."""
    one = len(returned) == 1
    what = f"what {names(returned)} {'returns' if one else 'return'}"
    advice = f"Give it the {'leaf' if one else 'leaves'} that {what} is computed from: only these can be trained."
    return failure.finding(
        f"W{what[1:]} is no leaf." if one else f"Not all that {names(returned)} return are leaves.",
        f"{'It' if one else 'At least one'} is computed. An optimizer changes leaves: backward writes `.grad` into "
        "them only.",
        failure.fix("leaf", f"{advice} A new leaf made here (`.detach()`) would be used by nothing else."),
        tensor=returned[0] if one else None,
    )
