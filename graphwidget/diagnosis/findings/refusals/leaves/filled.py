"""A buffer that was made with ``requires_grad=True``, and is then filled with values that have a graph.

Under ``no_grad`` nothing that these values come from would learn by them. The buffer must not be a leaf that requires
grad: it then becomes a part of the graph by what is written to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.checks.edits import without_argument
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.in_place import statements as inplace
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import short
from graphwidget.model import Fix

__all__ = ["fix_of", "is_filled", "writes_a_graph"]


def writes_a_graph(failure: Failure, name: str | None) -> bool:
    """Whether the line writes values that have a graph."""
    statement = failure.statement
    return statement is not None and any(_has_graph(failure, one, name or "") for one in _written(statement))


def is_filled(failure: Failure, name: str) -> bool:
    """Whether values with a graph that are written to a leaf are to be trained by it; else they edit its values.

    A weight is trained for itself. So is what an optimizer has; but before a backward, it may be meant to be a result.
    """
    target = failure.value(name)
    if target is not None and target.type_name == "Parameter":
        return False
    return failure.before_a_backward or not (target is None or _is_asked_for(failure, name, grad=False))


def _written(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        return [statement.value]
    calls = inplace.inplace_calls(statement)
    return [one for call in calls for one in (*call.args, *(keyword.value for keyword in call.keywords))]


def _has_graph(failure: Failure, expression: ast.expr, name: str) -> bool:
    """Whether a part of an expression was measured to be computed, or is what a trained module returns.

    The leaf's own values do not count: a step by hand may read them.
    """
    if ast.unparse(expression) == name or ast.unparse(expression).startswith((f"{name}[", f"{name}.")):
        return False
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        if expression.func.attr in ("detach", "item", "tolist"):
            return False
        if expression.func.attr in ("cpu", "to", "clone", "float"):
            return _has_graph(failure, expression.func.value, name)
    if isinstance(expression, ast.Attribute) and expression.attr in ("data", "grad", "shape"):
        return False
    value = failure.value(ast.unparse(expression))
    if value is not None and value.kind == "tensor":
        return bool(value.requires_grad) and value.leaf is False
    if isinstance(expression, ast.Call):
        called = failure.value(ast.unparse(expression.func))
        if called is not None and called.kind == "module":
            return bool(called.requires_grad)
    parts = [*ast.iter_child_nodes(expression), *(k.value for k in getattr(expression, "keywords", ()))]
    return any(_has_graph(failure, one, name) for one in parts if isinstance(one, ast.expr))


def fix_of(failure: Failure, name: str, verified: bool) -> Fix:
    """Make the buffer without the flag, in the one line that makes it with it; else write to a copy."""
    made = list(_made_with_flag(failure, name))
    if len(made) != 1 or _is_asked_for(failure, name):
        new, clone = inplace.out_of_place(failure.text), f"{name} = {name}.clone()"
        own = not made and name in _own_names(failure)
        edits = failure.rewritten(new) if own and new else _preceded(failure, clone) if own else ()
        how = f"{short(new)} in place of {short(failure.text)}" if own and new else f"`{clone}` before the first write"
        other = f", or make `{name}` without `requires_grad=True`" if made else ""
        return failure.fix(
            "out_of_place" if own and new else "clone_before_inplace",
            f"Write to a tensor that is no leaf: {how}{other}. Under `no_grad`, what is written would get no gradient.",
            edits,
            verified=verified,
        )
    cell, line, edits = made[0]
    return Fix(
        "plain_buffer",
        f"Make `{name}` without `requires_grad=True`: it requires grad by what is written to it. Under `no_grad`, that "
        "would get no gradient.",
        verified and not inplace.reads_what_it_writes(failure.text),
        (cell, line) if cell is not None else None,
        edits=edits,
    )


def _own_names(failure: Failure) -> set[str]:
    """The variables of the function, or the cell, that lines of it have made. What others have, they want modified."""
    bodies = source.bodies_around(failure.cell, failure.place.line or 0)
    bound: dict[str, list[ast.AST]] = {}
    for one in source.own_statements(bodies[0] if bodies else []):
        for name in source.targets(one):
            if not isinstance(one, ast.AugAssign):
                bound.setdefault(name, []).append(source.given(one) if isinstance(one, ast.Assign) else one)
    return {name for name, made in bound.items() if all(isinstance(one, (ast.Call, ast.BinOp)) for one in made)}


def _preceded(failure: Failure, clone: str) -> Edits:
    """A line before the write, or before the loops around it: what they write is kept."""
    line = failure.place.line or 0
    around = source.loops_around(failure.cell, line)
    within = source.function_at(failure.cell, line)
    inside = [one for one in around if within is None or one.lineno > within[1].lineno]
    name = clone.partition(" = ")[0]
    again = [one for one in inside if any(name in source.targets(s) for s in source.own_statements(one.body))]
    inside = inside[inside.index(again[-1]) + 1 :] if again else inside
    return text_edit.insert_before(failure.place.cell, failure.cell, inside[0] if inside else line, [clone])


def _made_with_flag(failure: Failure, name: str) -> Iterator[tuple[int | None, int, Edits]]:
    """The lines that make the tensor and let it require grad: of the functions around the write, else of the cells."""
    functions = source.bodies_around(failure.cell, failure.place.line or 0)[:-1]
    bodies = (list(source.own_statements(body)) for body in functions)
    local = next((body for body in bodies if any(name in source.targets(one) for one in body)), [])
    own = [(failure.place.cell, failure.cell, one) for one in local]
    if not local:
        runs = failure.cells.latest
        own = [(run.cell, run.source, one) for run in runs for one in getattr(source.parse(run.source), "body", ())]
    for cell, text, statement in own:
        made = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(made, ast.Call) or name not in source.targets(statement):
            continue
        if isinstance(made.func, ast.Attribute) and made.func.attr == "requires_grad_" and not made.args:
            new = ast.get_source_segment(text, made.func.value)
            if new is not None:
                yield cell, statement.lineno, text_edit.replace_node(cell, text, made, new)
        elif any(one.arg == "requires_grad" and ast.unparse(one.value) == "True" for one in made.keywords):
            yield cell, statement.lineno, without_argument(cell, text, made, "requires_grad")


def _is_asked_for(failure: Failure, name: str, *, grad: bool = True) -> bool:
    """Whether an optimizer is made of it, or (`grad`) its gradient is read: then it is a leaf for a reason."""
    for run in failure.cells.latest:
        for node in ast.walk(source.parse(run.source) or ast.Module([], [])):
            if grad and isinstance(node, ast.Attribute) and node.attr == "grad" and ast.unparse(node.value) == name:
                return True
            if isinstance(node, ast.Call) and _needs_leaves(ast.unparse(node.func)):
                if any(ast.unparse(one) == name for one in ast.walk(node) if isinstance(one, ast.expr)):
                    return True
    return False


def _needs_leaves(called: str) -> bool:
    return bool(OPTIMIZER.search(f"{called}(")) or source.last_name(called) == "grad"
