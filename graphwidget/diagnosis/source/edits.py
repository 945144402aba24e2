"""Edits of a cell's text, as fixes propose them.

An edit is a list of lines that is applied from the line `at` on: ``- x`` removes the next line whose text is `x`,
``  x`` steps over it, ``+ x`` writes a line at that place, as deep as its neighbour.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.source import syntax as source

Edit = tuple[str, ...]


def statement_text(cell: str, statement: ast.stmt) -> list[str]:
    """The lines of a statement without the indentation it stands at."""
    lines = cell.splitlines()[statement.lineno - 1 : statement.end_lineno]
    depth = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return [line[depth:] if not line[:depth].strip() else line.lstrip() for line in lines]


def before(cell: str, line: int, new: Collection[str]) -> Edit:
    """Write lines before the statement at `line`."""
    return (*(f"+ {one}" for one in new), f"  {source.line_text(cell, line)}")


def after(cell: str, line: int, new: Collection[str]) -> Edit:
    """Write lines after the statement at `line`, or after all on that line; nothing where a block hangs on it."""
    found = source.statements_at(cell, line)
    if not found or hasattr(found[-1], "body"):
        return ()
    beginning = cell.splitlines()[found[-1].lineno - 1].encode()[: found[-1].col_offset]
    if beginning.strip():
        return ()
    last = source.last_line(cell, found[-1].lineno)
    kept = [f"  {one.strip()}" for one in cell.splitlines()[line - 1 : last]]
    return (*kept, *(f"+ {one}" for one in new))


def replaced(old: str, new: str) -> Edit:
    return (f"- {old.strip()}", f"+ {new.strip()}") if old.strip() != new.strip() else ()


def with_keyword(line: str, keyword: str, root: str = "") -> Edit:
    """Add ``retain_graph=True``, or the like, to the backward or grad call of a line: the one on `root`, of several."""
    name = keyword.split("=", 1)[0]
    calls = [call for call in _calls(line) if ast.unparse(call.func).rsplit(".", 1)[-1] in ("backward", "grad")]
    calls.sort(key=lambda call: not ast.unparse(call).startswith(f"{root}.backward("))
    for call in calls:
        given = next((k for k in call.keywords if k.arg == name), None)
        raw = line.encode()
        if given is not None and given.value.end_col_offset is not None:
            start, end = given.value.col_offset, given.value.end_col_offset
            text = raw[:start] + keyword.split("=", 1)[1].encode() + raw[end:]
        else:
            end = (call.end_col_offset or len(raw)) - 1
            comma = b", " if call.args or call.keywords else b""
            text = raw[:end] + comma + keyword.encode() + raw[end:]
        return replaced(line, text.decode())
    return ()


def in_front(edit: Edit) -> Edit:
    """An edit that writes lines in front of one, as one that finds that line first."""
    new = [step for step in edit if step.startswith("+")]
    if not edit or not edit[0].startswith("+") or edit != (*new, f"  {edit[-1][2:]}"):
        return edit
    return (f"- {edit[-1][2:]}", *new, f"+ {edit[-1][2:]}")


def _calls(line: str) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(line)
    except (SyntaxError, ValueError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def with_name(line: str, name: str, new: str) -> Edit:
    """Read `new` wherever a line reads `name`."""
    left, sign, right = _assignment(line)
    changed = re.sub(rf"(?<![\w.\]]){re.escape(name)}(?![\w\[(=]|\s*=[^=])(?!\.detach\b)", lambda _: new, right)
    return replaced(line, left + sign + changed) if changed != right else ()


def _assignment(line: str) -> tuple[str, str, str]:
    """What stands left of an assignment's sign, the sign, and the right side."""
    try:
        tree = ast.parse(line)
    except (SyntaxError, ValueError):
        return "", "", line
    first = tree.body[0] if tree.body else None
    if isinstance(first, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and first.value is not None:
        start = len(line.encode()[: first.value.col_offset].decode())
        return line[:start], "", line[start:]
    return "", "", line


# ------------------------------------------------------------------ in-place statements

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
# Methods of which there is no other form, or one that does something else; they depend on the old values.
_ONLY_IN_PLACE = {
    *("apply_", "map_", "map2_", "fill_diagonal_", "set_", "resize_", "resize_as_", "resize_as_sparse_"),
    *("sparse_resize_", "sparse_resize_and_clear_"),
}


def statement_of(text: str) -> ast.stmt | None:
    """The one statement that a text is, or None."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def expression(text: str) -> ast.expr | None:
    """The expression that a text is, or None."""
    statement = statement_of(text)
    return statement.value if isinstance(statement, ast.Expr) else None


def modified(text: str) -> str | None:
    """What a statement modifies in place, as it is written: ``h`` in ``h += x``, ``d`` in ``d.clamp_()``."""
    statement = statement_of(text)
    if isinstance(statement, ast.AugAssign):
        return _base(statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return _base(statement.targets[0])
    for call in _inplace_calls(statement):
        if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
            return _base(call.func.value)
        if call.args:
            return _base(call.args[0])
    if isinstance(statement, (ast.Assign, ast.Expr)) and isinstance(statement.value, ast.Call):
        arguments = statement.value.args
        return _base(arguments[0]) if len(arguments) == 1 else None
    return None


def element(text: str) -> str | None:
    """The element of a list that a statement modifies in place, as it is written: ``xs[i]`` in ``xs[i].add_(1)``."""
    statement = statement_of(text)
    calls = [call.func.value for call in _inplace_calls(statement) if isinstance(call.func, ast.Attribute)]
    targets = [statement.target] if isinstance(statement, ast.AugAssign) else calls
    return next((ast.unparse(one) for one in targets if isinstance(one, ast.Subscript)), None)


_INIT = ("init.", "nn.init.", "torch.nn.init.")  # its functions modify what they get, whatever they are called


def written(statement: ast.stmt) -> set[str]:
    """Variables whose tensors a statement modifies, be it through views: ``h`` in ``h.t()[0] += 1``."""
    calls = [c.func for c in _inplace_calls(statement) if isinstance(c.func, ast.Attribute)]
    changed: list[ast.expr] = [f.value for f in calls if f.attr != "requires_grad_" and not _is_module(f.value)]
    for node in ast.walk(statement):
        whole = [node.target] if isinstance(node, ast.AugAssign) else getattr(node, "targets", [])
        changed += [one for one in whole if isinstance(node, ast.AugAssign) or isinstance(one, ast.Subscript)]
    found: set[str] = set()
    for part in changed:
        while isinstance(part, (ast.Attribute, ast.Call, ast.Subscript)):
            part = part.func if isinstance(part, ast.Call) else part.value
        found |= {part.id} if isinstance(part, ast.Name) else set()
    return found


def _is_module(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text in ("torch", "F", "nn.functional", "torch.nn.functional") or f"{text}." in _INIT


def _inplace_calls(statement: ast.stmt | None) -> Iterator[ast.Call]:
    for node in ast.walk(statement) if statement else ():
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if (name.endswith("_") and not name.endswith("__")) or _told_inplace(node) is not None:
                yield node


def _told_inplace(call: ast.Call) -> ast.keyword | None:
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
    statement, base = statement_of(text), modified(text)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript) or base is None:
        return False
    return any(ast.unparse(part) == base for part in ast.walk(statement.value) if isinstance(part, ast.expr))


_SIZES = {"shape", "size", "ndim", "dim", "numel", "dtype", "device", "clone", "requires_grad"}


def reading_copies(text: str, name: str) -> Edit:
    """``h[0] = h[1] * h[2]`` as ``h[0] = h[1].clone() * h[2].clone()``: what it saves is not what it writes to."""
    text = text.strip()
    statement = statement_of(text)
    call = statement.value if isinstance(statement, ast.Expr) else None
    read: list[ast.expr] = [statement.value] if isinstance(statement, (ast.Assign, ast.AugAssign)) else []
    if isinstance(call, ast.Call):
        read = [*call.args, *(keyword.value for keyword in call.keywords)]
    raw = text.encode()
    ends = sorted((part.end_col_offset or 0 for one in read for part in _parts_of(one, name)), reverse=True)
    for end in ends:
        raw = raw[:end] + b".clone()" + raw[end:]
    return replaced(text, raw.decode()) if ends and "\n" not in text else ()


def _parts_of(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """The parts of an expression that are tensor `name`, or a part of it: ``h[1]`` in ``f(h[1], h.shape)``."""
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return
    part = node
    while isinstance(part, ast.Subscript):
        part = part.value
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(part) == name:
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _parts_of(child, name)


def out_of_place(text: str) -> Edit:
    """``h += x`` as ``h = h + x``, ``d.clamp_(0)`` as ``d = d.clamp(0)``, ``inplace=True`` as ``inplace=False``."""
    statement = statement_of(text)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, (ast.Name, ast.Attribute)):
        sign = _SIGNS.get(type(statement.op))
        value = ast.unparse(statement.value)
        value = f"({value})" if isinstance(statement.value, (ast.BinOp, ast.IfExp, ast.Compare)) else value
        left = ast.unparse(statement.target)
        return replaced(text, f"{left} = {left} {sign} {value}") if sign else ()
    call = next(_inplace_calls(statement), None)
    base = modified(text)
    if call is None or base is None or hasattr(statement, "body") or ast.unparse(call.func).startswith(_INIT):
        return ()
    told = _told_inplace(call)
    method = isinstance(call.func, ast.Attribute) and not _is_module(call.func.value)
    if told is not None:
        told.value = ast.Constant(False)
    elif isinstance(call.func, ast.Attribute):
        if method and ast.unparse(call.func.value) != base:
            return ()  # a part of it: the rest would be lost
        if method and call.func.attr in _OVERWRITING | _ONLY_IN_PLACE:
            fresh = f"torch.empty_like({base})" if call.func.attr in _OVERWRITING else f"{base}.clone()"
            call.func.value = ast.parse(fresh, mode="eval").body
        else:
            call.func.attr = call.func.attr[:-1]
    assert statement is not None
    new = ast.unparse(statement)
    return replaced(text, f"{base} = {new}" if isinstance(statement, ast.Expr) else new)


def scattered(cell: str, line: int, text: str) -> Edit:
    """``state[t] = v`` in a loop over `t` as ``state = state.select_scatter(v, 0, t)``."""
    statement = statement_of(text)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
        return ()
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
        return ()
    base, value = ast.unparse(target.value), ast.unparse(statement.value)
    return replaced(text, f"{base} = {base}.select_scatter({value}, 0, {ast.unparse(target.slice)})")
