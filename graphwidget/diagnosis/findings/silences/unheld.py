"""Leaves that backward reaches and no optimizer holds: replaced or added after the optimizer was made, or in a list.

Leaves may be left out on purpose. So it is said only where a reason is known: parameters in a container of Python's
that no module registers; a tensor as an attribute of a module that is no parameter; an optimizer that was made of all
parameters of a module, of which the leaf is one now; or parameters that only an optimizer holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax, text_edit
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import is_assignable
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.source.text_edit import Edits
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, Place, Record, UnheldLeaf

__all__ = ["Line", "find", "replaced_at"]

MOST_NAMED = 4
_LISTS = (ast.List, ast.ListComp, ast.Tuple)
_DICTS = (ast.Dict, ast.DictComp)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)
_REGISTERING = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
_ALL_OF = ("parameters", "named_parameters")
_PASSING_ON = ("list", "tuple", "filter", "chain")


class Line(NamedTuple):
    """A statement in the text of a cell."""

    run: CellRun
    statement: ast.stmt

    @property
    def place(self) -> Place:
        return place_of(self.run, self.statement.lineno)

    @property
    def shown(self) -> str:
        return f"{short(ast.unparse(self.statement).split(chr(10), 1)[0])} ({where(self.place)})"


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for the leaves of each reason."""
    contained: dict[int, tuple[Line, list[UnheldLeaf]]] = {}
    left: list[UnheldLeaf] = []
    for leaf in record.unheld:
        line = _container(record, leaf)
        if line is not None:
            contained.setdefault(id(line.statement), (line, []))[1].append(leaf)
        elif leaf.parameter:
            left.append(leaf)
        elif (line := _plain_attribute(record, leaf)) is not None:
            yield _is_no_parameter(record, line, leaf)
    for line, leaves in contained.values():
        yield _in_container(record, line, leaves)
    makers = _makers(record) if left else []
    made: dict[int, tuple[Line | None, list[UnheldLeaf]]] = {}
    for leaf in left:
        if any(one.run.file is None and one.run.run > (leaf.place.run or 0) for one in makers):
            continue  # an optimizer has been made since
        registered = _is_registered(record, leaf)
        found = [one for one in makers if registered and _is_of(one, leaf.path)] or (makers if leaf.orphans else [])
        if len(found) == 1 or (found and leaf.orphans):
            maker = found[0] if len(found) == 1 else None
            made.setdefault(id(maker and maker.statement), (maker, []))[1].append(leaf)
    for maker, leaves in made.values():
        yield _made_too_early(record, maker, leaves)


def _parts(path: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*|\[[^\]]*\]", spoken(path))


def _named(leaves: list[UnheldLeaf]) -> tuple[str, ...]:
    found = dict.fromkeys(spoken(leaf.path) for leaf in leaves)
    return tuple(sorted(found, key=lambda path: (not path.endswith("weight"), path)))


# ------------------------------------------------------------------ in a list of Python's


def _container(record: Record, leaf: UnheldLeaf) -> Line | None:
    """The one statement that puts a leaf into a list, tuple or dict of a module: ``self.layers = [...]``."""
    parts = _parts(leaf.path)
    for name, index in zip(parts, parts[1:]):
        if not index.startswith("["):
            continue
        found = [
            Line(run, one)
            for run in Cells.of(record).latest
            for cls in _classes(run)
            for one in ast.walk(cls)
            if isinstance(one, (ast.Assign, ast.AnnAssign)) and f"self.{name}" in syntax.targets(one)
        ]
        plain = [line for line in found if isinstance(_kept(line), (*_LISTS, *_DICTS))]
        others = [line for line in found if line not in plain]
        if len(plain) == 1 and not any(_class(line) is _class(plain[0]) for line in others):
            return None if _is_handed_in(plain[0]) else plain[0]
    return None


def _class(line: Line) -> ast.ClassDef | None:
    inside = syntax.function_at(line.run.source, line.statement.lineno)
    return inside[0] if inside is not None else None


def _kept(line: Line) -> ast.AST:
    """What a statement gives to an attribute; of a variable of its function, what the one assignment gave to that."""
    value, inside = syntax.given(line.statement), syntax.function_at(line.run.source, line.statement.lineno)
    if not isinstance(value, ast.Name) or inside is None:
        return value
    body = list(syntax.own_statements(inside[1].body))
    made = [one for one in body if value.id in syntax.targets(one)]
    return syntax.given(made[0]) if len(made) == 1 and made[0].lineno < line.statement.lineno else value


