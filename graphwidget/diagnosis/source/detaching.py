"""Lines that cut the graph at a tensor by its name, between two passes: ``h = h.detach()``."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import Steps, is_assignable, is_code, local, steps
from graphwidget.model import Owner

_IF_IT_IS_ONE = "one.detach() if hasattr(one, 'detach') else one"


class Detaching:
    """Statements that cut the graph at tensors: ``h = h.detach()``.

    Parameters
    ----------
    cells
        Texts, which show the types of containers that `owners` do not.
    owners
        Who holds what: an element whose path ends with a name is a field of a named tuple.
    """

    def __init__(self, cells: Collection[str], owners: Iterable[Owner] = ()) -> None:
        self._shown = _Shown(cells, tuple(owners))

    def lines(self, paths: Collection[str]) -> list[str]:
        return _lines(paths, self._shown)

    def is_field(self, path: str) -> bool:
        """Whether a path leads to a field to which nothing can be assigned: of a named tuple, or a frozen dataclass."""
        parts = steps(local(path))
        return len(parts) > 1 and self._shown.is_field(parts)

    def container(self, path: str) -> str:
        """The name of the type of container that a path leads to; empty where that is not known."""
        return self._shown.container(path)[0]

    def sure(self, paths: Collection[str]) -> bool:
        """Whether the containers that these lines rebuild, and their contents, are known and not guessed."""
        self._shown.guessed = False
        self.lines(paths)
        return not self._shown.guessed


def detached(paths: Collection[str], cells: Collection[str], owners: Iterable[Owner] = ()) -> list[str]:
    """Statements that cut the graph at these tensors."""
    return Detaching(cells, owners).lines(paths)


def _lines(paths: Collection[str], shown: _Shown) -> list[str]:
    groups: dict[tuple[str, int], list[Steps]] = {}  # holder, how many steps lead from it to the tensor
    for path in (one for one in map(local, paths) if is_code(one) and is_assignable(one)):
        parts = steps(path)
        inner = shown.depth(parts)
        groups.setdefault(("".join(parts[: len(parts) - inner]), inner), []).append(parts[len(parts) - inner :])
    lines: list[str] = []
    for (holder, inner), found in groups.items():
        if inner and len(parts := steps(holder)) > 1 and shown.is_field(parts):
            continue  # nothing can be assigned to a field of a tuple
        if inner == 0:
            lines.append(f"{holder} = {holder}.detach()")
        elif inner == 1:
            lines += shown.elements_detached(holder, [ends[0] for ends in found])
        else:
            lines += shown.insides_detached(holder, list(dict.fromkeys(ends[1] for ends in found)))
    return lines


class _Shown:
    """What the cells show of the containers that hold a tensor."""

    def __init__(self, cells: Collection[str], owners: Collection[Owner]) -> None:
        self.guessed = False  # whether a container is known from the cells alone, or may hold something else, too
        self.texts = [ast.unparse(tree) if (tree := source.parse(cell)) is not None else cell for cell in cells]
        self.elements = frozenset(local(owner.path) for owner in owners if owner.kind == "element")
        self.tensors = frozenset("".join(steps(local(owner.path))) for owner in owners)
        self.known: dict[str, tuple[str, int]] = {}
        for owner in owners:
            self._add(owner)
        fixed = [source.fixed_fields(cell) for cell in cells]
        self.tuple_fields = {name for tuples, _ in fixed for name in tuples}
        self.frozen_fields = {name for _, frozen in fixed for name in frozen}

    def _add(self, owner: Owner) -> None:
        """The containers that hold a tensor, by their paths; also under `[*]` for any key, where all have one type."""
        parts = steps(local(owner.path))
        for container in owner.containers:
            parts = parts[:-1]
            if not parts:
                break
            self.known["".join(parts)] = container
            alike = _any_key(parts)
            known = self.known.get(alike, container)
            self.known[alike] = container if known == container else (known[0] if known[0] == container[0] else "", -1)

    def container(self, holder: str) -> tuple[str, int]:
        """The name of the type of a container and its length; without a name where that is not known."""
        return self.known.get(holder) or self.known.get(_any_key(steps(holder))) or ("", -1)

    def depth(self, parts: Steps) -> int:
        """How many of the last steps of a path one assignment replaces: 0 if the tensor itself can be assigned."""
        if len(parts) > 2 and _is_index(parts[-2]):
            return 0 if self.is_module_of_several(parts) else 2
        return int(len(parts) > 1 and (_is_index(parts[-1]) or self.is_field(parts)))

    def is_module_of_several(self, parts: Steps) -> bool:
        """Whether the last step is an attribute of one of the objects in an `nn.Sequential`: they differ."""
        kind, size = self.container("".join(parts[:-2]))
        return parts[-1].startswith(".") and bool(kind) and size < 0 and not self.is_field(parts)

    def is_field(self, parts: Steps) -> bool:
        """Whether the last step leads to a field to which nothing can be assigned."""
        name = parts[-1][1:]
        named = parts[-1].startswith(".") and ("".join(parts) in self.elements or name in self.tuple_fields)
        return named or (parts[-1].startswith(".") and name in self.frozen_fields)

    def elements_detached(self, holder: str, ends: list[str]) -> list[str]:
        """``h = tuple(one.detach() for one in h)``, and the like for other containers and for fields."""
        if not _is_index(ends[0]):
            return self._with_imports(f"{holder} = {self.replaced(holder, ends)}")
        kind = self.kind(holder)
        if kind == "tuple":
            return [f"{holder} = {self.rebuilt(holder, ends)}"]
        one = "one.detach()" if self._everywhere(holder) else _IF_IT_IS_ONE
        return [f"{holder} = {_each(kind, holder, one, 'one')}"]

    def _everywhere(self, holder: str, end: str = "") -> bool:
        """Whether each element of a container has a tensor at this place, as far as its length is known."""
        size = self.container(holder)[1]
        inside = [steps(one) for one in self.tensors if one.startswith(f"{holder}[")]
        depth, (last,) = len(steps(holder)), steps(f"_{end}")[1:] or ("",)
        keys = {path[depth] for path in inside if path[depth + 1 : depth + 2] == ((last,) if last else ())}
        return size < 0 or len(keys) >= size

    def _inside(self, holder: str, ends: list[str]) -> list[str]:
        """The tensors inside of elements of a container, as far as they are known."""
        inside = (path for path in self.tensors if path.startswith(f"{holder}["))
        return sorted(path for path in inside if any(path.endswith(f"]{end}") for end in ends))

    def insides_detached(self, holder: str, ends: list[str]) -> list[str]:
        """The same for what is inside of each element of a container: ``[(h, c), (h, c)]``."""
        kind = self.kind(holder)
        self.guessed = self.guessed or not all(self._everywhere(holder, end) for end in ends)
        if _is_index(ends[0]):
            inner = f"{holder}[0]"
            alike = all(self._everywhere(f"{holder}[{at}]") for at in range(self.container(holder)[1]))
            whole = f"[{'one.detach()' if alike else _IF_IT_IS_ONE} for one in each]"
            new = whole if self.kind(inner) == "list" else self.rebuilt("each", ends, self.container(inner)[1])
        elif ends[0].startswith("["):
            new = f"{{**each, {', '.join(f'{end[1:-1]}: each{end}.detach()' for end in ends)}}}"
        elif self.is_field(("each", ends[0])) or any(path.endswith(f"]{ends[0]}") for path in self.elements):
            return self._with_imports(f"{holder} = {_each(kind, holder, self.replaced('each', ends), 'each')}")
        elif self.guessed and (found := self._inside(holder, ends)):
            return [f"{path} = {path}.detach()" for path in found]  # the other objects may be of another kind
        else:
            over = f"{holder}.values()" if kind == "dict" else holder
            return [f"for each in {over}: {'; '.join(f'each{end} = each{end}.detach()' for end in ends)}"]
        return [f"{holder} = {_each(kind, holder, new, 'each')}"]

    def rebuilt(self, holder: str, ends: list[str], size: int = -1) -> str:
        """A tuple like `holder` with these elements detached; others that there may be can be anything."""
        positions = sorted(int(end[1:-1]) for end in ends)
        known = max(size, self.container(holder)[1], 0)
        count = known or positions[-1] + 1
        if known and positions == list(range(count)):
            return f"tuple(one.detach() for one in {holder})"
        each = [f"{holder}[{at}].detach()" if at in positions else f"{holder}[{at}]" for at in range(count)]
        return f"({', '.join(each)}{'' if known else f', *{holder}[{count}:]'})"

    def replaced(self, holder: str, ends: list[str]) -> str:
        """A named tuple, or a frozen dataclass, with other values in these fields."""
        new = ", ".join(f"{end[1:]}={holder}{end}.detach()" for end in ends)
        if ends[0][1:] in self.frozen_fields - self.tuple_fields:
            return f"dataclasses.replace({holder}, {new})"
        return f"{holder}._replace({new})"

    def _with_imports(self, line: str) -> list[str]:
        there = "dataclasses." not in line or any("import dataclasses" in text for text in self.texts)
        return [line] if there else ["import dataclasses", line]

    def kind(self, holder: str) -> str:
        """``list``, ``dict`` or ``tuple``; for a queue what makes one: ``collections.deque``."""
        known = self.container(holder)[0]
        if known in ("list", "dict", "tuple"):
            return known
        queue = self._match(holder, r"(?:: [^=\n]+)? = ([\w.]*deque)\(") if known == "deque" else None
        self.guessed = self.guessed or queue is None
        return queue[1] if queue is not None else "tuple"

    def _match(self, holder: str, how: str) -> re.Match[str] | None:
        """The first place where `how` follows the holder, with any keys."""
        last = [re.escape(step.lstrip(".")) for step in steps(holder) if not step.startswith("[")][-1:]
        keys = r"\[[^]\n]+\]" * sum(step.startswith("[") for step in steps(holder))
        pattern = rf"\b{''.join(last)}{keys}{how}"
        return next((found for text in self.texts if (found := re.search(pattern, text))), None)


def _any_key(parts: Steps) -> str:
    return "".join("[*]" if step.startswith("[") else step for step in parts)


def _is_index(step: str) -> bool:
    return re.fullmatch(r"\[\d+\]", step) is not None


def _each(kind: str, holder: str, new: str, one: str) -> str:
    """A container like `holder`, with each of its elements changed."""
    if kind == "dict":
        return f"{{key: {new} for key, {one} in {holder}.items()}}"
    if kind == "list":
        return f"[{new} for {one} in {holder}]"
    return (
        f"tuple({new} for {one} in {holder})"
        if kind == "tuple"
        else f"{kind}(({new} for {one} in {holder}), {holder}.maxlen)"
    )
