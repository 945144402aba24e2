"""A weight with the learned part in it, handed to the call of a module: for a write into a part of a parameter.

``embedding.weight.data[new] = learned`` puts only values there. The write stays: others may read the parameter.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch import grad_modes

__all__ = ["HandedOver", "handed_over", "value_of"]

_ALIASES = ("data", "detach")


class HandedOver(NamedTuple):
    """What is called with another weight, that weight's name, and the edits."""

    module: str
    weight: str
    edits: Edits


class _Part(NamedTuple):
    """A parameter, as the text writes it, the index of a part of it, and what is written there."""

    leaf: ast.expr
    key: ast.expr
    value: ast.expr


def value_of(statement: ast.stmt) -> str:
    """What a statement writes into a part of a tensor: ``learned``; empty: it does something else."""
    part = _part(statement)
    return ast.unparse(part.value) if part is not None else ""


def handed_over(cell: int | None, text: str, statement: ast.stmt) -> HandedOver | None:
    """Call the module that has the parameter with a new weight; None: this function does not call it afterwards."""
    part = _part(statement)
    if part is None or syntax.statement_of(syntax.line_text(text, statement.lineno)) is None:
        return None
    switch = grad_modes.around(text, statement)
    block = switch.outer if switch is not None and isinstance(switch.outer, ast.With) else statement
    for owner, key in _owners(part.leaf):
        calls = list(_calls_behind(text, block, owner))
        if not calls or any(map(_is_starred, calls)):
            continue
        weight = _free_name(text, key.rpartition(".")[2])
        there = ast.unparse(ast.Subscript(ast.Name(weight), part.key))
        lines = [f"{weight} = {ast.unparse(part.leaf)}.clone()", f"{there} = {ast.unparse(part.value)}"]
        behind = text_edit.insert_after if block is statement else text_edit.insert_behind_block
        edits = behind(cell, text, block, lines)
        for call in calls:
            given = ", ".join(map(ast.unparse, call.args)) + ("," if len(call.args) == 1 else "")
            named = ", ".join(f"{json.dumps(one.arg)}: {ast.unparse(one.value)}" for one in call.keywords)
            arguments = f"({given}), {{{named}}}" if named else f"({given})"
            new = f"{_functional_call(text)}({owner}, {{{json.dumps(key)}: {weight}}}, {arguments})"
            edits = (*edits, *text_edit.replace_node(cell, text, call, new))
        return HandedOver(owner, weight, edits)
    return None


def _part(statement: ast.stmt) -> _Part | None:
    """``w.data[i] = v``, ``w[i] = v`` without grad mode, and ``w.data[i].copy_(v)``."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(call := statement.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "copy_"
        and len(call.args) == 1
    ):
        target, value = call.func.value, call.args[0]
    else:
        return None
    if not isinstance(target, ast.Subscript):
        return None
    leaf = target.value
    while True:
        inner = leaf.func if isinstance(leaf, ast.Call) and not leaf.args else leaf
        if not isinstance(inner, ast.Attribute) or inner.attr != _ALIASES[inner is not leaf]:
            break
        leaf = inner.value
    return _Part(leaf, target.slice, value)


def _owners(leaf: ast.expr) -> Iterator[tuple[str, str]]:
    """The modules that a parameter is in, the outermost first, and what it is called there: ``net``, ``0.weight``."""
    names: list[str] = []
    found: list[tuple[str, str]] = []
    node = leaf
    while True:
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
        elif (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, (int, str))
        ):
            names.insert(0, str(node.slice.value))
        else:
            break
        node = node.value
        found.append((ast.unparse(node), ".".join(names)))
    yield from reversed(found) if isinstance(node, ast.Name) else ()


def _calls_behind(text: str, block: ast.stmt, owner: str) -> Iterator[ast.Call]:
    """The calls of a module that follow a statement wherever that has run."""
    following = (
        one for one in syntax.behind(text, block) if one.col_offset == block.col_offset
    )  # not outside of `main`
    for one in following:
        for node in ast.walk(one):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == owner:
                yield node


def _is_starred(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)


def _free_name(text: str, name: str) -> str:
    """A name that the text does not use yet."""
    used = {node.id for node in syntax.nodes_of(text) if isinstance(node, ast.Name)}
    used |= {node.arg for node in syntax.nodes_of(text) if isinstance(node, ast.arg)}
    name = name if name.isidentifier() else "weight"
    return next(one for one in (name, f"new_{name}", f"{name}_with_it") if one not in used or one.endswith("_it"))


def _functional_call(text: str) -> str:
    imported = re.search(r"\bimport [^\n]*\bfunctional_call\b", text) is not None
    return "functional_call" if imported else "torch.func.functional_call"
