"""Generators that are gone through twice: ``model.parameters()`` under a name gives nothing the second time.

So a clip that first sums the squares of the gradients, and then scales them, scales none; and a group of an optimizer
is empty, if the parameters were counted before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.clips.loop_order import CLIPS
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding, Fix, Record

__all__ = ["Made", "find", "generates", "listed", "made_into_a_list"]

_OF_MODULES = ("parameters", "buffers", "modules", "children")
_OF_PYTHON = ("filter", "map", "zip", "iter", "reversed", "enumerate", "chain", "from_iterable")
_TAKING_ALL = ("list", "tuple", "set", "sum", "max", "min", "sorted", "parameters_to_vector", *CLIPS)


class Made(NamedTuple):
    """An expression that makes a generator, and its run."""

    run: CellRun
    node: ast.expr

    @property
    def line(self) -> int:
        return self.node.lineno


class _Use(NamedTuple):
    """A statement that takes all that a generator gives. `trains`: what it is for has to do with training."""

    run: CellRun
    statement: ast.stmt
    trains: bool

    @property
    def line(self) -> int:
        return self.statement.lineno


class _Scope(NamedTuple):
    """Where a name means one thing: the body of a function, or those of all cells together, in their order."""

    function: ast.FunctionDef | None
    bodies: list[tuple[CellRun, list[ast.stmt]]]

    @property
    def first_line(self) -> int:
        return self.bodies[0][1][0].lineno if self.function is not None else 0

    def spot(self, one: Made | _Use) -> tuple[int, int]:
        """Where something stands: which cell, and its line."""
        runs = [run for run, _ in self.bodies]
        return runs.index(one.run) if one.run in runs else -1, one.line

    def statements(self) -> Iterator[tuple[CellRun, ast.stmt]]:
        return ((run, one) for run, body in self.bodies for one in syntax.own_statements(body))


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each name of a generator that a line is to read after another has used it up."""
    if not record.calls:
        return
    latest = [run for run in Cells.of(record).latest if run.cell is not None]
    for scope in _scopes(latest):
        taken = (each for _, one in scope.statements() for each in _taken(latest, one))
        for name in sorted({name for each in taken if (name := _name(each))}):
            made = _made(latest, scope, name)
            weights = any("parameters(" in ast.unparse(one.node) for one in made)
            found = [_use(latest, run, one, name, weights) for run, one in scope.statements()] if made else []
            uses = [use for use in found if use is not None]
            for first, second in list(_pairs(scope, made, uses))[:1]:
                yield _of(name, made, first, second)


def _scopes(latest: list[CellRun]) -> Iterator[_Scope]:
    """All cells together, and the functions of those that read gradients or make optimizers."""
    trees = [(run, tree) for run in latest if (tree := syntax.parse(run.source)) is not None]
    yield _Scope(None, [(run, tree.body) for run, tree in trees])
    for run, _ in trees:
        if any(name in run.source for name in (".grad", *CLIPS)) or OPTIMIZER.search(run.source):
            functions = [one for one in syntax.nodes_of(run.source) if isinstance(one, ast.FunctionDef)]
            yield from (_Scope(one, [(run, one.body)]) for one in functions)


