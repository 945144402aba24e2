"""Questions about the text of a cell: which loop a line is in, where a name is assigned, what cut a graph.

Answers come from the syntax tree alone; nothing is run. A cell that is not plain Python (magics, a
syntax error) has its magic lines blanked out; what still does not parse gives no answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

Statement = ast.stmt


def lines_of(source: str) -> list[str]:
    """The lines of a text without their ends, as Python counts them: a form feed ends none."""
    return re.split(r"\r\n|\r|\n", source.removesuffix("\n")) if source else []


@lru_cache(maxsize=256)
def parse(source: str) -> ast.Module | None:
    """The tree of a cell, or None."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in lines_of(source)]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None


def statement_of(text: str) -> ast.stmt | None:
    """The one statement that a text is, or None."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def expression_of(text: str) -> ast.expr | None:
    """The expression that a text is, or None."""
    statement = statement_of(text)
    return statement.value if isinstance(statement, ast.Expr) else None


def line_text(source: str, line: int | None) -> str:
    """The text of line `line` (from 1), stripped; empty when there is none."""
    lines = lines_of(source)
    return lines[line - 1].strip() if line and 0 < line <= len(lines) else ""


def raw_line(source: str, line: int) -> str:
    """The text of line `line` as it is."""
    return lines_of(source)[line - 1]


def _spans(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", None)
    last = getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def statements_at(source: str, line: int) -> list[Statement]:
    """The statements that contain the line, outermost first."""
    tree = parse(source)
    found: list[Statement] = []
    body: list[ast.stmt] = tree.body if tree else []
    while body:
        inside = next((s for s in body if _spans(s, line)), None)
        if inside is None:
            break
        found.append(inside)
        body = [s for block in _blocks(inside) for s in block]
    return found


def _blocks(statement: Statement) -> list[list[Statement]]:
    """The blocks of a statement: what it runs, its `else`, its handlers."""
    blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
    return blocks + [handler.body for handler in getattr(statement, "handlers", [])]


def leading_to(source: str, line: int) -> list[Statement]:
    """The statements that begin up to a line in the blocks around it, in the order of the text."""
    tree = parse(source)
    found: list[Statement] = []
    body: list[ast.stmt] = tree.body if tree else []
    for around in (*statements_at(source, line), None):
        found += [s for s in body if s.lineno <= line and s is not around]
        blocks = _blocks(around) if around is not None else []
        body = next((block for block in blocks if any(_spans(s, line) for s in block)), [])
    return sorted(found, key=lambda s: (s.lineno, s.col_offset))


def last_line(source: str, line: int) -> int:
    """The line at which the last of the statements ends that begin at `line`."""
    return max((s.end_lineno or line for s in beginning_at(source, line)), default=line)


def loop_at(source: str, line: int) -> ast.For | ast.While | None:
    """The innermost loop statement that has the line in its body."""
    return next(reversed(loops_around(source, line)), None)


LOOPS = (ast.For, ast.While)


def loops_around(source: str, line: int) -> list[ast.For | ast.While]:
    """The loop statements that have the line in their bodies, outermost first."""
    return [s for s in statements_at(source, line)[:-1] if isinstance(s, LOOPS)]


def head(loop: ast.For | ast.While) -> str:
    """What to call a loop: ``for t``, ``while h.norm() > 1``."""
    if isinstance(loop, ast.While):
        return f"while {ast.unparse(loop.test)}"
    parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    return f"for {', '.join(map(ast.unparse, parts))}"


def is_comprehension(statement: ast.stmt) -> bool:
    """Whether a statement loops inside its expression: ``[l.backward() for l in losses]``."""
    if hasattr(statement, "body"):
        return False
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


def is_small(statement: ast.stmt) -> bool:
    """Whether a statement is one step: a simple one, or a `with` or `for` over such, without a call of backward."""
    if not isinstance(statement, (ast.With, ast.For)):
        return not hasattr(statement, "body")
    parts = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
    runs = any(name.endswith((".backward", ".grad")) for name in calls_in(statement))
    return len(parts) <= 6 and not runs


def between(source: str, first: int, last: int) -> list[ast.stmt]:
    """Simple statements that begin after line `first` and not after `last`."""
    tree = parse(source)
    found = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body")] if tree else []
    return [s for s in found if first < s.lineno <= last]


def block_of(source: str, statement: ast.stmt) -> list[ast.stmt]:
    """The block that has a statement in it; empty: it is not of this text."""
    spot = (statement.lineno, statement.col_offset)
    around = _blocks_around(source, statement.lineno)
    return next((block for block in around if any((s.lineno, s.col_offset) == spot for s in block)), [])


def behind(source: str, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that follow one in its block."""
    spot = (statement.lineno, statement.col_offset)
    return [s for s in block_of(source, statement) if (s.lineno, s.col_offset) > spot]


