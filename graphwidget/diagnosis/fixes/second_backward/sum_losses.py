"""Run backward once, on the sum of the losses."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.dataflow.running import in_running_order
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import UNNAMED, at, root_name
from graphwidget.model import BackwardCall, Fix, TextEdit

_Sum = tuple[str, Edits, tuple[int, int] | None]  # the one call as text, the edits, and where they begin
# Its cell and text, the loop, the statement that makes a call in it; the loss, and the call as a form for another.
_Loop = tuple[int, str, ast.For | ast.While, ast.stmt, tuple[str, str]]


def propose(case: Case) -> Fix | None:
    """One call in place of two."""
    reuse = case.reuse
    if not reuse.earlier.api == reuse.later.api == "backward":
        return None
    whole, edits, line = _summed(case.setting)
    if UNNAMED in whole or _are_used_apart(case):
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


def beside(case: Case) -> Fix | None:
    """The same for two calls that follow one another in a pass, before one step for both."""
    reuse, setting = case.reuse, case.setting
    a, b = reuse.earlier.place, reuse.later.place
    if setting.repeated or reuse.runs_again or reuse.writes_between or (a.run, a.iteration) != (b.run, b.iteration):
        return None
    fix = propose(case) if one_step_for_all(case) else None
    return fix if fix is not None and fix.edits else None


def one_step_for_all(case: Case) -> bool:
    """Whether one step follows both calls, in their block or in that of their loop: it is for the sum of the losses."""
    setting, line = case.setting, case.reuse.later.place.line
    if case.stepped or line is None:
        return False
    found = _loop(setting) if setting.in_loop else None
    text = found[1] if found is not None else setting.text_of_cell(case.reuse.later.place.cell)
    last = found[2] if found is not None else next(reversed(syntax.statements_at(text, line)), None)
    if last is None or (setting.in_loop and found is None):
        return False
    return any(syntax.last_name(name) == "step" for one in syntax.behind(text, last) for name in syntax.calls_in(one))


def _are_used_apart(case: Case) -> bool:
    """Whether the program reads or clears the gradients of the earlier call before the later one adds its own.

    Also where it gives the names of the earlier loss another value. A step is one use of gradients; that each loss then
    has no step of its own is the price of the sum.
    """
    setting, earlier = case.setting, case.reuse.earlier.place
    if case.stepped:
        return False
    steps: list[ast.stmt] = []
    parts, rest = setting.parting
    named = set[str]()
    if setting.in_loop and (loop := _loop(setting)) is not None:
        steps = loop[2].body
    elif parts is not None and parts.line is not None:
        first = (*earlier.stack, earlier)[len(case.reuse.later.place.stack) - len(rest)]
        text, line = setting.text_of_cell(parts.cell), first.line or 0
        steps = [*syntax.beginning_at(text, line)[1:], *syntax.between(text, line, parts.line - 1)]
        begun = syntax.beginning_at(text, line)[:1]
        named = {name for one in begun for name in syntax.names_read(one)}
        if steps and any(isinstance(n, ast.Call) for one in begun for n in ast.walk(one) if _is_root(one, n)):
            return True  # what it makes may be read in between
    texts = [run.source for run in case.reuse.record.runs.values()]
    if any(named & syntax.changed(one) for one in steps):
        return True
    return any(_uses_gradients(step) for step in in_running_order(texts, steps))


def between(case: Case) -> tuple[list[ast.stmt], bool]:
    """The statements behind the earlier call and before the later one, in their function and in what they call.

    And whether these clear gradients.
    """
    setting, (parts, rest) = case.setting, case.setting.parting
    if parts is None or parts.line is None:
        return [], False
    first = (*case.reuse.earlier.place.stack, case.reuse.earlier.place)[len(case.reuse.later.place.stack) - len(rest)]
    text, line = setting.text_of_cell(parts.cell), first.line or 0
    steps = [*syntax.beginning_at(text, line)[1:], *syntax.between(text, line, parts.line - 1)]
    texts = [run.source for run in case.reuse.record.runs.values()]
    running = list(in_running_order(texts, steps))
    return running, any(syntax.last_name(name) == "zero_grad" for one in running for name in syntax.calls_in(one))


def _is_root(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether a node is a part of what a statement runs backward on: ``loss_of(x)`` in ``loss_of(x).backward()``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and any(node is one for one in ast.walk(func.value))


def _uses_gradients(step: ast.stmt) -> bool:
    """Whether a statement reads or sets a `.grad`, or clears or clips gradients."""
    called = {id(node.func) for node in ast.walk(step) if isinstance(node, ast.Call)}
    attributes = (node for node in ast.walk(step) if isinstance(node, ast.Attribute) and id(node) not in called)
    verbs = {syntax.last_name(name) for name in syntax.calls_in(step)}
    clips = any(verb.startswith("clip_grad_") for verb in verbs)
    return clips or "zero_grad" in verbs or any(one.attr == "grad" for one in attributes)


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
        handing = _handed(statement)
        if handing is not None and ast.unparse(handing.args[0]) == root_name(call):
            return statement, handing
    return None


def _handed(statement: ast.stmt) -> ast.Call | None:
    """The call that a statement is, if it has one argument."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords else None


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
    found, place = _loop(setting), setting.reuse.later.place
    if found is None:
        return "total.backward()", (), at(place)
    cell, text, loop, call, _ = found
    summed = syntax.summed(loop, call.lineno) if isinstance(loop, ast.For) else None
    if summed is None:
        return _added_up(found, at(place))
    whole, new = summed
    edits = text_edit.replace_node(cell, text, loop, "\n".join(new))
    return f"{whole}.backward()", edits, (cell, loop.lineno)


