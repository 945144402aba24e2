"""Run backward once, on the sum of the losses."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import UNNAMED, at, root_name
from graphwidget.model import BackwardCall, Fix, TextEdit

_Sum = tuple[str, Edits, tuple[int, int] | None]  # the one call as text, the edits, and where they begin


def propose(case: Case) -> Fix | None:
    """One call in place of two."""
    reuse = case.reuse
    if not reuse.earlier.api == reuse.later.api == "backward":
        return None
    whole, edits, line = _summed(case.setting)
    if UNNAMED in whole:
        return None
    by_hand = not edits and (reuse.earlier.place.button or reuse.later.place.button)
    return Fix(
        id="single_backward_sum",
        text=f"Run backward once: `{whole}`{', after the cells that make both' if by_hand else ''}.",
        verified=case.works_if_fresh and (bool(edits) or not reuse.built_after),
        at=line,
        price="One pass, and one step for all."
        if reuse.steps_between
        else "Same gradients, one pass, nothing retained.",
        edits=edits,
        by_hand=by_hand,
    )


def in_loop(case: Case) -> Fix | None:
    """The same for a loop that only runs backward on losses made before it, as its text shows."""
    fix = propose(case) if case.setting.in_loop else None
    return fix if fix is not None and fix.edits else None


def _summed(setting: Setting) -> _Sum:
    earlier, later = setting.reuse.earlier, setting.reuse.later
    if setting.one_comprehension:
        return _summed_in_comprehension(setting)
    if setting.in_loop:
        return _summed_in_loop(setting)
    one, two = _plain_call(setting, earlier), _plain_call(setting, later)
    if one is not None and two is not None:
        whole = f"({syntax.backward_root(ast.unparse(one))} + {syntax.backward_root(ast.unparse(two))}).backward()"
        return whole, _joined(setting, one, two, whole), at(earlier.place)
    first, second = _handing_call(setting, earlier), _handing_call(setting, later)
    if first is not None and second is not None and ast.unparse(first[1].func) == ast.unparse(second[1].func):
        a, b = ast.unparse(first[1].args[0]), ast.unparse(second[1].args[0])
        whole = f"{ast.unparse(second[1].func)}({a} + {b})"
        return whole, _joined(setting, first[0], second[0], whole), at(earlier.place)
    return f"({root_name(earlier)} + {root_name(later)}).backward()", (), at(earlier.place)


def _joined(setting: Setting, one: ast.stmt, two: ast.stmt, new: str) -> Edits:
    """`new` in place of the second of two statements, and the first taken out; both may stand on one line."""
    first, second = setting.reuse.earlier.place.cell, setting.reuse.later.place.cell
    text, other = setting.text_of_cell(first), setting.text_of_cell(second)
    if text != other or one.lineno != two.lineno:
        return (*text_edit.remove(first, text, one), *text_edit.replace_node(second, other, two, new))
    here = syntax.beginning_at(text, one.lineno)
    texts = (new if s is one else ast.unparse(s) for s in here if s is not two)
    (start, _), (_, end) = text_edit.span(text, here[0]), text_edit.span(text, here[-1])
    return (TextEdit(start, end, "; ".join(texts), first),)


def _plain_call(setting: Setting, call: BackwardCall) -> ast.stmt | None:
    """The statement that is a call of backward and nothing else."""
    cell, line = setting.text_of_cell(call.place.cell), call.place.line
    found = syntax.statements_at(cell, line)[-1:] if line is not None else []
    here = syntax.beginning_at(cell, found[0].lineno) if found else []
    roots = {syntax.backward_root(ast.unparse(s)): s for s in reversed(here)}
    roots.pop(None, None)
    return roots.get(root_name(call), next(iter(roots.values()), None) if len(here) == 1 else None)


def _handing_call(setting: Setting, call: BackwardCall) -> tuple[ast.stmt, ast.Call] | None:
    """The statement that only hands a loss to a library, which runs it: ``accelerator.backward(loss)``."""
    text, line = setting.text_of_cell(call.place.cell), call.place.line
    for statement in syntax.beginning_at(text, line) if line is not None else ():
        if isinstance(statement, ast.Expr) and isinstance(handing := statement.value, ast.Call):
            if len(handing.args) == 1 and not handing.keywords and ast.unparse(handing.args[0]) == root_name(call):
                return statement, handing
    return None


def _summed_in_comprehension(setting: Setting) -> _Sum:
    """``[l.backward() for l in losses]`` as ``sum(losses).backward()``."""
    first, place = root_name(setting.reuse.earlier), setting.reuse.later.place
    if "[" not in first or place.line is None:
        return "total.backward()", (), at(place)
    whole, text = f"sum({first.split('[', 1)[0]}).backward()", setting.text_of_cell(place.cell)
    statement = syntax.statements_at(text, place.line)[-1]
    return whole, text_edit.replace_node(place.cell, text, statement, whole), at(place)


def _summed_in_loop(setting: Setting) -> _Sum:
    """``for l in losses: l.backward()`` as ``sum(losses).backward()``."""
    place = setting.reuse.later.place
    text = setting.text_of_cell(place.cell)
    loop = syntax.loop_at(text, place.line) if place.line is not None else None
    summed = syntax.summed(loop, place.line or 0) if isinstance(loop, ast.For) else None
    if loop is None or place.cell is None:
        return "total.backward()", (), at(place)
    if summed is None:
        return _added_up(setting, text, loop)
    whole, new = summed
    return (
        f"{whole}.backward()",
        text_edit.replace_node(place.cell, text, loop, "\n".join(new)),
        (place.cell, loop.lineno),
    )


def _added_up(setting: Setting, text: str, loop: ast.For | ast.While) -> _Sum:
    """``total = total + loss`` in place of ``loss.backward()``, and one call behind the loop.

    Only where a step follows the loop, for all its losses; not where something in the loop uses the gradients, or
    clears them, or has other calls.
    """
    place = setting.reuse.later.place
    call = syntax.statements_at(text, place.line or 0)[-1]
    root = syntax.backward_root(ast.unparse(call))
    inside = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
    verbs = [syntax.last_name(ast.unparse(one.func)) for one in inside]
    reads = any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(loop))
    behind = (name for one in syntax.behind(text, loop) for name in syntax.calls_in(one))
    if not any(syntax.last_name(name) == "step" for name in behind):
        return "total.backward()", (), at(place)
    if root is None or verbs.count("backward") != 1 or reads or loop.orelse or {"step", "zero_grad"} & set(verbs):
        return "total.backward()", (), at(place)
    known = syntax.names_in(syntax.parse(text) or loop)
    total = next(name for name in ("total", "total_loss", "sum_of_losses", f"all_{len(known)}") if name not in known)
    lines = text_edit.with_ends(text)
    indent = " " * loop.col_offset
    last = loop.end_lineno or loop.lineno
    end = (last, len(lines[last - 1].rstrip("\r\n")))
    edits = (
        *text_edit.insert_before(place.cell, text, loop, [f"{total} = 0.0"]),
        *text_edit.replace_node(place.cell, text, call, f"{total} = {total} + {root}"),
        TextEdit(end, end, f"\n{indent}{total}.backward()", place.cell),
    )
    return f"{total}.backward()` behind the loop, with `{total} = {total} + {root}", edits, at(place)
