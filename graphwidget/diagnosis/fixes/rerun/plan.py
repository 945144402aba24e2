"""Which lines build the part that a call met freed, and where to run them again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.rerun import made_once
from graphwidget.diagnosis.reuse.inside_function import in_its_function
from graphwidget.diagnosis.reuse.reuse import Meeting
from graphwidget.diagnosis.source import edits
from graphwidget.diagnosis.source import paths as detaching
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import short
from graphwidget.model import CellRun, Place

_AT_START = "Compute {what} at the start of `{function}`: each call of it then builds its own graph."
_IN_ITS_LOOP = "Move {what} into the loop of `{function}`: then each item has its own graph."


_Key = tuple[int, int, int]  # of a statement: run, line, column


@dataclass(frozen=True)
class Rerun:
    """A sentence, the place of the edit, and the edit."""

    sentence: str
    at: tuple[int, int] | None
    edit: edits.Edit


@dataclass(frozen=True)
class _Spot:
    """Where lines are put in: the cell, its text, the line in front of which; `loop` is around it."""

    cell: int
    text: str
    line: int
    loop: ast.For | ast.While | None
    outer: bool  # in the cell that ran, not in a function that it called
    function: str = ""  # of which this is the start


def rerun(meeting: Meeting, everything: bool = False) -> Rerun | None:
    """How to build the old part anew. None: it is built anew already, or nobody knows where.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed saved tensors.
    """
    plan = _among_the_lines_that_ran(meeting, everything)
    inner = in_its_function(meeting, everything) if plan is None else None
    return plan if inner is None else _among_the_lines_that_ran(inner, everything)


def _among_the_lines_that_ran(meeting: Meeting, everything: bool) -> Rerun | None:
    """The same among the lines of the cell that ran, not of the functions that it called; or in special places."""
    for special in (_in_init, _in_closure, _in_generator, _behind_a_test, _behind_a_decorator):
        plan = special(meeting)
        if plan is not None:
            return plan
    spot = _spot(meeting)
    if spot is None or _runs_both(meeting, spot):
        return None
    made = _statements(meeting, spot, everything)
    if not made:
        return _kept_inside(meeting, spot)
    if not made_once.reach(meeting, made, spot.text, spot.line, spot.loop):
        return None
    quoted = _quoted(made)
    lines = [line for run, statement in made for line in made_once.text_of(run.source, statement)]
    first = source.line_text(spot.text, spot.line)
    edit = (*(f"+ {line}" for line in lines), f"  {first}") if first else ()
    if spot.loop is not None:
        sentence = f"Move {quoted} into the loop, so that each iteration builds its own graph."
    elif spot.function:
        sentence = _AT_START.format(what=quoted, function=spot.function)
    else:
        sentence = f"Run {quoted} again before In[{spot.cell}], line {spot.line}: it builds a fresh graph."
    return Rerun(sentence, (spot.cell, spot.line), edit)


def _runs_both(meeting: Meeting, spot: _Spot) -> bool:
    """Whether what stands at a spot outside of loops and functions makes both calls: ``[l.backward() for l in ls]``."""
    a, b = meeting.earlier.place, meeting.later.place
    return spot.loop is None and not spot.function and (a.run, a.outer_line) == (b.run, b.outer_line)


def _kept_inside(meeting: Meeting, spot: _Spot) -> Rerun | None:
    """A line of the loop uses what it made in an earlier pass: something that it calls keeps it, and no variable does.

    Such a cache is switched on for a stretch of code. If the loop stands in a `with`, that is where to end it.
    """
    made = meeting.carrier_place
    if spot.loop is None or made is None or meeting.names or meeting.carrier_is_assigned:
        return None
    if not spot.outer or made.run != meeting.later.place.run:
        return None
    around = [s for s in source.statements_at(spot.text, spot.loop.lineno) if isinstance(s, (ast.With, ast.AsyncWith))]
    if not around:
        return None
    what = ", ".join(ast.unparse(item) for item in around[-1].items)
    here = f"(In[{spot.cell}], line {around[-1].lineno})"
    sentence = f"Put `with {what}:` {here} inside the loop: it keeps what was computed once."
    return Rerun(sentence, (spot.cell, around[-1].lineno), _swapped(spot.text, around[-1], spot.loop))


def _swapped(cell: str, around: ast.stmt, loop: ast.stmt) -> edits.Edit:
    """The headers of a `with` and of the loop that is all it holds, in the other order."""
    lines = cell.splitlines()
    outer, inner = lines[around.lineno - 1], lines[loop.lineno - 1]
    if getattr(around, "body", None) != [loop] or not (outer.rstrip().endswith(":") and inner.rstrip().endswith(":")):
        return ()
    deeper = " " * (loop.col_offset - around.col_offset)
    return (
        f"- {outer.strip()}",
        f"+ {inner.strip()}",
        f"- {inner.strip()}",
        f"+ {deeper}{outer.strip()}",
    )


def _quoted(made: list[tuple[CellRun, ast.stmt]]) -> str:
    shown = [short(ast.unparse(statement)) for _, statement in made]
    places = [f"In[{run.cell}], line {statement.lineno}" for run, statement in made]
    each = [f"{text} ({place})" for text, place in zip(shown, places)]
    if len(each) > 3:
        return f"{each[0]} and {len(each) - 1} more lines, to {each[-1]}"
    return " and ".join([", ".join(each[:-1]), each[-1]]) if len(each) > 1 else each[0]


def _spot(meeting: Meeting) -> _Spot | None:
    """The first line of the loop around both calls, or the line of the later call."""
    place = meeting.later.place
    run = meeting.run_of(place)
    if run is None or run.cell is None or place.line is None:
        return None
    outer = place.outer_line if place.outer_line is not None else place.line
    if meeting.in_loop:
        found = _first_in_loop(run.cell, run.source, outer, True)
        if found is not None:
            return found
        if source.loop_at(run.source, outer) is not None:
            return None  # its body stands on the line of its head
        text = meeting.text_of_cell(place.cell)
        if place.cell is not None and (place.cell, place.line) != (run.cell, outer):
            inner = _first_in_loop(place.cell, text, place.line, False)
            return inner or _first_in_function(place.cell, text, place.line)
    return _Spot(run.cell, run.source, _start(run.source, outer), None, True)


def _first_in_function(cell: int, text: str, line: int) -> _Spot | None:
    found = source.function_at(text, line)
    if found is None:
        return _Spot(cell, text, _start(text, line), None, False)
    if made_once.on_head(found[1]):
        return None
    return _Spot(cell, text, _first_step(found[1]), None, False, found[1].name)


def _first_step(function: ast.FunctionDef) -> int:
    """The line of the first statement of a function that is not its documentation."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1 if documented and len(function.body) > 1 else 0].lineno


