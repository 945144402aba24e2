"""Optimizers that were given nothing: a generator that had run out, or a module whose layers stand in a plain list."""

from __future__ import annotations

import ast
from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.no_graph.values import LAYER
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Finding

__all__ = ["of_nothing"]

_PLAIN = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
_LAZY = ("filter", "map", "parameters", "chain")


def of_nothing(failure: Failure) -> Finding | None:
    """An optimizer that was made of no tensors; None: why there are none is not known."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    making = [one for one in nodes if isinstance(one, ast.Call) and OPTIMIZER.search(f"{ast.unparse(one.func)}(")]
    given = making[0].args[0] if len(making) == 1 and making[0].args else None
    if isinstance(given, ast.Name):
        return _run_out(failure, given.id)
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters":
        return _unregistered(failure, ast.unparse(given.func.value))
    return None


def _run_out(failure: Failure, name: str) -> Finding | None:
    """``params = filter(...)`` that another line has gone through before."""
    inside = source.function_at(failure.cell, failure.place.line or 0)
    tree = source.parse(failure.cell)
    body = inside[1].body if inside is not None else tree.body if tree is not None else []
    before = [one for one in source.own_statements(body) if one.lineno < (failure.place.line or 0)]
    made = [one for one in before if isinstance(one, ast.Assign) and name in source.targets(one)]
    value = made[-1].value if made else None
    lazy = isinstance(value, ast.GeneratorExp) or (
        isinstance(value, ast.Call) and source.last_name(ast.unparse(value.func)) in _LAZY
    )
    used = [one for one in before if made and one.lineno > made[-1].lineno and name in source.names_read(one)]
    if value is None or not lazy or not used:
        return None
    run = next(one for one in failure.cells.latest if one.cell == failure.place.cell)
    place, first = place_of(run, used[0].lineno), place_of(run, made[-1].lineno)
    new = f"list({ast.unparse(value)})"
    found = failure.finding(
        f"`{name}` has run out before the optimizer is made of it.",
        f"{short(first.source)} ({where(first)}) makes a generator, which can be gone through once. "
        f"{short(place.source)} ({where(place)}) has done so: for {short(failure.text)} nothing is left. An optimizer "
        "of no tensors is refused.",
        failure.fix(
            "mend_the_code",
            f"Keep them in a list: `{name} = {new}`.",
            text_edit.replace_node(failure.place.cell, failure.cell, value, new),
        ),
        kind="no_grad",
        tensor=name,
        cause=place,
    )
    return replace(found, names=(name,))


def _unregistered(failure: Failure, module: str) -> Finding | None:
    """A module whose class keeps its layers in a list or a dict of Python's own."""
    runs = failure.cells.latest
    made = [source.given(one) for run in runs for one in source.assignments(run.source, module)]
    classes = {source.last_name(ast.unparse(one.func)) for one in made if isinstance(one, ast.Call)}
    kept = [
        (run, one)
        for run in runs
        for cls in source.nodes_of(run.source)
        if isinstance(cls, ast.ClassDef) and cls.name in classes
        for one in ast.walk(cls)
        if isinstance(one, ast.Assign) and isinstance(one.value, _PLAIN) and _makes_layers(runs, one.value)
        if any(target.startswith("self.") for target in source.targets(one))
    ]
    if len(kept) != 1:
        return None
    run, statement = kept[0]
    place, path = place_of(run, statement.lineno), next(iter(source.targets(statement)))
    holder = "nn.ModuleDict" if isinstance(statement.value, (ast.Dict, ast.DictComp)) else "nn.ModuleList"
    known = any(isinstance(node, ast.Name) and node.id == "nn" for node in source.nodes_of(run.source))
    new = f"{holder if known else f'torch.{holder}'}({ast.unparse(statement.value)})"
    found = failure.finding(
        f"`{module}` has no parameters: its layers stand in a plain container.",
        f"{short(place.source)} ({where(place)}) keeps layers in a container of Python's own. `parameters()` lists "
        f"what is an attribute itself or stands in a container of torch's, so {short(failure.text)} was given nothing.",
        replace(
            failure.fix(
                "register_modules",
                f"Write `{path} = {holder}(...)`: then they are parts of the module.",
                text_edit.replace_node(run.cell, run.source, statement.value, new),
            ),
            at=at(place),
        ),
        kind="no_grad",
        tensor=module,
        cause=place,
    )
    return replace(found, names=(module, path.removeprefix("self.")))


def _makes_layers(runs: list[CellRun], value: ast.expr) -> bool:
    own = {node.name for run in runs for node in source.nodes_of(run.source) if isinstance(node, ast.ClassDef)}
    names = [ast.unparse(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(LAYER.search(name) or name in own for name in names)
