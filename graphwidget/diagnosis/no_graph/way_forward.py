"""Where a value computed from a parameter leaves the graph, followed forwards from the lines that use the parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from graphwidget.diagnosis.no_graph.cutting import cuts_in, is_gradient_without_graph, is_scored, outside_of_cuts
from graphwidget.diagnosis.no_graph.measured import CHECKPOINT, cut_at, place_at
from graphwidget.diagnosis.no_graph.origins import Cut
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.dataflow.called import (
    called_on_objects,
    classes_of,
    functions_of,
    methods_of,
    objects_of,
)
from graphwidget.diagnosis.source.dataflow.elements import element_names, is_element
from graphwidget.diagnosis.source.paths import local, steps
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at
from graphwidget.model import INTO_A_LEAF, INTO_A_TENSOR, BackwardCall, CellRun, MeasuredCut, Record

__all__ = ["COMPARING", "CONVERTING", "MOST_STEPS", "Use", "cuts_behind", "follow", "tensors_made_of", "why_cut"]

MOST_STEPS = 200  # functions visited for one parameter
MOST_LINES = 8192  # lines of which is known what they read

_OF_INDICES = ("argmax", "argmin", "argsort", "indices", "long", "int", "bool", "multinomial", "sample")


# Conversions of numbers to a type. They cut the graph only where that type is of whole numbers.
CONVERTING = ("to", "type", "type_as", "int", "long", "short", "char", "byte")
COMPARING = ("gt", "ge", "lt", "le", "eq", "ne")

_WHY = {
    "Parameter": "`nn.Parameter` makes a new leaf, to which no graph leads",
    INTO_A_LEAF: "it writes only the values into a leaf, to which no graph leads",
    INTO_A_TENSOR: "it writes only the values, and no graph records the write",
    "detach": "`detach` cuts the graph there",
    "detach_": "`detach_` cuts the graph there",
    "data": "`.data` cuts the graph there",
    "item": "`item` makes a Python number",
    "tolist": "`tolist` makes Python numbers",
    "numpy": "`numpy` makes an array",
    "tensor": "`torch.tensor` copies the values into a new tensor, without a graph",
    "indices": "indices have no derivative",
    CHECKPOINT: "a re-entrant checkpoint records nothing where no tensor that it is given requires grad",
}


def why_cut(by: str) -> str:
    """Why an operation leaves the graph, as the end of a sentence."""
    if by in CONVERTING:
        return "whole numbers have no derivative"
    if by in COMPARING:
        return "a comparison has no derivative"
    return _WHY.get(by, f"`{by}` has no derivative")


class Use(NamedTuple):
    """The body of a function, or a cell, and its names for values computed from the parameter.

    `element`: of a call among the names only that element of the tuple is one; None: the whole.
    `far`: it is outside of the class, where the text does not show which branch inside made the value.
    `given`: the names are arguments. Then what the function returns is computed from them for the call that gave them,
    of which that is known, and for no other.
    """

    run: CellRun
    within: ast.ClassDef | None
    function: ast.FunctionDef | None
    names: frozenset[str]
    element: int | None = None
    far: bool = False
    given: bool = False


def cuts_behind(
    record: Record, path: str, position: tuple[int, int] | None = None, call: BackwardCall | None = None
) -> list[Cut]:
    """Return the cuts between a parameter and all uses of its values; plain ones first.

    Where it has been measured which lines cut off values computed from it, those, the last one first; and of these, if
    there are any, only those whose values went into the root of a call, or chose what did; none if it was measured
    that none did.

    Parameters
    ----------
    position
        Which parameter it is, as in `MeasuredCut.positions`; None: known by its path only.
    call
        Leave out what was measured to go to the roots of other lines' calls only.
    """
    written = _in_text(record, path)
    if written is None or record.lineage is None:
        return written or []
    in_text = {_key(one): one for one in written}
    own = [one for one in reversed(record.lineage.cuts) if path in one.leaves or position in one.positions]
    of_copies = [one for one in reversed(record.lineage.cuts) if path in one.copies]
    if call is not None:
        own, of_copies = ([one for one in cuts if _goes_to(record, one, call)] for cuts in (own, of_copies))
    for reached in (True, False):
        for lost in (own, of_copies):
            meant = [one for one in lost if (one.used or one.chosen if reached else one.used is None)]
            measured = [cut for one in meant if (cut := cut_at(record, one)) is not None]
            found = [one for one in measured if reached or one.around is not None or not _only_shown(one.statement)]
            # A mask is seldom what was meant to pass a gradient on. What the text shows, too, comes first.
            found.sort(key=lambda cut: (cut.by in COMPARING, _key(cut) not in in_text))
            if found:
                return [in_text.get(_key(one), one)._replace(kept=one.kept) for one in found]
    return [] if own or of_copies else written


def _goes_to(record: Record, cut: MeasuredCut, call: BackwardCall) -> bool:
    """Whether what a cut returned may have gone to the root of a line's calls."""
    lines = [at(place_at(record, (line,))) for line in cut.used_at]
    return not lines or at(call.place) in lines


