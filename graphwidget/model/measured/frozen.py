"""What was frozen, or came too late for its optimizer, measured while the program ran once more."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.measured.text_line import TextLine

__all__ = ["FrozenModule", "IdleModule", "MeasuredFrozen", "MeasuredIdle", "MeasuredJoined"]


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


@dataclass(frozen=True, slots=True)
class MeasuredJoined:
    """Parameters that came into a module of which an optimizer had taken everything, and that none has got since.

    Attributes
    ----------
    lines
        The lines that put them there, the innermost first.
    made
        The lines that had made the optimizer.
    stepped
        The lines of its first step that found a gradient.
    paths
        Their names, as far as they have some.
    replacing
        Whether the optimizer holds others that the modules had before, and have no more.
    """

    lines: tuple[TextLine, ...]
    made: tuple[TextLine, ...]
    stepped: tuple[TextLine, ...]
    paths: tuple[str, ...]
    replacing: bool = False


@dataclass(frozen=True, slots=True)
class IdleModule:
    """A module that is trained and was never called.

    `path`: what running code calls it. `instead`: the attribute beside it that was used last, and that takes the same;
    empty: none is known.
    """

    path: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredIdle:
    """What optimizers hold and what requires grad, where no operation was given any of it.

    Attributes
    ----------
    paths
        Names of these parameters, as far as they have some.
    count
        How many there are.
    modules
        The outermost modules that have no other parameters; none where one was called, or they have not all.
    frozen
        Names of the parameters that the root of the call was computed from, and that do not require grad, in the order
        of their first use.
    lines
        The lines that froze them, the innermost first; none: they were made so.
    """

    paths: tuple[str, ...]
    count: int
    modules: tuple[IdleModule, ...] = ()
    frozen: tuple[str, ...] = ()
    lines: tuple[TextLine, ...] = ()
