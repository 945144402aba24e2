"""Grad mode that a line switched off for good: in a cell before, or in the one that made the tensor."""

from __future__ import annotations

import ast
import builtins
import re
import sys

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.bindings import is_container
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.grad_mode.context_managers import not_put_back
from graphwidget.diagnosis.no_graph.grad_mode.left_early import left_early
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.dataflow.reached import reached
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import place_of, where
from graphwidget.model import CellRun, Fix

__all__ = ["by_a_generator", "in_force", "only_switch", "switched_off"]

_OFF = re.compile(r"^\s*[\w.]*set_grad_enabled\((?!True)", re.MULTILINE)
_ON = re.compile(r"set_grad_enabled\((?!False)")


def _computed(origins: Origins, root: ast.expr, spot: Spot) -> list[tuple[int, CellRun, ast.stmt | None]]:
    """The run in which the root, or what it is made of, was computed; the cell whose text has the line; the statement.

    The body of a function was run when the function was called: by the cell of that call.
    """
    last, found = len(origins.values.runs) - 1, list[tuple[int, CellRun, ast.stmt | None]]()
    for name in sorted(source.names_in(root)):
        if not isinstance(root, ast.Name) and origins.values.trains(name, spot) is not None:
            continue
        for at, node in origins.values.made(name, spot):
            if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                inside = source.function_at(origins.values.runs[at.at].source, node.lineno) is not None
                found.append((last if inside else at.at, origins.values.runs[at.at], node))
                break
    return found or ([(last, origins.values.runs[last], None)] if last >= 0 else [])


def in_force(origins: Origins, root: ast.expr, spot: Spot, made_of: list[str]) -> Cause | None:
    """Grad mode was measured to be off when the cell that made it began: nothing made there can have a graph."""
    runs = list(origins.values.runs)
    if any("enable_grad" in run.source for run in runs):
        return None
    name = made_of[0]
    for at, text, made in _computed(origins, root, spot):
        if runs[at].grad_before or _ON.search(runs[at].source) or _ON.search(text.source):
            continue
        switched = next((run for run in reversed(runs[:at]) if run.grad_before and not run.grad_after), None)
        found = _switch(runs, switched) if switched is not None else None
        if found is not None:
            return _off(runs, *found, made_of, (text, made))
        since = f"since In[{switched.cell}]" if switched is not None else "from the first cell on"
        place = place_of(text, made.lineno) if made is not None else None
        line = "torch.set_grad_enabled(True)"
        fix = Fix(
            "remove_no_grad",
            f"Switch it on again before `{name}` is computed: `{line}`.",
            made is not None and restore_graph.trains(runs, made_of),
            line_of(place) if place is not None else None,
            edits=text_edit.insert_before(text.cell, text.source, made, [line]) if made is not None else (),
        )
        return Cause(f"Grad mode is off {since}: `{name}` was computed without a graph.", fix, place)
    return None


def switched_off(origins: Origins, root: ast.expr, spot: Spot, made_of: list[str]) -> Cause | None:
    """The cell that made it, or the last one, switched grad mode off and did not switch it on again."""
    runs = list(origins.values.runs)
    for at, text, made in _computed(origins, root, spot):
        until = made.lineno if made is not None and text is runs[at] else sys.maxsize
        found = _switch(runs, runs[at], until)
        if found is not None:
            return _off(runs, *found, made_of, (text, made))
    return None


def only_switch(origins: Origins, made_of: list[str]) -> Cause | None:
    """Grad mode was measured to be off at the call, and one line of the program alone may switch it off."""
    runs = list(origins.values.runs)
    if origins.values.scene.grad_mode is not False:
        return None
    found = [
        (run, one)
        for run in runs
        for one in source.nodes_of(run.source)
        if isinstance(one, ast.Expr) and _OFF.search(ast.unparse(one))
    ]
    return _off(runs, *found[0], made_of, (found[0][0], None)) if len(found) == 1 else None


def by_a_generator(origins: Origins, made_of: list[str]) -> Cause | None:
    """The one generator of the program that yields inside a `with` that switches grad mode off.

    While it waits for the next value to be asked for, its `with` is open for everybody.
    """
    runs = list(origins.values.runs)
    if origins.values.scene.grad_mode is not False or any(_OFF.search(run.source) for run in runs):
        return None
    found = [
        (run, made, outer)
        for run in runs
        for made in source.nodes_of(run.source)
        if isinstance(made, ast.FunctionDef)
        and (_is_special(made.name) or any(re.search(rf"(?<!def )\b{made.name}\b", one.source) for one in runs))
        for outer in _open_at_yields(made)
    ]
    if len(found) != 1:
        return None
    run, made, outer = found[0]
    place, switch = place_of(run, outer.lineno), ast.unparse(outer.items[0].context_expr)
    words = f"Compute inside `with {switch}:` ({where(place)}), and `yield` behind it."
    mode = switch.replace("inference_mode", "no_grad")  # no backward can use what inference mode has made
    edits = _behind(run, outer) if mode == switch else ()
    if not edits and (edits := _decorated(run, made, outer, mode)):
        words = (
            f"Put `@{mode}` on `{made.name}` instead of the `with` ({where(place)}): torch leaves it at each `yield`."
        )
    fix = Fix("remove_no_grad", words, False, line_of(place), edits=edits)
    inside = source.function_at(run.source, made.body[0].lineno)
    owner = f"{inside[0].name}." if inside is not None and inside[0] is not None else ""
    return Cause(
        f"`{owner}{made.name}` is a generator that yields inside `with {switch}:` ({where(place)}). Between two values "
        f"that stays open, and grad mode is off for the code that uses them, too: `{made_of[0]}` was computed there.",
        fix,
        place,
    )


