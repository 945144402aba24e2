"""Edits that cure what a check of PyTorch's refuses: each works on the line that failed, or on what asked for it.

They return nothing where the text does not show one place to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.makers import CallText
from graphwidget.diagnosis.findings.refusals.user_code.hook_returns import hook_of, without_return
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.model import Place, Record, TextEdit, Value

__all__ = [
    "Edit",
    "Site",
    "as_float",
    "as_list",
    "clones_leaves",
    "detaches",
    "detaches_anew",
    "dropped",
    "hook_without_return",
    "multiplied",
    "not_called",
    "one_gradient_each",
    "parameters_of",
    "renamed",
    "sends_values",
    "set_to",
    "without_item",
    "without_underscore",
]


class Site(NamedTuple):
    """The line that failed, and the calls that ask for what is checked. `value`: what a name was there."""

    record: Record
    place: Place
    makers: Sequence[CallText]
    value: Callable[[str], Value | None]

    @property
    def text(self) -> str:
        return Cells.of(self.record).text(self.place.cell)

    @property
    def statement(self) -> ast.stmt | None:
        around = syntax.statements_at(self.text, self.place.line or 0)
        return around[-1] if around and not hasattr(around[-1], "body") else None

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls in the failed line of functions with these last names; of all, where none is given."""
        nodes = ast.walk(self.statement) if self.statement is not None else ()
        found = [node for node in nodes if isinstance(node, ast.Call)]
        return [one for one in found if not names or syntax.last_name(ast.unparse(one.func)) in names]

    def written(self, node: ast.AST, new: str) -> Edits:
        return text_edit.replace_node(self.place.cell, self.text, node, new)


Edit = Callable[[Site], Edits]


def set_to(keyword: str) -> Edit:
    """The only call that asks for it gets another value: ``inplace=False``."""

    def edit(site: Site) -> Edits:
        if len(site.makers) != 1:
            return ()
        run, call = site.makers[0]
        return text_edit.with_argument(run.cell, run.source, call, keyword)

    return edit


def dropped(keyword: str) -> Edit:
    """The only call that has an argument does without it."""

    def edit(site: Site) -> Edits:
        here = [(site.place.cell, site.text, one) for one in site.calls() if _keyword(one, keyword) is not None]
        there = [(run.cell, run.source, one) for run, one in site.makers if _keyword(one, keyword) is not None]
        found = here or there
        return without_argument(*found[0], keyword) if len(found) == 1 else ()

    return edit


def renamed(old: str, new: str) -> Edit:
    """All calls of a function get its other name."""

    def edit(site: Site) -> Edits:
        found: Edits = ()
        for run in Cells.of(site.record).latest:
            for node in syntax.nodes_of(run.source):
                if isinstance(node, ast.Attribute) and node.attr == old:
                    found += text_edit.replace_node(run.cell, run.source, node, f"{ast.unparse(node.value)}.{new}")
        return found

    return edit


def hook_without_return(site: Site) -> Edits:
    """The only hook that the calls register returns nothing."""
    found = [hook_of(site.record, one, None) for one in site.makers]
    hook = found[0] if found else None
    same = hook is not None and all(one is not None and one.made is hook.made for one in found)
    return without_return(hook) if hook is not None and same else ()


def without_underscore(site: Site) -> Edits:
    """The only call in a function that was handed on works on a new tensor: ``t.mul(2)`` for ``t.mul_(2)``."""
    found = [
        (run, node)
        for run, call in site.makers
        for given in call.args
        for node in ast.walk(_function(run.source, given))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr[-1:] == "_"
    ]
    if len(found) != 1:
        return ()
    run, call = found[0]
    new = f"{ast.unparse(call.func.value)}.{call.func.attr.rstrip('_')}"  # type: ignore[attr-defined]
    return text_edit.replace_node(run.cell, run.source, call.func, new)


def _function(text: str, node: ast.expr) -> ast.AST:
    """A lambda itself, or the function of the same text that a name stands for."""
    named = syntax.functions_of(text, node.id) if isinstance(node, ast.Name) else []
    return named[0] if len(named) == 1 else node


