"""Tensors that a custom Function is given inside of something else: ``Horner.apply(x, self.coeffs)``, a list of them.

Autograd sees the tensors that are arguments of ``apply`` themselves. It does not look into a list, a dict or a module,
and takes no gradient for one: what is in it has to be passed, or it does not train.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.fixes.in_place.handed_in import argument_of
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, Fix, Place, Record, Scene, TextEdit

__all__ = ["Held", "held_by"]

MOST_STEPS = 6  # from an argument to what was given for it
_MAKING = ("list", "tuple", "dict", "ParameterList", "ParameterDict")


_ASKED = ("parameters", "values", "items", "named_parameters")  # methods that give what an object holds


@dataclass(frozen=True)
class Held:
    """An argument of ``apply`` that is no tensor, and in which there are leaves that require grad.

    Attributes
    ----------
    function
        The Function.
    position
        Of the argument.
    sites
        The calls that apply the Function, all in the same form.
    paths, shapes
        The leaves, and their shapes.
    kind
        What the leaves are in: a list or the like, a dict, or a module.
    """

    function: FunctionText
    position: int
    sites: tuple[CallText, ...]
    paths: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kind: Literal["list", "dict", "module"]

    @property
    def given(self) -> str:
        """The argument, as the first of the calls writes it."""
        return ast.unparse(self.sites[0].call.args[self.position])

    @property
    def place(self) -> Place:
        return place_of(self.sites[0].run, self.sites[0].call.lineno)

    @property
    def text(self) -> str:
        """Why nothing trains there, as sentences."""
        count, one = len(self.paths), self.sites[0].call
        many = f"{count} tensors that require grad" if count > 1 else "a tensor that requires grad"
        return (
            f"{short(ast.unparse(one))} ({where(self.place)}) gives it `{self.given}`: {many} "
            f"({names(self.paths)}). Autograd sees the tensors that are arguments of `apply` themselves, and does not "
            "look into a list, a dict or a module. With None for a gradient there, it would run, and "
            f"{'none of them' if count > 1 else 'it'} would {'' if count > 1 else 'not '}train."
        )

    # ------------------------------------------------------------------ what to change

    def fixes(self, gradient: ast.expr | None, unpacked: bool) -> Iterator[Fix]:
        """Pass the tensors.

        Parameters
        ----------
        gradient
            What the only `return` of the backward gives for the argument; None: that is not known.
        unpacked
            The backward returns one gradient for each tensor already: as many as there should be.
        """
        if self.kind == "list" and len(set(self.shapes)) == 1 and self._is_one(gradient):
            text = f"Pass them as one tensor: `{_stack(self.given)}`. Its gradient is one tensor, too."
            yield self._fix(text, self._stacked())
        edits = self._unpacked(gradient, unpacked)
        spread = self._spread(self.sites[0].call.args[self.position], gradient)
        name = (self.function.inputs or ("",))[-1] if self._replaces else "tensors"
        yield self._fix(
            f"Pass each of them as an argument of its own: {short(f'apply(..., {spread})')}. `forward` then takes "
            f"`*{name}`, and `backward` returns a gradient for each, in their order.",
            edits,
        )

    def _fix(self, text: str, edits: Edits) -> Fix:
        return Fix("pass_parameters", text, False, at(self.place), edits=edits)

    def _stacked(self) -> Edits:
        found: Edits = ()
        for site in self.sites:
            one = site.call.args[self.position]
            found += text_edit.replace_node(site.run.cell, site.run.source, one, _stack(ast.unparse(one)))
        return found

    @property
    def _replaces(self) -> bool:
        """Whether the tensors can take the place of the argument: it is the last one, and only gone through."""
        return self.kind == "list" and self.position == len(self.function.inputs or ()) - 1

    def _unpacked(self, gradient: ast.expr | None, unpacked: bool) -> Edits:
        """Edits of each call, of the arguments of `forward`, and of what `backward` returns."""
        forward, run = self.function.method("forward"), self.function.run
        if forward is None or self.function.method("setup_context") or forward.args.defaults or forward.args.kwonlyargs:
            return ()
        cell, text, last = run.cell, run.source, forward.args.args[-1]
        if unpacked and not self._replaces:
            return ()
        if self._replaces:
            found = _starred(cell, text, last)
        else:
            found = text_edit.insert_behind(cell, text, last, ", *tensors")
        for site in self.sites:
            one, ending = site.call.args[self.position], site.call.args[-1]
            if self._replaces:
                found += _starred(site.run.cell, site.run.source, one)
            else:
                new = f", {self._spread(one, gradient)}"
                found += text_edit.insert_behind(site.run.cell, site.run.source, ending, new)
        if unpacked:
            return found
        behind = self._returned_with(gradient)
        return (*found, *behind) if behind else ()

    def _returned_with(self, gradient: ast.expr | None) -> Edits:
        """The gradients of the tensors behind those of the other arguments."""
        run, returned = self.function.run, self.function.returns
        value = returned[0].value if len(returned) == 1 else None
        by_key = self.kind == "dict" or isinstance(self._made_as(gradient), (ast.Dict, ast.DictComp))
        if gradient is None or value is None or by_key:
            return ()  # the gradients of a dict may stand in another order
        if self._replaces and gradient is not value:
            return _starred(run.cell, run.source, gradient)
        new = _spread(gradient)
        if not isinstance(value, ast.Tuple):
            return text_edit.replace_node(run.cell, run.source, value, f"(None, {new})")
        if gradient is value.elts[-1]:
            return text_edit.replace_node(run.cell, run.source, gradient, f"None, {new}")
        edits = text_edit.replace_node(run.cell, run.source, gradient, "None")
        return edits + text_edit.insert_behind(run.cell, run.source, value.elts[-1], f", {new}")

    def _spread(self, given: ast.expr, gradient: ast.expr | None) -> str:
        """The tensors of an argument as the arguments of a call."""
        written = ast.unparse(given)
        if self.kind == "list" or written.endswith(("parameters()", "values()")):
            return _spread(given)
        by_key = self.kind == "dict" or isinstance(self._made_as(gradient), (ast.Dict, ast.DictComp))
        return f"*{written}.{'values' if by_key else 'parameters'}()"

    def _made_as(self, gradient: ast.expr | None) -> ast.expr | None:
        """The expression that makes what the backward returns; None: that is not known."""
        backward, value = self.function.backward, gradient
        for _ in range(MOST_STEPS):
            if not isinstance(value, ast.Name) or backward is None:
                return value
            made = [one for one in syntax.own_statements(backward.body) if value.id in syntax.targets(one)]
            if len(made) != 1 or not isinstance(made[0], ast.Assign):
                return None
            value, element = syntax.given_to(made[0], value.id)
            if element is not None:
                return None
        return None

    def _is_one(self, gradient: ast.expr | None) -> bool:
        """Whether the backward makes one tensor of the gradients of all."""
        value = self._made_as(gradient)
        called = syntax.last_name(ast.unparse(value.func)) if isinstance(value, ast.Call) else ""
        return isinstance(value, (ast.Call, ast.BinOp)) and called not in (*_MAKING, "grad")


def _starred(cell: int | None, text: str, node: ast.AST) -> Edits:
    """What a node holds, in place of the node: ``*ws`` for `ws` and ``list(ws)``, ``a, b`` for ``[a, b]``."""
    inside = _spread(node) if isinstance(node, ast.expr) else ""
    if inside and not inside.startswith(f"*{ast.unparse(node)}"):
        return text_edit.replace_node(cell, text, node, inside)
    start = text_edit.span(text, node)[0]
    return (TextEdit(start, start, "*", cell),)


def _spread(node: ast.expr) -> str:
    """What an expression holds, as the arguments of a call."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return ", ".join(map(ast.unparse, node.elts))
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple") and len(node.args) == 1:
        return f"*{syntax.in_brackets(node.args[0])}"
    return f"*{syntax.in_brackets(node)}"


