"""Containers that a program fills with parameters, or with their names, and that get to no optimizer.

They are followed by the names in the text: through assignments, and out of the function that fills them. What goes
anywhere else may get to an optimizer there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphwidget.diagnosis.findings.silences.unheld.groups.collected import filled, module_of
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, parts_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = ["Dropped", "dropped", "gets_to_no_optimizer", "may_be_of"]

_MOST_STEPS = 8  # assignments and functions that a container is followed through
_TELLING = ("print", "log", "logger", "logging", "warnings")  # what only tells of what it is given


class Dropped(NamedTuple):
    """A line that puts parameters of `module` into a container, and the name and place under which that ends."""

    line: Line
    module: str
    end: _Name


class _Name(NamedTuple):
    """A variable of a function, or of the text outside of functions."""

    run: CellRun
    function: ast.FunctionDef | None
    name: str

    @property
    def body(self) -> list[ast.stmt]:
        tree = syntax.parse(self.run.source)
        return self.function.body if self.function is not None else tree.body if tree is not None else []


def dropped(record: Record) -> list[Dropped]:
    """The containers that a loop fills beside others, of which one may get to an optimizer."""
    program = _Program(list(Cells.of(record).latest))
    found: dict[tuple[int, str], Dropped] = {}
    for run in program.runs:
        for function in (None, *_functions(run)):
            for module, fills in _sorting_loops(_Name(run, function, "").body):
                ends = {name: program.end_of(_Name(run, function, name)) for name in fills}
                if None not in ends.values():
                    continue  # they are for something else: a list of names to print
                for name, end in ends.items():
                    if end is not None and not end.name.startswith("_"):  # it is left out on purpose
                        found.setdefault((id(function), name), Dropped(Line(run, fills[name]), module, end))
    return list(found.values())


def _functions(run: CellRun) -> list[ast.FunctionDef]:
    return [node for node in syntax.nodes_of(run.source) if isinstance(node, ast.FunctionDef)]


def _sorting_loops(body: list[ast.stmt]) -> Iterator[tuple[str, dict[str, ast.stmt]]]:
    """The loops over the parameters of a module that fill containers: the first line of each that fills it."""
    for loop in syntax.own_statements(body):
        if not isinstance(loop, ast.For) or not (module := module_of(loop.iter)):
            continue
        inside = list(syntax.own_statements(loop.body))
        taken = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        for one in inside:
            if isinstance(one, ast.Assign) and taken & syntax.names_in(one.value):
                taken |= set(syntax.targets(one))
        fills: dict[str, ast.stmt] = {}
        for one in inside:
            into = filled(one) if isinstance(one, ast.Expr) else None
            if into is not None and into[0].isidentifier() and taken & syntax.names_in(into[1]):
                fills.setdefault(into[0], one)
        yield module, fills


class _Program(NamedTuple):
    """The texts of a program."""

    runs: list[CellRun]

    def end_of(self, start: _Name) -> _Name | None:
        """The last name of a container that gets to no optimizer; None: it may get to one."""
        end, seen = start, {(id(start.function), start.name)}
        work = [start]
        for one in work:  # it grows
            further = self._followed(one)
            if further is None or len(work) > _MOST_STEPS:
                return None
            for name in further:
                if (id(name.function), name.name) not in seen:
                    seen.add((id(name.function), name.name))
                    work.append(name)
                    if name.function is not one.function:
                        end = name
        return end

    def _followed(self, one: _Name) -> list[_Name] | None:
        """The names that get what a name has; None: something else may."""
        if one.function is None and self._is_read_elsewhere(one):
            return None
        found: list[_Name] = []
        for statement in syntax.own_statements(one.body):
            into = filled(statement)
            if one.name not in _read(statement) or (into is not None and root_of(into[0]) == one.name):
                continue
            if isinstance(statement, ast.Assert) or _only_tells(statement):
                continue
            further = self._given_on(one, statement)
            if further is None:
                return None
            found += further
        return found

    def _is_read_elsewhere(self, one: _Name) -> bool:
        """Whether another text, or a function, has a variable of that name: it may be the same one."""
        others = (syntax.parse(run.source) for run in self.runs if run is not one.run)
        return any(tree is not None and one.name in syntax.words_in(tree) for tree in others) or any(
            one.name in syntax.names_in(function) for function in _functions(one.run) if not _binds(function, one.name)
        )

    def _given_on(self, one: _Name, statement: ast.stmt) -> list[_Name] | None:
        if isinstance(statement, ast.Assign) and not OPTIMIZER.search(ast.unparse(statement)):
            names = [target for target in statement.targets if isinstance(target, ast.Name)]
            return [one._replace(name=each.id) for each in names] if len(names) == len(statement.targets) else None
        if isinstance(statement, ast.Return) and one.function is not None and statement.value is not None:
            return self._returned(one, one.function, statement.value)
        return None

    def _returned(self, one: _Name, function: ast.FunctionDef, value: ast.expr) -> list[_Name] | None:
        """The variables that the callers of a function give what it returns."""
        elements = value.elts if isinstance(value, ast.Tuple) else [value]
        places = [k for k, each in enumerate(elements) if isinstance(each, ast.Name) and each.id == one.name]
        if len(places) != 1 or sum(one.name in syntax.names_in(each) for each in elements) != 1:
            return None
        found: list[_Name] = []
        calls = [(run, call) for run in self.runs for call in syntax.calls_by_name(run.source).get(function.name, ())]
        for run, call in calls:
            inside = syntax.function_at(run.source, call.lineno)
            caller = inside[1] if inside is not None else None
            own = list(syntax.own_statements(_Name(run, caller, "").body))
            taking = next((s for s in own if isinstance(s, ast.Assign) and s.value is call), None)
            target = taking.targets[0] if taking is not None and len(taking.targets) == 1 else None
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            name = parts[places[0]] if len(parts) == len(elements) else None
            if not isinstance(name, ast.Name):
                return None
            found.append(_Name(run, caller, name.id))
        return found or None


def _binds(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function has a variable of its own under a name."""
    arguments = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    return name in arguments or any(name in syntax.targets(one) for one in syntax.own_statements(function.body))


