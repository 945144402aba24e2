"""Roots that a backward refuses: no single real number, or a `gradient` of another shape or type."""

from __future__ import annotations

import ast
import re
from math import prod

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, short, where
from graphwidget.engine import forecast as engine
from graphwidget.model import Finding, Fix, TensorRef

__all__ = ["of_another_shape", "of_several_values", "start", "would_run"]

_OWN = re.compile(r"\.backward\(\s*(?:\)|\w+\s*=)")  # a tensor's own; not ``accelerator.backward(loss)``


def of_several_values(failure: Failure) -> Finding:
    """``out.backward()`` where `out` is no single number."""
    called, name = start(failure)
    shown = f"`{name}`" if name else "The root"
    ref = failure.tensor(name)
    refused = failure.run.scene.refused
    shape = refused.shape if refused is not None else failure.shape(name)
    size = f"{prod(shape)} values, of shape {list(shape)}" if shape else "several values"
    simple = name is not None and not isinstance(source.expression_of(name), (ast.BinOp, ast.UnaryOp))
    one = f"{name}.sum()" if simple else f"({name}).sum()" if name else "sum()"
    weights = f"{'grad_outputs' if name and not called else 'gradient'}=torch.ones_like({name or 'root'})"
    runs = would_run(failure, ref, called)
    return failure.finding(
        f"{shown} is not one number.",
        f"{shown} has {size}.{_made(failure, name)} A gradient is that of one number, such as a loss.",
        failure.fix(
            "scalar_loss",
            f"Make one number of it: `{one}`, or `mean()`, which divides by how many there are.",
            _reduced(failure, called),
            runs,
        ),
        failure.fix(
            "pass_gradient",
            f"Or say how much each value counts: `{weights}`.",
            failure.with_keyword(weights) if name else (),
            runs,
        ),
        tensor=name,
    )


def _made(failure: Failure, name: str | None) -> str:
    """A sentence about the line that made a root of several values, and about its ``reduction='none'``."""
    refused = failure.run.scene.refused
    node = failure.computed(name) if name else None
    if node is None and refused is not None:
        node = failure.node_of(refused)
    place = failure.record.snapshot.place_of(node) if node is not None else None
    if place is None or not place.source or at(place) == at(failure.place):
        return ""
    statement = failure.cells.statement((place.cell, place.line)) if place.cell and place.line else None
    nodes = ast.walk(statement) if statement is not None and not hasattr(statement, "body") else ()
    unreduced = any(
        isinstance(node, ast.keyword) and node.arg == "reduction" and getattr(node.value, "value", None) == "none"
        for node in nodes
    )
    kept = ", with `reduction='none'`, which keeps them apart" if unreduced else ""
    return f" {short(place.source)} ({where(place)}) made it{kept}."


def start(failure: Failure) -> tuple[bool, str | None]:
    """Which function the line calls, `backward` or `grad`, and its root."""
    called = source.receivers(failure.text) if _OWN.search(failure.text) else []
    roots = called or source.asked(failure.text, "outputs")
    return bool(called), roots[0] if len(roots) == 1 else None