def _stack(given: str) -> str:
    ready = given.startswith(("[", "(", "list(", "tuple("))
    return f"torch.stack({given if ready else f'list({given})'})"


# ------------------------------------------------------------------ what an argument holds


def held_by(
    record: Record, call: BackwardCall, function: FunctionText | None, applied: Place | None, position: int
) -> Held | None:
    """What is in an argument that a Function was given; None: nothing that requires grad, or it is not known.

    Parameters
    ----------
    applied
        The line that applied the Function, in the call that failed.
    """
    inputs = function.inputs if function is not None else None
    trainable = record.scenes.get(call.n, Scene()).trainable
    if function is None or inputs is None or not 0 <= position < len(inputs) or not trainable:
        return None
    sites = [
        one
        for one in calls(record, "apply")
        if isinstance(one.call.func, ast.Attribute)
        and syntax.last_name(ast.unparse(one.call.func.value)) == function.name
    ]
    plain = [
        one
        for one in sites
        if len(one.call.args) == len(inputs)
        and not one.call.keywords
        and not any(isinstance(given, ast.Starred) for given in one.call.args)
    ]
    if not sites or len(plain) != len(sites):
        return None
    here = next((one for one in sites if _is_at(one, applied)), sites[0])
    within = _module(call, function.name)
    for named, whole in _named(record, here, applied, here.call.args[position]):
        paths = _in(trainable, named, whole, within)
        if paths:
            shapes = tuple(trainable[path] for path in paths)
            return Held(function, position, tuple(sites), paths, shapes, _kind(paths, here.call.args[position]))
    return None


