"""A loop over what was made once: each pass makes it again, and takes its item from there.

``for loss in losses: …; loss.backward(); opt.step()`` has one graph for all its passes.
"""

from __future__ import annotations

import ast

from graphwidget.diagnosis.fixes.rerun.readers import are_read
from graphwidget.diagnosis.fixes.rerun.rerun import Rerun, quoted
from graphwidget.diagnosis.fixes.rerun.statements import Target, statements_to_rerun
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit

__all__ = ["by_position"]

_INDICES = ("i", "k", "n", "position")


def by_position(setting: Setting, target: Target, everything: bool) -> Rerun | None:
    """``for i in range(len(losses)):``, with the lines that make `losses` and ``loss = losses[i]`` in it."""
    loop = target.loop
    iterated = _iterated(target.text, loop) if isinstance(loop, ast.For) and not loop.orelse else None
    if not isinstance(loop, ast.For) or iterated is None:
        return None
    name, index, item = iterated
    again = statements_to_rerun(setting, target, everything, by_position=True)
    if not any(name in syntax.targets(one.node) for one in again):
        return None
    if not are_read(setting, again, (target.cell, target.line), syntax.names_in(loop.target)):
        return None
    head = f"for {index} in range(len({name})):"
    new = (*(line for one in again for line in one.lines), f"{item} = {name}[{index}]")
    edits = (
        *text_edit.replace_node(target.cell, target.text, loop.target, index),
        *text_edit.replace_node(target.cell, target.text, loop.iter, f"range(len({name}))"),
        *text_edit.insert_before(target.cell, target.text, target.statement, new),
    )
    sentence = f"Compute {quoted(again)} in each pass, and take `{item}` from it: `{head}`."
    return Rerun(sentence, (target.cell, loop.lineno), edits)


def _iterated(text: str, loop: ast.For) -> tuple[str, str, str] | None:
    """What a loop goes through, the name of a position, and that of an item. None: that cannot be written."""
    over, item, index = loop.iter, loop.target, ""
    if isinstance(over, ast.Call) and ast.unparse(over.func) == "enumerate" and len(over.args) == 1:
        if over.keywords or not isinstance(item, ast.Tuple) or len(item.elts) != 2:
            return None
        index, over, item = ast.unparse(item.elts[0]), over.args[0], item.elts[1]
    if not isinstance(over, ast.Name) or not (index or isinstance(item, (ast.Name, ast.Tuple))):
        return None
    tree = syntax.parse(text)
    used = syntax.names_in(tree) if tree is not None else set[str]()
    index = index or next((one for one in _INDICES if one not in used), "")
    return (over.id, index, ast.unparse(item)) if index.isidentifier() else None
