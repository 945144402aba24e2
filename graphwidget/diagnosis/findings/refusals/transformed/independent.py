"""What ``torch.autograd.functional`` refuses in strict mode: a function whose results do not depend on its inputs.

The function is followed by the text: a name, an argument of a helper, an attribute, a method, a lambda. What the call
passes to it requires grad, whatever the tensors are elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.cutting import NOT_DIFFERENTIABLE
from graphwidget.diagnosis.no_graph.origins import Cut, Origins
from graphwidget.diagnosis.no_graph.restoring import cause_of
from graphwidget.diagnosis.no_graph.values import Spot, Values
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import Finding, Fix

__all__ = ["of_strict_mode"]

_CALLS = ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp")
_PASSED = ast.parse("torch.ones(1, requires_grad=True)", mode="eval").body
_MOST_STEPS = 60
_Function = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class _Differentiated(Values):
    """The values of a program in which a call passes tensors that require grad to some functions."""

    functions: frozenset[tuple[int, int]] = frozenset()  # lines and columns
    number: int | None = None  # of the one input that counts; None: all do

    def _arguments(
        self, function: tuple[ast.ClassDef | None, ast.FunctionDef], name: str, names: list[str]
    ) -> Iterator[tuple[Spot, ast.AST]]:
        made = function[1]
        if (made.lineno, made.col_offset) in self.functions and name != "self":
            position = names.index(name) - (names[:1] == ["self"]) if name in names else None
            counts = self.number is None or self.number == position
            yield Spot(-1, made.lineno), _PASSED if counts else ast.Constant(0)
        else:
            yield from super()._arguments(function, name, names)


def of_strict_mode(failure: Failure) -> Finding | None:
    """``jacobian(f, x, strict=True)`` of an `f` that leaves the graph, or does not use `x`."""
    call = _call(failure)
    given = _given(call)
    if call is None or given is None:
        return None
    values, spot = _values(failure)
    found = list(_functions(values, given, spot))
    named = {_name_of(function, given) for _, function in found}
    name = f"`{named.pop()}`" if len(named) == 1 else "the function"
    asking = f"{short(failure.text)} ({where(failure.place)})"
    message = failure.run.error or ""
    second = re.search(r"jacobian|hessian|gradient with respect", message) is not None
    told = re.search(r"independent of input (\d+)|respect to input (\d+)", message)
    number = int(next(filter(None, told.groups()))) if told is not None else None
    cut = None if second else _only_cut(values, found, number)
    if cut is not None:
        return _cut_off(failure, cut, name, asking)
    if not second and number is not None and _never_reads(found, number):
        return None  # it is right as it is: the check's own sentences tell how to ask
    what = _input(found, number) if number is not None else "its inputs"
    first = next((place_of(values.runs[where_.at], function.lineno) for where_, function in found), None)
    there = f" ({where(first)})" if first is not None else ""
    if second:
        text = (
            f"{asking} asks for a derivative of a derivative in strict mode. That of {name}{there} does not depend on "
            f"{what}, as for a function that is linear in it, or one that leaves the graph."
        )
        advice = (
            "Where it is linear, the second derivative is zero, and needs no call. Else let the function compute with "
            "operations that have a second derivative."
        )
    else:
        text = (
            f"{asking} asks in strict mode, which refuses what does not depend on an input. {name[0].upper()}{name[1:]}"
            f"{there} returns something that does not depend on {what}, as far as autograd sees."
        )
        advice = (
            f"Let {name} compute what it returns from {what} with operations of PyTorch, and leave the graph nowhere: "
            "no `torch.tensor` of computed values, no `.item()`, no `.detach()`. What it does not depend on, do not "
            "ask for."
        )
    headline = f"What {name} returns does not depend on {what}."
    return failure.finding(headline, text, Fix("use_input", advice, False, at(first) or at(failure.place)), cause=first)


def _cut_off(failure: Failure, cut: Cut, name: str, asking: str) -> Finding:
    cause: Cause = cause_of(failure.record, cut)
    sentence = cause.fix.text.replace("Compute the loss without", "Compute it without")
    function = syntax.function_at(cut.run.source, cut.statement.lineno)
    inside = f"`{function[1].name}`" if function is not None else name
    text = (
        f"{asking} takes the derivative of {name}. {cause.text.replace(', if what it reads had one', '')} So what "
        f"{inside} computes there does not depend on its inputs, as far as autograd sees, and strict mode refuses that."
    )
    fix = replace(cause.fix, text=sentence, verified=False)
    return failure.finding(f"What {name} returns has no graph.", text, fix, cause=cause.place or failure.place)


def _call(failure: Failure) -> ast.Call | None:
    """The call that was refused: the only one of its kind in the line."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    found = [n for n in nodes if isinstance(n, ast.Call) and syntax.last_name(ast.unparse(n.func)) in _CALLS]
    return found[0] if len(found) == 1 else None


