"""What an edit would destroy: names that it deletes or rebinds.

Every fix of every finding is checked before it is offered. An edit may detach a tensor at its name, and it may delete
or empty what holds tensors only. A module, a parameter or another leaf, a buffer, an optimizer, a data loader, or an
object of unknown kind must stay as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from graphwidget.diagnosis.fixes.new_values import rebound_by
from graphwidget.diagnosis.fixes.plain_attributes import overwritten
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.containers import begins_empty
from graphwidget.diagnosis.source.fitting import applied
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.model import BackwardCall, CellRun, Fix, Record, Snapshot

_STAYS = ("module", "parameter", "leaf", "leaves", "buffer", "optimizer", "loader", "object")
_REPLACING = ("use_the_new_head",)  # a program's own new module takes the place of one that trains nothing


@dataclass(frozen=True)
class Change:
    """How an edit changes a path: it deletes, rebinds or empties it, or derives its value from it (``h.detach()``).

    A copy of it (``h.clone()``) is computed from it, and leaves gradients the way to it.
    """

    path: str
    how: Literal["deleted", "replaced", "emptied", "made_of_itself", "copied"]


def destroys(record: Record, fix: Fix, graph: Snapshot | None = None) -> str:
    """What a fix would destroy, as a phrase: ``the module `net` ``. Empty: nothing.

    Parameters
    ----------
    graph
        The graph just before the call that failed, which may have other leaves.
    """
    graphs = [one for one in (record.snapshot, graph) if one is not None]
    texts = [run.source for run in record.runs.values()]
    for change in changes(record, fix.edit):
        kind = held_by(record, change.path, graphs)
        itself = change.how in ("made_of_itself", "copied")
        if kind is None and change.how == "emptied" and begins_empty(texts, change.path):
            continue  # a list of plain values
        if kind is None and change.how == "replaced" and _is_new(texts, change.path):
            continue
        if fix.id == "save_for_backward" and not any(change.path in text for text in texts):
            continue  # a new attribute of the context of a Function, which no other object shares
        if change.how == "replaced" and fix.id == "new_optimizer":
            continue  # the old one trains nothing
        if change.how == "replaced" and _is_new_local(Cells.of(record).texts, fix, change.path):
            continue
        if kind is None and not itself and (change.how == "deleted" or _is_bound(record, change.path)):
            kind = "object"
        if kind == "leaves" and change.how == "deleted" and not _is_stepped(record, change.path):
            kind = "container"
        if kind == "leaf" and change.how == "copied" and _is_given(record, change.path, fix.at):
            continue  # who has called the function has the leaf
        if kind in ("module", "object") and change.how == "replaced" and fix.id in _REPLACING:
            continue
        if kind in _STAYS and not (itself and kind in ("buffer", "object")):
            return f"the {kind} `{change.path}`"
        if change.how == "deleted" and read_later(record, change.path, fix.at):
            return f"`{change.path}`, which is read later"
    return ""


def stops_training(record: Record, fix: Fix, call: BackwardCall | None) -> bool:
    """Whether a fix takes from leaves what they were trained by: gradients from earlier calls of the same line.

    Only leaves that steps have modified count. What another line trains may be meant to be cut off here.
    """
    if not fix.starves or call is None:
        return False
    earlier = [
        one for one in record.calls if one.n < call.n and one.result == "ok" and one.place.spot == call.place.spot
    ]
    reached = {local(path) for one in earlier for path in one.reached}
    stepped = {local(path) for write in record.writes if write.optimizer for path in write.paths}
    lost = set(map(local, fix.starves))
    return not reached.isdisjoint(lost) and not stepped.isdisjoint(lost)


def changes(record: Record, edit: Collection[str]) -> Iterator[Change]:
    """What an edit deletes or rebinds, except by lines of the program that it only moves or repeats."""
    own = {_plainly(line) for run in record.runs.values() for line in source.lines_of(run.source)}
    removed = [step[2:] for step in edit if step.startswith("- ")]
    before = [*_statements(removed), *_statements([line.strip() for line in removed])]  # a block, or lines of several
    rebound = {name for s in before for name in (*source.targets(s), *_given_out(s), *overwritten(s), *rebound_by(s))}
    new = [step[2:] for step in edit if step.startswith("+ ") and _plainly(step[2:]) not in own]
    for statement in _statements(new):
        yield from (change for change in _of_statement(statement) if change.path not in rebound)


def _given_out(statement: ast.stmt) -> Iterator[str]:
    """What calls of a statement overwrite: ``table`` in ``torch.stack(rows, out=table)``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.keyword) and node.arg == "out":
            several = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
            yield from map(ast.unparse, several)


