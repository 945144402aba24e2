"""Steps that a program writes by itself: gradients that nothing clears, and leaves that no step reaches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.steps.kept_grads import call_before, is_never_cleared
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import is_assignable, root_of
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, KeptGradients, Place, Record

__all__ = ["find"]

_IN_PLACE = re.compile(r"[^_]_$")
_INDEX = re.compile(r"\[[^\]]*\]")


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for the lines of each function that go by growing gradients, and for each leaf left out."""
    if record.calls:
        yield from _never_cleared(record)
        yield from _left_out(record)


# ------------------------------------------------------------------ gradients that nothing clears


class _Step(NamedTuple):
    """What was seen of a line, the statement there, and what it writes to, as the line writes it."""

    kept: KeptGradients
    statement: ast.stmt
    target: str


def _never_cleared(record: Record) -> Iterator[Finding]:
    held = {path for write in record.writes if write.optimizer for path in write.paths}
    together: dict[tuple[int | None, int], list[_Step]] = {}
    for kept in record.kept_grads:
        spot = at(kept.place)
        statement = Cells.of(record).statement(spot) if spot is not None else None
        if not kept.by_hand or kept.cleared or kept.path in held or statement is None or spot is None:
            continue
        text = Cells.of(record).text(spot[0])
        if is_never_cleared(record, kept) and _goes_by_gradients(text, statement):
            inside = syntax.function_at(text, statement.lineno)
            key = (spot[0], inside[1].lineno if inside is not None else 0)
            together.setdefault(key, []).append(_Step(kept, statement, _target(statement, spoken(kept.path))))
    for (cell, _), steps in together.items():
        call = call_before(record, steps[0].kept)
        if call is not None:
            yield _adding_up(record, cell, steps, call)


def _goes_by_gradients(text: str, statement: ast.stmt) -> bool:
    """Whether a line reads a `.grad`, or a name that its function computed from one."""
    if _reads_grad(statement):
        return True
    inside = syntax.function_at(text, statement.lineno)
    tree = inside[1] if inside is not None else syntax.parse(text)
    nodes = list(ast.walk(tree)) if tree is not None else []
    gives = [one for one in nodes if isinstance(one, (ast.Assign, ast.For))]
    own, known, before = root_of(_target(statement)), set[str](), -1
    while len(known) > before:
        before = len(known)
        for one in gives:
            if _reads_grad(syntax.given(one)) or not known.isdisjoint(syntax.names_in(syntax.given(one))):
                known |= syntax.bound(one.target if isinstance(one, ast.For) else one) - {own}
    return not known.isdisjoint(syntax.names_read(statement))


def _reads_grad(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(node))


def _target(statement: ast.stmt, path: str = "") -> str:
    """``w`` of ``w -= lr * w.grad``, ``w.data.sub_(…)``, ``w.data[0] = …`` and ``w[0] -= w.grad[0]``.

    Empty if it cannot be read. `path`: what is written to was known by this name.
    """
    if isinstance(statement, ast.AugAssign):
        node: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        node = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if not isinstance(function, ast.Attribute) or ast.unparse(function).startswith("torch."):
            return ""
        node = function.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _IN_PLACE.search(node.func.attr):
            node = node.func.value  # `w.sub_(…).clamp_(…)`
    else:
        return ""
    whole = _leaf(node, statement, path)
    return whole if is_assignable(whole) else ""


