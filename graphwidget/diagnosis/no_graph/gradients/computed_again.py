"""What a `forward` computes and keeps, computed in `backward` from its inputs: there it is recorded."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cutting import CUTTING, NOT_DIFFERENTIABLE, PLAIN, what_is_cut
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText

__all__ = ["Again", "computed_again"]

_Stored = tuple[str, ast.expr, ast.stmt]  # how `backward` reads a value, the value, and the line that keeps it


class Again(NamedTuple):
    """The lines that `backward` gets, and the edits after which it computes from what `forward` was given."""

    lines: tuple[str, ...]
    edits: Edits


def computed_again(function: FunctionText, kept: Sequence[_Stored], tensors: Collection[str]) -> Again | None:
    """The edits for values that a `forward` keeps; `tensors` are those of its inputs that need a gradient.

    None: names, or the way it is written, do not allow it.
    """
    forward, backward = function.method("forward"), function.backward
    if forward is None or backward is None or function.method("setup_context") is not None:
        return None
    if not forward.args.args or not backward.args.args or not backward.body or function.inputs is None:
        return None
    plan = _Plan(function, forward, backward, kept, tensors)
    return Again(tuple(plan.lines), plan.edits()) if plan.make() else None


@dataclass
class _Plan:
    function: FunctionText
    forward: ast.FunctionDef
    backward: ast.FunctionDef
    kept: Sequence[_Stored]
    tensors: Collection[str]
    lines: list[str] = field(default_factory=list)  # for `backward`
    saved: list[str] = field(default_factory=list)  # what `forward` has to save besides
    numbers: list[str] = field(default_factory=list)  # what it has to keep as an attribute
    spelled: dict[str, str] = field(default_factory=dict)  # names of `forward`, as `backward` has them

    @property
    def ctx(self) -> str:
        return self.forward.args.args[0].arg

    @property
    def there(self) -> str:
        return self.backward.args.args[0].arg

    def make(self) -> bool:
        """Find the lines; False: that is not possible."""
        needed, inputs = self._slice()
        if needed is None or not self._read_inputs(inputs):
            return False
        bound = {name for one in syntax.own_statements(self.backward.body) for name in syntax.targets(one)}
        bound |= {one.arg for one in self.backward.args.args}
        read = {one.id for one in ast.walk(self.backward) if isinstance(one, ast.Name)}
        labels = {label for label, _, _ in self.kept}
        for label, value, _ in self.kept:  # a local of `forward` gets the name that `backward` has for it
            own = value.id if isinstance(value, ast.Name) else label.rpartition(".")[2]
            name = own if label.startswith(f"{self.there}.") else label
            if name in (bound | read | set(_inputs(self.function))) - labels:
                return False
            if isinstance(value, ast.Name):
                self.spelled[value.id] = name
        for one in needed:
            target = ast.unparse(one.targets[0])
            if target not in self.spelled and target in bound | read:
                return False
            self.lines.append(_spelled(one, self.spelled))
        for label, value, _ in self.kept:
            if not isinstance(value, ast.Name):
                self.lines.append(f"{self.name_of(label)} = {_spelled(value, self.spelled)}")
        clash = set(self.saved) & (bound | read)
        return not clash

    def name_of(self, label: str) -> str:
        """The variable that `backward` gets for what it has read as an attribute."""
        value = next(value for one, value, _ in self.kept if one == label)
        return (
            value.id if isinstance(value, ast.Name) and label.startswith(f"{self.there}.") else label.rpartition(".")[2]
        )

    def _slice(self) -> tuple[list[ast.Assign] | None, set[str]]:
        """The lines of `forward` that compute the values, in order, and the inputs that they read. None: unclear."""
        statements, inputs = list(syntax.own_statements(self.forward.body)), _inputs(self.function)
        needed: dict[int, ast.Assign] = {}
        found, seen = set[str](), set[str]()
        queue: list[ast.AST] = [value for _, value, _ in self.kept]
        for node in queue:
            if any(_leaves(one) for one in ast.walk(node)):
                return None, found
            for name in sorted(one.id for one in ast.walk(node) if isinstance(one, ast.Name)):
                made = [one for one in statements if name in syntax.targets(one) or name in syntax.grown(one)]
                if name == self.ctx:
                    return None, found
                if name in inputs and not made:
                    found.add(name)
                elif made and name not in seen:
                    seen.add(name)
                    one = made[0]
                    plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and one in self.forward.body
                    if (
                        len(made) > 1
                        or not plain
                        or not isinstance(one, ast.Assign)
                        or ast.unparse(one.targets[0]) != name
                    ):
                        return None, found
                    needed[one.lineno] = one
                    queue.append(one.value)
        return [needed[line] for line in sorted(needed)], found

    def _read_inputs(self, inputs: Collection[str]) -> bool:
        """How `backward` gets the inputs: as it does already, saved besides, or as attributes."""
        attributes = _attributes(self.forward, self.ctx)
        unpacked = self._unpacked()
        call = self._saving()
        if (call is None) != (unpacked is None):
            return False
        for name in (one for one in _inputs(self.function) if one in inputs):
            kept_as = next((attribute for attribute, value in attributes.items() if value == name), None)
            if call is not None and unpacked is not None and name in (given := [ast.unparse(one) for one in call.args]):
                self.spelled[name] = ast.unparse(unpacked[1][given.index(name)])
            elif kept_as is not None:
                self.spelled[name] = f"{self.there}.{kept_as}"
            elif name in self.tensors:
                self.saved.append(name)
            elif name in attributes:
                return False  # another value has that name
            else:
                self.numbers.append(name)
                self.spelled[name] = f"{self.there}.{name}"
        return True

    def _saving(self) -> ast.Call | None:
        calls = [one for one in ast.walk(self.forward) if isinstance(one, ast.Call)]
        found = [one for one in calls if ast.unparse(one.func) == f"{self.ctx}.save_for_backward"]
        return found[0] if len(found) == 1 else None

    def _unpacked(self) -> tuple[ast.Assign, list[ast.expr]] | None:
        """The line of `backward` that unpacks what was saved, and the names."""
        call = self._saving()
        for one in self.backward.body:
            if isinstance(one, ast.Assign) and ast.unparse(one.value) == f"{self.there}.saved_tensors":
                target = one.targets[0]
                if isinstance(target, (ast.Tuple, ast.List)) and call is not None:
                    return (one, target.elts) if len(target.elts) == len(call.args) else None
        return None

    # ------------------------------------------------------------------ edits

    def edits(self) -> Edits:
        """The edits of both methods."""
        run, unpacked, call = self.function.run, self._unpacked(), self._saving()
        cell, text = run.cell, run.source
        attributes = [(label, kept) for label, _, kept in self.kept if label.startswith(f"{self.there}.")]
        new = [f"{self.ctx}.{name} = {name}" for name in self.numbers]
        edits: Edits = ()
        if call is not None and unpacked is not None:
            labels = {label for label, _, _ in self.kept}
            pairs = [(ast.unparse(a), ast.unparse(b)) for a, b in zip(call.args, unpacked[1])]
            pairs = [pair for pair in pairs if pair[1] not in labels] + [(name, name) for name in self.saved]
            if not pairs:
                return ()
            given, taken = (", ".join(each) for each in zip(*pairs))
            edits += text_edit.replace_node(cell, text, call, f"{self.ctx}.save_for_backward({given})")
            comma = "," if len(pairs) == 1 else ""
            lines = [f"{taken}{comma} = {self.there}.saved_tensors", *self.lines]
            edits += text_edit.replace_node(cell, text, unpacked[0], "\n".join(lines))
        else:
            first = next((one for one in self.backward.body if not _is_docstring(one)), None)
            if first is None:
                return ()
            lines = list(self.lines)
            if self.saved:
                new.append(f"{self.ctx}.save_for_backward({', '.join(self.saved)})")
                comma = "," if len(self.saved) == 1 else ""
                lines.insert(0, f"{', '.join(self.saved)}{comma} = {self.there}.saved_tensors")
            edits += text_edit.insert_before(cell, text, first, lines)
        for number, statement in enumerate(dict.fromkeys(kept for _, kept in attributes)):
            alone = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)
            if not alone:
                return ()
            lines, new = (new, []) if not number else ([], new)
            edits += (
                text_edit.replace_node(cell, text, statement, "\n".join(lines))
                if lines
                else text_edit.remove(cell, text, statement)
            )
        if new:
            edits += text_edit.insert_before(cell, text, self.kept[0][2], new)
        for node in ast.walk(self.backward):
            if isinstance(node, ast.Attribute) and any(ast.unparse(node) == label for label, _ in attributes):
                edits += text_edit.replace_node(cell, text, node, self.name_of(ast.unparse(node)))
        return edits


def _inputs(function: FunctionText) -> tuple[str, ...]:
    return function.inputs or ()


def _leaves(node: ast.AST) -> bool:
    """Whether a node leaves the graph in `backward` as well."""
    cut = what_is_cut(node)
    by_array = isinstance(node, ast.Name) and node.id in PLAIN - {"math"}
    return by_array or (cut is not None and cut[0] in set(CUTTING) - set(NOT_DIFFERENTIABLE))


def _attributes(forward: ast.FunctionDef, ctx: str) -> dict[str, str]:
    """What a `forward` keeps on `ctx`, by the attribute."""
    found: dict[str, str] = {}
    for one in syntax.own_statements(forward.body):
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            targets, values = [one.targets[0]], [one.value]
            if isinstance(targets[0], ast.Tuple) and isinstance(one.value, ast.Tuple):
                targets, values = list(targets[0].elts), list(one.value.elts)
            for target, value in zip(targets, values):
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == ctx:
                    found[target.attr] = ast.unparse(value)
    return found


def _spelled(node: ast.AST, names: Mapping[str, str]) -> str:
    """A piece of text with other names."""
    return ast.unparse(_Renamed(names).visit(copy.deepcopy(node)))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id)
        return ast.copy_location(ast.parse(new, mode="eval").body, node) if new is not None else node


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
