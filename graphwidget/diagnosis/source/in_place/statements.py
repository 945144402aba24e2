"""Statements that modify a tensor in place: what they modify, and their forms that do not."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.in_place.pieces import are_made_by
from graphwidget.model.views import VIEWS

_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Mod: "%",
    ast.FloorDiv: "//",
}


# Methods of tensors that do not depend on the old values; without the underscore there is no such method.
_OVERWRITING = {
    *("copy_", "zero_", "fill_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_"),
    *("log_normal_", "cauchy_"),
}
# Methods that have no other form, or one that does something else; they depend on the old values.
_ONLY_IN_PLACE = {
    *("apply_", "map_", "map2_", "fill_diagonal_", "set_", "resize_", "resize_as_", "resize_as_sparse_"),
    *("sparse_resize_", "sparse_resize_and_clear_"),
}


def modified(text: str) -> str | None:
    """What a statement modifies in place, as it is written: ``h`` in ``h += x``, ``d`` in ``d.clamp_()``.

    None: nothing that is known, or several tensors.
    """
    statement = source.statement_of(text)
    if isinstance(statement, ast.AugAssign):
        return _base(statement.target)
    targets = _parts_assigned(statement)
    if targets:
        several = all_modified(text)
        return several[0] if len(several) == 1 else None
    for call in inplace_calls(statement):
        if isinstance(call.func, ast.Attribute) and not is_module(call.func.value):
            return _base(_first_of_chain(call.func.value))
        if call.args:
            return _base(call.args[0])
    if isinstance(statement, (ast.Assign, ast.Expr)) and isinstance(statement.value, ast.Call):
        arguments = statement.value.args
        return _base(arguments[0]) if len(arguments) == 1 else None
    return None


def all_modified(text: str) -> tuple[str, ...]:
    """All that a statement modifies in place, as it is written: ``a`` and ``b`` in ``a[0], b[0] = b[0], a[0]``."""
    bases = map(_base, _parts_assigned(source.statement_of(text)))
    return tuple(dict.fromkeys(filter(None, bases))) or tuple(filter(None, [modified(text)]))


def _parts_assigned(statement: ast.stmt | None) -> list[ast.Subscript]:
    """The targets of an assignment that are parts of something: ``a[0]`` and ``b[0]`` in ``x, (a[0], b[0]) = f(y)``."""
    work: list[ast.expr] = list(statement.targets) if isinstance(statement, ast.Assign) else []
    found: list[ast.Subscript] = []
    while work:
        one = work.pop(0)
        if isinstance(one, (ast.Tuple, ast.List)):
            work = [*one.elts, *work]
        elif isinstance(one, ast.Subscript):
            found.append(one)
    return found


def _first_of_chain(node: ast.expr) -> ast.expr:
    """``p`` of ``p.mul_(0.9).add_(q)``, whose first call returns what it has modified."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value
    return node


def element(text: str) -> str | None:
    """The element of a list that a statement modifies in place, as it is written: ``xs[i]`` in ``xs[i].add_(1)``."""
    statement = source.statement_of(text)
    calls = [call.func.value for call in inplace_calls(statement) if isinstance(call.func, ast.Attribute)]
    targets = [statement.target] if isinstance(statement, ast.AugAssign) else calls
    return next((ast.unparse(one) for one in targets if isinstance(one, ast.Subscript)), None)


_AT_INDICES = ("index_", "scatter", "masked_")  # what they write is their last argument
_INIT = ("init.", "nn.init.", "torch.nn.init.")  # its functions modify their argument, also those without an underscore


def written(statement: ast.stmt) -> set[str]:
    """Variables whose tensors a statement may modify, also through views: ``h`` in ``h.t()[0] += 1``.

    What a method makes may be a view: ``h`` also in ``h.reshape(-1).zero_()``.
    """
    found: set[str] = set()
    for part in _changed_by(statement):
        while isinstance(part, (ast.Attribute, ast.Call, ast.Subscript)):
            part = part.func if isinstance(part, ast.Call) else part.value
        found |= {part.id} if isinstance(part, ast.Name) else set()
    return found


_BESIDE_THE_GRAPH = {"grad", "data", "detach"}


def is_recorded(statement: ast.stmt) -> bool:
    """Whether a statement writes to what a graph is recorded of: not only to a `.grad`, or through `.data`."""
    changed = _changed_by(statement)
    return not changed or any(_BESIDE_THE_GRAPH.isdisjoint(_attributes(one)) for one in changed)


