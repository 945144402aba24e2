"""Gradients of many, some of which require none: ask for the others, wherever the list comes from.

What is read beside the gradients (``zip(params, grads)``) has to stay in step with them. Where the list itself can be
made shorter, it is; else the gradients keep their places, with None for what requires none.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from graphwidget.diagnosis.fixes.in_step import only_trainable
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells, Spot
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import functions
from graphwidget.model import Record

__all__ = ["of_trainable"]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_MAKING_DICTS = ("dict", "OrderedDict")


class _Asking(NamedTuple):
    """A statement with one call of `autograd.grad`, and what that is asked for."""

    spot: Spot
    text: str
    statement: ast.stmt
    call: ast.Call
    asked: ast.expr

    @property
    def scope(self) -> ast.AST:
        """The function around it, or the whole text."""
        inside = syntax.function_at(self.text, self.statement.lineno)
        return inside[1] if inside is not None else syntax.parse(self.text) or ast.Module([], [])

    @property
    def result(self) -> str | None:
        """The variable that the gradients are assigned to; None: something else is done with them."""
        one = self.statement
        plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        if not isinstance(one, ast.Assign) or not plain:
            return None
        value = one.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) in ("list", "tuple") and len(value.args) == 1:
            value = value.args[0]
        return ast.unparse(one.targets[0]) if value is self.call else None


def of_trainable(record: Record, spot: Spot | None, frozen_at: Collection[Spot] = ()) -> list[tuple[str, Edits]]:
    """Sentences, each with edits that ask for the gradients of what requires grad; none where the text is not plain.

    Parameters
    ----------
    spot
        The line that asks.
    frozen_at
        The lines that freeze something: a list that was made before them has what is frozen later.
    """
    cells = Cells.of(record)
    one = _asking(cells, spot)
    if one is None:
        return []
    only = "Ask only for the gradients of those that require grad"
    here = _shorter(one, frozen_at) if not _is_given_back(record, one) else ()
    if here and not isinstance(one.statement, ast.Return):
        return [(f"{only}.", here)]
    text = f"{only}, and take None for the others, in their places."
    in_places = [(f"{only}.", here)] if here else [(text, _in_their_places(one))]
    if _is_of_a_backward(record, one):
        return in_places  # a Function gives a gradient for each of its inputs
    made = [] if _is_made_too_early(one, frozen_at) else only_trainable(cells.texts, one.spot[0], one.asked)
    return [(f"{only}, wherever there is one value for each of them.", tuple(made)), *in_places] if made else in_places


def _is_made_too_early(one: _Asking, frozen_at: Collection[Spot]) -> bool:
    """Whether the list was made by a line of the program itself, and another one freezes something behind it."""
    if not isinstance(one.asked, ast.Name):
        return False
    made = syntax.bindings(one.text, one.asked.id, one.statement.lineno)
    first = (one.spot[0], made[-1].lineno) if made else one.spot
    top = [s for s in frozen_at if s[0] == one.spot[0] and syntax.function_at(one.text, s[1]) is None]
    return bool(made) and syntax.function_at(one.text, first[1]) is None and any(spot > first for spot in top)


def _asking(cells: Cells, spot: Spot | None) -> _Asking | None:
    statement = cells.statement(spot) if spot is not None else None
    if spot is None or statement is None or hasattr(statement, "body"):
        return None
    nodes = [*ast.walk(statement)]
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and syntax.last_name(ast.unparse(node.func)) == "grad" and node.args
    ]
    if len(calls) != 1:
        return None
    (call,) = calls
    given = [one.value for one in call.keywords if one.arg == "inputs"] + call.args[1:2]
    inner = [one for one in nodes if isinstance(one, (*_COMPREHENSIONS, ast.Lambda))]
    owned = any(call in ast.walk(one) and not _goes_over(one, call) for one in inner)
    if len(given) != 1 or owned or isinstance(given[0], ast.Starred):
        return None
    return _Asking(spot, cells.text(spot[0]), statement, call, given[0])


def _goes_over(node: ast.AST, call: ast.Call) -> bool:
    """Whether a comprehension goes over what a call returns, first of all."""
    return isinstance(node, _COMPREHENSIONS) and node.generators[0].iter is call


def _is_of_a_backward(record: Record, one: _Asking) -> bool:
    return isinstance(one.scope, ast.FunctionDef) and any(one.scope is made.backward for made in functions(record))


def _is_given_back(record: Record, one: _Asking) -> bool:
    """Whether what is asked for goes back to others, one for each: a Function's backward, or a function's result."""
    if _is_of_a_backward(record, one):
        return True
    if isinstance(one.statement, ast.Return):
        return any(one.call is part for part in (one.statement.value, *_parts(one.statement.value)))
    returned = [node for node in ast.walk(one.scope) if isinstance(node, ast.Return) and node.value is not None]
    return any(isinstance(part, ast.Name) and part.id == one.result for each in returned for part in _parts(each.value))


def _parts(value: ast.expr | None) -> Iterator[ast.expr]:
    """A value, and what a tuple or a sum of tuples is made of."""
    if isinstance(value, (ast.Tuple, ast.List)):
        yield from (part for one in value.elts for part in _parts(one))
    elif isinstance(value, ast.BinOp):
        yield from (*_parts(value.left), *_parts(value.right))
    elif isinstance(value, ast.Starred):
        yield from _parts(value.value)
    elif value is not None:
        yield value


# ------------------------------------------------------------------ None in their places


def _in_their_places(one: _Asking) -> Edits:
    """``found = iter(grad(y, [x for x in asked if x.requires_grad]))``, and None for the others."""
    cell, taken = one.spot[0], syntax.names_in(one.scope)
    asked, found = (name if name not in taken else f"{name}_" for name in ("asked", "found"))
    plain = isinstance(one.asked, (ast.Name, ast.List, ast.Tuple, ast.BinOp, ast.ListComp))
    written = ast.unparse(one.asked)
    name = written if isinstance(one.asked, ast.Name) else asked
    lines = [] if name == written else [f"{asked} = {written if plain else f'list({written})'}"]
    call = text_edit.apply(
        one.text, text_edit.replace_node(cell, one.text, one.asked, f"[x for x in {name} if x.requires_grad]")
    )
    start, end = text_edit.span(one.text, one.call)
    whole = _segment(one.text, call, start, end)
    lines.append(f"{found} = iter({whole})")
    edits = text_edit.insert_before(cell, one.text, one.statement, lines)
    new = f"tuple(next({found}) if x.requires_grad else None for x in {name})"
    edits += text_edit.replace_node(cell, one.text, one.call, new)
    return edits + tuple(edit for edit in _skipping(one))


def _segment(old: str, new: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text of a call in the changed text, on one line."""
    starts = text_edit.offsets(old)
    first, last = text_edit.offset_of(starts, start), text_edit.offset_of(starts, end)
    return ast.unparse(ast.parse(new[first : len(new) - (len(old) - last)].strip(), mode="eval"))


