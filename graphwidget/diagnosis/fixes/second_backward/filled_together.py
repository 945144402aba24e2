"""The containers that a pass fills together: who empties one of them has to empty the others.

A policy keeps ``saved_log_probs`` and ``rewards``. If only the first is emptied, each pass pairs its new elements with
rewards of the passes before, and no error shows it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.containers import begins_empty
from graphwidget.diagnosis.source.dataflow.running import in_running_order
from graphwidget.diagnosis.source.paths import root_of

__all__ = ["FILLING", "filled", "filled_beside", "last_name"]

FILLING = ("append", "appendleft", "extend", "insert")


def filled_beside(texts: Sequence[str], body: Collection[ast.stmt], containers: Collection[str]) -> list[str] | None:
    """Further containers that the statements of a pass fill like these, and from which its loss is computed.

    They are written like the given ones: ``policy.rewards`` beside ``policy.saved_log_probs``. None: one of them
    cannot be written where these can. Those that the pass empties itself are left out.
    """
    steps = list(in_running_order(texts, body))
    known = {last_name(path) for path in containers}
    needed = _needed(steps)
    inner = [loop for one in body for loop in ast.walk(one) if isinstance(loop, syntax.LOOPS)]
    inside = [{id(step) for step in in_running_order(texts, loop.body)} for loop in inner]

    def loops_around(step: ast.stmt) -> list[bool]:
        return [id(step) in some for some in inside]

    fills = [(step, whole) for step in steps for whole in filled(step)]
    around = [loops_around(step) for step, whole in fills if last_name(ast.unparse(whole)) in known]
    assigned = {last_name(target) for step in steps for target in syntax.targets(step)}
    assigned |= {last_name(ast.unparse(whole)) for step in steps for whole in _emptied(step)}
    containers = [*containers, *_other_names(steps, containers)]
    found: dict[str, str] = {}
    for step, whole in fills:
        name = last_name(ast.unparse(whole))
        if name in {*known, *found, *assigned} or name not in needed or loops_around(step) not in around:
            continue
        if not begins_empty(texts, name):
            continue
        written = _written_like(texts, whole, containers)
        if written is None:
            return None
        found[name] = written
    return list(found.values())


def filled(step: ast.stmt) -> Iterator[ast.expr]:
    """The containers into which a statement puts something: ``buffer`` for ``buffer['reward'].append(r)``."""
    for node in ast.walk(step):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
            yield _whole(node.func.value)
    if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add):
        yield _whole(step.target)


def _emptied(step: ast.stmt) -> Iterator[ast.expr]:
    """The containers that a statement empties: ``del policy.rewards[:]``, ``rewards.clear()``."""
    for node in ast.walk(step):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clear":
            yield node.func.value
        elif isinstance(node, ast.Delete):
            parts = (one for one in node.targets if isinstance(one, ast.Subscript))
            yield from (one.value for one in parts if ast.unparse(one.slice) == ":")


def _other_names(steps: Collection[ast.stmt], containers: Collection[str]) -> list[str]:
    """``policy.saved_actions`` for ``saved_actions``, where a step says that both are the same."""
    plain = (step for step in steps if isinstance(step, ast.Assign) and isinstance(step.value, ast.Attribute))
    return [ast.unparse(step.value) for step in plain if set(syntax.targets(step)) & set(containers)]


def last_name(path: str) -> str:
    """``rewards`` for ``policy.rewards``."""
    return path.rsplit(".", 1)[-1]


def _whole(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _needed(steps: Sequence[ast.stmt]) -> set[str]:
    """The names from which what is run backward is computed; those that only a message or a log reads are not."""
    calls = (step for step in steps if any(last_name(name) == "backward" for name in syntax.calls_in(step)))
    found = {name for step in calls for name in syntax.words_in(step)}
    before = -1
    while before < len(found):
        before = len(found)
        for step in reversed(steps):
            if isinstance(step, ast.Return) or found.intersection(map(last_name, _given(step))):
                found |= syntax.words_in(step)
    return found


def _given(step: ast.stmt) -> Iterator[str]:
    """What a statement assigns or fills."""
    yield from syntax.targets(step)
    yield from (ast.unparse(whole) for whole in filled(step))


def _written_like(texts: Sequence[str], whole: ast.expr, containers: Collection[str]) -> str | None:
    """How to write a container where others can be written: as an attribute of the same object, or a variable."""
    name = last_name(ast.unparse(whole))
    if isinstance(whole, ast.Name):
        return name if all(path.isidentifier() for path in containers) else None
    for path in containers:
        holder = path.rpartition(".")[0]
        if holder and any(_same_object(text, name, last_name(path)) for text in texts):
            return f"{holder}.{name}"
        if ast.unparse(whole).startswith(f"{root_of(path)}."):
            return ast.unparse(whole)
    return None


def _same_object(text: str, one: str, other: str) -> bool:
    """Whether a class gives both attributes to its objects."""
    for node in syntax.nodes_of(text):
        if isinstance(node, ast.ClassDef):
            given = {target for s in ast.walk(node) if isinstance(s, ast.stmt) for target in syntax.targets(s)}
            if {f"self.{one}", f"self.{other}"} <= given:
                return True
    return False
