"""Tensors that lines filled in place before a loop whose passes read them: the storage of a rollout, a memory bank.

What a pass makes of one, by an index or ``flatten``, is often held by a local variable of a function that is over. The
tensor that stays, and the lines that wrote a graph into it, are what the passes share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, loops_of
from graphwidget.model import Kind, Place, Write, in_order

__all__ = ["Filled", "filled_before"]


@dataclass(frozen=True)
class Filled:
    """One of the tensors.

    Attributes
    ----------
    path
        Its name.
    nodes
        The nodes (indices) that the writes made, that of the last write first.
    writes
        The writes that brought a graph into it, in the same order.
    """

    path: str
    nodes: tuple[int, ...]
    writes: tuple[Write, ...]


def filled_before(setting: Setting) -> tuple[Filled, ...]:
    """The tensors through which alone the later call reaches the old part; empty: it reaches a part otherwise.

    They were filled before the innermost loop around both calls: what a pass writes for itself has to keep its graph.
    """
    reuse = setting.reuse
    if not setting.in_loop or reuse.same_root:
        return ()
    search = _Search(setting)
    if not search.by:
        return ()
    found = dict[int, Filled]()
    for index in reuse.boundary:
        behind = search.behind(index)
        if behind is None:
            return ()
        found.update(behind)
    return tuple(found[index] for index in sorted(found))


class _Search:
    """The search for them. `by`: by the number of a node that a write made, that write."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.graph = setting, setting.reuse.graph
        self.by = {number: write for write in setting.reuse.record.writes for number in write.made}

    def behind(self, index: int) -> dict[int, Filled] | None:
        """The filled tensors of which a node was made, by their nodes; None: it was made of anything else, too."""
        work, seen, found = [index], {index}, dict[int, Filled]()
        while work:
            one = work.pop()
            here = self._filled(one)
            if here is not None:
                found[one] = here
                continue
            following = self.graph.next(one)
            if not following or one in self.graph.leaves or self.graph.kind[one] == Kind.ACCUMULATE:
                return None
            work += [to for to in following if to not in seen]
            seen.update(following)
        return found

    def _filled(self, index: int) -> Filled | None:
        """The tensor that a write made a node for, if it has a name, and no pass of the calls wrote to it."""
        write = self.by.get(self.graph.seq[index])
        if write is None or not write.storages:
            return None
        owners = (one.path for one in self.graph.owners if one.node == index and one.kind != "out")
        names = in_order({path for path in owners if is_code(local(path))})
        if not names:
            return None
        nodes = self._chain(index, set(write.storages))
        inside = set(nodes)
        writes = [self.by[self.graph.seq[one]] for one in nodes if self._brings_a_graph(one, inside)]
        if not writes or any(self._is_in_passes(one.place) for one in writes):
            return None
        attributes = [name for name in names if not local(name).isidentifier()]
        return Filled((*attributes, *names)[0], tuple(nodes), tuple(writes))

    def _chain(self, index: int, storages: set[int]) -> list[int]:
        """The nodes of all writes to the same memory, one behind the other."""
        found, work = {index}, [index]
        for one in work:
            for to in self.graph.next(one):
                write = self.by.get(self.graph.seq[to])
                if to not in found and write is not None and not storages.isdisjoint(write.storages):
                    found.add(to)
                    work.append(to)
        return work

    def _brings_a_graph(self, index: int, chain: set[int]) -> bool:
        """Whether what was written had a graph: the node leads to more than what was there before."""
        return any(to not in chain for to in self.graph.next(index))

    def _is_in_passes(self, place: Place) -> bool:
        """Whether a line, or one that called it, stands in the innermost loop around the calls."""
        frames = [at(one) for one in (*place.stack, place)]
        return any(
            cell == spot[0] and first <= spot[1] <= last for cell, first, last in self._loop for spot in frames if spot
        )

    @property
    def _loop(self) -> Iterator[tuple[int | None, int, int]]:
        """The cell of the innermost loop around the later call, its first line and its last one."""
        later = self.setting.reuse.later.place
        loops = loops_of(self.setting.reuse.record, later)
        cells = [one.cell for one in (*later.stack, later)][-len(loops) :]
        for cell, own in reversed([*zip(cells, loops)]):
            if own:
                yield cell, own[-1].lineno, own[-1].end_lineno or own[-1].lineno
                return
