"""In-place writes to one of several views that one call made: ``for row in h.unbind(0): row += 1``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.views import written_by
from graphwidget.diagnosis.source import inplace_statements as inplace
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Write

__all__ = ["of_one_of_several", "of_one_whose_base_was_written"]

_MAKERS = ("split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes")


def of_one_of_several(failure: Failure) -> Finding:
    """A write to a view from `unbind`, `split`, `chunk` and the like."""
    name = _element(failure) or written_by(failure)
    shown = f"`{name}`" if name else "A view"
    made = _made(failure, name)
    line = f" {short(made[1])} ({where(place_of(made[0], made[2].lineno))}) made them." if made is not None else ""
    return failure.finding(
        f"{shown} is one of several views that one call made.",
        f"{short(failure.text)} modifies {shown if name else 'a view'} in place. Autograd cannot record that for views "
        f"from `unbind`, `split`, `chunk` and the like.{line}",
        _fix(failure, name, made),
        tensor=name,
    )


def of_one_whose_base_was_written(failure: Failure) -> Finding | None:
    """A view from `unbind`, `split` and the like is read after what it is a view of was modified in place."""
    if failure.statement is None:
        return None
    read = sorted(source.paths_read(failure.statement))
    values = {name: value for name in read if (value := failure.value(name)) is not None}
    stale = {name: value.view_of for name, value in values.items() if value.leaf is None and value.view_of}
    bases = set(stale.values())
    write, base = _last_write(failure, bases.pop()) if len(bases) == 1 else _last_write_to_several(failure)
    if base is None:
        return None
    views = names(tuple(stale)) or "them"
    by = f"{short(write.by)} ({where(write.place)})" if write is not None else "A line before"
    which = f", {views} among them" if stale else f", which {short(failure.text)} reads"
    are = "is a view" if len(stale) == 1 else "are views"
    return failure.finding(
        f"{views} {are} of `{base}`, which was modified in place."
        if stale
        else f"`{base}` was modified in place, and views of it are used.",
        f"{by} has modified `{base}` in place after one call had made several views of it{which}. Autograd cannot "
        "record such a write for a view of several, so what is computed of one now is refused.",
        *_new_base(failure, write),
        tensor=base,
        cause=write.place if write is not None else None,
    )


def _last_write(failure: Failure, base: str) -> tuple[Write | None, str]:
    """The last line that modified a tensor, as far as it is known."""
    found = [one for one in failure.record.writes if base in map(local, one.paths) and not one.optimizer]
    return (found[-1] if found else None), base


def _last_write_to_several(failure: Failure) -> tuple[Write | None, str | None]:
    """The last line that modified what a call beside it makes several views of, and the name of that.

    The views have no name of their own in the line that reads them: they are elements of a dict, or of an object.
    """
    for write in reversed(failure.record.writes):
        text = failure.cells.text(write.place.cell)
        made = [node for node in source.nodes_of(text) if isinstance(node, ast.Call) and _makes_views(node)]
        split = {ast.unparse(part) for call in made for part in (*call.args[:1], _receiver(call)) if part is not None}
        for base in map(local, write.paths):
            if base in split and not write.optimizer:
                return write, base
    return None, None


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _new_base(failure: Failure, write: Write | None) -> Iterator[Fix]:
    """The write makes a tensor of its own, under the same name: the views keep what they had."""
    text = failure.cells.text(write.place.cell) if write is not None else ""
    around = source.statements_at(text, write.place.line or 0) if write is not None else []
    statement = around[-1] if around and not hasattr(around[-1], "body") else None
    if write is None or statement is None:
        yield failure.fix("out_of_place", "Make a new tensor instead of the write. The views keep the old values.")
        return
    line, cell = statement.lineno, write.place.cell
    new = inplace.out_of_place(ast.unparse(statement))
    if new:
        edits, what = text_edit.replace_line(cell, text, line, new), short(new)
    else:
        name = inplace.modified(ast.unparse(statement))
        copy = f"{name} = {name}.clone()"
        edits, what = text_edit.insert_before(cell, text, statement, [copy]) if name else (), f"{short(copy)} before it"
    price = "The views keep the old values. Memory for one more tensor."
    spot = at(write.place)
    yield Fix("out_of_place", f"Make a new tensor instead of the write: {what}.", False, spot, price, edits=edits)


def _element(failure: Failure) -> str | None:
    """``rows[0]`` in ``rows[0].add_(1)``, where `rows` holds the views: it was measured to be no tensor itself."""
    element = inplace.element(failure.text)
    holder = failure.value(element.split("[", 1)[0]) if element else None
    return None if holder is not None and holder.kind == "tensor" else element


def _fix(failure: Failure, name: str | None, made: tuple[CellRun, str, ast.Call] | None) -> Fix:
    """Another tensor under the same name does no harm where only that name is read; an element of a list is lost."""
    if name is None or not _is_passing(failure, name):
        new = inplace.out_of_place(failure.line) or failure.line
        named = name is not None and name.isidentifier()
        return failure.fix("out_of_place", "Make a new tensor instead.", failure.rewritten(new) if named else ())
    value = failure.value(name)
    base = failure.value(value.view_of) if value is not None and value.view_of else None
    if base is not None and base.leaf and base.requires_grad:
        return failure.fix(
            "under_no_grad",
            "Write to it under `with torch.no_grad():`. Then nothing is recorded, and the leaf stays one.",
            failure.under_no_grad(failure.line),
        )
    text = "Make them tensors of their own before: `.clone()` for each. What they are views of then stays as it is."
    if made is None:
        return failure.fix("clone_before_inplace", text)
    run, whole, call = made
    edits = text_edit.replace_node(run.cell, run.source, call, f"[one.clone() for one in {whole}]")
    return Fix("clone_before_inplace", text, False, at(place_of(run, call.lineno)), edits=edits)


def _is_passing(failure: Failure, name: str) -> bool:
    """Whether a loop gives the name: then the tensor stays in what the loop runs over."""
    loops = source.loops_around(failure.cell, failure.place.line or 0)
    targets = [loop.target for loop in loops if isinstance(loop, ast.For)]
    return any(isinstance(node, ast.Name) and node.id == name for target in targets for node in ast.walk(target))


def _made(failure: Failure, name: str | None) -> tuple[CellRun, str, ast.Call] | None:
    """The one call that made the views that a loop runs over: in its head, or assigned to a name in it."""
    loops = source.loops_around(failure.cell, failure.place.line or 0)
    run = next((one for one in failure.record.runs.values() if one.cell == failure.place.cell), None)
    heads = [loop.iter for loop in loops if isinstance(loop, ast.For)][-1:]
    if run is None or not heads or name is None or not _is_passing(failure, name):
        return None
    found = [(run, node) for node in ast.walk(heads[0]) if _makes_views(node)]
    for read in sorted(source.names_in(heads[0])) if not found else ():
        for one in failure.record.runs.values():
            values = [source.given(made) for made in source.assignments(one.source, read)]
            found += [(one, value) for value in values if _makes_views(value)]
    if len(found) != 1:
        return None
    where_made, call = found[0]
    return (where_made, ast.unparse(call), call) if isinstance(call, ast.Call) else None


def _makes_views(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in _MAKERS
