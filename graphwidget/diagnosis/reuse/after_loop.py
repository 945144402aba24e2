"""What the program does after the loop that makes both calls, as its text shows."""

from __future__ import annotations

import ast
import re

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.pytorch.optimizers import acts_of_training
from graphwidget.diagnosis.source.running import in_running_order
from graphwidget.diagnosis.wording import lines_of

__all__ = ["drops_the_gradients"]


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
