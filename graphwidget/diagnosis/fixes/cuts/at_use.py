"""Cuts where a tensor that was made once is used, or where it was made."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext, edges_of
from graphwidget.diagnosis.reuse.lines_between import runs_between
from graphwidget.diagnosis.reuse.named_edges import NamedEdges
from graphwidget.diagnosis.source import edits, fitting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, outer_at, short, where
from graphwidget.model import BackwardCall, Place

__all__ = ["at_use", "first_use"]


def at_use(context: CuttingContext) -> Iterator[Cut]:
    """Read the carrier detached where the later call's own part begins.

    Then the same at every line that reads from the old part. If no line can be changed, detach where it was made.
    """
    first = first_use(context, context.reuse.later)
    if first is None:
        yield from _where_made(context)
        return
    yield first
    every = _every_use(context)
    if every is not None:
        yield every


def first_use(context: CuttingContext, call: BackwardCall) -> Cut | None:
    """The first line that makes a part of a call's own and can read the carrier detached."""
    edges = context.later_edges()
    cuts = (
        _read_detached(context, place, context.setting.carrier_names, edges) for place in context.reuse.uses_by(call)
    )
    return next((cut for cut in cuts if cut is not None), None)


def _every_use(context: CuttingContext) -> Cut | None:
    edges = context.later_edges()
    parts: list[Cut] = []
    for place in context.reuse.uses_by(context.reuse.later):
        into = [one for one in edges.read_at(place) if one.tensor in context.reuse.boundary]
        part = _read_detached(context, place, sorted({name for one in into for name in one.names}), edges)
        if part is not None and part not in parts:
            parts.append(part)
    parts.sort(key=lambda one: one.at or (0, 0))
    several = [(one.at, one.edit) for one in parts if one.at is not None]
    joined = fitting.joined(context.cells, several) if several else None
    if joined is None:
        return None
    return Cut(
        " ".join(one.sentence for one in parts),
        *joined,
        frozenset[int]().union(*(one.edges for one in parts)),
        frozenset[int]().union(*(one.before for one in parts)),
    )


def _read_detached(context: CuttingContext, place: Place, paths: Collection[str], edges: NamedEdges) -> Cut | None:
    """Have a line read these tensors detached."""
    old = new = context.setting.text_of(place)
    read, done = list[str](), set[str]()
    for written, path in _as_written(context, paths, place):
        edit = edits.with_name(new, written, f"{written}.detach()")
        if edit:
            new = edit[-1].removeprefix("+ ")
            read.append(f"`{written}.detach()`")
            done.add(path)
    if not read:
        return None
    sentence = f"Use {' and '.join(read)} in {short(old)} ({where(place)})."
    earlier = context.earlier_edges
    before = edges_of(earlier.read_at(place), done) if earlier is not None else frozenset[int]()
    return Cut(sentence, at(place), edits.replaced(old, new), edges_of(edges.read_at(place), done), before)


def _as_written(context: CuttingContext, paths: Collection[str], place: Place) -> Iterator[tuple[str, str]]:
    """Paths as a line may write them, each with the path; in a method, `gan.fake` may be called `self.fake`."""
    method = source.method_at(context.setting.text_of_cell(place.cell), place.line or 0)
    for path in filter(is_code, map(local, paths)):
        yield path, path
        if method is not None and "." in path:
            yield "self." + path.split(".", 1)[1], path


def _where_made(context: CuttingContext) -> Iterator[Cut]:
    setting, made = context.setting, context.reuse.carrier_place
    paths = setting.carrier_names
    spot = outer_at(made) if context.reuse.carrier_paths else at(made)
    lines = context.detaching.lines(_assigned_at(context, spot, paths) or paths)
    if not lines or made is None or spot is None or not runs_between(setting, spot, made):
        return
    if source.loop_at(context.text(spot), spot[1]) is not None:
        return  # each pass made one, and the next began from it
    sentence = f"Cut the graph where it was made: {short(lines[0])} after In[{spot[0]}], line {spot[1]}."
    gone, earlier = edges_of(context.later_edges().after(spot), paths), context.earlier_edges
    before = edges_of(earlier.after(spot), paths) if earlier is not None else frozenset[int]()
    edit = edits.after(context.text(spot), spot[1], lines)
    yield Cut(sentence, spot, edit, gone, before, context.detaching.sure(paths))


def _assigned_at(context: CuttingContext, spot: fitting.Spot | None, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Of several paths to one tensor those that the line assigns which made it: the others got it from these."""
    found = source.statements_at(context.text(spot), spot[1]) if spot is not None else []
    assigned = set(source.targets(found[-1])) if found else set[str]()
    return tuple(path for path in paths if local(path) in assigned)
