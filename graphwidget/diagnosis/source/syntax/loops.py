"""Passes in program text: the loops around a line, and what they and functions hand on to their next pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from graphwidget.diagnosis.source.syntax.definitions import function_at
from graphwidget.diagnosis.source.syntax.names import bound, calls_in, carried, changed, names_in, names_read
from graphwidget.diagnosis.source.syntax.statements import nodes_of, statements_at, steps_of

LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)  # each makes a new container


def loop_at(source: str, line: int) -> ast.For | ast.While | None:
    """The innermost loop statement that has the line in its body."""
    return next(reversed(loops_around(source, line)), None)


def loops_around(source: str, line: int) -> list[ast.For | ast.While]:
    """The loop statements that have the line in their bodies, outermost first."""
    return [s for s in statements_at(source, line)[:-1] if isinstance(s, LOOPS)]


def head(loop: ast.For | ast.While) -> str:
    """The head of a loop: ``for t``, ``while h.norm() > 1``."""
    if isinstance(loop, ast.While):
        return f"while {ast.unparse(loop.test)}"
    parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    return f"for {', '.join(map(ast.unparse, parts))}"


def is_comprehension(statement: ast.stmt) -> bool:
    """Whether a statement loops inside its expression: ``[l.backward() for l in losses]``."""
    return not hasattr(statement, "body") and any(_comprehensions(statement))


def runs_in_comprehension(statement: ast.stmt) -> bool:
    """Whether it is such a loop that runs backward, and not an argument: ``trainer.fit([make(n) for n in names])``."""
    if not is_comprehension(statement):
        return False
    value = getattr(statement, "value", None)
    whole = [value, *value.args[:1]] if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else [value]
    found = list(_comprehensions(statement))
    runs = (name.rsplit(".", 1)[-1] in ("backward", "grad") for one in found for name in calls_in(one))
    return any(one in whole for one in found) or any(runs)


def _comprehensions(statement: ast.stmt) -> Iterator[ast.AST]:
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return (node for node in ast.walk(statement) if isinstance(node, kinds))


@lru_cache(maxsize=1024)
def loop_names(source: str) -> frozenset[str]:
    """Names that a `for` assigns: they stand for another tensor in each pass."""
    loops = [n for n in nodes_of(source) if isinstance(n, (ast.For, ast.comprehension))]
    return frozenset(name for loop in loops for name in names_in(loop.target))


def forgotten(source: str, line: int) -> set[str]:
    """Names that the loop around a line assigns in each pass, and that no later line of it reads."""
    loop = loop_at(source, line)
    if loop is None:
        return set()
    later = {name for step in steps_of(loop) if step.lineno > line for name in names_read(step)}
    return changed(loop) - carried(loop) - later


def ended(source: str, line: int) -> set[str]:
    """Variables that end with the function around a line when it returns: its next call has new ones.

    What `global` or `nonlocal` names, and what a function inside reads, lasts longer. In a loop of the function, and in
    a generator, variables last, too. What a variable stands for may last (`shared`).
    """
    around = statements_at(source, line)
    first = next((at for at in reversed(range(len(around))) if isinstance(around[at], _FUNCTIONS)), None)
    if first is None or any(isinstance(statement, LOOPS) for statement in around[first + 1 :]):
        return set()
    function, nodes = around[first], [node for one in ast.iter_child_nodes(around[first]) for node in ast.walk(one)]
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return set()
    declared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    read_inside = {name for node in nodes if isinstance(node, (*_FUNCTIONS, ast.Lambda)) for name in names_in(node)}
    return (bound(function) | _parameters(nodes)) - declared - read_inside


def shared(source: str, line: int) -> set[str]:
    """Variables of the function around a line whose objects others may have, too.

    A parameter stands for what a caller or a default value has; ``memory = self.memory`` is another name of an object.
    """
    found = function_at(source, line)
    nodes = list(ast.walk(found[1])) if found is not None else []
    assigned = (n for n in nodes if isinstance(n, ast.Assign) and not isinstance(n.value, _DISPLAYS))
    return _parameters(nodes).union(*(names_in(target) for one in assigned for target in one.targets))


def _parameters(nodes: list[ast.AST]) -> set[str]:
    return {node.arg for node in nodes if isinstance(node, ast.arg)}


def hand_overs(loop: ast.For | ast.While, line: int) -> Iterator[tuple[ast.stmt, str, str]]:
    """Statements of a loop after a line that only hand a tensor on to the next pass, ``prev = out``, with both names.

    What is handed on is a new value in each pass, and nothing else is assigned to the other name.
    """
    own = changed(loop) - carried(loop)
    steps = list(steps_of(loop))
    for step in steps:
        if not isinstance(step, ast.Assign) or len(step.targets) != 1 or step.lineno <= line:
            continue
        target, value = step.targets[0], step.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in own:
            others = [s for s in steps if s is not step and target.id in changed(s)]
            used = any(s.lineno > step.lineno and target.id in names_read(s) for s in steps)
            if not others and not used:
                yield step, target.id, value.id
