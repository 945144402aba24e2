"""Which lines of a loss were measured to take numbers, or tensors without a graph, out of values with one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from graphwidget.diagnosis.no_graph.measured import statements
from graphwidget.diagnosis.no_graph.numbers.scopes import reach_a_backward, scopes_of
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.wording import short
from graphwidget.model import Record

__all__ = ["made_numbers"]

# Not what counts, compares or chooses: that has no derivative anyway. Nor `detach`: somebody wrote that on purpose.
_BY = ("item", "tolist", "numpy", "__float__", "__array__", "tensor", "as_tensor", "full", "full_like")


def made_numbers(record: Record) -> Mapping[str, tuple[str, ...]] | None:
    """The lines, and the leaves behind what each of them takes; None: it was not measured.

    Of a number it is not measured where it goes: that the text of the program says.
    """
    if record.lineage is None:
        return None
    found: dict[str, list[str]] = defaultdict(list)
    scopes = [scope for run in Cells.of(record).latest for scope in scopes_of(run)]
    for cut in record.lineage.cuts:
        at = next(statements(record, cut.lines), None) if cut.by in _BY and cut.grad_mode else None
        if at is None or cut.used is False or isinstance(at[1], ast.Expr):
            continue
        if cut.used or reach_a_backward(scopes, [at[1]]):
            found[short(ast.unparse(at[1]).splitlines()[0])] += cut.leaves
    return {line: tuple(dict.fromkeys(leaves)) for line, leaves in found.items()}