def detaches(site: Site) -> Edits:
    """What the line hands over goes without its graph: the only name in it that was measured to require grad."""
    found = [node for call in site.calls() for node in _given(site, call)]
    return text_edit.insert_behind(site.place.cell, site.text, found[0], ".detach()") if len(found) == 1 else ()


def sends_values(site: Site) -> Edits:
    """What is sent to another process goes without its graph: all names that were measured to require grad."""
    found = {
        (node.lineno, node.col_offset): node
        for call in site.calls()
        for given in (*call.args, *(one.value for one in call.keywords))
        for node in _elements(given)
        if (value := site.value(ast.unparse(node))) is not None and value.kind == "tensor" and value.requires_grad
    }
    edits = (text_edit.insert_behind(site.place.cell, site.text, node, ".detach()") for node in found.values())
    return tuple(edit for one in edits for edit in one)


def _elements(given: ast.expr) -> Iterator[ast.expr]:
    """The names in what is given, alone or as elements of tuples, lists and dicts."""
    if isinstance(given, (ast.Name, ast.Attribute)):
        yield given
    elif isinstance(given, (ast.Tuple, ast.List)):
        for one in given.elts:
            yield from _elements(one)
    elif isinstance(given, ast.Dict):
        for one in given.values:
            yield from _elements(one)


def clones_leaves(site: Site) -> Edits:
    """A Function gets a copy of each leaf that it would modify."""
    found = [
        node
        for call in site.calls("apply")
        for node in _given(site, call)
        if (value := site.value(ast.unparse(node))) is not None and value.leaf
    ]
    return text_edit.insert_behind(site.place.cell, site.text, found[0], ".clone()") if len(found) == 1 else ()