def _blocks_around(source: str, line: int) -> list[list[ast.stmt]]:
    """The blocks around a line, the outermost first."""
    tree = parse(source)
    found = [tree.body] if tree is not None else []
    for one in statements_at(source, line):
        found += _blocks(one)
    return found


def own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at any depth of a body, in the order of the text, without those of functions and classes in it."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield statement
        for block in _blocks(statement):
            yield from own_statements(block)


@lru_cache(maxsize=1024)
def loop_names(source: str) -> frozenset[str]:
    """Names that a `for` assigns: they stand for another tensor in each pass."""
    tree = parse(source)
    loops = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension))] if tree else []
    return frozenset(name for loop in loops for name in names_in(loop.target))


def function_at(source: str, line: int) -> tuple[ast.ClassDef | None, ast.FunctionDef] | None:
    """The innermost function whose body has the line, with the class that it is a method of."""
    found: tuple[ast.ClassDef | None, ast.FunctionDef] | None = None
    around: ast.ClassDef | None = None
    for statement in statements_at(source, line):
        if isinstance(statement, ast.ClassDef):
            around = statement
        elif isinstance(statement, ast.FunctionDef):
            found, around = (around, statement), None
    return found


def method_at(source: str, line: int) -> ast.FunctionDef | None:
    """The innermost function around a line, if its first argument is `self`."""
    found = function_at(source, line)
    return found[1] if found is not None and [a.arg for a in found[1].args.args][:1] == ["self"] else None


def targets(statement: ast.stmt) -> Iterator[str]:
    """Names and dotted names that a statement assigns."""
    if isinstance(statement, ast.Assign):
        wholes = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        wholes = [statement.target]
    else:
        return
    for whole in wholes:
        parts = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else [whole]
        for part in parts:
            yield ast.unparse(part.value if isinstance(part, ast.Starred) else part)


def assignments(source: str, name: str) -> list[ast.stmt]:
    """The statements that assign `name`, in the order of the text."""
    tree = parse(source)
    if tree is None:
        return []
    found = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and name in targets(s)]
    return sorted(found, key=lambda s: s.lineno)


def bindings(source: str, name: str, line: int) -> list[ast.stmt]:
    """The statements before a line, or around it, that give `name` a value: assignments and heads of `for`."""
    tree = parse(source)
    found = [
        s
        for s in (ast.walk(tree) if tree else ())
        if isinstance(s, ast.stmt) and s.lineno < line
        if name in (names_in(s.target) if isinstance(s, ast.For) else targets(s))
    ]
    return sorted(found, key=lambda s: s.lineno)


def given(statement: ast.stmt) -> ast.AST:
    """What an assignment assigns, or a `for` goes over; else the statement."""
    return getattr(statement, "value", None) or getattr(statement, "iter", None) or statement


def assigned_as(source: str, last: str) -> list[tuple[ast.stmt, str]]:
    """Statements that assign a name or attribute called `last`, each with its target, in the order of the text."""
    tree = parse(source)
    found = [
        (s, target)
        for s in (ast.walk(tree) if tree else ())
        if isinstance(s, ast.stmt)
        for target in targets(s)
        if target.rsplit(".", 1)[-1] == last
    ]
    return sorted(found, key=lambda pair: pair[0].lineno)