def _skipping(one: _Asking) -> Edits:
    """``if g is None: continue`` in the loops that go over the gradients."""
    found: Edits = ()
    for loop in (node for node in ast.walk(one.scope) if isinstance(node, ast.For)):
        over, target = loop.iter, loop.target
        given = over.args if isinstance(over, ast.Call) and ast.unparse(over.func) == "zip" else [over]
        names = target.elts if isinstance(target, ast.Tuple) and len(given) > 1 else [target]
        for value, name in zip(given, names):
            if isinstance(value, ast.Name) and value.id == one.result and isinstance(name, ast.Name):
                lines = [f"if {name.id} is None:", "    continue"]
                found += text_edit.insert_before(one.spot[0], one.text, loop.body[0], lines)
    return found


# ------------------------------------------------------------------ a shorter list


def _shorter(one: _Asking, frozen_at: Collection[Spot]) -> Edits:
    """Edits that leave out what requires no grad wherever the list is read beside the gradients."""
    beside = _beside(one)
    if beside is None:
        return ()
    written = ast.unparse(one.asked)
    if any(ast.unparse(other) != written for other in beside):
        return _of_a_dict(one, beside)
    made = _where_it_is_made(one, written, frozen_at) if isinstance(one.asked, ast.Name) else ()
    if made or not isinstance(one.asked, (ast.Name, ast.Call, ast.Attribute)):
        return made
    new = f"[p for p in {_unlisted(one.asked)} if p.requires_grad]"
    return tuple(
        edit for node in (one.asked, *beside) for edit in text_edit.replace_node(one.spot[0], one.text, node, new)
    )


