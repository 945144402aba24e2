"""From which variables the program makes its optimizers, also those that it has not made yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.source.pytorch.names import imported_from
from graphwidget.model import CellRun

__all__ = ["TRAINS", "acts_of_training", "is_below", "optimized", "optimized_paths"]

# What makes something that requires grad; the class of a module in the group.
TRAINS = re.compile(r"requires_grad=True|\.requires_grad_\(\)|\bnn\.([A-Z]\w*)\(|\bParameter\(")


def acts_of_training(step: ast.stmt) -> Iterator[tuple[str, str]]:
    """What a statement calls of ``loss.backward()``, ``opt.step()`` and ``opt.zero_grad()``: the object, the method.

    ``env.step(action)`` is none: the step of an optimizer takes a closure at most.
    """
    for node in ast.walk(step):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            verb, given = node.func.attr, [*node.args, *node.keywords]
            if verb in ("backward", "zero_grad") or (
                verb == "step" and (not given or "closure" in source.words_in(node))
            ):
                yield ast.unparse(node.func.value), verb


def optimized(runs: list[CellRun]) -> set[str]:
    """Names from which optimizers got their parameters."""
    return _given_to_optimizers(runs, source.names_in)


def optimized_paths(runs: list[CellRun]) -> set[str]:
    """The same with the attributes that lead to them: ``self.head`` of ``SGD(self.head.parameters())``."""
    return _given_to_optimizers(runs, _paths_in)


def is_below(path: str, holder: str) -> bool:
    """Whether a path is that of a holder or of a part of it. `self` of a holder may have another name in the path."""
    if "." not in holder:
        return root_of(path) == holder
    owner, _, rest = holder.partition(".")
    before = r"(?:^|\.)" if owner == "self" else f"^{re.escape(owner)}\\."
    return re.search(rf"{before}{re.escape(rest)}(?!\w)", local(path)) is not None


def _paths_in(node: ast.AST) -> set[str]:
    """The names and attributes in an expression, each as long as it is written, without methods that are called."""
    found, work = set[str](), list[ast.AST]([node])
    while work:
        one = work.pop()
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            work += [one.func.value, *one.args, *(k.value for k in one.keywords)]
        elif re.fullmatch(r"\w+(\.\w+)*", text := ast.unparse(one)) and isinstance(one, (ast.Name, ast.Attribute)):
            found.add(text)
        else:
            work += ast.iter_child_nodes(one)
    return found


def _given_to_optimizers(runs: list[CellRun], read: Callable[[ast.AST], set[str]]) -> set[str]:
    trees = [tree for run in runs if (tree := source.parse(run.source)) is not None]
    imported = imported_from(trees, "torch.optim")
    found: list[str] = []
    for call in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)):
        whole, _, last = ast.unparse(call.func).rpartition(".")
        if (whole.endswith("optim") and last[:1].isupper()) or (not whole and last in imported):
            found += sorted(name for part in call.args[:1] or call.keywords for name in read(part))
    for name in found:
        made = (source.given(s) for run in runs for s in source.assignments(run.source, name))
        values = (value for value in made if not TRAINS.search(ast.unparse(value)))  # a list of parameters, a module
        found += sorted({n for value in values for n in read(value)}.difference(found))
    return set(found)