def _used_behind(line: Line) -> bool:
    """Whether a function goes on with the variable that it has given to an attribute: it may fill the list then."""
    value, inside = syntax.given(line.statement), syntax.function_at(line.run.source, line.statement.lineno)
    if not isinstance(value, ast.Name) or inside is None:
        return False
    names_ = (node for node in ast.walk(inside[1]) if isinstance(node, ast.Name) and node.id == value.id)
    return any(node.lineno > line.statement.lineno for node in names_)


def _is_handed_in(line: Line) -> bool:
    """Whether a list holds only arguments of its function: ``self.teacher = [teacher]`` hides a module on purpose."""
    inside, value = syntax.function_at(line.run.source, line.statement.lineno), _kept(line)
    if inside is None or not isinstance(value, (ast.List, ast.Tuple)):
        return False
    arguments = {one.arg for one in (*inside[1].args.posonlyargs, *inside[1].args.args, *inside[1].args.kwonlyargs)}
    return bool(value.elts) and all(isinstance(one, ast.Name) and one.id in arguments for one in value.elts)


def _classes(run: CellRun) -> list[ast.ClassDef]:
    tree = syntax.parse(run.source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] if tree is not None else []


def _in_container(record: Record, line: Line, leaves: list[UnheldLeaf]) -> Finding:
    shown = _named(leaves)
    value, held = _kept(line), syntax.given(line.statement)
    of_parameters = all(_parts(leaf.path)[-1].startswith("[") for leaf in leaves)
    kind = ("Parameter" if of_parameters else "Module") + ("Dict" if isinstance(value, _DICTS) else "List")
    what = "dict" if isinstance(value, _DICTS) else "tuple" if isinstance(value, ast.Tuple) else "list"
    new = f"{_torch_nn(record)}.{kind}"
    deep = any(part.startswith("[") and after.startswith("[") for leaf in leaves for part, after in _pairs(leaf))
    inner = f"{_torch_nn(record)}.{'ParameterList' if of_parameters else 'ModuleList'}" if deep else ""
    edits = text_edit.wrapped(line.run.cell, line.run.source, held, f"{new}(") if not _used_behind(line) else ()
    for each in _inside(value) if inner and edits else ():
        edits += text_edit.wrapped(line.run.cell, line.run.source, each, f"{inner}(")
    for run, put in _put_in(line) if inner and edits else ():
        edits += text_edit.wrapped(run.cell, run.source, put, f"{inner}(")
    return _finding(
        shown,
        line.place,
        f"{line.shown} puts them into a {what} of Python's. A module registers only modules and parameters, so "
        "`parameters()` does not list these.",
        leaves,
        Fix(
            "register_modules",
            f"Put them into an `{new}`: then `parameters()` has them, and `.to(device)` and `state_dict()` too.",
            False,
            at(line.place),
            edits=edits,
        ),
    )


def _pairs(leaf: UnheldLeaf) -> Iterator[tuple[str, str]]:
    parts = _parts(leaf.path)
    return zip(parts, parts[1:])


def _inside(value: ast.AST) -> list[ast.expr]:
    """The containers that a container's text has for elements."""
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    elements = [value.elt] if isinstance(value, ast.ListComp) else elements
    return [one for one in elements if isinstance(one, _LISTS)]


def _put_in(line: Line) -> Iterator[tuple[CellRun, ast.expr]]:
    """What the class puts into the container later: ``self.layers.append([...])``, ``self.layers[k] = ...``."""
    targets = list(syntax.targets(line.statement))
    for cls in _classes(line.run):
        statements = [one for one in ast.walk(cls) if isinstance(one, ast.stmt)]
        if not any((one.lineno, one.col_offset) == _spot(line.statement) for one in statements):
            continue
        for one in statements:
            call = one.value if isinstance(one, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) in {f"{target}.append" for target in targets}:
                yield from ((line.run, given) for given in call.args[:1])
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
                if ast.unparse(one.targets[0].value) in targets:
                    yield line.run, one.value


