"""The line that hands tensors over to objects that a container keeps: records of a log, errors, rows, tasks.

What puts such an object into the container does not show what it holds: a library made it, or a caller did. But where
it holds a tensor tells by which argument it came in: a field by its name, an entry by its key, an element of a tuple by
its position among the last arguments of a call.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.fixes.piles.stored_too import UNLESS
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import steps
from graphwidget.diagnosis.wording import at, short
from graphwidget.model import CellRun, Fix, Owner, Place, Record, Snapshot

__all__ = ["handed_over"]

MOST = 50  # tensors of which it is asked whether a backward has run them
Spot = tuple[int, int]  # a cell and a line


class _Held(NamedTuple):
    """Where in an object a tensor is: the last step to it, and the length of the tuple around it; -1: it is in none."""

    step: str
    length: int

    @property
    def key(self) -> str:
        return self.step.strip(".[]'\"")


class _Call(NamedTuple):
    """A call that hands tensors over: the argument for each place in which one is held."""

    run: CellRun
    call: ast.Call
    given: dict[_Held, ast.expr]


def handed_over(record: Record, holder: str, owners: Sequence[Owner], graph: Snapshot) -> Fix | None:
    """``log.debug("loss %s", loss.detach())``, for what `holder` keeps in objects; None: it is not known which line.

    Parameters
    ----------
    holder
        The path of the container.
    owners, graph
        What it keeps, and the graph that shows where that was made.
    """
    held = {one for owner in owners if (one := _held(holder, owner)) is not None}
    places = [place for owner in owners if (place := graph.place_of(owner.node)) is not None]
    frames = [frame for place in places for frame in (place, *place.stack)]
    running = {spot for frame in frames if (spot := at(frame)) is not None}
    if not held or not running:
        return None
    runs = Cells.of(record).latest[::-1]
    found = [one for run in runs for one in _calls(record, run, held, running)]
    found = found or [one for run in runs for one in _calls(record, run, held, running, loosely=True)]
    run = [one for one in owners[:MOST] if record.was_run(graph.uid[one.node], graph.seq[one.node])]
    from_there = {_held(holder, one) for one in run}  # a backward had them, and perhaps from the object
    found = [
        one
        for one in found
        if not any(held in from_there and _is_only_here(one, value, running) for held, value in one.given.items())
    ]
    chosen = [one for each in sorted(held) for one in _best(found, each)]
    chosen = [one for i, one in enumerate(chosen) if one not in chosen[:i]]
    if not chosen or len({(one.run.cell, ast.unparse(one.call.func)) for one in chosen}) > 1:
        return None  # several may do it
    texts = tuple(Cells.of(record).texts.values())
    first, edits = chosen[0], text_edit.Edits()
    for handing in chosen:
        given = {id(value): value for value in handing.given.values()}.values()
        cell, text = handing.run.cell, handing.run.source
        edits += tuple(edit for value in given for edit in containers.detached_value(cell, text, value, texts))
    own = [edit for edit in edits if first.call.lineno <= edit.start[0] <= (first.call.end_lineno or 0)]
    shown = short(text_edit.new_text(first.run.source, tuple(own)))
    more = f" and the same for {len(chosen) - 1} more" if len(chosen) > 1 else ""
    where = f"In[{first.run.cell}], line {first.call.lineno}"
    advice = f"Hand over numbers, not graphs: write {shown}{more} ({where}).{UNLESS}"
    spot = (first.run.cell or 0, first.call.lineno)
    price = "No gradient flows back through it."
    return Fix("detach", advice, False, spot, price, edits=tuple(text_edit.in_order(edits)))


def _held(holder: str, owner: Owner) -> _Held | None:
    """Where in an element of a container a tensor is; None: it is the element."""
    way = steps(f"_{owner.path[len(holder) :]}")[1:]
    if len(way) < 2 or not owner.path.startswith(holder):
        return None
    kind, length = owner.containers[0] if owner.containers else ("", -1)
    by_place = re.fullmatch(r"\[\d+\]", way[-1]) is not None
    return None if by_place and kind != "tuple" else _Held(way[-1], length if by_place else -1)


def _is_only_here(handing: _Call, value: ast.expr, running: set[Spot]) -> bool:
    """Whether only the object has a tensor: it was made as the argument, or no other line reads its variable.

    A backward that has run it, then, got it from the object.
    """
    run = handing.run
    if not isinstance(value, ast.Name):
        made_here = any((run.cell, line) in running for line in _lines(value))
        return made_here and not isinstance(value, (ast.Attribute, ast.Subscript))
    around = source.function_at(run.source, handing.call.lineno)
    body = ast.walk(around[1]) if around is not None else source.nodes_of(run.source)
    reads = {id(one) for one in body if isinstance(one, ast.Name) and one.id == value.id and _is_read(one)}
    return reads <= {id(node) for node in ast.walk(handing.call)}


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _best(found: list[_Call], held: _Held) -> list[_Call]:
    """The calls that hand over what is held there: those that hand over most."""
    able = [one for one in found if held in one.given]
    most = max((len(one.given) for one in able), default=0)
    return [one for one in able if len(one.given) == most]


def _calls(
    record: Record, run: CellRun, held: set[_Held], running: set[Spot], loosely: bool = False
) -> Iterator[_Call]:
    """The calls of a text, in functions that ran when the tensors were made, that may hand them over.

    `loosely`: by a variable that is called like the attribute that has it then.
    """
    functions = {_function(run.source, line) for cell, line in running if cell == run.cell}
    for statement in source.nodes_of(run.source) if functions else ():
        if not isinstance(statement, (ast.Expr, ast.Raise, ast.Assign, ast.Return)):
            continue
        if _function(run.source, statement.lineno) not in functions or _runs_backward(record, run, statement):
            continue
        whole = statement.exc if isinstance(statement, ast.Raise) else statement.value
        kept = isinstance(statement, (ast.Expr, ast.Raise))
        for call in _outer_calls(whole):
            find = _by_name if loosely and kept else _argument
            given = {one: value for one in held if (value := find(record, call, one, kept)) is not None}
            given = {one: value for one, value in given.items() if _is_of(run, value, running)}
            if given:
                yield _Call(run, call, given)


def _outer_calls(whole: ast.expr | None) -> Iterator[ast.Call]:
    """The calls of an expression that may keep what they are given, each before those in its arguments."""
    for node in ast.walk(whole) if whole is not None else ():
        if isinstance(node, ast.Call) and not _keeps_nothing(node):
            yield node


def _keeps_nothing(call: ast.Call) -> bool:
    """Whether a function of Python's own is called that makes no object of its arguments: ``print``."""
    known = getattr(builtins, call.func.id, None) if isinstance(call.func, ast.Name) else None
    return known is not None and not (isinstance(known, type) and issubclass(known, BaseException))


