"""In-place writes to one of several views that one call made: ``for row in h: row += 1``, ``h.unbind(0)[0] += 1``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.views import written_by
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.in_place.pieces import Pieces, are_made_by, pieces_of
from graphwidget.diagnosis.source.paths import is_assignable, local, root_of
from graphwidget.diagnosis.wording import at, names, short, where
from graphwidget.model import Finding, Fix, Place, Write

__all__ = ["of_one_of_several", "of_one_whose_base_was_written"]


def of_one_of_several(failure: Failure) -> Finding:
    """A write to a view from `unbind`, `split`, `chunk` and the like, or from a loop over a tensor."""
    name = _element(failure) or written_by(failure)
    shown = f"`{name}`" if name else "A view"
    found = _pieces(failure, name)
    return failure.finding(
        f"{shown} is one of several views that one call made.",
        f"{short(failure.text)} modifies {shown if name else 'a view'} in place. Autograd cannot record that for views "
        f"from `unbind`, `split`, `chunk` and the like.{_made_them(failure, found)}",
        *_fixes(failure, name, found),
        tensor=name,
    )


def _made_them(failure: Failure, found: Pieces | None) -> str:
    """What made the views, as a sentence behind another."""
    if found is None:
        return ""
    spot = f"In[{_cell(failure, found)}], line {found.made.lineno}"
    if found.is_called:
        return f" {short(ast.unparse(found.made))} ({spot}) made them."
    return f" Going through `{ast.unparse(found.made)}` ({spot}) made them: that is a call of `unbind`."


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
        made = [node for node in source.nodes_of(text) if isinstance(node, ast.Call) and are_made_by(node)]
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


def _pieces(failure: Failure, name: str | None) -> Pieces | None:
    """The views of which the line modifies one."""
    return pieces_of(_texts(failure), failure.place.line or 0, name, partial(_is_tensor, failure)) if name else None


def _texts(failure: Failure) -> list[str]:
    """The text of the line, and those of the cells that share the names of the module with it."""
    runs, cells = failure.record.runs.values(), failure.cells
    others = [run.source for run in runs if not {run.cell, failure.place.cell} & cells.files]
    return [failure.cell, *(text for text in others if text != failure.cell)]


def _is_tensor(failure: Failure, name: str) -> bool:
    value = failure.value(name)
    return value is not None and value.kind == "tensor"


def _cell(failure: Failure, found: Pieces) -> int | None:
    """The number of the cell that makes the views."""
    texts = failure.cells.texts.items()
    return failure.place.cell if found.text == failure.cell else next(n for n, text in texts if text == found.text)


def _fixes(failure: Failure, name: str | None, found: Pieces | None) -> Iterator[Fix]:
    """The whole tensor gets what is written, where something reads it later; else new tensors will do."""
    text, line = failure.cell, failure.place.line or 0
    value = failure.value(name)
    paths = [ast.unparse(found.whole) if found is not None and found.root else "", (value and value.view_of) or ""]
    bases = {_variable(path) for path in paths if path}
    leaf = any((one := failure.value(path)) is not None and one.leaf and one.requires_grad for path in {*bases, *paths})
    read = source.is_read_behind(text, line, bases, found.statement.lineno if found is not None else line)
    wanted = bool(bases) and (read or source.is_for_others(text, line, root_of(name or ""), bases))
    put_back = [*_put_together(failure, found)] if read and found is not None else []
    own = name is not None and name.isidentifier() and name not in source.loop_names(text)
    if leaf and found is not None and source.is_returned(text, line, bases):
        yield from _one_by_one(failure, found, f"`{found.root}` is a leaf, which stays as it is")
    elif leaf and (wanted or not own):
        told = "Write to it under `with torch.no_grad():`. Then nothing is recorded, and the leaf stays one."
        yield failure.fix("under_no_grad", told, failure.under_no_grad(failure.line))
    elif wanted:
        kept = (
            f"A graph needs `{found.root}` as it is" if found is not None and any(map(failure.is_saved, bases)) else ""
        )
        one_by_one = _one_by_one(failure, found, kept) if found is not None and not (kept and put_back) else ()
        fixes = [*one_by_one, *put_back]
        told = (
            "Compute new tensors from the views, and the whole tensor from these: `torch.stack(...)`, `torch.cat(...)`."
        )
        yield from fixes or [failure.fix("out_of_place", told)]
    elif own:
        new = inplace.out_of_place(failure.line)
        copy = f"{name} = {name}.clone()"
        told = "Make a new tensor instead." if new else f"Write to a copy: `{copy}` before."
        edits = failure.rewritten(new) if new else failure.preceded_by([copy])
        yield failure.fix("out_of_place", told, edits)
    else:
        yield _copied(failure, found)


def _variable(path: str) -> str:
    """The variable that a path begins with; of an object's own, the attribute: ``self.rows`` of ``self.rows[0]``."""
    found = re.match(r"self\.\w+", local(path))
    return found[0] if found is not None else root_of(path)