def _given(call: ast.Call | None) -> ast.expr | None:
    """The function that a call is given."""
    if call is None:
        return None
    named = [one.value for one in call.keywords if one.arg == "func"]
    return next(iter((*named, *call.args)), None)


def _values(failure: Failure) -> tuple[Values, Spot]:
    """The values of the program at the line, and that line."""
    record, place = failure.record, failure.place
    runs = [run for number, run in sorted(record.runs.items()) if number <= failure.run.run]
    here = (i for i, run in enumerate(runs) if (run.cell, run.file) == (place.cell, place.file))
    values = Values(runs, dict(failure.run.modules), failure.run.scene)
    return values, Spot(max(here, default=len(runs) - 1), place.line or 1)


# ------------------------------------------------------------------ the function


def _functions(values: Values, given: ast.expr, spot: Spot) -> Iterator[tuple[Spot, _Function]]:
    """What an expression may stand for, followed through names, arguments, attributes and ``partial``."""
    queue: list[tuple[Spot, ast.AST]] = [(spot, given)]
    seen: set[int] = set()
    for there, node in queue:
        if id(node) in seen or len(seen) > _MOST_STEPS:
            continue
        seen.add(id(node))
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield there, node
        elif isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
            yield from ((there, one) for one in methods if one.name in ("forward", "__call__"))
        elif isinstance(node, ast.stmt):
            queue.append((there, syntax.given(node)))
        elif isinstance(node, (ast.Name, ast.Attribute)):
            text = ast.unparse(node)
            made = [(w, one) for w, one in values.made(text, there) if _binds(one, text)]
            queue += made
            if not made and isinstance(node, ast.Attribute):
                yield from _methods(values, node.attr)
        elif isinstance(node, ast.Call):
            if syntax.last_name(ast.unparse(node.func)) == "partial" and node.args:
                queue.append((there, node.args[0]))
                continue
            for where_, one in values.made(ast.unparse(node.func), there):
                if isinstance(one, ast.ClassDef):
                    queue.append((where_, one))
                elif isinstance(one, ast.FunctionDef):  # it makes the function
                    inner = [each for each in one.body if isinstance(each, ast.FunctionDef)]
                    names = {ast.unparse(value) for value in values.returned(one)}
                    queue += [(Spot(where_.at, each.lineno), each) for each in inner if each.name in names]
                    lambdas = (value for value in values.returned(one) if isinstance(value, ast.Lambda))
                    queue += [(Spot(where_.at, each.lineno), each) for each in lambdas]


def _binds(node: ast.AST, name: str) -> bool:
    """Whether what may have made an attribute gives a value to that name itself."""
    return "." not in name or not isinstance(node, ast.stmt) or hasattr(node, "body") or name in syntax.targets(node)


