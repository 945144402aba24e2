"""Lines that put a tensor into a container, and their forms that put it in without its graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.kept_by_functions import kept_by, with_defaults
from graphwidget.diagnosis.source.number_arguments import detached_where_tensor
from graphwidget.diagnosis.source.other_names import OtherName, other_names
from graphwidget.diagnosis.source.paths import Steps, steps
from graphwidget.diagnosis.source.whole_containers import Held, detached_whole
from graphwidget.model import TextEdit

__all__ = [
    "EMPTY",
    "begins_empty",
    "detached_in",
    "detached_value",
    "may_have_a_graph",
    "may_hold",
    "put_at",
    "put_in",
    "taken_in",
]

EMPTY = ("[]", "list()", "{}", "dict()")  # what a container begins with
_MAKES_NEW = re.compile(r"\b(new_)?(zeros|ones|full|empty|randn?|tensor)(_like)?$")
_KEEPING = ("append", "appendleft", "add", "insert")
_COMPREHENSIONS = (ast.DictComp, ast.ListComp, ast.GeneratorExp)
_KEEPING_ALL = ("extend", "extendleft")


def begins_empty(texts: Iterable[str], container: str) -> bool:
    """Whether all that is assigned to such a name is an empty list, dict or queue, or a dict of such.

    ``rewards = policy.rewards`` is no new one.
    """
    last = container.rsplit(".", 1)[-1]
    given = [pair for text in texts for pair in source.assigned_as(text, last)]
    values = [source.given_to(s, t)[0] if isinstance(s, ast.Assign) else getattr(s, "value", None) for s, t in given]
    values = [one for one in values if not (isinstance(one, ast.Attribute) and one.attr == last)]
    return bool(values) and all(value is not None and _is_empty(value) for value in values)


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict):
        return all(map(_is_empty, value.values))
    if isinstance(value, ast.DictComp):
        return _is_empty(value.value)
    if ast.unparse(value) in EMPTY:
        return True
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    if called.endswith("defaultdict") and isinstance(value, ast.Call):
        return [*map(ast.unparse, value.args)] in (["list"], ["lambda: []"])
    return called.endswith("deque")


def detached_in(
    cell: int | None,
    text: str,
    holder: str,
    inside: Iterable[str],
    callers: Iterable[str] = (),
    seen: Mapping[str, tuple[tuple[str, int], ...]] = MappingProxyType({}),
) -> list[tuple[int, text_edit.Edits]]:
    """The lines that put tensors into `holder`, each with the edits that make it put them in detached.

    Parameters
    ----------
    inside
        Where in it they are found: ``[0]``; ``['loss'][3]``; ``[7].h``.
    callers
        As in `detached_value`. They tell other names of the container, too.
    seen
        The types and lengths of the containers around what is found at such a place, the innermost first.
    """
    callers = tuple(callers)
    around = {steps(f"_{path}")[1:]: seen.get(path, ()) for path in inside}
    wanted = list(around)
    found: dict[int, text_edit.Edits] = {}
    for put in _all_puts(text, holder, callers):
        value, passed = put.value, len(put.keys) + put.more
        if value.lineno in found:
            continue
        if put.all:
            if all(len(path) == passed and _leads(put.keys, path) for path in wanted):
                start, _ = text_edit.span(text, value)
                found[value.lineno] = (TextEdit(start, start, "one.detach() for one in ", cell),)
            continue
        rests = {path[passed:] for path in wanted if len(path) >= passed and _leads(put.keys, path)}
        held = Held.of({path: found for path, found in around.items() if path[passed:] in rests}, passed)
        edits = _detached(cell, text, value, held, callers)
        if edits:
            found[min(value.lineno, edits[0].start[0])] = edits
    return sorted(found.items())


def put_in(text: str, holder: str, inside: str, texts: Iterable[str] = ()) -> list[int]:
    """The first lines of the statements that put into `holder` what is found at a place in it: ``['a'][0]``.

    `texts`, all of the program, tell other names of the container.
    """
    path = steps(f"_{inside}")[1:]
    found = set[int]()
    for put in _all_puts(text, holder, tuple(texts)):
        passed = len(put.keys) + put.more
        if len(path) >= passed and _leads(put.keys, path) and may_hold(put.value, "".join(path[passed:])):
            found.add(put.node.lineno)
    return sorted(found)


def may_hold(value: ast.expr, inside: str) -> bool:
    """Whether a tensor with a graph may be at a place in the value of an expression: in ``f(x)``, not in ``{}``."""
    if inside and _is_empty(value):
        return False
    open_ended = any(isinstance(node, ast.Starred) for node in ast.walk(value))
    if isinstance(value, ast.Dict):
        open_ended = any(not isinstance(key, ast.Constant) for key in value.keys)
    if open_ended or not isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
        return may_have_a_graph(value)
    return any(map(may_have_a_graph, _parts(value, set(steps(f"_{inside}")[1:2]))))


def may_have_a_graph(value: ast.expr) -> bool:
    """Not what is detached, or made of numbers alone: ``torch.zeros(2, 4)``, ``h.detach()``, ``0.0``."""
    if re.search(r"\.(detach|item|tolist|numpy|data)\b", ast.unparse(value)):
        return False
    if isinstance(value, ast.Call) and _MAKES_NEW.search(ast.unparse(value.func)):
        return False
    return any(isinstance(node, (ast.Name, ast.Attribute)) for node in ast.walk(value))


class _Put(NamedTuple):
    """A node that puts a value into a container, behind `keys` and `more` steps that the text does not show.

    `all`: it puts in all elements of the value.
    """

    node: ast.stmt | ast.expr
    keys: list[ast.expr]
    value: ast.expr
    more: int
    all: bool


def _all_puts(text: str, holder: str, texts: tuple[str, ...] = ()) -> Iterator[_Put]:
    """What a text puts into a container of this name; where no text does so by this name, by its other names."""
    last = holder.rsplit(".", 1)[-1].split("[", 1)[0]
    if any(True for one in (text, *texts) for _ in _puts_by(one, OtherName(last))):
        yield from _puts_by(text, OtherName(last))
        return
    for name in other_names(texts, last):
        yield from _puts_by(text, name)


def _puts_by(text: str, called: OtherName) -> Iterator[_Put]:
    for node in source.nodes_of(text):
        put = put_at(node)
        found = put or _put_all(node)
        if not isinstance(node, (ast.stmt, ast.expr)) or found is None or not called.means(node):
            continue
        whole, value, more = found
        keys: list[ast.expr] = []
        while (element := _element(whole)) is not None:
            whole, key = element
            keys.insert(0, key)
        whole = whole.func if isinstance(whole, ast.Call) and called.is_function else whole
        name = whole.attr if isinstance(whole, ast.Attribute) else getattr(whole, "id", None)
        if name == called.name:
            yield _Put(node, [*called.keys, *keys], value, more, put is None)


def taken_in(cell: str, names: Collection[str]) -> Iterator[str]:
    """Paths into containers that a cell puts these variables into: ``bank[0][1]`` for ``bank.append((x, h))``."""
    for whole, value, more in _puts(cell):
        if not more and isinstance(whole, ast.Subscript):
            whole = whole.value
        inside = [(f"[{at}]", part) for at, part in enumerate(getattr(value, "elts", ()))]
        if isinstance(value, ast.Dict):
            inside = [(f"[{k.value!r}]", v) for k, v in zip(value.keys, value.values) if isinstance(k, ast.Constant)]
        for step, part in [("", value), *inside]:
            if ast.unparse(part) in names:
                yield f"{ast.unparse(whole)}[0]{step}"


@lru_cache(maxsize=256)
def _puts(cell: str) -> list[tuple[ast.expr, ast.expr, int]]:
    return list(filter(None, map(put_at, source.nodes_of(cell))))


def put_at(node: ast.AST) -> tuple[ast.expr, ast.expr, int] | None:
    """What a node puts where: the container, the value, and the steps between them that the text does not show."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "setdefault" and len(node.args) == 2:
            filled = may_have_a_graph(node.args[1]) and not _is_empty(node.args[1])
            return (node.func.value, node.args[1], 1) if filled else None
        if node.func.attr == "update" and len(node.args) == 1 and isinstance(node.args[0], (ast.Dict, ast.DictComp)):
            return node.func.value, node.args[0], 0
        return (node.func.value, node.args[-1], 1) if node.func.attr in _KEEPING and node.args else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return (node.targets[0], node.value, 0)
    if isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)) and len(node.value.elts) == 1:
        return (node.target, node.value.elts[0], 1)
    return None