def _leaf(written: ast.expr, statement: ast.stmt, path: str) -> str:
    """The leaf whose values an expression is: its elements may be written to, or those of a list of leaves."""
    parts = [written]
    while isinstance(part := parts[-1], (ast.Attribute, ast.Subscript)):
        parts.append(part.value)
    of_data = [one.value for one in parts if isinstance(one, ast.Attribute) and one.attr == "data"]
    if of_data:
        return ast.unparse(of_data[-1])
    if not isinstance(written, ast.Subscript):
        return ast.unparse(written)
    read = {ast.unparse(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "grad"}
    shown = list(map(ast.unparse, parts))
    named = [one for one in shown if _INDEX.sub("[]", one) == _INDEX.sub("[]", path)]
    return next(iter([one for one in shown if one in read] or named), "")


def _adding_up(record: Record, cell: int | None, steps: list[_Step], call: BackwardCall) -> Finding:
    grads = tuple(dict.fromkeys(f"{spoken(one.kept.path)}.grad" for one in steps if one.kept.path))
    kept, shown = steps[0].kept, names(grads) if grads else "The gradient of a parameter"
    line = f"{short(call.place.source)} ({where(call.place)}) adds" if where(call.place) else "Each backward adds"
    edits, how = _clearing(record, cell, steps, call)
    tensors = "the same tensor" if len(grads) < 2 else "the same tensors"
    return Finding(
        "silent",
        "warning",
        f"{short(kept.place.source)} ({where(kept.place)}) is a step by hand. {shown} "
        f"{'was' if len(grads) < 2 else 'were'} {tensors} at {kept.steps} of these steps, and nothing has cleared "
        f"{'it' if len(grads) < 2 else 'them'}. {line} to what is there. So each step goes by the sum of the gradients "
        "of all passes so far.",
        "Gradients add up from step to step: nothing clears them after the step that is written by hand.",
        call.n,
        tensor=spoken(kept.path) or None,
        made_at=kept.place,
        cause=call.place if where(call.place) else kept.place,
        names=grads,
        fixes=(
            Fix(
                "clear_gradients",
                f"Clear them in each pass{f': {short(how)}' if how else ''}.",
                False,
                at(kept.place),
                "The steps get smaller: each goes by its own pass.",
                edits=edits,
            ),
        ),
    )


def _clearing(record: Record, cell: int | None, steps: list[_Step], call: BackwardCall) -> tuple[Edits, str]:
    """The edits that clear gradients, and the first line of them: behind each step.

    Where a line behind reads a gradient, to print its norm, say, then in front of the backward, if that can name them.
    """
    text = Cells.of(record).text(cell)
    new = [_clears(step) for step in steps]
    if not all(new):
        return (), ""
    if not any(_is_read_behind(text, step) for step in steps):
        behind = [text_edit.insert_after(cell, text, one.statement, lines) for one, lines in zip(steps, new)]
        return tuple(edit for edits in behind for edit in edits), " ".join(new[0])
    spot = at(call.place)
    again = [_clears_all(text, step) for step in steps]
    before = Cells.of(record).statement(spot) if spot is not None and spot[0] == cell else None
    homes = [syntax.function_at(text, one.lineno) for one in (*(step.statement for step in steps), before) if one]
    same = len({home[1].lineno if home is not None else 0 for home in homes}) == 1
    if before is None or not same or not all(again):
        return (), " ".join(new[0])
    lines = [line for each in dict.fromkeys(again) for line in each]
    return text_edit.insert_before(cell, text, before, lines), " ".join(again[0])


def _clears(step: _Step) -> tuple[str, ...]:
    """The lines that clear the gradients that a step went by; empty: it cannot be read whose."""
    if step.target:
        return (f"{step.target}.grad = None",)
    value = step.statement.value if isinstance(step.statement, ast.Expr) else None
    if isinstance(value, ast.Call) and "_foreach_" in ast.unparse(value.func) and value.args:
        tensors = ast.unparse(value.args[0])
        if is_assignable(tensors):
            return f"for each in {tensors}:", "    each.grad = None"
    return ()


def _clears_all(text: str, step: _Step) -> tuple[str, ...]:
    """The lines that clear what a step wrote to, and do not need the variable of the step's loop."""
    new, root = _clears(step), root_of(step.target)
    for one in syntax.loops_around(text, step.statement.lineno) if step.target else ():
        if isinstance(one, ast.For) and root in syntax.bound(one.target):
            plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.Call, ast.Load)) for n in ast.walk(one.iter))
            simple = isinstance(one.target, ast.Name) and plain
            return (f"for {root} in {ast.unparse(one.iter)}:", f"    {new[0]}") if simple else ()
    return new


