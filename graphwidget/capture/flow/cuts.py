"""Cuts: places and operations at which values leave the graph, and what values without a graph were made from."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from graphwidget.capture.flow.twins import twins_now
from graphwidget.model import MeasuredCut, TextLine
from graphwidget.torch_internals.checkpoints import in_reentrant_checkpoint

__all__ = ["MOST_BEHIND", "Behind", "Cut", "as_measured", "last_first", "taken"]

MOST_BEHIND = 64  # cuts that one value remembers


@dataclass(eq=False)
class Cut:
    """A place and an operation. `leaves`: by their ids. `into`: it wrote in place into something that stays.

    `switched`: the lines that had switched grad mode off.
    """

    lines: tuple[TextLine, ...]
    by: str
    grad_mode: bool
    into: bool
    switched: tuple[TextLine, ...] = ()
    leaves: dict[int, weakref.ref[Any]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    copies: dict[int, str] = field(default_factory=dict)
    positions: set[tuple[int, int]] = field(default_factory=set)
    used: bool | None = False
    chosen: bool = False
    times: int = 0
    last: int = 0  # the higher, the later it ran last
    twins: tuple[tuple[str, str], ...] = ()  # as in `MeasuredCut.twins`
    used_at: set[TextLine] = field(default_factory=set)
    checkpointed: bool = False

    def run_in(self, frame: FrameType) -> None:
        """Note what is running around it."""
        self.twins = twins_now(frame)
        self.checkpointed = not self.grad_mode and in_reentrant_checkpoint(frame)

    def used_by(self, lines: tuple[TextLine, ...]) -> None:
        """Note that a call on these lines began at what was computed from it."""
        self.used = True
        self.used_at.update(lines[:1])


@dataclass(frozen=True)
class Behind:
    """What a value without a graph was made from: cuts, in their order, and frozen parameters."""

    cuts: tuple[Cut, ...] = ()
    frozen: tuple[weakref.ref[Any], ...] = ()

    def __or__(self, other: Behind) -> Behind:
        if not other.cuts and not other.frozen:
            return self
        cuts = tuple(dict.fromkeys((*self.cuts, *other.cuts)))[-MOST_BEHIND:]
        return Behind(cuts, tuple(dict.fromkeys((*self.frozen, *other.frozen))))


def taken(cuts: Iterable[Cut]) -> None:
    """Note that numbers were taken from what cuts returned: where these go nobody sees."""
    for cut in cuts:
        cut.used = cut.used or None


def last_first(cuts: Iterable[Cut]) -> list[Cut]:
    """The cuts that may be meant, the last one first.

    What a loop writes into something that stays is seldom the line that was meant to pass a gradient on.
    """
    return sorted(cuts, key=lambda cut: (cut.into, -cut.last))


def as_measured(cut: Cut, wanted: set[int], inputs: Iterable[Any] = ()) -> MeasuredCut:
    alive = [one for ref in cut.leaves.values() if (one := ref()) is not None]
    asked = tuple(at for at, given in enumerate(inputs) if any(one is given for one in alive))
    known, copies = (tuple(sorted(filter(None, one.values()))) for one in (cut.names, cut.copies))
    trained = any(id(one) in wanted for one in alive)
    return MeasuredCut(
        cut.lines,
        cut.by,
        cut.grad_mode,
        known,
        trained,
        cut.switched,
        tuple(sorted(cut.positions)),
        cut.used,
        copies,
        cut.chosen,
        asked,
        cut.twins,
        tuple(sorted(cut.used_at, key=repr)),
        cut.checkpointed,
    )