def _one_by_one(failure: Failure, found: Pieces, kept: str) -> Iterator[Fix]:
    """The same views by index: each is the only one of its call, and may be modified.

    `kept`: why those of a copy, which gets the name; empty: those of the tensor itself.
    """
    new, cell, line = found.by_index, _cell(failure, found), found.statement.lineno
    if not new or kept and not _is_own(found, found.root):
        return
    edits = text_edit.replace_node(cell, found.text, found.made, new)
    first = ""
    if kept:
        copy = f"{found.root} = {found.root}.clone()"
        edits += text_edit.insert_before(cell, found.text, found.statement, [copy])
        first = f"{kept}: make a copy, `{copy}`. And take"
    text = f"{first or 'Take'} each view by itself, by its index: such a view may be modified, and the tensor with it"
    yield Fix("single_views", f"{text}: {short(new, 120)}.", False, at(Place(cell, line)), edits=edits)


def _is_own(found: Pieces, path: str) -> bool:
    """Whether the code that makes the views may assign to a path: not to a global variable in a function."""
    line = found.statement.lineno
    outside = path.isidentifier() and source.is_from_outside(found.text, line, path)
    return is_assignable(path) and not (outside and source.function_at(found.text, line) is not None)


def _put_together(failure: Failure, found: Pieces) -> Iterator[Fix]:
    """Copies are modified in the loop, and the whole tensor is computed from them behind it."""
    loop, whole = found.statement, ast.unparse(found.whole)
    name = next(one for one in ("pieces", "parts", "copies", "one_by_one") if one not in found.text)
    joined = found.joined(name)
    known = any(getattr(node, "id", "") == "torch" for text in _texts(failure) for node in source.nodes_of(text))
    if not isinstance(loop, ast.For) or not joined or not _is_own(found, whole) or not known:
        return
    cell, copies = _cell(failure, found), f"[one.clone() for one in {ast.unparse(found.made)}]"
    behind = text_edit.insert_behind_block(cell, found.text, loop, [f"{whole} = {joined}"])
    edits = (
        *text_edit.insert_before(cell, found.text, loop, [f"{name} = {copies}"]),
        *text_edit.replace_node(cell, found.text, found.made, name),
        *behind,
    )
    yield Fix(
        "out_of_place",
        f"Modify copies, and compute `{whole}` from them behind the loop: `{whole} = {joined}`.",
        False,
        at(Place(cell, loop.lineno)),
        "Memory for one more tensor.",
        edits=edits if behind else (),
    )


def _copied(failure: Failure, found: Pieces | None) -> Fix:
    """Each view becomes a tensor of its own."""
    text = "Make them tensors of their own before: `.clone()` for each. What they are views of then stays as it is."
    if found is None:
        return failure.fix("clone_before_inplace", text)
    cell, copies = _cell(failure, found), f"[one.clone() for one in {ast.unparse(found.made)}]"
    edits = text_edit.replace_node(cell, found.text, found.made, copies)
    return Fix("clone_before_inplace", text, False, at(Place(cell, found.made.lineno)), edits=edits)
