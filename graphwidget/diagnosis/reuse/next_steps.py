"""Which steps follow the two calls, as the text shows: after their loop, and behind the later one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.dataflow.running import in_running_order
from graphwidget.diagnosis.source.pytorch.optimizers import acts_of_training
from graphwidget.diagnosis.wording import lines_of
from graphwidget.engine.what_if import reachable
from graphwidget.model import Kind

__all__ = ["drops_the_gradients", "is_for_another_optimizer"]

_GROUPS = ".param_groups["  # in the paths of leaves that an optimizer holds


def drops_the_gradients(setting: Setting) -> bool:
    """Whether no step uses what the loop gives to leaves that its own steps do not change.

    The program clears gradients after the loop, before any further step: ``for i in range(5): critic_step(fake)``, then
    ``netG.zero_grad()``. Or no step follows, and they have been trained before.
    """
    own = {word for write in setting.reuse.steps_between for path in (write.by, *write.paths) for word in _words(path)}
    after = _after_loop(setting)
    for step in after or ():
        for holder, verb in acts_of_training(step):
            if _words(holder)[-1] not in own:
                return verb == "zero_grad"
    return after is not None and _have_been_trained(setting)


def _have_been_trained(setting: Setting) -> bool:
    """Whether steps have changed all leaves of the old part, before the loop: that was another stage of the program."""
    stepped = {path for write in setting.reuse.record.writes if write.optimizer for path in write.paths}
    leaves = [setting.reuse.graph.leaves.get(index) for index in setting.reuse.starved]
    return all(leaf is not None and stepped.intersection(leaf.paths) for leaf in leaves)


def _words(path: str) -> list[str]:
    return re.findall(r"\w+", path) or [path]


def _after_loop(setting: Setting) -> list[ast.stmt] | None:
    """The statements that follow the innermost loop around the later call, in order; None: there is no such loop."""
    texts = [run.source for run in setting.reuse.record.runs.values()]
    found: list[ast.stmt] | None = None
    for cell, line in reversed(lines_of(setting.reuse.later.place)):
        text = setting.text_of_cell(cell)
        inner: ast.stmt | None = None
        for around in reversed(syntax.statements_at(text, line)):
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
            if isinstance(around, syntax.LOOPS):
                again = [one for one in around.body if found is not None and one is not inner]
                found = [*(found or ()), *in_running_order(texts, again)]
            if found is not None:
                found += in_running_order(texts, syntax.behind(text, around))
            inner = around
    return found


# ------------------------------------------------------------------ behind the later call


def is_for_another_optimizer(reuse: Reuse) -> bool:
    """Whether the old part has had its step, and the step behind the later call is of an optimizer of other leaves.

    A GAN that trains its generator first is one: the discriminator then learns from the same images, and the gradients
    that this gives to the generator are cleared before its next step.
    """
    if not reuse.steps_modified_the_old_part:
        return False
    inside = {i for i in reachable(reuse.graph, reuse.boundary) if reuse.graph.kind[i] == Kind.ACCUMULATE}
    reached = set(reachable(reuse.graph, (root.node for root in reuse.later.roots)))
    mine, others = _optimizers(reuse, reuse.exclusive_leaves), _optimizers(reuse, reached - inside)
    stepped = next((holder for holder, verb in _behind(reuse) if verb == "step"), "")
    last = syntax.last_name(stepped)
    return bool(last) and last in others - mine and _is_cleared_first(reuse, mine)


def _optimizers(reuse: Reuse, leaves: Iterable[int]) -> set[str]:
    """The last names of the optimizers that hold some leaves."""
    paths = (path for i in leaves if (leaf := reuse.graph.leaves.get(i)) is not None for path in leaf.paths)
    return {syntax.last_name(path.split(_GROUPS)[0]).split(":")[-1] for path in paths if _GROUPS in path}


def _behind(reuse: Reuse) -> Iterable[tuple[str, str]]:
    """What a block trains behind the later call, in order."""
    text, line = Cells.of(reuse.record).text(reuse.later.place.cell), reuse.later.place.line
    found = syntax.beginning_at(text, line) if line is not None else []
    for statement in syntax.behind(text, found[-1]) if found else ():
        yield from acts_of_training(statement)


def _is_cleared_first(reuse: Reuse, optimizers: set[str]) -> bool:
    """Whether the first that a block, or the next pass of its loop, does with an optimizer is to clear gradients."""
    text, line = Cells.of(reuse.record).text(reuse.later.place.cell), reuse.later.place.line or 0
    loops = syntax.loops_around(text, line)
    again = [act for one in loops[-1].body for act in acts_of_training(one)] if loops else []
    for holder, verb in (*_behind(reuse), *again):
        if syntax.last_name(holder) in optimizers:
            return verb == "zero_grad"
    return not loops
