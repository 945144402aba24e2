"""What somebody said that a backward call would do, and how right it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["Answer", "Prediction"]

_MOST_NAMES = 40  # of nodes or slots that a question lists
_MOST_ANSWERS = 40  # that an explanation spells out


@dataclass(frozen=True, slots=True)
class Answer:
    """One thing that was predicted, or that should have been.

    Attributes
    ----------
    about
        A slot (``MulBackward0.self``), or what was said of the call as a whole: ``fails``, ``fails_at``, ``frees``.
    right
        None: it cannot be known.
    text
        One sentence: what holds, and why.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> graphwidget.predict(loss, fails=True).answers
    (Answer(about='fails', right=False, text='Wrong: loss.backward() would not raise: each node ...'),)
    """

    about: str
    right: bool | None
    text: str


@dataclass(frozen=True)
class Prediction:
    """What was predicted of a backward call, compared with its forecast, or after `check` with what it did.

    It is true in an `if` or an `assert` if all of it that can be known is right.

    Attributes
    ----------
    call
        The call as it is written, such as ``loss.backward(retain_graph=True)``.
    nodes, slots
        The names that a prediction can use, in the order in which the nodes were made. Of several nodes of one name
        each has its number: ``MulBackward0[0]``, ``MulBackward0[1]``.
    answers
        What is right and what is wrong: first on whether the call fails, then slot by slot.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = (w * w).sum()
    >>> said = graphwidget.predict(loss, fails=False, frees=["MulBackward0.self"])
    >>> said
    <Prediction of loss.backward(): 2 of 3 right>
    >>> said.slots, bool(said)
    (('MulBackward0.other', 'MulBackward0.self'), False)
    """

    call: str
    nodes: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    _checked: Callable[[], Prediction] | None = field(default=None, repr=False, compare=False)

    @property
    def score(self) -> float | None:
        """The right answers divided by the right and the wrong ones; None: nothing was predicted that can be known.

        What was said of `fails` is one answer, and where it would fail is a second one if it does. Each slot that was
        named is one, and each that was not named although the call frees it is a wrong one. If no slot was named, and
        none is freed, that is one right answer. What cannot be known does not count.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> loss = w.exp().sum()
        >>> graphwidget.predict(loss, fails=True, frees=["ExpBackward0.result"]).score
        0.5
        """
        judged = [answer.right for answer in self.answers if answer.right is not None]
        return sum(judged) / len(judged) if judged else None

    def __bool__(self) -> bool:
        return self.score == 1

    def explain(self) -> str:
        """One sentence a line, for each right and each wrong answer, with its reason.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> loss = w.exp().sum()
        >>> print(graphwidget.predict(loss, frees=["ExpBackward0.result"], retain_graph=True).explain())
        Wrong: ExpBackward0.result would not be freed: retain_graph=True keeps it.
        """
        if not self.answers:
            return self.question()
        lines = [answer.text for answer in self.answers[:_MOST_ANSWERS]]
        more = self.answers[_MOST_ANSWERS:]
        if more:
            wrong = sum(answer.right is False for answer in more)
            lines.append(f"… and {len(more)} more, {wrong} of them wrong.")
        return "\n".join(lines)

    def question(self) -> str:
        """What there is to predict, by name. It gives nothing away.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> loss = w.exp().sum()
        >>> print(graphwidget.predict(loss).question())
        Predict what loss.backward() does before you run it.
          fails: does it raise? If so, at which node? ExpBackward0, SumBackward0
          frees: which of these saved tensors does it free? ExpBackward0.result
        """
        lines = [
            f"Predict what {self.call} does before you run it.",
            f"  fails: does it raise? If so, at which node? {listed(self.nodes)}",
            f"  frees: which of these saved tensors does it free? {listed(self.slots)}",
        ]
        if any(name.endswith("]") for name in self.nodes):
            lines.append("Nodes of one name are numbered in the order in which they were made.")
        return "\n".join(lines)

    def check(self) -> Prediction:
        """The same prediction compared with what the call did: the first call on the same tensor since.

        Raises
        ------
        RuntimeError
            If nothing was tracked when it was predicted, or no such call has been recorded since.

        Examples
        --------
        >>> import torch, graphwidget
        >>> with graphwidget.track():
        ...     w = torch.ones(3, requires_grad=True)
        ...     loss = w.exp().sum()
        ...     said = graphwidget.predict(loss, frees=["ExpBackward0.result"])
        ...     loss.backward()
        ...     print(said.check().explain())
        Right: ExpBackward0.result was freed: ① ran ExpBackward0 and did not retain the graph.
        """
        if self._checked is None:
            raise RuntimeError(
                f"What {self.call} did is not known, because nothing was tracked when it was predicted. Run "
                "%load_ext graphwidget first, or your code inside `with graphwidget.track():`."
            )
        return self._checked()

    def __repr__(self) -> str:
        judged = sum(answer.right is not None for answer in self.answers)
        right = sum(answer.right is True for answer in self.answers)
        open_ = len(self.answers) - judged
        said = [f"{right} of {judged} right"] * bool(judged) + [f"{open_} cannot be known"] * bool(open_)
        return f"<Prediction of {self.call}: {', '.join(said) or 'nothing is predicted yet'}>"


def listed(names: Sequence[str]) -> str:
    """``a, b and 3 more``; of none a dash."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (", ".join(names[:_MOST_NAMES]) or "–") + more
