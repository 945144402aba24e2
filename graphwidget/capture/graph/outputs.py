"""The outputs of each operation: types, shapes and devices of the gradients that its node takes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from graphwidget import torch_internals as ti
from graphwidget.capture.graph.tables import Numbered
from graphwidget.model import Output

__all__ = ["outputs"]


def outputs(nodes: Sequence[Any]) -> tuple[array[int], tuple[tuple[Output, ...], ...]]:
    """A column of live nodes and its table, as in `Snapshot`. Reading one node takes about 1 microsecond."""
    found = Numbered()
    column = array("i", [_number(found, ti.outputs_of(node)) for node in nodes])
    return column, tuple(tuple(Output(ti.name_of_dtype(t), ti.as_integers(s), str(d)) for t, s, d in k) for k in found)


def _number(found: Numbered, known: tuple[tuple[Any, Any, Any], ...] | None) -> int:
    if known is None:
        return -1
    try:
        return found[known]
    except TypeError:  # symbolic lengths cannot be hashed
        return found[tuple((dtype, ti.as_integers(shape), device) for dtype, shape, device in known)]
