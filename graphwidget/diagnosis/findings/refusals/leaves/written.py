"""A leaf that requires grad is modified while the graph is recorded, directly or through a view."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.leaves import filled
from graphwidget.diagnosis.findings.refusals.views import not_in_place
from graphwidget.diagnosis.findings.refusals.within_module import named
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits.blocks import in_block
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import short, where
from graphwidget.model import Finding, RunningModule

__all__ = ["of_written_leaf"]


def of_written_leaf(failure: Failure) -> Finding:
    """``w -= 0.1 * w.grad``, ``net.weight[:, i] += row``."""
    view = (failure.run.error or "").startswith("a view")
    within = failure.run.scene.within
    if within is not None and within.inplace:
        return _of_module(failure, within)
    name = _written(failure, element=not view)
    leaf, which = f"`{name}`" if name else "a leaf", _which_leaf(failure, name, view)
    safe = name is not None and not failure.is_saved(name)
    graph = filled.writes_a_graph(failure, name)
    headline = f"{short(failure.text)} writes to {leaf} while a graph is recorded."
    if name is not None and graph and filled.is_filled(failure, name):
        return failure.finding(
            headline,
            f"{which} It cannot become a part of the graph by a write, and what is written here has a graph.",
            filled.fix_of(failure, name, verified=safe),
            tensor=name,
        )
    value = failure.value(name)
    through = " through a view" if view and value is not None and value.leaf else ""
    writes = _writes(failure, name)
    lines = sorted({one.lineno for one in writes})
    here = f", in lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}" if len(lines) > 1 else ""
    return failure.finding(
        headline,
        f"{which} A write to it{through} would be recorded, and it would be a leaf no longer.",
        failure.fix(
            "under_no_grad",
            f"Write to it under `with torch.no_grad():`{here}. Then nothing is recorded, and the leaf stays one.",
            _under_no_grad(failure, writes),
            safe,
            price="No gradient flows back into what is written." if graph else "",
        ),
        tensor=name,
    )


def _of_module(failure: Failure, module: RunningModule) -> Finding:
    """``nn.ReLU(inplace=True)`` that is given a leaf."""
    return failure.finding(
        f"{named(module)} writes to a leaf while a graph is recorded.",
        f"{short(failure.text)} ({where(failure.place)}) hands it a leaf that requires grad, or a view of one. With "
        "`inplace=True` it writes to what it is given. A leaf would be none any longer.",
        failure.fix(
            "out_of_place",
            f"Write `inplace=False` for the `{module.class_name}`: it makes a new tensor.",
            not_in_place(failure, module.class_name),
            price="Memory for one more tensor.",
        ),
    )


def _which_leaf(failure: Failure, name: str | None, view: bool) -> str:
    """What the line writes to, as a sentence: a leaf, or a view of one. Measured, else from torch's message."""
    what = "a leaf that requires grad: what `.grad` belongs to."
    value = failure.value(name)
    if value is None or value.leaf is None:
        return f"{f'`{name}`' if name else 'It'} is{', or is a view of,' if view else ''} {what}"
    if value.leaf:
        return f"`{name}` is {what}"
    if value.view_of is None:
        return f"{short(failure.text)} writes to {what}"
    base = f"`{value.view_of}`, " if value.view_of else ""
    return f"`{name}` is a view of {base}{what}"


def _written(failure: Failure, *, element: bool = True) -> str | None:
    """What the line itself modifies; None: nothing, a function that it calls may have raised."""
    if failure.statement is None or not inplace.written(failure.statement):
        return None
    return (inplace.element(failure.text) if element else None) or inplace.modified(failure.text)


def _writes(failure: Failure, name: str | None) -> list[ast.stmt]:
    """The line's statement, and later ones of its function that write to the same tensor or another such leaf."""
    own = failure.statement
    if own is None or not inplace.written(own):
        return []
    others = (one for one in failure.after if name is not None and _writes_to_leaf(failure, one, name))
    same = (own.lineno, own.col_offset)
    return [own, *(one for one in others if (one.lineno, one.col_offset) != same)]


def _writes_to_leaf(failure: Failure, statement: ast.stmt, name: str) -> bool:
    switch = grad_modes.around(failure.cell, statement)
    off = switch is not None and switch.off
    if hasattr(statement, "body") or off or not inplace.is_recorded(statement):
        return False
    text = ast.unparse(statement)
    changed = {inplace.modified(text), inplace.element(text)} if inplace.written(statement) else set()
    values = [value for one in changed if one and (value := failure.value(one)) is not None]
    leaves = any(one.requires_grad and (one.leaf or one.view_of is not None) for one in values)
    return name in changed or name in inplace.written(statement) or leaves


# ------------------------------------------------------------------ the edit


def _under_no_grad(failure: Failure, writes: list[ast.stmt]) -> Edits:
    """A block around each write, one around those that follow one another. None where a write cannot have one."""
    groups = list(_groups(failure, sorted(writes, key=lambda one: one.lineno)))
    cell, text = failure.place.cell, failure.cell
    blocks = [in_block(cell, text, "with torch.no_grad():", first, last) for first, last in groups]
    return tuple(edit for block in blocks for edit in block) if all(blocks) else ()


def _groups(failure: Failure, writes: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """The first and the last of writes that follow one another: nothing else goes into their block."""
    rest = list(writes)
    while rest:
        first = last = rest.pop(0)
        for one in source.behind(failure.cell, first):
            if any(one is write or _at(one) == _at(write) for write in rest):
                rest = [write for write in rest if _at(write) != _at(one)]
                last = one
            else:
                break
        yield first, last


def _at(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset
