"""A tuple, a list, a dict or another object in the place of a loss: which of its parts is meant."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.refusals.no_tensors.asked import Asked
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import Finding, Fix, Place

__all__ = ["found", "of_another_owner"]

_SEQUENCES = ("tuple", "list")
_WHOLE = ("loss", "total", "total_loss")  # what a part is called that has all terms in it; `kl_loss` may be one of many


def found(one: Asked) -> Finding:
    """What it consists of, where the text shows it, and how a part or all of it is trained by."""
    parts, place = _parts(one)
    made = one.made
    shown = f": {names(parts, most=6)}" if parts else ""
    by = f" {made.told} made it." if made is not None and place is None else ""
    by = f" {short(place.source)} ({where(place)}) makes it{shown}." if place is not None else by
    return one.failure.finding(
        f"`{one.name}` is {one.what}, and no tensor.",
        f"{one.line} asks `{one.name}` for `{one.attribute}`, and only a tensor has one.{by}",
        *_fixes(one, parts),
        tensor=one.name,
        cause=place or (made.place if made is not None else None),
    )


def of_another_owner(one: Asked) -> Finding | None:
    """``optimizer.backward(loss)``: the call on an object that has no such method, with the loss in its brackets."""
    failure = one.failure
    calls = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call)] if failure.statement is not None else []
    call = next((n for n in calls if isinstance(n.func, ast.Attribute) and n.func.value is one.node), None)
    given = call.args[0] if call is not None and call.args else None
    value = failure.value(ast.unparse(given)) if given is not None else None
    if call is None or given is None or value is None or value.kind != "tensor" or one.attribute != "backward":
        return None
    new = f"{syntax.in_brackets(given)}.backward({', '.join(map(ast.unparse, (*call.args[1:], *call.keywords)))})"
    edits = text_edit.replace_node(failure.place.cell, failure.cell, call, new)
    return failure.finding(
        f"`{one.name}` is {one.what}, and has no `backward`.",
        f"{one.line} asks `{one.name}` for `backward`, and only a tensor has one: `{ast.unparse(given)}` is what it is "
        "given.",
        Fix("mend_the_code", f"Call it on the tensor: `{new}`.", False, at(failure.place), edits=edits),
        tensor=ast.unparse(given),
        cause=failure.place,
    )


def _parts(one: Asked) -> tuple[tuple[str, ...], Place | None]:
    """The elements, or the keys, as the line writes them that makes the object; and that line."""
    made = one.made
    if made is None:
        return (), None
    function = one.function(made.given)
    if function is None:
        return _written(made.given), made.place if _written(made.given) else None
    run, node = function
    returned = [s for s in syntax.own_statements(node.body) if isinstance(s, ast.Return) and s.value is not None]
    written = {_written(s.value) for s in returned if s.value is not None}
    place = place_of(run, returned[-1].lineno) if returned else None
    return (written.pop() if len(written) == 1 else ()), place


def _written(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(ast.unparse(each) for each in node.elts)
    if isinstance(node, ast.Dict):
        return tuple(ast.unparse(key) for key in node.keys if key is not None)
    return ()


def _fixes(one: Asked, parts: tuple[str, ...]) -> tuple[Fix, ...]:
    """Choices: which part is the loss, or all of them, only the program's author knows."""
    name, place = one.name, at(one.failure.place)

    def choice(id_: str, text: str, new: str) -> Fix:
        edits = text_edit.replace_node(one.failure.place.cell, one.failure.cell, one.node, new)
        return Fix(id_, text, False, place, edits=edits, choice=True)

    if one.kind == "dict":
        total = [part for part in parts if part.strip("'\"") in _WHOLE]
        part = total[0] if total else parts[0] if len(parts) == 1 else ""
        all_ = f"sum({name}.values())"
        one_of = (
            choice("use_the_output", f"Take the loss out of it: `{name}[{part}]`.", f"{name}[{part}]") if part else None
        )
        whole = choice("use_the_output", f"Add up what it holds: `{all_}`.", all_)
        return tuple(filter(None, (one_of, None if total else whole)))
    if one.kind in _SEQUENCES:
        single = one.what.endswith(" of 1") or len(parts) == 1
        named = [i for i, part in enumerate(parts) if "loss" in part.lower()]
        first = next((i for i in named if parts[i] in _WHOLE), named[0] if named else 0)
        of_one = f"{name}[{first}]"
        word = f" (`{parts[first]}`)" if parts else ""
        take = choice("use_the_output", f"Take the loss out of it: `{of_one}`{word}.", of_one)
        add = choice("use_the_output", f"Add up what it holds: `sum({name})`.", f"sum({name})")
        if single or any(part in _WHOLE for part in parts):
            return (take,)
        return add, take  # what is no loss cannot be added to one, and a trial shows that
    fields = _fields(one)
    losses = [field for field in fields if field in _WHOLE] or list(fields if len(fields) == 1 else ())
    if len(losses) == 1:
        new = f"{name}.{losses[0]}"
        return (choice("use_the_output", f"Take the loss out of it: `{new}`.", new),)
    of = f" It has {names(fields, most=6)}." if fields else ""
    text = f"Compute one tensor of what it holds: the loss itself, or the sum of its terms.{of}"
    return (Fix("use_the_output", text, False, place),)


def _fields(one: Asked) -> tuple[str, ...]:
    """The attributes of a class of the user's own, as its text gives them."""
    made = [
        node
        for run in one.failure.cells.latest
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.ClassDef) and node.name == one.kind
    ]
    own = (t for s in made for n in ast.walk(s) if isinstance(n, ast.stmt) for t in syntax.targets(n))
    declared = (
        s.target.id for m in made for s in m.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    )
    found = dict.fromkeys((*declared, *(target.removeprefix("self.") for target in own if target.startswith("self."))))
    return tuple(name for name in found if name.isidentifier())
