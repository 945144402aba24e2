"""Places where a program computes something only once, and should compute it each time.

A method of a class, such as `__init__`, the function around a closure, a generator before its loop, and what
`once_only` finds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.fixes.rerun.before_uses import before_uses, with_dependents
from graphwidget.diagnosis.fixes.rerun.once_only import each_time
from graphwidget.diagnosis.fixes.rerun.rerun import (
    AT_START,
    IN_ITS_LOOP,
    Rerun,
    Statement,
    begins_on_head_line,
    first_step,
    quoted,
)
from graphwidget.diagnosis.fixes.rerun.statements import places_to_rerun, trains
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place.statements import written as written_in
from graphwidget.diagnosis.wording import at, lines_of, short
from graphwidget.model import CellRun, Place

__all__ = ["in_special_place"]

Maker = tuple[Place, str, list[ast.stmt]]  # a line, the text of its cell, the statements around it


def in_special_place(setting: Setting) -> Rerun | None:
    """The rerun for a carrier that was made in one of these places."""
    for maker in _makers(setting):
        plan = each_time(*maker)
        if plan is not None:
            return plan
        for special in (_in_method, _in_closure, _in_generator):
            plan = special(setting, maker)
            if plan is not None:
                return plan
    closures = (_in_closure(setting, maker) for maker in _makers(setting, all_callers=True))
    return next(filter(None, closures), None) or _in_cycle(setting)


def _in_cycle(setting: Setting) -> Rerun | None:
    """``itertools.cycle(encoded(batches))`` keeps the items of its first round: let each round make them."""
    made = setting.reuse.carrier_place
    frames = [*made.stack, made] if made is not None else []
    functions = {(one.function or "").rpartition(".")[2] for one in frames}
    spots = set(map(at, frames))
    for run in setting.reuse.record.runs.values():
        calls = [node for node in source.nodes_of(run.source) if isinstance(node, ast.Call) and len(node.args) == 1]
        for call in (one for one in calls if source.last_name(ast.unparse(one.func)) == "cycle"):
            items, module = call.args[0], ast.unparse(call.func).rpartition(".")[0]
            lazy = isinstance(items, ast.GeneratorExp) and (run.cell, items.lineno) in spots
            called = source.last_name(ast.unparse(items.func)) if isinstance(items, ast.Call) else ""
            if run.cell is None or not (lazy or called in functions) or "iter(" in ast.unparse(items):
                continue
            what, each = short(ast.unparse(call)), ast.unparse(items)
            new = f"(one for _ in iter(int, 1) for one in {each})"  # without end, and needs no import
            if module:
                new = f"{module}.chain.from_iterable({each} for _ in {module}.count())"
            sentence = f"{what} (In[{run.cell}], line {call.lineno}) keeps what its first round made. "
            sentence += "Let each round make it again."
            edits = text_edit.replace_node(run.cell, run.source, call, new)
            # Where the items come from an iterator, later rounds are empty, and the loop would wait without end.
            return Rerun(sentence, (run.cell, call.lineno), edits, sure=False)
    return None


def _in_method(setting: Setting, maker: Maker) -> Rerun | None:
    """`self.table = ...` in a method that no pass calls: compute it in `forward`, or just before the use.

    This is `__init__`, or a method that prepares something before the loop.
    """
    made, text, _ = maker
    function = source.function_at(text, made.line or 0)
    if function is None or function[0] is None or _ran_since(setting, made.cell, function[1]):
        return None
    methods = {s.name: s for s in function[0].body if isinstance(s, ast.FunctionDef)}
    forward = methods.get("forward") or methods.get("__call__")
    body = _made_in(setting, function[1], made.cell)
    if not body or made.cell is None or any(trains(setting, one) for one in body):
        return None  # a Fisher information: backward calls make it
    whole = _made_in(setting, function[1], made.cell, everything=True)  # after a step the rest is out of date, too
    body = with_dependents(setting, function[1], whole)
    if forward is None or function[1].name != "__init__" or not _uses_it(setting, made.cell, forward):
        return before_uses(setting, made.cell, text, function[1], body)
    if begins_on_head_line(forward):
        return None
    return _put_before(made.cell, text, body, first_step(forward), AT_START, forward.name)


def _uses_it(setting: Setting, cell: int, function: ast.FunctionDef) -> bool:
    """Whether a function, or what it calls, uses the old part in the pass of the later call."""
    spots = {spot for place in setting.reuse.uses_by(setting.reuse.later) for spot in lines_of(place)}
    return any(at == cell and function.lineno <= line <= (function.end_lineno or 0) for at, line in spots)


def _ran_since(setting: Setting, cell: int | None, function: ast.FunctionDef) -> bool:
    """Whether a function made anything that the later call reaches after the earlier call had begun."""
    reuse = setting.reuse
    since = (i for i in reuse.new if reuse.graph.seq[i] >= reuse.earlier.newest_seq)
    spots = (spot for i in since if (place := reuse.graph.place_of(i)) is not None for spot in lines_of(place))
    return any(at == cell and function.lineno <= line <= (function.end_lineno or 0) for at, line in spots)


def _in_closure(setting: Setting, maker: Maker) -> Rerun | None:
    """A function reads a variable that the function around it made: compute it in the inner one.

    Or the block that defines it, such as that of the loop whose passes define the closure of an optimizer.
    """
    made, text, around = maker
    used = next(iter(setting.reuse.uses_by(setting.reuse.later)), None)
    outer = [s for s in around if isinstance(s, ast.FunctionDef)][-1:]
    if not outer:
        return _in_function_of_block(setting, maker, used)
    for cell, line in reversed(lines_of(used)):
        inner = [s for s in source.statements_at(text, line) if isinstance(s, ast.FunctionDef)]
        if cell != made.cell or not outer or outer[0] not in inner[:-1] or begins_on_head_line(inner[-1]):
            continue
        lines = _lines_to_rerun(setting, cell)
        own = [s for s in source.own_statements(outer[0].body) if not hasattr(s, "body")]
        simple = [s for s in own if s.lineno < inner[-1].lineno]
        body = [s for s in simple if any(s.lineno <= one <= (s.end_lineno or 0) for one in lines)]
        if not body or not _gives_the_same_later(body, own):
            return None
        return _put_before(cell, text, body, first_step(inner[-1]), AT_START, inner[-1].name)
    return None


def _in_function_of_block(setting: Setting, maker: Maker, used: Place | None) -> Rerun | None:
    """The same for a block of a script: both calls run in a function that is defined behind the line, beside it."""
    made, text, around = maker
    later = setting.reuse.later.place
    same = (later.cell, later.line) == (setting.reuse.earlier.place.cell, setting.reuse.earlier.place.line)
    function = source.function_at(text, later.line or 0) if same and later.cell == made.cell else None
    if function is None or not around or made.cell is None or begins_on_head_line(function[1]):
        return None
    block = source.block_of(text, around[-1])
    spots = {line for cell, line in lines_of(used) if cell == made.cell}
    inside = range(function[1].lineno, (function[1].end_lineno or 0) + 1)
    if function[1] not in block or around[-1] not in block or spots.isdisjoint(inside):
        return None
    lines = _lines_to_rerun(setting, made.cell)
    before = (s for s in block if s.lineno < function[1].lineno and not hasattr(s, "body"))
    body = [s for s in before if any(s.lineno <= one <= (s.end_lineno or 0) for one in lines)]
    return _put_before(made.cell, text, body, first_step(function[1]), AT_START, function[1].name) if body else None


def _gives_the_same_later(body: list[ast.stmt], around: list[ast.stmt]) -> bool:
    """Whether statements compute with what they computed with before, where they run behind the others around them.

    Not where a later line gives what they read another value, and not where one is there for an effect.
    """
    read = {name for one in body for name in source.names_read(one)}
    later = [one for one in around if one.lineno > body[-1].lineno]
    changed = {name for one in later for name in source.changed(one) | written_in(one)}
    return not any(isinstance(one, ast.Expr) for one in body) and not read & changed


def _in_generator(setting: Setting, maker: Maker) -> Rerun | None:
    """A generator computes once what all its items use: compute it in its loop."""
    function = source.function_at(maker[1], maker[0].line or 0)
    if function is None or maker[0].cell is None:
        return None
    loops = [s for s in function[1].body if isinstance(s, (ast.For, ast.While)) and _yields(s)]
    made = _made_in(setting, function[1], maker[0].cell)
    body = [s for s in made if loops and s.lineno < loops[0].lineno]
    if not body or begins_on_head_line(loops[0]):
        return None
    head = loops[0].iter if isinstance(loops[0], ast.For) else loops[0].test
    if any(name in source.names_in(head) for s in body for name in source.targets(s)):
        return None  # the head reads it once, before all passes
    return _put_before(maker[0].cell, maker[1], body, loops[0].body[0], IN_ITS_LOOP, function[1].name)


def _makers(setting: Setting, *, all_callers: bool = False) -> Iterator[Maker]:
    """Where the carrier was made, and the calling lines, innermost first, up to code that also runs backward.

    Each with the text of its cell, and the statements around it.

    Parameters
    ----------
    all_callers
        Also the lines of that code.
    """
    made = setting.reuse.carrier_place
    running = {setting.function_of(spot) for spot in lines_of(setting.reuse.later.place)}
    for place in (made, *reversed(made.stack)) if made is not None else ():
        spot = at(place)
        if spot is None or (place is not made and not all_callers and setting.function_of(spot) in running):
            return
        text = setting.text_of_cell(spot[0])
        around = source.statements_at(text, spot[1])
        if around:
            yield place, text, around


def _made_in(
    setting: Setting, function: ast.FunctionDef, cell: int | None, *, everything: bool = False
) -> list[ast.stmt]:
    """The statements of a function's body that made what has to be fresh, or all that the later call reaches."""
    lines = _lines_to_rerun(setting, cell, everything)
    return [s for s in function.body if any(s.lineno <= line <= (s.end_lineno or 0) for line in lines)]


def _lines_to_rerun(setting: Setting, cell: int | None, everything: bool = False) -> list[int]:
    """The lines of a cell that made, or called what made, what has to be fresh."""
    spots = {spot for place in places_to_rerun(setting, everything) for spot in lines_of(place)}
    return [line for at, line in spots if at == cell]


def _put_before(cell: int, text: str, body: list[ast.stmt], first: ast.stmt, sentence: str, function: str) -> Rerun:
    """Write statements again before another statement of their cell."""
    new = [line for statement in body for line in text_edit.statement_lines(text, statement)]
    what = quoted([Statement(CellRun(0, cell, text), statement) for statement in body])
    return Rerun(
        sentence.format(what=what, function=function),
        (cell, first.lineno),
        text_edit.insert_before(cell, text, first, new),
    )


def _yields(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(statement))