def _reduced(failure: Failure, called: bool) -> Edits:
    """Edits that write ``.sum()`` behind the root of the statement's only call."""
    wanted = "backward" if called else "grad"
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    calls = [
        (call, call.func)
        for call in nodes
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == wanted
        if not (called and call.args)
    ]
    if len(calls) != 1:
        return ()
    ((call, function),) = calls
    cell, text = failure.place.cell, failure.cell
    if called:
        return text_edit.insert_before_attribute(cell, text, function, ".sum()")
    root = next(iter(call.args), None)
    simple = isinstance(root, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return text_edit.insert_behind(cell, text, root, ".sum()") if root is not None and simple else ()


def would_run(failure: Failure, ref: TensorRef | None, called: bool) -> bool:
    """Whether a backward from a root would run, given a gradient. For `grad`, which has inputs, that is unknown."""
    if ref is None or not called:
        return False
    return engine.forecast(failure.record.snapshot, [ref], grad_given=True).ok is True


# ------------------------------------------------------------------ the argument `gradient`


def of_another_shape(failure: Failure) -> Finding | None:
    """``loss.backward(gradient=y)`` where `y` has another shape than `loss`."""
    shapes = [_shape(one) for one in re.findall(r"torch\.Size\(\[([\d, ]*)\]\)", failure.run.error or "")]
    if len(shapes) != 2:
        return None
    given, wanted = shapes
    name, argument, own = _root(failure), _gradient(failure), _is_own(_call(failure))
    name = name if own or failure.shape(name) == wanted else None  # a list of several, for one
    shown = f"`{name}`" if name else "the root"
    value = _value_of(argument)
    only = _only(value) if value is not None and name else None
    written = f", {short(ast.unparse(only))}," if only is not None else ""
    word = (isinstance(argument, ast.keyword) and argument.arg) or "gradient"
    weights = f"torch.ones_like({name})" if name else "torch.ones_like(root)"
    edits = _replaced(failure, only, weights) if _is_of_ones(only) else ()
    pass_ = failure.fix("pass_gradient", f"Pass one of the shape {list(wanted)}: for equal weights `{weights}`.", edits)
    drop = failure.fix(
        "drop_gradient",
        f"Leave `{word}` out: {shown} is one number, and its gradient begins with 1.",
        _dropped(failure, argument),
        own and would_run(failure, failure.tensor(name), own),
    )
    of_its_shape = _of_its_shape(failure, only, name) if prod(given) == prod(wanted) and not _is_of_ones(only) else None
    unreduced = _unreduced(failure, name, given)
    return failure.finding(
        f"`{word}` has another shape than {shown}.",
        f"The `{word}` that was given{written} has the shape {list(given)}, and {shown} has {list(wanted)}. It says "
        "how much each value counts, so it has the shape of what the backward starts from.",
        *([of_its_shape] if of_its_shape else [drop, *unreduced] if prod(wanted) == 1 and name else [pass_]),
        tensor=name,
    )


def _of_its_shape(failure: Failure, gradient: ast.expr | None, name: str | None) -> Fix | None:
    """As many values in another shape: they stay what they are. Without them a gradient of -1 would become 1."""
    if gradient is None or name is None:
        return None
    new = ast.unparse(ast.Call(ast.Attribute(gradient, "reshape", ast.Load()), [ast.Name(f"{name}.shape")], []))
    return failure.fix("pass_gradient", f"Give it the shape of `{name}`: `{new}`.", _replaced(failure, gradient, new))


def _shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _call(failure: Failure) -> ast.Call | None:
    """The only call of `backward` or `grad` in the statement."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    found = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and source.last_name(ast.unparse(node.func)) in ("backward", "grad")
    ]
    return found[0] if len(found) == 1 else None


def _is_own(call: ast.Call | None) -> bool:
    """Whether a call is one of a tensor's method `backward`, and not of a function of ``torch.autograd``."""
    function = call.func if call is not None else None
    if not isinstance(function, ast.Attribute) or function.attr != "backward":
        return False
    return source.last_name(ast.unparse(function.value)) != "autograd"


def _root(failure: Failure) -> str | None:
    """The root as it is written, if there is only one: with several, torch's message may name another one."""
    call = _call(failure)
    if call is None:
        return None
    if _is_own(call) and isinstance(call.func, ast.Attribute):
        return ast.unparse(call.func.value)
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("tensors", "outputs"))]
    root = _only(given[0]) if given else None
    return ast.unparse(root) if root is not None else None


def _only(value: ast.expr) -> ast.expr | None:
    """An expression, or the only element of a list."""
    while isinstance(value, (ast.List, ast.Tuple)):
        if len(value.elts) != 1:
            return None
        value = value.elts[0]
    return value if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.BinOp)) else None


def _gradient(failure: Failure) -> ast.expr | ast.keyword | None:
    """The argument that is the gradient."""
    call = _call(failure)
    if call is None or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    at = 0 if _is_own(call) else 1 if source.last_name(ast.unparse(call.func)) == "backward" else 2
    given: list[ast.expr | ast.keyword] = [
        one for one in call.keywords if one.arg in ("gradient", "grad_tensors", "grad_outputs")
    ]
    given += call.args[at : at + 1]
    return given[0] if given else None


def _value_of(argument: ast.expr | ast.keyword | None) -> ast.expr | None:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _is_of_ones(value: ast.expr | None) -> bool:
    """``torch.ones(4)``: equal weights for all values."""
    return isinstance(value, ast.Call) and source.last_name(ast.unparse(value.func)) == "ones"


def _replaced(failure: Failure, argument: ast.expr | ast.keyword | None, new: str) -> Edits:
    value = _value_of(argument)
    return text_edit.replace_node(failure.place.cell, failure.cell, value, new) if value is not None else ()


def _dropped(failure: Failure, argument: ast.expr | ast.keyword | None) -> Edits:
    """Edits that remove the argument; where others follow it, None takes its place."""
    call = _call(failure)
    if argument is None or call is None:
        return ()
    if len(call.args) + len(call.keywords) > 1:
        return _replaced(failure, argument, "None")
    return text_edit.replace_node(failure.place.cell, failure.cell, argument, "")


def _unreduced(failure: Failure, name: str | None, given: tuple[int, ...]) -> list[Fix]:
    """``y.backward(gradient=g)`` for ``y.sum().backward(gradient=g)``, where `y` has the shape of `g`."""
    root = source.expression_of(name) if name else None
    if not isinstance(root, ast.Call) or root.args or root.keywords or not isinstance(root.func, ast.Attribute):
        return []
    if root.func.attr not in ("sum", "mean"):
        return []
    inner = ast.unparse(root.func.value)
    if failure.shape(inner) != given:
        return []
    call = _call(failure)
    there = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    edits: Edits = ()
    if there is not None and ast.unparse(there) == name:
        edits = text_edit.replace_node(failure.place.cell, failure.cell, there, inner)
    text = f"Or begin at `{inner}`, which has that shape, if each of its values is to count as much as was given."
    return [failure.fix("pass_gradient", text, edits)]