def _spot(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _torch_nn(record: Record) -> str:
    """How the cells write `torch.nn`."""
    imports = r"^\s*(?:from torch import (?:.*, *)?nn\b|import torch\.nn as nn\b)"
    return "nn" if any(re.search(imports, run.source, re.M) for run in record.runs.values()) else "torch.nn"


# ------------------------------------------------------------------ a plain tensor


def _plain_attribute(record: Record, leaf: UnheldLeaf) -> Line | None:
    """The one statement of a module's constructor that makes a tensor which requires grad and is no parameter.

    None if some code reads its `.grad`: then the gradient has a use.
    """
    name = spoken(leaf.path).rpartition(".")[2]
    texts = Cells.of(record).latest
    found = [
        Line(run, one)
        for run in texts
        for cls in _classes(run)
        if any("Module" in ast.unparse(base) for base in cls.bases)
        for one in ast.walk(cls)
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and list(syntax.targets(one)) == [f"self.{name}"]
    ]
    used = any(re.search(rf"\b{re.escape(name)}\.grad\b", run.source) for run in texts)
    if len(found) != 1 or used or "." not in spoken(leaf.path) or not _without_flag(found[0].statement):
        return None
    inside = syntax.function_at(found[0].run.source, found[0].statement.lineno)
    return found[0] if inside is not None and inside[1].name == "__init__" else None


def _without_flag(statement: ast.stmt) -> str:
    """``torch.zeros(2)`` of ``self.w = torch.zeros(2, requires_grad=True)``; empty if it sets no such flag."""
    value = syntax.given(statement)
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_" and not value.args:
        return ast.unparse(value.func.value)
    kept = [one for one in value.keywords if one.arg != "requires_grad"]
    flagged = len(kept) < len(value.keywords)
    if flagged and ast.unparse(value.func).rpartition(".")[2] == "Variable" and len(value.args) == 1:
        return ast.unparse(value.args[0])
    return ast.unparse(ast.Call(value.func, value.args, kept)) if flagged else ""


def _is_no_parameter(record: Record, line: Line, leaf: UnheldLeaf) -> Finding:
    value, new = syntax.given(line.statement), f"{_torch_nn(record)}.Parameter"
    return _finding(
        _named([leaf]),
        line.place,
        f"{line.shown} makes a plain tensor. A module registers only modules and parameters, so `parameters()` does "
        "not list it.",
        [leaf],
        Fix(
            "register_modules",
            f"Make it a parameter with `{new}`: then `parameters()` has it, and `.to(device)` and `state_dict()` too.",
            False,
            at(line.place),
            edits=text_edit.replace_node(
                line.run.cell, line.run.source, value, f"{new}({_without_flag(line.statement)})"
            ),
        ),
    )


# ------------------------------------------------------------------ made after the optimizer


def _makers(record: Record) -> list[Line]:
    """The statements that make an optimizer of what a module has."""
    found = []
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for one in ast.walk(tree) if tree is not None else ():
            if isinstance(one, _SIMPLE) and OPTIMIZER.search(ast.unparse(one)):
                found.append(Line(run, one))
    return [line for line in found if _modules_of(line)]


def _modules_of(line: Line) -> tuple[str, ...]:
    """The modules whose `parameters()` an optimizer is made of."""
    given = _given(line)
    asked = [node.func for node in ast.walk(given) if isinstance(node, ast.Call)] if given is not None else []
    owners = (one.value for one in asked if isinstance(one, ast.Attribute) and one.attr in _ALL_OF)
    # ``nn.Linear(2, 1).parameters()``: it is made here, and no variable has it
    return tuple(dict.fromkeys(name for one in owners if is_assignable(name := ast.unparse(one))))


def _given(line: Line) -> ast.expr | None:
    """What the optimizer of a statement is made of: its first argument."""
    calls = [node for node in ast.walk(line.statement) if isinstance(node, ast.Call)]
    making = [one for one in calls if OPTIMIZER.search(f"{ast.unparse(one.func)}(")]
    if not making:
        return None
    named = [one.value for one in making[-1].keywords if one.arg == "params"]
    return next(iter([*making[-1].args, *named]), None)


def _takes_all(line: Line) -> bool:
    """Whether an optimizer takes all parameters of its modules that require grad, in groups or not."""
    for node in ast.walk(_given(line) or ast.List([], ast.Load())):
        chosen = node.ifs if isinstance(node, ast.comprehension) else []
        if isinstance(node, ast.Lambda):
            chosen = [node.body]
        elif isinstance(node, ast.Call) and not (isinstance(node.func, ast.Attribute) and node.func.attr in _ALL_OF):
            if ast.unparse(node.func).rpartition(".")[2] not in _PASSING_ON:
                return False
        if not all(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in chosen):
            return False
    return True


def _is_of(maker: Line, path: str) -> bool:
    """Whether a leaf's path leads through a module that an optimizer was made of, with all its parameters."""
    parts = _parts(path)[:-1]
    return _takes_all(maker) and any(one.rsplit(".", 1)[-1] in parts for one in _modules_of(maker))


def _is_registered(record: Record, leaf: UnheldLeaf) -> bool:
    """Whether all containers on a leaf's path are torch's own, which register what they hold."""
    parts = _parts(leaf.path)
    for name, index in zip(parts, parts[1:]):
        if index.startswith("["):
            made = [one for run in Cells.of(record).latest for one, _ in syntax.assigned_as(run.source, name)]
            values = [syntax.given(one) for one in made]
            names_ = [ast.unparse(one.func).rsplit(".", 1)[-1] for one in values if isinstance(one, ast.Call)]
            if not made or len(names_) < len(made) or not all(one in _REGISTERING for one in names_):
                return False
    return True


def _made_too_early(record: Record, maker: Line | None, leaves: list[UnheldLeaf]) -> Finding:
    shown = _named(leaves)
    owner = next(iter(syntax.targets(maker.statement)), "") if maker is not None else ""
    orphaned = any(leaf.orphans for leaf in leaves)
    replacing = replaced_at(record, maker, shown, again=orphaned)
    held = f"the parameters that `{_modules_of(maker)[0]}` had" if maker is not None else "parameters"
    if replacing is not None:
        does = "replaced" if orphaned else "made"
        ran = f", when {maker.shown} ran" if maker is not None else ""
        why = f"{replacing.shown} {does} {'it' if len(shown) == 1 else 'them'}. The optimizer has {held} before{ran}."
    elif maker is not None:
        why = f"{maker.shown} took {held} then."
    else:
        why = "The optimizer was made before."
    if orphaned:
        why += " It goes on with old ones, which nothing computes with any more."
    what = f"`{owner}`" if owner else "the optimizer"
    behind = f"that line ({where(replacing.place)})" if replacing is not None else "the module is complete"
    fix = Fix(
        "new_optimizer",
        f"Make {what} after {behind}, so that it gets the parameters of now.",
        False,
        at(maker.place) if maker is not None else None,
        edits=_moved(maker, replacing, owner) if maker is not None and replacing is not None else (),
    )
    cause = replacing or maker
    return _finding(shown, cause.place if cause is not None else leaves[0].place, why, leaves, fix)


def replaced_at(record: Record, maker: Line | None, leaves: tuple[str, ...], again: bool = False) -> Line | None:
    """The first statement that gave the module another part: for each path, of its innermost part that has one.

    `again`: it is known that a part was replaced, so a function with both lines may have run once more.
    """
    found = []
    for leaf in leaves:
        parts = [(at, name) for at, name in enumerate(_parts(leaf)) if not name.startswith("[")]
        lines = (list(_assigned(record, maker, name, at == 0, again)) for at, name in reversed(parts))
        found += next((each[-1:] for each in lines if each), [])
    return min(found, key=lambda line: (line.run.run, line.statement.lineno), default=None)


def _assigned(record: Record, maker: Line | None, name: str, is_variable: bool, again: bool) -> Iterator[Line]:
    """Statements that set a part of that name, in the order of the cells: not where an object is first made.

    A variable is made anew only where that is behind the optimizer in the same block of code.
    """
    for run in Cells.of(record).latest:
        tree = syntax.parse(run.source)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or (maker is not None and node is maker.statement):
                continue
            wholes = [re.sub(r"(\[[^]]*\])+$", "", target) for target in syntax.targets(node)]
            if not any((is_variable and target == name) or target.endswith(f".{name}") for target in wholes):
                continue
            inside = syntax.function_at(run.source, node.lineno)
            if inside is not None and inside[0] is not None and inside[1].name == "__init__":
                continue
            ordered = maker is not None and (inside is None or _home(maker, run) is inside[1])
            behind = maker is not None and (run.run, node.lineno) >= (maker.run.run, maker.statement.lineno)
            first = ordered and not behind and not (again and inside is not None)
            if first or (is_variable and not ordered):
                continue
            yield Line(run, node)


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


# ------------------------------------------------------------------ the words


def _finding(shown: tuple[str, ...], cause: Place, why: str, leaves: list[UnheldLeaf], fix: Fix) -> Finding:
    one = len(shown) == 1
    listed, step = names(shown, MOST_NAMED), where(leaves[0].place)
    at_step, them = f" ({step})" if step else "", "it" if one else "them"
    by_hand = all(leaf.by_hand for leaf in leaves)
    nothing = f"the step by hand{at_step} writes to others" if by_hand else f"no optimizer that makes a step{at_step} "
    nothing += "" if by_hand else f"holds {them}"
    reason = f"no step writes to {them}" if by_hand else f"no optimizer holds {them}"
    return Finding(
        "silent",
        "warning",
        f"Backward gives {listed} {'a gradient' if one else 'gradients'}, and {nothing}. {why}",
        f"{listed} {'is' if one else 'are'} never trained: {reason}.",
        tensor=shown[0],
        made_at=cause,
        names=shown,
        fixes=(fix,),
    )
