"""Lines that cut the graph at a tensor: at its name between two passes, or where a container takes it in."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import Edit, replaced, statement_of
from graphwidget.model import Owner

Steps = tuple[str, ...]

_IF_IT_IS_ONE = "one.detach() if hasattr(one, 'detach') else one"


def local(path: str) -> str:
    """A path without the frame it was found in: ``h`` for ``step:h``."""
    return path.rsplit(":", 1)[-1]


def is_code(path: str) -> bool:
    """Whether a path can be written in a program as it is."""
    return (
        not re.search(r"__closure__|__(kw)?defaults__|gi_frame|\.grad\b|^Out\[|^_\d*$|^sys\.", path)
        and statement_of(path) is not None
    )


def is_assignable(path: str) -> bool:
    """Whether a path is one that a program can assign to: names, attributes and elements, and no call on the way."""
    statement = statement_of(path)
    part = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(part, (ast.Attribute, ast.Subscript)):
        part = part.value
    return isinstance(part, ast.Name)


def root_of(path: str) -> str:
    """The variable that a path begins with: ``state`` of ``fit:state['h'][0]``."""
    return re.split(r"\W", local(path), maxsplit=1)[0]


def steps(path: str) -> Steps:
    """``state['h'][0]`` as ``state``, ``['h']``, ``[0]``."""
    return tuple(re.findall(r"^\w+|\.\w+|\[(?:'[^']*'|\"[^\"]*\"|[^\]]*)\]", path))


# ------------------------------------------------------------------ at its name


class Detaching:
    """Statements that cut the graph at tensors: ``h = h.detach()``.

    Parameters
    ----------
    cells
        Texts, which show what the containers are where `owners` do not tell.
    owners
        Who holds what: an element whose path ends with a name is a field of a named tuple.
    """

    def __init__(self, cells: Collection[str], owners: Iterable[Owner] = ()) -> None:
        self._shown = _Shown(cells, tuple(owners))

    def lines(self, paths: Collection[str]) -> list[str]:
        return _lines(paths, self._shown)

    def is_container(self, name: str) -> bool:
        """Whether tensors are known to be inside of what has this name."""
        return any(one.startswith((f"{name}[", f"{name}.")) for one in self._shown.tensors)

    def sure(self, paths: Collection[str]) -> bool:
        """Whether all containers that these lines rebuild are known, and what is in them, not guessed."""
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
        if inner == 0:
            lines.append(f"{holder} = {holder}.detach()")
        elif inner == 1:
            lines += shown.elements_detached(holder, [ends[0] for ends in found])
        else:
            lines += shown.insides_detached(holder, list(dict.fromkeys(ends[1] for ends in found)))
    return lines


class _Shown:
    """What the cells show of the containers on the way to a tensor."""

    def __init__(self, cells: Collection[str], owners: Collection[Owner]) -> None:
        self.guessed = False  # whether a container was told by the cells alone, or may hold something else, too
        self.texts = [ast.unparse(tree) if (tree := source.parse(cell)) is not None else cell for cell in cells]
        self.elements = frozenset(local(owner.path) for owner in owners if owner.kind == "element")
        self.tensors = frozenset("".join(steps(local(owner.path))) for owner in owners)
        self.known: dict[str, tuple[str, int]] = {}
        for owner in owners:
            self._note(owner)
        fixed = [source.fixed_fields(cell) for cell in cells]
        self.tuple_fields = {name for tuples, _ in fixed for name in tuples}
        self.frozen_fields = {name for _, frozen in fixed for name in frozen}

    def _note(self, owner: Owner) -> None:
        """What the containers on the way to a tensor are, by their paths; by any key, too, where the kind is one."""
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
        """How many of the last steps have to be done at once: 0 where the tensor itself can be assigned."""
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
        else:
            over = f"{holder}.values()" if kind == "dict" else holder
            return [f"for each in {over}: {'; '.join(f'each{end} = each{end}.detach()' for end in ends)}"]
        return [f"{holder} = {_each(kind, holder, new, 'each')}"]

    def rebuilt(self, holder: str, ends: list[str], size: int = -1) -> str:
        """A tuple like `holder` with these elements detached; others that there may be can be anything."""
        positions = sorted(int(end[1:-1]) for end in ends)
        known = max(size, 0) or self.length(holder)
        count = known or positions[-1] + 1
        if positions == list(range(count)) and (known or (count > 1 and not self.longer_tuples(count))):
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
        shown = self._shown_kind(holder)
        if known in ("list", "dict", "tuple"):
            return known
        self.guessed = self.guessed or known != "deque" or not shown.endswith("deque")
        return shown

    def _shown_kind(self, holder: str) -> str:
        """The same from the text alone."""
        if self._match(holder, r"(: [^=\n]+)? = (\{|[\w.]*[dD]ict\()"):
            return "dict"
        queue = self._match(holder, r"(?:: [^=\n]+)? = ([\w.]*deque)\(")
        if queue:
            return queue[1]
        return "list" if self._match(holder, r"(\.append\(|\.extend\(|\[[^]\n]+\] = |(: [^=\n]+)? = \[)") else "tuple"

    def _match(self, holder: str, how: str) -> re.Match[str] | None:
        """The first place where `how` follows the holder, whatever its keys are."""
        last = [re.escape(step.lstrip(".")) for step in steps(holder) if not step.startswith("[")][-1:]
        keys = r"\[[^]\n]+\]" * sum(step.startswith("[") for step in steps(holder))
        pattern = rf"\b{''.join(last)}{keys}{how}"
        return next((found for text in self.texts if (found := re.search(pattern, text))), None)

    def length(self, holder: str) -> int:
        """How many elements the tuple has that a cell, or a function of one, gives to `holder`; 0: unknown."""
        kind, size = self.container(holder)
        if kind == "tuple" and size > 0:
            return size
        last = holder.rsplit(".", 1)[-1]
        for text in self.texts:
            for statement, target in source.assigned_as(text, last):
                value = getattr(statement, "value", None)
                if value is None or list(source.targets(statement)) != [target]:
                    continue
                found = [len(one.elts) for one in (value, *self._returned(value)) if isinstance(one, ast.Tuple)]
                if found:
                    return found[0]
        return 0

    def longer_tuples(self, count: int) -> bool:
        """Whether a function of the cells returns a tuple that has more elements, in whatever place."""
        trees = [tree for text in self.texts if (tree := source.parse(text)) is not None]
        returns = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Return))
        return any(isinstance(p, ast.Tuple) and len(p.elts) > count for node in returns for p in ast.walk(node))

    def _returned(self, value: ast.expr) -> Iterator[ast.expr]:
        """What a function of the cells returns, if this is a call of one."""
        name = ast.unparse(value.func).rsplit(".", 1)[-1] if isinstance(value, ast.Call) else ""
        for function in (source.function_called(text, name) for text in self.texts if name):
            for node in ast.walk(function) if function is not None else ():
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value


def _any_key(parts: Steps) -> str:
    return "".join("[*]" if step.startswith("[") else step for step in parts)


def _is_index(step: str) -> bool:
    return re.fullmatch(r"\[\d+\]", step) is not None


def _each(kind: str, holder: str, new: str, one: str) -> str:
    """A container like `holder` of what each of its elements becomes."""
    if kind == "dict":
        return f"{{key: {new} for key, {one} in {holder}.items()}}"
    if kind == "list":
        return f"[{new} for {one} in {holder}]"
    return (
        f"tuple({new} for {one} in {holder})"
        if kind == "tuple"
        else f"{kind}(({new} for {one} in {holder}), {holder}.maxlen)"
    )


# ------------------------------------------------------------------ where a container takes it in

_KEEPING = ("append", "appendleft", "add", "insert")


def kept_detached(cell: str, holder: str, inside: Iterable[str]) -> list[tuple[int, Edit]]:
    """The lines that put tensors into `holder`, each with the edit that makes it put them in detached.

    Parameters
    ----------
    inside
        Where in it they are found: ``[0]``; ``['loss'][3]``; ``[7].h``.
    """
    tree = source.parse(cell)
    wanted = [steps(f"_{path}")[1:] for path in inside]
    last = holder.rsplit(".", 1)[-1].split("[", 1)[0]
    found: dict[int, Edit] = {}
    for node in ast.walk(tree) if tree else ():
        put = _put(node)
        if put is None:
            continue
        whole, value, more = put
        keys: list[ast.expr] = []
        while isinstance(whole, ast.Subscript):
            keys.insert(0, whole.slice)
            whole = whole.value
        name = whole.attr if isinstance(whole, ast.Attribute) else getattr(whole, "id", None)
        if name != last or value.lineno != value.end_lineno or value.lineno in found:
            continue
        rests = {path[len(keys) + more :] for path in wanted if len(path) >= len(keys) + more and _leads(keys, path)}
        edit = _detached_in(source.raw_line(cell, value.lineno), value, rests)
        if edit:
            found[value.lineno] = edit
    return sorted(found.items())


def taken_in(cell: str, names: Collection[str]) -> Iterator[str]:
    """Paths into containers that a cell puts these variables into: ``bank[0][1]`` for ``bank.append((x, h))``."""
    tree = source.parse(cell)
    for put in filter(None, map(_put, ast.walk(tree) if tree else ())):
        whole, value, more = put
        if not more and isinstance(whole, ast.Subscript):
            whole = whole.value
        inside = [(f"[{at}]", part) for at, part in enumerate(getattr(value, "elts", ()))]
        if isinstance(value, ast.Dict):
            inside = [(f"[{k.value!r}]", v) for k, v in zip(value.keys, value.values) if isinstance(k, ast.Constant)]
        for step, part in [("", value), *inside]:
            if ast.unparse(part) in names:
                yield f"{ast.unparse(whole)}[0]{step}"


def _put(node: ast.AST) -> tuple[ast.expr, ast.expr, int] | None:
    """What a node puts where: the container, the value, and the steps from one to the other that are not written."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return (node.func.value, node.args[-1], 1) if node.func.attr in _KEEPING and node.args else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return (node.targets[0], node.value, 0)
    if isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)) and len(node.value.elts) == 1:
        return (node.target, node.value.elts[0], 1)
    return None


