"""The cuts for a reuse, in the order in which to try them, and their prices.

If each pass carries tensors over to the next one, the cut is after a call, before the next pass starts from them. If
they were made once, they are read detached where they are used, or cut where they were made. Which cut works is
decided elsewhere: a fix simulates each on the graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphwidget.diagnosis.fixes.cuts.at_use import at_use, first_use
from graphwidget.diagnosis.fixes.cuts.at_write import filled_detached
from graphwidget.diagnosis.fixes.cuts.between_passes import between_passes
from graphwidget.diagnosis.fixes.cuts.cut import Cut, CuttingContext
from graphwidget.diagnosis.fixes.cuts.lost import mended
from graphwidget.diagnosis.reuse.passes.filled_before import filled_before
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.wording import names, no_gradient, spoken
from graphwidget.engine.what_if import cut, reachable

__all__ = ["Cuts"]


class Cuts:
    """The cuts for one setting."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.reuse = setting.reuse
        self._context = CuttingContext(setting)

    def for_later(self) -> Iterator[Cut]:
        """Cuts after which the later call does not reach the old part."""
        yield from mended(self._context)
        yield from filled_detached(self._context)
        yield from between_passes(self._context) if self._carried else at_use(self._context)

    def for_earlier(self) -> Cut | None:
        """The cut after which the earlier call does not reach the shared part."""
        return first_use(self._context, self.reuse.earlier) if self._context.earlier_edges is not None else None

    def price(self, made: Cut) -> str:
        """The gradients that leaves lose by a cut after which the later call does not reach the old part."""
        setting, reuse, before = self.setting, self.reuse, self.reuse.earlier.graph
        if not reuse.exclusive_leaves:
            return self._lost_through(made)
        by_neither = set[int]()
        if before is not None:
            still = reachable(cut(before, made.before), (root.node for root in reuse.earlier.roots))
            uids = {before.uid[index] for index in still}
            by_neither = {index for index in reuse.exclusive_leaves if reuse.graph.uid[index] not in uids}
        lost = ((by_neither, "from either call"), (reuse.exclusive_leaves - by_neither, "from this call"))
        return "Then " + " ".join(no_gradient(setting.leaf_names(some), why) for some, why in lost if some)

    def _lost_through(self, made: Cut) -> str:
        """The gradients lost by leaves that the later call still reaches on another path."""
        setting, graph, paths = self.setting, self.reuse.graph, self._context.paths
        below = reachable(graph, {graph.edge_to[edge] for edge in made.edges} or self.reuse.boundary)
        leaves = setting.leaf_names(self.reuse.reached & below & set(graph.leaves))
        filled = filled_before(setting)
        if filled:
            why = f"through {names(tuple(spoken(one.path) for one in filled))}"
        elif self._carried:
            why = "from earlier iterations" if setting.in_loop else "from earlier runs"
        else:
            why = f"through `{spoken(paths[0])}`" if paths else "through the old part"
        return f"Then {no_gradient(leaves, why)}" if leaves else ""

    @property
    def _carried(self) -> bool:
        """Whether the carrier comes from an earlier pass through the code that makes it."""
        made, later = self.reuse.carrier_place, self.reuse.later.place
        if self.setting.carried_state:
            return True
        if self.setting.made_before_the_inner_loop:
            return False
        if made is None or made.run != later.run or made.iteration is None or not self.setting.repeated:
            return False
        run, line = self.setting.run_of(later), later.outer_line
        loop = source.loop_at(run.source, line) if run is not None and line is not None else None
        return loop is not None and loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)
