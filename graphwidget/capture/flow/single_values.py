"""What becomes of single values that are computed with a graph, as a loss or a part of one is.

Two things that go wrong in silence can be measured here: a value from which nothing is computed, and a part of a loss
that has left the graph before it was added.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.utils.weak import WeakTensorKeyDictionary

from graphwidget.capture.flow.cuts import Behind, Cut, as_measured
from graphwidget.capture.flow.operands import leaves_behind
from graphwidget.model import MeasuredCut, MeasuredTerm, TextLine

__all__ = ["SingleValues"]

_ADDING = ("add", "radd", "iadd", "sub", "rsub", "isub")
# Through these a constant part of a loss stays one.
_SCALING = (
    *_ADDING,
    "mul",
    "rmul",
    "imul",
    "div",
    "truediv",
    "itruediv",
    "neg",
    "sum",
    "mean",
    "squeeze",
    "view",
    "to",
)
_MOST_LOOKS = 30  # times that the leaves behind the values of a line are looked up
_MOST_LINES = 500

Lines = Callable[[], tuple[TextLine, ...]]


class _Term:
    """A line that adds single values, of which some have no graph, and the cuts behind the first of these.

    The line may add up more than two. `whole`: once all of them had a graph. `numbers`: the places of those without
    one in the sum, from 0; -1: not known.
    """

    def __init__(self) -> None:
        self.cuts: tuple[Cut, ...] = ()
        self.used = self._whole = self._lacks = False
        self.numbers: set[int] = set()
        self._count = 0  # of additions of the sum that the line is at
        self._last: weakref.ref[Any] | None = None  # the result of the last one

    @property
    def whole(self) -> bool:
        return self._whole or (self._last is not None and not self._lacks)

    def add(self, given: Sequence[Any], result: Any, lost: Any = None) -> None:
        """The line has added two values; `lost`: the one that had no graph."""
        on_the_left = self._last is not None and given[0] is self._last()
        if not (on_the_left or (self._last is not None and given[1] is self._last())):
            self._whole, self._lacks, self._count = self.whole, False, 0
        self._count += 1
        if lost is not None:
            self._lacks = True
            begins = self._count == 1
            self.numbers.add(self._count if lost is given[1] and (begins or on_the_left) else 0 if begins else -1)
        self._last = weakref.ref(result)


class SingleValues:
    """The single values of a program.

    Parameters
    ----------
    lines
        The lines of the user's own code that are running, the innermost first.
    look
        Looks up the leaves behind values, for a cut.
    behind
        What a value without a graph was made from.
    """

    def __init__(self, lines: Lines, look: Callable[[Cut, list[Any]], None], behind: Callable[[Any], Behind]) -> None:
        self._lines, self._look, self._behind = lines, look, behind
        self._made = WeakTensorKeyDictionary()  # value -> the last operation before it, as a cut that may be no end
        self._ends: dict[tuple[tuple[TextLine, ...], frozenset[int]], Cut] = {}
        self._looks: dict[tuple[TextLine, ...], int] = {}
        self._in = WeakTensorKeyDictionary()  # value -> the terms in it
        self._terms: dict[tuple[TextLine, ...], _Term] = {}
        self._detached = WeakTensorKeyDictionary()  # value without a graph -> the same with one

    def operation(self, by: str, given: Sequence[Any], results: Iterable[Any]) -> None:
        """An operation has run."""
        plain = by.strip("_")
        if plain in ("detach", "data") and given:
            self._detached.update({one: weakref.ref(given[0]) for one in results if one.numel() == 1})
        with_graph = [one for one in results if one.requires_grad and one.grad_fn is not None]
        if not with_graph:
            return
        self._use(given)
        for one in with_graph:
            if one.numel() == 1:
                self._note(plain, given, one)

    def called(self, outputs: Iterable[Any]) -> None:
        """A backward call on these begins."""
        roots = list(outputs)
        self._use(roots)
        for one in roots:
            for term in self._in.get(one, ()):
                term.used = True

    def _use(self, values: Iterable[Any]) -> None:
        for one in values:
            end = self._made.get(one)
            if end is not None:
                end.used = True

    def _note(self, by: str, given: Sequence[Any], result: Any) -> None:
        lines = self._lines()
        if by in _ADDING and len(given) == 2:
            self._note_term(lines, given, result)
        if by in _SCALING:
            self._put_in(result, (term for one in given for term in self._in.get(one, ())))
        count = self._looks.get(lines, 0)
        if not lines or count >= _MOST_LOOKS or len(self._looks) >= _MOST_LINES:
            return
        self._looks[lines] = count + 1
        key = (lines, frozenset(map(id, leaves_behind([result]))))
        end = self._ends.get(key)
        if end is None:
            end = self._ends[key] = Cut(lines, by, True, False)
            self._look(end, [result])
        self._made[result] = end

    def _note_term(self, lines: tuple[TextLine, ...], given: Sequence[Any], result: Any) -> None:
        lost = [one for one in given if not one.requires_grad]
        others = [one for one in given if one.requires_grad]
        if not lines or len(self._terms) >= _MOST_LINES:
            return
        if not lost:
            self._terms.setdefault(lines, _Term()).add(given, result)
            return
        cuts = self._behind(lost[0]).cuts if others and lost[0].numel() == others[0].numel() == 1 else ()
        same = self._detached.get(lost[0], lambda: None)()
        if not cuts or same is others[0]:
            return
        known = self._terms.setdefault(lines, _Term())
        known.cuts = known.cuts or cuts
        known.add(given, result, lost[0])
        self._put_in(result, (known,))

    def _put_in(self, result: Any, terms: Iterable[_Term]) -> None:
        found = tuple(dict.fromkeys((*self._in.get(result, ()), *terms)))
        if found:
            self._in[result] = found

    def stepped(self, place: Callable[[Cut, Any], None]) -> None:
        """An optimizer has made its first step: `place` notes which of its parameters are among the leaves of a cut."""
        for end in self._ends.values():
            for ref in end.leaves.values():
                place(end, ref())

    def ends(self) -> tuple[MeasuredCut, ...]:
        """The last operations before values from which nothing was computed, in their order."""
        return tuple(as_measured(one, set()) for one in self._ends.values() if not one.used)

    def terms(self) -> tuple[MeasuredTerm, ...]:
        """The lines that added a constant to what became the root of a call."""
        found = {lines: term for lines, term in self._terms.items() if term.used and not term.whole}
        return tuple(
            MeasuredTerm(
                lines,
                tuple(as_measured(cut, set()) for cut in term.cuts),
                next(iter(term.numbers)) if len(term.numbers) == 1 else -1,
            )
            for lines, term in found.items()
        )
