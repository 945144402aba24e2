"""Fixes for graphs that pile up: edits of the lines that keep them, by the names of what keeps them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphwidget.diagnosis.fixes.piles.carried import NONE, cut_each_time
from graphwidget.diagnosis.fixes.piles.handed_over import handed_over
from graphwidget.diagnosis.fixes.piles.joined_passes import detached_where_joined
from graphwidget.diagnosis.fixes.piles.never_run import without_graph
from graphwidget.diagnosis.fixes.piles.reads import is_read, latest_first, needed
from graphwidget.diagnosis.fixes.piles.stored_too import UNLESS, with_what_else_is_stored
from graphwidget.diagnosis.fixes.piles.whole_objects import kept_whole
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, Owner, Record, Snapshot

if TYPE_CHECKING:
    from graphwidget.diagnosis.findings.piles import Pile

_REGISTERS = re.compile(r"register_\w*hook")


def for_pile(record: Record, pile: Pile, lasting: bool) -> tuple[Fix, ...]:
    """Fixes for graphs that pile up; `lasting`: the graphs are still alive now."""
    name, place = spoken(pile.name), pile.graph.place_of(pile.owners[0].node)
    own = {source.last_name(local(path)) for path in pile.paths}
    keep = detached_where_joined(record, pile.graph, pile.line, pile.inside, own) if pile.chain else None
    keep = keep or (cut_each_time(record, pile) if pile.chain else None)
    keep = keep or _remove_hooks(record, pile)
    keep = keep or keep_numbers(record, pile.name, pile.owners, pile.graph)
    keep = keep or (handed_over(record, pile.name, pile.owners, pile.graph) if len(pile.paths) == 1 else None)
    keep = keep or _hand_over_numbers(record, pile)
    keep = keep or without_graph(record, pile.graph, pile.owners, pile.inside)
    whole = kept_whole(record, pile.name, pile.owners) if not pile.chain and len(pile.paths) == 1 else None
    if (keep := keep or whole) is None:
        line = f" ({where(place)})" if where(place) else ""
        unless = UNLESS if not pile.chain and needed(record, source.last_name(name), set()) else ""
        keep = Fix(
            "detach",
            f"Keep numbers, not graphs: use `.detach()` for what {names(tuple(map(spoken, pile.paths)))} "
            f"{'keeps' if len(pile.paths) == 1 else 'keep'}{line}.{unless}",
            False,
            at(place),
            NONE,
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


_CONTAINERS = {"list", "tuple", "dict", "set", "frozenset", "deque", "defaultdict", "OrderedDict"}
_EMPTIED = _CONTAINERS - {"tuple", "frozenset"}


def keep_numbers(record: Record, holder: str, owners: tuple[Owner, ...], graph: Snapshot | None = None) -> Fix | None:
    """Detach at the lines that put tensors into a container; `holder`: its path.

    Where `graph` shows that these tensors were made while some of these functions ran, in those only: `losses` of
    another function is another list, which may hold numbers.
    """
    base = re.sub(r"(\[[^]]*\])+$", "", holder) if "__" not in holder else holder
    inside = {owner.path[len(base) :]: owner.containers for owner in owners}
    name = source.last_name(spoken(holder))
    for run in latest_first(record):
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
        return Fix("detach", text + ("" if free else UNLESS), free, (run.cell, first), NONE, edits=edits)
    return None


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
        for run in latest_first(record)
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
    run = next((one for one in latest_first(record) if one.cell == place.cell), None)
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
            return Fix("detach", text, False, (run.cell or 0, call.lineno), NONE, edits=edits)
    return None
