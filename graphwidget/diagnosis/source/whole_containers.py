"""Containers that a line stores as a whole, in the form in which the tensors in them are detached.

``rows.append(dict(out))`` becomes ``rows.append({k: v.detach() for k, v in out.items()})``: a dict has no ``detach``.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import Steps

__all__ = ["Held", "detached_whole"]

_COPIES = {"dict": "dict", "list": "list", "tuple": "tuple", "OrderedDict": "dict", "deque": "list"}
_PLAIN = ("dict", "list", "tuple")
_NAMES = (("k", "v"), ("key", "one"))  # of the loops in a form, by depth


@dataclass(frozen=True)
class Held:
    """Where in a value tensors with a graph are, and what was seen of the containers on the way to them.

    Attributes
    ----------
    rests
        The steps from the value to each of the tensors.
    kinds
        The types of the containers at such steps, where all have one.
    full
        The steps to containers all of whose elements lead to such tensors.
    """

    rests: frozenset[Steps]
    kinds: Mapping[Steps, str]
    full: frozenset[Steps]

    @classmethod
    def of(cls, paths: Mapping[Steps, tuple[tuple[str, int], ...]], passed: int) -> Held:
        """What is held behind the first `passed` steps of some paths, each with the containers around its end.

        The innermost container comes first; none: they are not known.
        """
        kinds: dict[Steps, set[str]] = defaultdict(set)
        inside: dict[Steps, set[str]] = defaultdict(set)
        sizes: dict[Steps, int] = {}
        for path, containers in paths.items():
            for depth, (kind, size) in zip(range(len(path) - 1, passed - 1, -1), containers):
                kinds[path[passed:depth]].add(kind)
                inside[path[:depth]].add(path[depth])
                sizes[path[:depth]] = size
        short = {whole[passed:] for whole, size in sizes.items() if size != len(inside[whole])}
        one = {steps: next(iter(found)) for steps, found in kinds.items() if len(found) == 1}
        return cls(frozenset(path[passed:] for path in paths), one, frozenset(kinds) - short)

    def at(self, step: str) -> Held:
        """The same for what one step leads to."""
        rests = frozenset(rest[1:] for rest in self.rests if rest[:1] == (step,))
        kinds = {steps[1:]: kind for steps, kind in self.kinds.items() if steps[:1] == (step,)}
        return Held(rests, kinds, frozenset(steps[1:] for steps in self.full if steps[:1] == (step,)))

    def without_end(self) -> Held:
        """The same, without the value itself."""
        return Held(self.rests - {()}, self.kinds, self.full)

    @property
    def kind(self) -> str:
        """The type of the value itself; one with keys that are texts is a dict. Empty: not known."""
        known = self.kinds.get((), "")
        return known or ("dict" if all(map(_has_key, self.rests)) else "")

    @property
    def parts(self) -> dict[str, Held]:
        """What the elements, or fields, lead to."""
        return {step: self.at(step) for step in sorted({rest[0] for rest in self.rests if rest})}


def detached_whole(
    cell: int | None, text: str, value: ast.AST, held: Held, texts: Iterable[str] = ()
) -> text_edit.Edits:
    """A container that is stored as a whole, or as a copy of one, with its tensors detached; empty: not known how.

    Parameters
    ----------
    texts
        Of the program: they show the classes of what is stored.
    """
    if not isinstance(value, ast.expr) or not held.rests or () in held.rests:
        return ()
    if isinstance(value, ast.Dict):
        return _spread(cell, text, value, held, texts)
    inner, kind = _copied(value)
    if inner is None and isinstance(value, ast.Call) and held.kinds.get(()) in _PLAIN and not _is_display(value):
        inner = value  # what a function returns
    if inner is None or (kind and held.kinds.get((), kind) != kind and not _is_made_by_name(value)):
        return ()
    known = Held(held.rests, {**held.kinds, (): kind}, held.full) if kind else held
    form = _form(ast.unparse(inner), known, [text, *texts])
    stays = isinstance(value, ast.Call) and (value.keywords or _is_made_by_name(value))
    return text_edit.replace_node(cell, text, inner if stays else value, form) if form else ()


def _copied(value: ast.expr) -> tuple[ast.expr | None, str]:
    """The container that an expression is, or copies, and the kind of the copy; None: it is made here."""
    if isinstance(value, (ast.Name, ast.Attribute)):
        return value, ""
    if isinstance(value, ast.Subscript):
        whole = isinstance(value.slice, ast.Slice) and ast.unparse(value.slice) == ":"
        return (value.value if whole else value), ""
    if isinstance(value, (ast.List, ast.Tuple)) and len(value.elts) == 1 and isinstance(value.elts[0], ast.Starred):
        return value.elts[0].value, "list" if isinstance(value, ast.List) else "tuple"
    if not isinstance(value, ast.Call):
        return None, ""
    name = source.last_name(ast.unparse(value.func))
    if any(isinstance(one, (ast.GeneratorExp, ast.ListComp)) for one in value.args):
        return None, ""
    if isinstance(value.func, ast.Attribute) and name == "copy" and not value.args:
        return value.func.value, ""
    if name == "copy" and len(value.args) == 1:
        return value.args[0], ""
    if name in _COPIES and value.args and not isinstance(value.args[0], ast.Starred):
        named = isinstance(value.args[0], (ast.Name, ast.Attribute, ast.Subscript))
        return (value.args[0] if named else value), _COPIES[name]
    return None, ""


def _is_display(value: ast.Call) -> bool:
    """Whether it writes what is in the container: ``dict(a=x)``."""
    return source.last_name(ast.unparse(value.func)) in _COPIES


def _is_made_by_name(value: ast.expr) -> bool:
    """Whether it is a call of a type that has no display: ``OrderedDict(out)``."""
    return isinstance(value, ast.Call) and source.last_name(ast.unparse(value.func)) in set(_COPIES) - set(_PLAIN)


def _spread(cell: int | None, text: str, value: ast.Dict, held: Held, texts: Iterable[str]) -> text_edit.Edits:
    """``{**out, "step": 3}``, with what ``out`` brings in detached; empty: several dicts may bring it in."""
    own = {f"[{key.value!r}]" for key in value.keys if isinstance(key, ast.Constant)}
    spread = [one for key, one in zip(value.keys, value.values) if key is None]
    brought = frozenset(rest for rest in held.rests if rest[0] not in own)
    if len(spread) != 1 or not brought or not isinstance(spread[0], (ast.Name, ast.Attribute)):
        return ()
    # Of what it does not bring in, the other keys have written over: it may hold more than is seen.
    alone = len(value.keys) == 1
    form = _form(
        ast.unparse(spread[0]),
        Held(brought, {**held.kinds, (): "dict"}, held.full if alone else held.full - {()}),
        [text, *texts],
    )
    return text_edit.replace_node(cell, text, value if alone else spread[0], form) if form else ()


def _form(whole: str, held: Held, texts: Iterable[str], depth: int = 0) -> str:
    """An expression like `whole`, in which the tensors are detached; empty: not known how."""
    if held.rests == {()}:
        return f"{whole}.detach()"
    if () in held.rests or depth == len(_NAMES) or not held.rests:
        return ""
    if held.kind not in _PLAIN:
        return _with_fields(whole, held, list(texts))
    key, one = _NAMES[depth]
    parts = held.parts
    alike = len({part.rests for part in parts.values()}) == 1
    first = next(iter(parts.values()))
    new = _form(one, first, texts, depth + 1) if alike else ""
    if not alike and held.kind == "dict":
        some = {step[1:-1]: _form(f"{whole}{step}", part, texts, depth + 1) for step, part in parts.items()}
        return f"{{**{whole}, {', '.join(f'{k}: {v}' for k, v in some.items())}}}" if all(some.values()) else ""
    if not new or (() not in held.full and first.rests != {()}):
        return ""  # other elements may be of another form
    new = new if () in held.full else f"{new} if hasattr({one}, 'detach') else {one}"
    if held.kind == "dict":
        return f"{{{key}: {new} for {key}, {one} in {whole}.items()}}"
    return f"[{new} for {one} in {whole}]" if held.kind == "list" else f"tuple({new} for {one} in {whole})"


def _with_fields(whole: str, held: Held, texts: list[str]) -> str:
    """A named tuple, or a dataclass, with its fields detached: ``out._replace(loss=out.loss.detach())``."""
    if not all(step.startswith(".") for step in held.parts):
        return ""
    new = ", ".join(f"{step[1:]}={whole}{step}.detach()" for step, part in held.parts.items() if part.rests == {()})
    if new.count(".detach()") != len(held.parts):
        return ""
    for text in texts:
        for made in source.defined(text, held.kind):
            if isinstance(made, ast.ClassDef) and source.is_dataclass(made):
                replaces = _replace_in(texts[0])
                return f"{replaces}({whole}, {new})" if replaces else ""
        if source.fields_of(text, held.kind):
            return f"{whole}._replace({new})"
    return ""


def _replace_in(text: str) -> str:
    """How a text calls `dataclasses.replace`; empty: it has not imported it."""
    if re.search(r"^import [^\n]*\bdataclasses\b(?! as)", text, re.MULTILINE):
        return "dataclasses.replace"
    return "replace" if re.search(r"^from dataclasses import [^\n]*\breplace\b(?! as)", text, re.MULTILINE) else ""


def _has_key(rest: Steps) -> bool:
    """Whether the first step is a key of a dict."""
    return bool(rest) and rest[0].startswith(("['", '["'))