def _attributes(part: ast.expr) -> Iterator[str]:
    """The attributes on the way to what is written, without those in an index: ``grad`` of ``w.grad[i]``."""
    while isinstance(part, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(part, ast.Attribute):
            yield part.attr
        part = part.func if isinstance(part, ast.Call) else part.value


def surely_written(statement: ast.stmt) -> set[str]:
    """Variables whose tensors a statement surely modifies: themselves, or views of them that are known as such."""
    found: set[str] = set()
    for changed in _changed_by(statement):
        part: ast.expr | None = changed
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            part = part.value  # a write to any part, also one that a mask selects
        while part is not None and not isinstance(part, ast.Name):
            part = _same_memory(part)
        found |= {part.id} if part is not None else set()
    return found


def _same_memory(node: ast.expr) -> ast.expr | None:
    """``x`` for a view of it, and for the result of an in-place method on it. None: that may be new memory."""
    if isinstance(node, ast.Subscript):
        return node.value if _is_basic(node.slice) else None
    if isinstance(node, ast.Attribute):
        return node.value if node.attr.lower() in VIEWS else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if is_module(node.func.value):
        return node.args[0] if are_made_by(node) and node.args else None
    in_place = node.func.attr.endswith("_") and not node.func.attr.endswith("__")
    is_view = node.func.attr.replace("_", "") in VIEWS
    return node.func.value if in_place or is_view or are_made_by(node) else None


def _is_basic(index: ast.expr) -> bool:
    """Whether an index surely gives a view: numbers and slices, no list or tensor of indices, no mask."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    numbers = (one.operand if isinstance(one, ast.UnaryOp) else one for one in parts)
    return all(
        isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and not isinstance(one.value, (bool, str)))
        for one in numbers
    )


def _changed_by(statement: ast.stmt) -> list[ast.expr]:
    """What the in-place calls of a statement, its operator or its targets with an index write to, as written."""
    calls = [c.func for c in inplace_calls(statement) if isinstance(c.func, ast.Attribute)]
    changed: list[ast.expr] = [f.value for f in calls if f.attr != "requires_grad_" and not is_module(f.value)]
    for node in ast.walk(statement):
        whole = [node.target] if isinstance(node, ast.AugAssign) else getattr(node, "targets", [])
        changed += [one for one in whole if isinstance(node, ast.AugAssign) or isinstance(one, ast.Subscript)]
    return changed


def values_written(statement: ast.stmt, last: str | None = None) -> list[ast.expr]:
    """What in-place methods of one statement write into an attribute or name called `last`: no numbers.

    None: into whatever it is, as what a function returns.

    ``self.mean.mul_(0.9).add_(0.1 * m)`` writes ``0.1 * m``. So does it with ``mul_(self.decay)``: beside another
    value, a name that only scales is taken for a number.
    """
    found: list[ast.expr] = []
    scales: list[ast.expr] = []
    for call in inplace_calls(statement):
        base: ast.expr = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        while isinstance(base, ast.Subscript):
            base = base.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", None)
        if last is not None and name != last:
            continue
        given = [one for one in call.args if not isinstance(one, ast.Constant)]
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        given = given[-1:] if method.startswith(_AT_INDICES) else given
        named = all(isinstance(one, (ast.Name, ast.Attribute)) for one in given)
        (scales if method in ("mul_", "div_") and named else found).extend(given)
    return found or scales


def has_other_form(method: str) -> bool:
    """Whether a method with an underscore has a form that makes a new tensor of the old values."""
    return method.endswith("_") and method not in _OVERWRITING | _ONLY_IN_PLACE


def is_module(node: ast.expr) -> bool:
    """Whether an expression is a module of PyTorch's functions."""
    text = ast.unparse(node)
    return text in ("torch", "F", "nn.functional", "torch.nn.functional") or f"{text}." in _INIT


def inplace_calls(statement: ast.stmt | None) -> Iterator[ast.Call]:
    """The calls of a statement that modify in place, the outermost first."""
    for node in _outside_lambdas(statement) if statement else ():
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if (name.endswith("_") and not name.endswith("__")) or inplace_argument(node) is not None:
                yield node


def _outside_lambdas(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of functions that it only makes: others call these."""
    work = [statement]
    while work:
        node = work.pop(0)
        yield node
        work += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.Lambda)]


def inplace_argument(call: ast.Call) -> ast.keyword | None:
    """``inplace=True`` of a call."""
    return next((k for k in call.keywords if k.arg == "inplace" and ast.unparse(k.value) == "True"), None)


def _base(node: ast.expr) -> str | None:
    """The tensor that an expression is, or is a part of."""
    while isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        node = node.value
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and not isinstance(node.slice.value, str)
    ):
        node = node.value
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None


def reads_what_it_writes(text: str) -> bool:
    """``state[t] = f(state[t - 1])``: a copy made before would be modified, too, after its part was saved."""
    statement = source.statement_of(text)
    if isinstance(statement, ast.Assign):
        bases = all_modified(text) if _parts_assigned(statement) else ()
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        bases = all_modified(text)
    else:
        return False
    return bool(parts_read(statement, bases))


def is_operator_on_part(text: str) -> bool:
    """Whether an operator writes into a part of a tensor: ``h[0] *= 2``, ``h[:, 1] -= m``."""
    statement = source.statement_of(text)
    return isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript)


_SIZES = {"shape", "size", "ndim", "dim", "numel", "dtype", "device", "clone", "requires_grad"}


def reading_copies(text: str, names: Collection[str]) -> str:
    """``h[0] = h[1] * h[2]`` as ``h[0] = h[1].clone() * h[2].clone()``: the saved tensor is not the one it writes to.

    Empty if the statement reads none of the tensors.
    """
    text, statement = text.strip(), source.statement_of(text)
    parts = parts_read(statement, names) if not isinstance(statement, ast.Return) else []
    edits = [edit for part in parts for edit in text_edit.insert_behind(None, text, part, ".clone()")]
    return text_edit.apply(text, edits) if edits else ""


def parts_read(statement: ast.stmt | None, names: Collection[str]) -> list[ast.expr]:
    """What a statement reads that is one of some tensors, or a part of it: ``h[1]`` in ``h[0] = f(h[1], h.shape)``."""
    read: list[ast.expr] = []
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)) and statement.value is not None:
        read = [statement.value]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        read = [*statement.value.args, *(keyword.value for keyword in statement.value.keywords)]
    return [part for one in read for part in _parts_of(one, names)]


def _parts_of(node: ast.AST, names: Collection[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return
    wholes: list[ast.expr] = [node] if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else []
    while wholes and isinstance(wholes[-1], ast.Subscript):
        wholes.append(wholes[-1].value)
    if wholes and isinstance(node, ast.expr) and any(ast.unparse(whole) in names for whole in wholes):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _parts_of(child, names)


def out_of_place(text: str, of_element: bool = False) -> str:
    """``h += x`` as ``h = h + x``, ``d.clamp_(0)`` as ``d = d.clamp(0)``, ``inplace=True`` as ``inplace=False``.

    Empty where there is no such form. `of_element`: what is modified is an element of a list or dict, so that
    ``h[i] += x`` can be ``h[i] = h[i] + x``; of a tensor, this would write to it all the same.
    """
    statement = source.statement_of(text)
    replaceable = (ast.Name, ast.Attribute, ast.Subscript) if of_element else (ast.Name, ast.Attribute)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, replaceable):
        sign = _SIGNS.get(type(statement.op))
        value = ast.unparse(statement.value)
        value = f"({value})" if isinstance(statement.value, (ast.BinOp, ast.IfExp, ast.Compare)) else value
        left = ast.unparse(statement.target)
        return f"{left} = {left} {sign} {value}" if sign else ""
    call = next(inplace_calls(statement), None)
    base = modified(text)
    if call is None or base is None or hasattr(statement, "body") or ast.unparse(call.func).startswith(_INIT):
        return ""
    argument = inplace_argument(call)
    method = isinstance(call.func, ast.Attribute) and not is_module(call.func.value)
    if argument is not None:
        argument.value = ast.Constant(False)
    elif isinstance(call.func, ast.Attribute):
        if method and ast.unparse(call.func.value) != base:
            return ""  # a part of it: the rest would be lost
        if method and call.func.attr in _OVERWRITING | _ONLY_IN_PLACE:
            fresh = f"torch.empty_like({base})" if call.func.attr in _OVERWRITING else f"{base}.clone()"
            call.func.value = ast.parse(fresh, mode="eval").body
        else:
            call.func.attr = call.func.attr[:-1]
    assert statement is not None
    new = ast.unparse(statement)
    return f"{base} = {new}" if isinstance(statement, ast.Expr) else new


def scattered(cell: str, line: int, text: str) -> str:
    """``state[t] = v`` in a loop over `t` as ``state = state.select_scatter(v, 0, t)``; else empty."""
    statement = source.statement_of(text)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
        return ""
    target = statement.targets[0]
    counters: set[str] = set()
    for loop in source.statements_at(cell, line):
        if (
            isinstance(loop, ast.For)
            and isinstance(loop.iter, ast.Call)
            and isinstance(loop.target, (ast.Name, ast.Tuple))
        ):
            called = ast.unparse(loop.iter.func)
            first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
            if called in ("range", "enumerate"):
                counters.add(ast.unparse(first))
    names = source.names_in(target.slice)
    if not names or not names <= counters or isinstance(target.slice, (ast.Slice, ast.Tuple)):
        return ""
    base, value = ast.unparse(target.value), ast.unparse(statement.value)
    return f"{base} = {base}.select_scatter({value}, 0, {ast.unparse(target.slice)})"
