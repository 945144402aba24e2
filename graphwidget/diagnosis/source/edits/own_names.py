"""Edits in the names of the text that they go into: ``th.no_grad()`` where that text has ``import torch as th``.

An edit is written with `torch`, which is what nearly every program calls it. Where a text calls it otherwise, or has
imported parts of it only, the edit takes these names; where it has none, the edits import `torch`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import TextEdit

__all__ = ["in_own_names"]

_PATH = re.compile(r"(?<![\w.])torch(?:\.\w+)*")


def in_own_names(texts: Mapping[int, str], files: Collection[int], edits: Edits) -> Edits:
    """The edits, with `torch` as the text of each calls it.

    Parameters
    ----------
    texts
        The text of each number.
    files
        The numbers that stand for files, which have names of their own; the others share theirs.
    """
    found: list[TextEdit] = []
    imports: dict[int, TextEdit] = {}
    for edit in edits:
        cell = edit.cell
        if cell is None or cell not in texts or not _PATH.search(edit.new):
            found.append(edit)
            continue
        sharing = [texts[cell]] if cell in files else [text for n, text in texts.items() if n not in files]
        names = _imported(sharing)
        unseen = cell not in files and not names  # what imports it ran before the first cell that is known
        if "torch" not in names.values() and not unseen and not any(map(_reads_torch, sharing)):
            edit = replace(edit, new=_with_names(edit.new, names))
            if _PATH.search(edit.new) and (first := _import(cell, texts[cell])) is not None:
                imports[cell] = first
        found.append(edit)
    return (*imports.values(), *found)


def _imported(texts: Iterable[str]) -> dict[str, str]:
    """What texts have imported of `torch`, and its name: ``{"torch.nn": "nn"}``."""
    found: dict[str, str] = {}
    for node in (node for text in texts for node in syntax.nodes_of(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                whole = one.name if one.asname is not None else one.name.split(".")[0]
                found[whole] = one.asname or whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{one.name}": one.asname or one.name for one in node.names}
    return {whole: name for whole, name in found.items() if whole.split(".")[0] == "torch"}


def _reads_torch(text: str) -> bool:
    """Whether a text has the name from elsewhere: of cells that ran before, or by ``from common import *``."""
    return any(isinstance(node, ast.Name) and node.id == "torch" for node in syntax.nodes_of(text))


def _with_names(code: str, names: Mapping[str, str]) -> str:
    return _PATH.sub(lambda path: _called(path[0], names), code)


def _called(path: str, names: Mapping[str, str]) -> str:
    """``torch.nn.Linear`` by the longest part of it that has a name: ``nn.Linear``; unchanged if none has."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        name = names.get(".".join(parts[:end]))
        if name is not None:
            return ".".join([name, *parts[end:]])
    return path


def _import(cell: int, text: str) -> TextEdit | None:
    """The edit that imports `torch` before the first import of a text, or else at its beginning."""
    tree = syntax.parse(text)
    if tree is None:
        return None
    body = tree.body[ast.get_docstring(tree, clean=False) is not None :]
    body = [one for one in body if not isinstance(one, ast.ImportFrom) or one.module != "__future__"]
    first = next((one for one in body if isinstance(one, (ast.Import, ast.ImportFrom))), body[0] if body else None)
    if first is None:
        return None
    decorators = getattr(first, "decorator_list", ())
    at = (min([first.lineno, *(one.lineno for one in decorators)]), 0)
    return TextEdit(at, at, "import torch\n", cell)
