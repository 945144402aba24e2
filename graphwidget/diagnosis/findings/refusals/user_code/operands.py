"""What an operation was given that does not fit: shapes and types by name, measured where the line raised.

It reads the messages of PyTorch's operations and of Python itself, so it serves all code that a backward runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, short
from graphwidget.model import Record, Sight, Value

__all__ = ["Misfit", "Operands", "misfit"]

_TURNED = ("t", "T", "mT", "transpose", "swapaxes")
_PRODUCTS = ("mm", "matmul", "bmm", "addmm", "mv")


class Misfit(NamedTuple):
    """Why an operation refused what it was given, and what to write instead."""

    why: str
    advice: str = ""
    edits: Edits = ()


@dataclass(frozen=True)
class Operands:
    """What the statement of a line reads, and what that was."""

    cell: int
    text: str
    statement: ast.stmt
    tensors: Mapping[str, Value]
    others: Mapping[str, str]

    @classmethod
    def of(cls, record: Record, sight: Sight) -> Operands | None:
        """The operands of a running line; None where its text is not known."""
        spot = at(sight.place)
        cells = Cells.of(record)
        statement = cells.statement(spot) if spot is not None else None
        if spot is None or statement is None or hasattr(statement, "body"):
            return None
        elements = (n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load))
        read = source.paths_read(statement) | set(map(ast.unparse, elements))
        tensors = {name: sight.values[name] for name in sorted(read) if name in sight.values}
        others = {name: sight.others[name] for name in sorted(read) if name in sight.others}
        whole = {name: one for name, one in tensors.items() if one.kind == "tensor"}
        return cls(spot[0], cells.text(spot[0]), statement, whole, others)

    def replaced(self, node: ast.expr, new: str) -> Edits:
        return text_edit.replace_node(self.cell, self.text, node, new)

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.statement)

    def named(self, path: str) -> Iterator[ast.expr]:
        """Where the statement reads a path."""
        for node in self.nodes():
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) == path:
                yield node


def misfit(operands: Operands, message: str) -> Misfit | None:
    """What does not fit among the operands of a line; None: the message says nothing of that kind."""
    for pattern, tell in _TELLERS:
        found = pattern.search(message)
        if found is not None:
            told = tell(operands, found)
            if told is not None:
                return told
    return None


# ------------------------------------------------------------------ shapes


def _of_sizes(operands: Operands, found: re.Match[str]) -> Misfit | None:
    """Tensors that are combined value by value, and have other sizes."""
    first, second, dim = (int(one) for one in found.groups())
    most = max((len(one.shape) for one in operands.tensors.values()), default=0)
    sides = [
        [name for name, one in operands.tensors.items() if _size(one, dim - most) == size] for size in (first, second)
    ]
    why = "PyTorch combines tensors value by value where their sizes are equal, counted from the last dimension, or 1"
    if not all(sides) or not most:
        return Misfit(f"{why}: here {first} meets {second}.")
    have = [
        f"{names(tuple(side))} {'has' if len(side) == 1 else 'have'} {size}"
        for side, size in zip(sides, (first, second))
    ]
    advice, edits = _aligned(operands, *sides)
    return Misfit(f"{why}: in dimension {dim}, {have[0]}, and {have[1]}.", advice, edits)


def _size(value: Value, dim: int) -> int | None:
    return value.shape[dim] if -len(value.shape) <= dim < 0 else None


def _aligned(operands: Operands, *sides: list[str]) -> tuple[str, Edits]:
    """What brings one of two tensors to the shape of the other: it is transposed, or lacks a dimension."""
    for here, there in (sides, sides[::-1]):
        for name in here:
            mine = operands.tensors[name].shape
            for other in there:
                whole = operands.tensors[other].shape
                nodes = list(operands.named(name))
                if len(mine) == 2 and mine == whole[::-1] and len(here) == 1 and len(nodes) == 1:
                    new = f"{name}.t()"
                    return f"`{name}` is transposed: write `{new}`.", operands.replaced(nodes[0], new)
                if len(mine) == 1 and len(whole) > 1 and whole[0] == mine[0] and len(nodes) == 1:
                    new = f"{name}[:{', None' * (len(whole) - 1)}]"
                    return f"Let `{name}` have one value for each row: `{new}`.", operands.replaced(nodes[0], new)
    fewer, more = sorted(sides, key=lambda side: max(len(operands.tensors[name].shape) for name in side))
    wanted = list(operands.tensors[more[0]].shape)
    return f"Bring {names(tuple(fewer))} to a shape that fits {wanted}: sum it, reshape it, or use another tensor.", ()


def _of_product(operands: Operands, found: re.Match[str]) -> Misfit:
    """Two matrices that cannot be multiplied."""
    rows, columns, below, right = (int(one) for one in found.groups())
    why = f"A product of matrices needs as many columns on the left ({columns}) as rows on the right ({below})."
    pairs = [
        pair
        for pair in _products(operands)
        if _shape_of(operands, pair[0]) in (None, (rows, columns)) and _shape_of(operands, pair[1]) == (below, right)
    ]
    if len(pairs) != 1:
        return Misfit(why)
    ((one, other),) = pairs
    if columns == right:
        turned, new = other, _turned(other)
    elif rows == below:
        turned, new = one, _turned(one)
    else:
        return Misfit(why)
    shape = (right, below) if turned is other else (columns, rows)
    return Misfit(
        why,
        f"{short(ast.unparse(turned))} stands the wrong way round: {short(new)} is {list(shape)}, and fits.",
        operands.replaced(turned, new),
    )


def _products(operands: Operands) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The factors of the products of matrices in the statement."""
    for node in operands.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node.left, node.right
        elif isinstance(node, ast.Call) and source.last_name(ast.unparse(node.func)) in _PRODUCTS:
            method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
            factors = [node.func.value, *node.args] if method and isinstance(node.func, ast.Attribute) else node.args
            if len(factors) >= 2:
                yield factors[-2], factors[-1]


