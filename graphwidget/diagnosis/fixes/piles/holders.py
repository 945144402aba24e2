"""Fixes for graphs that pile up: edits of the lines that keep them, by the names of what keeps them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from graphwidget.diagnosis.fixes.piles.handed_over import handed_over
from graphwidget.diagnosis.fixes.piles.joined_passes import detached_where_joined, joining_line
from graphwidget.diagnosis.fixes.piles.never_run import without_graph
from graphwidget.diagnosis.fixes.piles.stored_too import UNLESS, with_what_else_is_stored
from graphwidget.diagnosis.fixes.piles.whole_objects import kept_whole
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.containers import EMPTY
from graphwidget.diagnosis.source.detaching import detached
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.other_names import other_names
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, names, outer_at, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, Owner, Record, Snapshot

if TYPE_CHECKING:
    from graphwidget.diagnosis.findings.piles import Pile

_REGISTERS = re.compile(r"register_\w*hook")
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.IfExp, ast.BoolOp)
_NONE = "No gradient flows back through it."


def _cells(record: Record) -> list[CellRun]:
    """Each cell once, as it was last run, latest first."""
    return Cells.of(record).latest[::-1]


def for_pile(record: Record, pile: Pile, lasting: bool) -> tuple[Fix, ...]:
    """Fixes for graphs that pile up; `lasting`: the graphs are still alive now."""
    name, place = spoken(pile.name), pile.graph.place_of(pile.owners[0].node)
    own = {source.last_name(local(path)) for path in pile.paths}
    keep = detached_where_joined(record, pile.graph, pile.line, pile.inside, own) if pile.chain else None
    keep = keep or (_cut_each_time(record, pile) if pile.chain else None)
    keep = keep or _remove_hooks(record, pile)
    keep = keep or keep_numbers(record, pile.name, pile.owners, pile.graph)
    keep = keep or (handed_over(record, pile.name, pile.owners, pile.graph) if len(pile.paths) == 1 else None)
    keep = keep or _hand_over_numbers(record, pile)
    keep = keep or (kept_whole(record, pile.name, pile.owners) if not pile.chain and len(pile.paths) == 1 else None)
    if (keep := keep or without_graph(record, pile.graph, pile.owners, pile.inside)) is None:
        line = f" ({where(place)})" if where(place) else ""
        unless = UNLESS if not pile.chain and needed(record, source.last_name(name), set()) else ""
        keep = Fix(
            "detach",
            f"Keep numbers, not graphs: use `.detach()` for what {names(tuple(map(spoken, pile.paths)))} "
            f"{'keeps' if len(pile.paths) == 1 else 'keep'}{line}.{unless}",
            False,
            at(place),
            _NONE,
        )
    keep = with_what_else_is_stored(record, keep, pile.graph)
    # A value that a loop computes from its previous value is the loop's purpose: an average is not deleted.
    end = _release(record, pile, name) if lasting and pile.alone and not pile.chain else ""
    if not end:
        return (keep,)
    read = is_read(record, source.last_name(name))
    price = "Its values go, too." + (" Lines that read them must come before that." if read else "")
    return keep, Fix("del_variable", f"Let go of it when done: `{end}`.", True, None, price, (f"+ {end}",))


def with_neighbours(record: Record, findings: list[Finding]) -> Iterator[Finding]:
    """Findings, where the first fix of each has the edits of those that stand in one block with it.

    Averages of two losses that one line after the other updates are one mistake: with one of them the other still
    piles up.
    """
    blocks: dict[object, list[Finding]] = {}
    for one in findings:
        blocks.setdefault(_block_of(record, one), []).append(one)
    for one in findings:
        others = [other for other in blocks[_block_of(record, one)] if other is not one]
        edits = {edit: None for other in (one, *others) for edit in (other.fixes[0].edits if other.fixes else ())}
        if not others or len(edits) == len(one.fixes[0].edits):
            yield one
            continue
        too = names(tuple(name for other in others for name in other.carriers[:1]))
        text = f"{one.fixes[0].text} And the same for {too}, which {'piles' if len(others) == 1 else 'pile'} up, too."
        fix = replace(one.fixes[0], text=text, edits=tuple(text_edit.in_order(edits)))
        yield replace(one, fixes=(fix, *one.fixes[1:]))


def _block_of(record: Record, finding: Finding) -> object:
    """The block of statements that the first fix edits; without one, or in a text of its own, the finding itself."""
    fix = finding.fixes[0] if finding.fixes else None
    if fix is None or fix.at is None or not fix.edits or fix.id not in ("detach", "under_no_grad"):
        return id(finding)
    text = Cells.of(record).text(fix.at[0])
    made = source.statements_at(text, fix.at[1])[-1:]
    block = source.block_of(text, made[0]) if made else []
    return (fix.at[0], block[0].lineno) if block else id(finding)


def _release(record: Record, pile: Pile, name: str) -> str:
    """A statement that releases the graphs, if there is one that does no harm.

    A variable is deleted if it holds only tensors and Python's own containers. Of an object's attributes only a
    container that collects results is emptied: no module, no parameter, no buffer, nothing that its methods need.
    """
    depth = name.count("[")
    inside = [owner.containers[: owner.path.count("[") - depth] for owner in pile.owners]
    plain = all(kind in _CONTAINERS for containers in inside for kind, _ in containers)
    if len(pile.paths) > 1 or not plain or not is_code(name):
        return ""
    if name.isidentifier():
        return f"del {name}"
    kinds = {containers[-1][0] for containers in inside if containers}
    return f"{name}.clear()" if kinds and kinds <= _EMPTIED else ""


def is_read(record: Record, name: str) -> bool:
    """Whether a line of the cells reads a variable or attribute, other than to put something into it."""
    return any(True for run in _cells(record) for _ in _read_at(run.source, name))


def _read_at(cell: str, name: str) -> Iterator[int]:
    """Lines that read a variable or attribute, other than to put something into it or to compute its next value."""
    tree = source.parse(cell)
    for statement in source.steps_of_all(tree) if tree is not None else ():
        nodes = [node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Load)]
        read = any(getattr(node, "id", getattr(node, "attr", None)) == name for node in nodes)
        grown = any(isinstance(node, ast.Attribute) and node.attr in source.GROWING for node in nodes)
        if read and not grown and name not in {source.last_name(target) for target in source.targets(statement)}:
            yield statement.lineno


_CONTAINERS = {"list", "tuple", "dict", "set", "frozenset", "deque", "defaultdict", "OrderedDict"}
_EMPTIED = _CONTAINERS - {"tuple", "frozenset"}


def needed(record: Record, name: str, kept_at: set[tuple[int | None, int]]) -> bool:
    """Whether a line, other than those that keep it, reads what `name` keeps as more than a number.

    Parameters
    ----------
    kept_at
        (cell, line)s.
    """
    last = name.rsplit(".", 1)[-1]
    words = {last, *(one.name for one in other_names(tuple(Cells.of(record).texts.values()), last) if not one.inside)}
    trees = ((run, source.parse(run.source)) for run in _cells(record))
    return any(
        (run.cell, line) not in kept_at
        for run, tree in trees
        if tree is not None
        for word in words
        for line in source.handed_on(tree, word)
    )


def keep_numbers(record: Record, holder: str, owners: tuple[Owner, ...], graph: Snapshot | None = None) -> Fix | None:
    """Detach at the lines that put tensors into a container; `holder`: its path.

    Where `graph` shows that these tensors were made while some of these functions ran, in those only: `losses` of
    another function is another list, which may hold numbers.
    """
    base = re.sub(r"(\[[^]]*\])+$", "", holder) if "__" not in holder else holder
    inside = {owner.path[len(base) :]: owner.containers for owner in owners}
    name = source.last_name(spoken(holder))
    for run in _cells(record):
        found = containers.detached_in(run.cell, run.source, name, inside, Cells.of(record).texts.values(), inside)
        ran = _functions_around(run, graph, owners) if graph is not None else set[int]()
        found = [one for one in found if _function_at(run, one[0]) in ran] or found
        if not found or run.cell is None:
            continue
        first = found[0][0]
        new = " and ".join(short(text_edit.new_text(run.source, edits)) for _, edits in found[:2])
        more = f" and {len(found) - 2} more lines" if len(found) > 2 else ""
        text = f"Keep numbers, not graphs: write {new}{more} (In[{run.cell}], line {first})."
        free = not needed(record, name, {(run.cell, line) for line, _ in found})
        edits = tuple(edit for _, one in found for edit in one)
        return Fix("detach", text + ("" if free else UNLESS), free, (run.cell, first), _NONE, edits=edits)
    return None


def _may_assign(pile: Pile, run: CellRun, statement: ast.stmt) -> bool:
    """Whether a statement that assigns a plain name may assign the variable that keeps a pile, by the function."""
    function, _, name = pile.name.partition(":") if pile.owners[0].kind == "frame" else ("", "", pile.name)
    inside = source.statements_at(run.source, statement.lineno)
    around = [one.name for one in inside if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    main = source.main_function(run.source)
    if function:
        return function in around or (not around and main is not None and main.function.name == function)
    return "." not in name or not around


def _functions_around(run: CellRun, graph: Snapshot, owners: tuple[Owner, ...]) -> set[int]:
    """The functions of a text that were running when some tensors were made, as `_function_at` has them."""
    places = [place for owner in owners if (place := graph.place_of(owner.node)) is not None]
    frames = (frame for place in places for frame in (place, *place.stack))
    return {_function_at(run, frame.line) for frame in frames if frame.cell == run.cell and frame.line is not None}


def _function_at(run: CellRun, line: int) -> int:
    """The line of the function around a line; 0: there is none."""
    found = source.function_at(run.source, line)
    return found[1].lineno if found is not None else 0


def _remove_hooks(record: Record, pile: Pile) -> Fix | None:
    """Remove the hooks that each pass registers anew: nothing but them refers to what they keep."""
    if not all(owner.kind == "hook" for owner in pile.owners):
        return None
    registering = [
        (run, call)
        for run in _cells(record)
        for call in source.nodes_of(run.source)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _REGISTERS.fullmatch(call.func.attr)
    ]
    found = registering[0] if len(registering) == 1 else None
    place = place_of(found[0], found[1].lineno) if found is not None else None
    line = f"{short(ast.unparse(found[1]))} ({where(place)})" if found is not None and place is not None else "the line"
    text = (
        f"Each pass registers one more hook, and each hook keeps the tensors that it refers to. Run {line} once, or "
        "remove the hook after each pass: it returns a handle, with `handle.remove()`."
    )
    return Fix("remove_hook", text, False, at(place))


def _hand_over_numbers(record: Record, pile: Pile) -> Fix | None:
    """``metric.update(loss.detach())``: the keeper is an object of a library, and a method of it was given this."""
    place = pile.graph.place_of(pile.owners[0].node)
    if place is None or len(pile.paths) > 1:
        return None
    run = next((one for one in _cells(record) if one.cell == place.cell), None)
    made = source.statements_at(run.source, place.line or 0)[-1:] if run is not None else []
    given = {target for statement in made for target in source.targets(statement)}
    keepers = {local(pile.name)[: one.start()] for one in re.finditer(r"[.\[]", local(pile.name))} - {"self", "cls"}
    for call in source.nodes_of(run.source) if run is not None and run.cell is not None else ():
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        handed = [one for one in call.args if ast.unparse(one) in given]
        if handed and ast.unparse(call.func.value) in keepers and run is not None:
            edits = text_edit.insert_behind(run.cell, run.source, handed[0], ".detach()")
            shown = short(text_edit.new_text(run.source, edits))
            text = f"Hand over numbers, not graphs: write {shown} (In[{run.cell}], line {call.lineno}).{UNLESS}"
            return Fix("detach", text, False, (run.cell or 0, call.lineno), _NONE, edits=edits)
    return None


def carried_names(record: Record) -> set[str]:
    """Last names of variables that the cells compute from their previous value: ``total``, ``h``, ``running_mean``."""
    return set().union(*(_carried_in(run.source) for run in _cells(record)))


@lru_cache(maxsize=8192)  # asked for every cell at every look, and the text of a cell does not change
def _carried_in(text: str) -> frozenset[str]:
    found: set[str] = set()
    tree = source.parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            value = {ast.unparse(n) for n in ast.walk(node.value) if isinstance(n, (ast.Name, ast.Attribute))}
            own = set(source.targets(node))
            found |= own if isinstance(node, ast.AugAssign) else own & value
        elif isinstance(node, (ast.For, ast.While)):
            found |= source.carried(node)
    return frozenset(name.rsplit(".", 1)[-1] for name in found)


def _cut_each_time(record: Record, pile: Pile) -> Fix | None:
    """``total += loss.detach()``; or, after the later of call and assignment, ``h = h.detach()``."""
    call, whole = pile.line.calls[-1], local(pile.name)
    last = source.last_name(whole)
    written = _cut_what_is_written(record, pile)
    if written is not None:
        return written
    updated = _cut_the_update(record, pile)
    if updated is not None:
        return updated
    for run in _cells(record):
        statements = [
            (statement, target)
            for statement, target in source.assigned_as(run.source, last)
            if "." in target or _may_assign(pile, run, statement)
        ]
        if not statements or run.cell is None or len(pile.paths) > 1:
            continue
        statement, target = _that_made(pile, run, statements)
        given = source.given(statement)
        if ast.unparse(given) in EMPTY:
            continue  # where the container begins: other lines put something in
        if isinstance(given, ast.Call) and source.last_name(ast.unparse(given.func)) == "Parameter":
            continue  # it has no graph there: a line writes one into it
        here = f"In[{run.cell}], line {statement.lineno}"
        if isinstance(statement, ast.AugAssign):
            edits = _without_graph(record, run, statement.value)
            free = not needed(record, last, {(run.cell, statement.lineno)})
            text = f"Write {short(text_edit.new_text(run.source, edits))} ({here}).{'' if free else UNLESS}"
            return Fix("detach", text, free, (run.cell, statement.lineno), _NONE, edits=edits)
        line = statement.lineno
        inside = source.function_at(run.source, line)
        place = at(call.place) if inside or call.place.outer_cell != run.cell else outer_at(call.place)
        if place is not None and inside != source.function_at(run.source, place[1]):
            place = None  # the call stands elsewhere
        if place is not None and place[0] == run.cell and place[1] > line:
            line = place[1]
        cut = _cut(record, pile, whole, target)
        if not cut:
            return None
        edits = text_edit.insert_after(run.cell, run.source, line, cut)
        text = f"Cut the graph each time: {short('; '.join(cut), 90)} after In[{run.cell}], line {line}."
        loop = source.loop_at(run.source, line)  # each pass makes it again
        inside_loop = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1) if loop is not None else range(line + 1)
        free = not needed(record, last, {(run.cell, one) for one in inside_loop})
        stored = (run.cell, statement.lineno)  # the cut comes behind the call that needs the graph
        return Fix("detach", text + ("" if free else UNLESS), free, stored, _NONE, edits=edits)
    return None


def _cut_what_is_written(record: Record, pile: Pile) -> Fix | None:
    """What the line that made a tensor writes into it, or puts into its container, detached.

    ``self.mean.mul_(0.9).add_(0.1 * h.mean(0).detach())``, ``shadow[name] = (0.9 * shadow[name] + 0.1 * p).detach()``.
    """
    spot = joining_line(pile.graph, pile.line, pile.inside) or at(pile.graph.place_of(pile.owners[0].node))
    lasts = {source.last_name(local(path)) for path in pile.paths}
    run = next((one for one in _cells(record) if spot is not None and one.cell == spot[0]), None)
    if run is None or spot is None or len(lasts) != 1:
        return None
    (last,) = lasts
    for statement in source.statements_at(run.source, spot[1])[-1:]:
        written = inplace.values_written(statement, last)
        if not written and _wrote(record, pile):  # it spells it in another way
            written = inplace.values_written(statement)
            written = written or ([statement.value] if isinstance(statement, ast.AugAssign) else [])
        given = _put_into(statement, last) or _added_to(statement, last) or written
        if given is written and len(written) > 1 and run.cell is not None:
            return _written_without_graph(run, statement)  # some of them may be numbers
        edits = tuple(edit for one in given for edit in _without_graph(record, run, one))
        if not edits and last in map(source.last_name, source.targets(statement)):
            inside = {local(owner.path).rpartition(last)[2] for owner in pile.owners}
            edits = containers.detached_parts(run.cell, run.source, source.given(statement), inside - {""})
        if not edits or run.cell is None:
            return None
        free = not needed(record, last, {(run.cell, statement.lineno)})
        shown = short(text_edit.new_text(run.source, edits))
        text = f"Write {shown} (In[{run.cell}], line {statement.lineno}).{'' if free else UNLESS}"
        return Fix("detach", text, free, (run.cell, statement.lineno), _NONE, edits=edits)
    return None


def _wrote(record: Record, pile: Pile) -> bool:
    """Whether what is held was seen to be modified in place by the line that made its node."""
    node = pile.graph.seq[pile.owners[0].node]
    return any(node in write.made and set(pile.paths) & {*write.paths, *write.others} for write in record.writes)


def _written_without_graph(run: CellRun, statement: ast.stmt) -> Fix:
    """``with torch.no_grad(): self.var.mul_(1 - m).add_(var * m)``: what computed the values keeps its graph."""
    edits = in_block(run.cell, run.source, "with torch.no_grad():", statement, statement)
    text = f"Write {short(ast.unparse(statement))} (In[{run.cell}], line {statement.lineno}) under "
    text += "`with torch.no_grad():`. What it writes keeps its own graph."
    return Fix("under_no_grad", text, False, (run.cell or 0, statement.lineno), _NONE, edits=edits)


def _cut_the_update(record: Record, pile: Pile) -> Fix | None:
    """The line that made a tensor of the one before, detached: ``h[i] = (0.9 * h[i] + v).detach()``.

    The holder may have got it from there under another name: from a function that returned it.
    """
    place = pile.graph.place_of(pile.owners[0].node)
    run = next((one for one in _cells(record) if place is not None and one.cell == place.cell), None)
    found = source.statements_at(run.source, place.line or 0)[-1:] if run is not None and place is not None else []
    if run is None or run.cell is None or not found or not isinstance(found[0], ast.Assign):
        return None
    (statement, targets), value = (found[0], [*map(ast.unparse, found[0].targets)]), found[0].value
    before = {
        ast.unparse(node) for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    }
    names = {local(path) for path in pile.paths}
    if len(targets) != 1 or targets[0] not in before or targets[0] in names or isinstance(value, _DISPLAYS):
        return None
    edits = _without_graph(record, run, value)
    free = not needed(record, source.last_name(targets[0]), {(run.cell, statement.lineno)})
    shown = short(text_edit.new_text(run.source, edits))
    text = f"Write {shown} (In[{run.cell}], line {statement.lineno}).{'' if free else UNLESS}"
    return Fix("detach", text, free, (run.cell, statement.lineno), _NONE, edits=edits)


def _without_graph(record: Record, run: CellRun, value: ast.expr) -> Edits:
    """An expression detached, for all calls of its function."""
    return containers.detached_value(run.cell, run.source, value, Cells.of(record).texts.values())


def _added_to(statement: ast.stmt, last: str) -> list[ast.expr]:
    """What a statement adds to an attribute of that name: `x` in ``self.total = self.total + x``, and in ``+= x``."""
    value, put = getattr(statement, "value", None), list(source.targets(statement))
    if isinstance(statement, ast.AugAssign) and put and "." in put[0] and source.last_name(put[0]) == last:
        return [statement.value] if isinstance(statement.op, (ast.Add, ast.Sub)) else []
    if not isinstance(statement, ast.Assign) or not isinstance(value, ast.BinOp) or len(put) != 1:
        return []
    if "." not in put[0] or source.last_name(put[0]) != last or not isinstance(value.op, (ast.Add, ast.Sub)):
        return []
    terms = [one for one in (value.left, value.right) if ast.unparse(one) != put[0]]
    return terms if len(terms) == 1 else []


def _put_into(statement: ast.stmt, last: str) -> list[ast.expr]:
    """What a statement puts into a container of that name; or into an attribute whose name it computes."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "setattr" and len(call.args) == 3:
        fixed = call.args[1].value if isinstance(call.args[1], ast.Constant) else last
        return [call.args[2]] if fixed == last else []
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return []
    put = list(source.targets(statement))
    fits = len(put) == 1 and put[0].endswith("]") and source.last_name(put[0]) == last
    return [statement.value] if fits else []


