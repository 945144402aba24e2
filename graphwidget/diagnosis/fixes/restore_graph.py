"""Edits that restore a graph which a line has cut off; and what the program trains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TypeGuard

from graphwidget.diagnosis.fixes import handed_over, new_values, plain_attributes
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.source.pytorch.names import has_parameters
from graphwidget.diagnosis.source.pytorch.optimizers import TRAINS, optimized
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR, CellRun, TextEdit

_NUMBER = re.compile(r"\.(item|tolist|numpy|detach|data)\b|^(float|int|len)\(")
# Without these, a line computes the same values with their graph.
LEFT_OUT = ("detach", "detach_", "data", "item")

_MAKES_AGAIN = ("tensor", "as_tensor", "from_numpy", "FloatTensor")
_COMPUTING = ("torch", "F", "nn", "self")  # with what calls of operations and modules begin
_LEAVES = ("item", "tolist", "numpy", "detach", "cpu", "clone")
_FREEZES = re.compile(r"requires_grad_\(False\)|requires_grad *= *False")


def without(cell: int | None, text: str, statement: ast.stmt | ast.expr, cut: str) -> Edits:
    """A statement without ``.detach()``, ``.data`` or the like; ``x`` for ``torch.tensor(x.tolist())``."""
    nodes = list(ast.walk(statement))
    again = [(n, kept) for n in nodes if isinstance(n, ast.Call) and (kept := _made_again(n)) is not None]
    if again:
        return tuple(e for n, kept in again for e in text_edit.replace_node(cell, text, n, ast.unparse(kept)))
    if cut == "Parameter":
        return plain_attributes.not_as_parameter(cell, text, statement)
    if cut == INTO_A_LEAF and isinstance(statement, ast.stmt):
        handed = handed_over.handed_over(cell, text, statement)
        return handed.edits if handed is not None else plain_attributes.not_into_a_leaf(cell, text, statement)
    if cut == INTO_A_TENSOR and isinstance(statement, ast.stmt):
        return new_values.instead_of_write(cell, text, statement)[1]
    if "tensor(" in ast.unparse(statement) or cut not in LEFT_OUT:
        return ()
    if cut == "item" and (numbers := [n for n in nodes if _makes_number(n)]):
        return tuple(e for n in numbers for e in text_edit.replace_node(cell, text, n, source.in_brackets(n.args[0])))
    cuts: list[tuple[ast.expr, ast.expr]] = [(n.func, n) for n in nodes if isinstance(n, ast.Call) and not n.args]
    cuts += [(n, n) for n in nodes if isinstance(n, ast.Attribute) and cut == "data"]
    edits = tuple(
        TextEdit(text_edit.dot_of(text, function), text_edit.span(text, whole)[1], "", cell)
        for function, whole in cuts
        if isinstance(function, ast.Attribute) and function.attr == cut
    )
    if isinstance(statement, ast.Assign) and edits:
        names = list(source.targets(statement))
        if len(names) == 1 and text_edit.new_text(text, edits).strip() == f"{names[0]} = {names[0]}":
            return text_edit.remove(cell, text, statement)
    return edits


def _makes_number(node: ast.AST) -> TypeGuard[ast.Call]:
    """``float(x)``, of something that a line computes."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
    return called and isinstance(node, ast.Call) and len(node.args) == 1 and not isinstance(node.args[0], ast.Constant)


def _made_again(node: ast.Call) -> ast.expr | None:
    """``x`` of ``torch.tensor(x.tolist())`` or ``torch.from_numpy(x.detach().cpu().numpy())``.

    And ``F.relu(x)`` of ``torch.tensor(F.relu(x))``: what an operation or a part of a module returns is a tensor. What
    another name stands for may be a list of them.
    """
    if source.last_name(ast.unparse(node.func)) not in _MAKES_AGAIN or len(node.args) != 1:
        return None
    value, left = node.args[0], False
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
        if value.func.attr not in _LEAVES:
            break
        value, left = value.func.value, True
    name, alone = source.last_name(ast.unparse(node.func)), not node.keywords
    computed = name == "tensor" and alone and isinstance(value, ast.Call) and root_of(ast.unparse(value)) in _COMPUTING
    return value if (left or computed) and isinstance(node.func, ast.Attribute) else None