def backward_root(line: str) -> str | None:
    """What `.backward` is called on in a statement that is only this call, without arguments that matter."""
    tree = parse(line)
    first = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Call):
        return None
    call = first.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return None
    if ast.unparse(call.func.value) not in ("torch.autograd", "autograd"):
        return ast.unparse(call.func.value) if not call.args else None
    root = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(root, (ast.List, ast.Tuple)):
        root = root.elts[0] if len(root.elts) == 1 else None
    return ast.unparse(root) if root is not None else None


def receivers(line: str) -> list[str]:
    """What `.backward` is called on in a line, in the order of the text, also behind ``if train:`` or ``else:``."""
    tree = parse(line) or parse(re.sub(r"^\s*(?:else|try|finally|except[^:]*)\s*:", "", line).strip())
    tree = tree or parse(re.sub(r"^\s*elif\b", "if", line))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    found = [n.func for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    found.sort(key=lambda func: (func.end_lineno or 0, func.end_col_offset or 0))
    return [ast.unparse(func.value) for func in found]


def asked(line: str, what: Literal["outputs", "inputs"]) -> list[str]:
    """The expressions that a line gives as one of these: of ``torch.autograd.grad(y, [x, w])`` `y`, or `x` and `w`.

    Of the first call of `grad`, or of `backward`, which has `inputs` only.
    """
    tree = parse(line)
    for call in ast.walk(tree) if tree else ():
        called = ast.unparse(call.func).rsplit(".", 1)[-1] if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or called not in ("grad", "backward"):
            continue
        given = [keyword.value for keyword in call.keywords if keyword.arg == what]
        if called == "grad":
            given += call.args[:1] if what == "outputs" else call.args[1:2]
        for one in given[:1]:
            return [ast.unparse(part) for part in (one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one])]
    return []


def summed(loop: ast.For, line: int) -> tuple[str, list[str]] | None:
    """A loop that runs backward on what it goes over as one sum, and the statements that then replace the loop.

    None where its passes differ in more than that: ``for l in losses: l.backward(); seen.append(l)``.
    """
    call = next(
        (s for s in loop.body if s.lineno <= line <= (s.end_lineno or line) and backward_root(ast.unparse(s))), None
    )
    root = backward_root(ast.unparse(call)) if call is not None else None
    rest = [s for s in loop.body if s is not call]
    over = names_in(loop.target)
    if call is None or root is None or loop.orelse or any(hasattr(s, "body") for s in rest):
        return None
    used = names_in(ast.parse(root))
    if not over & used or any(names_in(s) & over or changed(s) & used for s in rest):
        return None
    target = ast.unparse(loop.target)
    named = target[1:-1] if isinstance(loop.target, ast.Tuple) and target.startswith("(") else target
    each = "" if root == target else f"{root} for {named} in "
    whole = f"sum({each}{ast.unparse(loop.iter)})"
    return whole, [f"{whole}.backward()" if s is call else ast.unparse(s) for s in loop.body]


def backward_calls(source: str, line: int) -> int:
    """How many calls of `backward` or `grad` the statements make that begin at a line."""
    return sum(
        name.rsplit(".", 1)[-1] in ("backward", "grad") for s in beginning_at(source, line) for name in calls_in(s)
    )