def _loop(setting: Setting) -> _Loop | None:
    """The innermost loop around the statement that makes both calls, or hands both losses to what makes them."""
    later = setting.reuse.later
    for frame in reversed((*later.place.stack, later.place)):
        text = setting.text_of_cell(frame.cell)
        loop = syntax.loop_at(text, frame.line) if frame.line is not None else None
        if loop is None or frame.cell is None:
            continue
        for call in syntax.beginning_at(text, frame.line or 0):
            root = syntax.backward_root(ast.unparse(call))
            if root is not None:
                return frame.cell, text, loop, call, (root, "{}.backward()")
            given = _handed(call)
            if given is not None and syntax.last_name(ast.unparse(given.func)) == "backward":
                return frame.cell, text, loop, call, (ast.unparse(given.args[0]), f"{ast.unparse(given.func)}({{}})")
    return None


def _added_up(found: _Loop, spot: tuple[int, int] | None) -> _Sum:
    """``total = total + loss`` in place of ``loss.backward()``, and one call behind the loop.

    Only where a step follows the loop, for all its losses; not where something in the loop has other calls or steps.
    """
    cell, text, loop, call, (root, form) = found
    inside = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
    verbs = [syntax.last_name(ast.unparse(one.func)) for one in inside]
    reads = any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in ast.walk(loop))
    behind = (name for one in syntax.behind(text, loop) for name in syntax.calls_in(one))
    if not any(syntax.last_name(name) == "step" for name in behind):
        return "total.backward()", (), spot
    if verbs.count("backward") != 1 or reads or loop.orelse or {"step", "zero_grad"} & set(verbs):
        return "total.backward()", (), spot
    known = syntax.names_in(syntax.parse(text) or loop)
    total = next(name for name in ("total", "total_loss", "sum_of_losses", f"all_{len(known)}") if name not in known)
    whole = form.format(total)
    lines = text_edit.with_ends(text)
    last = loop.end_lineno or loop.lineno
    end = (last, len(lines[last - 1].rstrip("\r\n")))
    edits = (
        *text_edit.insert_before(cell, text, loop, [f"{total} = 0.0"]),
        *text_edit.replace_node(cell, text, call, f"{total} = {total} + {root}"),
        TextEdit(end, end, f"\n{' ' * loop.col_offset}{whole}", cell),
    )
    return f"{whole}` behind the loop, with `{total} = {total} + {root}", edits, spot
