"""Whether what a call returns is used in another expression: through variables, containers, functions and objects.

The text of a program is read without regard to the order of its lines, until nothing new is found. A value that is
only looked at, made a number, or detached goes nowhere.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from graphwidget.diagnosis.source.pytorch.grad_modes import around
from graphwidget.diagnosis.source.syntax import last_name, main_function, nodes_of, parse

__all__ = ["Flow"]

Path = tuple[object, ...]  # where in a value it is: () the value itself; ("forces",) its element, key or attribute
Paths = frozenset[Path]

_ANY = object()  # an element of which the number or key is not known
_NOWHERE: Paths = frozenset()
_DEEPEST = 3  # elements of elements that are told apart
_MOST_ROUNDS = 12  # through the whole text
_NO_VALUES = frozenset("detach data item tolist numpy shape size dtype device requires_grad ndim grad_fn".split())
_LOOKING = frozenset({"print", "float", "int", "bool", "str", "repr", "type", "id", "isinstance", "len", "format"})
_ADDING_TO = frozenset({"append", "extend", "add", "insert", "appendleft"})
_FORWARD = ("forward", "__call__")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Flow:
    """Where the results of some calls go.

    Parameters
    ----------
    texts
        The text of each cell or file.
    begins
        The cells and first lines of statements; what calls of ``grad`` in them return is followed.
    """

    def __init__(self, texts: Mapping[int, str], begins: Iterable[tuple[int, int]]) -> None:
        self._begins = set(begins)
        self._trees = {cell: tree for cell, text in texts.items() if (tree := parse(text)) is not None}
        self._texts = texts
        self._in: dict[tuple[object, str], Paths] = {}  # by the function (None: of no function) and the name
        self._attributes: dict[str, Paths] = {}
        self._returned: dict[str, Paths] = {}
        self._functions: dict[str, list[_Function]] = {}
        self._classes: set[str] = set()
        self._keys: set[object] = set()
        self._constants: dict[str, object] = {}  # the key that a comprehension's variable stands for
        self._cell = 0
        for cell in self._trees:
            for node in nodes_of(texts[cell]):
                if isinstance(node, _Function):
                    self._functions.setdefault(node.name, []).append(node)
                elif isinstance(node, ast.ClassDef):
                    self._classes.add(node.name)
        self._follow()

    def reaches(self, cell: int, root: ast.expr, function: _Function | None) -> bool:
        """Whether an expression in a function of a cell is computed from what is followed."""
        self._cell = cell
        return () in self._of(root, function)

    # ------------------------------------------------------------------ through the whole text

    def _follow(self) -> None:
        for _ in range(_MOST_ROUNDS):
            before = self._size
            for cell, tree in self._trees.items():
                self._cell = cell
                self._block(tree.body, None)
            if self._size == before:
                return

    @property
    def _size(self) -> int:
        return sum(len(one) for known in (self._in, self._attributes, self._returned) for one in known.values())

    def _block(self, body: Iterable[ast.AST], function: _Function | None) -> None:
        for node in body:
            if isinstance(node, _Function):
                self._block(node.body, node)
            elif isinstance(node, ast.stmt):
                self._statement(node, function)

    def _statement(self, node: ast.stmt, function: _Function | None) -> None:
        if isinstance(node, ast.Assign):
            value = self._of(node.value, function)
            for target in node.targets:
                self._assign(target, self._recorded(node, value), function)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            self._assign(node.target, self._recorded(node, self._of(node.value, function)), function)
        elif isinstance(node, ast.Return) and node.value is not None:
            main = main_function(self._texts[self._cell])  # its body stands in the place of its definition
            made_by = function or (main.function if main is not None else None)
            if made_by is not None:
                self._add(self._returned, made_by.name, self._recorded(node, self._of(node.value, function)))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._assign(node.target, _element(self._of(node.iter, function)), function)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                found = self._of(item.context_expr, function)
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, found, function)
        else:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self._of(part, function)
        for _, inside in ast.iter_fields(node):
            for one in inside if isinstance(inside, list) else ():
                self._block(one.body if isinstance(one, (ast.ExceptHandler, ast.match_case)) else [one], function)

    def _recorded(self, statement: ast.stmt, found: Paths) -> Paths:
        """Nothing, where grad mode is off: what is computed there is meant as a constant."""
        return found if not found or around(self._texts[self._cell], statement) is None else _NOWHERE

    def _assign(self, target: ast.expr, found: Paths, function: _Function | None) -> None:
        if not found:
            return
        if isinstance(target, ast.Name):
            self._add(self._in, self._scope(target.id, function), found)
        elif isinstance(target, ast.Attribute):
            self._add(self._attributes, target.attr, found)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, _inside(_ANY, found), function)
        elif isinstance(target, ast.Subscript):
            self._assign(target.value, _inside(self._key(target.slice), found), function)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for number, one in enumerate(target.elts):
                self._assign(one, _at(found, number), function)

    def _scope(self, name: str, function: _Function | None) -> tuple[object, str]:
        return (function if function is not None and name in _own_names(function) else None), name

    def _add(self, known: dict[Any, Paths], key: object, found: Paths) -> None:
        short = frozenset(path[:_DEEPEST] for path in found)
        self._keys |= {part for path in short for part in path if isinstance(part, str)}
        known[key] = known.get(key, _NOWHERE) | short

    # ------------------------------------------------------------------ expressions

    def _of(self, node: ast.expr | None, function: _Function | None) -> Paths:
        """Where in the value of an expression it is."""
        if node is None or isinstance(node, (ast.Constant, ast.Compare, ast.JoinedStr)):
            return _NOWHERE
        if isinstance(node, ast.Name):
            return self._in.get(self._scope(node.id, function), _NOWHERE)
        if isinstance(node, ast.Attribute):
            if node.attr in _NO_VALUES:
                return _NOWHERE
            holder = self._of(node.value, function)
            return self._attributes.get(node.attr, _NOWHERE) | _at(holder, node.attr, certain=True) | (holder & {()})
        if isinstance(node, ast.Subscript):
            return _at(self._of(node.value, function), self._key(node.slice))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = [_inside(number, self._of(one, function)) for number, one in enumerate(node.elts)]
            return _NOWHERE.union(*parts)
        if isinstance(node, ast.Dict):
            known = [
                _inside(key.value if isinstance(key, ast.Constant) else _ANY, self._of(value, function))
                if key is not None
                else self._of(value, function)
                for key, value in zip(node.keys, node.values)
            ]
            return _NOWHERE.union(*known)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return self._of_comprehension(node, function)
        if isinstance(node, ast.Call):
            return self._of_call(node, function)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            either = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return _NOWHERE.union(*(self._of(one, function) for one in either))
        if isinstance(node, ast.NamedExpr):
            found = self._of(node.value, function)
            self._assign(node.target, found, function)
            return found
        if isinstance(node, (ast.Await, ast.Starred)):
            return self._of(node.value, function)
        if isinstance(node, ast.BinOp):  # ``a + b`` may be of lists
            return frozenset(p for one in (node.left, node.right) for p in self._of(one, function) if not _by_name(p))
        below = [self._of(one, function) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return _whole(_NOWHERE.union(*below))

    def _key(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._constants.get(node.id, _ANY)
        return _ANY

    def _of_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, function: _Function | None
    ) -> Paths:
        for one in node.generators:
            self._assign(one.target, _element(self._of(one.iter, function)), function)
        if not isinstance(node, ast.DictComp):
            return _inside(_ANY, self._of(node.elt, function))
        if not isinstance(node.key, ast.Name):
            return _inside(_ANY, self._of(node.value, function))
        found = _NOWHERE
        for key in sorted(self._keys, key=str):  # ``{k: stack([r[k] for r in results]) for k in results[0]}``
            self._constants[node.key.id] = key
            found |= _inside(key, self._of(node.value, function))
        self._constants.pop(node.key.id, None)
        return found

    def _of_call(self, node: ast.Call, function: _Function | None) -> Paths:
        name = last_name(ast.unparse(node.func))
        if name == "grad" and self._begins_at(node):
            return frozenset({(_ANY,)})
        given = [self._of(one, function) for one in node.args]
        named = {one.arg: self._of(one.value, function) for one in node.keywords}
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        held = self._of(holder, function) if holder is not None else _NOWHERE
        if name in self._functions or name in self._returned:
            return self._of_function(self._functions.get(name, []), given, named) | self._returned.get(name, _NOWHERE)
        if name in self._classes or name == "dict":
            return _NOWHERE.union(*(_inside(key, one) for key, one in named.items()))
        if name in _NO_VALUES or name in _LOOKING:
            return _NOWHERE
        if name in _ADDING_TO and holder is not None:
            elements = given[-1] if given else _NOWHERE
            self._assign(holder, elements if name == "extend" else _inside(_ANY, elements), function)
            return _NOWHERE
        if name in ("get", "pop", "popleft", "setdefault") and held:
            key = self._key(node.args[0]) if node.args else _ANY
            return _at(held, key)
        if name == "items":
            return frozenset((_ANY, 1, *path) for path in _at(held, _ANY))
        if name in ("values", "zip", "enumerate", "reversed", "list", "tuple", "sorted"):
            return self._of_elements(name, given, held)
        if self._is_module(node.func):
            forwards = [one for own in _FORWARD for one in self._functions.get(own, ())]
            return self._of_function(forwards, given, named) | _whole(_NOWHERE.union(*given))
        return _whole(_NOWHERE.union(held, *given, *named.values()))

    @staticmethod
    def _of_elements(name: str, given: list[Paths], held: Paths) -> Paths:
        """Of what makes a sequence of another: where in its elements it is."""
        if name == "values":
            return _inside(_ANY, _at(held, _ANY))
        if name == "zip":
            return frozenset((_ANY, at, *path) for at, one in enumerate(given) for path in _element(one))
        first = given[0] if given else _NOWHERE
        return frozenset((_ANY, 1, *path) for path in _element(first)) if name == "enumerate" else first

    def _begins_at(self, node: ast.Call) -> bool:
        lines = {line for cell, line in self._begins if cell == self._cell}
        return any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines)

    def _of_function(self, functions: list[_Function], given: list[Paths], named: Mapping[str | None, Paths]) -> Paths:
        """What functions of one name return; what they are given is in their arguments from now on."""
        for one in functions:
            names = [argument.arg for argument in (*one.args.posonlyargs, *one.args.args)]
            names = names[1:] if names[:1] == ["self"] else names
            for argument, found in (*zip(names, given), *named.items()):
                if found and argument is not None:
                    self._add(self._in, (one, argument), found)
        return _NOWHERE.union(*(self._returned.get(one.name, _NOWHERE) for one in functions))

    def _is_module(self, called: ast.expr) -> bool:
        """Whether something that is called may be an object of a class of the program: no method of a tensor is."""
        if isinstance(called, ast.Name):
            return not hasattr(builtins, called.id)
        own = isinstance(called, ast.Attribute) and ast.unparse(called.value) == "self"
        return own or isinstance(called, ast.Subscript)


def _by_name(path: Path) -> bool:
    """Whether it is below a key or an attribute: no tensor has such parts, and no list of tensors."""
    return any(isinstance(one, str) for one in path)


def _whole(found: Paths) -> Paths:
    """What an operation makes of tensors, or of lists of them."""
    return frozenset({()}) if any(not _by_name(path) for path in found) else _NOWHERE


def _inside(key: object, found: Paths) -> Paths:
    return frozenset((key, *path) for path in found)


def _element(found: Paths) -> Paths:
    """In what a loop over the value gets: of a dictionary, only keys."""
    return _at(frozenset(path for path in found if not isinstance(next(iter(path), None), str)), _ANY)


def _at(found: Paths, key: object, *, certain: bool = False) -> Paths:
    """Where in an element it is. `certain`: only in the one of that name."""
    own = {path[1:] for path in found if path and (path[0] == key or (not certain and _ANY in (path[0], key)))}
    return frozenset(own if certain else own | (found & {()}))


@lru_cache(maxsize=256)
def _own_names(function: _Function) -> frozenset[str]:
    """The variables of a function; those that it has from outside are of no function."""
    outside = {
        name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    return frozenset(_bound(function)) - outside


def _bound(function: _Function) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