def _argument(record: Record, call: ast.Call, held: _Held, kept: bool) -> ast.expr | None:
    """The argument of a call that may be what is held there.

    Parameters
    ----------
    kept
        Whether nothing else is done with the result. Else only the names of fields tell that it is an object.
    """
    named = {one.arg: one.value for one in call.keywords if one.arg}
    if held.length < 0:
        displays = [one for one in (*call.args, *named.values()) if isinstance(one, ast.Dict)]
        entries = [pair for one in displays for pair in zip(one.keys, one.values)]
        by_key = (value for key, value in entries if isinstance(key, ast.Constant) and key.value == held.key)
        fields = _fields(record, source.last_name(ast.unparse(call.func)))
        by_field = call.args[fields.index(held.key) :][:1] if held.key in fields else []
        able = [*([named[held.key]] if held.key in named and (kept or fields) else []), *by_field]
        return next(iter([*able, *(by_key if kept else ())]), None)
    number, given = int(held.key), [*call.args]
    if not kept or any(isinstance(one, ast.Starred) for one in given):
        return None
    for one in (*given, *named.values()):
        if isinstance(one, ast.Tuple) and len(one.elts) == held.length:
            return one.elts[number]
    return given[len(given) - held.length + number] if len(given) >= held.length else None


def _by_name(record: Record, call: ast.Call, held: _Held, kept: bool) -> ast.expr | None:  # noqa: ARG001
    """``check(i, loss)`` for `loss` of the error that it raises."""
    named = (one for one in call.args if ast.unparse(one) == held.key)
    return next(named, None) if held.step.startswith(".") else None


def _fields(record: Record, name: str) -> tuple[str, ...]:
    """What the arguments of a class become: its fields, or the attributes that its constructor sets to them."""
    for text in Cells.of(record).texts.values():
        if fields := source.fields_of(text, name):
            return fields
        for made in source.defined(text, name):
            for one in made.body if isinstance(made, ast.ClassDef) else ():
                if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                    return tuple(_attribute(one, each.arg) for each in one.args.args[1:])
    return ()


def _attribute(constructor: ast.FunctionDef, argument: str) -> str:
    """The attribute that a constructor sets to an argument; empty: none."""
    for node in ast.walk(constructor):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == argument:
            return next((one.attr for one in node.targets if isinstance(one, ast.Attribute)), "")
    return ""


def _is_of(run: CellRun, value: ast.expr, running: set[Spot]) -> bool:
    """Whether an argument may be a tensor that was made where those of the pile were."""
    if not containers.may_have_a_graph(value):
        return False
    lines = {line for cell, line in running if cell == run.cell}
    if not isinstance(value, ast.Name):
        return isinstance(value, (ast.Attribute, ast.Subscript)) or not lines.isdisjoint(_lines(value))
    made = [one for one in source.assignments(run.source, value.id) if not lines.isdisjoint(_lines(one))]
    return any(_function(run.source, one.lineno) == _function(run.source, value.lineno) for one in made)


def _lines(node: ast.expr | ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _function(text: str, line: int) -> int:
    """The line of the function around a line; 0: there is none."""
    found = source.function_at(text, line)
    return found[1].lineno if found is not None else 0


def _runs_backward(record: Record, run: CellRun, statement: ast.stmt) -> bool:
    """Whether a backward call ran within a statement: what it is given needs its graph."""
    frames: Iterator[Place] = (frame for call in record.calls for frame in (call.place, *call.place.stack))
    return any(frame.cell == run.cell and frame.line in _lines(statement) for frame in frames)
