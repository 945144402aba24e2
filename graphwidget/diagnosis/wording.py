"""How findings and fixes write places, code, names and iterations: here once, so that all of them agree."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import local, root_of, within
from graphwidget.model import BackwardCall, CellRun, Place, Record, TensorRef, Value, cut

__all__ = [
    "at",
    "by_anomaly_mode",
    "called_at",
    "described",
    "in_iteration",
    "is_hidden",
    "iteration_text",
    "is_notebook_s",
    "lasting_name",
    "lines_of",
    "loops_of",
    "listed",
    "names",
    "no_gradient",
    "number",
    "opening",
    "outer_at",
    "own_path",
    "place_of",
    "root_name",
    "short",
    "source_line",
    "spoken",
    "when",
    "where",
    "without_gradients",
]


def place_of(run: CellRun, line: int) -> Place:
    """A line of a cell's run as a place."""
    text = source.line_text(run.source, line)
    function = source.qualified_name_at(run.source, line)
    return Place(
        run.cell,
        line,
        text,
        run.cell,
        line,
        run=run.run,
        cell_id=run.cell_id,
        file=run.file,
        outer_file=run.file,
        function=function,
        inner_run=run.run,
    )


def where(place: Place | None) -> str:
    """``In[2], line 4``; empty when unknown. The innermost frame: in a function, the line of the function."""
    if place is None or place.cell is None:
        return ""
    return f"In[{place.cell}], line {place.line}"


def called_at(place: Place) -> str:
    """``In[2], line 4``; of a line in a function of another cell also what called it: ``..., from In[7], line 1``."""
    inner, outer = where(place), outer_at(place)
    if not inner or outer is None or outer[0] == place.cell:
        return inner
    return f"{inner}, from In[{outer[0]}], line {outer[1]}"


def by_anomaly_mode(place: Place | None, node: str) -> str:
    """A sentence on where a node was made that only anomaly mode's record tells; empty of any other place."""
    if place is None or not place.anomaly:
        return ""
    source = f": {short(place.source)}" if place.source else ""
    spot = where(place) or (f"{place.spot} in {place.function}" if place.function else place.spot)
    return f" By anomaly mode's record, {node or 'the node'} was made in {spot}{source}."


def at(place: Place | None) -> tuple[int, int] | None:
    """(cell, line) of a place: the innermost frame's."""
    if place is None or place.cell is None or place.line is None:
        return None
    return (place.cell, place.line)


def outer_at(place: Place | None) -> tuple[int, int] | None:
    """(cell, line) of the line of the cell that ran, which may have called a function of another cell."""
    if place is None:
        return None
    if place.outer_cell is not None and place.outer_line is not None:
        return (place.outer_cell, place.outer_line)
    return at(place)


def lines_of(place: Place | None) -> list[tuple[int, int]]:
    """(cell, line) of all lines of the user's own that were running, outermost first."""
    if place is None:
        return []
    return [spot for spot in map(at, (*place.stack, place)) if spot is not None]


def short(text: str, most: int = 60) -> str:
    """Code on one line, cut to a length that a sentence can quote."""
    return f"`{cut(' '.join(text.split()), most)}`"


def names(paths: tuple[str, ...], most: int = 3) -> str:
    """`a`, `b` and 2 more."""
    return listed([f"`{p}`" for p in paths], most)


def listed(each: Sequence[str], most: int = 3) -> str:
    """The same of what is quoted already."""
    shown = each[:most]
    if len(each) > most:
        return ", ".join(shown) + f" and {len(each) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def described(values: Mapping[str, Value], most: int = 4) -> str:
    """A sentence that says what tensors there were: "There `x` is [4, 3], and `w` is [3]." Empty if there are none."""
    tensors = [(name, one) for name, one in values.items() if one.kind == "tensor"][:most]
    shown = [f"`{name}` is {list(one.shape)}{_type(one.dtype)}" for name, one in tensors]
    return f"There {', and '.join(filter(None, [', '.join(shown[:-1]), shown[-1]]))}." if shown else ""


def _type(dtype: str) -> str:
    return f" of {dtype}" if dtype and dtype != "float32" else ""


def no_gradient(paths: tuple[str, ...], why: str) -> str:
    """`w` gets no gradient from ..."""
    return f"{names(paths)} {'gets' if len(paths) == 1 else 'get'} no gradient {why}."


def number(n: int) -> str:
    """The number of a call as people count: ① for n = 0. The view draws both forms in the same way.

    Beyond ⑩ in words: a terminal's or a notebook's usual fonts on Linux (DejaVu) have no ⑪.
    """
    return chr(0x2460 + n) if n < 10 else f"call {n + 1}"


def opening(n: int) -> str:
    """A call's number where a sentence begins with it."""
    return number(n).capitalize()


_HIDDEN = re.compile(r".*\.(?:__closure__|__defaults__|gi_frame)\[(\w+)\](.*)")


def is_hidden(path: str) -> bool:
    """Whether a path leads to a variable of a function that other code cannot name: of a closure, of a generator."""
    return _HIDDEN.fullmatch(path) is not None


def spoken(path: str) -> str:
    """A path as a sentence writes it: ``h`` for ``step:h``, ``gen.gi_frame[h]``, ``f.__closure__[h]``."""
    hidden = _HIDDEN.fullmatch(path)
    return within(hidden[2], hidden[1]) if hidden else local(path).split(" -> ", 1)[0]


