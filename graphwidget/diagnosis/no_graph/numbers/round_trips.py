"""Arrays and numbers that are taken out of tensors, computed with, and made tensors again that a loss is made of.

No gradient comes back from an array. So the lines on the way compute with the tensors themselves: what is taken out is
left out, and what NumPy computes, torch does. The way is followed by the names in the text: through functions of the
program and the methods of an object itself, and not through a call of anything else, as what an environment or a plot
does with an array has no gradient anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.numbers.in_torch import (
    Known,
    Written,
    is_taking,
    may_be_array,
    packed,
    taken,
    write,
)
from graphwidget.diagnosis.no_graph.numbers.scopes import (
    Scope,
    arguments,
    paths_of,
    reach_a_backward,
    scopes_of,
    value_of,
)
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.dataflow.called import objects_of
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import CellRun, Fix, Record, TextEdit

__all__ = ["is_wider", "round_trip", "with_torch"]

_MOST_ROUNDS = 8
_MOST_SHOWN = 4
_HARMLESS = ("print", "len", "range", "isinstance", "type", "str", "repr")


def with_torch(record: Record, run: CellRun, statement: ast.stmt) -> Fix | None:
    """The fix for a line that takes an array or a number out of a tensor, which is made a tensor of the loss again.

    Without edits where torch has no counterpart of something on the way. None: no tensor of a loss is made of it.
    """
    found = round_trip(record, run, statement)
    return found.fix if found is not None else None


def round_trip(record: Record, run: CellRun, statement: ast.stmt) -> Cause | None:
    """The same for any line on the way, with the line that takes the values out first."""
    trip = _Trip(record)
    kept = trip.joined(trip.kept(), run, statement)
    if not kept or not trip.go_to_a_loss([one for one, (_, written) in kept.items() if trip.ends(one, written)]):
        return None
    ordered = sorted(((scope.run, one) for one, (scope, _) in kept.items()), key=lambda on: (on[0].run, on[1].lineno))
    taking = [on for on in ordered if any(map(is_taking, ast.walk(on[1])))]
    if not taking:
        return None
    first = next((on for on in taking if on[1] is statement), taking[0])
    place = place_of(first[0], first[1].lineno)
    edits = trip.edits(kept)
    lacking = list(dict.fromkeys(name for _, written in kept.values() for name in written.lacking))
    places = [where(place_of(own, one.lineno)) for own, one in ordered]
    more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
    without = f": torch has to compute what {', '.join(f'`{one}`' for one in lacking)} does" if lacking else ""
    what = f"Stay with tensors where the loss is computed ({'; '.join(places[:_MOST_SHOWN])}{more}){without}."
    was = taken(node for _, one in taking for node in ast.walk(one))
    verb = "was" if was.startswith("a") and " and " not in was and not was.endswith("s") else "were"
    price = f"The gradient then flows through what {verb} {was}." if edits else ""
    line = f"{short(ast.unparse(first[1]))} ({where(place)})"
    text = f"{line} had left the graph before: it takes the values out of a tensor."
    return Cause(text, Fix("differentiable_op", what, False, at(place), price, edits=edits), place)


def is_wider(fix: Fix | None, edits: Edits) -> bool:
    """Whether a fix changes lines that some edits leave as they are, and those that they change, too."""
    return fix is not None and _lines(edits) < _lines(fix.edits)


def _lines(edits: Edits) -> set[tuple[int | None, str | None, int]]:
    return {(one.cell, one.file, line) for one in edits for line in range(one.start[0], one.end[0] + 1)}


_Way = dict[ast.stmt, tuple[Scope, Written]]  # the statements of a way, each as it is with tensors


class _Trip:
    """Where arrays go in a program, from all lines that take some out of tensors."""

    def __init__(self, record: Record) -> None:
        latest = Cells.of(record).latest
        self._ends: dict[ast.stmt, bool] = {}
        self._facts: dict[ast.stmt, tuple[bool, set[str], set[str]]] = {}  # of statements, as these are asked often
        self._scopes = [scope for run in latest for scope in scopes_of(run)]
        self._arrays = {name for run in latest for name in _made_by_numpy(run.source)}
        self._functions = [one for one in self._scopes if one.function is not None]
        self._follow()

    def _known(self, scope: Scope) -> Known:
        own = {one.name: one.returns for one in self._functions if (one.within is None or one.within is scope.within)}
        made = [one for one in self._scopes if one.function and one.returns and not one.given]
        making = {one.function.name for one in made if one.function and not one.is_property}
        read = {name for one in made if one.is_property for name in self._read_as(one, scope)}
        return Known(own, making, self._arrays - scope.names, read)

    def _read_as(self, made: Scope, scope: Scope) -> Iterator[str]:
        """How a scope reads a property: as that of the object itself, or of an object of its class."""
        if made.within is None or made.function is None:
            return
        if made.within is scope.within:
            yield made.name
        for run in {id(one.run): one.run for one in self._scopes}.values():
            yield from (f"{name}.{made.function.name}" for name in objects_of(run.source, made.within.name))

    def _written(self, scope: Scope, one: ast.stmt) -> Written | None:
        value = value_of(one)
        if value is None:
            return None
        if one not in self._facts:
            calls = {syntax.last_name(name) for name in syntax.calls_in(value)}
            self._facts[one] = any(map(is_taking, ast.walk(value))), _read(one), calls
        takes, read, calls = self._facts[one]
        known = self._known(scope)
        if not (takes or read & scope.names or calls & set(known.making) or read & set(known.properties)):
            return None  # no array goes in, and none is taken
        return write(value, scope.names, scope.lists, known)

    def _follow(self) -> None:
        """Find all names that hold arrays, and the functions that return some."""
        for _ in range(_MOST_ROUNDS):
            before = self._state()
            for scope in self._scopes:
                for one in scope.statements:
                    written = self._written(scope, one)
                    if written is None:
                        continue
                    if written.array:
                        self._bind(scope, one, written)
                    scope_of_list = _appended(written.node)
                    if scope_of_list is not None and write(scope_of_list[1], scope.names, (), self._known(scope)).array:
                        scope.names.add(scope_of_list[0])
                        scope.lists.add(scope_of_list[0])
                    for name, given in written.calls:
                        self._hand_over(scope, name, given)
            if self._state() == before:
                return

    def _state(self) -> list[tuple[int, int, bool, bool]]:
        return [(len(one.names), len(one.lists), one.returns, one.given) for one in self._scopes]

    def _bind(self, scope: Scope, one: ast.stmt, written: Written) -> None:
        if isinstance(one, ast.Return):
            scope.returns = True
        names = set(syntax.targets(one))
        if isinstance(one, ast.For):
            names = {part.id for part in ast.walk(one.target) if isinstance(part, ast.Name)}
        elif isinstance(written.node, (ast.ListComp, ast.List)):
            scope.lists |= names
        scope.names |= names

    def _hand_over(self, scope: Scope, name: str, given: tuple[int, ...]) -> None:
        for other in self._called(scope, name):
            taken = arguments(other)
            other.names |= {taken[i] for i in given if i < len(taken)}
            other.given = other.given or bool(given)

    def _called(self, scope: Scope, name: str) -> Iterator[Scope]:
        for other in self._scopes:
            if other.function is None:
                continue
            same = other.name == name and (other.within is None or other.within is scope.within)
            making = other.returns and not other.given and other.function.name == syntax.last_name(name)
            if same or making:
                yield other

    # -- which of them tensors are made of

    def kept(self) -> _Way:
        """The statements on a way from a tensor to an array and back."""
        kept: _Way = {}
        for _ in range(_MOST_ROUNDS):
            before = len(kept), [len(one.needed) for one in self._scopes], [one.wanted for one in self._scopes]
            for scope in self._scopes:
                for one in reversed(scope.statements):
                    written = self._written(scope, one)
                    if written is not None and self._is_on_a_way(scope, one, written):
                        kept[one] = (scope, written)
                        scope.needed |= _read(one) & scope.names
                        for name, _ in written.calls:
                            for other in self._called(scope, name):
                                other.wanted = True
            if before == (len(kept), [len(one.needed) for one in self._scopes], [one.wanted for one in self._scopes]):
                break
        return kept

    def ends(self, one: ast.stmt, written: Written) -> bool:
        """Whether a way ends at a statement: a tensor is made there, or a number is computed with that goes into one.

        Beside a tensor a number needs no packing: ``math.log(k) * x``. That is a way only if it goes to a loss.
        """
        if written.tensor or not written.array:
            return written.tensor
        value = value_of(one)
        if value is None or any(map(is_taking, ast.walk(value))) or ast.unparse(value) == ast.unparse(written.node):
            return False
        if one not in self._ends:
            self._ends[one] = self.go_to_a_loss([one])
        return self._ends[one]

    def go_to_a_loss(self, those: Collection[ast.stmt]) -> bool:
        """Whether what one of some statements computes goes on to a backward, by the names in the text."""
        return reach_a_backward(self._scopes, those)

    def _is_on_a_way(self, scope: Scope, one: ast.stmt, written: Written) -> bool:
        if self.ends(one, written):
            return True
        appended = _appended(written.node)
        if appended is not None and appended[0] in scope.needed:
            return True
        if isinstance(one, ast.Return):
            return written.array and scope.wanted
        bound = set(syntax.targets(one))
        if isinstance(one, ast.For):
            bound = {part.id for part in ast.walk(one.target) if isinstance(part, ast.Name)}
        return written.array and bool(bound & scope.needed)

    def joined(self, kept: _Way, run: CellRun, statement: ast.stmt) -> _Way:
        """Of the statements on a way those that one of them needs, or that need it."""
        same = [one for one, (scope, _) in kept.items() if one is statement and scope.run is run]
        found = set(same)
        while True:
            names = [set[str]() for _ in self._scopes]
            for place, scope in enumerate(self._scopes):
                for one in found & set(scope.statements):
                    names[place] |= _touched(one) & scope.needed
            wanted = {id(other) for one in found for other in self._handed(kept, one)}
            more = {
                one
                for place, scope in enumerate(self._scopes)
                for one in scope.statements
                if one in kept
                and (
                    _touched(one) & names[place]
                    or (id(scope) in wanted and _is_inside(scope, one))
                    or found & self._of_inside(kept, one)
                )
            }
            if more <= found:
                return {one: kept[one] for one in kept if one in found}
            found |= more

    def _handed(self, kept: _Way, one: ast.stmt) -> list[Scope]:
        """The functions that a statement gives an array, or gets one from."""
        scope, written = kept[one]
        return [other for name, _ in written.calls for other in self._called(scope, name)]

    def _of_inside(self, kept: _Way, one: ast.stmt) -> set[ast.stmt]:
        """The statements in functions that a statement calls which take its arguments, or make what it gets."""
        return {
            inner
            for scope in self._handed(kept, one)
            for inner in scope.statements
            if inner in kept and _is_inside(scope, inner)
        }

    # -- the edits

    def edits(self, kept: _Way) -> Edits:
        """All lines on the way with tensors; none where one of them cannot be written so."""
        found: list[TextEdit] = []
        # Arithmetic with tensors takes a tensor as it takes a number: what goes to a loss needs no other word then.
        numbers = "array" not in (what := taken(node for one in kept for node in ast.walk(one))) and "list" not in what
        for one, (scope, written) in kept.items():
            stored = [part for target in getattr(one, "targets", ()) for part in ast.walk(target)]
            if written.lacking or any(isinstance(part, ast.Subscript) for part in stored):
                return ()
            value = value_of(one)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == ast.unparse(written.node):
                found += text_edit.remove(scope.run.cell, scope.run.source, one)
            elif value is not None and ast.unparse(value) != ast.unparse(written.node):
                found += _replaced(scope.run, value, written.node)
        for scope in self._scopes:
            if scope.given and scope.wanted and self._is_given_others(scope):
                return ()
            for one in scope.statements:
                if one not in kept and not (numbers and scope.needed & _read(one) and self.go_to_a_loss([one])):
                    found += _values_only(scope, one, kept, numbers)
        return tuple(found)

    def _is_given_others(self, scope: Scope) -> bool:
        """Whether other calls give a function arrays that stay such: then it has to go on computing with these."""
        for other in self._scopes:
            for one in other.statements:
                written = self._written(other, one)
                given = [name for name, some in written.calls if some] if written is not None else []
                value = value_of(one)
                calls = [name for name in syntax.calls_in(value) if name == scope.name] if value is not None else []
                if len(calls) > given.count(scope.name):
                    return True
        return False


def _touched(one: ast.stmt) -> set[str]:
    """The names that a statement reads or binds."""
    bound = (
        {part.id for part in ast.walk(one.target) if isinstance(part, ast.Name)} if isinstance(one, ast.For) else set()
    )
    return _read(one) | set(syntax.targets(one)) | bound


def _is_inside(scope: Scope, one: ast.stmt) -> bool:
    """Whether a statement of a function stands where its calls lead in or out."""
    return isinstance(one, ast.Return) or bool(_read(one) & set(arguments(scope)))


def _appended(node: ast.expr) -> tuple[str, ast.expr] | None:
    """The list that something is put into, and what: ``losses.append(loss.item())``."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
    if called and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return ast.unparse(node.func.value), node.args[0]
    return None


