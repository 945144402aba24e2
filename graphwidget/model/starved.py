"""Parameters that optimizers hold and that no gradient reaches, and parameters that no optimizer holds."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.parts import Place

__all__ = ["ReplacedParameters", "StarvedParameters"]


@dataclass(frozen=True, slots=True)
class StarvedParameters:
    """What the steps of one optimizer left unchanged because it had no gradient in any of them.

    `place` is the last step's, `paths` name the parameters, `steps` says how many steps there were, and `held` how many
    parameters the optimizer had when it made the first.
    """

    place: Place
    paths: tuple[str, ...]
    steps: int
    held: int


@dataclass(frozen=True, slots=True)
class ReplacedParameters:
    """What got gradients in a module while no optimizer held it, and one held others that nothing else refers to.

    `place` is a step of that optimizer, `paths` name the parameters that it does not hold, `old` says how many it holds
    in their place, of the `held` that it has.
    """

    place: Place
    paths: tuple[str, ...]
    old: int
    held: int
