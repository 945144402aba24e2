"""Cuts before the first line of a pass that uses the state which an earlier pass has left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.fixes.cuts.inner_loops import first_in_pass
from graphwidget.diagnosis.fixes.cuts.state import Use, edges, with_the_name
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.tensor_or_not import when_tensor
from graphwidget.diagnosis.wording import short, spoken

__all__ = ["before_use"]


def before_use(context: CuttingContext, uses: Sequence[Use]) -> Iterator[Cut]:
    """Detach the state before a line of a pass that reads it."""
    for use in uses:
        cut = _before_use(context, use)
        if cut is not None:
            yield cut


def _before_use(context: CuttingContext, use: Use) -> Cut | None:
    """Detach the state before a statement that reads it."""
    text = context.text(use.spot)
    lines: list[str] = []
    sure = True
    for path in use.paths:
        names = [name for name in context.paths if use.means(path, name)]
        if "." not in path:
            names = [f"{path}{inside}" for inside in _inside(context, path)]
        if not names:  # it may be a tensor, or a tuple of them
            return _of_unknown_form(context, use, path)
        elements = [name for name in names if local(name).endswith("]")]
        new = [f"{path} = {path}.detach()"]
        if elements or context.detaching.is_field(path):
            new = with_the_name(context.detaching.lines(names), names, path)
        sure = sure and (not elements or context.detaching.sure(names))
        if context.detaching.is_field(path) and any(line.startswith(f"{path} = ") for line in new):
            return None
        first = first_in_pass(context, use.spot, use.statement, use.paths)
        condition = when_tensor(context.cells, (use.spot[0], (first[0] if first else use.statement).lineno), path)
        if condition:
            new = [f"if {condition}:", *(f"    {line}" for line in new)]
        lines += new
    gone = edges(context, use)
    before = first_in_pass(context, use.spot, use.statement, use.paths)
    if not lines or not gone or before is None:
        return None
    statement, heads = before
    for head in reversed(heads):
        lines = [f"{head}:", *(f"    {line}" for line in lines)]
    shown = short("; ".join(line.strip() for line in lines).replace(":; ", ": "), 120)
    sentence = f"Cut the graph between passes: {shown} before In[{use.spot[0]}], line {statement.lineno}."
    edits = text_edit.insert_before(use.spot[0], text, statement, lines)
    return Cut(sentence, (use.spot[0], statement.lineno), edits, gone, sure=sure)


def _inside(context: CuttingContext, name: str) -> list[str]:
    """What leads from a local variable to the carriers, by their names elsewhere: ``[0]`` for ``chunk.carry[0]``.

    An empty text: the variable is the carrier itself.
    """
    found = (re.fullmatch(rf"(?:.*\.)?{re.escape(name)}((?:\[[^]]*\])*)", spoken(path)) for path in context.paths)
    return [match[1] for match in found if match is not None]


def _of_unknown_form(context: CuttingContext, use: Use, path: str) -> Cut | None:
    """The cut of what is a tensor or a tuple of them: which, only a run shows. In words where no place is known."""
    gone = edges(context, use)
    if not gone:
        return None
    place = first_in_pass(context, use.spot, use.statement, use.paths)
    line = place[0].lineno if place is not None else use.statement.lineno
    sentence = f"Cut the graph between passes: detach `{path}` before In[{use.spot[0]}], line {line}."
    if place is None or place[1]:
        return Cut(sentence, (use.spot[0], line), (), gone, sure=False)
    lines = [
        f"if isinstance({path}, tuple):",
        f"    {path} = tuple(one.detach() for one in {path})",
        "else:",
        f"    {path} = {path}.detach()",
    ]
    condition = when_tensor(context.cells, (use.spot[0], line), path)
    if condition:
        lines[2] = f"elif {condition}:"
    edits = text_edit.insert_before(use.spot[0], context.text(use.spot), place[0], lines)
    return Cut(sentence, (use.spot[0], line), edits, gone, sure=False)