def _that_made(pile: Pile, run: CellRun, statements: list[tuple[ast.stmt, str]]) -> tuple[ast.stmt, str]:
    """Of the statements that assign what the holder has, the one that joins the passes.

    A mean behind them, ``total /= steps``, joins nothing. Else the one that made it as it is now, or the last one.
    """
    for spot in (joining_line(pile.graph, pile.line, pile.inside), at(pile.graph.place_of(pile.owners[0].node))):
        for statement, target in statements:
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            if spot is not None and spot[0] == run.cell and spot[1] in lines:
                return statement, target
    return statements[-1]


def _cut(record: Record, pile: Pile, whole: str, target: str) -> list[str]:
    """Statements that detach what the holder has, spelled as where it is assigned: ``self.mean`` for ``net.mean``."""
    paths = [local(owner.path) for owner in pile.owners]
    if whole.endswith("]") and not target.endswith("]"):
        whole = whole[: whole.rindex(source.last_name(whole))] + source.last_name(whole)  # the container is assigned
    if paths == [whole]:
        return [f"{target} = {target}.detach()"]
    cells = [run.source for run in _cells(record)]
    lines = detached(paths, cells, pile.owners)
    if whole != target and not all(line.startswith(whole) for line in lines):
        return []
    return [line.replace(whole, target) for line in lines] if all(path.startswith(whole) for path in paths) else []
