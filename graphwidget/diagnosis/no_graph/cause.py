"""What a finding says about the line that left a tensor without a graph."""

from __future__ import annotations

import ast

from graphwidget.model import Fix, Place

__all__ = ["Cause", "expression"]


class Cause:
    """What cut the graph: a sentence, a fix and the line; and names that it is about, where the root has none."""

    def __init__(self, text: str, fix: Fix, place: Place | None, names: tuple[str, ...] = ()) -> None:
        self.text, self.fix, self.place, self.names = text, fix, place, names


def expression(name: str) -> ast.expr:
    try:
        return ast.parse(name, mode="eval").body
    except SyntaxError:
        return ast.Name(name, ast.Load())