def _start(text: str, line: int) -> int:
    found = source.statements_at(text, line)
    return found[-1].lineno if found else line


def _first_in_loop(cell: int, text: str, line: int, outer: bool) -> _Spot | None:
    loop = source.loop_at(text, line)
    if loop is None or loop.body[0].lineno == loop.lineno:
        return None
    return _Spot(cell, text, loop.body[0].lineno, loop, outer)


def _statements(meeting: Meeting, spot: _Spot, everything: bool) -> list[tuple[CellRun, ast.stmt]]:
    """The statements that make what has to be fresh, in order; none where one of them ran the earlier call."""
    found: dict[_Key, tuple[CellRun, ast.stmt]] = {}
    seen: set[tuple[int, int]] = set()  # (run, line): the same in every iteration
    for place in _places(meeting, everything):
        run = meeting.run_of(place)
        if place is None or run is None:
            return []
        inside = (place.run, place.outer_line) == (meeting.later.place.run, meeting.later.place.outer_line)
        if inside and not spot.outer:
            continue  # made in the pass that the call belongs to, or in an earlier one
        line = place.outer_line if place.outer_line is not None else place.line
        if line is None or (inside and spot.outer):
            continue
        if spot.loop is not None and run.run == meeting.later.place.run:
            if spot.outer and spot.loop.lineno <= line <= (spot.loop.end_lineno or 0):
                continue
        if (run.run, line) in seen:
            continue
        seen.add((run.run, line))
        statements = _outermost(run, line, meeting)
        if not statements or any(_ran(meeting, run, statement) for statement in statements):
            return []
        found.update((_key(run, statement), (run, statement)) for statement in statements)
    if spot.loop is None and found:
        used = {name for _, statement in found.values() for name in source.names_read(statement)}
        _add_what_builds_on_them(meeting, used, spot.line, found)
    if spot.loop is not None and spot.outer:
        _add_what_builds_on_them(meeting, source.names_in(spot.loop), spot.loop.lineno, found)
        if _only_iterated(spot.loop, [statement for _, statement in found.values()]):
            return []
    if not _add_beginnings(meeting, found):
        return []
    made = [found[key] for key in sorted(found)]
    once = made_once.Once([run.source for run in meeting.record.runs.values()])
    if any(once.makes(statement) for _, statement in made):
        return []
    if spot.loop is not None and made_once.starts_over([statement for _, statement in made], spot.loop):
        return []
    return made