def _put_all(node: ast.AST) -> tuple[ast.expr, ast.expr, int] | None:
    """The same where a node puts all elements of a value into a container: ``queue.extend(keys)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING_ALL:
        return (node.func.value, node.args[0], 1) if len(node.args) == 1 else None
    return None


def _element(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The container and the key of ``a[key]``, and of ``a.setdefault(key, [])``."""
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        return (node.func.value, node.args[0]) if len(node.args) == 2 else None
    return None


def _leads(keys: list[ast.expr], path: Steps) -> bool:
    """Whether a path into a container may begin with these keys."""
    return all(not isinstance(key, ast.Constant) or f"[{key.value!r}]" == step for key, step in zip(keys, path))


def _detached(cell: int | None, text: str, value: ast.AST, held: Held, callers: Iterable[str] = ()) -> text_edit.Edits:
    """`value` detached, or those of its parts that are `held` in it."""
    rests = set(held.rests)
    if () in rests:
        return () if isinstance(value, ast.Constant) else detached_value(cell, text, value, callers)
    if whole := detached_whole(cell, text, value, held, callers):
        return whole
    if in_function := _detached_in_function(cell, text, value, rests, callers):
        return in_function
    if isinstance(value, ast.Call) and value.args:
        each = value.args[0] if ast.unparse(value.func) in ("tuple", "list") else None
        value = each if isinstance(each, (ast.GeneratorExp, ast.ListComp)) else _by_field(value, callers)
    steps_ = {rest[0] for rest in rests}
    mixed = isinstance(value, _COMPREHENSIONS) and () in held.kinds and () not in held.full
    ends = [one for one in _parts(value, {step for step in steps_ if (step,) in rests}) if not _is_function(text, one)]
    edits = [edit for part in ends for edit in _end_detached(cell, text, part, callers, mixed)]
    for step in sorted(steps_):
        further = held.at(step).without_end()
        parts = _parts(value, {step}) if further.rests else []
        for part in (one for one in parts if one not in ends):
            # Which of its arguments a call keeps there is not known: what was seen there need not be this one.
            sure = not isinstance(value, ast.Call) or part not in value.args
            edits += _detached(cell, text, part, further if sure else Held(further.rests, {}, frozenset()), callers)
    return tuple(edits)