def _leads(keys: list[ast.expr], path: Steps) -> bool:
    """Whether a path into a container may begin with these keys."""
    return all(not isinstance(key, ast.Constant) or f"[{key.value!r}]" == step for key, step in zip(keys, path))


def _detached_in(line: str, value: ast.expr, rests: set[Steps]) -> Edit:
    """The line with `value` detached, or those of its parts that are at `rests` in it."""
    parts = [value] if () in rests else _parts(value, {rest[0] for rest in rests if len(rest) == 1})
    raw = line.encode()
    for part in sorted(parts, key=lambda p: -p.col_offset):
        if isinstance(part, ast.Constant) or part.end_col_offset is None:
            continue
        text = raw[part.col_offset : part.end_col_offset]
        if isinstance(part, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            new = text + b".detach()"
        else:
            new = b"(" + text + b").detach()"
        raw = raw[: part.col_offset] + new + raw[part.end_col_offset :]
    return replaced(line, raw.decode())


def _parts(value: ast.expr, wanted: set[str]) -> list[ast.expr]:
    """The parts of a display, or of a call that makes a container, that get these places in it."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return [part for at, part in enumerate(value.elts) if f"[{at}]" in wanted]
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values)
        return [part for key, part in pairs if isinstance(key, ast.Constant) and f"[{key.value!r}]" in wanted]
    if not isinstance(value, ast.Call) or not wanted:
        return []
    named = [k.value for k in value.keywords if {f".{k.arg}", f"[{k.arg!r}]"} & wanted]
    return [*(value.args if len(named) < len(wanted) else ()), *named]


def added_detached(line: str) -> Edit:
    """``total += loss`` as ``total += loss.detach()``."""
    statement = statement_of(line)
    if not isinstance(statement, ast.AugAssign):
        return ()
    text = ast.unparse(statement.value)
    simple = isinstance(statement.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    left = line.strip().encode()[: statement.value.col_offset].decode()
    return replaced(line, left + (f"{text}.detach()" if simple else f"({text}).detach()"))
