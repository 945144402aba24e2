"""A line that cuts off, on the way to the root of a backward, what is computed from the parameters of an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from graphwidget.diagnosis.fixes import restore_graph
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.no_graph.twins import twin_fix
from graphwidget.diagnosis.no_graph.way_forward import cuts_behind
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, root_name, short, where
from graphwidget.model import BackwardCall, Fix, Record

__all__ = ["cut_before_root", "cut_elsewhere", "uncut"]

MOST_FOLLOWED = 4  # parameters whose use is looked for in the text


def cut_before_root(record: Record, call: BackwardCall, paths: tuple[str, ...]) -> Cut | None:
    """The line in a backward's function that cuts off values from one of some parameters, and leads to its root."""
    spot, cells = at(call.place), Cells.of(record)
    if spot is None:
        return None
    text = cells.text(spot[0])
    leading = _leading_to(text, spot[1], root_name(call))
    for path in paths[:MOST_FOLLOWED]:
        for cut in cuts_behind(record, path, call=call):
            if cut.run.cell == spot[0] and any(one is cut.statement for one in leading):
                return cut
    return None


def cut_elsewhere(record: Record, call: BackwardCall, paths: tuple[str, ...]) -> Cut | None:
    """The line in another function that cuts off values from some parameters, where it was measured to be the only one.

    It was also measured that a call began behind it.
    """
    followed = paths[:MOST_FOLLOWED] if record.lineage is not None else ()
    found = [cut for path in followed for cut in cuts_behind(record, path, call=call)]
    alone = len({(cut.run.run, cut.statement.lineno) for cut in found}) == 1
    return found[0] if alone and not _is_beside(found[0], call) else None


def _leading_to(text: str, line: int, root: str) -> list[ast.stmt]:
    """The statements before a line, in its function or cell, from whose values a name was computed."""
    inside, tree = syntax.function_at(text, line), syntax.parse(text)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    before = [one for one in syntax.own_statements(body) if one.lineno < line and not hasattr(one, "body")]
    names, found = {root}, list[ast.stmt]()
    for one in sorted(before, key=lambda one: one.lineno, reverse=True):
        if names & set(syntax.targets(one)):
            found.append(one)
            names |= syntax.paths_read(one)
    return found


def uncut(record: Record, call: BackwardCall, cut: Cut) -> Fix:
    """Compute the value without the cut: in its line, or once more where another loss needs the line as it is."""
    cell, text, statement = cut.run.cell, cut.run.source, cut.statement
    place = place_of(cut.run, statement.lineno)
    shown = f"{short(ast.unparse(statement))} ({where(place)})"
    if cut.around is None and (twin := twin_fix(record, cut.run, statement, cut.by)) is not None:
        return replace(twin, text=f"If they should train by this loss: {twin.text[0].lower()}{twin.text[1:]}")
    if not _is_beside(cut, call):
        fix = cause_of(record, cut).fix
        return replace(fix, text=f"{fix.text.rstrip('.')}, if they should train by this loss.", verified=False)
    edits: text_edit.Edits = ()
    if cut.around is not None or cut.by not in restore_graph.LEFT_OUT:
        how = f"take the line out of `{cut.by}`" if cut.around is not None else f"do without `{cut.by}` in {shown}"
        return Fix("find_the_cut", f"If they should train by this loss, {how}.", False, at(place))
    edits = restore_graph.without(cell, text, statement, cut.by)
    targets = set(syntax.targets(statement))
    leading = _leading_to(text, call.place.line or 0, root_name(call))
    behind = _until_given_anew(syntax.behind(text, statement), targets)
    users = [one for one in reversed(leading) if one in behind and targets & syntax.paths_read(one)]
    others = [one for one in behind if one not in leading and not syntax.blocks_of(one)]  # a block's lines are in it
    if not any(targets & syntax.paths_read(one) for one in others):
        return Fix("find_the_cut", f"Write {shown} without `{cut.by}`.", False, at(place), edits=edits)
    name = next(iter(targets), "")
    again = f"{name}_again"
    whole = syntax.statement_of(text_edit.new_text(text, edits).strip())
    value = ast.unparse(syntax.given(whole)) if whole is not None else ""
    edits = ()
    if name.isidentifier() and len(targets) == 1 and value and users and again not in text:
        edits = text_edit.insert_before(cell, text, users[0], [f"{again} = {value}"])
        reads = (node for one in users for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == name)
        for node in reads:
            edits += text_edit.replace_node(cell, text, node, again)
    words = f"Compute `{name}` for this loss once more, without `{cut.by}`: {short(value, 80)}. {shown} is for another."
    return Fix("find_the_cut", words, False, at(place), edits=edits)


def _is_beside(cut: Cut, call: BackwardCall) -> bool:
    """Whether a cut is in the function that makes a call."""
    text, line = cut.run.source, call.place.line or 0
    inside = [syntax.function_at(text, one) for one in (line, cut.statement.lineno)]
    return cut.run.cell == call.place.cell and inside[0] == inside[1]


def _until_given_anew(statements: Iterable[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Statements up to the one that gives one of some names another value: ``score = score.mean()``."""
    found: list[ast.stmt] = []
    for one in sorted(statements, key=lambda one: one.lineno):
        found.append(one)
        if names & set(syntax.targets(one)) and not hasattr(one, "body"):
            break
    return found