def _key(cut: Cut) -> tuple[int, int]:
    return cut.run.run, cut.statement.lineno


def _in_text(record: Record, path: str) -> list[Cut] | None:
    """Return the cuts between a parameter and all uses of its values; plain ones first.

    The parameter is followed from the class or cell that makes it, through names, lists, methods of that class, calls
    of its objects, and functions that the values are given to. None: a loop writes to it instead of an optimizer.
    """
    found: dict[tuple[int, int], Cut] = {}
    for cut in _cuts_from(list(_first_uses(record, path)), Cells.of(record).latest):
        if cut is None:
            return None
        if _reads_other_parts(cut.statement, local(path)):
            continue
        found.setdefault((cut.run.run, cut.statement.lineno), cut)
    return sorted(found.values(), key=lambda cut: (cut.by in _OF_INDICES, cut.statement.lineno))


def _reads_other_parts(statement: ast.stmt, path: str) -> bool:
    """Whether a statement reads only other parts of a parameter's object: ``v.f[0].weight`` for ``v.f[4].bias``."""
    own = steps(path)
    inside = {id(node.value) for node in ast.walk(statement) if isinstance(node, (ast.Attribute, ast.Subscript))}
    chains = [
        steps(ast.unparse(node))
        for node in ast.walk(statement)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and id(node) not in inside
    ]
    read = [chain for chain in chains if chain[:1] == own[:1]]
    return bool(read) and all(any(a != b for a, b in zip(chain, own)) for chain in read)


def _cuts_from(queue: list[Use], latest: list[CellRun]) -> Iterator[Cut | None]:
    """The cuts behind some uses, and behind what they lead to. None: a loop writes to what one of them uses.

    A function is followed again only for names that it was not followed for before: not for each way that leads there.
    """
    seen: dict[tuple[int, int, int | None, bool, bool], list[frozenset[str]]] = {}
    steps = 0
    while queue and steps < MOST_STEPS:
        use = queue.pop(0)
        line = use.function.lineno if use.function is not None else 0
        before = seen.setdefault((use.run.run, line, use.element, use.far, use.given), [])
        if any(use.names <= names for names in before):
            continue
        before.append(use.names)
        steps += 1
        if _is_updated(use):
            yield None
        for one in follow(use, latest):
            if isinstance(one, Cut):
                yield one
            else:
                queue.append(one)


def tensors_made_of(record: Record, run: CellRun, statement: ast.stmt) -> list[tuple[CellRun, ast.stmt]]:
    """The statements that make a tensor of what a statement computes, as far as the names in the text lead there."""
    latest = Cells.of(record).latest
    found = source.function_at(run.source, statement.lineno)
    within, function = found if found is not None else (None, None)
    names = _assigned(statement) | source.grown(statement)
    use = Use(run, within, function, frozenset(names))
    queue = [use] if names else []
    if isinstance(statement, ast.Return):
        queue += _callers(latest, use, statement.value, {ast.unparse(node) for node in ast.walk(statement)})
    cuts = (one for one in _cuts_from(queue, latest) if one is not None and one.by == "tensor")
    return list({(one.run.run, one.statement.lineno): (one.run, one.statement) for one in cuts}.values())


def _first_uses(record: Record, path: str) -> Iterator[Use]:
    """The code that reads a parameter under a name of its own: methods of the class that makes it, else the cells."""
    first, *parts = re.findall(r"[A-Za-z_]\w*", path)
    latest = Cells.of(record).latest
    for place, part in reversed(list(enumerate(parts))):
        made = [(run, cls) for run in latest for cls in classes_of(run.source) if _makes(cls, f"self.{part}")]
        if len(made) > 1:  # several classes have a part of that name: the one of the object that the path leads through
            owner = parts[place - 1] if place else first
            own = [(run, cls) for run, cls in made if _is_object(latest, cls.name, owner)]
            made = own or made
        if len(made) == 1:
            run, cls = made[0]
            yield from (Use(run, cls, method, frozenset({f"self.{part}"})) for method in methods_of(cls))
            return
        if made:
            return
    for run in latest:
        yield Use(run, None, None, frozenset({first}))
        yield from (Use(run, None, function, frozenset({first})) for function in functions_of(run.source))


def _makes(cls: ast.ClassDef, target: str) -> bool:
    statements = (node for node in ast.walk(cls) if isinstance(node, ast.stmt))
    return any(target in source.targets(one) for one in statements if isinstance(one, (ast.Assign, ast.AnnAssign)))


