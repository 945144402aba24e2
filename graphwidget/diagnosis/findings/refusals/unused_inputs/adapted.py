"""Gradients of weights that were computed from those of a module, where the loss was computed by the module's own.

The second step of an inner loop: ``fast = [p - lr * g ...]``, and then ``loss = criterion(net(x), y)`` again, which
reads the module's parameters. The call of the module has to be given the new weights: by an argument of its own, or by
`torch.func.functional_call`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.fixes.in_place.handed_in import argument_of
from graphwidget.diagnosis.no_graph.cutting import is_library
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, names, short, where
from graphwidget.engine.what_if import reachable
from graphwidget.model import BackwardCall, Fix, Place, Record, Snapshot

__all__ = ["Adapted", "adapted"]


class Adapted(NamedTuple):
    """What is known of such weights: a sentence, the line that calls the module, its fixes, and the weights' name."""

    text: str
    place: Place
    fixes: tuple[Fix, ...]
    name: str


class _Forward(NamedTuple):
    """A line that ran a module: its place, the frame that the line called, and that of the call of the engine."""

    place: Place
    inner: Place | None
    asking: int  # how far outside of the line that asks for gradients


def adapted(record: Record, call: BackwardCall, root: str) -> Adapted | None:
    """None: the inputs are no such weights, or the line that called the module is not known."""
    graph = call.graph
    if graph is None or not call.inputs or any(ref.is_leaf for ref in call.inputs):
        return None
    below = reachable(graph, (ref.node for ref in call.roots if ref.node >= 0))
    if any(ref.node in below for ref in call.inputs):
        return None
    used = below & _differentiated_before(record, call, graph)
    forward = _forward(graph, call, below, used)
    written = _container(record, call, forward.asking) if forward is not None else None
    if forward is None or written is None:
        return None
    paths = tuple(sorted({local(path) for index in used for path in graph.leaves[index].paths[:1]}))
    name, line = ast.unparse(written[0]), f"{short(forward.place.source)} ({where(forward.place)})"
    text = (
        f"{line} computes it with {names(paths)}. `{name}` was computed from these, and no line of `{root}` reads it."
    )
    fixes = tuple(_fixes(record, forward, *written, paths))
    return Adapted(text, forward.place, fixes, name)


def _differentiated_before(record: Record, call: BackwardCall, graph: Snapshot) -> set[int]:
    """The leaves of which an earlier call has been asked for gradients: from these the weights were computed."""
    found = set[int]()
    for earlier in record.calls:
        if earlier.n < call.n and earlier.result == "ok" and earlier.graph is not None:
            uids = (earlier.graph.uid[ref.node] for ref in earlier.inputs or () if ref.node in earlier.graph.leaves)
            found.update(index for uid in uids if (index := graph.index_of.get(uid)) is not None)
    return found


def _forward(graph: Snapshot, call: BackwardCall, below: set[int], used: set[int]) -> _Forward | None:
    """The line that used these leaves, in the function that asks for gradients or in one that called it."""
    asking = (*call.place.stack, call.place)
    found = Counter[_Forward]()
    for index in below:
        place = graph.place_of(index) if not used.isdisjoint(graph.next(index)) else None
        frames = (*place.stack, place) if place is not None else ()
        for depth in range(min(len(frames), len(asking)) - 1, -1, -1):
            if (frames[depth].cell, frames[depth].function) == (asking[depth].cell, asking[depth].function):
                inner = frames[depth + 1] if depth + 1 < len(frames) else None
                found[_Forward(frames[depth], inner, len(asking) - 1 - depth)] += 1
                break
    spots = {at(one.place) for one in found}
    return found.most_common(1)[0][0] if len(spots) == 1 and None not in spots else None


def _container(record: Record, call: BackwardCall, outside: int) -> tuple[ast.expr, bool] | None:
    """What holds the weights, as the function of the module's call writes it, and whether it is a dict."""
    cells, frames = Cells.of(record), (*call.place.stack, call.place)
    asked = source.asked(_text(cells, call.place), "inputs")
    if len(asked) != 1:
        return None
    written = ast.parse(asked[0], mode="eval").body
    keyed = False
    while isinstance(written, ast.Call):
        if isinstance(written.func, ast.Attribute) and written.func.attr == "values" and not written.args:
            written, keyed = written.func.value, True
        elif isinstance(written.func, ast.Name) and written.func.id in ("list", "tuple") and len(written.args) == 1:
            written = written.args[0]
        else:
            return None
    for depth in range(len(frames) - 1, len(frames) - 1 - outside, -1):
        found = source.function_at(cells.text(frames[depth].cell), frames[depth].line or 0)
        given = argument_of(cells, frames[depth - 1], found, ast.unparse(written)) if found is not None else None
        if given is None:
            return None
        written = ast.parse(given, mode="eval").body
    return (written, keyed) if isinstance(written, (ast.Name, ast.Attribute)) else None