def _given(site: Site, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call, and what its method belongs to, that were measured to require grad."""
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for node in (*owner, *call.args):
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = site.value(ast.unparse(node))
            if value is not None and value.kind == "tensor" and value.requires_grad:
                yield node


def detaches_anew(site: Site) -> Edits:
    """``v = v.detach()`` for ``v.detach_()``; none where `v` is a second name of what others keep."""
    statement = site.statement
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "detach_":
        return ()
    owner = ast.unparse(call.func.value)
    plain = isinstance(call.func.value, (ast.Name, ast.Attribute)) and owner not in _second_names(site)
    return site.written(call, f"{owner} = {owner}.detach()") if plain else ()


def _second_names(site: Site) -> set[str]:
    """The variables of the loops around the line, and the arguments of its function."""
    line, inside = site.place.line or 0, syntax.function_at(site.text, site.place.line or 0)
    loops = [one for one in syntax.loops_around(site.text, line) if isinstance(one, ast.For)]
    arguments = {one.arg for one in inside[1].args.args} if inside is not None else set[str]()
    return arguments.union(*(syntax.names_in(one.target) for one in loops))


def as_float(site: Site) -> Edits:
    """What the line assigns becomes one of floating point."""
    value = getattr(site.statement, "value", None)
    if not isinstance(site.statement, ast.Assign) or not isinstance(value, (ast.Call, ast.Name, ast.Attribute)):
        return ()
    return text_edit.insert_behind(site.place.cell, site.text, value, ".float()")


def as_list(site: Site) -> Edits:
    """A generator that has run out is made a list where it was made; inputs that are an empty list are left out."""
    for call in site.calls("backward", "grad"):
        given = _keyword(call, "inputs")
        if isinstance(given, ast.Name):
            made = [
                (run, syntax.given(one))
                for run in Cells.of(site.record).latest
                for one in syntax.assignments(run.source, given.id)
            ]
            if len(made) == 1 and isinstance(made[0][1], (ast.Call, ast.GeneratorExp)):
                run, value = made[0]
                if isinstance(value, ast.GeneratorExp) or ast.unparse(value).endswith("parameters()"):
                    whole = ast.unparse(value)
                    inner = whole[1:-1] if isinstance(value, ast.GeneratorExp) else whole
                    return text_edit.replace_node(run.cell, run.source, value, f"list({inner})")
        if given is not None and syntax.last_name(ast.unparse(call.func)) == "backward":
            return without_argument(site.place.cell, site.text, call, "inputs")
    return ()


def parameters_of(site: Site) -> Edits:
    """The parameters of a module in place of the module."""
    for call in site.calls("grad", "backward"):
        for given in (*call.args[1:2], *filter(None, [_keyword(call, "inputs")])):
            alone = [given] if not isinstance(given, (ast.List, ast.Tuple)) else given.elts
            value = site.value(ast.unparse(alone[0])) if len(alone) == 1 else None
            if value is not None and value.kind == "module":
                return site.written(given, f"list({ast.unparse(alone[0])}.parameters())")
    return ()


def without_item(site: Site) -> Edits:
    """A root itself, in place of its number: without ``.item()``."""
    for call in site.calls("backward", "grad"):
        inner = [node for given in call.args[:1] for node in ast.walk(given) if isinstance(node, ast.Call)]
        numbers = [one for one in inner if isinstance(one.func, ast.Attribute) and one.func.attr == "item"]
        if len(numbers) == 1:
            return site.written(numbers[0], ast.unparse(numbers[0].func.value))  # type: ignore[attr-defined]
    return ()


def one_gradient_each(site: Site) -> Edits:
    """As many gradients of ones as there are roots, where all that were passed are ones."""
    for call in site.calls("grad", "backward"):
        roots = call.args[0] if call.args else _keyword(call, "outputs") or _keyword(call, "tensors")
        given = _keyword(call, "grad_outputs") or _keyword(call, "grad_tensors")
        if not isinstance(roots, (ast.List, ast.Tuple)) or given is None:
            continue
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]
        ones = all(isinstance(one, ast.Call) and "ones" in syntax.last_name(ast.unparse(one.func)) for one in parts)
        if ones and not any(isinstance(one, ast.Starred) for one in roots.elts):
            new = ", ".join(f"torch.ones_like({ast.unparse(one)})" for one in roots.elts)
            return site.written(given, f"[{new}]")
    return ()


def multiplied(site: Site) -> Edits:
    """``a.add(w * b)`` for ``a.add(b, alpha=w)``: a product of tensors is recorded."""
    for call in site.calls():
        factor = _keyword(call, "alpha")
        if factor is not None and call.args and syntax.last_name(ast.unparse(call.func)).rstrip("_") in ("add", "sub"):
            last = call.args[-1]
            kept = [one for one in call.keywords if one.arg != "alpha"]
            product = ast.BinOp(factor, ast.Mult(), last)
            return site.written(call, ast.unparse(ast.Call(call.func, [*call.args[:-1], product], kept)))
    return ()


def not_called(site: Site) -> Edits:
    """The function itself, in place of what it returned: ``register_hook(f)`` for ``register_hook(f(x))``."""
    for call in site.calls():
        given = call.args[0] if call.args and syntax.last_name(ast.unparse(call.func)).startswith("register") else None
        if isinstance(given, ast.Call) and isinstance(given.func, (ast.Name, ast.Attribute)) and not given.keywords:
            return site.written(given, ast.unparse(given.func))
    return ()


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def without_argument(cell: int | None, text: str, call: ast.Call, keyword: str) -> Edits:
    """Remove a keyword argument of a call, and the comma that is then too many."""
    given = sorted([*call.args, *call.keywords], key=lambda one: text_edit.span(text, one))
    at = next((i for i, one in enumerate(given) if isinstance(one, ast.keyword) and one.arg == keyword), None)
    if at is None:
        return ()
    start, end = text_edit.span(text, given[at])
    if at:
        start = text_edit.span(text, given[at - 1])[1]
    elif len(given) > 1:
        end = text_edit.span(text, given[1])[0]
    return (TextEdit(start, end, "", cell),)