def _is_function(text: str, part: ast.expr) -> bool:
    """Whether it is a function or class of the text, which has no ``detach``: ``pool.submit(score, x)``."""
    return isinstance(part, ast.Name) and any(True for _ in source.defined(text, part.id))


def _end_detached(cell: int | None, text: str, part: ast.expr, callers: Iterable[str], mixed: bool) -> text_edit.Edits:
    """A tensor detached. `mixed`: the part is this tensor, or something else in another pass of a comprehension."""
    if mixed and isinstance(part, ast.Name):
        form = f"{part.id}.detach() if hasattr({part.id}, 'detach') else {part.id}"
        return text_edit.replace_node(cell, text, part, form)
    return detached_value(cell, text, part, callers) if not isinstance(part, ast.Constant) else ()


def _each_detached(name: str) -> str:
    return f"{{k: v.detach() if hasattr(v, 'detach') else v for k, v in {name}.items()}}"


def _detached_in_function(
    cell: int | None, text: str, value: ast.AST, rests: set[Steps], callers: Iterable[str]
) -> text_edit.Edits:
    """What a function keeps at `rests`, detached where it gets that; empty: not all of it is found."""
    edits: tuple[TextEdit, ...] = ()
    function, defaults = None, dict[str, str]()
    for first in sorted({rest[:2] for rest in rests}):
        kept = kept_by(text, value, first)
        further = {rest[2:] for rest in rests if rest[:2] == first}
        new: text_edit.Edits = ()
        if kept is None:
            return ()
        if kept.value is not None:
            new = _detached(cell, text, kept.value, Held.of(dict.fromkeys(further, ()), 0), callers)
        elif further == {()} or all(map(_is_key, further)):
            function = kept.function
            defaults[kept.name] = f"{kept.name}.detach()" if further == {()} else _each_detached(kept.name)
        if not new and kept.name not in defaults:
            return ()
        edits += new
    given = with_defaults(cell, text, function, defaults) if function is not None else ()
    return (*edits, *given) if given or not defaults else ()


