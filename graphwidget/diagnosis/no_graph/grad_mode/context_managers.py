"""Context managers that switch grad mode off when they begin, and do not switch it on again when they end."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Fix

__all__ = ["NotPutBack", "not_put_back"]

_SWITCH = re.compile(r"^(.*\b)?set_grad_enabled$")
_KEPT = "grad_was_enabled"


@dataclass(frozen=True)
class NotPutBack:
    """What happened, as the end of a sentence about the line that switches grad mode off; how it is put back."""

    text: str
    advice: str
    edits: text_edit.Edits
    place: tuple[int, int] | None

    def fix(self) -> Fix:
        return Fix("remove_no_grad", self.advice, False, self.place, edits=self.edits)


def not_put_back(run: CellRun, off: ast.stmt) -> NotPutBack | None:
    """How the context manager of a line that switches grad mode off can put it back; None: the line is in none.

    ``__enter__`` notes what the mode was, and ``__exit__`` restores it; a generator yields under `no_grad` instead.
    """
    found = source.function_at(run.source, off.lineno)
    if found is None or not isinstance(off, ast.Expr) or grad_modes.switches_off(off.value) is not True:
        return None
    around, function = found
    if around is not None and function.name == "__enter__":
        return _noted(run, around, function, off)
    if any(ast.unparse(one).rpartition(".")[2] == "contextmanager" for one in function.decorator_list):
        return _yielding_without(run, function, off)
    return None


def _text(name: str) -> str:
    return f" when `with {name}(...)` began, and nothing switched it on again when that ended"


def _noted(run: CellRun, around: ast.ClassDef, enter: ast.FunctionDef, off: ast.Expr) -> NotPutBack | None:
    leave = next((one for one in around.body if isinstance(one, ast.FunctionDef) and one.name == "__exit__"), None)
    called = _SWITCH.match(ast.unparse(off.value.func)) if isinstance(off.value, ast.Call) else None
    if leave is None or called is None or not enter.args.args or not leave.args.args:
        return None
    module = called[1] or ""
    note = f"{enter.args.args[0].arg}.{_KEPT} = {module or 'torch.'}is_grad_enabled()"
    back = f"{module}set_grad_enabled({leave.args.args[0].arg}.{_KEPT})"
    documented = ast.get_docstring(leave) is not None and len(leave.body) > 1
    edits = (
        *text_edit.insert_before(run.cell, run.source, off, [note]),
        *text_edit.insert_before(run.cell, run.source, leave.body[1 if documented else 0], [back]),
    )
    place, behind = place_of(run, off.lineno), place_of(run, leave.lineno)
    advice = f"Note the mode before {short(ast.unparse(off))} ({where(place)}), and put it back in "
    advice += f"`{around.name}.__exit__` ({where(behind)}): `{back}`."
    return NotPutBack(_text(around.name), advice, edits, at(place))


def _yielding_without(run: CellRun, function: ast.FunctionDef, off: ast.Expr) -> NotPutBack | None:
    own = source.own_statements(function.body)
    yields = [one for one in own if isinstance(one, (ast.Expr, ast.Assign)) and isinstance(one.value, ast.Yield)]
    if len(yields) != 1:
        return None
    edits = (
        *text_edit.remove(run.cell, run.source, off),
        *in_block(run.cell, run.source, "with torch.no_grad():", yields[0], yields[0]),
    )
    place = place_of(run, off.lineno)
    advice = f"Put the `yield` of `{function.name}` under `with torch.no_grad():` in place of "
    advice += f"{short(ast.unparse(off))} ({where(place)}): grad mode is put back when the block ends."
    return NotPutBack(_text(function.name), advice, edits, at(place))
