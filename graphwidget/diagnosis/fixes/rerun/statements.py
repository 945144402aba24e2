"""The statements that have to run again so that a call finds a fresh graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.fixes.rerun.made_once import makes_what_is_made_once, starts_over
from graphwidget.diagnosis.fixes.rerun.rerun import Statement
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.dataflow.running import in_running_order
from graphwidget.diagnosis.source.in_place.statements import written as written_in
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.pytorch.optimizers import acts_of_training
from graphwidget.model import CellRun, Place

__all__ = ["Target", "places_to_rerun", "statements_to_rerun", "trains"]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Key = tuple[int, int, int]  # of a statement: run, line, column


@dataclass(frozen=True)
class Target:
    """The line before which statements are inserted: its cell, the text of the cell, and the block around the line.

    Attributes
    ----------
    in_cell_that_ran
        The line is one of the cell itself, not of a function that the cell called.
    loop
        The loop at whose start the line is.
    function
        The name of the function at whose start the line is.
    """

    cell: int
    text: str
    line: int
    in_cell_that_ran: bool
    loop: ast.For | ast.While | None = None
    function: str = ""

    @property
    def statement(self) -> ast.stmt:
        """The outermost statement that begins on the line."""
        tree = source.parse(self.text)
        found = (s for s in ast.walk(tree) if isinstance(s, ast.stmt) and s.lineno == self.line) if tree else ()
        return min(found, key=lambda s: s.col_offset)


def statements_to_rerun(
    setting: Setting, target: Target, everything: bool, *, by_position: bool = False
) -> list[Statement]:
    """The statements that make what has to be fresh, in order; none if running them again does not help or harms.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed saved tensors.
    by_position
        The loop gets its items from what is made again, by their positions.
    """
    found = _makers(setting, target, everything)
    if found is None:
        return []
    if target.loop is None and found:
        used = {name for one in found.values() for name in source.names_read(one.node)}
        _add_dependents(setting, used, target.line, found)
    if target.loop is not None and target.in_cell_that_ran:
        _add_dependents(setting, source.names_in(target.loop), target.loop.lineno, found)
        if not by_position and _only_iterated(target.loop, [one.node for one in found.values()]):
            return []
    if not _add_updates(setting, target, found) or not _add_beginnings(setting, found):
        return []
    again = [found[key] for key in sorted(found)]
    if makes_what_is_made_once(setting.reuse, again):
        return []
    if target.loop is not None and starts_over([one.node for one in again], target.loop):
        return []
    return again


def places_to_rerun(setting: Setting, everything: bool) -> Iterator[Place | None]:
    """Where the nodes were made that have to be fresh, each place once; None: unknown."""
    graph = setting.reuse.graph
    indices = setting.reuse.reached if everything else setting.reuse.needed
    places = {graph.place[i] for i in indices if graph.leaves.get(i) is None}
    return (graph.places[at] if at >= 0 else None for at in sorted(places))


def _makers(setting: Setting, target: Target, everything: bool) -> dict[_Key, Statement] | None:
    """The statements that made the nodes; None where one is unknown, or must not run again."""
    later = setting.reuse.later.place
    lines: dict[tuple[int, int], CellRun] = {}  # (run, line): the same in every iteration
    for place in places_to_rerun(setting, everything):
        run = setting.run_of(place)
        if place is None or run is None:
            return None
        if (place.run, place.outer_line) == (later.run, later.outer_line):
            continue  # made by the line that makes the later call
        line = place.outer_line if place.outer_line is not None else place.line
        if line is not None and not _is_in_loop(target, run, line, later):
            lines[(run.run, line)] = run
    found: dict[_Key, Statement] = {}
    for (_, line), run in lines.items():
        statements = [Statement(run, node) for node in _outermost(run, line, setting)]
        if not statements or any(_must_not_run_again(setting, one) for one in statements):
            return None
        found.update((one.key, one) for one in statements)
    return found


def _is_in_loop(target: Target, run: CellRun, line: int, later: Place) -> bool:
    """Whether a line of the cell that ran is in the loop of the target: each pass runs it already."""
    if target.loop is None or not target.in_cell_that_ran or run.run != later.run:
        return False
    return target.loop.lineno <= line <= (target.loop.end_lineno or 0)


def _outermost(run: CellRun, line: int, setting: Setting) -> list[ast.stmt]:
    """The outermost statement around a line that does not contain the later call.

    Of several that stand on the line, those that assign something that has to be fresh.
    """
    later = setting.reuse.later.place
    around = source.statements_at(run.source, line)
    own = max((at + 1 for at, one in enumerate(around) if isinstance(one, _DEFINITIONS)), default=0)
    for statement in around[own:]:  # a definition is no step that runs again
        if run.run == later.run and statement.lineno <= (later.outer_line or 0) <= (statement.end_lineno or 0):
            continue
        if hasattr(statement, "body") and trains(setting, statement) and not _holds_a_call(setting, run, statement):
            continue  # a loop of steps that made it in passing
        side_by_side = source.beginning_at(run.source, line)
        if statement not in side_by_side or len(side_by_side) == 1:
            return [statement]
        names = _fresh_names(setting)
        return [one for one in side_by_side if names.intersection(source.targets(one))]
    return []


def _fresh_names(setting: Setting) -> set[str]:
    """The names of tensors that have to be fresh: now, and at the earlier call."""
    reuse = setting.reuse
    uids = {reuse.graph.uid[index] for index in reuse.needed if index not in reuse.graph.leaves}
    known = [graph for graph in (reuse.graph, reuse.earlier.graph) if graph is not None]
    owned = {local(o.path) for graph in known for o in graph.owners if graph.uid[o.node] in uids}
    return owned | set(map(local, setting.carrier_names))


def _must_not_run_again(setting: Setting, statement: Statement) -> bool:
    """Whether a statement made the earlier call, which would free again.

    Also a statement that builds the graph of a `.grad`: it would add to the present `.grad`, with its old graph.
    """
    return trains(setting, statement.node) or _holds_a_call(setting, statement.run, statement.node)


def _holds_a_call(setting: Setting, run: CellRun, statement: ast.stmt) -> bool:
    """Whether a statement made the earlier call, or built the graph of a `.grad`."""
    reuse = setting.reuse
    adding = [call for call in reuse.record.calls if call.api == "backward" and call.create_graph]
    places = [call.place for call in (reuse.earlier, *adding)]
    first, last = statement.lineno, statement.end_lineno or 0
    return any(run.run == place.run and first <= (place.outer_line or 0) <= last for place in places)


def trains(setting: Setting, statement: ast.stmt) -> bool:
    """Whether a statement runs backward, or a step of an optimizer, also in a function that it calls."""
    texts = [run.source for run in setting.reuse.record.runs.values()]
    steps = in_running_order(texts, [statement], around=_functions_around(setting, statement))
    acts = (verb for step in steps for _, verb in acts_of_training(step))
    return any(verb != "zero_grad" for verb in acts)


def _functions_around(setting: Setting, statement: ast.stmt) -> set[str]:
    """The names of the function that a statement is in, and of those that called it, on the way to the later call."""
    place = setting.reuse.later.place
    way = [source.last_name(one.function) for one in (*place.stack, place) if one.function]
    for run in setting.reuse.record.runs.values():
        if any(node is statement for node in source.nodes_of(run.source)):
            inside = source.function_at(run.source, statement.lineno)
            name = inside[1].name if inside is not None else ""
            return set(way[: way.index(name) + 1]) if name in way else {name}
    return set()


def _add_dependents(setting: Setting, used: set[str], before: int, found: dict[_Key, Statement]) -> None:
    """Add assignments before a line whose used names depend on what is made again: ``stream = cycle(encoded)``."""
    later = setting.reuse.later.place.run
    made = {name for one in found.values() for name in source.targets(one.node)}
    for run in _in_order_of_running(setting):
        if later is not None and run.run > later:
            continue
        tree = source.parse(run.source)
        for node in tree.body if tree else ():
            if run.run == later and node.lineno >= before:
                break
            one = Statement(run, node)
            after = any(one.key > key for key in found)
            if after and source.names_read(node) & made and used.intersection(source.targets(node)):
                found.setdefault(one.key, one)
                made.update(source.targets(node))


def _add_updates(setting: Setting, target: Target, found: dict[_Key, Statement]) -> bool:
    """Add what then gives one of their names another value: ``returns = returns.detach()`` behind what made it.

    Without it the name would have the earlier value where the statements run again. False: it must not run again.
    """
    later = setting.reuse.later.place
    for key in sorted(found):
        one = found[key]
        ends = [target.line] if one.run.source == target.text and one.node.lineno < target.line else []
        ends += [later.outer_line] if one.run.run == later.run and later.outer_line is not None else []
        made = set(source.targets(one.node))
        for node in source.behind(one.run.source, one.node):
            update = Statement(one.run, node)
            if node.lineno >= min(ends, default=node.lineno + 1):
                break
            if hasattr(node, "body") or not made & set(source.targets(node)) & source.names_read(node):
                continue
            if _must_not_run_again(setting, update):
                return False
            found.setdefault(update.key, update)
    return True


def _add_beginnings(setting: Setting, found: dict[_Key, Statement]) -> bool:
    """Add the initial assignment of each name that a statement updates (``h = f(h)``). False: one is missing."""
    fresh: set[str] = set()
    for key in sorted(found):
        node = found[key].node
        modified = written_in(node) - source.changed(node)
        for name in (source.carried(node) | modified) - fresh:
            begun = _beginning(setting, name, key)
            if begun is None or _must_not_run_again(setting, begun):
                return False
            found[begun.key] = begun
            if name in modified:
                found.update((one.key, one) for one in _writes_between(setting, name, begun.key, key))
        fresh |= source.changed(node)
    return True


def _beginning(setting: Setting, name: str, before: _Key) -> Statement | None:
    """The last statement before another that assigns a name without reading it."""
    for run in reversed(_in_order_of_running(setting)):
        for one in reversed(list(_leading_to(run, before))):
            assigns = name in source.targets(one.node) and name not in source.names_read(one.node)
            if one.key < before and assigns:
                return one
    return None


def _writes_between(setting: Setting, name: str, first: _Key, last: _Key) -> Iterator[Statement]:
    """Statements between two others that modify the tensor of a name."""
    for run in setting.reuse.record.runs.values():
        for one in _leading_to(run, last):
            if first < one.key < last and name in written_in(one.node):
                yield one


def _in_order_of_running(setting: Setting) -> list[CellRun]:
    return [run for _, run in sorted(setting.reuse.record.runs.items())]


def _leading_to(run: CellRun, key: _Key) -> Iterator[Statement]:
    """The statements of a run before another statement; in its own cell those of the blocks around it."""
    nodes: Iterable[ast.stmt] = ()
    if run.run == key[0]:
        nodes = source.leading_to(run.source, key[1])
    elif run.run < key[0] and (tree := source.parse(run.source)) is not None:
        nodes = tree.body
    return (Statement(run, node) for node in nodes)


def _only_iterated(loop: ast.For | ast.While, again: list[ast.stmt]) -> bool:
    """Whether a `for` iterates over what these statements make, and its body does not name it.

    Inside the loop they would change nothing. The same holds where they extend what it iterates over, and where a
    `while` tests what they make: it would never end.
    """
    over = source.names_in(loop.iter if isinstance(loop, ast.For) else loop.test)
    changed = {name for one in again for name in source.changed(one)}
    if not isinstance(loop, ast.For):
        read = {name for one in again for name in source.names_in(one)} - changed
        moved = source.changed(loop) | written_in(loop)
        steps = any(called.endswith(".step") for called in source.calls_in(loop))
        return bool(changed & over) and not (read & moved or steps)
    inside = {name for statement in loop.body for name in source.names_in(statement)}
    grown = any(over & source.grown(one) for one in again)
    return grown or (bool(changed & over) and not changed & inside)