def _plainly(line: str) -> str:
    """A line without the marks by which a repeated line may tell its variables from others: ``agent_``."""
    return re.sub(r"(?<=\w)_+\b", "", line.strip())


def _statements(lines: list[str]) -> Iterator[ast.stmt]:
    """The statements of some lines: parsed together, or, if that fails, line by line."""
    together = source.parse("\n".join(lines))
    for tree in [together] if together is not None else filter(None, map(source.parse, lines)):
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _of_statement(statement: ast.stmt) -> Iterator[Change]:
    if isinstance(statement, ast.Delete):
        yield from (Change(ast.unparse(target), "deleted") for target in statement.targets)
    elif isinstance(statement, ast.Assign):
        for target in source.targets(statement):
            path = target.removesuffix("[:]")  # all elements of a list, for all who have it
            if path.endswith(".grad") or (isinstance(v := statement.value, ast.Constant) and isinstance(v.value, bool)):
                continue  # a setting: ``relu.inplace = False``, ``w.grad = None``
            itself = any(ast.unparse(n) == path for n in ast.walk(statement.value) if isinstance(n, ast.expr))
            copied = ast.unparse(statement.value) == f"{path}.clone()"
            yield Change(path, "copied" if copied else "made_of_itself" if itself else "replaced")
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        if isinstance(called, ast.Attribute) and called.attr == "clear":
            yield Change(ast.unparse(called.value), "emptied")


def _is_stepped(record: Record, path: str) -> bool:
    """Whether an optimizer step changes tensors in the object with this path."""
    inside = (f"{path}[", f"{path}.")
    return any(local(one).startswith(inside) for w in record.writes for one in w.paths)


def held_by(record: Record, path: str, graphs: Collection[Snapshot] = ()) -> str | None:
    """The kind of object at a path: see `Record.holders`. None: unknown.

    In a method, `self.h` is any `….h`; a variable of a function may be that of any function. An element by a variable
    key may be any element. In doubt the answer is a kind that must not be changed.
    """
    kinds = [kind for name, kind in record.holders.items() if _may_be(name, path)]
    for graph in graphs:
        tensors = {o.path for o in graph.owners if _may_be(o.path, path)}
        leaves = {one for leaf in graph.leaves.values() if leaf.requires_grad for one in leaf.paths}
        kinds += ["tensor"] * bool(tensors) + ["leaf"] * any(_may_be(one, path) for one in leaves)
        inside = [o for o in graph.owners if o.containers and local(o.path).startswith(f"{path}[")]
        kinds += ["container"] * bool(inside)
    return next((kind for kind in kinds if kind in _STAYS), kinds[0] if kinds else None)


def _may_be(known: str, path: str) -> bool:
    """Whether a path in a line may mean a known path: the same one, or `….h` for `self.h`."""
    name, (holder, any_key) = local(known), _element(path)
    if any_key:
        return name.startswith(f"{holder}[") or (holder.startswith("self.") and f"{holder[len('self') :]}[" in name)
    return name == path or (path.startswith("self.") and name.endswith(path[len("self") :]))


def _element(path: str) -> tuple[str, bool]:
    """A path, and whether it was that of an element by a variable key, which is left out: ``state`` of ``state[k]``."""
    found = re.fullmatch(r"(.+)\[[A-Za-z_]\w*\]", path)
    return (found[1], True) if found is not None else (path, False)