def _is_at(site: CallText, place: Place | None) -> bool:
    first, last = site.call.lineno, site.call.end_lineno or site.call.lineno
    return place is not None and site.run.cell == place.cell and first <= (place.line or 0) <= last


def _module(call: BackwardCall, name: str) -> str:
    """The module whose `forward` applied the Function; empty: none, or not known."""
    graph = call.graph
    found = {
        module.path
        for index in range(len(graph) if graph is not None else 0)
        if graph is not None and graph.name_of(index) == f"{name}Backward"
        for module in [graph.module_of(index)]
        if module is not None
    }
    return found.pop() if len(found) == 1 else ""


def _named(record: Record, site: CallText, applied: Place | None, given: ast.expr) -> Iterator[tuple[list[str], bool]]:
    """The names by which an argument, and what was given for it, lead to tensors; and whether these hold them."""
    cells, frames = Cells.of(record), [*applied.stack, applied] if applied is not None else []
    value: ast.expr | None = given
    text, line = site.run.source, site.call.lineno
    for _ in range(MOST_STEPS):
        if value is None:
            return
        parts = [*_elements(value)]
        yield [name for one in parts for name in [_last(one)] if name], value is parts[0] if parts else True
        if not isinstance(value, ast.Name):
            return
        inside, name = syntax.function_at(text, line), value.id
        made = [one for one in syntax.bindings(text, name, line) if inside is None or one.lineno > inside[1].lineno]
        if made:
            last = made[-1]
            value = syntax.given_to(last, name)[0] if isinstance(last, ast.Assign) else None
            line = last.lineno
        elif inside is not None and frames and len(frames) > 1:
            frames.pop()
            written = argument_of(cells, frames[-1], inside, name)
            value = syntax.expression_of(written) if written else None
            text, line = cells.text(frames[-1].cell), frames[-1].line or 0
        else:
            return


def _elements(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression puts together: the elements of ``[a, *b]`` and of ``list(c)``; else the expression itself."""
    if isinstance(value, (ast.List, ast.Tuple)):
        yield from (part for one in value.elts for part in _elements(one))
    elif isinstance(value, ast.Dict):
        yield from (part for one in value.values for part in _elements(one))
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ASKED:
        whole = value.func.value  # ``{"slow": a}.values()``
        yield from _elements(whole) if isinstance(whole, ast.Dict) else [value]
    elif isinstance(value, ast.Starred):
        yield from _elements(value.value)
    elif isinstance(value, ast.Call) and syntax.last_name(ast.unparse(value.func)) in _MAKING and value.args:
        yield from _elements(value.args[0])
    else:
        yield value


def _last(value: ast.expr) -> str:
    """The last name of a path, with a known key, also before ``.parameters()``: `coeffs` of ``self.coeffs``."""
    if isinstance(value, ast.Subscript):
        name = _last(value.value)
        return f"{name}[{ast.unparse(value.slice)}]" if name and isinstance(value.slice, ast.Constant) else name
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        known = value.func.attr in _ASKED
        value = value.func.value if known and not value.args else value
    return value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""


def _in(trainable: Mapping[str, tuple[int, ...]], named: list[str], whole: bool, within: str) -> tuple[str, ...]:
    """The leaves that lie in something of one of these names, in the module first; of several the first."""
    groups: dict[str, list[str]] = {}
    for path in trainable:
        for name in named:
            prefix = within if name == "self" else None
            ending = r"(?=[.\[])" if whole else r"(?![\w])"
            found = re.search(rf"(?:^|[.:]){_pattern(name)}{ending}", path)
            if prefix and path.startswith((f"{prefix}.", f"{prefix}[")):
                groups.setdefault(prefix, []).append(path)
            elif found is not None and name != "self":
                groups.setdefault(path[: found.end()] if whole else path[: found.start()], []).append(path)
    if not groups:
        return ()
    best = min(groups, key=lambda one: not (within and one.startswith(within)))
    return tuple(groups[best])


def _pattern(name: str) -> str:
    """An expression that finds a name; what a ParameterDict has by a key is an attribute of it, too."""
    return re.sub(r"\\\['(\w+)'\\\]", r"(?:\\['\1'\\]|\.\1)", re.escape(name))


def _kind(paths: tuple[str, ...], given: ast.expr) -> Literal["list", "dict", "module"]:
    if isinstance(given, (ast.List, ast.Tuple)) or (
        isinstance(given, ast.Call) and not isinstance(given.func, ast.Attribute)
    ):
        return "list"
    if isinstance(given, ast.Dict) or all(path.endswith("']") for path in paths):
        return "dict"
    ended = ast.unparse(given).endswith(("parameters()", "values()"))
    return "list" if ended or all(re.search(r"\[\d+\]$", path) for path in paths) else "module"
