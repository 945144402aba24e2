"""Parameters that were measured to come into a module after an optimizer had been made of everything there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, parts_of
from graphwidget.diagnosis.findings.silences.unheld.replaced import modules_of
from graphwidget.diagnosis.no_graph.measured import run_of, statements
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, spoken, where
from graphwidget.model import Finding, Fix, MeasuredJoined, Record, TextLine, UnheldLeaf

__all__ = ["came_later", "is_at_rest", "joined_at", "may_be_there"]


class _Frame(NamedTuple):
    """A statement that was running, and its function; None: it is outside of functions."""

    line: Line
    within: tuple[ast.ClassDef | None, ast.FunctionDef] | None

    @property
    def spot(self) -> tuple[int, int]:
        return self.line.run.run, self.within[1].lineno if self.within is not None else 0


class _Mended(NamedTuple):
    how: str
    edits: Edits
    behind: Line


def may_be_there(record: Record) -> bool:
    """Whether another run, which watches what modules are given, may find which line put parameters there."""
    return any(leaf.parameter and not leaf.waiting and leaf.container is None for leaf in record.unheld)


def is_at_rest(record: Record, leaf: UnheldLeaf) -> bool:
    """Whether the program says of a part around a leaf that it was trained before, or does not train."""
    texts = [run.source for run in record.runs.values()]
    for name in (one for one in parts_of(leaf.path)[1:-1] if one.isidentifier() and one != "parametrizations"):
        said = rf"\b{name}\b[^=\n]*\.eval\(|\b{name}\b *=[^\n]*(deepcopy|pretrained|\.load|\.eval\()"
        if any(re.search(said, text) for text in texts):
            return True
    return False


def joined_at(record: Record, leaf: UnheldLeaf) -> MeasuredJoined | None:
    """What was measured of a leaf; None: nothing, or not which line it was."""
    every = record.lineage.joined if record.lineage is not None else ()
    path = spoken(leaf.path)
    found = [one for one in every if path in map(spoken, one.paths)] or (list(every) if leaf.orphans else [])
    return found[0] if len({one.lines for one in found}) == 1 and _known(record, found[0].lines) else None


def came_later(record: Record, later: list[tuple[MeasuredJoined, UnheldLeaf]]) -> Iterator[Finding]:
    """Yield one finding for the leaves of each optimizer that one statement beside it led to."""
    groups: dict[tuple[object, ...], list[tuple[MeasuredJoined, UnheldLeaf]]] = {}
    for one, leaf in later:
        lead = _beside(_known(record, one.made), _known(record, one.lines))[1]
        spot = (lead.line.run.run, lead.line.statement.lineno) if lead is not None else one.lines
        groups.setdefault((one.made, spot), []).append((one, leaf))
    for group in groups.values():
        yield _of(record, [one for one, _ in group], [leaf for _, leaf in group])


def _of(record: Record, every: list[MeasuredJoined], leaves: list[UnheldLeaf]) -> Finding:
    one, shown, puts = every[0], named(leaves), dict[str, Line]()
    for each in every:
        line = _known(record, each.lines)[-1].line
        puts.setdefault(line.shown, line)
    put, maker = next(iter(puts.values())), _maker(record, one)
    it, orphaned = ("it" if len(shown) == 1 else "them"), any(each.replacing for each in every)
    ran = f" when {maker.shown} ran" if maker is not None else " before"
    what = f"the parameters that `{module}` had" if maker is not None and (module := _module(maker)) else "those"
    did = f"replaced what was there by {it}" if orphaned else f"put {it} into the module"
    others = len(puts) - 1
    also = {0: "", 1: f" and {[*puts][-1]}"}.get(others, f" and {others} other lines")
    why = f"{put.shown}{also} {did}. The optimizer was made of {what}{ran}"
    why += ". It goes on with old ones, which nothing computes with any more." if orphaned else "."
    mended = _mended(record, one, maker)
    return finding_of(
        shown,
        put.place,
        why,
        leaves,
        Fix("new_optimizer", mended.how, False, at(mended.behind.place), edits=mended.edits),
    )


def _known(record: Record, lines: Sequence[TextLine]) -> list[_Frame]:
    """The statements at some lines, the outermost first, as far as their texts are known."""
    found: list[_Frame] = []
    for line in reversed(lines):
        here = next(statements(record, (line,)), None)
        if run_of(record, line) is None or here is None:
            return found
        found.append(_Frame(Line(*here), syntax.function_at(here[0].source, line.line)))
    return found


def _maker(record: Record, one: MeasuredJoined) -> Line | None:
    """The innermost statement that made the optimizer: where a lambda does, the one that called it."""
    frames = _known(record, one.made)
    return next((frame.line for frame in reversed(frames) if not _in_lambda(frame.line)), None)


def _in_lambda(line: Line) -> bool:
    inner = (node.body for node in ast.walk(line.statement) if isinstance(node, ast.Lambda))
    return any(OPTIMIZER.search(ast.unparse(body)) for body in inner)


def _module(maker: Line) -> str:
    """The only module of which everything was given to an optimizer."""
    found = dict.fromkeys(modules_of(maker) or _asked_for(maker.statement))
    return next(iter(found)) if len(found) == 1 else ""


def _asked_for(statement: ast.stmt) -> Iterator[str]:
    """What a statement asks for its parameters, where it does not show that it makes an optimizer."""
    for call in ast.walk(statement):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "parameters":
            yield ast.unparse(call.func.value)


def _mended(record: Record, one: MeasuredJoined, maker: Line | None) -> _Mended:
    """How the optimizer gets them: it is made later, or they earlier; else it is given them."""
    put = _known(record, one.lines)
    made, first = _beside(_known(record, one.made), put)
    if made is not None and first is not None:
        step = _beside(_known(record, one.stepped), put)
        alone = step[1] is None or step[0] is None or step[0].line.statement is not step[1].line.statement
        behind = _in_block(made.line, first.line)
        edits = _later(made.line, behind) or _earlier(made.line, behind) if alone and behind is not None else ()
        if edits:
            return _Mended(_said(made.line, behind or first.line), edits, made.line)
    step_frame, lead = _beside(_known(record, one.stepped), put)
    if step_frame is not None and lead is not None and maker is not None:
        owner, module = _owner(step_frame.line), _module_there(maker, lead)
        edits = _added(lead.line, owner, module) if owner and module else ()
        if edits:
            how = f"Add what `{module}` has got to `{owner}`, behind {lead.line.shown}. Or make the optimizer after it."
            return _Mended(how, edits, lead.line)
    last = put[-1].line
    how = f"Make {_whose(maker)} after that line ({where(last.place)}), so that it gets the parameters of now"
    return _Mended(f"{how}. Or give it them there, by `add_param_group`.", (), maker or last)


def _whose(maker: Line | None) -> str:
    owner = next(iter(syntax.targets(maker.statement)), "") if maker is not None else ""
    return f"`{owner}`" if owner else "the optimizer"


def _said(made: Line, behind: Line) -> str:
    block = "the block of " if hasattr(behind.statement, "body") else ""
    return f"Make {_whose(made)} after {block}{behind.shown}, so that it gets the parameters of now."


def _beside(one: Sequence[_Frame], other: Sequence[_Frame]) -> tuple[_Frame | None, _Frame | None]:
    """The statements in the innermost function that was running both times."""
    found: tuple[_Frame | None, _Frame | None] = (None, None)
    for pair in zip(one, other):
        if pair[0].spot != pair[1].spot:
            break
        found = pair
        if pair[0].line.statement is not pair[1].line.statement:
            break  # from here on these are different calls
    return found


def _in_block(made: Line, line: Line) -> Line | None:
    """The statement behind the maker, in its block, that is a line or has it inside."""
    for each in syntax.behind(made.run.source, made.statement):
        if made.run is line.run and each.lineno <= line.statement.lineno <= (each.end_lineno or each.lineno):
            return Line(made.run, each)
    return None


def _between(made: Line, behind: Line) -> list[ast.stmt]:
    return [one for one in syntax.behind(made.run.source, made.statement) if one.lineno < behind.statement.lineno]


def _later(made: Line, behind: Line | None) -> Edits:
    """The maker behind the statement that puts them there, if nothing up to there reads what it makes."""
    text, cell = made.run.source, made.run.cell
    own = {root_of(name) if "." not in name else name for name in syntax.targets(made.statement)}
    if behind is None or not own or hasattr(made.statement, "body"):
        return ()
    every = (*_between(made, behind), behind.statement)
    if any(own & (syntax.paths_read(one) | syntax.names_in(one)) for one in every) or _assigned(every, made):
        return ()
    lines = text_edit.statement_lines(text, made.statement)
    insert = text_edit.insert_behind_block if hasattr(behind.statement, "body") else text_edit.insert_after
    new = insert(cell, text, behind.statement, lines)
    return (*text_edit.remove(cell, text, made.statement), *new) if new else ()


def _assigned(statements: Sequence[ast.stmt], made: Line) -> bool:
    """Whether statements assign anew what the maker reads, but for what it takes the parameters of."""
    modules = {root_of(name) for name in (*modules_of(made), *_asked_for(made.statement))}
    read = syntax.names_in(made.statement) - modules
    return any(read & syntax.bound(one) for one in statements)


def _earlier(made: Line, behind: Line | None) -> Edits:
    """The statement that puts them there before the maker, if it reads nothing that is made from there on."""
    text, cell = made.run.source, made.run.cell
    if behind is None:
        return ()
    before = (made.statement, *_between(made, behind))
    names = {root_of(name) for one in before for name in syntax.targets(one)}.union(*map(syntax.bound, before))
    if names & syntax.names_in(behind.statement) or any(map(_may_change, before[1:])):
        return ()
    lines = text_edit.statement_lines(text, behind.statement)
    new = text_edit.insert_before(cell, text, made.statement, lines)
    return (*new, *text_edit.remove(cell, text, behind.statement)) if new else ()


def _may_change(statement: ast.stmt) -> bool:
    """Whether a statement may do something beside assigning: then their order may matter."""
    return not isinstance(statement, (ast.Assign, ast.AnnAssign))


def _owner(stepped: Line) -> str:
    """The optimizer whose step a statement calls."""
    calls = [node.func for node in ast.walk(stepped.statement) if isinstance(node, ast.Call)]
    steps = [one for one in calls if isinstance(one, ast.Attribute) and one.attr == "step"]
    return ast.unparse(steps[0].value) if len(steps) == 1 else ""


def _module_there(maker: Line, lead: _Frame) -> str:
    """The module of which the optimizer took everything, as the function of a statement names it; empty: unknown."""
    module = _module(maker)
    inside = syntax.function_at(maker.run.source, maker.statement.lineno)
    if not module or (maker.run is lead.line.run and inside == lead.within):
        return module
    if inside is not None and lead.within is not None and maker.run is lead.line.run and inside[0] is not None:
        if inside[0] is not lead.within[0]:
            return ""
        if root_of(module) == "self":
            return module
        kept = (
            name
            for one in ast.walk(inside[1])
            if isinstance(one, ast.Assign) and ast.unparse(one.value) == module
            for name in syntax.targets(one)
        )
        return next((name for name in kept if name.startswith("self.")), "")
    return ""


def _added(lead: Line, owner: str, module: str) -> Edits:
    """Give the optimizer what the module has got, behind a statement."""
    used = {node.id for node in syntax.nodes_of(lead.run.source) if isinstance(node, ast.Name)}
    known, late = (name if name not in used else f"{name}_parameters" for name in ("known", "late"))
    lines = [
        f'{known} = {{id(p) for group in {owner}.param_groups for p in group["params"]}}',
        f"if {late} := [p for p in {module}.parameters() if p.requires_grad and id(p) not in {known}]:",
        f'    {owner}.add_param_group({{"params": {late}}})',
    ]
    insert = text_edit.insert_behind_block if hasattr(lead.statement, "body") else text_edit.insert_after
    return insert(lead.run.cell, lead.run.source, lead.statement, lines)
