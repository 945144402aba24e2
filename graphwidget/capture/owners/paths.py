"""Paths to tensors: their steps, their text, and how well they name the tensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from graphwidget.capture.owners.plans import CONTAINED, OPTIMIZER, PLAIN, REGISTERED, Reader
from graphwidget.capture.owners.reading import is_own_class

__all__ = ["PathStep", "containers_of", "is_bounded", "rank_of"]

KINDS_THAT_STAY = frozenset({"out", "traceback", "frame", "closure", "generator", "hook"})
# Where a path starts, the best first: variables, locals, optimizers, IPython's history, tracebacks, the rest.
GROUP = {"frame": 1, "out": 3, "traceback": 4, "other": 5}
IN_OPTIMIZER = 2
_WINDOW = 100  # elements: a queue for no more than these is a window of the last ones, as for a mean
_LENGTHS: dict[type, Callable[[Any], int]] = {cls: cls.__len__ for cls in (list, tuple, dict, deque)}


class PathStep:
    """The last step of a path, linked to the step before it. The text is built only when a tensor is found."""

    __slots__ = "anchor depth expression hidden key kind owner parent registered spell text tier".split()

    def __init__(self, parent: PathStep, reader: Reader, key: Any, owner: Any) -> None:
        self.parent: PathStep | None = parent
        self.spell, self.key, self.owner = reader.spell, key, owner
        self.kind: str = parent.kind if parent.kind in KINDS_THAT_STAY else reader.kind
        self.tier: int = max(parent.tier, reader.tier)  # the tier of the worst step
        self.registered = reader.tier == REGISTERED
        self.depth: int = parent.depth + 1
        self.text: str | None = None
        self.anchor = 0  # the identity of the object whose class the text begins with
        self.expression = False
        self.hidden = False  # the text goes through a private attribute of a library's object

    @classmethod
    def first(cls, path: str, kind: str, expression: bool = True) -> PathStep:
        """Return the first step of a path: a variable, a local of a frame, an output."""
        step = cls.__new__(cls)
        step.parent, step.kind, step.depth, step.text, step.expression = None, kind, 0, path, expression
        step.tier, step.registered, step.hidden, step.anchor = PLAIN, False, False, 0
        return step

    def path(self) -> str:
        """Return the whole path as text.

        An object that only private attributes of a library lead to has the name of its class: a model is
        ``Net(…)`` in ``Net(…).fc1.weight``, and not ``trainer._connector._model``. `anchor` tells two of them apart.
        """
        chain: list[PathStep] = []
        step = self
        while step.text is None and step.parent is not None:
            chain.append(step)
            step = step.parent
        text, expression, hidden, anchor = step.text or "", step.expression, step.hidden, step.anchor
        for step in reversed(chain):
            if hidden and is_own_class(type(step.owner)):
                text, expression, hidden = f"{type(step.owner).__name__}(…)", False, False
                anchor = id(step.owner)
            text, is_expression = step.spell(text, step.key, step.owner)
            hidden = hidden or (_is_private(step.key) and not is_own_class(type(step.owner)))
            expression = expression and is_expression
            step.text, step.expression, step.hidden, step.anchor = text, expression, hidden, anchor
        return text


def _is_private(key: Any) -> bool:
    return type(key) is str and key.startswith("_") and not key.startswith("__")


def containers_of(last: PathStep) -> tuple[tuple[str, int], ...]:
    """Return the types and lengths of the objects that the last two steps of a path lead into."""
    found: list[tuple[str, int]] = []
    step: PathStep | None = last
    while step is not None and step.parent is not None and len(found) < 2:
        found.append((type(step.owner).__name__, _length(step.owner)))
        step = step.parent
    return tuple(found)


def is_bounded(last: PathStep) -> bool:
    """Whether the path leads through a `deque` that drops its oldest element for a new one, or is a short window.

    One of a large `maxlen` that is not full has dropped nothing yet: a replay buffer grows for a long time. So do short
    windows of which a container has many: one for each class, or step of time.
    """
    step: PathStep | None = last
    most = None
    while step is not None and step.parent is not None:
        if most is None and type(step.owner) is deque:
            most = step.owner.maxlen
            if most is not None and len(step.owner) >= most:
                return True
        elif most is not None:
            most *= max(1, _length(step.owner))
        step = step.parent
    return most is not None and most <= _WINDOW


def _length(owner: Any) -> int:
    """How many elements one of Python's containers has, also one of a class derived from it; -1: it is none of them."""
    return next((length(owner) for cls, length in _LENGTHS.items() if issubclass(type(owner), cls)), -1)


def rank_of(last: PathStep) -> tuple[int, ...]:
    """Return how well a path names a tensor; the lowest rank is the best.

    The order is: the name that a module gave to a parameter or buffer (also of a module in a list); a variable (perhaps
    a loop variable) or an attribute; an element of a container; a path that nobody writes. Within each, the path with
    fewer steps wins. The inside of an optimizer comes after all the user's own objects.
    """
    inside = last.tier == OPTIMIZER and last.kind not in ("out", "traceback")
    named = last.registered and last.tier <= CONTAINED
    group = IN_OPTIMIZER if inside else GROUP.get(last.kind, 0)
    return (group, REGISTERED if named else last.tier, last.depth)
