"""An object made before a loop that keeps what the first pass has computed: ``output = gp(x)``, and its lazy parts."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.fixes.rerun.statements import Target
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.wording import lasting_name

__all__ = ["holder"]


def holder(setting: Setting, target: Target) -> list[Statement]:
    """The statement that made the object in whose inside the carrier is; empty where none is to run again.

    A module, or what else holds leaves, is not made again: nothing would train it.
    """
    path, run = Carrier(setting).path, setting.run_of(setting.reuse.later.place)
    if path is None or run is None or target.loop is None or run.cell != target.cell:
        return []
    root = root_of(local(path))
    if root == local(path) or root in _with_leaves(setting):
        return []
    block = syntax.block_of(target.text, target.loop)
    made = [one for one in block if one.lineno < target.loop.lineno and root in syntax.targets(one)]
    if not made or not isinstance(made[-1], ast.Assign) or not isinstance(made[-1].value, ast.Call):
        return []
    return [Statement(run, made[-1])]


def _with_leaves(setting: Setting) -> set[str]:
    """The variables through which leaves have their names."""
    record, graph = setting.reuse.record, setting.reuse.graph
    return {root_of(local(lasting_name(record, leaf.paths))) for leaf in graph.leaves.values() if leaf.paths}