def follow(use: Use, latest: list[CellRun]) -> Iterator[Cut | Use]:
    """The statements that cut off values from some names, and where such values are handed on uncut."""
    tree = source.parse(use.run.source)
    body = use.function.body if use.function is not None else tree.body if tree is not None else []
    names = set(use.names)
    statements = [one for one in source.own_statements(body) if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
    for one in sorted(statements, key=lambda one: (one.lineno, one.col_offset)):
        value = _evaluated(one)
        if value is None:
            continue
        parts = [part for _, inner in cuts_in(value) for part in inner]
        inside = names | _bound_inside(value, names) if parts else names
        cuts = [by for by, inner in cuts_in(value) if any(_reads(part, inside) for part in inner)]
        flows = _flows(value, names)
        switch = grad_modes.around(use.run.source, one) if (flows or cuts) else None
        if switch is not None:
            if switch.off and flows and not _is_update(one):
                yield _cut(use, one, switch.text, switch.outer)
            continue
        cuts = [by for by in cuts if by != "sample" or not is_scored(_assigned(one), body)]
        # What goes on uncut in the same line would bring a gradient: then something else keeps it away.
        if cuts and not _only_shown(one) and not (use.far and flows):
            yield _cut(use, one, cuts[0])
        given = _assigned(one)
        if flows:
            part = _element(one, use)
            if part is None:
                continue
            names |= part or given
            if isinstance(one, ast.Expr):
                names |= source.grown(one)
            if isinstance(one, ast.Return) and one in body and not use.given:  # under an `if` it may never have run
                yield from _callers(latest, use, one.value, names)
            yield from _given(latest, use, value, names)
        elif isinstance(one, ast.Assign) and not parts:
            names -= {name for name in given if name not in use.names}


def _assigned(statement: ast.stmt) -> set[str]:
    """The names that a statement gives a value."""
    is_one = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign))
    return set(source.targets(statement)) if is_one else set()


def _cut(use: Use, statement: ast.stmt, by: str, around: ast.stmt | None = None) -> Cut:
    return Cut(use.run, statement, by, around, False, True, frozenset())


def _element(statement: ast.stmt, use: Use) -> set[str] | None:
    """Which name gets the element that counts: ``feat`` in ``logits, feat = net(x)``; empty: all; None: unknown."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if use.element is None or value is None or _called(value) not in use.names:
        return set()
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, (ast.Tuple, ast.List)) or use.element >= len(target.elts):
        return None
    return {ast.unparse(target.elts[use.element])}


def _callers(latest: list[CellRun], use: Use, value: ast.expr | None, names: set[str]) -> Iterator[Use]:
    """The code that calls a function which returns a value: methods of its class, and what calls an object of it."""
    if use.function is None or value is None:
        return
    element: int | None = None
    if isinstance(value, ast.Tuple):
        parts = [at for at, one in enumerate(value.elts) if _flows(one, names)]
        if len(parts) != 1:
            return
        element = parts[0]
    if use.within is None:
        called = frozenset({f"{use.function.name}()"})
    else:
        own = frozenset({f"self.{use.function.name}()"})
        yield from (Use(use.run, use.within, other, own, element) for other in methods_of(use.within))
        end = "()" if use.function.name in ("forward", "__call__") else f".{use.function.name}()"
        called = frozenset(f"{name}{end}" for run in latest for name in objects_of(run.source, use.within.name))
    for run in latest if called else ():
        yield Use(run, None, None, called, element, far=True)
        yield from (Use(run, None, one, called, element, far=True) for one in functions_of(run.source))
        for cls in classes_of(run.source):
            if cls is not use.within:
                yield from (Use(run, cls, one, called, element, far=True) for one in methods_of(cls))


def _is_object(latest: list[CellRun], cls: str, name: str) -> bool:
    """Whether a variable or an attribute of that name is an object of a class."""
    return any(source.last_name(one) == name for run in latest for one in objects_of(run.source, cls))


def _given(latest: list[CellRun], use: Use, value: ast.AST, names: set[str]) -> Iterator[Use]:
    """The functions and methods of the cells that such a value is given to, under the name of their argument."""
    for node in outside_of_cuts(value):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            continue
        for run, within, function in _meant(latest, use, node.func):
            places = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
            static = any(ast.unparse(one) == "staticmethod" for one in function.decorator_list)
            given = places if within is None or static else places[1:]
            taken = {name for name, one in zip(given, node.args) if _flows(one, names)}
            taken |= {one.arg for one in node.keywords if one.arg and _flows(one.value, names)}
            if taken:
                yield Use(
                    run, within, function, frozenset(taken), far=within is None or within is not use.within, given=True
                )


def _meant(
    latest: list[CellRun], use: Use, called: ast.Name | ast.Attribute
) -> Iterator[tuple[CellRun, ast.ClassDef | None, ast.FunctionDef]]:
    """What a call runs: a function, a method of the class itself, or one of an object of another class."""
    text = ast.unparse(called)
    if isinstance(called, ast.Name):
        found = [(run, None, one) for run in latest for one in functions_of(run.source) if one.name == text]
        yield from found[-1:]
    if use.within is not None and text.startswith("self."):
        yield from ((use.run, use.within, one) for one in methods_of(use.within) if f"self.{one.name}" == text)
    for number, cls, one in called_on_objects(tuple(run.source for run in latest)).get(text, ()):
        yield latest[number], cls, one


def _evaluated(statement: ast.stmt) -> ast.AST | None:
    """The expression that a statement computes; for a block, that of its head."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if hasattr(statement, "body") or isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global)):
        return None
    return source.given(statement)


