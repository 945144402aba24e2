"""Parameters that an object also keeps in a list, a tuple or a dict of its own, and a line that reads them there.

``self._decayed = [layer.weight for layer in self.layers]`` holds what was there when it was made. Neither
`torch.func.functional_call` nor a new parameter in the place of an old one changes that.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import NamedTuple

from graphwidget.diagnosis.findings.refusals.unused_inputs.below import below
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, Fix, Leaf, Place, Record, Snapshot

__all__ = ["second_name"]

_HELD = re.compile(r"(?P<owner>.+)\.(?P<name>[A-Za-z_]\w*)(?P<keys>(\[[^\]]*\])+)")
_LIBRARIES = {"torch", "nn"}


class _Read(NamedTuple):
    """The first line that reads such an attribute, all reads, what that was given in `made`, and the leaves in it."""

    place: Place
    name: str
    nodes: list[ast.Attribute]
    made: Place
    value: ast.expr
    leaves: tuple[Leaf, ...]


def second_name(record: Record, call: BackwardCall, root: str) -> tuple[str, Place, tuple[Fix, ...]] | None:
    """Why a root leads to the parameters that an attribute keeps, and not to those that were asked for.

    Known by measurement: the line that used the leaves reads an attribute, and a path through that leads to them.
    """
    graph = call.graph
    if graph is None:
        return None
    found = {(one.place.cell, one.place.line, one.name): one for one in _reads(record, call, graph)}
    if len(found) != 1:
        return None
    (read,) = found.values()
    shown, line = f"`self.{read.name}`", f"{short(read.place.source)} ({where(read.place)})"
    own = [path for leaf in read.leaves for path in _registered(leaf, read.name)[:1]]
    whose = f"which are {names(tuple(sorted(own)))}" if own else "which the module no longer has under any other name"
    given = (
        "`torch.func.functional_call` gives a module other weights under the names of its parameters"
        if own
        else "A new parameter was put in the place of each"
    )
    text = (
        f"{line} reads {shown}. {short(read.made.source)} ({where(read.made)}) has put parameters there, {whose}. "
        f"{given}, and does not change what {shown} holds. So `{root}` is computed with the old ones."
    )
    return text, read.place, (_fix(record, read),)


def _reads(record: Record, call: BackwardCall, graph: Snapshot) -> Iterator[_Read]:
    """The reads of an attribute of `self` in functions that used leaves to which a path through it leads."""
    cells, asked = Cells.of(record), {ref.node for ref in call.inputs or ()}
    held: dict[tuple[int, int, str], list[Leaf]] = {}
    for index in sorted(below(graph, call)):
        place = graph.place_of(index)
        spot = at(place) if place is not None else None
        if place is None or spot is None:
            continue
        swapped = any(_gives_weights(cells, one) for one in place.stack)
        for leaf in (graph.leaves[one] for one in graph.next(index) if one in graph.leaves and one not in asked):
            found = (match for path in leaf.paths if (match := _HELD.fullmatch(local(path))) is not None)
            for name in {match["name"] for match in found}:
                if swapped or not _registered(leaf, name):
                    held.setdefault((*spot, name), []).append(leaf)
    for (cell, line, name), leaves in held.items():
        text, run = cells.text(cell), next((one for one in cells.latest if one.cell == cell), None)
        inside, made = syntax.function_at(text, line), _made(text, line, name)
        if run is None or inside is None or made is None:
            continue
        nodes = [n for n in ast.walk(inside[1]) if isinstance(n, ast.Attribute) and _is_of_self(n) and n.attr == name]
        if nodes and made not in ast.walk(inside[1]):
            place, unique = place_of(run, nodes[0].lineno), tuple({id(one): one for one in leaves}.values())
            yield _Read(place, name, nodes, place_of(run, made.lineno), made.value, unique)


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _gives_weights(cells: Cells, place: Place) -> bool:
    spot = at(place)
    statement = cells.statement(spot) if spot is not None else None
    text = ast.unparse(statement) if statement is not None else place.source
    return re.search(r"\bfunctional_call\b", text) is not None


def _registered(leaf: Leaf, name: str) -> list[str]:
    """Its paths that lead neither through the attribute nor through an optimizer."""
    paths = map(local, leaf.paths)
    return [one for one in paths if ".param_groups[" not in one and f".{name}[" not in one]


def _made(text: str, line: int, name: str) -> ast.Assign | None:
    """The only statement of the class that puts a plain container into an attribute; None: another object, or several.

    What a `ParameterList` holds has its name from that.
    """
    inside = syntax.function_at(text, line)
    if inside is None or inside[0] is None:
        return None
    given = [
        one for one in ast.walk(inside[0]) if isinstance(one, ast.Assign) and f"self.{name}" in syntax.targets(one)
    ]
    plain = [one for one in given if len(one.targets) == 1 and _is_container(one.value)]
    return plain[0] if len(given) == len(plain) == 1 else None


def _is_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("list", "tuple", "dict")
    return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))


def _fix(record: Record, read: _Read) -> Fix:
    """Read the parameters where they are used: what the attribute was given, if that reads only the object itself."""
    spot = at(read.place)
    own = {
        node.id
        for n in ast.walk(read.value)
        if isinstance(n, ast.comprehension)
        for node in ast.walk(n.target)
        if isinstance(node, ast.Name)
    }
    others = syntax.names_in(read.value) - own - {"self"} - _LIBRARIES - set(dir(builtins))
    there = where(read.place)
    if others or spot is None:
        text = f"Read the parameters of the module itself in the place of `self.{read.name}` ({there})."
        return Fix("use_input", text, False, spot)
    new = ast.unparse(read.value)
    text = Cells.of(record).text(spot[0])
    edits = tuple(edit for node in read.nodes for edit in text_edit.replace_node(spot[0], text, node, new))
    sentence = f"Read them where they are used: {short(new, 80)} in the place of `self.{read.name}` ({there})."
    return Fix("use_input", sentence, False, spot, edits=edits)
