"""The first value of a graph that is not finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphwidget.model.graph.parts import Place
from graphwidget.model.graph.snapshot import Node

__all__ = ["NonFinite"]


@dataclass(frozen=True)
class NonFinite:
    """Where the values or the gradients of a graph stop to be finite.

    Attributes
    ----------
    stage
        ``"forward"``: a value that the forward made or was given; ``"backward"``: a gradient; empty: all that could be
        looked at is finite.
    value
        ``"nan"``, ``"inf"`` or ``"-inf"``.
    what
        What it is: a name in backquotes, or the saved tensor of a node, or a gradient.
    node
        The node whose operation made it; None: no operation did (a leaf, a constant), or it is unknown.
    place
        The line of that node, or of the first node that saved it.
    at
        The position of the first such element; empty for a tensor of one number.
    count, size
        How many elements are not finite, and how many there are.
    because
        What else is known of it, as sentences.
    unseen
        What could not be looked at, and why, as sentences.

    Examples
    --------
    >>> import torch, graphwidget
    >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
    >>> found = graphwidget.find_nan(x.sqrt().sum())
    >>> found.stage, found.node.name, found.value, found.at
    ('backward', 'SqrtBackward0', 'inf', (0,))
    >>> print(graphwidget.find_nan((x + 1).sqrt().sum()))
    All values and gradients that the graph shows are finite.
    """

    stage: Literal["", "forward", "backward"] = ""
    value: str = ""
    what: str = ""
    node: Node | None = None
    place: Place | None = None
    at: tuple[int, ...] = ()
    count: int = 0
    size: int = 0
    because: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return bool(self.stage)

    def __str__(self) -> str:
        return " ".join((self._sentence(), *self.because, *self.unseen))

    def _sentence(self) -> str:
        if not self.found:
            return "All values and gradients that the graph shows are finite."
        spot = f" ({self.place.spot})" if self.place is not None and self.place.spot else ""
        by = f" of {self.node.name}" if self.node is not None else ""
        module = self.node.module if self.node is not None else None
        inside = f" in `{module.path}`" if module is not None else ""
        where = f" at [{', '.join(map(str, self.at))}]" if self.at else ""
        many = f", {self.count} of {self.size} elements" if self.size > 1 else ""
        which = "value" if self.stage == "forward" else "gradient"
        return f"The first {which} that is not finite: {self.what}{by}{spot}{inside} is {self.value}{where}{many}."
