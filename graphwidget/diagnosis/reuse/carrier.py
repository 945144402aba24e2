"""The tensor through which a later call reached the old part: its name, and where it was made.

Of several candidates it is the one on the path to the node that failed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from graphwidget.diagnosis.reuse.graph_paths import Tensor, path_to_failure
from graphwidget.diagnosis.reuse.passes.filled_before import filled_before
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.reuse.stored import stored_at
from graphwidget.diagnosis.reuse.writes_between import writes_between
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import at, spoken
from graphwidget.model import Place, Write, in_order

__all__ = ["Carrier"]


@dataclass(frozen=True)
class Carrier:
    """The carrier of a reuse."""

    setting: Setting

    @cached_property
    def to_failure(self) -> tuple[Tensor, ...]:
        """The path from the later call's root to the node at which it failed; empty where that is unknown."""
        return path_to_failure(self.setting.reuse.graph, self.setting.reuse.later)

    @cached_property
    def path(self) -> str | None:
        """Its path: of the known ones, one nearest to the old part. What is made of a filled tensor is no carrier."""
        if self._filled:
            return next(iter(self._filled))
        found = (self._nearest(paths) for paths in self._known)
        leading = (path for paths in self._known for path in paths if self._leads(path))
        return next(filter(None, found), None) or next(leading, None) or self._nearest(self._older_names)

    @property
    def name(self) -> str:
        """What to call it: by its name, else by the old part's node."""
        if self.path is not None:
            return spoken(self.path)
        border = self.to_failure[self._entry][:1] if self._entry >= 0 else self.setting.reuse.boundary
        return self.setting.reuse.graph.name_of(border[0]) if border else "the shared part"

    @property
    def built_at(self) -> Place | None:
        """Where it was made; if that is not known, where the path to the failure enters the old part."""
        return self._bound_at(self._made_at)

    @property
    def written(self) -> Write | None:
        """The write that gave it the old part's graph, in a tensor that is older; None: it was made with its graph."""
        filled = self._filled.get(self.path) if self.path is not None else None
        return filled or next((write for write in self._writes if self.path in write.paths), None)

    @property
    def _made_at(self) -> Place | None:
        """The line that made its node, in whatever function that was."""
        reuse = self.setting.reuse
        if self.written is not None:
            return self.written.place
        position = self._position(self.path) if self.path is not None else None
        place = reuse.graph.place_of(self.to_failure[position][0]) if position is not None else None
        return place if place is not None and place.cell is not None else reuse.carrier_place

    @cached_property
    def stored_at(self) -> Place | None:
        """The line that keeps it, where it is known."""
        paths = [self.path] if self.path is not None else []
        return stored_at(self.setting.reuse.record, paths, self._made_at)

    def _bound_at(self, made: Place | None) -> Place | None:
        """Where what a line made got its name, if it was given it by a function or a cell that the line was called by.

        A model that computed it knows nothing of that.
        """
        if made is None or self.path is None:
            return made
        if not local(self.path).isidentifier():
            stored = at(self.stored_at)
            frames = (one for one in (made, *reversed(made.stack)) if stored is not None and at(one) == stored)
            return next((replace(one, iteration=made.iteration) for one in frames), made)
        function, name = self.path.partition(":")[0] if ":" in self.path else "", local(self.path)
        for one in (made, *reversed(made.stack)):
            text = self.setting.text_of_cell(one.cell)
            if one.line is not None and (one.function or "").rpartition(".")[2] in (function, *_sharing(text, name)):
                around = source.statements_at(text, one.line)[-1:]
                if any(name in (*source.targets(each), *_of_loop(each)) for each in around):
                    return replace(one, iteration=made.iteration)
        return made

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], ...]:
        """Its possible names, the best ones first."""
        setting, reuse = self.setting, self.setting.reuse
        place = reuse.later.place
        here_at = (place.cell, place.line) if setting.in_loop and place.cell is not None and place.line else None
        border = self.to_failure[self._entry] if self._entry >= 0 else None
        now = (owner.path for owner in reuse.graph.owners if (owner.node, owner.output_nr) == border)
        here, lasting = _written(now), setting.lasting(setting.carrier_names, here_at)
        still = tuple(path for path in lasting if path in here)
        written = _written(path for write in self._writes[:1] for path in write.paths)
        handed = _written(o.path for o in reuse.graph.owners if o.node in reuse.handed_on and o.kind != "out")
        return still, here, written, handed, lasting, reuse.unrun_paths, setting.carrier_names

    @cached_property
    def _filled(self) -> dict[str, Write]:
        """The tensors that were filled before the passes, each with its last write; first the one that failed."""
        failed = [index for index, _ in self.to_failure]
        found = sorted(filled_before(self.setting), key=lambda one: set(failed).isdisjoint(one.nodes))
        return {one.path: one.writes[0] for one in found}

    @cached_property
    def _writes(self) -> list[Write]:
        """The writes after the earlier call that lead to the old part, the one nearest to it first."""
        return list(writes_between(self.setting.reuse, self.to_failure))

    @property
    def _older_names(self) -> tuple[str, ...]:
        """Names of tensors on the path, without its root, that are older than the call that freed."""
        graph, freed_after = self.setting.reuse.graph, self.setting.reuse.earlier.newest_seq
        old = {tensor for tensor in self.to_failure[1:] if graph.seq[tensor[0]] < freed_after}
        return _written(path for path, held in self._held.items() if not old.isdisjoint(held))

    @cached_property
    def _held(self) -> dict[str, set[Tensor]]:
        """The tensors that each name holds, or held at the earlier call."""
        held: dict[str, set[Tensor]] = {}
        here = self.setting.reuse.graph
        for graph in filter(None, (here, self.setting.reuse.earlier.graph)):
            for owner in graph.owners:
                held.setdefault(owner.path, set()).add((here.index_of.get(graph.uid[owner.node], -1), owner.output_nr))
        return held

    @cached_property
    def _entry(self) -> int:
        """Position on the path at which the old part begins; -1: unknown."""
        old = self.setting.reuse.old
        return next((i for i, (index, _) in enumerate(self.to_failure) if index in old), -1)

    def _nearest(self, names: Iterable[str]) -> str | None:
        """The name of the tensor nearest to the old part; None: none is on the path."""
        nearest = {name: i for name in names if (i := self._position(name)) is not None}
        return max(nearest, key=nearest.__getitem__, default=None)

    def _position(self, name: str) -> int | None:
        """The last position on the path, down to the old part, of a tensor with this name."""
        held = self._held.get(name, ())
        return next((i for i in range(self._entry, -1, -1) if self.to_failure[i] in held), None)

    def _leads(self, name: str) -> bool:
        """Whether the tensor with a name leads to the failing node, as far as that is known."""
        reuse = self.setting.reuse
        if not reuse.carrier_paths and self._entry >= 0:
            # The names are the targets of the line that made the first node of the old part, or what leads there.
            entering = self.to_failure[: self._entry + 1]
            return any(reuse.graph.place_of(index) == reuse.carrier_place for index, _ in entering)
        held = self._held.get(name)
        return held is None or not self.to_failure or any(index in self._leading for index, _ in held)

    @cached_property
    def _leading(self) -> set[int]:
        return self.setting.reuse.leading_to(self.to_failure[-1][:1])


def _sharing(text: str, name: str) -> list[str]:
    """The functions that bind a variable of the code around them: by ``global`` or ``nonlocal``."""
    return [one.name for one in source.sharing_in(text, name)]


def _of_loop(statement: ast.stmt) -> set[str]:
    """The variables of a `for`."""
    return source.names_in(statement.target) if isinstance(statement, ast.For) else set()


def _written(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that a program can write."""
    return in_order({path for path in paths if is_code(local(path))})