def _key(run: CellRun, statement: ast.stmt) -> _Key:
    return run.run, statement.lineno, statement.col_offset


def _only_iterated(loop: ast.For | ast.While, made: list[ast.stmt]) -> bool:
    """Whether a `for` runs over what these make, and its body names nothing of it: inside they would change nothing.

    The same if they put more into what it runs over.
    """
    over = source.names_in(loop.iter if isinstance(loop, ast.For) else loop.test)
    changed = {name for one in made for name in source.changed(one)}
    if not isinstance(loop, ast.For):
        read = {name for one in made for name in source.names_in(one)} - changed
        moved = source.changed(loop) | edits.written(loop)
        steps = any(called.endswith(".step") for called in source.calls_in(loop))
        return bool(changed & over) and not (read & moved or steps)  # it would never end
    inside = {name for statement in loop.body for name in source.names_in(statement)}
    grown = any(over & source.grown(one) for one in made)
    return grown or (bool(changed & over) and not changed & inside)


def _add_beginnings(meeting: Meeting, found: dict[_Key, tuple[CellRun, ast.stmt]]) -> bool:
    """Before a statement that starts from what it left (``h = f(h)``), the one that began it. False: there is none."""
    fresh: set[str] = set()
    for key in sorted(found):
        statement = found[key][1]
        written = edits.written(statement) - source.changed(statement)
        for name in (source.carried(statement) | written) - fresh:
            begun = _beginning(meeting, name, key)
            if begun is None or _ran(meeting, *begun):
                return False
            found[_key(*begun)] = begun
            if name in written:
                found.update(_writes_between(meeting, name, _key(*begun), key))
        fresh |= source.changed(statement)
    return True


def _writes_between(
    meeting: Meeting, name: str, first: _Key, last: _Key
) -> Iterator[tuple[_Key, tuple[CellRun, ast.stmt]]]:
    """Statements between two (run, line)s that modify the tensor of a name."""
    for run in meeting.record.runs.values():
        for statement in _leading_to(run, last):
            if first < _key(run, statement) < last and name in edits.written(statement):
                yield _key(run, statement), (run, statement)


def _leading_to(run: CellRun, key: _Key) -> list[ast.stmt]:
    """Statements that ran before a (run, line): those of the cell; of its own cell those of the blocks around it."""
    if run.run == key[0]:
        return source.leading_to(run.source, key[1])
    tree = source.parse(run.source)
    return tree.body if tree and run.run < key[0] else []


def _beginning(meeting: Meeting, name: str, before: _Key) -> tuple[CellRun, ast.stmt] | None:
    """The last statement before (run, line, column) that assigns a name without reading it."""
    for _, run in sorted(meeting.record.runs.items(), reverse=True):
        for statement in reversed(_leading_to(run, before)):
            if _key(run, statement) < before and name in source.targets(statement):
                if name not in source.names_read(statement):
                    return run, statement
    return None