def _shape_of(operands: Operands, node: ast.expr) -> tuple[int, ...] | None:
    """The shape of a measured tensor, or of one that is transposed; None: unknown."""
    inner = _untransposed(node)
    value = operands.tensors.get(ast.unparse(inner if inner is not None else node))
    if value is None:
        return None
    return value.shape if inner is None else (*value.shape[:-2], *value.shape[-2:][::-1])


def _untransposed(node: ast.expr) -> ast.expr | None:
    """`w` for ``w.t()`` and ``w.T``; None for anything else."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute) and function.attr in _TURNED:
        return function.value
    return None


def _turned(node: ast.expr) -> str:
    inner = _untransposed(node)
    return ast.unparse(inner) if inner is not None else f"{source.in_brackets(node)}.t()"


def _of_view(_: Operands, found: re.Match[str]) -> Misfit:
    return Misfit(f"A tensor of {found[2]} values has not as many as the shape [{found[1]}] asks for.")


# ------------------------------------------------------------------ types


def _of_types(operands: Operands, _: re.Match[str]) -> Misfit:
    """A product of tensors of two types."""
    why = "Such an operation takes tensors of one type only."
    found: dict[str, list[str]] = {}
    for name, one in operands.tensors.items():
        found.setdefault(one.dtype, []).append(name)
    if len(found) < 2:
        return Misfit(why, "Bring both to one type: `.to(...)`.")
    shown = ", ".join(f"{names(tuple(one))} {'is' if len(one) == 1 else 'are'} {dtype}" for dtype, one in found.items())
    widest = max(found, key=lambda dtype: int(re.sub(r"\D", "", dtype) or 0))
    return Misfit(f"{why} Here {shown}.", f"Bring them to one type first: `.to({found[widest][0]}.dtype)`.")


def _of_attribute(operands: Operands, found: re.Match[str]) -> Misfit | None:
    """A method of tensors that was asked of a tuple, a list or None."""
    kind, attribute = found[1], found[2]
    asked = [
        node.value
        for node in operands.nodes()
        if isinstance(node, ast.Attribute)
        and node.attr == attribute
        and operands.others.get(ast.unparse(node.value), "").startswith("None" if kind == "NoneType" else f"a {kind}")
    ]
    if len(asked) != 1:
        return None
    name = ast.unparse(asked[0])
    what = operands.others[name]
    if kind in ("tuple", "list"):
        new, one = f"{name}[0]", what.endswith(" 1")
        return Misfit(
            f"`{name}` is {what}, and no tensor.",
            f"Take the tensor that is meant: `{new}`.",
            operands.replaced(asked[0], new) if one else (),
        )
    return Misfit(f"`{name}` is {what}.", f"See where `{name}` is to be set, and that it is before this line runs.")


def _of_none(operands: Operands, _: re.Match[str]) -> Misfit | None:
    """An operator with None."""
    found = [name for name, what in operands.others.items() if what == "None"]
    grads = [node for node in operands.nodes() if isinstance(node, ast.Attribute) and node.attr == "grad"]
    if len(found) == 1:
        return Misfit(f"`{found[0]}` is None.", f"See that `{found[0]}` is set before this line runs.")
    if len(grads) == 1:
        path = ast.unparse(grads[0])
        return Misfit(
            f"`{path}` is None there: a leaf's `.grad` is written after the hooks of its gradient have run.",
            "Read it in a hook that runs later: `register_post_accumulate_grad_hook`.",
        )
    return None


_TELLERS: tuple[tuple[re.Pattern[str], Callable[[Operands, re.Match[str]], Misfit | None]], ...] = (
    (
        re.compile(r"of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)"),
        _of_sizes,
    ),
    (re.compile(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)"), _of_product),
    (re.compile(r"shape '\[([-\d, ]*)\]' is invalid for input of size (\d+)"), _of_view),
    (re.compile(r"same dtype|expected scalar type|have the same type"), _of_types),
    (re.compile(r"'(tuple|list|NoneType|float|int|dict)' object has no attribute '(\w+)'"), _of_attribute),
    (re.compile(r"unsupported operand type.*NoneType"), _of_none),
)
