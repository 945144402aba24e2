"""Empty the container that keeps the old part, once its elements have been used.

A simulation on the graph cannot show whether that helps: a loop over an emptied list ends early, without an error. Nor
can a trial, where a pass asks the list for its best element before it adds one: it runs, and has forgotten the others.
So a container is emptied only if the program surely fills it again before it reads it. This is read from the text; in
doubt there is no such fix. Or its old elements are terms of the loss, and nothing else: then they have no effect on any
gradient, whether they are detached or gone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.cuts.between_passes import after_call
from graphwidget.diagnosis.fixes.second_backward import earlier_call
from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.fixes.second_backward.filled_together import filled, filled_beside
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.containers import begins_empty
from graphwidget.diagnosis.source.dataflow.running import in_running_order
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import lines_of
from graphwidget.model import Fix


def makes_sense(case: Case) -> bool:
    """Whether the carriers are elements of containers that each pass fills again, before it reads them."""
    return bool(_emptied(case))


def keeps_old_terms(case: Case) -> bool:
    """Whether the carriers are elements of a container of which one line reads all, as terms of the loss."""
    return bool(_with_old_terms(case))


def propose(case: Case) -> Fix:
    """``memory.clear()`` after the earlier call."""
    reuse, emptied = case.reuse, _emptied(case) or _with_old_terms(case)
    names, clear = " and ".join(f"`{path}`" for path in emptied), [_clearing(case, path) for path in emptied]
    at = after_call(case.setting, reuse.earlier, reuse.later.carriers[:1])
    edits: Edits = ()
    if at is not None:
        edits = text_edit.insert_after(at[0], case.setting.text_of_cell(at[0]), at[1], clear)
    shown = ", ".join(f"`{line}`" for line in clear)
    text = f"Empty {names} after {earlier_call.named(reuse.earlier)}: {shown}."
    price = "What it holds is used once." if len(emptied) == 1 else "What they hold is used once."
    return Fix(id="clear_buffer", text=text, verified=case.works_if_fresh, at=at, price=price, edits=edits)


def _emptied(case: Case) -> list[str]:
    """The containers to empty: those that hold the carriers, and what is filled together with them. Empty: not so."""
    paths = [path for path in case.reuse.carrier_paths if "[" in path]
    held = list(dict.fromkeys(local(path).split("[", 1)[0] for path in paths))
    if len(paths) < 2 or len(paths) < len(case.reuse.carrier_paths):
        return []
    texts = [run.source for run in case.setting.reuse.record.runs.values()]
    if not all(_is_refilled(case.setting, path) for path in held):
        return []
    beside = filled_beside(texts, _runs_again(case.setting), held)
    if beside is None or not all(_is_refilled(case.setting, path) for path in beside):
        return []
    return [*held, *beside]


def _with_old_terms(case: Case) -> list[str]:
    """The container whose old elements are only added to the loss; empty: there is none, or it is read elsewhere."""
    paths = [local(path) for path in case.reuse.carrier_paths]
    held = {path.split("[", 1)[0] for path in paths}
    if len(held) != 1 or not all("[" in path for path in paths):
        return []
    if not case.setting.adds_the_old_part or case.setting.divides_by_their_number:
        return []
    (container,) = held
    added = (o for o in case.reuse.graph.owners if o.node in case.reuse.new)
    if not any(local(one.path).startswith(f"{container}[") for one in added):
        return []  # this pass has put nothing in
    texts = [run.source for run in case.setting.reuse.record.runs.values()]
    uses = _Uses(texts, container.rsplit(".", 1)[-1])
    steps = [s for text in texts for s in syntax.nodes_of(text) if isinstance(s, ast.stmt) and not hasattr(s, "body")]
    reading = [s for s in steps if uses.mentions(s) and not uses.fills(s) and not uses.makes(s)]
    put_in = {name for s in steps for whole in filled(s) for name in syntax.words_in(whole)} - {uses.name}
    alone = len(reading) == 1 and not put_in & (syntax.words_in(reading[0]) - {"self"})
    heads = any(uses.mentions(_head(s)) for text in texts for s in syntax.nodes_of(text) if isinstance(s, syntax.LOOPS))
    return [container] if alone and not heads and begins_empty(texts, container) else []


def _clearing(case: Case, container: str) -> str:
    """``memory.clear()``; of a dict of lists each list."""
    keyed = (local(path)[len(container) :] for path in case.reuse.carrier_paths if local(path).startswith(container))
    if any(re.match(r"\[['\"].*\]\[", rest) for rest in keyed):
        return f"for each in {container}.values(): each.clear()"
    return f"{container}.clear()"


def _is_refilled(setting: Setting, container: str) -> bool:
    """Whether a container can be emptied after the earlier call.

    The code that runs again is the loop around the call, or the cell that was run again. It has to put something in
    before it reads the container; a loop over the container, or one that runs while it has something, would end early.
    """
    texts = [run.source for run in setting.reuse.record.runs.values()]
    if not begins_empty(texts, container):
        return False
    uses = _Uses(texts, container.rsplit(".", 1)[-1])
    loops = list(_loops(setting))
    if any(uses.mentions(_head(loop)) for loop in loops):
        return False
    return uses.first(_runs_again(setting)) == "fill"


def _runs_again(setting: Setting) -> list[ast.stmt]:
    """The statements of a pass: those of the loop around both calls, or of the cell that was run again."""
    loops = list(_loops(setting))
    return loops[-1].body if loops else _cell_again(setting)


def _loops(setting: Setting) -> Iterator[ast.For | ast.While]:
    """The loops around both calls: the innermost one of each function that was running, that of the call first."""
    if not setting.in_loop:
        return
    place = setting.reuse.later.place
    run = setting.run_of(place)
    lines = [(setting.text_of_cell(cell), line) for cell, line in reversed(lines_of(place))]
    for cell, line in dict.fromkeys((*lines, (run.source if run else "", place.outer_line))):
        around = syntax.statements_at(cell, line)[:-1] if line is not None else []
        yield from (s for s in around if isinstance(s, (ast.For, ast.While)))


def _head(loop: ast.For | ast.While) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.test


def _cell_again(setting: Setting) -> list[ast.stmt]:
    run = setting.run_of(setting.reuse.later.place)
    tree = syntax.parse(run.source) if run is not None and setting.same_cell_again else None
    return tree.body if tree is not None else []


class _Uses:
    """The order in which statements fill and read a container, through the functions that they call."""

    def __init__(self, texts: Collection[str], name: str) -> None:
        self.texts, self.name = texts, name

    def mentions(self, node: ast.AST) -> bool:
        """Whether a node names the container, as a variable or an attribute."""
        return any(self.name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in ast.walk(node))

    def first(self, body: Collection[ast.stmt]) -> str | None:
        """What comes first in some statements, ``fill`` or ``read``; None: neither."""
        named = (step for step in in_running_order(self.texts, body) if self.mentions(step))
        return next(("fill" if self.fills(step) else "read" for step in named), None)

    def fills(self, step: ast.stmt) -> bool:
        """Whether all that a step does to the container is to put something in."""
        named = [n for n in ast.walk(step) if self.name in (getattr(n, "id", None), getattr(n, "attr", None))]
        return len(named) == 1 and named[0] in list(filled(step))

    def makes(self, step: ast.stmt) -> bool:
        """Whether a step only assigns a container: ``self.acts, self.weight = [], 0.1``."""
        assigned = {name.rsplit(".", 1)[-1] for name in syntax.targets(step)}
        value = syntax.given(step)
        return self.name in assigned and not self.mentions(value)
