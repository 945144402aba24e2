"""Side effects of running statements again: new parameters, a state that starts over.

Read from the text alone: in doubt a statement is not run again.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.torch_names import has_parameters, imported_from

_TAKING = ("pop", "popleft", "popitem", "remove", "clear")


class MadeOnce:
    """What a program makes once: parameters, modules, optimizers.

    Parameters
    ----------
    texts
        The cells, which define classes of modules and import some by their names.
    """

    def __init__(self, texts: Collection[str]) -> None:
        trees = [tree for text in texts if (tree := source.parse(text)) is not None]
        nodes = [node for tree in trees for node in ast.walk(tree)]
        self.classes = {"Module", "Parameter", "Optimizer"}
        self.classes |= imported_from(trees, "torch.nn") | imported_from(trees, "torch.optim")
        defined = [node for node in nodes if isinstance(node, ast.ClassDef)]
        for _ in defined:  # a class may be derived from one that is defined later in the text
            self.classes |= {d.name for d in defined if any(self._is_class(ast.unparse(b)) for b in d.bases)}

    def makes(self, statement: ast.stmt) -> bool:
        """Whether a statement makes something that a program makes once."""
        return any(self._made_by(node) for node in ast.walk(statement))

    def _made_by(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
            return True
        if not isinstance(node, ast.Call):
            return False
        grad = (k.value for k in node.keywords if k.arg == "requires_grad")
        if any(not (isinstance(value, ast.Constant) and value.value is False) for value in grad):
            return True
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return False
        called = ast.unparse(node.func)
        return called.endswith(".requires_grad_") or self._is_class(called)

    def _is_class(self, called: str) -> bool:
        """Whether a dotted name is that of a class of modules with parameters, or of optimizers."""
        whole, _, last = called.rpartition(".")
        if not has_parameters(last):
            return False
        known = whole.rsplit(".", 1)[-1] in ("nn", "optim", "modules", "parameter") and last[:1].isupper()
        return known or last in self.classes


def starts_over(made: Collection[ast.stmt], loop: ast.For | ast.While) -> bool:
    """Whether a loop carries a state over that these statements would reset in each pass.

    This is a state that each pass updates, a list that grows, a queue from which each pass takes.
    """
    changed = {name for statement in made for name in source.changed(statement)}
    kept = source.carried(loop)
    return bool(changed & (kept | taken_from(loop)))


def taken_from(loop: ast.For | ast.While) -> set[str]:
    """Names of containers from which a loop removes elements."""
    calls = (n.func for n in ast.walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    holders = [func.value for func in calls if func.attr in _TAKING]
    holders += [n.value for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Del)]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}
