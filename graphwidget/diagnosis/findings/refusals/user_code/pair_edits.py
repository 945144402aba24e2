"""An edit of a pair of hooks for saved tensors, so that the second gives back the type or the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.no_graph.measured import run_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import CellRun, MeasuredUnpacked, Record, TextLine

__all__ = ["given_back"]

_Hook = ast.FunctionDef | ast.Lambda

_ATTRIBUTES = {"type": "dtype", "device": "device"}
# Methods that change nothing but type and device. After any other, converting back would not give the values back.
_CONVERTING = frozenset(
    ("to", "half", "bfloat16", "float", "double", "type", "cpu", "cuda", "detach", "clone", "contiguous", "pin_memory")
)


def given_back(record: Record, one: MeasuredUnpacked, differs: str) -> Edits:
    """``return t.half(), t.dtype`` in the first hook, ``return t[0].to(t[1])`` in the second.

    None where a hook does more than to convert what it is given: what else it did would have to be undone, too.
    """
    attribute = _ATTRIBUTES.get(differs)
    whole = "int" in f"{one.given.dtype}{one.returned.dtype}"  # to those, numbers are scaled, or cut
    hooks = _hooks(record, one) if attribute is not None and not whole else None
    if hooks is None or not all(_used_once(record, hook) for _, hook in hooks):
        return ()
    (packing, pack), (unpacking, unpack) = hooks
    given, kept = _parameter(pack), _parameter(unpack)
    if given is None or kept is None or not _only_converts(pack, given) or not _only_converts(unpack, kept):
        return ()
    if _reads_beside_returns(unpack, kept):
        return ()
    edits: list[Edits] = []
    for value in _returned(pack):
        new = f"{_text(packing, value)}, {given}.{attribute}"
        new = f"({new})" if isinstance(pack, ast.Lambda) else new
        edits.append(text_edit.replace_node(packing.cell, packing.source, value, new))
    for value in _returned(unpack):
        chain = f"{kept}[0]{_text(unpacking, value)[len(kept) :]}.to({kept}[1])"
        edits.append(text_edit.replace_node(unpacking.cell, unpacking.source, value, chain))
    return tuple(edit for own in edits for edit in own) if all(edits) else ()


def _text(run: CellRun, value: ast.expr) -> str:
    """An expression as its line writes it."""
    written = ast.get_source_segment(run.source, value) or ""
    return written if written and "\n" not in written else ast.unparse(value)


def _hooks(record: Record, one: MeasuredUnpacked) -> tuple[tuple[CellRun, _Hook], tuple[CellRun, _Hook]] | None:
    """The two functions with the runs of their texts; None: one is another's, or more than one may be meant."""
    if one.pack is None or one.unpack is None:
        return None
    packs, unpacks = _functions(record, one.pack), _functions(record, one.unpack)
    if one.pack == one.unpack:  # two lambdas of one line
        return (packs[0], packs[1]) if len(packs) == 2 else None
    return (packs[0], unpacks[0]) if len(packs) == len(unpacks) == 1 else None


def _functions(record: Record, line: TextLine) -> list[tuple[CellRun, _Hook]]:
    """The functions and lambdas that begin at a line, in the order of the text."""
    run = run_of(record, line)
    found = [
        node
        for node in (syntax.nodes_of(run.source) if run is not None else ())
        if isinstance(node, (ast.FunctionDef, ast.Lambda))
        and line.line in (node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ())))
    ]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return [(run, node) for node in found] if run is not None else []


def _used_once(record: Record, hook: _Hook) -> bool:
    """Whether a function has one use in the program, which makes it a hook."""
    if isinstance(hook, ast.Lambda):
        return True
    nodes = (node for run in Cells.of(record).latest for node in syntax.nodes_of(run.source))
    uses = [
        node
        for node in nodes
        if (isinstance(node, ast.Attribute) and node.attr == hook.name)
        or (isinstance(node, ast.Name) and node.id == hook.name)
    ]
    return len(uses) == 1


def _parameter(hook: _Hook) -> str | None:
    """The name of what a hook is given; None: it takes more than that and its object."""
    args = [one.arg for one in (*hook.args.posonlyargs, *hook.args.args)]
    args = args[1:] if args[:1] in (["self"], ["cls"]) else args
    more = hook.args.vararg or hook.args.kwarg or hook.args.kwonlyargs or hook.args.defaults
    return args[0] if len(args) == 1 and not more else None


def _returned(hook: _Hook) -> list[ast.expr]:
    if isinstance(hook, ast.Lambda):
        return [hook.body]
    return [node.value for node in ast.walk(hook) if isinstance(node, ast.Return) and node.value is not None]


def _only_converts(hook: _Hook, name: str) -> bool:
    """Whether all that a hook returns is what it was given, converted, and it never stores to that name."""
    for node in ast.walk(hook):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Return) and node.value is None:
            return False
        if node is not hook and isinstance(node, (ast.FunctionDef, ast.Lambda, ast.Yield)):
            return False
    return bool(_returned(hook)) and all(_is_converted(value, name) for value in _returned(hook))


def _is_converted(value: ast.expr, name: str) -> bool:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CONVERTING:
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name


def _reads_beside_returns(hook: _Hook, name: str) -> bool:
    """Whether a hook reads what it is given elsewhere than where it returns that."""
    within = set(_names(_returned(hook), name))
    return any(node not in within for node in _names([hook], name))


def _names(nodes: list[ast.expr] | list[_Hook], name: str) -> Iterator[ast.Name]:
    for one in nodes:
        yield from (node for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == name)