def _beside(one: _Asking) -> list[ast.expr] | None:
    """What is read in step with the gradients; None: they are read in another way than by going over them."""
    nodes = [*ast.walk(one.scope)]
    if one.result is None:
        return [] if any(isinstance(node, ast.comprehension) and node.iter is one.call for node in nodes) else None
    found: list[ast.expr] = []
    reads = [node for node in nodes if isinstance(node, ast.Name) and node.id == one.result]
    known = set[int]()
    for node in nodes:
        over: ast.expr | None = getattr(node, "iter", None)
        if isinstance(over, ast.Call) and ast.unparse(over.func) == "zip":
            if any(given in reads for given in over.args):
                known |= {id(given) for given in over.args}
                found += [given for given in over.args if given not in reads]
        elif over in reads:
            known.add(id(over))
    left = [node for node in reads if isinstance(node.ctx, ast.Load) and id(node) not in known]
    return None if left else found


def _unlisted(value: ast.expr) -> str:
    """`m.parameters()` of ``list(m.parameters())``."""
    call = isinstance(value, ast.Call) and ast.unparse(value.func) in ("list", "tuple") and len(value.args) == 1
    return ast.unparse(value.args[0] if call and isinstance(value, ast.Call) else value)


def _where_it_is_made(one: _Asking, name: str, frozen_at: Collection[Spot]) -> Edits:
    """``params = [p for p in net.parameters() if p.requires_grad]``; nothing where that would be too early."""
    cell, line = one.spot[0], one.statement.lineno
    inside = syntax.function_at(one.text, line)
    first = inside[1].lineno if inside is not None else 0
    made = [each for each in syntax.bindings(one.text, name, line) if each.lineno > first]
    if len(made) != 1 or not isinstance(made[0], ast.Assign) or not isinstance(made[0].targets[0], ast.Name):
        return ()
    value = made[0].value
    if any(spot > (cell, made[0].lineno) for spot in frozen_at):
        return ()  # it is made while all still require grad
    if isinstance(value, ast.ListComp):
        only = value.generators[0]
        if len(value.generators) == 1 and ast.unparse(value.elt) == ast.unparse(only.target):
            end = only.ifs[-1] if only.ifs else only.iter
            return text_edit.insert_behind(cell, one.text, end, f" if {ast.unparse(only.target)}.requires_grad")
        return ()
    return text_edit.replace_node(cell, one.text, value, f"[p for p in {_unlisted(value)} if p.requires_grad]")


def _of_a_dict(one: _Asking, beside: list[ast.expr]) -> Edits:
    """``fast = {k: p for k, p in net.named_parameters() if p.requires_grad}`` for ``list(fast.values())``."""
    asked = syntax.expression_of(_unlisted(one.asked))
    func = asked.func if isinstance(asked, ast.Call) else None
    name = ast.unparse(func.value) if isinstance(func, ast.Attribute) and func.attr == "values" else ""
    if not name.isidentifier() or any(ast.unparse(other) not in (f"{name}.items()", name) for other in beside):
        return ()
    found: Edits = ()
    for each in syntax.bindings(one.text, name, one.statement.lineno):
        value = each.value if isinstance(each, ast.Assign) else None
        called = syntax.last_name(ast.unparse(value.func)) if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and called in _MAKING_DICTS and len(value.args) == 1:
            new = f"{{k: p for k, p in {ast.unparse(value.args[0])} if p.requires_grad}}"
            found += text_edit.replace_node(one.spot[0], one.text, value, new)
    return found