def _methods(values: Values, name: str) -> list[tuple[Spot, _Function]]:
    """The one method of the program with a name."""
    found: list[tuple[Spot, _Function]] = []
    for index, run in enumerate(values.runs):
        classes = (node for node in syntax.nodes_of(run.source) if isinstance(node, ast.ClassDef))
        inside = (one for cls in classes for one in cls.body if isinstance(one, ast.FunctionDef))
        found += [(Spot(index, one.lineno), one) for one in inside if one.name == name]
    return found if len({one[1].lineno for one in found}) == 1 else []


def _input(found: list[tuple[Spot, _Function]], number: int) -> str:
    """An input by its name, where the function is known: ``its input `torque```."""
    known = {tuple(one.arg for one in function.args.args if one.arg != "self") for _, function in found}
    taken = known.pop() if len(known) == 1 else ()
    return f"its input `{taken[number]}`" if number < len(taken) else f"input {number}"


def _never_reads(found: list[tuple[Spot, _Function]], number: int) -> bool:
    """Whether the functions, which are known, never read an input."""
    for _, function in found:
        taken = [one.arg for one in function.args.args if one.arg != "self"]
        if number >= len(taken) or any(isinstance(n, ast.Name) and n.id == taken[number] for n in ast.walk(function)):
            return False
    return bool(found)


def _name_of(function: _Function, given: ast.expr) -> str:
    return function.name if isinstance(function, ast.FunctionDef) else ast.unparse(given)


# ------------------------------------------------------------------ where it leaves the graph


def _only_cut(values: Values, found: list[tuple[Spot, _Function]], number: int | None) -> Cut | None:
    """The line that leaves the graph in the functions; where these are not known, in the only one that does."""
    if found:
        return _cut(values, found, number)
    every: list[tuple[Spot, _Function]] = [
        (Spot(index, node.lineno), node)
        for index, run in enumerate(values.runs)
        for node in syntax.nodes_of(run.source)
        if isinstance(node, ast.FunctionDef)
    ]
    cuts = [cut for one in every if (cut := _cut(values, [one], number)) is not None]
    return cuts[0] if len({(cut.run.cell, cut.run.file, cut.statement.lineno) for cut in cuts}) == 1 else None


def _cut(values: Values, found: list[tuple[Spot, _Function]], number: int | None) -> Cut | None:
    """The first line behind what functions return that leaves the graph, in them or in what they call."""
    called = set[str]()
    queue: list[ast.AST] = [function for _, function in found]
    for node in queue:
        for name in {syntax.last_name(one) for one in syntax.calls_in(node)} - called:
            called.add(name)
            queue += [one for run in values.runs for one in syntax.functions_of(run.source, name)]
    bodies = [node for node in queue if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    passed = {(one.lineno, one.col_offset) for one in bodies if _is_passed_on(one, found)}
    told = _Differentiated(values.runs, values.modules, functions=frozenset(passed), number=number)
    origins = Origins(told)
    lines = {(one.lineno, one.end_lineno or one.lineno) for one in bodies}
    cuts: list[Cut] = []
    for there, function in found:
        results = told.returned(function) if isinstance(function, ast.FunctionDef) else [function.body]
        for result in results:
            spot = Spot(there.at, result.lineno)
            cuts += [
                cut
                for cut in origins.cuts(result, spot)
                if any(first <= cut.statement.lineno <= last for first, last in lines)
            ]
    if number is not None:  # another input may be cut off on purpose
        cuts = [cut for cut in cuts if cut.sure and not any(isinstance(one, ast.Lambda) for _, one in found)]
    cuts.sort(key=lambda cut: (cut.by in NOT_DIFFERENTIABLE or cut.by == "indices", not cut.sure))
    return cuts[0] if cuts else None


def _is_passed_on(one: ast.AST, found: list[tuple[Spot, _Function]]) -> bool:
    """Whether a function is given what requires grad by the call itself, or by a lambda that it is given."""
    functions = [function for _, function in found]
    calls = {
        syntax.last_name(ast.unparse(node.func))
        for function in functions
        if isinstance(function, ast.Lambda)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    return one in functions or (isinstance(one, ast.FunctionDef) and one.name in calls)
