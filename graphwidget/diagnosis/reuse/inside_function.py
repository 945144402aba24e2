"""A reuse inside one call of a function, as if the function's lines were those of the cell.

What builds a graph is looked for among the lines of the cell that ran. Most programs have them in a function:
``def main(): ...; for batch in data: ...; loss.backward()``, ``def step(self): ...; d_loss.backward(); ...``. Where
both calls, and all that they need, were made while one function ran once, the lines of that function are searched
instead. What it called has the line that called it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import at
from graphwidget.model import BackwardCall, CellRun, Kind, Place, Snapshot

__all__ = ["inside_function"]


def inside_function(setting: Setting, everything: bool) -> Setting | None:
    """The setting with the lines of a function as those of the cell; None where not all of it belongs to one call.

    Parameters
    ----------
    everything
        All that the later call reaches, not only what leads to freed or modified saved tensors.
    """
    reuse = setting.reuse
    activation = _activation(setting)
    if activation is None:
        return None
    for index in reuse.reached if everything else reuse.needed:
        place = reuse.graph.place_of(index)
        if reuse.graph.kind[index] != Kind.ACCUMULATE and (place is None or not activation.holds(place)):
            return None
    later, earlier = activation.moved_call(reuse.later), activation.moved_call(reuse.earlier)
    moved = {later.n: later, earlier.n: earlier}
    record = replace(reuse.record, calls=tuple(moved.get(call.n, call) for call in reuse.record.calls))
    return Setting(Reuse(record, later, earlier, activation.moved_graph(reuse.graph)))


def _activation(setting: Setting) -> _Activation | None:
    """The innermost call of a function that made both backward calls; None: there is none, or it is not sure."""
    a, b = setting.reuse.earlier.place, setting.reuse.later.place
    there, here = _frames(a), _frames(b)
    one_pass = (a.run, a.outer_line, a.iteration) == (b.run, b.outer_line, b.iteration)
    # Without a loop around it, the iterations are those of the function's own loop.
    one_line = (a.run, a.outer_line) == (b.run, b.outer_line) and not _is_in_loop(setting, b)
    found, once = None, a.run == b.run
    for depth, (caller, frame) in enumerate(zip(here, here[1:]), start=1):
        if depth >= len(there) or at(there[depth - 1]) != at(caller):
            break
        home = _home(setting, frame)
        if home is None and at(frame) == at(caller):  # a comprehension, which has a frame of its own before Python 3.12
            once = False
            continue
        if home is None:
            break
        local = _is_local(setting, frame)
        once = once and _calls_once(setting.text_of_cell(caller.cell), caller.line, home, frame)
        once = once or (local and one_line)
        apart = [*map(at, here[depth:])] != [*map(at, there[depth:])]  # by a helper, which two lines call, for instance
        if not (once or (one_pass and (apart or local))):
            break
        found = _Activation(b, depth, home, once)
    return found


def _is_in_loop(setting: Setting, place: Place) -> bool:
    """Whether the line of the cell that ran is in a loop."""
    run = setting.run_of(place)
    return run is None or bool(source.loops_around(run.source, place.outer_line or 0))


def _is_local(setting: Setting, frame: Place) -> bool:
    """Whether what carries the old part over is a variable of the function of a frame: no other call of it has that."""
    prefix = f"{(frame.function or '').rsplit('.', 1)[-1]}:"
    carriers = setting.reuse.carrier_paths
    return len(prefix) > 1 and bool(carriers) and all(path.startswith(prefix) for path in carriers)


def _frames(place: Place) -> tuple[Place, ...]:
    """All lines of the user's own that were running, outermost first."""
    return (*place.stack, place)


def _home(setting: Setting, frame: Place) -> CellRun | None:
    """The run of the cell or file that defines the function of a frame."""
    runs = [run for run in setting.reuse.record.runs.values() if run.cell == frame.cell]
    return runs[-1] if runs and source.function_at(runs[-1].source, frame.line or 0) is not None else None


def _calls_once(text: str, line: int | None, home: CellRun, frame: Place) -> bool:
    """Whether a line, each time it is reached, calls the function of a frame once: by its name, and in no loop."""
    found = source.statements_at(text, line or 0)[-1:]
    function = source.function_at(home.source, frame.line or 0)
    if not found or function is None or hasattr(found[0], "body") or source.loops_around(text, found[0].lineno):
        return False
    often = {id(node) for one in ast.walk(found[0]) if isinstance(one, _OFTEN) for node in ast.walk(one)}
    calls = [node for node in ast.walk(found[0]) if isinstance(node, ast.Call)]
    called = [one for one in calls if source.last_name(ast.unparse(one.func)) == function[1].name]
    return len(called) == 1 and id(called[0]) not in often


_OFTEN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)  # what is in them may run often


@dataclass(frozen=True)
class _Activation:
    """One call of a function: what ran while it did.

    Attributes
    ----------
    call
        The place of the later backward call, which belongs to it.
    depth
        How many calling lines are around the function's own.
    home
        The run of the cell that defines the function.
    once
        The function was called once. Else only what has the same pass of the loop around its call belongs to it.
    """

    call: Place
    depth: int
    home: CellRun
    once: bool

    def holds(self, place: Place) -> bool:
        """Whether a place belongs to it."""
        frames = _frames(place)
        if len(frames) <= self.depth or place.run != self.call.run:
            return False
        same_caller = [*map(at, frames[: self.depth])] == [*map(at, _frames(self.call)[: self.depth])]
        same_pass = (place.outer_line, place.iteration) == (self.call.outer_line, self.call.iteration)
        return same_caller and (self.once or same_pass)

    def moved(self, place: Place) -> Place:
        """A place that belongs to it, with the function's own line as the outermost; any other as it is."""
        if not self.holds(place):
            return place
        own = _frames(place)[self.depth]
        return replace(
            place,
            outer_cell=own.cell,
            outer_line=own.line,
            outer_source=own.source,
            iteration=place.iteration if self.once else None,
            stack=place.stack[self.depth :],
            cell_id=self.home.cell_id,
            run=self.home.run,
        )

    def moved_graph(self, graph: Snapshot) -> Snapshot:
        return replace(graph, places=tuple(map(self.moved, graph.places)))

    def moved_call(self, call: BackwardCall) -> BackwardCall:
        graph = self.moved_graph(call.graph) if call.graph is not None else None
        return replace(call, place=self.moved(call.place), graph=graph)