def _read(one: ast.stmt) -> set[str]:
    """The names that a statement reads, also the one that it adds to."""
    own = set(syntax.targets(one)) if isinstance(one, ast.AugAssign) else set()
    return paths_of(one) | own | syntax.grown(one)


def _made_by_numpy(text: str) -> set[str]:
    """The variables that NumPy makes, as far as the text shows that."""
    made = [node for node in syntax.nodes_of(text) if isinstance(node, ast.Assign)]
    given = [(name, syntax.given_to(node, name)[0]) for node in made for name in syntax.targets(node)]
    found = set[str]()
    while True:
        more = {name for name, value in given if may_be_array(value, found)}
        if more <= found:
            return found
        found |= more


def _replaced(run: CellRun, old: ast.expr, new: ast.expr) -> Edits:
    """The edit of the innermost node in which all that is new stands, so that the rest stays as it is written."""
    while isinstance(old, ast.Call) and isinstance(new, ast.Call):
        pairs = [(old.func, new.func), *zip(old.args, new.args)]
        same = len(old.args) == len(new.args) and list(map(ast.unparse, old.keywords)) == list(
            map(ast.unparse, new.keywords)
        )
        differing = [(a, b) for a, b in pairs if ast.unparse(a) != ast.unparse(b)]
        if not same or len(differing) != 1 or not all(isinstance(one, ast.expr) for one in differing[0]):
            break
        old, new = differing[0]
    return text_edit.replace_node(run.cell, run.source, old, ast.unparse(new))


