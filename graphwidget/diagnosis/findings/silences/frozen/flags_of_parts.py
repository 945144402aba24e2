"""Lines that set `requires_grad` of what nothing keeps: ``weight[100:].requires_grad = True``.

A slice, `.data`, `.detach()` and `.clone()` are new each time, and gone behind the line with their flag.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["find"]

_FLAG = "requires_grad"
_COPIES = ("detach", "clone")  # methods that return a new tensor
_PARAMETERS = ("weight", "bias")  # what modules call theirs


class _Setting(NamedTuple):
    """A statement that sets the flag of what nothing keeps. `whole`: the tensor that it was taken from."""

    run: CellRun
    statement: ast.stmt
    part: ast.expr
    whole: ast.expr
    on: bool
    by_method: bool

    @property
    def is_slice(self) -> bool:
        return isinstance(self.part, ast.Subscript)


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each such line that runs: in a cell, or in a function that the program calls."""
    runs = Cells.of(record).latest
    for setting in (one for run in runs for one in _settings(run)):
        inside = syntax.function_at(setting.run.source, setting.statement.lineno)
        called = inside is None or any(inside[1].name in syntax.calls_by_name(run.source) for run in runs)
        tensor = not setting.is_slice or _is_tensor(setting)
        # Modules in a slice of a list are the same modules. A slice of what requires grad refuses to lose the flag.
        idle = setting.is_slice and (not setting.on if tensor else setting.by_method)
        if called and not idle and setting.run.error is None:
            yield _of(setting, tensor)


def _of(setting: _Setting, tensor: bool) -> Finding:
    place = place_of(setting.run, setting.statement.lineno)
    part, whole = short(ast.unparse(setting.part)), short(ast.unparse(setting.whole))
    after = f"whether {whole} is trained" if setting.on or tensor else "what is in it"
    return Finding(
        "silent",
        "warning",
        f"{short(ast.unparse(setting.statement))} ({where(place)}) sets the flag of {part}, which is made for that "
        f"line and gone behind it. It does not change {after}.",
        f"{part} is made anew each time: its `{_FLAG}` has no effect.",
        tensor=ast.unparse(setting.whole),
        made_at=place,
        cause=place,
        names=(ast.unparse(setting.part), ast.unparse(setting.whole)),
        fixes=(_fix(setting, tensor),),
    )


def _fix(setting: _Setting, tensor: bool) -> Fix:
    run, statement = setting.run, setting.statement
    place, whole = place_of(run, statement.lineno), ast.unparse(setting.whole)
    if not setting.is_slice:
        new = [f"{whole}.{_FLAG} = {setting.on}"]
        return _as(setting, new, f"Set the flag of `{whole}` itself: {short(new[0])} ({where(place)}).")
    if not tensor:
        part = ast.unparse(setting.part)
        new = [f"{part}.{_FLAG}_({setting.on})"]
        words = f"If these are modules, write {short(new[0])} ({where(place)}): it sets the flags of their parameters."
        return Fix("unfreeze" if setting.on else "freeze", words, False, at(place))
    part = ast.unparse(setting.part).removeprefix(whole)
    new = [
        f"{whole}.{_FLAG} = True",
        f"part = torch.zeros_like({whole})",
        f"part{part} = 1.0",
        f"{whole}.register_hook(lambda grad, part=part: grad * part)",
    ]
    words = f"Only a whole tensor can be trained: set the flag of `{whole}`, and let a hook clear the gradient of the "
    return _as(setting, new, f"{words}rest ({where(place)}).", "Weight decay changes the rest, too.")


def _as(setting: _Setting, new: Sequence[str], words: str, price: str = "") -> Fix:
    run, statement = setting.run, setting.statement
    alone = len(syntax.beginning_at(run.source, statement.lineno)) == 1
    last = statement.end_lineno or statement.lineno
    edits: Edits = text_edit.replace_lines(run.cell, run.source, statement.lineno, last, new) if alone else ()
    fix = "unfreeze" if setting.on else "freeze"
    return Fix(fix, words, False, at(place_of(run, statement.lineno)), price, edits=edits)


def _settings(run: CellRun) -> Iterator[_Setting]:
    for node in syntax.nodes_of(run.source):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target, value = node.targets[0], node.value
            if target.attr == _FLAG and isinstance(value, ast.Constant) and (whole := _taken_from(target.value)):
                yield _Setting(run, node, target.value, whole, bool(value.value), False)
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.Expr) and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            on = not call.args or ast.unparse(call.args[0]) == "True"
            if call.func.attr == f"{_FLAG}_" and (whole := _taken_from(call.func.value)):
                yield _Setting(run, node, call.func.value, whole, on, True)


def _taken_from(part: ast.expr) -> ast.expr | None:
    """The tensor or list of which an expression makes something new; None: it makes nothing new, or of what is new."""
    whole: ast.expr | None = None
    if isinstance(part, ast.Subscript):
        index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        whole = part.value if any(isinstance(one, ast.Slice) for one in index) else None
    elif isinstance(part, ast.Attribute) and part.attr == "data":
        whole = part.value
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _COPIES:
        whole = part.func.value
    return whole if isinstance(whole, (ast.Name, ast.Attribute)) else None


def _is_tensor(setting: _Setting) -> bool:
    """Whether what a slice was taken from surely is a tensor: a list has slices, too."""
    if not isinstance(setting.part, ast.Subscript) or isinstance(setting.part.slice, ast.Tuple):
        return True  # ``weight[:, 0]``
    name = ast.unparse(setting.whole)
    if name.rpartition(".")[2] in _PARAMETERS:
        return True
    loops = syntax.loops_around(setting.run.source, setting.statement.lineno)
    over = [one.iter for one in loops if isinstance(one, ast.For) and name in syntax.names_in(one.target)]
    return any("parameters(" in ast.unparse(one) for one in over)