def lasting_name(record: Record, paths: tuple[str, ...]) -> str:
    """The best of several names: no variable of a loop, and no element of a container if there is another."""
    passing = {name for run in record.runs.values() for name in source.loop_names(run.source)}
    best = min(paths, key=lambda path: (is_notebook_s(path), root_of(path) in passing, path.endswith("]")))
    return spoken(best)


def source_line(place: Place) -> tuple[object, int | None]:
    """The line of the program, the same in every run of its cell."""
    return (place.cell_id if place.cell_id is not None else place.cell, place.line)


Loops = tuple[ast.For | ast.While, ...]


def loops_of(record: Record, place: Place) -> list[Loops]:
    """The loops around a line and around each line that called it: per function, outermost first, its loops."""
    here = (place.cell, place.line)
    outer = Place(place.outer_cell, place.outer_line, inner_run=place.run)
    calling = place.stack or (() if here == (outer.cell, outer.line) or outer.line is None else (outer,))
    return [_loops_at(record, one) for one in (*calling, place)]


def _loops_at(record: Record, frame: Place) -> Loops:
    """The loops of its own function that a line stands in."""
    known = record.runs.get(frame.inner_run) if frame.inner_run is not None else None
    found = (run for _, run in sorted(record.runs.items(), reverse=True) if run.cell == frame.cell)
    run, line = known or next(found, None), frame.line or 0
    if run is None:
        return ()
    function = source.function_at(run.source, line)
    first = function[1].lineno if function is not None else 0
    return tuple(loop for loop in source.loops_around(run.source, line) if loop.lineno >= first)


def iteration_text(record: Record, place: Place) -> str:
    """``iteration 3``; where there are loops in loops, with the loop: ``iteration 3 of `for t```.

    What is counted is the innermost loop of the outermost function, or cell, that is in one.
    """
    loops = loops_of(record, place) if place.run in record.runs else []
    counted = next((own[-1] for own in loops if own), None)
    if counted is None:
        return f"iteration {place.iteration}"
    inside = any(isinstance(one, source.LOOPS) for one in source.own_statements(counted.body))
    named = f" of {short(source.head(counted))}" if sum(map(len, loops)) > 1 or inside else ""
    return f"iteration {place.iteration}{named}"


def own_path(ref: TensorRef | None) -> str | None:
    """The shortest path that the user wrote, rather than IPython's `_` and `Out`."""
    paths = ref.paths if ref is not None else ()
    return next((path for path in paths if not is_notebook_s(path)), None)


def is_notebook_s(path: str) -> bool:
    """Whether a path begins with a name of IPython's, such as `_`, `___`, `_3` and `Out[3]`."""
    return re.match(r"_{1,3}\d*(?!\w)|Out\[", path) is not None


UNNAMED = "the root"  # of a call that a library makes


def root_name(call: BackwardCall) -> str:
    """The name or expression on which the call was made, as the user wrote it."""
    path = own_path(call.roots[0]) if call.roots else None
    if path:
        return path.rsplit(":", 1)[-1]
    text = call.place.source.strip()
    found = source.receivers(text)
    passed, _ = handed_to_call(call)
    if passed:
        return passed  # the receiver, in ``accelerator.backward(loss)``, is no tensor
    if found and source.last_name(found[0]) != "autograd":
        return found[0] if len(set(found)) == 1 else UNNAMED
    outputs = source.asked(text, "outputs") if call.api == "autograd.grad" else []
    if len(outputs) == 1:
        return outputs[0]
    for marker in (".backward(", "autograd.grad("):
        if marker in text:
            before = text.split(marker, 1)[0].strip()
            return before.rsplit("=", 1)[-1].strip() if marker == ".backward(" else text
    return UNNAMED


def handed_to_call(call: BackwardCall) -> tuple[str, tuple[int, ...]]:
    """The tensor of which the line of the call made its root: `loss` in ``accelerator.backward(loss)``.

    With its name stand the nodes that the line made of it: ``loss / 2``. Empty: the root has a name of its own, was not
    made of one tensor alone, or the line itself writes what it runs: ``(loss / 2).backward()``.
    """
    graph = call.graph
    index = call.roots[0].node if graph is not None and call.roots else -1
    written = source.receivers(call.place.source.strip())
    if graph is None or index < 0 or not call.place.source or not all(re.fullmatch(r"[\w.]+", one) for one in written):
        return "", ()  # without its text it is not known what a line hands over
    names = {owner.node: owner.path for owner in reversed(graph.owners) if owner.kind != "out"}
    made: list[int] = []
    while index not in names:
        place, behind = graph.place_of(index), graph.next(index)
        if len(behind) != 1 or place is None or source_line(place) != source_line(call.place):
            return "", ()
        made.append(index)
        index = behind[0]
    return (spoken(names[index]), tuple(made)) if made else ("", ())


def when(record: Record, place: Place) -> str:
    """``In[2], line 4, iteration 3``."""
    return f"{where(place) or place.outside}{in_iteration(record, place)}"


def in_iteration(record: Record, place: Place | None) -> str:
    """``, iteration 3``; empty outside of loops."""
    return f", {iteration_text(record, place)}" if place is not None and place.iteration is not None else ""


def without_gradients(record: Record) -> str:
    """The parameters that no step of their optimizer found a gradient of, and that no call reached; empty: none."""
    reached = {path for call in record.calls for path in call.reached}
    paths = (path for one in record.starved for path in one.paths if path not in reached)
    return names(tuple(dict.fromkeys(map(spoken, paths))))
