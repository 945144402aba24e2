"""``torch.autograd.grad`` in a function that a transform runs, as ``torch.func.grad`` of what the function computes.

``u = f(x, t); u_x, u_t = autograd.grad(u, (x, t))`` is ``u_x, u_t = torch.func.grad(f, argnums=(0, 1))(x, t)``.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["with_transforms"]

MOST_TEXT = 200  # characters of a derivative in one expression
_FUNC = "torch.func.grad"


class _Unclear(Exception):
    """The text does not say what a derivative is of."""


class _Asked(NamedTuple):
    """A call of `autograd.grad` in an assignment."""

    call: ast.Call
    value: ast.expr  # the call, or its only element: ``grad(u, x)[0]``
    element: int | None
    root: ast.expr
    inputs: tuple[str, ...]
    several: bool  # the inputs are written as a tuple, so the result is one


def with_transforms(failure: Failure) -> tuple[str, Edits]:
    """The derivative at the line that failed, as it should be written, and the edits; empty where it is not clear."""
    inside = syntax.function_at(failure.cell, failure.place.line or 0)
    if inside is None or not _has(failure, "import torch"):
        return "", ()
    try:
        return _Rewriting(failure, inside[1]).done()
    except _Unclear:
        return "", ()


def _has(failure: Failure, line: str) -> bool:
    return any(line in text for text in failure.cells.texts.values())


class _Rewriting:
    """The rewriting of one function, from its first statement to its last."""

    def __init__(self, failure: Failure, function: ast.FunctionDef) -> None:
        self.failure, self.function = failure, function
        self.cell, self.text = failure.place.cell, failure.cell
        self.known: dict[str, ast.expr] = {}  # variables, and what they are computed by
        self.unclear: set[str] = set()
        self.edits: Edits = ()
        self.shown = ""
        self.gone: list[ast.AST] = []  # what is not read any more

    def done(self) -> tuple[str, Edits]:
        for statement in self.function.body:
            self._statement(statement)
        return (self.shown, self.edits + self._without_unread()) if self.shown else ("", ())

    def _statement(self, statement: ast.stmt) -> None:
        calls = [node for node in ast.walk(statement) if self._asks(node)]
        flagging = self._without_flag(statement)
        if calls:
            self._replaced(statement, calls)
        elif flagging is not None:
            self.edits += flagging
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and not _again(statement):
            name = statement.targets[0].id
            if name in self.known or len(statement.targets) > 1:
                self.unclear.add(name)
            self.known[name] = statement.value
        else:
            self.unclear |= syntax.bound(statement)

    def _asks(self, node: ast.AST) -> bool:
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        imported = _has(self.failure, "from torch.autograd import")
        return called.endswith("autograd.grad") or (called == "grad" and imported)

    def _without_flag(self, statement: ast.stmt) -> Edits | None:
        """``x.requires_grad_()`` and ``x = x.requires_grad_()`` left out: a transform needs no flags."""
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        func = value.func if isinstance(value, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "requires_grad_" or value is None:
            return None
        owner = ast.unparse(func.value)
        if isinstance(statement, ast.Expr) or owner in syntax.targets(statement):
            return text_edit.remove(self.cell, self.text, statement)
        return text_edit.replace_node(self.cell, self.text, value, owner)

    # ------------------------------------------------------------------ a derivative

    def _replaced(self, statement: ast.stmt, calls: list[ast.AST]) -> None:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or len(calls) != 1:
            raise _Unclear
        asked = _asked(statement.value, calls[0])
        target = statement.targets[0]
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not all(isinstance(one, ast.Name) for one in names):
            raise _Unclear
        unpacked = isinstance(target, (ast.Tuple, ast.List))
        if asked.element is not None:
            given = asked.inputs[asked.element : asked.element + 1]
            new = self._derivative(asked, given, one=True)
        else:
            new = self._derivative(asked, asked.inputs, one=False)
        for name, of in zip((one.id for one in names if isinstance(one, ast.Name)), asked.inputs):
            if unpacked or asked.element is not None:
                self.known[name] = self._derivative(asked, (of,), one=True)
            else:
                self.unclear.add(name)
        written = ast.unparse(new)
        if len(written) > MOST_TEXT:
            raise _Unclear
        self.edits += text_edit.replace_node(self.cell, self.text, asked.value, written)
        self.gone.append(asked.value)
        if statement.lineno <= (self.failure.place.line or 0) <= (statement.end_lineno or 0) or not self.shown:
            self.shown = written

    def _derivative(self, asked: _Asked, of: tuple[str, ...], *, one: bool) -> ast.expr:
        """The derivative of a root with respect to some inputs: a tensor, or a tuple of them."""
        function, arguments = self._function(asked, of)
        positions = [arguments.index(name) for name in of]
        which = str(positions[0]) if one else f"({', '.join(map(str, positions))}{',' if len(of) == 1 else ''})"
        more = "" if which == "0" else f", argnums={which}"
        found = syntax.expression_of(f"{_FUNC}({function}{more})({', '.join(arguments)})")
        if found is None:
            raise _Unclear
        return found

    def _function(self, asked: _Asked, of: tuple[str, ...]) -> tuple[str, list[str]]:
        """The function that computes a root, and what it is called with."""
        made = self.known.get(asked.root.id) if isinstance(asked.root, ast.Name) else asked.root
        if isinstance(asked.root, ast.Name) and (made is None or asked.root.id in self.unclear):
            raise _Unclear
        summed = self._is_several(asked)
        if isinstance(made, ast.Call) and not made.keywords and not summed:
            given = [one.id for one in made.args if isinstance(one, ast.Name)]
            plain = len(given) == len(made.args) == len(set(given)) and set(of) <= set(given)
            others = [ast.Name(one) for one in given if one not in of]
            if plain and not any(self._depends(one, of) for one in (made.func, *others)):
                return ast.unparse(made.func), given
        whole = self._expanded(made or asked.root, of)
        if not syntax.names_in(whole).issuperset(of):
            raise _Unclear
        body = f"{syntax.in_brackets(whole)}.sum()" if summed else ast.unparse(whole)
        return f"lambda {', '.join(of)}: {body}", list(of)

    def _is_several(self, asked: _Asked) -> bool:
        """Whether a root is not one number: it has a dimension of size 1, or its gradients are summed."""
        value = self.failure.value(ast.unparse(asked.root))
        weighed = any(one.arg == "grad_outputs" for one in asked.call.keywords) or len(asked.call.args) > 2
        return weighed or (value is not None and value.kind == "tensor" and bool(value.shape))

    def _depends(self, value: ast.expr, of: tuple[str, ...]) -> bool:
        work, seen = [*syntax.names_in(value)], set[str]()
        while work:
            name = work.pop()
            if name in of:
                return True
            if name not in seen and name in self.known:
                work += syntax.names_in(self.known[name])
            seen.add(name)
        return False

    def _expanded(self, value: ast.expr, of: tuple[str, ...]) -> ast.expr:
        """An expression in which each variable that is computed from the inputs is written out."""
        names = {name for name in syntax.names_in(value) if name not in of}
        if any(name in self.unclear for name in names):
            raise _Unclear
        inner = {name: self.known[name] for name in names if name in self.known and self._depends(ast.Name(name), of)}
        if not inner:
            return value
        text = ast.unparse(value)
        if len(text) > MOST_TEXT:
            raise _Unclear
        copy = syntax.expression_of(text)
        if copy is None:
            raise _Unclear
        return self._expanded(_Written(inner).visit(copy), of)

    # ------------------------------------------------------------------ what nothing reads any more

    def _without_unread(self) -> Edits:
        """Removals of the variables that only the derivatives were taken of."""
        out: list[ast.stmt] = []
        while True:
            away = {id(node) for one in (*self.gone, *out) for node in ast.walk(one)}
            loads = (n for n in ast.walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            read = {node.id for node in loads if id(node) not in away} | self._written
            unread = [
                one
                for one in self.function.body
                if isinstance(one, ast.Assign) and one not in out and isinstance(one.targets[0], ast.Name)
                if one.targets[0].id not in read and one.value is self.known.get(one.targets[0].id)
                if any(
                    isinstance(n, ast.Name) and n.id == one.targets[0].id
                    for g in (*self.gone, *out)
                    for n in ast.walk(g)
                )
            ]
            if not unread:
                return text_edit.remove(self.cell, self.text, *out) if out else ()
            out += unread

    @property
    def _written(self) -> set[str]:
        """The names that the new texts read."""
        new = (syntax.expression_of(one.new.strip()) for one in self.edits)
        return {name for one in new if one is not None for name in syntax.names_in(one)}


class _Written(ast.NodeTransformer):
    """Writes expressions in place of names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def _again(statement: ast.Assign) -> bool:
    """Whether an assignment reads what it assigns: ``x = x * 2``."""
    return bool(syntax.bound(statement) & syntax.names_in(statement.value))


def _asked(value: ast.expr, call: ast.AST) -> _Asked:
    element = None
    if (
        isinstance(value, ast.Subscript)
        and isinstance(value.slice, ast.Constant)
        and isinstance(value.slice.value, int)
    ):
        element, inner = value.slice.value, value.value
    else:
        inner = value
    if inner is not call or not isinstance(call, ast.Call):
        raise _Unclear
    named = {one.arg: one.value for one in call.keywords}
    root = call.args[0] if call.args else named.get("outputs")
    given = call.args[1] if len(call.args) > 1 else named.get("inputs")
    weights = call.args[2] if len(call.args) > 2 else named.get("grad_outputs")
    several = isinstance(given, (ast.Tuple, ast.List))
    inputs = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    ones = weights is None or "ones" in ast.unparse(weights)
    if root is None or isinstance(root, (ast.Tuple, ast.List)) or not ones:
        raise _Unclear
    names = tuple(one.id for one in inputs if isinstance(one, ast.Name))
    if len(names) != len(inputs) or len(set(names)) != len(names) or not -1 < (element or 0) < len(names):
        raise _Unclear
    return _Asked(call, value, element, root, names, several)