def _add_what_builds_on_them(
    meeting: Meeting, used: set[str], before: int, found: dict[_Key, tuple[CellRun, ast.stmt]]
) -> None:
    """Assignments before a line that give names, which are used, to what was made: ``stream = cycle(encoded)``."""
    later = meeting.later.place.run
    made = {name for _, statement in found.values() for name in source.targets(statement)}
    for run in (run for _, run in sorted(meeting.record.runs.items()) if later is None or run.run <= later):
        tree = source.parse(run.source)
        for statement in tree.body if tree else ():
            if run.run == later and statement.lineno >= before:
                break
            after = any(_key(run, statement) > key for key in found)
            if after and source.names_read(statement) & made and used.intersection(source.targets(statement)):
                found.setdefault(_key(run, statement), (run, statement))
                made.update(source.targets(statement))


def _places(meeting: Meeting, everything: bool) -> Iterator[Place | None]:
    indices = meeting.reached if everything else meeting.needed
    places = {meeting.graph.place[i] for i in indices if meeting.graph.leaves.get(i) is None}
    return (meeting.graph.places[at] if at >= 0 else None for at in sorted(places))


def _outermost(run: CellRun, line: int, meeting: Meeting) -> list[ast.stmt]:
    """The outermost statement around a line that does not hold the later call, too; of several that stand side by side
    those that assign something that has to be fresh."""
    later = meeting.later.place
    for statement in source.statements_at(run.source, line):
        holds = run.run == later.run and statement.lineno <= (later.outer_line or 0) <= (statement.end_lineno or 0)
        if not holds:
            side_by_side = source.beginning_at(run.source, line)
            if statement not in side_by_side or len(side_by_side) == 1:
                return [statement]
            names = _fresh_names(meeting)
            return [one for one in side_by_side if names.intersection(source.targets(one))]
    return []


def _fresh_names(meeting: Meeting) -> set[str]:
    """The names of tensors that have to be fresh: now, and at the earlier call."""
    uids = {meeting.graph.uid[index] for index in meeting.needed if index not in meeting.graph.leaves}
    known = [graph for graph in (meeting.graph, meeting.earlier.graph) if graph is not None]
    owned = {detaching.local(o.path) for graph in known for o in graph.owners if graph.uid[o.node] in uids}
    return owned | set(map(detaching.local, meeting.border_names))


def _ran(meeting: Meeting, run: CellRun, statement: ast.stmt) -> bool:
    """Whether a statement made the earlier call, and running it again would free again; or one that builds a graph of
    a `.grad`: running that again would add to the `.grad` that is there, with its old graph."""
    adding = [c for c in meeting.record.calls if c.api == "backward" and c.create_graph]
    places = [call.place for call in (meeting.earlier, *adding)]
    return any(
        run.run == place.run and statement.lineno <= (place.outer_line or 0) <= (statement.end_lineno or 0)
        for place in places
    )


def _maker(meeting: Meeting) -> tuple[Place, str, list[ast.stmt]] | None:
    made = meeting.carrier_place
    if made is None or made.cell is None or made.line is None:
        return None
    text = meeting.text_of_cell(made.cell)
    around = source.statements_at(text, made.line)
    return (made, text, around) if around else None


def _in_init(meeting: Meeting) -> Rerun | None:
    """`self.table = ...` in `__init__`: compute it in `forward`."""
    maker = _maker(meeting)
    if maker is None:
        return None
    made, text, around = maker
    function = source.function_at(text, made.line or 0)
    if function is None or function[0] is None or function[1].name != "__init__":
        return None
    methods = {s.name: s for s in function[0].body if isinstance(s, ast.FunctionDef)}
    forward = methods.get("forward") or methods.get("__call__")
    body = _made_in(meeting, function[1], made.cell)
    if forward is None or not body or made.cell is None or made_once.on_head(forward):
        return None
    return _put_in(made.cell, text, body, _first_step(forward), _AT_START, forward.name)


def _put_in(cell: int, text: str, body: list[ast.stmt], line: int, sentence: str, function: str) -> Rerun:
    """Statements of a cell once more, in front of a line of it."""
    new = [one for statement in body for one in edits.statement_text(text, statement)]
    what = _quoted([(CellRun(0, cell, text), statement) for statement in body])
    return Rerun(sentence.format(what=what, function=function), (cell, line), edits.before(text, line, new))


