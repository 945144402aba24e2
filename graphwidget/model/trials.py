"""What came of running a program again with a fix in it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Trial"]


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

    @property
    def decides(self) -> bool:
        """Whether the trial, and no simulation, says if the fix is verified."""
        return self.ok is False or (self.ok is True and not self.choice)

    @property
    def sentence(self) -> str:
        """For people."""
        end = "" if self.why.endswith((".", "!", "?")) else "."
        if self.ok is None:
            return f"Not tried to the end: {self.why}{end}"
        if not self.ok:
            return f"Tried, and it failed: {self.why}{end}"
        mine = " Whether it is meant so, only you can say." if self.choice else ""
        return f"Tried: {self.why}{end}{mine}"
