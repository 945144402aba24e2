"""A `with` around a loop that keeps what the first pass has made, such as one that switches a cache on.

No name leads to what it keeps, and a line of the loop uses it although no variable has it. What a block keeps ends when
the block is left: inside the loop, each pass has its own. This is a guess that a trial decides.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.rerun.once_only import has_long_strings
from graphwidget.diagnosis.fixes.rerun.rerun import Rerun, begins_on_head_line
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import lines_of

__all__ = ["Keeper", "inside_its_loop", "keeper"]

_BLOCKS = (ast.With, ast.AsyncWith)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Loop = ast.For | ast.While


@dataclass(frozen=True)
class Keeper:
    """A `with`, and the loop inside it whose passes share what it may keep.

    Attributes
    ----------
    at, loop_at
        The (cell, line) of the `with`, and that of the loop, which may be in a function that the block calls.
    alone
        Whether the loop is in the block's own function, and no other such `with` is around it there.
    """

    block: ast.With | ast.AsyncWith
    at: Spot
    loop: _Loop
    loop_at: Spot
    alone: bool

    @property
    def head(self) -> str:
        """The line with which the block begins."""
        return f"with {', '.join(map(ast.unparse, self.block.items))}:"


def keeper(setting: Setting) -> Keeper | None:
    """The `with` around the loop of both calls, if no variable keeps what they share; None: there is none."""
    reuse, made = setting.reuse, setting.reuse.carrier_place
    if made is None or made.run != reuse.later.place.run or reuse.same_root or not setting.in_loop:
        return None
    if _is_named(setting):
        return None
    frames, found = _passes(setting), None
    while frames and found is None:
        found = next(reversed(_loops(setting, frames[-1])), None)
        spot = frames.pop()
    if found is None:
        return None
    loop, loop_at = found, (spot[0], found.lineno)
    for cell, line in (loop_at, *reversed(frames)):  # around the loop, or the call of the function that has it
        blocks = [one for one in _within(setting, (cell, line)) if isinstance(one, _BLOCKS) and not _has_name(one)]
        if blocks:
            alone = len(blocks) == 1 and (cell, line) == loop_at
            return Keeper(blocks[-1], (cell, blocks[-1].lineno), loop, loop_at, alone)
    return None


def inside_its_loop(setting: Setting) -> Rerun | None:
    """Put the `with` inside the loop; in words where the block is written in another way than the edit can keep."""
    found = keeper(setting)
    if found is None:
        return None
    where = f"inside the loop (In[{found.loop_at[0]}], line {found.loop_at[1]})"
    sentence = f"Put `{found.head}` (In[{found.at[0]}], line {found.at[1]}) {where}: it keeps what was computed once."
    text = setting.text_of_cell(found.at[0])
    edits = _moved(text, found) if found.alone else ()
    return Rerun(sentence if edits else sentence.replace("it keeps", "it may keep"), found.at, edits, sure=bool(edits))


def _is_named(setting: Setting) -> bool:
    """Whether a variable keeps the old part: one in sight, or one that the line that made it may still have.

    The variables of a function end when it returns, but not those of a generator.
    """
    reuse, made = setting.reuse, setting.reuse.carrier_place
    running = {setting.function_of(spot) for spot in lines_of(reuse.later.place)}
    ended = [spot for spot in lines_of(made) if setting.function_of(spot) not in running]
    functions = [source.function_at(setting.text_of_cell(cell), line) for cell, line in ended]
    nodes = [node for one in functions if one is not None for node in ast.walk(one[1])]
    if reuse.carrier_paths or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return True
    if not setting.carrier_names:
        return False
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return not ended or any(not name.isidentifier() or name in shared for name in setting.carrier_names)


def _passes(setting: Setting) -> list[Spot]:
    """The lines that lead to the later call, outermost first, as far as its pass uses the old part below them, too."""
    later = lines_of(setting.reuse.later.place)
    uses = [lines_of(place) for place in setting.reuse.uses_by(setting.reuse.later)]
    if not uses:
        return []
    shared = 0
    while all(one[:shared] == later[:shared] for one in uses) and shared < len(later):
        shared += 1
    function = {setting.function_of(one[shared - 1]) for one in uses if len(one) >= shared}
    return later[: shared if function == {setting.function_of(later[shared - 1])} else shared - 1]


def _within(setting: Setting, spot: Spot) -> list[ast.stmt]:
    """The statements around a line, within its function, outermost first."""
    around = source.statements_at(setting.text_of_cell(spot[0]), spot[1])[:-1]
    first = next((at for at in reversed(range(len(around))) if isinstance(around[at], _FUNCTIONS)), -1)
    return [one for one in around[first + 1 :] if isinstance(one, ast.stmt)]


def _loops(setting: Setting, spot: Spot) -> list[_Loop]:
    return [one for one in _within(setting, spot) if isinstance(one, (ast.For, ast.While))]


def _has_name(block: ast.With | ast.AsyncWith) -> bool:
    """``with open(path) as f``: what it kept would have been found by that name."""
    return any(item.optional_vars is not None for item in block.items)


def _moved(text: str, found: Keeper) -> Edits:
    """The block with its `with` around what each pass of the loop runs, and not around the loop.

    The other statements of the block stay in a block of their own, if they compute anything: they may need it.
    """
    block, loop, lines = found.block, found.loop, source.lines_of(text)
    way = _way(block.body, loop)
    if not way or len(block.items) > 1 or begins_on_head_line(loop) or has_long_strings([block]):
        return ()
    first, end = block.body[0], block.end_lineno or 0
    if first.lineno == block.lineno or any(";" in line for line in lines[block.lineno - 1 : end]):
        return ()
    before = [one for one in block.body if one.lineno < way[0].lineno]
    behind = [one for one in block.body if one.lineno > way[0].lineno]
    outer, inner = (_indentation(lines[one.lineno - 1]) for one in (block, first))
    head = lines[block.lineno - 1].strip()
    if not head.split("#")[0].rstrip().endswith(":") or not inner.startswith(outer):
        return ()

    def less(one: Sequence[str]) -> list[str]:
        return [outer + line[len(inner) :] if line.startswith(inner) else line for line in one]

    def part(from_line: int, to_line: int, statements: list[ast.stmt]) -> list[str]:
        own = lines[from_line - 1 : to_line]
        computes = any(isinstance(node, (ast.Call, ast.BinOp)) for one in statements for node in ast.walk(one))
        return [outer + head, *own] if computes else less(own)

    body, last = loop.body[0], loop.body[-1].end_lineno or 0
    depth = less([_indentation(lines[body.lineno - 1])])[0]
    new = [
        *lines[: block.lineno - 1],
        *part(block.lineno + 1, way[0].lineno - 1, before),
        *less(lines[way[0].lineno - 1 : body.lineno - 1]),
        depth + head,
        *lines[body.lineno - 1 : last],
        *less(lines[last : way[0].end_lineno]),
        *(part((way[0].end_lineno or 0) + 1, end, behind) if behind else []),
        *lines[end:],
    ]
    return text_edit.between(text, "\n".join(new) + ("\n" if text.endswith("\n") else ""), found.at[0])


def _way(body: list[ast.stmt], loop: _Loop) -> list[ast.stmt]:
    """The loops of a block that lead to one of them, the outermost first; empty: it is in something else."""
    for one in body:
        if one is loop:
            return [one]
        inside = _way(one.body, loop) if isinstance(one, (ast.For, ast.While)) else []
        if inside:
            return [one, *inside]
    return []


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
