"""What a diagnosis examined, and what it left open."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.records import BackwardCall, CellRun

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Numbers of what was examined, and what of it has no finding.

    Attributes
    ----------
    findings, calls, raised
        How many there are. `remembered` of the calls are recorded in full: of the other calls only the start is known.
    refused
        How many cells raised in a call of `backward` or `autograd.grad` that is not in `calls`: it was refused at once.
    unexplained
        Calls that raised and have no finding; of equal calls the first.
    open_cells
        Cells without a finding that were refused a call, or raised outside of any a message that speaks of autograd.
    other_cells
        Cells that raised something else, outside of any backward call.
    """

    findings: int = 0
    calls: int = 0
    remembered: int = 0
    raised: int = 0
    refused: int = 0
    unexplained: tuple[BackwardCall, ...] = ()
    open_cells: tuple[CellRun, ...] = ()
    other_cells: tuple[CellRun, ...] = ()