def _is_read_behind(text: str, step: _Step) -> bool:
    """Whether a line behind a step may read a gradient of what it wrote to, before the loops around begin again."""
    around = syntax.statements_at(text, step.statement.lineno)
    for one in reversed(around):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            return False
        for after in syntax.behind(text, one):
            nodes = (n for n in ast.walk(after) if isinstance(n, ast.Attribute) and n.attr == "grad")
            if any(_may_be(text, step.target, ast.unparse(n.value)) for n in nodes):
                return True
    return False


def _may_be(text: str, target: str, other: str) -> bool:
    """Whether two names may be of one tensor: the variable of a loop may be any."""
    passing = syntax.loop_names(text)
    apart = is_assignable(target) and is_assignable(other) and not {root_of(target), root_of(other)} & passing
    return target == other or not apart


# ------------------------------------------------------------------ a leaf that no step reaches


def _left_out(record: Record) -> Iterator[Finding]:
    """A leaf that the program made to require grad, among others that it writes steps for, and whose `.grad` is idle.

    Not a parameter of a module: that may be left as it is on purpose. Nor one in a container, whose elements may be
    read by other names.
    """
    for leaf in record.unheld:
        name, spot = spoken(leaf.path), at(leaf.place)
        statement = Cells.of(record).statement(spot) if spot is not None else None
        if not leaf.by_hand or leaf.parameter or spot is None or statement is None or not is_assignable(name):
            continue
        text, target = Cells.of(record).text(spot[0]), _target(statement)
        apart = target and not _may_be(text, target, name) and _reads_grad(statement)
        made = _made(record, name)
        if not apart or made is None or _has_another_use(record, name):
            continue
        new = re.sub(rf"(?<![\w.]){re.escape(target)}(?!\w)", name, ast.unparse(statement))
        yield Finding(
            "silent",
            "warning",
            f"Backward gives `{name}` a gradient, and no line uses it: {short(leaf.place.source)} "
            f"({where(leaf.place)}) is a step for `{target}`, and there is none for `{name}`. "
            f"{short(made.source)} ({where(made)}) made it to require grad.",
            f"`{name}` is never trained: no step writes to it.",
            tensor=name,
            made_at=leaf.place,
            cause=leaf.place,
            names=(name,),
            fixes=(
                Fix(
                    "new_optimizer",
                    f"If `{name}` should train, make a step for it, too: {short(new)}.",
                    False,
                    spot,
                    edits=text_edit.insert_after(spot[0], text, statement, [new]),
                ),
            ),
        )


def _made(record: Record, name: str) -> Place | None:
    """The one line that makes a tensor of that name, and lets it require grad."""
    found = [
        place_of(run, one.lineno)
        for run in Cells.of(record).latest
        for one, target in syntax.assigned_as(run.source, syntax.last_name(name))
        if target == name or target.startswith("self.")
    ]
    return found[0] if len(found) == 1 and "requires_grad" in found[0].source else None


def _has_another_use(record: Record, name: str) -> bool:
    """Whether a text reads the `.grad` of a name, or puts it into a container or a call of `grad`."""
    last = syntax.last_name(name)
    for run in Cells.of(record).latest:
        for node in syntax.nodes_of(run.source):
            if isinstance(node, ast.Attribute) and node.attr in ("grad", "backward"):
                if syntax.last_name(ast.unparse(node.value)) == last:
                    return True
            elif isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set)):
                parts = node.values if isinstance(node, ast.Dict) else node.elts
                if any(syntax.last_name(ast.unparse(one)) == last for one in parts):
                    return True
            elif isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) in ("grad", "backward"):
                if last in syntax.words_in(node):
                    return True
    return False
