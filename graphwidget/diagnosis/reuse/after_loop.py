"""What the program does after the loop that makes both calls, as its text shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.running import in_running_order
from graphwidget.diagnosis.wording import lines_of

__all__ = ["clears_the_gradients"]


def clears_the_gradients(setting: Setting) -> bool:
    """Whether the program clears gradients after the loop, before any step that the loop itself does not make.

    ``for i in range(5): critic_step(fake)``, then ``netG.zero_grad()``: no step uses what the loop gave to `netG`.
    """
    own = {word for write in setting.reuse.steps_between for path in (write.by, *write.paths) for word in _words(path)}
    for step in _after_loop(setting):
        for called in syntax.calls_in(step):
            holder, _, verb = called.rpartition(".")
            if verb in ("zero_grad", "step", "backward") and (_words(holder) or [""])[-1] not in own:
                return verb == "zero_grad"
    return False


def _words(path: str) -> list[str]:
    return re.findall(r"\w+", path)


def _after_loop(setting: Setting) -> Iterator[ast.stmt]:
    texts = [run.source for run in setting.reuse.record.runs.values()]
    left = False  # the innermost loop around the call
    for cell, line in reversed(lines_of(setting.reuse.later.place)):
        text = setting.text_of_cell(cell)
        for around in reversed(syntax.statements_at(text, line)):
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
            if left and isinstance(around, syntax.LOOPS):
                yield from in_running_order(texts, around.body)
                return
            left = left or isinstance(around, syntax.LOOPS)
            if left:
                yield from in_running_order(texts, syntax.behind(text, around))
