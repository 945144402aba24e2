"""Fixes, and what came of running a program with one in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphwidget.model.edits import TextEdit
from graphwidget.model.graph.parts import spot_text

__all__ = ["Fix", "Trial"]


@dataclass(frozen=True)
class Trial:
    """A fix that has been run, or that could not be.

    Attributes
    ----------
    ok
        True: the program ran, and did what it should. False: it did not. None: the trial decided nothing.
    why
        What happened, as the end of a sentence: ``ran 3 further passes in 2.1 s``.
    seconds
        How long the program ran.
    passes
        How many further backward calls ran, behind the one that the finding is about.
    choice
        The fix changes what the program means (what trains, or what counts as an error): that it runs does not make
        it right, so it is never called verified for that.
    partly
        The call that had failed succeeded, and later the program failed in another way: there may be a second mistake.

    Examples
    --------
    >>> from graphwidget.model import Trial
    >>> Trial(True, "ran 3 further passes in 2.1 s", 2.1, 3).sentence
    'Tried: ran 3 further passes in 2.1 s.'
    >>> Trial(False, "raised NameError: h").sentence
    'Tried, and it failed: raised NameError: h.'
    """

    ok: bool | None
    why: str
    seconds: float = 0.0
    passes: int = 0
    choice: bool = False
    partly: bool = False

    @property
    def decides(self) -> bool:
        """Whether the trial, and no simulation, says if the fix is verified."""
        return self.ok is False or self.passed

    @property
    def passed(self) -> bool:
        """Whether the fix is verified because of the trial."""
        return self.ok is True and not self.choice

    @property
    def sentence(self) -> str:
        """For people."""
        end = "" if self.why.endswith((".", "!", "?")) else "."
        if self.ok is None:
            return f"Not tried to the end: {self.why}{end}"
        if self.partly:
            return f"Tried: {self.why}{end}"
        if not self.ok:
            return f"Tried, and it failed: {self.why}{end}"
        mine = " Whether it is meant so, only you can say." if self.choice else ""
        return f"Tried: {self.why}{end}{mine}"


@dataclass(frozen=True)
class Fix:
    """A change of the program that helps. `id` says its kind, such as ``"retain_graph_earlier_call"`` or ``"detach"``.

    `edits` are what it changes in the texts of the cells, `at` the (cell, line) of the first, and `edit` shows them as
    lines of code with "+ ", "- " or "  " in front; an advice has none. A new statement behind all cells (``del out``)
    is in `edit` alone.

    `verified`: a simulation of it succeeded (where no graph was built, the text leaves no doubt), and its edit fits
    the program; or the program ran with it: `tried`. `status` says which.

    `by_hand`: no line of the program is to be changed for it (a button is pressed, a cell is run again).
    `starves`: trained leaves that would get no gradient any more, or none from the call that failed.
    `choice`: it changes what the program means, beyond what its id says. It is never verified, however well it runs.

    Examples
    --------
    >>> from graphwidget import Fix
    >>> fix = Fix("detach", "detach `h` where it is carried over", verified=True, at=(2, 4))
    >>> fix.at  # cell and line
    (2, 4)
    """

    id: str
    text: str
    verified: bool = False
    at: tuple[int, int] | None = None  # (cell, line)
    price: str = ""
    edit: tuple[str, ...] = ()
    by_hand: bool = False
    starves: tuple[str, ...] = ()
    choice: bool = False
    edits: tuple[TextEdit, ...] = ()
    tried: Trial | None = None

    @property
    def status(self) -> Literal["advice", "simulated", "tried"]:
        """How it is known that the fix helps, or does not."""
        if self.tried is not None and self.tried.decides:
            return "tried"
        return "simulated" if self.verified else "advice"

    @property
    def failed(self) -> bool:
        """Whether it was tried, and did not help at all."""
        return self.tried is not None and self.tried.ok is False and not self.tried.partly

    @property
    def by_machine(self) -> bool:
        """Whether a program can make the change in cells: an edit, one cell more, or one more run of a cell."""
        again = self.id == "rerun_forward_cell" and self.at is not None
        return bool(self.edits) or again or bool(self.edit and self.at is None)

    @property
    def spot(self) -> str:
        """Where it changes the program, as text; empty where it changes nothing."""
        if self.at is not None:
            return spot_text(*self.at)
        first = self.edits[0] if self.edits else None
        return spot_text(None, first.start[0], first.file) if first is not None and first.file is not None else ""
