"""Leaves that a module got after an optimizer was made of what it had."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.unheld.groups.whole import taken_whole
from graphwidget.diagnosis.findings.silences.unheld.leaves import (
    Line,
    finding_of,
    named,
    parts_of,
)
from graphwidget.diagnosis.findings.silences.unheld.made_again import made_again
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import is_assignable, root_of
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, where
from graphwidget.model import CellRun, Finding, Fix, Record, UnheldLeaf

__all__ = [
    "first_arguments",
    "given_of",
    "is_of",
    "made_too_early",
    "modules_of",
    "optimizers_made",
    "replaced_at",
    "takes_all",
]

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)
_ALL_OF = ("parameters", "named_parameters")
_PASSING_ON = ("list", "tuple", "filter", "chain")


def optimizers_made(record: Record) -> list[Line]:
    """The statements that make an optimizer of what a module has."""
    found = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for one in ast.walk(tree) if tree is not None else ():
            if isinstance(one, _SIMPLE) and OPTIMIZER.search(ast.unparse(one)):
                found.append(Line(run, one))
    return [line for line in found if modules_of(line)]


def modules_of(line: Line) -> tuple[str, ...]:
    """The modules whose `parameters()` the optimizers of a statement are made of."""
    return tuple(dict.fromkeys(name for given in given_of(line) for name in _modules_in(given)))


def _modules_in(given: ast.expr) -> Iterator[str]:
    asked = [node.func for node in ast.walk(given) if isinstance(node, ast.Call)]
    owners = (one.value for one in asked if isinstance(one, ast.Attribute) and one.attr in _ALL_OF)
    # ``nn.Linear(2, 1).parameters()``: it is made here, and no variable has it
    yield from (name for one in owners if is_assignable(name := ast.unparse(one)))


def given_of(line: Line) -> list[ast.expr]:
    """What the optimizers of a statement are made of, their first arguments: it may make several, in a dict.

    For a name that its function, or its cell, assigns once before that: what it assigns. For groups into which all
    parameters of a module are sorted: the call that gives these.
    """
    return [each for given in first_arguments(line) for each in _sorted_or(line, given)]


def first_arguments(line: Line) -> list[ast.expr]:
    """What the optimizers of a statement are given there."""
    calls = [node for node in ast.walk(line.statement) if isinstance(node, ast.Call)]
    making = [one for one in calls if OPTIMIZER.search(f"{ast.unparse(one.func)}(")]
    first = ([*one.args, *(kept.value for kept in one.keywords if kept.arg == "params")][:1] for one in making)
    return [given for one in first for given in one]


def _sorted_or(line: Line, given: ast.expr) -> list[ast.expr]:
    return taken_whole(line.run.source, line.statement, given) or [_assigned_once(line, given)]


def _assigned_once(line: Line, given: ast.expr) -> ast.expr:
    if not isinstance(given, ast.Name):
        return given
    inside = syntax.function_at(line.run.source, line.statement.lineno)
    made = [
        one
        for one in syntax.assignments(line.run.source, given.id)
        if syntax.function_at(line.run.source, one.lineno) == inside
    ]
    value = getattr(made[0], "value", None) if len(made) == 1 and made[0].lineno < line.statement.lineno else None
    return value if isinstance(value, ast.expr) and list(_modules_in(value)) else given


def takes_all(maker: Line) -> bool:
    """Whether the optimizers of a line take all parameters of the modules that they are made of."""
    return all(map(_takes_all, given_of(maker)))


def _takes_all(given: ast.expr) -> bool:
    """Whether an optimizer takes all parameters of its modules that require grad, in groups or not."""
    for node in ast.walk(given):
        if isinstance(node, ast.IfExp):
            return False
        chosen = node.ifs if isinstance(node, ast.comprehension) else []
        if isinstance(node, ast.Lambda):
            chosen = [node.body]
        elif isinstance(node, ast.Call) and not (isinstance(node.func, ast.Attribute) and node.func.attr in _ALL_OF):
            if ast.unparse(node.func).rpartition(".")[2] not in _PASSING_ON:
                return False
        if not all(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in chosen):
            return False
    return True


def is_of(maker: Line, path: str) -> bool:
    """Whether a leaf's path leads through a module that an optimizer was made of, with all its parameters."""
    modules = (name for given in given_of(maker) if _takes_all(given) for name in _modules_in(given))
    return any(_leads_through(path, name) for name in modules if _may_be(maker, path, name))


def _may_be(maker: Line, path: str, module: str) -> bool:
    """Whether a path may begin with a module: a variable of the program's own is no attribute of that name."""
    inside = syntax.function_at(maker.run.source, maker.statement.lineno) is not None
    return inside or not module.isidentifier() or ":" in path or root_of(path) == module


def _leads_through(path: str, module: str) -> bool:
    return module.rsplit(".", 1)[-1] in parts_of(path)[:-1]