def _is_given(record: Record, path: str, at: tuple[int, int] | None) -> bool:
    """Whether a name is an argument of the function around (cell, line)."""
    found = source.function_at(Cells.of(record).text(at[0]), at[1]) if at is not None else None
    return found is not None and path in {node.arg for node in ast.walk(found[1].args) if isinstance(node, ast.arg)}


def _is_bound(record: Record, path: str) -> bool:
    """Whether the program itself gives a value to the variable that a path begins with, or takes it as an argument."""
    root = root_of(path)
    nodes = (n for run in record.runs.values() if (tree := source.parse(run.source)) for n in ast.walk(tree))
    return root in record.holders or any(
        (isinstance(n, ast.Name) and n.id == root and isinstance(n.ctx, ast.Store))
        or (isinstance(n, ast.arg) and n.arg == root)
        for n in nodes
    )


def _is_new(texts: Iterable[str], path: str) -> bool:
    """Whether a path is an attribute that stands nowhere in the program: ``self.grad_was_enabled``, ``ctx.k``.

    A variable or an argument of that name is none. A method, a line of a class, or a name in quotes may be one.
    """
    _, dot, last = path.rpartition(".")
    attribute = re.compile(rf"\.{last}\b|['\"]{last}['\"]|\bdef {last}\b|^\s+{last}\b\s*[:=]", re.MULTILINE)
    return bool(dot) and last.isidentifier() and not any(attribute.search(text) for text in texts)


def _is_new_local(texts: dict[int, str], fix: Fix, path: str) -> bool:
    """Whether an edit gives a name a value only in functions that did not have that name: it is theirs alone."""
    after = applied(texts, fix.edits) if path.isidentifier() and fix.edits else None
    spots = set(after.written) if after is not None else set()
    binding = [
        (cell, text, one)
        for cell, text in (after.texts.items() if after is not None else ())
        for one in source.nodes_of(text)
        if isinstance(one, ast.stmt) and (cell, one.lineno) in spots and path in source.targets(one)
    ]
    for cell, text, one in binding:
        inside = source.function_at(text, one.lineno)
        nodes = source.nodes_of(texts.get(cell, ""))
        before = [
            f for f in nodes if inside is not None and isinstance(f, ast.FunctionDef) and f.name == inside[1].name
        ]
        named = _named_in(before)
        if not before or path in named:
            return False
    return bool(binding)


def _named_in(functions: Iterable[ast.FunctionDef]) -> set[str]:
    """The variables, arguments, and global or nonlocal names of functions."""
    found = set[str]()
    for node in (node for one in functions for node in ast.walk(one)):
        found |= {node.id} if isinstance(node, ast.Name) else {node.arg} if isinstance(node, ast.arg) else set()
        found |= set(node.names) if isinstance(node, (ast.Global, ast.Nonlocal)) else set()
    return found


def read_later(record: Record, path: str, at: tuple[int, int] | None = None) -> bool:
    """Whether a line may read a name after it has been deleted at (cell, line); None: when all cells have run.

    A read in a function counts, and one in a loop around the place. A read that only gives the name a new value does
    not.
    """
    last = path.rsplit(".", 1)[-1].split("[", 1)[0]
    for run in Cells.of(record).latest:
        tree = source.parse(run.source)
        for node in ast.walk(tree) if tree is not None else ():
            named = getattr(node, "id", None) if isinstance(node, ast.Name) else getattr(node, "attr", None)
            if named != last or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            line = node.lineno  # type: ignore[attr-defined]
            in_function = source.function_at(run.source, line) is not None
            if in_function or (at is not None and _behind(record, run, line, at)):
                return True
    return False


def _behind(record: Record, run: CellRun, line: int, at: tuple[int, int]) -> bool:
    """Whether a line of a cell runs after (cell, line), as far as the texts show."""
    if run.cell != at[0]:
        there = [one.run for one in record.runs.values() if one.cell == at[0]]
        return not there or run.run > max(there)
    loop = source.loop_at(run.source, at[1])
    return line > at[1] or (loop is not None and loop.lineno <= line <= (loop.end_lineno or 0))
