"""Cuts at the one statement that puts a state into a container, under whatever key: ``self.last[case.name] = u``.

A line behind the call can name the keys that were seen, and the next pass has another one. The statement knows its key.
It may run before the call of its pass. Then nothing that runs from there to the call may read the container: that would
have no graph any more.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.reuse.named_edges import NamedEdge
from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Spot
from graphwidget.diagnosis.source.dataflow.called import objects_of
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.other_names import other_names
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import lines_of, short

__all__ = ["stored_by_key"]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CALLED = ("__call__", "forward")  # by a call of the object itself


def stored_by_key(context: CuttingContext, paths: Collection[str], carried: Collection[NamedEdge]) -> Iterator[Cut]:
    """Put the state in detached, where one statement does so by a key that it computes, or at an end.

    Parameters
    ----------
    paths, carried
        The carriers that last beyond a pass, and the edges to what is carried, without names that do not.
    """
    paths = list(map(local, paths))
    holders = {path.split("[", 1)[0] for path in paths}
    if len(holders) != 1 or not all("[" in path for path in paths):
        return
    (holder,) = holders
    wanted = {*paths, *(name for one in carried for name in one.names if name.startswith(f"{holder}["))}
    seen = {local(one.path)[len(holder) :]: one.containers for one in context.reuse.graph.owners}
    texts = context.cells
    found = [
        (cell, line, edits)
        for cell, text in texts.items()
        for line, edits in containers.detached_in(
            cell, text, holder, {path[len(holder) :] for path in wanted}, texts.values(), seen
        )
    ]
    if len(found) != 1 or found[0][0] is None:
        return
    cell, line, edits = found[0]
    spot = (cell, line)
    gone = _edges(carried, holder)
    if not gone or _has_fixed_key(texts[cell], line) or not _Unread(context, holder).until_the_call(spot):
        return
    yield Cut(
        f"Store it detached: {short(text_edit.new_text(texts[cell], edits))} (In[{cell}], line {line}).",
        spot,
        edits,
        gone,
    )


def _edges(carried: Collection[NamedEdge], holder: str) -> frozenset[int]:
    """The edges to tensors that nothing but the container has kept."""
    return frozenset(one.edge for one in carried if all(name.startswith(f"{holder}[") for name in one.names))


def _has_fixed_key(text: str, line: int) -> bool:
    """Whether a statement assigns to one key alone: a line behind the call can do so as well."""
    made = source.statements_at(text, line)[-1:]
    targets = made[0].targets if made and isinstance(made[0], ast.Assign) else []
    return any(isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) for one in targets)


class _Unread:
    """What runs between a statement that stores and the call of its pass: whether it reads the container."""

    def __init__(self, context: CuttingContext, holder: str) -> None:
        self.context, self.texts = context, tuple(context.cells.values())
        name = source.last_name(holder)
        self.words = {name, *(one.name for one in other_names(self.texts, name))}
        self.readers = self._leading_to(self.words, set())
        self.storers = set[str]()

    def until_the_call(self, store: Spot) -> bool:
        """Whether nothing reads it from the statement to the call; False also if that is not known."""
        context, text = self.context, self.context.text(store)
        inside = source.function_at(text, store[1])
        self.storers = self._leading_to(set(), {inside[1].name} if inside is not None else set())
        frames = lines_of(context.reuse.carrier_place)
        depth, start = self._begins(frames, store, inside[1] if inside is not None else None)
        if start is None:
            return False
        way = [*frames[:depth], start] if start == store else [*frames[:depth], start, store]
        calls = [*lines_of(context.reuse.earlier.place), *lines_of(context.reuse.later.place)]
        for spot in reversed(way):
            here = _function(context.text(spot), spot[1])
            ends = [one[1] for one in calls if one[0] == spot[0] and _function(context.text(spot), one[1]) is here]
            if not self._is_unread_behind(spot, here, max(ends, default=None), own=spot == store):
                return False
            if ends:
                return True
        return False

    def _begins(self, frames: list[Spot], store: Spot, function: ast.FunctionDef | None) -> tuple[int, Spot | None]:
        """The frame in which the store runs, or the function that stores is called: its number, and the line there."""
        for depth in range(len(frames) - 1, -1, -1):
            cell, line = frames[depth]
            text = self.context.text(frames[depth])
            here = _function(text, line)
            if cell == store[0] and here is function:
                return depth, store
            called = source.calls_by_name(text).get(function.name, ()) if function is not None else ()
            behind = [one.lineno for one in called if _function(text, one.lineno) is here and one.lineno >= line]
            if behind:
                return depth, (cell, min(behind))
        return 0, None

    def _is_unread_behind(self, spot: Spot, function: ast.FunctionDef | None, end: int | None, *, own: bool) -> bool:
        text = self.context.text(spot)
        tree = source.parse(text)
        made = source.statements_at(text, spot[1])[-1:]
        if tree is None or not made:
            return False
        body = function.body if function is not None else tree.body
        around = [one for one in source.loops_around(text, spot[1]) if function is None or one.lineno > function.lineno]
        loops = [one for one in around if end is None or not one.lineno <= end <= (one.end_lineno or 0)]
        pass_ = next((one for one in reversed(around) if one not in loops), None)
        begins, here = pass_.lineno if pass_ is not None else 0, list[ast.stmt]()
        for step in (step for one in source.own_statements(body) for step in source.head_of(one)):
            again = any(one.lineno <= step.lineno <= (one.end_lineno or 0) for one in loops)
            if step.lineno == made[0].lineno:
                here.append(step)
            elif again or (step.lineno > spot[1] and (end is None or step.lineno <= end)):
                if self._reads(step):
                    return False
            elif begins < step.lineno < spot[1] and self._calls_of(step, self.storers):
                return False  # a pass stores twice, and what it does between may read
        if own:
            return sum(map(self._reads, here)) <= 1
        looped = (one for step in here for one in ast.walk(step) if isinstance(one, _COMPREHENSIONS))
        calls = [call for step in here for call in self._reading_calls(step)]
        named = any(self.words & source.words_in(step) for step in here)
        return len(calls) <= 1 and not named and not any(map(self._reading_calls, looped))

    def _reads(self, step: ast.stmt) -> bool:
        return bool(self.words & source.words_in(step)) or bool(self._reading_calls(step))

    def _reading_calls(self, step: ast.AST) -> list[ast.Call]:
        return self._calls_of(step, self.readers)

    def _calls_of(self, step: ast.AST, names: set[str]) -> list[ast.Call]:
        """The calls of some functions that a statement makes, and those that may be."""
        calls = (node for node in ast.walk(step) if isinstance(node, ast.Call))
        return [one for one in calls if source.last_name(ast.unparse(one.func)) in names or self._may_be(one, names)]

    def _may_be(self, call: ast.Call, names: set[str]) -> bool:
        """Whether a call of an object may run one of some methods: nothing shows what the object is."""
        if names.isdisjoint(_CALLED):
            return False
        name = source.last_name(ast.unparse(call.func))
        is_self = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
        if not (isinstance(call.func, ast.Name) or is_self) or hasattr(builtins, name):
            return False
        if any(source.defined(text, name) or _imports(text, name) for text in self.texts):
            return False
        made = [getattr(one, "value", None) for text in self.texts for one, _ in source.assigned_as(text, name)]
        return not made or not all(isinstance(one, (ast.Call, ast.Lambda)) for one in made)

    def _leading_to(self, words: set[str], called: set[str]) -> set[str]:
        """The names by which functions are called that have these words, or that call one of these names."""
        functions = [found for text in self.texts for found in _functions(text) if found[1].name != "__init__"]
        found, before = set(called), -1
        while len(found) > before:
            before = len(found)
            for around, one in functions:
                if words & source.words_in(one) or _called(one) & found or one.name in called:
                    found.add(one.name)
                    if one.name in _CALLED and around is not None:
                        found |= self._objects(around)
        return found

    def _objects(self, cls: ast.ClassDef) -> set[str]:
        """The last names of objects of a class, or of one that is derived from it."""
        kinds = {cls.name}
        for _ in range(3):
            for text in self.texts:
                for node in source.nodes_of(text):
                    if isinstance(node, ast.ClassDef) and kinds & {
                        source.last_name(ast.unparse(b)) for b in node.bases
                    }:
                        kinds.add(node.name)
        return {source.last_name(one) for kind in kinds for text in self.texts for one in objects_of(text, kind)}


def _imports(text: str, name: str) -> bool:
    """Whether a text has a name from a module: it is a function or class, ``islice``, no object that is handed in."""
    imports = (one for one in source.nodes_of(text) if isinstance(one, ast.ImportFrom))
    return any(name == (alias.asname or alias.name) for one in imports for alias in one.names)


def _called(node: ast.AST) -> set[str]:
    return {source.last_name(name) for name in source.calls_in(node)}


def _functions(text: str) -> Iterator[tuple[ast.ClassDef | None, ast.FunctionDef]]:
    for node in source.nodes_of(text):
        if isinstance(node, ast.FunctionDef) and (found := source.function_at(text, node.body[0].lineno)) is not None:
            yield found


def _function(text: str, line: int) -> ast.FunctionDef | None:
    found = source.function_at(text, line)
    return found[1] if found is not None else None