def _made_in(meeting: Meeting, function: ast.FunctionDef, cell: int | None) -> list[ast.stmt]:
    """The statements of a function's body that made what has to be fresh."""
    lines = {p.line or 0 for p in _places(meeting, False) if p is not None and p.cell == cell}
    return [s for s in function.body if any(s.lineno <= line <= (s.end_lineno or 0) for line in lines)]


def _in_closure(meeting: Meeting) -> Rerun | None:
    """A function is used that closes over what the function around it has made: compute it in the inner one."""
    maker = _maker(meeting)
    used = next(iter(meeting.uses_by(meeting.later)), None)
    if maker is None or used is None or used.line is None or used.cell != maker[0].cell or used.cell is None:
        return None
    made, text, around = maker
    inner = [s for s in source.statements_at(text, used.line) if isinstance(s, ast.FunctionDef)]
    outer = [s for s in around if isinstance(s, ast.FunctionDef)]
    if not outer or len(inner) < 2 or outer[-1] not in inner[:-1] or made_once.on_head(inner[-1]):
        return None
    body = [s for s in _made_in(meeting, outer[-1], made.cell) if s not in inner]
    return _put_in(used.cell, text, body, _first_step(inner[-1]), _AT_START, inner[-1].name) if body else None


def _in_generator(meeting: Meeting) -> Rerun | None:
    """A generator makes once what all its items use: make it in its loop."""
    maker = _maker(meeting)
    function = source.function_at(maker[1], maker[0].line or 0) if maker is not None else None
    if maker is None or function is None or maker[0].cell is None:
        return None
    loops = [s for s in function[1].body if isinstance(s, (ast.For, ast.While)) and _yields(s)]
    made = _made_in(meeting, function[1], maker[0].cell)
    body = [s for s in made if loops and s.lineno < loops[0].lineno]
    if not body or made_once.on_head(loops[0]):
        return None
    return _put_in(maker[0].cell, maker[1], body, loops[0].body[0].lineno, _IN_ITS_LOOP, function[1].name)


def _yields(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(statement))


def _behind_a_test(meeting: Meeting) -> Rerun | None:
    """``if key not in cache:`` or ``if self.x is None:`` around what made the carrier: it is computed only once."""
    maker = _maker(meeting)
    if maker is None:
        return None
    made, text, around = maker
    tests = [s for s in around if isinstance(s, ast.If) and _asks_whether_there(s.test)]
    if not tests or made.cell is None:
        return None
    line = source.line_text(text, tests[-1].lineno)
    test = ast.unparse(tests[-1].test)
    return Rerun(
        f"Compute it in each pass: drop the test `{test}` (In[{made.cell}], line {tests[-1].lineno}).",
        (made.cell, tests[-1].lineno),
        edits.replaced(line, "if True:") if line.startswith("if ") and line.endswith(":") else (),
    )


def _behind_a_decorator(meeting: Meeting) -> Rerun | None:
    """``@lru_cache`` on the function, or ``@cached_property`` on the method, that made the carrier: run only once."""
    maker = _maker(meeting)
    functions = [s for s in maker[2] if isinstance(s, ast.FunctionDef)] if maker is not None else []
    kept = [d for d in functions[-1].decorator_list if "cache" in ast.unparse(d)] if functions else []
    if maker is None or maker[0].cell is None or not kept or kept[0].lineno != kept[0].end_lineno:
        return None
    cell, text = maker[0].cell, maker[1]
    line, head = source.line_text(text, kept[0].lineno), source.line_text(text, functions[-1].lineno)
    between = [source.line_text(text, n) for n in range(kept[0].lineno + 1, functions[-1].lineno)]
    new = ["@property"] if "cached_property" in line else []
    what = f"write `@property` instead of `{line}`" if new else f"drop `{line}`"
    edit = (f"- {line}", *(f"- {one}" for one in (*between, head)), *(f"+ {one}" for one in (*new, *between, head)))
    return Rerun(f"Compute it in each pass: {what} (In[{cell}], line {kept[0].lineno}).", (cell, kept[0].lineno), edit)


def _asks_whether_there(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare):
        kind = type(test.ops[0])
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return kind is ast.NotIn or (kind is ast.Is and none)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
