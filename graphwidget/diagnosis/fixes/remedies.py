"""What can be done about one write in place: a copy of what it modifies, or of what is read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.in_place.copies import savers
from graphwidget.diagnosis.fixes.in_place.handed_in import HandedIn, own_variables
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace_statements
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, lines_of, names, short, where
from graphwidget.model import BackwardCall, Place, Record, Snapshot, Write

__all__ = [
    "COPY",
    "Remedy",
    "Scoped",
    "before_the_call",
    "copied",
    "is_of_element",
    "modified",
    "read_as_a_copy",
    "reading",
    "reading_field",
    "reading_where_saved",
    "scoped",
    "taken_as_a_copy",
    "written_as",
]

COPY = "One more tensor of that size."

Scoped = tuple[object, ...]  # a name, and whose it is


@dataclass(frozen=True)
class Remedy:
    """A change of the program.

    `leads_away`: the write, and later ones by the same `names`, then modify other tensors. `copies_in`: the lines, each
    with its cell, whose nodes have saved copies of `copied`, which the write modifies.
    """

    id: str
    sentence: str
    at: Spot | None
    edits: Edits
    write: Write
    names: tuple[Scoped, ...]
    leads_away: bool = True
    copies_in: frozenset[Spot] = frozenset()
    copied: tuple[str, ...] = ()


def modified(write: Write, tensor: str | None) -> tuple[str, ...]:
    """The tensors that a write modifies, as its line spells them; empty: they have no names.

    Of several, those that were seen to change: ``losses[i], h[0] = f(h)`` modifies a list, too. `tensor`: what to call
    one that the line does not name.
    """
    several = inplace_statements.all_modified(write.by)
    seen = {local(path) for path in (*write.paths, *write.others)}
    tensors = tuple(name for name in several if name in seen or _of_object(name, seen))
    if len(several) > 1:
        return tensors or ((tensor,) if tensor else ())
    statement = source.statement_of(write.by)
    read = source.paths_read(statement) if statement is not None and not several else set()
    named = sorted(seen & read)  # `v` of ``torch.mul(v, 2, out=v)``, or of ``return Scale.apply(v)``, which marks it
    name = several[0] if several else named[0] if len(named) == 1 else tensor
    if name is not None and is_of_element(write, name):
        name = inplace_statements.element(write.by)
    return (name,) if name else ()


def _of_object(name: str, seen: Collection[str]) -> bool:
    """Whether a method writes a name for a tensor that was seen by another: ``self.h`` for ``model.h``."""
    return name.startswith("self.") and any(path.endswith(name[len("self") :]) for path in seen)


def is_of_element(write: Write, name: str) -> bool:
    """Whether `name` is a container, of which a write modifies an element."""
    paths = tuple(map(local, write.paths))
    return name not in paths and any(path.startswith(f"{name}[") for path in paths)


def scoped(cell: str, line: int, name: str) -> Scoped:
    """A name and the function whose variable it is."""
    inside = source.function_at(cell, line)
    return (name, inside[1].name if inside is not None else None)


def _clones(written: Sequence[str]) -> list[str]:
    return [f"{name} = {name}.clone()" for name in written]


def _copies(written: Sequence[str]) -> str:
    """``a copy of `h` ``, ``copies of `a` and `b` ``."""
    return f"{'copies' if len(written) > 1 else 'a copy'} of {names(tuple(written))}"


def _quoted(lines: Sequence[str]) -> str:
    return ", ".join(f"`{line}`" for line in lines)


def before_the_call(record: Record, write: Write, handed: Sequence[HandedIn], saved_inside: bool) -> Remedy:
    """Copy what a function modifies for its caller before the caller hands it in."""
    function, spot = handed[0].function, handed[0].spot
    if spot is None or saved_inside or any(one.spot != spot for one in handed):
        copy = "a copy, and go on with the copy" if len(handed) == 1 else "copies, and go on with these"
        sentence = f"Hand `{function}` {copy}: it modifies what it is given."
        own = ((function, "copy"),)
        return Remedy("clone_before_inplace", sentence, spot, (), write, own, leads_away=not saved_inside)
    text = Cells.of(record).text(spot[0])
    by = f"{short(source.line_text(text, spot[1]))} (In[{spot[0]}], line {spot[1]})"
    given = [one.name for one in handed]
    clones = _clones(given)
    copy = "a copy" if len(given) == 1 else "copies"
    sentence = f"Modify {copy}: {_quoted(clones)} before {by}, as `{function}` modifies what it is given."
    edits = text_edit.insert_before(spot[0], text, spot[1], clones)
    scopes = tuple(scoped(text, spot[1], name) for name in given)
    return Remedy("clone_before_inplace", sentence, spot, edits, write, scopes)


def copied(write: Write, cell: str, line: int, written: Sequence[str], before: str, through: Sequence[str]) -> Remedy:
    """Copy tensors before the line that writes, or that makes the view `through` which a later line writes."""
    clones, copy = _clones(written), "a copy" if len(written) == 1 else "copies"
    return Remedy(
        "clone_before_inplace",
        f"Modify {copy}: {_quoted(clones)} before {before} (In[{write.place.cell}], line {line}).",
        (write.place.cell, line) if write.place.cell is not None else None,
        text_edit.insert_before(write.place.cell, cell, line, clones),
        write,
        tuple(scoped(cell, line, name) for name in through),
    )


def reading(
    record: Record, write: Write, written: tuple[str, ...], copying: str, by: str, saved_before: bool
) -> Remedy:
    """Copy what a write reads, and also what it modifies if nodes of other lines have saved that."""
    instead = f"{short(copying)} instead of {by}"
    if short(copying) == short(write.by):  # what differs is cut off
        instead = f"`.clone()` behind what {by} reads"
    statement = source.statement_of(write.by)
    shown = tuple(name for name in written if inplace_statements.parts_read(statement, [name]))
    sentence = f"Read {_copies(shown)}: {instead}."
    edits = written_as(record, write, copying)
    cell, spot = Cells.of(record).text(write.place.cell), at(write.place)
    if saved_before:
        clones, others = _clones(written), "others" if len(written) > 1 else "another"
        sentence = f"Modify {_copies(written)}, and read {others}: {_quoted(clones)}, then {instead}."
        before = text_edit.insert_before(write.place.cell, cell, write.place.line or 0, clones)
        edits = (*before, *edits) if before and edits else ()
    scopes = tuple(scoped(cell, write.place.line or 0, name) for name in written)
    line = Cells.of(record).beginning(spot)
    lines = frozenset([line] if line is not None else [])
    return Remedy("clone_before_inplace", sentence, spot, edits, write, scopes, saved_before, lines, written)


def taken_as_a_copy(record: Record, write: Write, written: tuple[str, ...], tensor: str | None) -> Remedy | None:
    """Take a copy where a name gets the part that a write reads: ``prev = table[t - 1].clone()``."""
    spot, cells = at(write.place), Cells.of(record)
    if spot is None or tensor is None or not tensor.isidentifier() or tensor in written:
        return None
    text = cells.text(spot[0])
    made = [one for one in source.bindings(text, tensor, spot[1]) if isinstance(one, ast.Assign)]
    parts = inplace_statements.parts_read(made[-1], written) if made else []
    line = cells.beginning(spot)
    if not parts or line is None or list(source.targets(made[-1])) != [tensor] or made[-1].value not in parts:
        return None
    edits = text_edit.insert_behind(spot[0], text, made[-1].value, ".clone()")
    sentence = (
        f"Take a copy: {short(text_edit.new_text(text, edits))} (In[{spot[0]}], line {made[-1].lineno}), as "
        f"{short(write.by)} writes to what `{tensor}` is a part of."
    )
    place = (spot[0], made[-1].lineno)
    return Remedy("clone_before_inplace", sentence, place, edits, write, (), False, frozenset([line]), written)


def reading_where_saved(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, written: tuple[str, ...]
) -> Remedy | None:
    """Read copies in the lines of a function that save what it modifies for its caller.

    None where something else has saved that as well, or a line reads it by a name that is not known.
    """
    cells, function = Cells.of(record), source.function_at(*_text_and_line(record, write.place))
    if function is None:
        return None
    found: dict[Spot, Edits] = {}
    for index in savers(call, graph, write):
        own = (s for s in lines_of(graph.place_of(index)) if s[0] == write.place.cell)
        inside = next((s for s in own if source.function_at(cells.text(s[0]), s[1]) == function), None)
        line, statement = cells.beginning(inside), cells.statement(inside) if inside is not None else None
        if line is None or statement is None:
            return None
        parts = inplace_statements.parts_read(statement, written)
        text = cells.text(line[0])
        found[line] = tuple(e for part in parts for e in text_edit.insert_behind(line[0], text, part, ".clone()"))
        if not found[line]:
            return None
    return _reading_copies(cells, write, written, found, f"`{function[1].name}` modifies what it is given")


def _reading_copies(
    cells: Cells, write: Write, written: tuple[str, ...], found: dict[Spot, Edits], why: str
) -> Remedy | None:
    """Read copies in some lines; `found`: each with its edits."""
    first = min(found, default=None)
    if first is None:
        return None
    numbers = [str(line) for _, line in sorted(found)]
    if len(numbers) == 1:
        spot = f"{short(cells.line(first))} (In[{first[0]}], line {numbers[0]})"
    else:
        spot = f"In[{first[0]}], lines {', '.join(numbers[:-1])} and {numbers[-1]}"
    sentence = f"Read {_copies(written)} in {spot}: {why}."
    edits = tuple(edit for line in sorted(found) for edit in found[line])
    return Remedy("clone_before_inplace", sentence, first, edits, write, (), False, frozenset(found), written)


def reading_field(
    record: Record, call: BackwardCall, graph: Snapshot, write: Write, written: tuple[str, ...]
) -> Remedy | None:
    """Read copies in the lines that save a field to which nothing can be assigned: of a frozen dataclass, or a tuple.

    None where it is another attribute, or a line saves it that does not name it.
    """
    cells = Cells.of(record)
    field = source.last_name(written[0]) if len(written) == 1 and "." in written[0] else ""
    if not any(field in fields for text in cells.texts.values() for fields in source.fixed_fields(text)):
        return None
    found: dict[Spot, Edits] = {}
    for index in savers(call, graph, write):
        for spot in reversed(lines_of(graph.place_of(index))):
            line, statement = cells.beginning(spot), cells.statement(spot)
            nodes = list(ast.walk(statement)) if statement is not None else []
            parts = [one for one in nodes if isinstance(one, ast.Attribute) and one.attr == field]
            text = cells.text(spot[0])
            if line is not None and parts:
                found[line] = tuple(e for one in parts for e in text_edit.insert_behind(spot[0], text, one, ".clone()"))
                break
        else:
            return None
    why = f"{short(write.by)} ({where(write.place)}) modifies it, and nothing can be assigned to `{field}`"
    return _reading_copies(cells, write, written, found, why)


def _text_and_line(record: Record, place: Place) -> tuple[str, int]:
    return Cells.of(record).text(place.cell), place.line or 0


def read_as_a_copy(record: Record, remedy: Remedy, made: Place | None) -> bool:
    """Whether what a node has saved is a copy, with a remedy that reads copies.

    Also a node of a function that a line with a copy has called: it has what it was handed. It does not if the function
    reads the tensor by a name that both have.
    """
    cells, lines = Cells.of(record), lines_of(made)
    depth = next((at for at, spot in enumerate(lines) if cells.beginning(spot) in remedy.copies_in), None)
    return depth is not None and not any(_knows(cells, spot, remedy.copied) for spot in lines[depth + 1 :])


def _knows(cells: Cells, spot: Spot, written: Collection[str]) -> bool:
    """Whether the function of a line reads one of some names that it has in common with others."""
    function = source.function_at(cells.text(spot[0]), spot[1])
    if function is None:
        return False
    own = own_variables(function[1])
    read = {ast.unparse(node) for node in ast.walk(function[1]) if isinstance(node, (ast.Name, ast.Attribute))}
    return any(name in read and name not in own for name in written)


def written_as(record: Record, write: Write, new: str) -> Edits:
    """Write other text in place of the statement that writes."""
    spot, written = at(write.place), source.statement_of(write.by)
    if not new or spot is None or written is None:
        return ()
    text = Cells.of(record).text(spot[0])
    there = [*source.beginning_at(text, spot[1]), *source.statements_at(text, spot[1])[-1:]]
    same = next((s for s in there if not hasattr(s, "body") and ast.dump(s) == ast.dump(written)), None)
    return text_edit.replace_node(spot[0], text, same, new) if same is not None else ()
