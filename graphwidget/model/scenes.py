"""What was measured where an error was raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphwidget.model.parts import Place

__all__ = ["Scene", "Sight", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """What a variable was.

    Attributes
    ----------
    kind
        A tensor, a module, or a class that is an ``autograd.Function``.
    type_name
        The name of its class; of a Function its own.
    requires_grad
        Of a tensor: its flag. Of a module: whether a parameter in it requires grad; None: it has none.
    leaf
        Of a tensor; None: looking would have changed something.
    view_of
        Of a view: a name of the tensor that it is a view of, empty where that has none. None: it is no view.
    """

    kind: Literal["tensor", "module", "function"]
    type_name: str = ""
    requires_grad: bool | None = None
    leaf: bool | None = None
    view_of: str | None = None
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """One frame of a cell's code: its line, and what the names that its cell writes were.

    `decorators` are the grad modes that torch had switched on around its call, such as ``"no_grad"``.
    """

    place: Place
    in_function: bool
    values: Mapping[str, Value] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an error was raised. `grad_mode`: None: not known. `sights`: of the frames of cells, innermost first."""

    grad_mode: bool | None = None
    sights: tuple[Sight, ...] = ()

    def value(self, name: str) -> Value | None:
        """What a name was in the line that raised."""
        return self.sights[0].values.get(name) if self.sights else None
