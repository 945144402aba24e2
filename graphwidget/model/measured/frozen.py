"""What was frozen, measured while the program ran once more."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.measured.text_line import TextLine

__all__ = ["FrozenModule", "MeasuredFrozen"]


@dataclass(frozen=True, slots=True)
class FrozenModule:
    """A module of which parameters that should be trained do not require grad.

    `name` is a variable of the code that calls backward. `lines`: where that was switched off, the innermost first.
    """

    name: str
    lines: tuple[TextLine, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredFrozen:
    """Parameters that required grad when their optimizer was made, and that a line has frozen for good.

    The optimizer was made of what required grad: the module around all that it holds has frozen parameters, which no
    optimizer holds. Those here were still computed with at the last steps.

    Attributes
    ----------
    lines
        The lines that froze them, the innermost first.
    stepped
        The lines of the first step that found them frozen, the innermost first.
    paths
        Their names, as far as they have some.
    steps
        How many of the last steps found them frozen.
    trained
        How many steps before found a gradient.
    alone
        Whether all parameters of the optimizer that are frozen now are these.
    """

    lines: tuple[TextLine, ...]
    stepped: tuple[TextLine, ...]
    paths: tuple[str, ...]
    steps: int
    trained: int = 0
    alone: bool = True