def beginning_at(source: str, line: int) -> list[ast.stmt]:
    """The simple statements that begin at a line: several, where ``;`` is between them."""
    tree = parse(source)
    simple = (s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body")) if tree else ()
    return sorted((s for s in simple if s.lineno == line), key=lambda s: s.col_offset)


def function_called(source: str, name: str) -> ast.FunctionDef | None:
    """The last function of a cell that is called `name`."""
    tree = parse(source)
    found = [s for s in (ast.walk(tree) if tree else ()) if isinstance(s, ast.FunctionDef) and s.name == name]
    return found[-1] if found else None


def functions_of(source: str, name: str) -> list[ast.FunctionDef]:
    """The function of a cell that is called `name`, or what an object of the class `name` does when it is called."""
    function = function_called(source, name)
    tree = parse(source)
    classes = [s for s in (ast.walk(tree) if tree else ()) if isinstance(s, ast.ClassDef) and s.name == name]
    inside = [s for found in classes for s in found.body if isinstance(s, ast.FunctionDef)]
    return [*([function] if function else []), *(s for s in inside if s.name in ("forward", "__call__"))]


def fixed_fields(source: str) -> tuple[set[str], set[str]]:
    """Fields of named tuples, and of frozen dataclasses, that a cell defines: nothing can be assigned to them."""
    tuples, frozen = set[str](), set[str]()
    tree = parse(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef):
            fields = {ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)}
            if any(ast.unparse(base).endswith("NamedTuple") for base in node.bases):
                tuples |= fields
            elif any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list):
                frozen |= fields
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("namedtuple") and len(node.args) > 1:
            given = node.args[1]
            texts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
            for one in (part.value for part in texts if isinstance(part, ast.Constant)):
                tuples.update(str(one).replace(",", " ").split())
    return tuples, frozen


def names_in(node: ast.AST) -> set[str]:
    """Names anywhere in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def words_in(node: ast.AST) -> set[str]:
    """Names and the names of attributes anywhere in a node."""
    return names_in(node) | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def names_read(statement: ast.stmt) -> set[str]:
    """Names whose values a statement uses: not those that it only assigns."""
    read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read | set(targets(statement)) if isinstance(statement, ast.AugAssign) else read


def paths_read(statement: ast.stmt) -> set[str]:
    """Names and dotted names whose values a statement uses."""
    nodes = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
    return names_read(statement) | set(map(ast.unparse, nodes))


GROWING = ("append", "appendleft", "add", "insert", "extend", "update")


def grown(node: ast.AST) -> set[str]:
    """Names of containers that a node puts something into."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    holders = [func.value for func in calls if func.attr in GROWING]
    holders += [n.value for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return {holder.id for holder in holders if isinstance(holder, ast.Name)}


def changed(node: ast.AST) -> set[str]:
    """Names that a node assigns, or puts something into; the variable of a comprehension is its own."""
    own = {id(n) for c in ast.walk(node) if isinstance(c, ast.comprehension) for n in ast.walk(c.target)}
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in stored if id(n) not in own} | grown(node)


def carried(statement: ast.stmt) -> set[str]:
    """Names that a statement changes, starting from what they were: ``h`` in ``h = f(h)``, ``a`` in ``a.append(h)``."""
    final, found, known = changed(statement), set[str](), set[str]()
    for step in steps_of(statement):
        found |= names_read(step) & final - known
        known |= changed(step)
    return found


def forgotten(source: str, line: int) -> set[str]:
    """Names that the loop around a line assigns in each pass, and that no later line of it reads."""
    loop = loop_at(source, line)
    if loop is None:
        return set()
    later = {name for step in steps_of(loop) if step.lineno > line for name in names_read(step)}
    return changed(loop) - carried(loop) - later