def _reads(node: ast.AST, names: set[str]) -> bool:
    return not names.isdisjoint(_words(node))


def _flows(value: ast.AST, names: set[str]) -> bool:
    """Whether the graph of a value leads back to one of some names."""
    return not names.isdisjoint(_words_outside_of_cuts(value))


def _bound_inside(value: ast.AST, names: set[str]) -> set[str]:
    """The names that an expression gives to elements of what some names lead to: ``p`` in ``[f(p) for p in params]``.

    And the arguments of a function that it maps: ``map(lambda p: f(p), params)``.
    """
    found = set[str]()
    for words, over, _ in element_names(value):
        if _flows(over, names | found):
            found |= words
    return found


# A function is followed once for each parameter and each set of names, and each line of it is asked about anew.
@lru_cache(maxsize=MOST_LINES)
def _words(node: ast.AST) -> frozenset[str]:
    return frozenset(word for one in ast.walk(node) for word in (_spelled(one), _called(one)) if word)


@lru_cache(maxsize=MOST_LINES)
def _words_outside_of_cuts(node: ast.AST) -> frozenset[str]:
    return frozenset(word for one in _outside_of_cuts(node) for word in (_spelled(one), _called(one)) if word)


def _outside_of_cuts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes through which an expression may have a graph; a gradient has none unless it is asked for.

    What an expression goes over has one only as far as it uses the elements uncut.
    """
    without = [inner for one in ast.walk(node) if is_gradient_without_graph(one) for inner in ast.walk(one)]
    for words, over, uses in element_names(node):
        if all(words.isdisjoint(map(_spelled, outside_of_cuts(one))) for one in uses):
            without += ast.walk(over)
    yield from (one for one in outside_of_cuts(node) if not any(one is inner for inner in without))


def _spelled(node: ast.AST) -> str:
    plain = isinstance(node, (ast.Name, ast.Attribute)) or is_element(node)
    return ast.unparse(node) if plain and isinstance(getattr(node, "ctx", None), ast.Load) else ""


def _called(node: ast.AST) -> str:
    """``self.rotation()`` for a call of the method, with any arguments."""
    return f"{ast.unparse(node.func)}()" if isinstance(node, ast.Call) else ""


def _is_update(statement: ast.stmt) -> bool:
    """Whether a statement without grad mode only changes something in place or shows it: it computes no other value."""
    return isinstance(statement, (ast.AugAssign, ast.Expr))


def _is_updated(use: Use) -> bool:
    """Whether a loop writes to what the names lead to, instead of an optimizer: an average of other weights."""
    body = use.function.body if use.function is not None else []
    loops = [one for one in source.own_statements(body) if isinstance(one, ast.For)]
    return any(_only_updates(one) and _flows(one.iter, set(use.names)) for one in loops)


def _only_updates(loop: ast.For) -> bool:
    """Whether a loop only writes to what it runs over: ``k.data = k.data * m + ...``."""
    passing = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return all(_writes_data(one, passing) or _writes_in_place(one, passing) for one in loop.body)


def _writes_data(statement: ast.stmt, names: set[str]) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return bool(targets) and all(
        isinstance(one, ast.Attribute) and one.attr == "data" and ast.unparse(one.value) in names for one in targets
    )


def _writes_in_place(statement: ast.stmt, names: set[str]) -> bool:
    """``k.mul_(m)``, ``k.data.copy_(q)``, ``k += q``: the statement writes to one of some names."""
    if isinstance(statement, ast.AugAssign):
        return ast.unparse(statement.target).removesuffix(".data") in names
    call: ast.expr | None = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        if ast.unparse(call.func.value).removesuffix(".data") in names:
            return True
        call = call.func.value
    return False


def _only_shown(statement: ast.stmt) -> bool:
    """``print(loss.item())``, ``losses.append(w.item())``: the value is shown or stored, and not used for a loss."""
    return isinstance(statement, ast.Expr)