def stacked(cell: int | None, text: str, statement: ast.stmt) -> tuple[str, Edits]:
    """``torch.stack(losses)`` for ``torch.tensor(losses)`` of computed tensors, and the edit that writes it.

    Of a list that is written there, a stack of stacks, in which numbers are made tensors. Empty where a list from
    elsewhere may hold numbers, or it is none.
    """
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    calls = [one for one in calls if source.last_name(ast.unparse(one.func)) == "tensor"]
    if len(calls) != 1 or len(calls[0].args) != 1:
        return "", ()
    dtype = next((ast.unparse(one.value) for one in calls[0].keywords if one.arg == "dtype"), "")
    given = calls[0].args[0]
    if _takes_arguments(statement, given):
        return "", ()
    new = _stack(given) if isinstance(given, (ast.List, ast.Tuple)) else ""
    if not new and _holds_tensors(text, given):
        new = f"torch.stack({ast.unparse(given)})"
    new = f"{new}.to({dtype})" if new and dtype else new
    return (new, text_edit.replace_node(cell, text, calls[0], new)) if new else ("", ())


def _takes_arguments(statement: ast.stmt, given: ast.expr) -> bool:
    """Whether a list takes all arguments of a function or lambda, ``lambda *v: torch.tensor([v])``: `v` is a tuple."""
    made = (one for one in ast.walk(statement) if isinstance(one, (ast.Lambda, ast.FunctionDef)))
    starred = {one.args.vararg.arg for one in made if one.args.vararg is not None and given in ast.walk(one)}
    return bool(starred & source.names_in(given))


def _holds_tensors(text: str, given: ast.expr) -> bool:
    """Whether no element of a list is a number, as far as the text shows what is put in."""
    values: list[ast.expr] = [given]
    if isinstance(given, ast.Name):
        values = [v for one, _ in source.assigned_as(text, given.id) if isinstance(v := source.given(one), ast.expr)]
    elements: list[ast.expr] = []
    for value in values:
        if not isinstance(value, (ast.List, ast.ListComp)):
            return False
        elements += value.elts if isinstance(value, ast.List) else [value.elt]
    for node in source.nodes_of(text) if isinstance(given, ast.Name) else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{ast.unparse(given)}.append":
            elements += node.args
    return bool(elements) and not any(
        isinstance(one, ast.Constant) or _NUMBER.search(ast.unparse(one)) for one in elements
    )


def _stack(node: ast.expr, like: str = "") -> str:
    """A list of tensors, numbers, and lists of them, as a stack; empty: it has another form, or no tensor."""
    if isinstance(node, (ast.List, ast.Tuple)):
        first = next((one for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))), None)
        like = like or (ast.unparse(first) if first is not None else "")
        parts = [_stack(one, like) for one in node.elts] if like else []
        return f"torch.stack([{', '.join(parts)}])" if parts and all(parts) else ""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(number, ast.Constant):
        return f"torch.full_like({like}, {ast.unparse(node)})"
    return "" if isinstance(node, ast.Starred) or _NUMBER.search(ast.unparse(node)) else ast.unparse(node)


def feeding(around: ast.stmt, statement: ast.stmt) -> tuple[ast.stmt, set[str]]:
    """The first statement of a block that one of its statements needs, and all names that these read."""
    first, needed = statement, source.names_in(statement)
    for one in reversed(getattr(around, "body", [])):
        holds = one.lineno <= statement.lineno <= (one.end_lineno or 0)
        if holds or (one.lineno < statement.lineno and needed & source.changed(one)):
            first = one
            needed |= source.names_in(one)
    return first, needed