def _by_field(made: ast.Call, texts: Iterable[str]) -> ast.Call:
    """A call of a class whose fields are known, with the names of those that its arguments fill: ``Step(o, a)``.

    Arguments behind a starred one stay as they are.
    """
    name = source.last_name(ast.unparse(made.func))
    fields = next((found for text in texts if (found := source.fields_of(text, name))), ())
    plain = list(takewhile(lambda one: not isinstance(one, ast.Starred), made.args))[: len(fields)]
    named = [ast.keyword(field, one) for field, one in zip(fields, plain)]
    return ast.Call(made.func, made.args[len(plain) :], [*named, *made.keywords]) if named else made


def _all_detached(cell: int | None, text: str, value: ast.Starred) -> text_edit.Edits:
    """``*(one.detach() if hasattr(one, 'detach') else one for one in fields)``."""
    each = f"*(one.detach() if hasattr(one, 'detach') else one for one in {ast.unparse(value.value)})"
    return text_edit.replace_node(cell, text, value, each)


def _is_key(rest: Steps) -> bool:
    """Whether the way into a value is one key of a dict."""
    return len(rest) == 1 and rest[0].startswith(("['", '["'))


def detached_parts(cell: int | None, text: str, value: ast.AST, inside: Iterable[str]) -> text_edit.Edits:
    """The parts of a display that lie at these paths in it, detached: ``['m']`` of ``{"m": a + b, "n": 1}``."""
    return _detached(cell, text, value, Held.of({steps(f"_{path}")[1:]: () for path in inside}, 0))


def detached_value(cell: int | None, text: str, value: ast.AST, callers: Iterable[str] = ()) -> text_edit.Edits:
    """An expression with ``.detach()`` behind it, in brackets where it needs them.

    Parameters
    ----------
    callers
        The texts that may call the function around it. An argument that is a number in some calls is asked first.
    """
    if isinstance(value, ast.Starred):
        return _all_detached(cell, text, value)
    asked = detached_where_tensor(callers, text, value)
    if asked:
        new = {name: form[1:-1] if name is value else form for name, form in asked.items()}
        return tuple(edit for name, form in new.items() for edit in text_edit.replace_node(cell, text, name, form))
    start, end = text_edit.span(text, value)
    if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return (TextEdit(end, end, ".detach()", cell),)
    return (TextEdit(start, start, "(", cell), TextEdit(end, end, ").detach()", cell))


def _parts(value: ast.AST, wanted: set[str]) -> list[ast.expr]:
    """The parts of a display, or of a call that makes a container, that get these places in it."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return [part for at, part in enumerate(value.elts) if f"[{at}]" in wanted]
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values)
        fixed = {f"[{key.value!r}]" for key in value.keys if isinstance(key, ast.Constant)}
        return [
            part
            for key, part in pairs
            if (f"[{key.value!r}]" in wanted if isinstance(key, ast.Constant) else key is not None and wanted - fixed)
        ]
    if isinstance(value, ast.DictComp):
        return [value.value] if wanted else []
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return [value.elt] if wanted else []
    if not isinstance(value, ast.Call) or not wanted:
        return []
    named = [k.value for k in value.keywords if {f".{k.arg}", f"[{k.arg!r}]"} & wanted]
    return [*(value.args if len(named) < len(wanted) else ()), *named]
