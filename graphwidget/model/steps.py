"""A backward call node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, overload

from graphwidget.model.graph.snapshot import Node, SavedTensor
from graphwidget.model.records import Forecast

__all__ = ["Step", "Steps"]

_MOST_STEPS = 60  # that a text lists


@dataclass(frozen=True)
class Step:
    """One node of a backward call, and what happens when it is its turn.

    Attributes
    ----------
    number
        Its position in the engine's order, from 1.
    node
        The node.
    result
        ``"runs"``; ``"captures"``: `autograd.grad` returns its gradient, and the node itself does not run;
        ``"raises"``; ``"unknown"``: whether it raises cannot be known, and so all that follows.
    shapes
        Shapes of the gradients that arrive, one for each output of its operation that gets one. A length of -1 is not
        one number.
    frees
        The saved tensors that it releases.
    to
        The nodes that get a gradient from it, each once.
    grad
        What happens to the `.grad` of its leaf: ``"set"`` (it was None), ``"added"`` (in place), ``"replaced"`` (by the
        sum, with `create_graph`), ``"unknown"``; empty: nothing.
    facts
        (topic, sentence): what arrives, what it saved, what it frees, and where its gradients go.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> step = graphwidget.steps(loss)[1]
    >>> step.number, step.node.name, step.shapes, step.frees, step.to[0].labels
    (2, 'ExpBackward0', ((3,),), (<saved result: held>,), ('w',))
    """

    number: int
    node: Node
    result: Literal["runs", "captures", "raises", "unknown"]
    shapes: tuple[tuple[int, ...], ...] = ()
    frees: tuple[SavedTensor, ...] = ()
    to: tuple[Node, ...] = ()
    grad: Literal["", "set", "added", "replaced", "unknown"] = ""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """Its sentences, one after the other.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> print(graphwidget.steps(w.exp().sum())[2].text)
        A gradient float32[3] would arrive. The .grad of w is None and would be set.
        """
        return " ".join(sentence for _, sentence in self.facts)


@dataclass(frozen=True)
class Steps(Sequence[Step]):
    """A backward call node by node, in the order in which the engine runs the nodes.

    Each step is made when it is asked for, so that a long call costs nothing before.

    Attributes
    ----------
    call
        The call as it is written, such as ``loss.backward()``; of a recorded one with its number (``① ...``).
    past
        Whether it has been made. Else it is foreseen, and nothing has run.
    known
        Whether the order is known. If not, there are no steps, and `ending` says why.
    ending
        What happens after the last step: the sum of it all, or why the rest is not known.
    assumes
        Assumptions that cannot be checked, one sentence each.
    forecast
        The simulation that the steps are taken from; None: the order is not known.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> steps = graphwidget.steps(loss)
    >>> len(steps), steps.known, [step.node.name for step in steps]
    (3, True, ['SumBackward0', 'ExpBackward0', 'AccumulateGrad'])
    """

    call: str
    past: bool
    known: bool
    ending: str
    assumes: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    forecast: Forecast | None = field(default=None, repr=False)
    _make: Callable[[int], Step] = field(repr=False, compare=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, at: int) -> Step: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Step, ...]: ...

    def __getitem__(self, at: int | slice) -> Step | tuple[Step, ...]:
        found = range(len(self))[at]
        return self._make(found) if isinstance(found, int) else tuple(map(self._make, found))

    def __iter__(self) -> Iterator[Step]:
        return map(self._make, range(len(self)))

    def __repr__(self) -> str:
        number = f"{len(self)} step{'' if len(self) == 1 else 's'}" if self.known else "the order is not known"
        return f"<Steps of {self.call}: {number}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = _MOST_STEPS) -> str:
        """All steps as plain text. Of more than `most` those in the middle are left out.

        Examples
        --------
        >>> import torch, graphwidget
        >>> w = torch.ones(3, requires_grad=True)
        >>> loss = w.exp().sum()
        >>> print(graphwidget.steps(loss).text(most=1))
        loss.backward(), node by node. Nothing has run.
        1. SumBackward0 of loss
           A gradient float32[] would arrive: the call starts here. It saved no tensor. It would hand a gradient to \
ExpBackward0 (float32[3]).
        … 2 more steps
        3 nodes would run and free 1 saved tensor, 12 B. The .grad of w would be set.
        """
        n = len(self)
        head = f"{self.call}, node by node." + ("" if self.past else " Nothing has run.")
        first, last = (n, n) if n <= most else ((most + 1) // 2, n - most // 2)
        lines = [head, *self._lines(range(first))]
        if first < last:
            lines += [f"… {last - first} more steps", *self._lines(range(last, n))]
        return "\n".join([*lines, self.ending, *(f"Taken for granted: {text}" for text in self.assumes)])

    def _lines(self, positions: range) -> Iterator[str]:
        for step in map(self._make, positions):
            names = f" of {step.node.labels[0]}" if step.node.labels else ""
            place = step.node.place
            where = f", In[{place.cell}]:{place.line}" if place and place.cell is not None else ""
            yield f"{step.number}. {step.node.name.removeprefix('torch::autograd::')}{names}{where}"
            yield f"   {step.text}"