def _is_special(name: str) -> bool:
    """Whether Python calls a method of this name: ``__iter__`` in each ``for``."""
    return name.startswith("__") and name.endswith("__")


def _open_at_yields(made: ast.FunctionDef) -> list[ast.With]:
    """The blocks of a generator that surely switch grad mode off and are open when it yields."""
    own = [one for one in source.own_statements(made.body) if isinstance(one, ast.With)]
    return [
        one
        for one in own
        if any(grad_modes.switches_off(item.context_expr) for item in one.items)
        and any(_yields(inner) for inner in source.own_statements(one.body))
    ]


def _yields(statement: ast.stmt) -> bool:
    """Whether a statement, without those inside it, yields."""
    below = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for one in below for n in ast.walk(one))


def _behind(run: CellRun, outer: ast.With) -> text_edit.Edits:
    """Move the one `yield` of a block behind it, if it is its last statement and computes nothing."""
    yielding = [one for one in source.own_statements(outer.body) if _yields(one)]
    last = outer.body[-1]
    computes = any(isinstance(n, (ast.Call, ast.BinOp, ast.YieldFrom)) for n in ast.walk(last))
    if yielding != [last] or not isinstance(last, ast.Expr) or computes or len(outer.body) < 2:
        return ()
    return restore_graph.out_of_with(run.cell, run.source, outer, last)


def _decorated(run: CellRun, made: ast.FunctionDef, outer: ast.With, switch: str) -> text_edit.Edits:
    """A decorator in the place of a block. torch leaves the mode of a decorated generator whenever it yields.

    Only if the rest of the function computes nothing whose graph may be meant.
    """
    rest = [one for one in made.body if one is not outer]
    plain = all((isinstance(one, ast.Expr) and not _yields(one)) or _is_set_up(one) for one in rest)
    if len(outer.items) > 1 or outer not in made.body or not plain or made.decorator_list:
        return ()
    taken = restore_graph.out_of_with(run.cell, run.source, outer, outer.body[0])
    return (*text_edit.insert_before(run.cell, run.source, made, [f"@{switch}"]), *taken) if taken else ()


def _is_set_up(statement: ast.stmt) -> bool:
    """Whether a statement gives names to containers and iterators: ``queue, source = deque(), iter(loader)``."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    parts = list(ast.walk(value)) if value is not None else []
    called = [ast.unparse(one.func) for one in parts if isinstance(one, ast.Call)]
    computes = any(isinstance(one, (ast.BinOp, ast.UnaryOp, ast.Lambda)) for one in parts)
    return value is not None and not computes and all(hasattr(builtins, one) or is_container(one) for one in called)


def _off(
    runs: list[CellRun],
    run: CellRun,
    statement: ast.Expr,
    made_of: list[str],
    made: tuple[CellRun, ast.stmt | None],
) -> Cause:
    place, text = place_of(run, statement.lineno), ast.unparse(statement)
    early = left_early(run, statement) or not_put_back(run, statement)
    if early is not None:
        then = f"`{made_of[0]}` was computed without a graph."
        return Cause(f"`{text}` ({where(place)}) switched grad mode off{early.text}: {then}", early.fix(), place)
    do, edits = f"Remove `{text}` ({where(place)})", text_edit.remove(run.cell, run.source, statement)
    function = _meant_without_grad(run, statement, *made)
    if function is not None:
        do += f", and put `@torch.no_grad()` on `{function.name}`: that ends with the function"
        first = min((one.lineno for one in function.decorator_list), default=function.lineno)
        edits = (*text_edit.insert_before(run.cell, run.source, first, ["@torch.no_grad()"]), *edits)
    else:
        do += ", or put what needs no graph under `with torch.no_grad():`"
    verified = restore_graph.trains(runs, made_of)
    fix = Fix("remove_no_grad", f"{do}.", verified, line_of(place), edits=edits)
    return Cause(f"`{text}` ({where(place)}) is in force: `{made_of[0]}` was computed without a graph.", fix, place)


def _meant_without_grad(
    run: CellRun, statement: ast.Expr, where_made: CellRun, made: ast.stmt | None
) -> ast.FunctionDef | None:
    """The function that begins by switching grad mode off, where what has no graph was computed outside of it."""
    inside = source.function_at(run.source, statement.lineno)
    if inside is None:
        return None
    function = inside[1]
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    begins = any(one.lineno == statement.lineno for one in body)
    lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return function if begins and not (where_made is run and made is not None and made.lineno in lines) else None


def _switch(runs: list[CellRun], run: CellRun, until: int = sys.maxsize) -> tuple[CellRun, ast.Expr] | None:
    """The statement that switched grad mode off while a cell ran: its last one before a line, or one in a function
    that it names and that leaves it off.
    """
    own = _switches(source.parse(run.source), until)
    if own:
        return (run, own[-1]) if _is_off(own[-1]) else None
    if run.grad_after:
        return None
    words = source.words_in(source.parse(run.source) or ast.Module([], []))
    for other, made in reached(runs[::-1], words):
        inside = _switches(made)
        if inside and _is_off(inside[-1]):
            return other, inside[-1]
        early = next((one for one in inside if left_early(other, one) is not None), None)
        if early is not None:
            return other, early
    return None


def _switches(tree: ast.AST | None, until: int = sys.maxsize) -> list[ast.Expr]:
    """The statements that call `set_grad_enabled`, in the order of the text, without those of nested functions."""
    found: list[ast.Expr] = []
    below = list(ast.iter_child_nodes(tree)) if tree is not None else []
    for node in below:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Expr) and "set_grad_enabled(" in ast.unparse(node) and node.lineno < until:
            found.append(node)
        found += _switches(node, until)
    return found


def _is_off(statement: ast.Expr) -> bool:
    return "False" in ast.unparse(statement)