def _read(statement: ast.stmt) -> set[str]:
    """The names that a statement reads, of a block those in its head."""
    heads = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, (ast.stmt, ast.ExceptHandler))]
    nodes = (node for head in heads for node in ast.walk(head))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _only_tells(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and root_of(ast.unparse(value.func)) in _TELLING


def may_be_of(one: Dropped, leaf: UnheldLeaf) -> bool:
    """Whether a leaf may be in a container: its path leads through the module, if that has no other name there."""
    _, function, _ = one.end
    module = one.module.rpartition(".")[2]
    local = syntax.function_at(one.line.run.source, one.line.statement.lineno) is not None
    return local or function is not None or module in parts_of(leaf.path)[:-1]


def gets_to_no_optimizer(one: Dropped, leaves: list[UnheldLeaf]) -> Finding:
    """The finding for leaves that may be in such a container.

    It is a warning where a module has parameters of both kinds: nobody trains a weight and means to leave its bias.
    Whole modules may be left out on purpose.
    """
    shown, end, edits = named(leaves), one.end.name, _as_group(one)
    by_mistake = any(leaf.beside_held for leaf in leaves)
    why = f"{one.line.shown} collects parameters, and what has them gets to no optimizer: none is made of `{end}`."
    do = "Give" if by_mistake else "If they should be trained, give"
    group = f": `{{'params': {end}}}`" if edits else ""
    fix = Fix(
        "new_optimizer",
        f"{do} the optimizer a group of `{end}`, too{group}, with the options that it is to have.",
        False,
        at(one.line.place),
        "They are trained then.",
        edits=edits,
    )
    found = finding_of(shown, one.line.place, why, leaves, fix)
    return found if by_mistake else replace(found, severity="info")


def _as_group(one: Dropped) -> Edits:
    """The edit that adds a group to the one list of groups in the text around the name; empty: there is none such."""
    name = one.end
    calls = [
        node
        for statement in syntax.own_statements(name.body)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and OPTIMIZER.search(f"{ast.unparse(node.func)}(") and node.args
    ]
    groups = calls[0].args[0] if len(calls) == 1 else None
    if not isinstance(groups, ast.List) or not groups.elts or not all(isinstance(g, ast.Dict) for g in groups.elts):
        return ()
    return text_edit.insert_behind(name.run.cell, name.run.source, groups.elts[-1], f', {{"params": {name.name}}}')