def _text(cells: Cells, place: Place) -> str:
    spot = at(place)
    statement = cells.statement(spot) if spot is not None else None
    return ast.unparse(statement) if statement is not None and not hasattr(statement, "body") else place.source


def _fixes(record: Record, forward: _Forward, written: ast.expr, keyed: bool, paths: tuple[str, ...]) -> Iterator[Fix]:
    """Hand the weights to the call of the module: by each argument that it has for it, or by `functional_call`."""
    cells, spot, name = Cells.of(record), at(forward.place), ast.unparse(written)
    statement = cells.statement(spot) if spot is not None else None
    called = _module_call(statement, forward, paths) if statement is not None else None
    if spot is None or called is None:
        yield Fix("use_input", f"Compute it with `{name}` in {where(forward.place)}.")
        return
    text = cells.text(spot[0])
    for option in _options(cells, forward, called):
        edits = text_edit.with_argument(spot[0], text, called, f"{option}={name}")
        new = f"{ast.unparse(called)[:-1]}{', ' if called.args or called.keywords else ''}{option}={name})"
        yield Fix(
            "use_input", f"Compute it with `{name}`: {short(new)} ({where(forward.place)}).", at=spot, edits=edits
        )
    if called.keywords or any(isinstance(one, ast.Starred) for one in called.args):
        return
    module, given = ast.unparse(called.func), ", ".join(map(ast.unparse, called.args))
    keys = name if keyed else f"dict(zip(dict({module}.named_parameters()), {name}))"
    new = f"{_functional_call(cells, spot[0])}({module}, {keys}, ({given}{',' if len(called.args) == 1 else ''}))"
    edits = text_edit.replace_node(spot[0], text, called, new)
    sentence = f"Compute it with `{name}` in place of the module's own parameters: {short(new, 100)}"
    yield Fix("use_input", f"{sentence} ({where(forward.place)}).", at=spot, edits=edits)


def _functional_call(cells: Cells, cell: int) -> str:
    """How a cell can write it: a file by its own imports, a cell of a notebook by those of all cells."""
    texts = [cells.text(cell)] if cell in cells.files else [*cells.texts.values()]
    imported = any(re.search(r"\bimport [^\n]*\bfunctional_call\b", text) for text in texts)
    return "functional_call" if imported else "torch.func.functional_call"


def _module_call(statement: ast.stmt, forward: _Forward, paths: tuple[str, ...]) -> ast.Call | None:
    """The one call in a statement that ran the module to which leaves of these paths belong."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and not is_library(n.func)]
    function = (forward.inner.function or "").rpartition(".")[2] if forward.inner is not None else "forward"
    if function in ("forward", "__call__"):
        known = [one for one in calls if any(_leads_to(ast.unparse(one.func), path) for path in paths)]
    else:
        known = [one for one in calls if source.last_name(ast.unparse(one.func)) == function]
    return known[0] if len(known) == 1 else None


def _leads_to(module: str, path: str) -> bool:
    """Whether a leaf may be a part of what a line calls `module`; a variable may have another name elsewhere."""
    rest = module.partition(".")[2]
    return path.startswith((f"{module}.", f"{module}[")) or bool(rest and f".{rest}." in path)


def _options(cells: Cells, forward: _Forward, called: ast.Call) -> list[str]:
    """The arguments of the called function that may be left out as None, and are."""
    inner = forward.inner
    found = source.function_at(cells.text(inner.cell), inner.line or 0) if inner is not None else None
    if found is None:
        return []
    arguments = found[1].args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults)]
    pairs += [(one, value) for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None]
    none = [one.arg for one, value in pairs if isinstance(value, ast.Constant) and value.value is None]
    taken = {one.arg for one in positional[: len(called.args) + (found[0] is not None)]}
    return [one for one in none if one not in taken | {keyword.arg for keyword in called.keywords}]