def made_too_early(record: Record, maker: Line | None, leaves: list[UnheldLeaf]) -> Finding:
    shown = named(leaves)
    owner = next(iter(syntax.targets(maker.statement)), "") if maker is not None else ""
    orphaned = any(leaf.orphans for leaf in leaves)
    replacing = replaced_at(record, maker, shown, again=orphaned)
    modules = modules_of(maker) if maker is not None else ()
    if replacing is None and orphaned:  # another function has another name for the module
        replacing = replaced_at(record, maker, tuple(f"{one}.parameters" for one in modules), again=True)
    module = next((one for one in modules if any(_leads_through(leaf, one) for leaf in shown)), next(iter(modules), ""))
    held = f"the parameters that `{module}` had" if module else "parameters"
    if replacing is not None:
        does = "replaced" if orphaned else "made"
        ran = f", when {maker.shown} ran" if maker is not None else ""
        why = f"{replacing.shown} {does} {'it' if len(shown) == 1 else 'them'}. The optimizer has {held} before{ran}."
    elif maker is not None:
        trained = any("requires_grad" in ast.unparse(given) for given in given_of(maker))
        why = f"{maker.shown} took {held}{' and that required grad' if trained else ''} then."
    else:
        why = "The optimizer was made before."
    if orphaned:
        why += " It goes on with old ones, which nothing computes with any more."
    what = f"`{owner}`" if owner else "the optimizer"
    behind = f"that line ({where(replacing.place)})" if replacing is not None else "the module is complete"
    how = f"Make {what} after {behind}, so that it gets"
    if maker is not None and replacing is not None and _ran_before(record, replacing.run, maker.run):
        how = f"Run {maker.shown} again: it gets"  # the cells are in the right order
    fix = Fix(
        "new_optimizer",
        f"{how} the parameters of now.",
        False,
        at(maker.place) if maker is not None else None,
        edits=(_moved(maker, replacing, owner) or made_again(record, maker, replacing))
        if maker is not None and replacing is not None
        else (),
    )
    cause = replacing or maker
    return finding_of(shown, cause.place if cause is not None else leaves[0].place, why, leaves, fix)


def _ran_before(record: Record, one: CellRun, other: CellRun) -> bool:
    """Whether a cell had also been run before another one."""
    runs = record.runs.values()
    return one.cell_id is not None and any(run.cell_id == one.cell_id and run.run < other.run for run in runs)


def replaced_at(record: Record, maker: Line | None, leaves: tuple[str, ...], again: bool = False) -> Line | None:
    """The first statement that gave the module another part: for each path, of its innermost part that has one.

    `again`: it is known that a part was replaced, so a function with both lines may have run once more.
    """
    found = []
    for leaf in leaves:
        parts = [(at, name) for at, name in enumerate(parts_of(leaf)) if not name.startswith("[")]
        lines = (list(_assigned(record, maker, name, at == 0, again)) for at, name in reversed(parts))
        found += next((each[-1:] for each in lines if each), [])
    return min(found, key=lambda line: (line.run.run, line.statement.lineno), default=None)


def _assigned(record: Record, maker: Line | None, name: str, is_variable: bool, again: bool) -> Iterator[Line]:
    """Statements that set a part of that name, in the order of the cells: not where an object is first made.

    A constructor sets what has been there before only behind a line of its own that made the optimizer. A
    variable is made anew only where that is behind the optimizer in the same block of code.
    """
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for node in ast.walk(tree) if tree is not None else ():
            if maker is not None and _assigns_all(node, name):
                if isinstance(node, ast.stmt) and _is_behind(maker, run, node):
                    yield Line(run, node)
                continue
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or (maker is not None and node is maker.statement):
                continue
            wholes = [re.sub(r"(\[[^]]*\])+$", "", target) for target in syntax.targets(node)]
            if not any((is_variable and target == name) or target.endswith(f".{name}") for target in wholes):
                continue
            inside = syntax.function_at(run.source, node.lineno)
            ordered = maker is not None and _home(maker, run) is (inside[1] if inside is not None else None)
            behind = maker is not None and (run.run, node.lineno) >= (maker.run.run, maker.statement.lineno)
            constructs = inside is not None and inside[0] is not None and inside[1].name == "__init__"
            if constructs and not (ordered and behind):
                continue
            first = ordered and not behind and not (again and maker is not None and _may_run_alone(maker, node, inside))
            if first or (is_variable and not ordered):
                continue
            yield Line(run, node)


def _may_run_alone(maker: Line, node: ast.stmt, inside: object) -> bool:
    """Whether a line of the maker's function, before it, may run another time without it: not in its block."""
    block = syntax.block_of(maker.run.source, maker.statement)
    return inside is not None and not any(one.lineno <= node.lineno <= (one.end_lineno or 0) for one in block)


def _assigns_all(node: ast.AST, name: str) -> bool:
    """``net.load_state_dict(state, assign=True)``: it puts other parameters into the module."""
    call = node.value if isinstance(node, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "load_state_dict"
    ):
        return False
    assigns = any(one.arg == "assign" and ast.unparse(one.value) == "True" for one in call.keywords)
    return assigns and syntax.last_name(ast.unparse(call.func.value)) == name


def _is_behind(maker: Line, run: CellRun, node: ast.stmt) -> bool:
    return (run.run, node.lineno) > (maker.run.run, maker.statement.lineno)


def _home(line: Line, run: CellRun) -> ast.FunctionDef | None:
    """The function of a line, if it is in that text."""
    home = syntax.function_at(run.source, line.statement.lineno) if line.run is run else None
    return home[1] if home is not None else None


def _moved(maker: Line, replacing: Line, owner: str) -> Edits:
    """The line of the optimizer behind the replacing one, in the same block, if nothing between them reads it."""
    text, cell = maker.run.source, maker.run.cell
    if replacing.run is not maker.run:
        return ()
    behind = syntax.behind(text, maker.statement)
    lines = [one.lineno for one in behind]
    if replacing.statement.lineno not in lines:
        return ()
    between = behind[: lines.index(replacing.statement.lineno) + 1]
    if any(owner in syntax.paths_read(one) or owner in syntax.names_in(one) for one in between):
        return ()
    made = text_edit.statement_lines(text, maker.statement)
    return (
        *text_edit.remove(cell, text, maker.statement),
        *text_edit.insert_after(cell, text, replacing.statement, made),
    )