def out_of_with(cell: int | None, text: str, around: ast.With, first: ast.stmt) -> Edits:
    """Move a statement of a `with`, and those that follow it in the `with`, behind the `with`."""
    if len(around.items) > 1 or first not in around.body:
        return ()
    old = text_edit.statement_lines(text, around)
    if first.lineno == around.lineno:
        new = [ast.unparse(s) for s in around.body]
    else:
        depth, kept = around.body[0].col_offset - around.col_offset, first.lineno - around.lineno
        new = [*(old[:kept] if first is not around.body[0] else ()), *(line[depth:] for line in old[kept:])]
    return text_edit.replace_lines(cell, text, around.lineno, around.end_lineno or around.lineno, new)


def without_decorator(
    cell: int | None, text: str, function: ast.FunctionDef, decorator: str
) -> tuple[int, Edits] | None:
    """Edits that remove a decorator from a function, and the decorator's line."""
    found = next((d for d in function.decorator_list if ast.unparse(d) == decorator), None)
    if found is None:
        return None
    end = found.end_lineno or found.lineno
    return found.lineno, (TextEdit((found.lineno, 0), (end + 1, 0), "", cell),)


def trains(runs: Iterable[CellRun], names: Iterable[str]) -> bool:
    """Whether one of these names surely requires grad, or its parameters do; False if anything is frozen anywhere."""
    texts = [run.source for run in runs]
    if any(_FREEZES.search(text) for text in texts):
        return False
    trees = [tree for text in texts if (tree := source.parse(text)) is not None]
    classes = [s for tree in trees for s in ast.walk(tree) if isinstance(s, ast.ClassDef)]
    modules = {s.name for s in classes if any(ast.unparse(base).endswith("Module") for base in s.bases)}
    for name in names:
        made = (source.given(s) for text in texts for s in source.assignments(text, name))
        given = [ast.unparse(value) for value in made if name not in source.names_in(value)]
        if given and (_makes_parameters(given[-1]) or given[-1].split("(", 1)[0] in modules):
            return True
    return False


def _makes_parameters(text: str) -> bool:
    """Whether a text makes a tensor that requires grad, or a module that has parameters."""
    return any(not found[1] or has_parameters(found[1]) for found in TRAINS.finditer(text))


def meant_to_train(runs: Iterable[CellRun], statements: Iterable[ast.stmt]) -> bool:
    """Whether all modules that some statements call are probably meant to get a gradient.

    So it is with a single module; where optimizers have the parameters of all; and, without any optimizer, where each
    module reads the output of the one before it (a teacher and its student do not). No trial says what is meant: the
    program runs, and trains the teacher.
    """
    known, steps = list(runs), list(statements)
    called = {name for s in steps for name in source.calls_in(s) if trains(known, [name])}
    stepped = optimized(known)
    return len(called) < 2 or (called <= stepped if stepped else _is_chain(steps, called))


def only_optimized(runs: Iterable[CellRun], statement: ast.stmt) -> bool:
    """Whether optimizers, if there are any, step all modules that a statement calls; a teacher is not stepped."""
    known = list(runs)
    stepped, called = optimized(known), {name for name in source.calls_in(statement) if trains(known, [name])}
    return not stepped or called <= stepped


def first_trained(runs: Iterable[CellRun], block: list[ast.stmt], first: ast.stmt) -> ast.stmt:
    """The first statement of a block, from `first` on, that uses what an optimizer steps; `first` where none does."""
    stepped = optimized(list(runs))
    later = (s for s in block if s.lineno >= first.lineno)
    return next((s for s in later if source.names_read(s) & stepped), first)


def _is_chain(steps: list[ast.stmt], modules: set[str]) -> bool:
    """Whether each call of one of these modules reads what the call before it has made."""
    made: set[str] = set()
    for step in steps:
        calls = [n for n in ast.walk(step) if isinstance(n, ast.Call) and ast.unparse(n.func) in modules]
        calls.sort(key=lambda call: len(ast.unparse(call)))
        builds = bool(source.names_read(step) & made)
        if calls and made and not builds:
            return False
        if any(inner not in ast.walk(outer) for inner, outer in zip(calls, calls[1:])):
            return False
        if calls or builds:
            made |= source.changed(step)
    return True