def _is_bound_on_the_way(scope: Scope, name: str, one: ast.stmt, kept: _Way) -> bool:
    """Whether the last line above a statement that binds a name is on a way; none does above: in a pass before."""
    above = [each for each in scope.statements if each.lineno < one.lineno and name in syntax.targets(each)]
    return not above or max(above, key=lambda each: each.lineno) in kept


def _values_only(scope: Scope, one: ast.stmt, kept: _Way, numbers: bool) -> Edits:
    """Where a statement that computes no loss reads what is a tensor now: its values, as they were."""
    value = value_of(one)
    if value is None or not isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
        return ()
    left = {
        id(part)
        for node in ast.walk(value)
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in _HARMLESS)
        or (isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "backward"))
        or packed(node) is not None
        for part in ast.walk(node)
    }
    found: list[TextEdit] = []
    for node in ast.walk(value):
        if id(node) in left or not isinstance(node, ast.Name) or node.id not in scope.needed:
            continue
        if not _is_bound_on_the_way(scope, node.id, one, kept):
            continue
        one_of = "item()" if numbers else "detach().cpu().numpy()"
        new = f"[one.item() for one in {node.id}]" if node.id in scope.lists else f"{node.id}.{one_of}"
        found += text_edit.replace_node(scope.run.cell, scope.run.source, node, new)
    return tuple(found)
