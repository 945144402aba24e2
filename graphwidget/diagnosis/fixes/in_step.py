"""All walks over the parameters of a module that are in step with one list: one value for each parameter, in order.

``names``, start vectors and gradients are read side by side with the list, wherever they are made: in another function,
in a method, in an attribute. If the list leaves out what is frozen, each of them has to leave it out, too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from graphwidget.diagnosis.fixes.in_place.handed_in import own_variables
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits

__all__ = ["only_trainable"]

_WALKS = ("parameters", "named_parameters")
_SAME_ORDER = ("list", "tuple", "iter", "dict", "OrderedDict", "enumerate", "range", "len", "tqdm")
_FLAT = ("cat", "concat", "stack", "parameters_to_vector")  # the values behind each other: as long as they are
_OF_A_DICT = ("items", "values", "keys", "copy")
_MADE = (ast.ListComp, ast.GeneratorExp, ast.DictComp)

# What has one value for each parameter: a variable of a function (by its cell and line), an attribute, the result of a
# function, a walk itself.
_Key = tuple[object, ...]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def only_trainable(texts: Mapping[int, str], cell: int, asked: ast.expr) -> Edits:
    """Edits that leave what requires no grad out of each walk that is in step with a list; none if no walk is known.

    Parameters
    ----------
    texts
        The texts of all cells.
    cell, asked
        The list, as a line of a cell writes it.
    """
    steps = _Steps(texts)
    start = steps.key(cell, asked)
    if start is None:
        return ()
    found: Edits = ()
    reached = steps.reached(start)
    if not steps.written_out.isdisjoint(reached):
        return ()  # it has a value for what is frozen, too: the others would get wrong ones
    for key in reached:
        if key in steps.walks:
            found += _filtered(texts, *steps.walks[key])
    return found


class _Steps:
    """What is in step with what, in all texts."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self.texts = texts
        self.walks: dict[_Key, tuple[int, ast.Call]] = {}
        self.beside: dict[_Key, set[_Key]] = defaultdict(set)
        self.written_out: set[_Key] = set()  # ``[torch.zeros(2), torch.zeros(3)]``
        self.defined: dict[str, list[tuple[int, _Function, bool]]] = defaultdict(list)
        for cell, text in texts.items():
            for node in syntax.nodes_of(text):
                if isinstance(node, ast.FunctionDef):
                    inside = syntax.function_at(text, node.lineno)
                    around = inside[0] if inside is not None and inside[1] is node else None
                    name = around.name if around is not None and node.name == "__init__" else node.name
                    self.defined[name].append((cell, node, around is not None))
        for cell, text in texts.items():
            for node in syntax.nodes_of(text):
                for one, other in self.pairs(cell, node):
                    self.beside[one].add(other)
                    self.beside[other].add(one)

    def reached(self, start: _Key) -> list[_Key]:
        """All that is in step with one of them."""
        found, work = {start: None}, [start]
        while work:
            for one in self.beside[work.pop()]:
                if one not in found:
                    found[one] = None
                    work.append(one)
        return [*found]

    def key(self, cell: int, value: ast.AST | None) -> _Key | None:
        """What a value has its order from; None: unknown, or it has none."""
        if isinstance(value, ast.Name):
            return self.variable(cell, value)
        if isinstance(value, ast.Attribute):
            return ("attribute", value.attr)
        if isinstance(value, _MADE):
            return self.key(cell, value.generators[0].iter) if len(value.generators) == 1 else None
        if not isinstance(value, ast.Call):
            return None
        name = syntax.last_name(ast.unparse(value.func))
        if isinstance(value.func, ast.Attribute) and name in _WALKS:
            key = ("walk", cell, value.lineno, value.col_offset)
            self.walks[key] = (cell, value)
            return key
        if isinstance(value.func, ast.Attribute) and name in _OF_A_DICT and not value.args:
            return self.key(cell, value.func.value)
        if name in ("zip", *_FLAT, *_SAME_ORDER):
            return self.key(cell, value.args[0]) if value.args else None
        if name == "grad":
            given = [one.value for one in value.keywords if one.arg == "inputs"] + value.args[1:2]
            return self.key(cell, given[0]) if given else None
        return ("result", name) if name in self.defined else None

    def variable(self, cell: int, name: ast.Name) -> _Key:
        """A variable of the function around, or of the module."""
        inside = syntax.function_at(self.texts[cell], name.lineno)
        if inside is not None and name.id in own_variables(inside[1]):
            return ("variable", cell, inside[1].lineno, name.id)
        return ("variable", name.id)

    def pairs(self, cell: int, node: ast.AST) -> Iterator[tuple[_Key, _Key]]:
        """What a node shows to be in step."""
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Tuple)) and node.value.elts:
            self.written_out.update(key for one in node.targets if (key := self.key(cell, one)) is not None)
        for one, other in self.values(cell, node):
            first, second = self.key(cell, one), self.key(cell, other)
            if first is not None and second is not None:
                yield first, second
        if isinstance(node, ast.Call):
            yield from self.handed(cell, node)
        if isinstance(node, ast.Return):
            inside, key = syntax.function_at(self.texts[cell], node.lineno), self.key(cell, node.value)
            if inside is not None and key is not None:
                yield ("result", inside[1].name), key

    def values(self, cell: int, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Two values that a node assigns to each other, or goes over together."""
        if isinstance(node, ast.Assign):
            yield from ((target, one) for target in node.targets for one in _choices(node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "zip" and node.args:
            yield from ((node.args[0], other) for other in node.args[1:])
        elif isinstance(node, ast.For):
            inside = [each for one in node.body for each in ast.walk(one)]
            for one in inside:
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "append":
                    yield one.func.value, node.iter
            yield from _numbered(node.target, node.iter, inside)
            yield from ((one.value, node.iter) for one in inside if _is_piece(one))
        elif isinstance(node, _MADE):
            for each in node.generators:
                yield from _numbered(each.target, each.iter, [*ast.walk(node)])

    def handed(self, cell: int, call: ast.Call) -> Iterator[tuple[_Key, _Key]]:
        """The arguments of a call, and what the function calls them."""
        for there, function, is_method in self.defined.get(syntax.last_name(ast.unparse(call.func)), ()):
            arguments = function.args
            names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
            names = names[1:] if is_method and names[:1] in (["self"], ["cls"]) else names
            given = [*zip(names, call.args)] if not any(isinstance(one, ast.Starred) for one in call.args) else []
            given += [(one.arg, one.value) for one in call.keywords if one.arg is not None]
            for name, value in given:
                key = self.key(cell, value)
                if key is not None:
                    yield ("variable", there, function.lineno, name), key


def _choices(value: ast.expr) -> list[ast.expr]:
    """What a value may be: each side of ``params or list(net.parameters())``."""
    if isinstance(value, ast.IfExp):
        return [value.body, value.orelse]
    return value.values if isinstance(value, ast.BoolOp) else [value]


def _is_piece(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """Whether a node takes as much of a flat vector as a parameter has elements: ``vector[at : at + p.numel()]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    return isinstance(node.slice.lower, ast.Name) and node.slice.upper is not None


def _numbered(target: ast.expr, over: ast.expr, inside: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """`grads` beside `params` in ``for i, p in enumerate(params): ... grads[i]``."""
    if not isinstance(over, ast.Call) or ast.unparse(over.func) != "enumerate" or not isinstance(target, ast.Tuple):
        return
    number = ast.unparse(target.elts[0])
    for node in inside:
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == number:
            yield node.value, over


# ------------------------------------------------------------------ the edits


def _filtered(texts: Mapping[int, str], cell: int, walk: ast.Call) -> Edits:
    """A walk without what requires no grad; nothing where it says already what it leaves out."""
    text, written = texts[cell], ast.unparse(walk)
    named = syntax.last_name(ast.unparse(walk.func)) == "named_parameters"
    around = [node for node in syntax.nodes_of(text) if _has(node, walk)]
    for node in around:
        if isinstance(node, ast.comprehension):
            if any("requires_grad" in ast.unparse(one) for one in node.ifs):
                return ()
            target = node.target.elts[-1] if isinstance(node.target, ast.Tuple) else node.target
            if isinstance(target, ast.Name) and named == isinstance(node.target, ast.Tuple):
                end, name = node.ifs[-1] if node.ifs else node.iter, "p" if target.id == "_" else target.id
                more = text_edit.replace_node(cell, text, target, name)
                return more + text_edit.insert_behind(cell, text, end, f" if {name}.requires_grad")
        elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            called = syntax.last_name(ast.unparse(node.func))
            if named and called in ("dict", "OrderedDict"):
                return text_edit.replace_node(cell, text, node, f"{{k: p for k, p in {written} if p.requires_grad}}")
            if called == "list":
                return text_edit.replace_node(cell, text, node, _display(written, named))
            if called == "tuple":
                return text_edit.replace_node(cell, text, walk, _display(written, named)[1:-1])
    return text_edit.replace_node(cell, text, walk, _display(written, named))


def _display(written: str, named: bool) -> str:
    return (
        f"[(k, p) for k, p in {written} if p.requires_grad]" if named else f"[p for p in {written} if p.requires_grad]"
    )


def _has(node: ast.AST, walk: ast.Call) -> bool:
    """Whether a node goes over a walk, or is a call that it is given to."""
    if isinstance(node, ast.comprehension):
        return node.iter is walk
    return isinstance(node, ast.Call) and any(one is walk for one in node.args)
