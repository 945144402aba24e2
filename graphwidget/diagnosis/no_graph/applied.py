"""Custom Functions that compute with parameters which are not passed to ``apply``: ``Adjoint.apply(field, y0)``.

A `forward` is not recorded. Autograd sees only the tensors that ``apply`` is given: what a module brings along gets no
gradient, and without another tensor that requires grad the result has no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, defined, functions
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import CellRun, Fix, Place, Record

__all__ = ["APPLY", "Applied", "applied_around", "applied_at", "in_a_forward"]

APPLY = "apply"
_Line = tuple[CellRun, ast.stmt]


class Applied(NamedTuple):
    """A line that applies a Function, which computes with the parameters of `objects`: their names in that line."""

    run: CellRun
    statement: ast.stmt
    call: ast.Call
    function: FunctionText
    objects: tuple[str, ...]

    @property
    def place(self) -> Place:
        return place_of(self.run, self.statement.lineno)

    @property
    def text(self) -> str:
        """Why their parameters get no gradient, as sentences."""
        return (
            f"{short(ast.unparse(self.call))} ({where(self.place)}) is given no parameter of {names(self.objects)}: "
            f"nothing that `{self.function.name}.forward` computes is recorded, and autograd sees only the tensors "
            "that are passed to `apply`."
        )

    @property
    def fix(self) -> Fix:
        """Pass the parameters, and return their gradients."""
        passed = ", ".join(f"*{one}.parameters()" for one in self.objects)
        given = [*map(ast.unparse, self.call.args), passed, *map(ast.unparse, self.call.keywords)]
        whole = f"{ast.unparse(self.call.func)}({', '.join(given)})"
        edits = self._edits(passed)
        more = (
            "None for each, as it has run a backward of its own"
            if edits
            else ("a gradient for each: `torch.autograd.grad(y, [x, *params], g)`")
        )
        words = f"Pass them, too: {short(whole, 120)}. `forward` then takes `*params`, and `backward` returns {more}."
        return Fix("pass_parameters", words, False, at(self.place), edits=edits)

    def _edits(self, passed: str) -> Edits:
        """Where `backward` lets the parameters have their gradients by a backward call of its own."""
        forward, backward, run = self.function.method("forward"), self.function.backward, self.function.run
        own = backward is not None and any(syntax.last_name(one) == "backward" for one in syntax.calls_in(backward))
        taken = self.function.inputs
        plain = bool(self.call.args) and not self.call.keywords and not self.function.method("setup_context")
        if forward is None or not own or taken is None or not plain:
            return ()
        cell, text = run.cell, run.source
        edits = text_edit.insert_behind(cell, text, forward.args.args[-1], ", *params")
        edits += text_edit.insert_behind(self.run.cell, self.run.source, self.call.args[-1], f", {passed}")
        nones = f"*(None for _ in ctx.needs_input_grad[{len(taken)}:])"
        for one in self.function.returns:
            if one.value is None or forward.args.args[-1].annotation is not None:
                return ()
            edits += text_edit.insert_behind(cell, text, one.value, f", {nones}")
        return edits


def applied_at(record: Record, run: CellRun, statement: ast.stmt) -> Applied | None:
    """The Function that a statement applies, if it computes with parameters that it is not given."""
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        base, _, last = ast.unparse(call.func).rpartition(".")
        function = defined(record, base) if last == APPLY else None
        objects = tuple(dict.fromkeys(_objects(record, function, call))) if function is not None else ()
        if function is not None and objects:
            return Applied(run, statement, call, function, objects)
    return None


def applied_around(record: Record, lines: Sequence[_Line]) -> tuple[bool, Applied | None]:
    """Whether lines that were running, the innermost first, were in a `forward`; and what had applied that Function."""
    for number, (run, statement) in enumerate(lines, 1):
        if in_a_forward(record, place_of(run, statement.lineno)):
            found = (applied_at(record, *one) for one in lines[number:])
            return True, next(filter(None, found), None)
    return False, None


def in_a_forward(record: Record, place: Place) -> bool:
    """Whether a line stands in the `forward` of a custom Function."""
    made = [(one.run, forward) for one in functions(record) if (forward := one.method("forward")) is not None]
    return any(
        (run.cell, run.file) == (place.cell, place.file) and one.lineno <= (place.line or 0) <= (one.end_lineno or 0)
        for run, one in made
    )


def _objects(record: Record, function: FunctionText, call: ast.Call) -> Iterator[str]:
    """What the `forward` of a Function calls, as the line that applies it names it: an argument, or from outside."""
    forward, inputs = function.method("forward"), function.inputs
    if forward is None or inputs is None or any(isinstance(one, ast.Starred) for one in call.args):
        return
    cells = Cells.of(record)
    own = {name for one in syntax.own_statements(forward.body) for name in syntax.targets(one)}
    for name in _called(cells, forward):
        if name in inputs and inputs.index(name) < len(call.args):
            yield ast.unparse(call.args[inputs.index(name)])
        elif name not in (*inputs, *own) and any(_is_object(run, name) for run in cells.latest):
            yield name


def _is_object(run: CellRun, name: str) -> bool:
    """Whether a cell makes an object of a class under that name."""
    assigned = [one for one in syntax.assignments(run.source, name) if isinstance(one, ast.Assign)]
    made = [value for value, element in (syntax.given_to(one, name) for one in assigned) if element is None]
    return any(isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2][:1].isupper() for one in made)


def _called(cells: Cells, function: ast.FunctionDef) -> Iterator[str]:
    """The names that a function calls as they are, and those that it hands to a function which calls them."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            continue
        if isinstance(node.func, ast.Name):
            yield node.func.id
        for text in cells.texts.values():
            for other in syntax.functions_of(text, syntax.last_name(ast.unparse(node.func))):
                taken = [one.arg for one in other.args.args]
                inside = {one.func.id for one in ast.walk(other) if isinstance(one, ast.Call) and _plain(one)}  # type: ignore[attr-defined]
                for one, given in zip(taken, node.args):
                    if one in inside and isinstance(given, ast.Name):
                        yield given.id


def _plain(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name)