def _taken(latest: list[CellRun], statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of which a statement takes all values, or a function of the program that it calls."""
    yield from _taken_here(statement)
    yield from _groups(statement)
    for call in (node for part in syntax.head_of(statement) for node in ast.walk(part) if isinstance(node, ast.Call)):
        called = [one for run in latest for one in syntax.defined(run.source, ast.unparse(call.func))]
        if len(called) == 1 and isinstance(called[0], ast.FunctionDef) and call.args:
            inside = {_name(each) for one in _surely_run(called[0]) for each in _taken_here(one)}
            yield from (given for own, given in zip(called[0].args.args, call.args) if own.arg in inside)


def _surely_run(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function that run in each call: those of its own block, up to one that may leave it."""
    for one in function.body:
        yield one
        if any(isinstance(node, (ast.Return, ast.Raise)) for node in ast.walk(one)):
            return


def _taken_here(statement: ast.stmt) -> Iterator[ast.expr]:
    """The same of a `for` without an early end, or of what is in its line."""
    if isinstance(statement, ast.For):
        inside = [node for one in statement.body for node in ast.walk(one)]
        if not any(isinstance(node, (ast.Break, ast.Return)) for node in inside):
            yield statement.iter
    for node in (node for part in syntax.head_of(statement) for node in ast.walk(part)):
        if isinstance(node, ast.comprehension):
            yield node.iter
        elif isinstance(node, ast.Call) and node.args and _takes_all(node):
            yield node.args[0]


def _groups(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement gives to groups of an optimizer: ``{"params": these}``. One that is empty raises nothing."""
    for node in (node for part in syntax.head_of(statement) for node in ast.walk(part)):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params")


def _takes_all(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    return syntax.last_name(called) in _TAKING_ALL or OPTIMIZER.search(f"{called}(") is not None


def _name(expression: ast.expr) -> str:
    return expression.id if isinstance(expression, ast.Name) else ""


def _use(latest: list[CellRun], run: CellRun, statement: ast.stmt, name: str, weights: bool) -> _Use | None:
    """A use of what a name stands for. `weights`: that is parameters, which groups of an optimizer are made of."""
    if not any(_name(one) == name for one in _taken(latest, statement)):
        return None
    text = ast.unparse(statement)
    calls = {syntax.last_name(one) for one in syntax.calls_in(statement)} if not syntax.blocks_of(statement) else set()
    in_a_group = weights and any(_name(one) == name for one in _groups(statement))
    return _Use(run, statement, in_a_group or ".grad" in text or not calls.isdisjoint(CLIPS))


def _pairs(scope: _Scope, made: list[Made], uses: list[_Use]) -> Iterator[tuple[_Use, _Use]]:
    """Two uses, of which the second surely finds nothing; or one that stands in a loop, and the generator before it."""
    for second in (one for one in uses if one.trains):
        line = second.statement.lineno
        around = [one for one in syntax.statements_at(second.run.source, line) if one.lineno >= scope.first_line]
        for first in uses:
            anew = any(scope.spot(first) < scope.spot(one) < scope.spot(second) for one in made)
            if not anew and _comes_first(scope, first, second, around):
                yield first, second
        loops = [one for one in around if isinstance(one, (ast.For, ast.While)) and one is not second.statement]
        if loops and not any(one.run is second.run and loops[0].lineno <= one.node.lineno <= line for one in made):
            yield second, second


def _comes_first(scope: _Scope, first: _Use, second: _Use, around: list[ast.stmt]) -> bool:
    """Whether a use has surely run when another runs: it is before it in a block around that, or in an earlier cell."""
    block = syntax.block_of(first.run.source, first.statement)
    if first.run is second.run:
        return any(one in block and one.lineno > first.statement.lineno for one in around)
    return scope.spot(first) < scope.spot(second) and any(block is body for _, body in scope.bodies)


def _made(latest: list[CellRun], scope: _Scope, name: str) -> list[Made]:
    """The generators that a name stands for, where all its values are known; empty: it may be something else."""
    giving = [(run, one) for run, one in scope.statements() if name in syntax.targets(one)]
    function = scope.function
    arguments = [one.arg for one in function.args.args] if function is not None else []
    if function is not None and name in arguments:
        made = [] if giving else _handed_in(latest, function, arguments, name)
    else:
        assigned = [(run, one) for run, one in giving if isinstance(one, ast.Assign) and len(one.targets) == 1]
        made = [Made(run, one.value) for run, one in assigned]
    return made if len(giving) <= len(made) and all(generates(latest, one.node) for one in made) else []


def _handed_in(latest: list[CellRun], function: ast.FunctionDef, arguments: list[str], name: str) -> list[Made]:
    """What the calls of a function give for one of its arguments; empty: it is not known of all."""
    if sum(len(syntax.defined(one.source, function.name)) for one in latest) != 1:
        return []
    found: list[Made] = []
    for run in latest:
        for call in syntax.calls_by_name(run.source).get(function.name, ()):
            by_name = {one.arg: one.value for one in call.keywords}
            position = arguments.index(name) - int(arguments[:1] == ["self"])
            given = call.args[position] if position < len(call.args) else by_name.get(name)
            if given is None or isinstance(given, ast.Starred):
                return []
            found.append(Made(run, given))
    return found


def generates(latest: list[CellRun], node: ast.expr) -> bool:
    """Whether an expression makes a generator, which gives its values once."""
    if isinstance(node, ast.GeneratorExp):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = syntax.last_name(ast.unparse(node.func))
    if isinstance(node.func, ast.Attribute) and name.removeprefix("named_") in _OF_MODULES:
        return not any(syntax.defined(run.source, name) for run in latest)  # a class of the user's may return a list
    return name in _OF_PYTHON


def _of(name: str, made: list[Made], first: _Use, second: _Use) -> Finding:
    place, before = (place_of(one.run, one.statement.lineno) for one in (second, first))
    source = place_of(made[0].run, made[0].node.lineno)
    text = short(ast.unparse(made[0].node))
    whole = not syntax.blocks_of(second.statement)
    reads = short(ast.unparse(second.statement) if whole else place.source)
    earlier = "an earlier pass of its loop" if first is second else f"{short(before.source)} ({where(before)})"
    edits = [edit for one in made for edit in listed(one)]
    return Finding(
        "silent",
        "warning",
        f"`{name}` is a generator, {text} ({where(source)}), and gives its values once. {earlier[:1].upper()}"
        f"{earlier[1:]} takes them all. So {reads} ({where(place)}) finds nothing there.",
        f"`{name}` is used up when {reads} reads it.",
        made_at=place,
        cause=place,
        names=(name,),
        fixes=(
            Fix(
                "keep_in_a_list",
                f"Make a list of it, which can be read again: `{made_into_a_list(made[0])}` ({where(source)}).",
                False,
                at(source),
                edits=tuple(edits),
            ),
        ),
    )


def made_into_a_list(made: Made) -> str:
    """The list, as text that may be shortened."""
    text = short(ast.unparse(made.node))
    return f"[{text[2:-2]}]" if isinstance(made.node, ast.GeneratorExp) else f"list({text[1:-1]})"


def listed(made: Made) -> text_edit.Edits:
    """A list in place of a generator: around a call, or with square brackets."""
    cell, text = made.run.cell, made.run.source
    if not isinstance(made.node, ast.GeneratorExp):
        return text_edit.wrapped(cell, text, made.node, "list(")
    inside = (ast.get_source_segment(text, made.node) or "()")[1:-1]
    (line, column), _ = text_edit.span(text, made.node)
    before = syntax.lines_of(text)[line - 1][:column]
    is_only_argument = before[-1:].isidentifier() or before[-1:] in (")", "]")  # its brackets are those of the call
    return text_edit.replace_node(cell, text, made.node, f"([{inside}])" if is_only_argument else f"[{inside}]")