def steps_of(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The simple statements in a statement, and the heads of the others as such, in the order of the text."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        yield ast.Assign(targets=[statement.target], value=statement.iter, lineno=statement.lineno)
    elif isinstance(statement, (ast.While, ast.If)):
        yield ast.Expr(statement.test, lineno=statement.lineno)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            named = [item.optional_vars] if item.optional_vars else []
            yield ast.Assign(targets=named, value=item.context_expr, lineno=statement.lineno)
    elif not hasattr(statement, "body"):
        yield statement
    for field in ("body", "orelse", "finalbody"):
        for inner in getattr(statement, field, ()):
            yield from steps_of(inner)


def steps_of_all(tree: ast.Module) -> Iterator[ast.stmt]:
    """`steps_of` of everything in a cell, functions and classes included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for statement in node.body:
                yield from steps_of(statement)


def last_name(path: str) -> str:
    """``mean`` of ``net.norms[0].mean``, ``avg`` of ``avg[0]``."""
    return re.sub(r"\[.*$", "", path.rsplit(".", 1)[-1])


def calls_in(node: ast.AST) -> Iterator[str]:
    """Dotted names of what a node calls: ``opt.step``, ``torch.no_grad``."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func)


_NUMBERS = {"item", "detach", "tolist", "numpy", "append", "appendleft", "insert", "clear", "remove", "grad_fn",
            "shape", "dtype", "device", "requires_grad"}  # fmt: skip
_DROPS = {"pop", "popleft"}  # what they return is dropped where they are a statement of their own
_LOOKING = {"len", "print", "float", "int", "bool", "str", "repr", "type", "id", "isinstance"}


def handed_on(root: ast.AST, name: str) -> Iterator[int]:
    """The lines that read a variable, or an attribute of that name, as more than a number or something to look at.

    ``total = torch.stack(losses).sum()``, not ``print(losses[-1])`` or ``[loss.item() for loss in losses]``.
    """
    parents = {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(root):
        named = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if named != name or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        part, above = node, parents.get(node)
        if isinstance(node, ast.Attribute) and isinstance(above, ast.Call) and above.func is node:
            continue  # a method of that name: ``x.mean()``
        last = ""
        while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is part:
            last = above.attr if isinstance(above, ast.Attribute) else last
            if last in _NUMBERS:
                break
            part, above = above, parents.get(above)
        if last in _NUMBERS or isinstance(above, (ast.Expr, ast.Delete)):
            continue
        if last in _DROPS and isinstance(above, ast.Call) and isinstance(parents[above], ast.Expr):
            continue
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            continue
        if isinstance(above, ast.Call) and part in above.args and ast.unparse(above.func) in _LOOKING:
            continue
        if isinstance(above, ast.comprehension) and above.iter is part and isinstance(above.target, ast.Name):
            whole = parents[above]
            if above.target.id != name and not list(handed_on(whole, above.target.id)):
                continue
        yield getattr(node, "lineno", 0)


def hand_overs(loop: ast.For | ast.While, line: int) -> Iterator[tuple[ast.stmt, str, str]]:
    """Statements of a loop after a line that only hand a tensor on to the next pass, ``prev = out``, with both names.

    What is handed on is made anew in each pass, and the other name gets nothing in another way.
    """
    own = changed(loop) - carried(loop)
    steps = list(steps_of(loop))
    for step in steps:
        if not isinstance(step, ast.Assign) or len(step.targets) != 1 or step.lineno <= line:
            continue
        target, value = step.targets[0], step.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in own:
            others = [s for s in steps if s is not step and target.id in changed(s)]
            used = any(s.lineno > step.lineno and target.id in names_read(s) for s in steps)
            if not others and not used:
                yield step, target.id, value.id


def _sets(statement: ast.stmt, name: str) -> bool:
    """Whether a statement assigns a variable in any case: ``if h is None: h = zeros()`` leaves it set, too."""
    if isinstance(statement, ast.If):
        asked = ast.unparse(statement.test) in (f"{name} is None", f"not {name}")
        return any(_sets(s, name) for s in statement.body) and (asked or any(_sets(s, name) for s in statement.orelse))
    return not isinstance(statement, (ast.For, ast.While)) and name in changed(statement)


def set_at(cells: list[str], cell: str, line: int, name: str) -> bool:
    """Whether a variable surely has a value other than None when a line of a cell is reached for the first time.

    It is assigned in each pass before the line, or before the loop; whatever the cells assign, None is not among it.
    """
    loop, function = loop_at(cell, line), function_at(cell, line)
    tree = parse(cell)
    body = loop.body if loop is not None else function[1].body if function is not None else tree.body if tree else []
    if loop is not None and isinstance(loop, ast.For) and name in names_in(loop.target):
        return True
    if any(_sets(s, name) for s in body if s.lineno < line):
        return True
    every = [s for text in cells for s in assignments(text, name)]
    if any(isinstance(v := getattr(s, "value", None), ast.Constant) and v.value is None for s in every):
        return False
    inside = {id(s) for s in ast.walk(loop)} if loop is not None else set[int]()
    outside = [s for s in every if id(s) not in inside]
    return bool(outside) or not every or function is not None
